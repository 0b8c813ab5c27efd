"""Several nodes on one machine: PostgreSQL from target/postgres, `quarterdeck serve` as often as one likes, and nginx in
front. scripts/try-cluster lets a person try them, scripts/bench-cluster measures them."""
import os, pathlib, shutil, signal, socket, subprocess, sys, time, urllib.error, urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The server refuses to run as root, so root runs it as this user: `nobody` on Debian, and any other would do.
UNPRIVILEGED = 65534


def say(text):
    print(text, file=sys.stderr, flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what, is_true, process=None, seconds=60):
    until = time.monotonic() + seconds
    while not is_true():
        if process is not None and process.poll() is not None:
            raise SystemExit(f"{what}: it has ended with exit code {process.returncode}")
        if time.monotonic() > until:
            raise SystemExit(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def answers(url):
    """Whether a URL is answered with 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


class Program:
    """A process that ends with us."""

    def __init__(self, name, command, log, **options):
        self.name, self.log = name, log
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, **options
            )
        self.pid = self.process.pid

    def stop(self, how=signal.SIGTERM, seconds=30):
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                say(f"{self.name} does not end; killed")
                self.process.kill()
                self.process.wait()


class Database(Program):
    """One PostgreSQL server in a folder of its own, on a port of loopback, with syncs unless told otherwise."""

    def __init__(self, folder, version=18, settings=()):
        subprocess.run([ROOT / "scripts" / "postgres"], check=True)
        programs = (ROOT / "target" / "postgres" / str(version)).resolve()
        if not (programs / "postgres").exists():
            raise SystemExit("PostgreSQL is not installed; see scripts/postgres")
        self.programs, self.port, self.data = programs, free_port(), folder / "data"
        self.user = {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []} if os.getuid() == 0 else {}
        folder.mkdir(parents=True, exist_ok=True)
        if self.user:
            os.chown(folder, UNPRIVILEGED, UNPRIVILEGED)
        if not self.data.exists():
            command = [programs / "initdb", "-D", self.data, "-U", "qd", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
            done = subprocess.run(command, cwd="/", capture_output=True, text=True, **self.user)
            if done.returncode:
                raise SystemExit(f"initdb: {done.stderr[-800:]}")
        fixed = ["listen_addresses=127.0.0.1", f"port={self.port}", f"unix_socket_directories={folder}", "max_connections=100"]
        options = [part for setting in [*fixed, *settings] for part in ("-c", setting)]
        super().__init__("PostgreSQL", [programs / "postgres", "-D", self.data, *options], folder / "log", cwd="/", **self.user)
        wait_until("PostgreSQL", self.is_ready, self.process)
        if self.ask("SELECT count(*) FROM pg_database WHERE datname = 'quarterdeck'", "postgres") == "0":
            self.ask("CREATE DATABASE quarterdeck", "postgres")
        self.url = f"postgres://qd@127.0.0.1:{self.port}/quarterdeck?sslmode=disable"

    def is_ready(self):
        return subprocess.run([self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], cwd="/").returncode == 0

    def ask(self, sql, database="quarterdeck"):
        command = [self.programs / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "qd", "-d", database, "-XAtc", sql]
        done = subprocess.run(list(map(str, command)), cwd="/", capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def stop(self, how=signal.SIGINT, seconds=30):
        """Fast: connections are ended, what is committed is written out."""
        super().stop(how, seconds)


class Node(Program):
    """One `quarterdeck serve`. With a `url` it shares that store; without one it has a file of its own."""

    def __init__(self, binary, name, folder, url=None, port=None, flags=(), env=None):
        self.port = port or free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        environment = os.environ | (env or {})
        if url:
            environment |= {"QUARTERDECK_STORE__URL": url, "QUARTERDECK_CLUSTER__NODE": name}
        folder.mkdir(parents=True, exist_ok=True)
        command = [binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", folder / name, *flags]
        super().__init__(name, command, folder / f"{name}.log", cwd=ROOT, env=environment)

    def wait(self, seconds=120):
        wait_until(f"{self.name} (its log is {self.log})", lambda: answers(f"{self.base}/readyz"), self.process, seconds)


class Proxy(Program):
    """nginx in front of nodes, with the locations of deploy/nginx/locations.conf."""

    def __init__(self, folder, nodes, port):
        nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/sbin")
        if not nginx:
            raise SystemExit("nginx is missing; `apt-get install nginx-light` installs it")
        folder.mkdir(parents=True, exist_ok=True)
        servers = "\n".join(f"    server 127.0.0.1:{node.port} max_fails=1 fail_timeout=2s;" for node in nodes)
        temporary = "\n".join(f"  {kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        configuration = folder / "nginx.conf"
        configuration.write_text(
            f"""daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off;
{temporary}
  upstream quarterdeck {{
    keepalive 32;
{servers}
  }}
  map $http_upgrade $upstream_connection {{ default upgrade; "" ""; }}
  server {{
    listen 127.0.0.1:{port};
    include {ROOT}/deploy/nginx/locations.conf;
  }}
}}
"""
        )
        super().__init__("nginx", [nginx, "-c", configuration, "-e", folder / "error.log"], folder / "log")
        self.base = f"http://127.0.0.1:{port}"
        wait_until("nginx", lambda: answers(f"{self.base}/healthz"), self.process)


def build(profile="release"):
    """The program, built if something has changed."""
    say(f"building quarterdeck ({profile})")
    subprocess.run(["cargo", "build", "--profile", profile, "-q", "-p", "quarterdeck"], cwd=ROOT, check=True)
    return ROOT / "target" / profile / "quarterdeck"
