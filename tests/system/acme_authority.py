"""Runs a certificate authority: Debian's `pebble`, with a DNS server that gives every name the address 127.0.0.1."""

import base64
import http.client
import http.server
import json
import os
import pathlib
import random
import shutil
import socket
import ssl
import tempfile
import threading
import time
import urllib.request

from harness import PATIENCE, make_certificate
from processes import BELOW_EPHEMERAL, Process


def free_port():
    """Returns a port that no outgoing connection can take while nobody listens on it. The port is free for TCP and UDP."""
    while True:
        port = random.randrange(*BELOW_EPHEMERAL)
        with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
            try:
                stream.bind(("127.0.0.1", port))
                datagrams.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Authority:
    """The authority's addresses are known before start(), so that weir can be configured with them. As is pebble's default, the
    authority rejects 5 % of all good nonces. `valid`: the lifetime of certificates in seconds."""

    def __init__(self, valid=3600):
        self.valid = valid
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-acme-")
        self.folder = pathlib.Path(self.scratch.name)
        self.port, self.management, self.dns = free_port(), free_port(), free_port()
        self.directory = f"https://localhost:{self.port}/dir"
        self.files = make_certificate(self.folder)  # the TLS certificate of the directory's server
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.scratch.cleanup()

    def start(self, http=1, tls=1, accounts=None, **environment):
        """Starts the authority. It checks names at these ports of 127.0.0.1. `accounts`: names and secrets of external accounts; if
        given, the authority accepts only ACME accounts that are bound to one of them."""
        settings = {"listenAddress": f"127.0.0.1:{self.port}", "managementListenAddress": f"127.0.0.1:{self.management}",
                    "certificate": str(self.folder / "edge.crt"), "privateKey": str(self.folder / "edge.key"),
                    "httpPort": http, "tlsPort": tls, "ocspResponderURL": "", "certificateValidityPeriod": self.valid}
        if accounts:
            settings |= {"externalAccountBindingRequired": True, "externalAccountMACKeys": accounts}
        (self.folder / "pebble.json").write_text(json.dumps({"pebble": settings}))
        self.run("pebble-challtestsrv", "-dns01", f"127.0.0.1:{self.dns}", "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-http01", "",
                 "-https01", "", "-tlsalpn01", "", "-management", f"127.0.0.1:{free_port()}")
        pebble = self.run("pebble", "-strict", "-config", str(self.folder / "pebble.json"), "-dnsserver", f"127.0.0.1:{self.dns}",
                          PEBBLE_VA_NOSLEEP="1", **environment)
        pebble.wait_for("ACME directory available")
        self.pebble = pebble

    def run(self, *command, **environment):
        if shutil.which(command[0]) is None:
            raise AssertionError(f"{command[0]} is missing; ./dev deps test installs it")
        # pebble writes its log to standard output
        process = Process(["sh", "-c", 'exec "$@" >&2', "sh", *command], env={**os.environ, **environment})
        self.processes.append(process)
        return process

    def stop(self):
        for process in self.processes:
            process.process.terminate()
            process.process.wait(PATIENCE)
            process.reader.join(PATIENCE)
            process.process.stderr.close()
        self.processes = []

    def orders(self):
        """Returns how many certificates the authority has issued."""
        return sum("Issued certificate" in line for line in list(self.pebble.lines))

    def trust(self):
        """Returns a TLS context that trusts the authority's certificates. The authority makes a new root each time it starts."""
        ours = ssl.create_default_context(cadata=self.files["edge.crt"])
        with urllib.request.urlopen(f"https://localhost:{self.management}/roots/0", timeout=PATIENCE, context=ours) as answer:
            return ssl.create_default_context(cadata=answer.read().decode())


class RenewalFront:
    """A proxy for an authority that lacks ARI (renewal information, RFC 9773). The proxy tells weir to renew every certificate in the
    period `window`: two times in seconds since the epoch. Records the certificates about which weir asks, and those that orders replace."""

    def __init__(self, authority, window):
        self.authority, self.asked, self.replaced = authority, [], []
        self.window = {key: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for key, at in zip(("start", "end"), window)}
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, fields, text = front.answer(self.command, self.path, self.headers, body)
                self.send_response(status)
                for name, value in fields:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else text)

            do_GET = do_HEAD = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.folder / "edge.crt", authority.folder / "edge.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.host = f"localhost:{self.server.server_port}"
        self.directory = f"https://{self.host}/dir"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, method, path, fields, body):
        """Returns the status, the fields and the body of an answer. pebble makes its URLs from the Host of a request."""
        if path.startswith("/renewal/"):
            self.asked.append(path.removeprefix("/renewal/"))
            return 200, [("Content-Type", "application/json")], json.dumps({"suggestedWindow": self.window}).encode()
        if path == "/order-plz":
            payload = json.loads(body)["payload"]
            self.replaced.append(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))).get("replaces"))
        server = http.client.HTTPSConnection("localhost", self.authority.port, timeout=PATIENCE,
                                             context=ssl.create_default_context(cadata=self.authority.files["edge.crt"]))
        passed = {name: fields[name] for name in ("Host", "Content-Type", "User-Agent") if name in fields}
        try:
            server.request(method, path, body or None, passed)
        except OSError:
            return 502, [], b""
        reply = server.getresponse()
        text = reply.read()
        server.close()
        if path == "/dir":
            text = json.dumps({**json.loads(text), "renewalInfo": f"https://{self.host}/renewal"}).encode()
        kept = ("replay-nonce", "location", "content-type", "retry-after")
        return reply.status, [field for field in reply.getheaders() if field[0].lower() in kept], text
