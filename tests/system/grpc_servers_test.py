#!/usr/bin/env python3
"""Connections between weir and gRPC servers: many streams, health checks, and servers that restart."""

import collections

import grpc
from grpc_peer import NOT_SERVING, PATIENT, SERVING, Conversation, GrpcTestCase, Load, caller, unary
from harness import PATIENCE, Weir, eventually, main

CANCELLED_BY_SERVER = {("CANCELLED", "CANCELLED")}  # the library's answer to calls that arrive while its server stops


class ManyStreams(GrpcTestCase):
    def test_hundred_streams_of_one_connection_can_be_open_at_once(self):
        server = self.serve()
        weir = self.weir(server)
        for secure in (False, True):
            channel = self.channel(weir, secure)
            streams = [Conversation(channel) for _ in range(100)]
            for message in (b"a", b"b" * 20_000):
                self.assertTrue(all([each.says(message) for each in streams]))
            self.assertEqual(weir.metric("weir_http2_streams"), 100)
            self.assertEqual(weir.metric("weir_connections", protocol="HTTP/2"), 1)
            waiting = unary(channel).future(b"next", **PATIENT)  # the client itself waits, because weir permits a hundred streams
            self.assertTrue(streams[0].ends())
            self.assertEqual(waiting.result(), b"next")
            self.assertTrue(all([each.ends() for each in streams[1:]]))
            channel.close()
            self.await_metric(weir, 0, "weir_connections", protocol="HTTP/2")

    def test_streams_share_connections_to_the_server_up_to_max_streams(self):
        for most, connections in ((100, 1), (10, 4)):
            server = self.serve()
            channel = self.channel(self.weir(server, f"max_streams = {most}", workers=1))
            streams = [Conversation(channel) for _ in range(40)]
            self.assertTrue(all([each.says(b"x") for each in streams]))
            self.assertEqual(len({call.peer for call in server.calls}), connections)
            self.assertTrue(all([each.ends() for each in streams]))

    def test_weir_opens_no_more_streams_than_the_server_permits(self):
        server = self.serve(options=[("grpc.max_concurrent_streams", 5)])
        channel = self.channel(self.weir(server, workers=1))
        streams = [Conversation(channel) for _ in range(40)]
        self.assertTrue(all([each.says(b"x") for each in streams]))
        most = max(collections.Counter(call.peer for call in server.calls).values())
        self.assertLessEqual(most, 5)
        self.assertTrue(all([each.ends() for each in streams]))


class Health(GrpcTestCase):
    def healthy(self, weir, server):
        return weir.metric("weir_upstream_healthy", server=server)

    def check(self, service, protocol, scheme="", trust=""):
        servers = [self.serve(files=self.files, health={service: SERVING}) for _ in range(2)]
        names = [f"127.0.0.1:{server.tls_port if trust else server.port}" for server in servers]
        probe = f'health = {{ grpc = "{service}", interval = "100ms", unhealthy_after = 2, healthy_after = 2 }}'
        upstream = f'servers = ["{scheme}{names[0]}", "{scheme}{names[1]}"]\nprotocol = "{protocol}"\n{probe}\n{trust}'
        weir = self.start(Weir(self.config({"h2c": upstream}), files=self.files))
        channel = self.channel(weir)
        eventually(lambda: all(server.health_checks > 2 for server in servers), "weir asks both servers")
        self.assertEqual([self.healthy(weir, name) for name in names], [1, 1])
        for status in (NOT_SERVING, None):
            servers[0].health[service] = status
            eventually(lambda: self.healthy(weir, names[0]) == 0, f"the server that says {status} is out")  # noqa: B023
            before = [len(server.calls) for server in servers]
            for _ in range(20):
                unary(channel)(b"", **PATIENT)
            self.assertEqual([len(server.calls) for server in servers], [before[0], before[1] + 20])
            servers[0].health[service] = SERVING
            eventually(lambda: self.healthy(weir, names[0]) == 1, "the server is back")
        before = servers[0].count("Unary")
        eventually(lambda: unary(channel)(b"", **PATIENT) == b"" and servers[0].count("Unary") > before, "the server gets calls")

    def test_server_that_is_not_serving_gets_no_calls_until_it_serves(self):
        self.check("", "h2c")

    def test_health_check_of_one_service_works_over_tls(self):
        self.check("shop.Cart", "auto", "https://", 'tls = { ca = "server.crt" }')


class Restarts(GrpcTestCase):
    def channels(self, weir):
        return [self.channel(weir, secure=number % 4 > 1) for number in range(8)]

    def test_rolling_restart_of_the_servers_loses_no_call(self):
        """Each server sends a GOAWAY, answers its open calls, ends, and then starts again on the same
        port."""
        servers = [self.serve() for _ in range(2)]
        addresses = ", ".join(f'"127.0.0.1:{server.port}"' for server in servers)
        eject = 'eject = { least = "100ms", most = "1s" }'
        weir = self.start(Weir(self.config({"h2c": f'servers = [{addresses}]\nprotocol = "h2c"\n{eject}'}), files=self.files))
        load = self.start(Load([caller(channel, number) for number, channel in enumerate(self.channels(weir))]))
        for number in (0, 1, 0, 1):
            servers[number].stop(grace=PATIENCE)
            load.goes_on()
            servers[number] = self.serve(port=servers[number].port)
            eventually(lambda: servers[number].calls, "the server gets calls again")  # noqa: B023
        self.assertEqual(set(load.stop()) - CANCELLED_BY_SERVER, set())

    def test_only_open_calls_fail_at_an_abrupt_restart_of_the_server_under_load(self):
        """Each of eight clients has one open call, and may begin another call just when the server closes its listener."""
        server = self.serve()
        weir = self.weir(server)
        load = self.start(Load([caller(channel, number) for number, channel in enumerate(self.channels(weir))]))
        successor = self.serve(port=server.port)
        server.stop()
        eventually(lambda: successor.calls, "the new server gets calls")
        load.goes_on()
        failures = load.stop()
        self.assertLessEqual({status for status, _ in failures}, {"UNAVAILABLE", "CANCELLED"})
        self.assertLessEqual(failures.total(), 16)

    def test_only_the_calls_that_a_server_drops_fail(self):
        server = self.serve()
        weir = self.weir(server)
        conversations = [Conversation(channel) for channel in self.channels(weir)]
        self.assertTrue(all([each.says(b"x") for each in conversations]))
        successor = self.serve(port=server.port)
        server.stop()
        for each in conversations:
            self.assertIn(self.refused(each.answers, each.answers.code()).code(), (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED))
        channel = self.channel(weir)
        self.assertEqual([unary(channel)(b"x", **PATIENT) for _ in range(100)], [b"x"] * 100)
        self.assertEqual(len(successor.calls), 100)


if __name__ == "__main__":
    main()
