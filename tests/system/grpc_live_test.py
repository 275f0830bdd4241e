#!/usr/bin/env python3
"""Reloads and drains of weir while gRPC clients call: no call is lost."""

import signal

import grpc
from grpc_peer import PATIENT, WITHOUT_RETRIES, Conversation, GrpcTestCase, Load, caller, unary
from harness import main
from js_client import JsClient
from lineage import Lineage, adopt_orphans

NONE = {False: {}, True: {}}


def js_caller(node, weir, secure):
    """Returns a function that makes a call with the library for Node.js. The function returns None, or the status and message of a
    failure."""
    def call():
        made, messages = node.call(weir, "/h2c.Service/Chat", b"x", b"y", kind="both", secure=secure)
        return None if (made.code, messages) == (0, [b"x", b"y"]) else (f"status {made.code} in Node.js", made.details)
    return call


class LiveChanges(GrpcTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node = cls.enterClassContext(JsClient(cls.files["edge.crt"]))
        adopt_orphans()

    def check(self, change, options):
        """Calls `change` three times while clients call weir, and while a stream stays open. Returns the failures for each kind of
        listener."""
        failures = {}
        for secure in (False, True):
            server = self.serve()
            text = self.config({"h2c": f'servers = ["127.0.0.1:{server.port}"]\nprotocol = "h2c"'}, doors=[secure])
            weir = self.start(Lineage(text, files=self.files))
            callers = [caller(self.channel(weir, secure, options=options), number) for number in range(6)]
            load = self.start(Load([*callers, *[js_caller(self.node, weir, secure) for _ in range(4)]]))
            kept = Conversation(self.channel(weir, secure))
            self.assertTrue(kept.says(b"before"))
            for number in range(3):
                change(weir, text, number)
                load.goes_on()
            self.assertTrue(kept.says(b"after") and kept.ends())
            failures[secure] = load.stop()
        return failures

    def reload(self, weir, text, number):
        weir.write(text)
        weir.signal(signal.SIGHUP)
        weir.wait_for("the configuration was reloaded", number + 1)

    def change_upstream(self, weir, text, number):
        self.reload(weir, text.replace('protocol = "h2c"\n', f'protocol = "h2c"\nmax_streams = {50 + number}\n'), number)

    def change_listener(self, weir, text, number):
        self.reload(weir, text.replace("[[listener]]\n", f"[[listener]]\nhttp2 = {{ max_streams = {50 + number} }}\n"), number)

    def test_reloads_that_change_the_upstream_lose_no_call(self):
        self.assertEqual(self.check(self.change_upstream, [WITHOUT_RETRIES]), NONE)

    def test_reloads_that_end_all_connections_lose_no_call(self):
        """By default, Google's client repeats a call if the connection gets a GOAWAY just as the call begins."""
        self.assertEqual(self.check(self.change_listener, []), NONE)

    def test_drain_lets_open_streams_continue_until_they_end(self):
        weir = self.weir(self.serve())
        kept = [Conversation(self.channel(weir, secure)) for secure in (False, True)]
        self.assertTrue(all([each.says(b"before") for each in kept]))
        weir.signal(signal.SIGTERM)
        weir.wait_for("draining: completing open requests")
        self.assertTrue(all([each.says(b"after") for each in kept]))
        self.refused(lambda: unary(self.channel(weir))(b"", **PATIENT), grpc.StatusCode.UNAVAILABLE)
        self.assertTrue(all([each.ends() for each in kept]))
        self.assertEqual(weir.wait(), 0)


if __name__ == "__main__":
    main()
