"""Clients that talk to a node one turn at a time, so that the cost of each can be told."""
import base64, http.client, json, os, socket, struct


class Chat:
    """A client of the text agent, whose messages go to these nodes in turn. A new conversation begins after so many."""

    def __init__(self, ports, turns):
        self.turns, self.sent, self.cookie = turns, 0, None
        self.connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=30) for port in ports]

    def turn(self):
        connection = self.connections[self.sent % len(self.connections)]
        chat, self.sent = self.sent // self.turns, self.sent + 1
        body = json.dumps({"message": "Where was the Fram built?", "id": f"chat-{os.getpid()}-{chat}"})
        headers = {"content-type": "application/json"} | ({"cookie": self.cookie} if self.cookie else {})
        connection.request("POST", "/api/chat", body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200 or "data: [DONE]" not in text or '"type":"error"' in text:
            raise RuntimeError(f"{answer.status}: {text[-400:]}")
        if cookie := answer.getheader("set-cookie"):
            self.cookie = cookie.split(";")[0]


class Call:
    """A client of the voice agent that writes instead of speaking."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET /voice HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n"
        self.socket.sendall(head.encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.receive()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(head.decode(errors="replace"))
        self.say({"type": "start"})
        self.ready = self.wait_for("ready")

    def receive(self):
        read = self.socket.recv(65536)
        if not read:
            raise RuntimeError("the call was closed")
        return read

    def say(self, message):
        data = json.dumps(message).encode()
        length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
        # With a mask of zeros, which is a mask.
        self.socket.sendall(b"\x81" + length + b"\0\0\0\0" + data)

    def frame(self):
        """The next frame: its kind and its bytes."""
        def at_least(count):
            while len(self.buffer) < count:
                self.buffer += self.receive()
        at_least(2)
        kind, length, start = self.buffer[0] & 15, self.buffer[1] & 127, 2
        if length == 126:
            at_least(4)
            length, start = struct.unpack(">H", self.buffer[2:4])[0], 4
        elif length == 127:
            at_least(10)
            length, start = struct.unpack(">Q", self.buffer[2:10])[0], 10
        at_least(start + length)
        data, self.buffer = self.buffer[start:start + length], self.buffer[start + length:]
        return kind, data

    def wait_for(self, *types):
        while True:
            kind, data = self.frame()
            if kind == 8:
                raise RuntimeError(f"the call was closed: {data[2:].decode(errors='replace')}")
            if kind == 9:
                self.socket.sendall(b"\x8a" + bytes([0x80 | len(data)]) + b"\0\0\0\0" + data)
            if kind != 1:
                continue
            message = json.loads(data)
            if message["type"] in ("error", "session_end"):
                raise RuntimeError(data.decode())
            if message["type"] in types:
                return message

    def exchange(self):
        """A question, and its answer to the end."""
        self.say({"type": "text", "text": "Where was the Fram built?"})
        self.wait_for("turn_complete")
        # What was to be heard has been heard.
        self.say({"type": "playback", "state": "drained"})

    def hang_up(self):
        """Ends the call and waits until the server has closed it."""
        self.say({"type": "stop"})
        try:
            while self.frame()[0] != 8:
                pass
        except RuntimeError:
            pass
        self.close()

    def close(self):
        self.socket.close()
