"""Issuers of tokens that publish their keys over HTTPS: one that a test scripts, and the npm library oidc-provider."""

import json
import os
import random
import ssl
import subprocess
import unittest

from documents import TREE
from harness import BELOW_EPHEMERAL, PATIENCE, Process, Upstream, answer, make_certificate
from token_test import Ed25519Issuer

PACKAGES = TREE / "build/oidc/node_modules"


def server_tls(folder):
    """Makes a certificate for "localhost". Returns the context of a server that shows it."""
    make_certificate(folder, "login", address="127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "login.crt", folder / "login.key")
    return context


class KeyServer(Upstream):
    """Publishes the keys of an Ed25519Issuer. `gate`: called before each answer."""

    def __init__(self, folder, issuer, kids=("1",), port=0, tls=None):
        self.issuer, self.gate = issuer, lambda: None
        self.rotate(*kids)
        super().__init__(self.publish, port=port, tls=tls or server_tls(folder))

    @property
    def url(self):
        return f"https://localhost:{self.port}/jwks"

    def rotate(self, *kids):
        """Publishes these keys from now on. Makes the keys in the calling thread, because only one thread at a time may make a key."""
        self.key_set = self.issuer.key_set(*kids).encode()

    def publish(self, exchange):
        self.gate()
        exchange.send(answer(self.key_set, headers="Connection: close\r\n"))
        exchange.close()


class OidcProvider:
    """tests/oidc/issuer.js. It can be killed and started again on its port, with new keys."""

    def __init__(self, folder):
        if not PACKAGES.is_dir():
            raise unittest.SkipTest(f"{PACKAGES} is not there: ./dev test installs it if npm reaches its registry")
        server_tls(folder)
        self.folder = folder
        for _ in range(20):  # if another process has the port, Node.js ends at once
            self.port = random.randrange(*BELOW_EPHEMERAL)
            if self.start():
                return
        raise AssertionError("oidc-provider does not start: " + self.process.log())

    def start(self):
        self.process = Process(["node", TREE / "tests/oidc/issuer.js", self.folder / "login.crt", self.folder / "login.key", str(self.port)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "NODE_PATH": str(PACKAGES)})
        return bool(self.process.process.stdout.readline())

    def tell(self, **request):
        pipes = self.process.process
        pipes.stdin.write(json.dumps(request) + "\n")
        pipes.stdin.flush()
        return json.loads(pipes.stdout.readline())

    def token(self, **claims):
        return self.tell(claims=claims)["token"]

    @property
    def url(self):
        return f"https://localhost:{self.port}"

    def kill(self):
        pipes = self.process.process
        pipes.kill()
        pipes.wait(PATIENCE)
        for pipe in (pipes.stdin, pipes.stdout, pipes.stderr):
            self.process.reader.join(PATIENCE)
            pipe.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.process.poll() is None:
            self.kill()


__all__ = ["Ed25519Issuer", "KeyServer", "OidcProvider", "server_tls"]
