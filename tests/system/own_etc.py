"""A weir with an /etc folder of its own, so that a test controls name resolution.

The test's folder is mounted over /etc in a mount namespace. The namespace needs a user namespace (without privileges) or root."""

import pathlib
import random
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

from harness import PATIENCE

BIND = ["sh", "-c", 'mount --bind "$0" /etc && exec "$@"']


def ways():
    """Yields commands that run a program in a new mount namespace."""
    for unshare in (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"]):
        with tempfile.TemporaryDirectory(prefix="weir-etc-") as folder:
            tried = subprocess.run([*unshare, *BIND, folder, "true"], capture_output=True, check=False)
        if tried.returncode == 0:
            yield [*unshare, *BIND]


WAY = next(ways(), None) if shutil.which("unshare") else None


class Names:
    """An /etc folder whose host names the test sets."""

    def __init__(self, **names):
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-etc-")
        self.folder = pathlib.Path(self.scratch.name)
        (self.folder / "nsswitch.conf").write_text("hosts: files\n")
        (self.folder / "host.conf").write_text("multi on\n")  # a name on several lines has several addresses
        if pathlib.Path("/etc/ld.so.cache").exists():
            shutil.copy("/etc/ld.so.cache", self.folder)
        self.say(**names)

    def say(self, **names):
        """say(api="127.0.0.2 127.0.0.3") gives api.test these addresses from now on. Other names are unknown."""
        text = "".join(f"{address} {name}.test\n" for name, addresses in names.items() for address in addresses.split())
        (self.folder / "new").write_text(text)
        (self.folder / "new").rename(self.folder / "hosts")

    def ask(self, server):
        """Makes later processes ask the name server for names that are not in /etc/hosts."""
        (self.folder / "nsswitch.conf").write_text("hosts: files dns\n")
        (self.folder / "resolv.conf").write_text(f"nameserver {server.host}\noptions timeout:30 attempts:1\n")

    def within(self):
        return [*WAY, str(self.folder)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.scratch.cleanup()


class NameServer:
    """A DNS server that sends no answer until the test sets one address for all names. Its port 53 needs root."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.host = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.{random.randint(1, 254)}"
        try:
            self.socket.bind((self.host, 53))
        except PermissionError as error:
            raise unittest.SkipTest("port 53 may not be taken here") from error
        self.lock, self.waiting, self.address = threading.Lock(), [], None
        self.asked = threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            query, peer = self.socket.recvfrom(512)
            if not query:
                return self.socket.close()
            with self.lock:
                self.waiting.append((query, peer))
                self.answer_if_told()
            self.asked.set()

    def answer_if_told(self):
        while self.address and self.waiting:
            query, peer = self.waiting.pop(0)
            end = query.index(b"\0", 12) + 5  # end of the question section
            asks_for_ipv4 = query[end - 4:end - 2] == b"\0\1"
            head = query[:2] + struct.pack(">5H", 0x8180, 1, asks_for_ipv4, 0, 0)
            record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(self.address) if asks_for_ipv4 else b""
            self.socket.sendto(head + query[12:end] + record, peer)

    def await_question(self):
        assert self.asked.wait(PATIENCE), "a name is looked up"

    def speak(self, address):
        """Answers the waiting questions and all later questions with this address."""
        with self.lock:
            self.address = address
            self.answer_if_told()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.sendto(b"", self.socket.getsockname())
