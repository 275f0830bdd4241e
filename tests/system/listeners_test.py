#!/usr/bin/env python3
"""Listeners at all addresses of a host name, and on sockets that systemd passes."""

import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

from harness import PATIENCE, WEIR, Process, TestCase, Upstream, Weir, config, get, main
from own_etc import WAY, Names

# Passes sockets as systemd does: from descriptor 3 on, with environment variables that name this process.
PASS = """
import os, sys
count = int(sys.argv[1])
for number, fd in enumerate(map(int, sys.argv[2:2 + count])):
    os.dup2(fd, 60 + number, inheritable=False)
    os.set_inheritable(fd, False)
for number in range(count):
    os.dup2(60 + number, 3 + number)
    os.set_inheritable(3 + number, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(count))
os.execv(sys.argv[2 + count], sys.argv[2 + count:])
"""


def status_at(address, port, path):
    with socket.create_connection((address, port), PATIENCE) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return int(client.recv(100).split()[1])


class Started(Process):
    """A program that ends with its test."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()


@unittest.skipUnless(WAY, "unshare(1) may give no mount namespace here, so weir cannot have an /etc/hosts of its own")
class ListenerHostNames(TestCase):
    def weir(self, addresses):
        upstream, names = self.start(Upstream()), self.start(Names(edge=addresses))
        text = config(upstream.port).replace('address = "127.0.0.1:0"', 'address = "edge.test:0"')
        text = text.replace("[client]", 'token = "0123456789abcdef"\n[client]')
        return self.start(Weir(text, within=names.within()))

    def test_listener_with_a_host_name_opens_all_addresses_of_the_name(self):
        weir = self.weir("127.0.0.2 127.0.0.3")
        for address in ("127.0.0.2", "127.0.0.3"):
            self.assertEqual({status_at(address, weir.port, "/") for _ in range(4)}, {200}, address)
            self.assertEqual(status_at(address, weir.admin, "/healthz"), 200, address)
            weir.wait_for(re.escape(f"listening on {address}:{weir.port}, an address of edge.test:{weir.port}"))
            weir.wait_for(re.escape(f"admin on {address}:{weir.admin}, an address of edge.test"))
        with self.assertRaises(ConnectionRefusedError):
            status_at("127.0.0.1", weir.port, "/")

    def test_listener_skips_addresses_of_its_host_name_that_another_host_has(self):
        weir = self.weir("192.0.2.1 127.0.0.2")
        self.assertEqual(status_at("127.0.0.2", weir.port, "/"), 200)

    def test_host_name_without_an_address_of_this_host_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "weir.toml"
            file.write_text(config(1).replace('address = "127.0.0.1:0"', 'address = "192.0.2.1:1"', 1))
            ended = subprocess.run([WEIR, "run", "--config", file], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("cannot listen on 192.0.2.1:1", ended.stderr)


class SocketActivation(TestCase):
    """systemd passes open sockets to weir (LISTEN_FDS)."""

    def run_with(self, sockets, text):
        folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-test-")))
        (folder / "weir.toml").write_text(text)
        numbers = [str(each.fileno()) for each in sockets]
        return self.start(Started([sys.executable, "-c", PASS, str(len(sockets)), *numbers, WEIR, "run", "--config", str(folder / "weir.toml")],
                                  pass_fds=[each.fileno() for each in sockets]))

    def socket(self, host="127.0.0.1"):
        return self.start(socket.create_server((host, 0)))

    def test_socket_passed_by_systemd_is_used_by_the_listener_with_its_address(self):
        upstream, clients, admin = self.start(Upstream()), self.socket(), self.socket()
        port, admin_port = clients.getsockname()[1], admin.getsockname()[1]
        text = config(upstream.port).replace('"127.0.0.1:0"', f'"127.0.0.1:{port}"', 1).replace('"127.0.0.1:0"', f'"127.0.0.1:{admin_port}"', 1)
        early = socket.create_connection(("127.0.0.1", port))  # before weir runs
        weir = self.run_with([clients, admin], text)
        clients.close()
        admin.close()
        early.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        self.assertTrue(early.recv(100).startswith(b"HTTP/1.1 200"))
        early.close()
        weir.wait_for(rf"listening on 127\.0\.0\.1:{port}")
        self.assertEqual({get(port, "/").status for _ in range(8)}, {200}, "every worker serves the socket")
        self.assertEqual(get(admin_port, "/healthz").status, 200)

    def test_file_of_a_unix_socket_passed_by_systemd_is_not_removed(self):
        upstream = self.start(Upstream())
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-test-"))
        path = f"{folder}/weir.sock"
        listening = self.start(socket.socket(socket.AF_UNIX))
        listening.bind(path)
        listening.listen()
        weir = self.run_with([listening], config(upstream.port).replace('"127.0.0.1:0"', f'"unix:{path}"', 1))
        weir.wait_for("listening on unix:")
        weir.wait_for("admin on")
        self.assertEqual(weir.stop(), 0)
        self.assertTrue(os.path.exists(path), "the socket's file belongs to systemd and stays")

    def test_socket_passed_by_systemd_without_a_listener_is_reported(self):
        upstream, other = self.start(Upstream()), self.socket()
        weir = self.run_with([other], config(upstream.port))
        weir.wait_for(rf"systemd passed a socket on 127\.0\.0\.1:{other.getsockname()[1]}, which no \[\[listener\]\] has; add one")

    def test_sockets_passed_for_another_process_are_ignored(self):
        upstream = self.start(Upstream())
        weir = self.start(Weir(config(upstream.port), environment={"LISTEN_FDS": "1", "LISTEN_PID": "1"}))
        self.assertEqual(weir.get("/").status, 200)
        self.assertNotIn("systemd passed", weir.log())


if __name__ == "__main__":
    main()
