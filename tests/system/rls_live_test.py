#!/usr/bin/env python3
"""Reloads and upgrades of weir while clients call Envoy's rate limit service: no call is lost, and each is charged exactly once."""

import signal

import grpc
from grpc_peer import Load
from harness import main, rule
from lineage import Lineage, adopt_orphans
from rls_client import OK, OVER_LIMIT, RlsClient
from rls_test import WINDOW, RlsTestCase, by, rls_config

MANY = 1_000_000


class LiveChanges(RlsTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        adopt_orphans()

    def setUp(self):
        self.text = rls_config(rule("paths", f"{MANY}/3000day", key=by("path"), **WINDOW))
        self.server = self.start(Lineage(self.text))
        self.asker = self.live_client()

    def live_client(self, messages=None):
        """By default, Google's client repeats a call if the connection gets a GOAWAY just as the call begins."""
        channel = grpc.insecure_channel(f"127.0.0.1:{self.server.port}", [("grpc.use_local_subchannel_pool", 1)])
        return RlsClient(self.start(channel), messages)

    def check(self, change):
        """Changes weir three times while six clients call. Checks how many units they have taken."""
        clients = [self.live_client(self.asker.messages) for _ in range(6)]
        load = self.start(Load([self.caller(client) for client in clients]))
        for number in range(3):
            change(number)
            load.goes_on()
        self.assertEqual(load.stop(), {})
        self.assertEqual(self.asker.ask("edge", {"path": "/"}).statuses[0].limit_remaining, MANY - load.answered - 1)

    def caller(self, client):
        def call():
            code = client.code("edge", {"path": "/"})
            return None if code == OK else f"code {code}"
        return call

    def test_upgrades_lose_no_call_and_charge_each_call_once(self):
        self.check(lambda _: self.server.upgrade())

    def test_reloads_lose_no_call_and_charge_each_call_once(self):
        def reload(number):
            self.server.write(self.text + rule(f"other-{number}", "1/day", key=by("user")))
            self.server.signal(signal.SIGHUP)
            self.server.wait_for("the configuration was reloaded", number + 1)

        self.check(reload)
        self.assertEqual(self.codes(self.asker, 2, "edge", {"user": "ann"}), [OK, OVER_LIMIT])


if __name__ == "__main__":
    main()
