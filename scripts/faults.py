"""What scripts/bench-faults breaks, and the client that it measures with: other programs that answer, are killed or never
answer, a small disk that can be filled, and a client of MCP."""
import http.client, json, os, signal, socket, socketserver, subprocess, sys, time

from cluster import Program, free_port, wait_until

# A call that takes longer is one that hangs.
CALL_TIMEOUT = 10
PROTOCOL = "2025-11-25"


class Peer(Program):
    """A collector or webhook in a process of its own, so that it takes no time from the client that measures."""

    def __init__(self, folder, behaviour):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__(f"peer that {behaviour}", [sys.executable, __file__, behaviour, self.port], folder / f"peer-{self.port}.log")
        wait_until(self.name, self.is_up, self.process)

    def is_up(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class AnsweringHandler(socketserver.StreamRequestHandler):
    """Takes every request with an empty answer, which is one of OTLP too: nothing was refused."""

    def handle(self):
        while self.rfile.readline():
            length = 0
            while (line := self.rfile.readline().strip()):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            self.rfile.read(length)
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")


class StalledHandler(socketserver.BaseRequestHandler):
    """Reads until the other side has gone, and says nothing."""

    def handle(self):
        while self.request.recv(65536):
            pass


class PeerServer(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 128

    def handle_error(self, request, client_address):
        """A client that goes away is none."""


class SmallDisk:
    """A file system of a few megabytes in memory, which can be filled to the last byte."""

    def __init__(self, folder, megabytes):
        folder.mkdir(parents=True)
        self.folder, self.filler = folder, folder / "filler"
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "none", folder], check=True)

    def fill(self):
        with open(self.filler, "ab", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                try:
                    while file.write(b"\0" * size) == size:
                        pass
                except OSError:
                    pass

    def make_room(self):
        self.filler.unlink(missing_ok=True)

    def unmount(self):
        subprocess.run(["umount", "--lazy", self.folder], check=False)


class McpClient:
    """A client with a session and one connection, which calls one tool at a time."""

    def __init__(self, port):
        self.port, self.sent, self.connection = port, 0, None
        self.headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        self.connect()
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench-faults", "version": "1"}}
        status, head, _ = self.post("initialize", hello)
        if status != 200:
            raise SystemExit(f"the server on port {port} answers `initialize` with {status}")
        self.headers |= {"mcp-session-id": head["mcp-session-id"], "mcp-protocol-version": PROTOCOL}
        self.post("notifications/initialized", None)

    def connect(self):
        if self.connection:
            self.connection.close()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_TIMEOUT)
        self.connection.connect()
        # A request is two small writes, the second of which would wait for the acknowledgement of the first.
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, method, params):
        self.sent += 1
        message = {"jsonrpc": "2.0", "method": method} | ({"id": self.sent, "params": params} if params is not None else {})
        self.connection.request("POST", "/mcp", json.dumps(message), self.headers)
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def call(self, tool, arguments):
        """Calls a tool. Returns the outcome (`done`, `refused`, a status, or `no answer`), what was said, and the seconds."""
        began = time.perf_counter()
        try:
            status, _, text = self.post("tools/call", {"name": tool, "arguments": arguments})
        except (OSError, http.client.HTTPException) as error:
            took = time.perf_counter() - began
            self.connect()
            return "no answer", repr(error), took
        took = time.perf_counter() - began
        if status != 200:
            return f"status {status}", text, took
        data = next((line[6:] for line in text.splitlines() if line.startswith("data: {")), text)
        result = json.loads(data).get("result")
        if result is None:
            return "error", data, took
        return "refused" if result.get("isError") else "done", json.dumps(result.get("content")), took


def cpu_ms(pid):
    """Time on a core of a process, threads that have ended included."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e3 / os.sysconf("SC_CLK_TCK")


def get(base, path):
    return ask(base, "GET", path)


def post(base, path):
    return ask(base, "POST", path)


def ask(base, method, path):
    """Status and body of the answer."""
    connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=CALL_TIMEOUT)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def counters(base):
    """The series of a server that have no labels."""
    _, text = get(base, "/metrics?format=prometheus")
    pairs = (line.split() for line in text.splitlines() if line and line[0] != "#" and "{" not in line)
    return {name: float(value) for name, value in pairs}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    handler = {"answers": AnsweringHandler, "never answers": StalledHandler}[sys.argv[1]]
    with PeerServer(("127.0.0.1", int(sys.argv[2])), handler) as server:
        server.serve_forever()
