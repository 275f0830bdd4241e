"""What the system tests share: a weir of a given configuration, upstreams that do as they are told, a Redis, and
clients that send exactly the bytes given. Standard library only. Everything listens on 127.0.0.1, on ports that the
kernel picks, and ends with the `with` (or the test) that started it.

$WEIR names the binary under test; $WEIR_SANITIZE is set where it runs under a sanitizer and is slow.
"""

import contextlib
import json
import os
import pathlib
import queue
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

WEIR = os.environ.get("WEIR", "build/weir")
SANITIZED = bool(os.environ.get("WEIR_SANITIZE"))
PATIENCE = 30 if SANITIZED else 15  # seconds; the longest any single wait may take before the test fails
CRLF2 = b"\r\n\r\n"


# ---- bytes on a socket ----------------------------------------------------------------------------------------------


class Wire:
    """A socket and what was read from it too far."""

    def __init__(self, sock):
        self.sock, self.buffer = sock, b""

    def fill(self):
        more = self.sock.recv(1 << 18)
        self.buffer += more
        return bool(more)

    def take(self, count):
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def read_until(self, mark):
        while (at := self.buffer.find(mark)) < 0:
            if not self.fill():
                raise EOFError(f"ended after {self.buffer[:200]!r}")
        return self.take(at + len(mark))

    def read_exactly(self, count):
        """A list of pieces instead of one string, so that 50 MB do not cost quadratic time."""
        pieces = [self.take(count)]
        left = count - len(pieces[0])
        while left:
            piece = self.sock.recv(min(left, 1 << 18))
            if not piece:
                raise EOFError(f"{left} of {count} bytes missing")
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def read_chunked(self):
        pieces = []
        while size := int(self.read_until(b"\r\n").split(b";")[0], 16):
            pieces.append(self.read_exactly(size))
            if self.read_exactly(2) != b"\r\n":
                raise ValueError("a chunk does not end in CRLF")
        while self.read_until(b"\r\n") != b"\r\n":
            pass
        return b"".join(pieces)

    def read_to_end(self):
        while self.fill():
            pass
        return self.take(len(self.buffer))

    def at_end(self):
        """The other side has closed, and nothing more came before that."""
        try:
            return not self.buffer and not self.fill()
        except ConnectionResetError:
            return True


class Head:
    """First line and fields of a request or response."""

    def __init__(self, raw):
        self.raw = raw
        lines = raw.decode("latin-1").split("\r\n")
        self.line = lines[0]
        self.fields = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:] if line)]

    def all(self, name):
        return [value for each, value in self.fields if each == name.lower()]

    def __getitem__(self, name):
        found = self.all(name)
        return found[0] if found else None

    def __contains__(self, name):
        return bool(self.all(name))


class Response(Head):
    def __init__(self, raw, body=b""):
        super().__init__(raw)
        self.status = int(self.line.split()[1])
        self.body = body

    def json(self):
        return json.loads(self.body)


def read_response(wire, method="GET"):
    response = Response(wire.read_until(CRLF2))
    if method == "HEAD" or response.status in (204, 304) or response.status < 200:
        return response
    if "chunked" in (response["transfer-encoding"] or ""):
        response.body = wire.read_chunked()
    elif (length := response["content-length"]) is not None:
        response.body = wire.read_exactly(int(length))
    else:
        response.body = wire.read_to_end()
    return response


def request_bytes(method, path, headers=None, body=b"", host="weir.test"):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + CRLF2 + body


def chunked(body, size=16384):
    pieces = [b"%x\r\n%s\r\n" % (len(body[at:at + size]), body[at:at + size]) for at in range(0, len(body), size)]
    return b"".join(pieces) + b"0\r\n\r\n"


class Client:
    """A connection to 127.0.0.1:port; `tls` is an ssl.SSLContext."""

    def __init__(self, port, tls=None, name="localhost"):
        sock = socket.create_connection(("127.0.0.1", port), PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = tls.wrap_socket(sock, server_hostname=name, suppress_ragged_eofs=False) if tls else sock
        self.wire = Wire(self.sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def read(self, method="GET"):
        return read_response(self.wire, method)

    def request(self, method, path, headers=None, body=b""):
        self.send(request_bytes(method, path, headers, body))
        return self.read(method)

    def get(self, path="/", **headers):
        """Underscores in names stand for hyphens: get("/", x_api_key="k")."""
        return self.request("GET", path, {name.replace("_", "-"): value for name, value in headers.items()})

    def closed(self):
        return self.wire.at_end()

    def leave(self):
        """Goes away with a reset, as a killed client does."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.sock.close()


def get(port, path="/", **headers):
    with Client(port) as client:
        return client.get(path, **headers)


def exchange_raw(port, data):
    """Sends bytes on a fresh connection and reads the first response."""
    with Client(port) as client:
        with contextlib.suppress(ConnectionError):
            client.send(data)
        return client.read()


def together(count, work):
    """work(0) … work(count-1) at the same time, one thread each; their results in order."""
    results, start = [None] * count, threading.Barrier(count)

    def run(index):
        start.wait(PATIENCE)
        try:
            results[index] = work(index)
        except Exception as fault:  # handed to the caller below, whatever it is
            results[index] = fault

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * PATIENCE)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def eventually(holds, what, seconds=PATIENCE):
    """Polls until it holds; its value. Used where only the outside can be seen, such as a counter."""
    deadline = time.monotonic() + seconds
    while not (value := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
    return value


# ---- processes ------------------------------------------------------------------------------------------------------


class Process:
    """A program whose standard error is followed line by line."""

    def __init__(self, command, **options):
        self.lines, self.news = [], queue.Queue()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        errors="replace", **options)
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self.follow, daemon=True)
        self.reader.start()

    def follow(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            self.news.put(line)
        self.news.put(None)

    def wait_for(self, pattern, count=1):
        """The first `count` matches of the pattern in its lines."""
        deadline = time.monotonic() + PATIENCE
        while len(found := [match for line in list(self.lines) if (match := re.search(pattern, line))]) < count:
            try:
                ended = self.news.get(timeout=max(0.01, deadline - time.monotonic())) is None
            except queue.Empty:
                ended = True
            if ended:
                raise AssertionError(f"no line matches {pattern!r} (status {self.process.poll()}):\n{self.log()}")
        return found[:count]

    def log(self):
        return "\n".join(self.lines[-60:])

    def signal(self, which):
        self.process.send_signal(which)

    def wait(self, seconds=PATIENCE):
        status = self.process.wait(seconds)
        self.reader.join(seconds)
        return status

    def stop(self):
        """SIGTERM, and what came of it; SIGKILL where that does not end it."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"SIGTERM did not end it:\n{self.log()}") from None
        finally:
            self.process.stderr.close()


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


class Weir(Process):
    """`weir run` of a configuration text that says port 0; `files` are laid beside it. Leaving checks that it ended
    well: a crash or a sanitizer's report fails the test that caused it."""

    def __init__(self, text, files=None, environment=None):
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-test-")
        self.folder = pathlib.Path(self.scratch.name)
        for name, content in {"weir.toml": text, **(files or {})}.items():
            (self.folder / name).write_text(content)
        super().__init__([WEIR, "run", "--config", str(self.folder / "weir.toml")],
                         env={**os.environ, **(environment or {})})
        try:
            listeners = text.count("[[listener]]")
            self.ports = [int(match.group(1)) for match in self.wait_for(r"listening on \S*:(\d+)", listeners)]
            self.port = self.ports[0]
            self.admin = int(self.wait_for(r"admin on \S*:(\d+)")[0].group(1)) if "[admin]" in text else None
        except BaseException:
            self.process.kill()
            self.process.wait()
            self.scratch.cleanup()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        status = self.stop()
        self.scratch.cleanup()
        if status != 0 and kind is None:
            raise AssertionError(f"weir ended with status {status}:\n{self.log()}")

    def connect(self, **options):
        return Client(self.port, **options)

    def get(self, path="/", **headers):
        return get(self.port, path, **headers)

    def metric(self, name, **labels):
        """The sum of a metric's samples that carry these labels."""
        total = 0.0
        for line in get(self.admin, "/metrics").body.decode().splitlines():
            if re.match(rf"{name}(\{{|\s)", line) and all(f'{key}="{value}"' in line for key, value in labels.items()):
                total += float(line.rpartition(" ")[2])
        return total


class Echo(Process):
    """`weir echo`."""

    def __init__(self, *arguments):
        super().__init__([WEIR, "echo", "--listen", "127.0.0.1:0", *arguments])
        self.port = int(self.wait_for(r"listening on \S*:(\d+)")[0].group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Redis:
    """A redis-server of its own, without persistence, that can be killed and started again on its port."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-redis-")
        for _ in range(20):  # another process may take the free port first: then redis-server ends at once
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            if self.start():
                return
        raise AssertionError("redis-server does not start")

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd=self.folder.name)
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError, EOFError):
                if self.command("INFO", "server").find(f"process_id:{self.process.pid}\r".encode()) >= 0:
                    return True
            time.sleep(0.02)
        return False

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def command(self, *words):
        with Client(self.port) as client:
            client.send(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words))
            return self.reply(client.wire)

    def reply(self, wire):
        line = wire.read_until(b"\r\n")[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return wire.read_exactly(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if kind == b"*":
            return [self.reply(wire) for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def calls(self, command):
        """How often the command ran: INFO commandstats."""
        found = re.search(rf"cmdstat_{command}:calls=(\d+)", self.command("INFO", "commandstats").decode())
        return int(found.group(1)) if found else 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
        self.folder.cleanup()


# ---- an upstream that does as it is told -----------------------------------------------------------------------------


def answer(body=b"ok", status="200 OK", headers="", length=True):
    """A complete response as bytes; `headers` are whole lines ending in CRLF."""
    framing = f"Content-Length: {len(body)}\r\n" if length else ""
    return f"HTTP/1.1 {status}\r\n{framing}{headers}\r\n".encode() + body


class Exchange:
    """One request as the upstream got it, and the means to answer."""

    def __init__(self, wire, connection):
        self.head = Head(wire.read_until(CRLF2))
        self.arrived = time.monotonic()
        self.wire, self.connection = wire, connection
        self.method, self.target, self.version = self.head.line.split(" ")
        self.body = None

    def read_body(self):
        if self.body is None:
            if self.head["transfer-encoding"]:
                self.body = self.wire.read_chunked()
            else:
                self.body = self.wire.read_exactly(int(self.head["content-length"] or 0))
        return self.body

    def send(self, data):
        self.wire.sock.sendall(data)

    def close(self):
        self.wire.sock.shutdown(socket.SHUT_RDWR)

    def wait_for_close(self):
        """Until the other side ends the connection, as a server that never answers."""
        with contextlib.suppress(OSError):
            while self.wire.fill():
                pass


class Upstream:
    """`reply` is bytes, sent after each request's body was read, or a function of the Exchange."""

    def __init__(self, reply=answer()):
        self.reply = reply
        self.exchanges, self.failures = [], []
        self.connections = 0
        self.open = set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.connections += 1
                self.open.add(sock)
                threading.Thread(target=self.serve, args=(sock, self.connections), daemon=True).start()

    def serve(self, sock, number):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire = Wire(sock)
        try:
            while True:
                exchange = Exchange(wire, number)
                self.exchanges.append(exchange)
                if callable(self.reply):
                    self.reply(exchange)
                else:
                    exchange.read_body()
                    exchange.send(self.reply)
        except (EOFError, OSError, ValueError) as fault:
            if str(fault) != "ended after b''":
                self.failures.append(fault)  # a request that was cut short, or not HTTP: the test may ask
        finally:
            self.open.discard(sock)
            sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for sock in list(self.open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def closed_port():
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ---- configuration and certificates ---------------------------------------------------------------------------------


def config(*upstreams, rules="", server="", client="", state="", listener="", routes="", upstream=""):
    """A weir of one plain listener before these upstreams (ports), with an admin listener; more by keyword."""
    servers = ", ".join(f'"127.0.0.1:{port}"' for port in upstreams)
    return f"""
[server]
workers = 2
drain = "5s"
{server}
[log]
access = "off"
[[listener]]
address = "127.0.0.1:0"
{listener}
[admin]
address = "127.0.0.1:0"
[client]
{client}
[state]
{state}
[[upstream]]
name = "api"
servers = [{servers}]
{upstream}
{routes or '[[route]]' + chr(10) + 'upstream = "api"'}
{rules}
"""


def rule(name="per-ip", limit="1/day", **more):
    """A [[rule]]; values are TOML: rule(key='["ip"]', burst=3)."""
    lines = ["[[rule]]", f'name = "{name}"', f'limit = "{limit}"', *(f"{key} = {value}" for key, value in more.items())]
    return "\n".join(lines) + "\n"


def make_certificate(folder, name="edge", host="localhost"):
    """NAME.crt and NAME.key, self-signed; their text by file name."""
    folder = pathlib.Path(folder)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}",
                    "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"], check=True, capture_output=True)
    return {file: (folder / file).read_text() for file in (f"{name}.crt", f"{name}.key")}


def client_tls(certificate, alpn=None):
    context = ssl.create_default_context(cadata=certificate)
    if alpn:
        context.set_alpn_protocols(alpn)
    return context


class TestCase(unittest.TestCase):
    maxDiff = None

    def start(self, context):
        """Enters a context that ends with the test."""
        return self.enterContext(context)

    def assert_own_error(self, response, status):
        """weir's own errors are JSON with a word and a sentence."""
        self.assertEqual(response.status, status, response.raw + response.body)
        self.assertEqual(response["content-type"], "application/json")
        self.assertLessEqual({"error", "message"}, response.json().keys())

    def statuses(self, port, count, path="/", **headers):
        with Client(port) as client:
            return [client.get(path, **headers).status for _ in range(count)]


main = unittest.main
