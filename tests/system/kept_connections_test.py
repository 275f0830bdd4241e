#!/usr/bin/env python3
"""Connections that an upgrade cannot simply pass to the new process: TLS connections, whose keys stay in the old process, and
connections from a proxy. The new process serves the next requests on them, and knows the clients' addresses and certificates."""

import pathlib
import signal
import socket
import tempfile

from harness import (PATIENCE, Client, answer, client_tls, eventually, main, make_authority, make_certificate, make_client_certificate,
                     request_bytes, rule)
from lineage import Upgrade
from preamble_test import PROXIED, TRUSTED, first
from tunnel_test import ASK, echo
from upgrade_failure_test import IMPOSTOR, has_ended

TLS = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }], client_ca = "ca.crt", client_auth = "optional" }'
LIMIT = rule("all", "3/day", algorithm='"fixed_window"', key="[]")


class KeptConnectionsTestCase(Upgrade):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.files = make_certificate(cls.folder) | make_authority(cls.folder)
        make_client_certificate(cls.folder, "alice", "/O=Example/CN=alice")

    def secure(self, listener=TLS, **given):
        return self.weir(self.files, listener=listener, **given)

    def connect(self, weir, shown=None, ahead=b"", source="127.0.0.1"):
        """Returns a client that has sent the given PROXY header and finished the TLS handshake, but has sent no HTTP."""
        trust = client_tls(self.files["edge.crt"], shown=shown and self.folder / shown)
        client = self.enterContext(Client(weir.port, source=source))
        client.send(ahead)
        client.sock = client.wire.sock = trust.wrap_socket(client.sock, server_hostname="localhost", suppress_ragged_eofs=False)
        return client

    def assert_old_one_decided(self, weir, count, *clients):
        """Checks the number of requests that the old process decided. The old process ends once these clients have left."""
        for client in clients:
            client.sock.close()
        self.assertEqual(weir.status_of(weir.ended.pop()), 0)
        weir.wait_for(f"upgrade: requests decided by the old process since the new one took over: {count}$")


class KeptTlsConnections(KeptConnectionsTestCase):
    def test_limit_is_exact_over_tls_connections_kept_during_an_upgrade(self):
        weir = self.secure(rules=LIMIT)
        kept = [self.connect(weir) for _ in range(3)]
        self.assertEqual(kept[0].get("/").status, 200)
        weir.upgrade()
        self.assertEqual(self.connect(weir).get("/").status, 200)
        answers = [client.get("/") for client in kept]
        self.assertEqual([(said.status, said["connection"]) for said in answers], [(200, "close"), (429, "close"), (429, "close")])
        self.assertTrue(all(client.closed() for client in kept))
        self.assert_old_one_decided(weir, 0, *kept)

    def test_new_process_knows_address_and_certificate_of_clients_connected_before_the_upgrade(self):
        weir = self.secure(rules=rule("per-subject", "1/day", key='["cert:subject"]') + rule("per-address", "2/day", key='["ip"]'))
        kept = [self.connect(weir, "alice", source="127.0.0.2"), self.connect(weir, source="127.0.0.2"), self.connect(weir, "alice")]
        weir.upgrade()
        self.assertEqual([client.get("/").status for client in kept], [200, 200, 429])
        for head in [exchange.head for exchange in self.upstream.exchanges]:
            self.assertEqual((head["x-forwarded-for"], head["x-forwarded-proto"]), ("127.0.0.2", "https"))
        self.assertEqual(self.connect(weir, source="127.0.0.2").get("/").status, 429)

    def test_bodies_pass_completely_over_a_connection_kept_during_an_upgrade(self):
        body = bytes(range(256)) * 8192  # larger than the sockets' buffers
        self.upstream.reply = lambda exchange: exchange.send(answer(exchange.read_body()))
        weir = self.secure()
        kept = self.connect(weir)
        self.assertEqual(kept.get("/").status, 200)
        weir.upgrade()
        self.assertEqual(kept.request("POST", "/", body=body).body, body)
        self.assertTrue(kept.closed())
        self.assert_old_one_decided(weir, 0, kept)

    def test_partly_received_request_is_served_by_the_new_process(self):
        weir = self.secure(rules=LIMIT)
        kept = self.connect(weir)
        kept.send(b"GET / HTTP/1.1\r\nHost: ")
        weir.upgrade()
        self.assertEqual([self.connect(weir).get("/").status for _ in range(3)], [200] * 3)
        kept.send(b"weir\r\n\r\n")
        self.assertEqual(kept.read().status, 429)
        self.assert_old_one_decided(weir, 0, kept)

    def test_only_the_first_of_several_pipelined_requests_is_answered_after_an_upgrade(self):
        """Requests after a response that announces the end of the connection are not served."""
        weir = self.secure(rules=LIMIT)
        kept = self.connect(weir)
        weir.upgrade()
        kept.send(request_bytes("GET", "/") * 2)
        said = kept.read()
        self.assertEqual((said.status, said["connection"]), (200, "close"))
        self.assertTrue(kept.closed())
        self.assertEqual(int(self.connect(weir).get("/")["x-ratelimit-remaining"]), 1)

    def test_connection_kept_during_an_upgrade_can_switch_to_websocket(self):
        self.upstream.reply = echo
        weir = self.secure()
        kept = self.connect(weir)
        weir.upgrade()
        kept.send(request_bytes("GET", "/", ASK))
        self.assertEqual(kept.read().status, 101)
        for data in (b"\x00", bytes(range(256)) * 1024):
            kept.send(data)
            self.assertEqual(kept.wire.read_exactly(len(data)), data)
        self.assertEqual(weir.metric("weir_tunnels_open"), 1)
        kept.sock.close()
        self.await_metric(weir, 0, "weir_tunnels_open")
        self.assert_old_one_decided(weir, 0)

    def test_weir_notices_that_the_client_of_a_connection_kept_during_an_upgrade_leaves(self):
        weir = self.secure()
        release = self.hold_requests()
        kept = self.connect(weir)
        weir.upgrade()
        kept.send(request_bytes("GET", "/"))
        eventually(lambda: self.upstream.exchanges, "the upstream has the request")
        kept.leave()
        self.await_metric(weir, 1, "weir_client_errors_total", kind="left")
        self.assert_old_one_decided(weir, 0)
        release.set()

    def test_connection_with_a_partly_received_request_is_served_after_two_upgrades(self):
        weir = self.secure(rules=LIMIT)
        kept = self.connect(weir)
        weir.upgrade()
        kept.send(b"GET / HTTP/1.1\r\n")  # the second process waits for the rest
        weir.upgrade()
        self.assertEqual([self.connect(weir).get("/").status for _ in range(3)], [200] * 3)
        kept.send(b"Host: weir\r\n\r\n")
        said = kept.read()
        self.assertEqual((said.status, said["connection"]), (429, "close"))
        kept.sock.close()
        self.assertEqual([weir.status_of(pid) for pid in weir.ended], [0, 0])
        weir.ended.clear()
        weir.wait_for("upgrade: requests decided by the old process since the new one took over: 0$", 2)

    def test_connections_kept_during_an_upgrade_continue_after_a_certificate_renewal(self):
        weir = self.secure(server='certificate_check = "20ms"', rules=LIMIT)
        kept = self.connect(weir)
        weir.upgrade()
        with tempfile.TemporaryDirectory() as folder:
            for name, text in make_certificate(folder).items():
                (weir.folder / (name + ".new")).write_text(text)
                (weir.folder / (name + ".new")).rename(weir.folder / name)
        # Each process logs either one line for both files or one line for each file.
        eventually(lambda: len({line for line in weir.lines if "reloaded the certificates" in line}) > 0, "the new certificates are loaded")
        weir.wait_for("reloaded the certificates", 2)
        said = kept.get("/")
        self.assertEqual((said.status, said["connection"]), (200, "close"))
        self.assert_old_one_decided(weir, 0, kept)

    def test_connection_of_a_removed_listener_gets_one_more_response(self):
        weir = self.secure(rules=LIMIT)
        kept = self.connect(weir)
        text = (weir.folder / "weir.toml").read_text()
        weir.write(text.replace('[[listener]]\naddress = "127.0.0.1:0"\n' + TLS, '[[listener]]\naddress = "127.0.0.2:0"'))
        weir.upgrade()
        said = kept.get("/")
        self.assertEqual((said.status, said["connection"], said["x-ratelimit-remaining"]), (200, "close", "2"))
        self.assert_old_one_decided(weir, 0, kept)

    def test_old_process_serves_the_connections_kept_during_an_upgrade_if_the_new_process_ends(self):
        weir = self.secure()
        release = self.hold_requests()
        kept = [self.connect(weir) for _ in range(2)]
        weir.upgrade()
        kept[0].send(request_bytes("GET", "/"))
        eventually(lambda: self.upstream.exchanges, "the new process has a request in progress")
        weir.signal(signal.SIGTERM)
        weir.wait_for("draining: ", 2)
        release.set()
        answers = [kept[0].read(), kept[1].get("/")]
        self.assertEqual([(said.status, said["connection"]) for said in answers], [(200, "close")] * 2)
        self.assert_old_one_decided(weir, 1, *kept)

    def test_connection_that_the_new_process_does_not_take_gets_one_more_response(self):
        weir = self.secure()
        weir.install(IMPOSTOR % 'channel.send(b"serving"); hear(b"over"); os._exit(0)')
        kept = self.connect(weir)
        weir.signal(signal.SIGUSR2)
        weir.wait_for("has taken over")
        eventually(lambda: has_ended(weir.wait_for(r"upgrade: started process (\d+)")[0].group(1)), "the new process has ended")
        said = kept.get("/")
        self.assertEqual((said.status, said["connection"]), (200, "close"))
        self.assertEqual(weir.process.wait(PATIENCE), 0)
        weir.signal = lambda _: None

    def test_drain_ends_connections_that_the_old_process_relays(self):
        weir = self.secure()
        self.hold_requests()
        weir.write((weir.folder / "weir.toml").read_text().replace('drain = "5s"', 'drain = "100ms"'))
        weir.signal(signal.SIGHUP)
        weir.wait_for("was reloaded")
        kept = self.connect(weir)
        weir.upgrade()
        kept.send(request_bytes("GET", "/"))
        eventually(lambda: self.upstream.exchanges, "the upstream has the request")
        weir.status_of(weir.ended.pop())
        with self.assertRaises((OSError, EOFError)):
            kept.read()


class KeptProxyProtocolConnections(KeptConnectionsTestCase):
    def test_client_address_of_the_proxy_header_is_kept_with_the_connection(self):
        weir = self.weir(listener=PROXIED, client=TRUSTED, rules=rule(limit="3/day", key='["ip"]'))
        kept = [self.enterContext(weir.connect()) for _ in range(2)]
        for client, preamble in zip(kept, (first(), b"PROXY UNKNOWN\r\n")):
            client.send(preamble)
            self.assertEqual(client.get("/").status, 200)
        weir.upgrade()
        for _ in range(2):
            self.assertEqual([(said.status, said["connection"]) for said in (client.get("/") for client in kept)], [(200, None)] * 2)
        self.assertEqual([exchange.head["x-forwarded-for"] for exchange in self.upstream.exchanges], ["203.0.113.7", "127.0.0.1"] * 3)
        self.assertEqual([client.get("/").status for client in kept], [429, 429])
        self.assert_old_one_decided(weir, 0)

    def test_client_address_of_the_proxy_header_is_kept_with_a_tls_connection(self):
        weir = self.secure(TLS + "\n" + PROXIED, client=TRUSTED)
        kept = self.connect(weir, ahead=first())
        weir.upgrade()
        self.assertEqual(kept.get("/").status, 200)
        head = self.upstream.exchanges[0].head
        self.assertEqual((head["x-forwarded-for"], head["x-forwarded-proto"]), ("203.0.113.7", "https"))


class KeptPlainConnections(KeptConnectionsTestCase):
    def test_unread_data_too_large_for_one_message_is_passed_to_the_new_process(self):
        weir = self.weir(rules=LIMIT, server='max_head = "64KiB"')
        release = self.hold_requests()
        kept = self.enterContext(weir.connect())
        behind = request_bytes("GET", "/behind")
        kept.send(request_bytes("GET", "/") + behind * (50_000 // len(behind)))
        eventually(lambda: self.upstream.exchanges, "the upstream has the request")
        weir.upgrade()
        release.set()
        said = [kept.read(), kept.read()]
        self.assertEqual([one.status for one in said], [200, 200])
        if said[1]["connection"] == "close":
            kept = self.enterContext(weir.connect())
            kept.send(2 * behind)
        # If the second response contains no `Connection: close`, weir had read little and passed on the connection itself.
        self.assertEqual([kept.read().status for _ in range(2)], [200, 429])
        self.assert_old_one_decided(weir, 0, kept)


class KeptUnixConnections(KeptConnectionsTestCase):
    def test_tls_over_a_unix_socket_is_served_after_an_upgrade(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/weir.sock"
            weir = self.weir(self.files, listener=f'[[listener]]\naddress = "unix:{path}"\n{TLS}')
            with socket.socket(socket.AF_UNIX) as wire:
                wire.settimeout(PATIENCE)
                wire.connect(path)
                with client_tls(self.files["edge.crt"]).wrap_socket(wire, server_hostname="localhost") as client:
                    weir.upgrade()
                    client.sendall(request_bytes("GET", "/"))
                    self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200"))
            self.assertEqual(self.upstream.exchanges[0].head["x-forwarded-proto"], "https")
            self.assert_old_one_decided(weir, 0)


if __name__ == "__main__":
    main()
