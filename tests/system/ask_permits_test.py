#!/usr/bin/env python3
"""A permit lets an asker correct or refund the charges of a question later, but only once. A permit expires, and the number of open permits
is bounded."""

import json
import signal

from algorithms_test import plain
from ask_client import Asker, AskTestCase
from harness import Redis, config, eventually, main, request_bytes, rule, together
from lineage import Lineage, adopt_orphans

ADA = "203.0.113.7"
BY_IP = {"key": '["ip"]', "algorithm": '"fixed_window"'}


class Permits(AskTestCase):
    def remaining(self, asker):
        """Charges one unit, and returns what remains."""
        return asker.decide(ip=ADA)["remaining"]

    def test_the_actual_cost_replaces_the_stated_cost(self):
        weir = self.ask_weir(rule("tokens", "100/1000day", **BY_IP))
        asker = self.asker(weir)
        for actual, remaining in ((10, 89), (0, 88), (30, 57)):
            permit = asker.decide(ip=ADA, cost=20, permit=True)["permit"]
            response = asker.settle(permit, cost=actual)
            self.assertEqual((response.status, response.json()), (200, {"settled": True}))
            self.assertEqual(self.remaining(asker), remaining)
        self.assertEqual(weir.metric("weir_decide_permits_ended_total", end="settled"), 3)
        self.assertEqual(weir.metric("weir_decide_permits"), 0)

    def test_a_refund_returns_the_charge(self):
        weir = self.ask_weir(rule("tokens", "100/1000day", **BY_IP))
        asker = self.asker(weir)
        permit = asker.decide(ip=ADA, cost=50, permit=True)["permit"]
        self.assertEqual(asker.settle(permit, refund=True).status, 200)
        self.assertEqual(self.remaining(asker), 99)
        self.assertEqual(weir.metric("weir_decide_permits_ended_total", end="refunded"), 1)

    def test_permit_is_settled_once_even_if_many_askers_settle_it_at_once(self):
        weir = self.ask_weir(rule("tokens", "1000/1000day", **BY_IP))
        asker = self.asker(weir)
        permit = asker.decide(ip=ADA, cost=50, permit=True)["permit"]

        def settle(_):
            with Asker(weir.ask_port) as other:
                return other.settle(permit, refund=True).status
        self.assertEqual(sorted(together(12, settle)), [200] + [404] * 11)
        self.assertEqual(self.remaining(asker), 999)

    def test_every_worker_settles_permits_of_every_worker(self):
        weir = self.ask_weir(rule("tokens", "100000/1000day", **BY_IP))
        askers = [self.asker(weir) for _ in range(8)]  # the kernel spreads the connections over both workers
        owners = {permit.partition("-")[0] for permit in (asker.decide(ip=ADA, cost=10, permit=True)["permit"] for asker in askers)}
        for number in range(64):
            permit = askers[number % 8].decide(ip=ADA, cost=100, permit=True)["permit"]
            owners.add(permit.partition("-")[0])
            settler = askers[(number * 5 + 3) % 8]
            before = self.remaining(settler)
            self.assertEqual(settler.settle(permit, cost=1).status, 200)
            self.assertEqual(self.remaining(settler), before + 99 - 1, "the next question sees the settlement")
        print(f"permits of {len(owners)} workers")

    def test_concurrency_is_held_until_the_permit_ends(self):
        weir = self.ask_weir(plain("at-once", key='["ip"]', algorithm='"concurrency"', limit=2))
        asker = self.asker(weir)
        permits = [asker.decide(ip=ADA)["permit"] for _ in range(2)]
        refused = asker.decide(ip=ADA)
        self.assertEqual((refused["allowed"], refused["status"], "permit" in refused), (False, 429, False))
        self.assertEqual(asker.settle(permits[0], status=200).status, 200)
        self.assertTrue(asker.decide(ip=ADA)["allowed"])
        self.assertFalse(asker.decide(ip=ADA)["allowed"])

    def test_a_permit_expires(self):
        weir = self.ask_weir(plain("at-once", key='["ip"]', algorithm='"concurrency"', limit=1), rule("tokens", "100/1000day", **BY_IP),
                             decide='permit_ttl = "2s"')
        asker = self.asker(weir)
        permit = asker.decide(ip=ADA, cost=7)["permit"]
        self.assertFalse(asker.decide(ip=ADA)["allowed"])
        eventually(lambda: weir.metric("weir_decide_permits_ended_total", end="expired") == 1, "the permit has expired")
        self.assertEqual(asker.settle(permit, refund=True).status, 404)
        answer = asker.decide(ip=ADA)
        self.assertEqual((answer["allowed"], answer["headers"]["X-RateLimit-Limit"]), (True, "1"))
        self.assertEqual(asker.settle(answer["permit"], refund=True).status, 200)

    def test_the_number_of_permits_is_bounded_for_each_listener(self):
        other = '[[listener]]\nname = "other"\naddress = "127.0.0.1:0"\nserves = "decide"\nmax_permits = 2\n'
        weir = self.ask_weir(rule("tokens", "100/1000day", **BY_IP), decide="max_permits = 3", more=other)

        def ask(port):
            """Asks over new connections, which the kernel spreads over both workers."""
            responses = []
            for _ in range(8):
                with Asker(port) as asker:
                    responses.append(asker.post("/v1/decide", {"ip": ADA, "permit": True}))
            return [response.status for response in responses], responses
        for port, bound in ((weir.ports[2], 3), (weir.ports[1], 2)):
            statuses, responses = ask(port)
            self.assertEqual(statuses, [200] * bound + [503] * (8 - bound))
            self.assertEqual(responses[-1].json()["status"], 503)
            self.assertIn("max_permits", responses[-1].json()["error"])
        permit = responses[0].json()["permit"]
        self.assertEqual(weir.metric("weir_decide_permits_full_total"), 5 + 6)
        asker = self.asker(weir)
        self.assertEqual(self.remaining(asker), 100 - 5 - 1, "a question without a permit is charged nothing")
        self.assertEqual(asker.settle(permit, refund=True).status, 200)
        self.assertEqual(ask(weir.ports[1])[0], [200] + [503] * 7)
        file = weir.folder / "weir.toml"
        file.write_text(file.read_text().replace("max_permits = 3", "max_permits = 4"))
        weir.signal(signal.SIGHUP)
        weir.wait_for("reloaded")
        self.assertEqual(ask(weir.ports[2])[0], [200] + [503] * 7, "a reload keeps the count")

    def test_only_askers_of_the_same_listener_or_token_can_settle_a_permit(self):
        listeners = "".join(f'[[listener]]\naddress = "127.0.0.1:0"\nserves = "decide"\n{token}\n'
                            for token in ('token = "one"', 'token = "one"', 'token = "two"', ""))
        weir = self.ask_weir(rule("tokens", "100/1000day", **BY_IP), more=listeners)
        own, same, other, open_one, default = weir.ports[1:]

        def bearer(token):
            return {"Authorization": f"Bearer {token}"} if token else {}

        def settle(port, token, permit):
            with Asker(port, bearer(token)) as asker:
                return asker.settle(permit, refund=True).status
        with Asker(own, bearer("one")) as asker:
            for port, token in ((own, "one"), (same, "one")) * 4:  # often enough that the kernel uses both workers
                permit = asker.decide(ip=ADA, permit=True)["permit"]
                self.assertEqual([settle(other, "two", permit), settle(open_one, None, permit)], [404, 404])
                self.assertEqual(settle(port, token, permit), 200)
        with Asker(open_one) as asker:
            permit = asker.decide(ip=ADA, permit=True)["permit"]
        self.assertEqual([settle(default, None, permit), settle(own, "one", permit)], [404, 404])
        file = weir.folder / "weir.toml"
        file.write_text(file.read_text().replace('serves = "decide"\n\n', 'serves = "decide"\ntoken = "new"\n'))
        weir.signal(signal.SIGHUP)
        weir.wait_for("reloaded")
        self.assertEqual(settle(open_one, "new", permit), 200, "the listener is the same after the reload")

    def test_rule_settles_by_the_response_that_the_asker_reports(self):
        login = rule("login", "5/1000day", key='["ip"]', algorithm='"sliding_log"', charge='{ status = ["401"] }', match='{ path = "/login" }')
        tokens = rule("tokens", "1000/1000day", cost='{ response_json = "/usage/total", reserve = 100 }', match='{ path = "/chat" }', **BY_IP)
        weir = self.ask_weir(login, tokens)
        asker = self.asker(weir)
        for status, remaining in ((200, 5), (401, 4)):
            answer = asker.decide(ip=ADA, path="/login")
            self.assertEqual(asker.settle(answer["permit"], status=status).status, 200)
            probe = asker.decide(ip=ADA, path="/login")
            self.assertEqual(probe["remaining"], remaining - 1)
            self.assertEqual(asker.settle(probe["permit"], refund=True).status, 200)
        permit = asker.decide(ip=ADA, path="/chat")["permit"]
        body = json.dumps({"usage": {"total": 42}})
        self.assertEqual(asker.settle(permit, status=200, headers={"Content-Type": "application/json"}, body=body).status, 200)
        self.assertEqual(asker.decide(ip=ADA, path="/chat")["remaining"], 1000 - 42 - 100)

    def test_settlements_reach_redis(self):
        redis = self.start(Redis())
        weir = self.ask_weir(rule("tokens", "100/1000day", store='"redis"', **BY_IP), state=f'redis = {{ url = "redis://127.0.0.1:{redis.port}" }}')
        asker = self.asker(weir)
        permit = asker.decide(ip=ADA, cost=50, permit=True)["permit"]
        self.assertEqual(asker.settle(permit, cost=10).status, 200)
        eventually(lambda: asker.decide(ip=ADA)["remaining"] >= 80, "Redis has the settlement")

    def test_wrong_settlement_gets_400_and_advice_what_to_write(self):
        weir = self.ask_weir(rule("tokens", "100/1000day", **BY_IP))
        asker = self.asker(weir)
        permit = asker.decide(ip=ADA, permit=True)["permit"]
        for members, message in (({}, 'write one of "cost"'), ({"cost": -1}, '"cost" is not'), ({"refnd": True}, 'write "refund"'),
                                 ({"status": 200, "headers": {"a\n": "b"}}, '"headers"')):
            response = asker.settle(permit, **members)
            self.assert_own_error(response, 400)
            self.assertIn(message, response.json()["message"])
        for unknown in ("", "x", "0-", "9-0123", permit + "0", "0-" + "0" * 32):
            self.assertIn(asker.settle(unknown, refund=True).status, (400, 404), unknown)
        self.assertEqual(asker.settle(permit, refund=True).status, 200)

    def test_weir_stops_without_waiting_for_open_permits(self):
        weir = self.ask_weir(rule("tokens", "100/1000day", **BY_IP))
        asker = self.asker(weir)
        for _ in range(50):
            asker.decide(ip=ADA, permit=True)
        asker.sock.close()
        # the test's weir ends with status 0, and without waiting for the permits


class Upgrades(AskTestCase):
    @classmethod
    def setUpClass(cls):
        adopt_orphans()

    def upgrade(self, rules, **question):
        """Upgrades weir while a permit is open. Returns an asker of the new process, and the permit."""
        weir = self.start(Lineage(config(1, rules=rules).replace("[[listener]]", '[[listener]]\nserves = "decide"')))
        permit = self.start(Asker(weir.port)).decide(ip=ADA, **question)["permit"]
        weir.upgrade()
        return self.start(Asker(weir.port)), permit

    def test_charges_of_open_permits_remain_after_an_upgrade(self):
        asker, permit = self.upgrade(rule("tokens", "100/1000day", **BY_IP), cost=20, permit=True)
        self.assertEqual(asker.settle(permit, refund=True).status, 404)
        self.assertEqual(asker.decide(ip=ADA)["remaining"], 79)

    def test_open_permits_release_their_concurrency_when_the_old_process_ends(self):
        asker, permit = self.upgrade(plain("at-once", key='["ip"]', algorithm='"concurrency"', limit=1))
        self.assertEqual(asker.settle(permit, refund=True).status, 404)
        eventually(lambda: asker.decide(ip=ADA)["allowed"], "the old process has ended")


class Deadlines(AskTestCase):
    def slow_weir(self, timeout):
        """Returns a weir and its asker. Redis answers no question about /slow for a minute, and weir waits for `timeout`."""
        redis = self.start(Redis())
        weir = self.ask_weir(rule("memory", "100/1000day", **BY_IP),
                             rule("redis", "100/1000day", key='["ip"]', algorithm='"fixed_window"', store='"redis"', match='{ path = "/slow" }'),
                             state=f'redis = {{ url = "redis://127.0.0.1:{redis.port}", timeout = "{timeout}" }}')
        asker = self.asker(weir)
        self.assertTrue(asker.decide(ip=ADA, path="/slow")["allowed"])
        redis.command("CLIENT", "PAUSE", "60000")
        return weir, asker

    def test_a_question_that_takes_too_long_is_not_charged(self):
        weir, asker = self.slow_weir(timeout="1s")
        response = asker.post("/v1/decide", {"ip": ADA, "path": "/slow", "timeout_seconds": 0.05})
        self.assertEqual((response.status, response.json()["status"], response.json()["allowed"]), (504, 504, False))
        self.assertEqual(asker.decide(ip=ADA)["remaining"], 98)
        self.assertEqual(weir.metric("weir_client_errors_total", kind="left"), 0, "the asker is still there")
        self.assertEqual(weir.metric("weir_decide_questions_total", result="error"), 1)

    def test_an_asker_that_leaves_is_not_charged(self):
        # The asker must leave before the timeout ends. weir notices that it has left when the wait for Redis ends.
        weir, asker = self.slow_weir(timeout="5s")
        leaving, before = Asker(weir.ask_port), weir.metric("weir_received_bytes_total")
        leaving.send(request_bytes("POST", "/v1/decide", body=b'{"ip": "203.0.113.7", "path": "/slow"}'))
        eventually(lambda: weir.metric("weir_received_bytes_total") > before, "the question has come")
        leaving.leave()
        eventually(lambda: weir.metric("weir_decide_questions_total", result="error") == 1, "the question has ended")
        self.assertEqual(asker.decide(ip=ADA)["remaining"], 98)

    def test_question_with_a_timeout_is_decided_if_weir_is_fast_enough(self):
        weir = self.ask_weir(rule("memory", "100/1000day", **BY_IP))
        self.assertTrue(self.asker(weir).decide(ip=ADA, timeout_seconds=10)["allowed"])


if __name__ == "__main__":
    main()
