#!/usr/bin/env python3
"""Settlement by responses with the state in Redis. Runs the tests of settlement_test.py with Redis in place of the key table, and
tests with several instances."""

import os
import threading

import settlement_test
from harness import Client, Redis, Upstream, Weir, answer, config, eventually, main, request_bytes, rule, together
from settlement_test import DENIED, LOGIN


class SettlementInRedis(settlement_test.Settlement):
    TIMEOUT = "10s"  # of a call to Redis

    def setUp(self):
        super().setUp()
        self.redis = self.start(Redis())

    def weir(self, *rules, port=None, state="", workers=1, secret=None, **more):
        """Starts an instance, by default with one worker. Calls on one connection run in order, so a settlement is visible to
        the next request. The instance names clients with its own secret, unless `secret` is given."""
        redis = f'redis = {{ url = "{self.redis.url}", timeout = "{self.TIMEOUT}", start_wait = "20s" }}'
        shared = f'store = "redis"\nkey_secret = "{secret or os.urandom(8).hex()}"\n{redis}\n{state}'
        text = config(port or self.upstream.port, rules="\n".join(rules), state=shared, **more)
        weir = self.start(Weir(text.replace("workers = 2", f"workers = {workers}")))
        eventually(weir.is_ready, "weir is connected to Redis")
        return weir


class ChargedByStatusInRedis(SettlementInRedis, settlement_test.ChargedByStatus):
    pass


class CostOfTheAnswerInRedis(SettlementInRedis, settlement_test.CostOfTheAnswer):
    test_charge_in_the_overflow_cell_of_a_full_table_is_corrected_by_the_response = None  # Redis has no overflow cell


class SettlementAcrossInstances(SettlementInRedis):
    def weir(self, *rules, **more):
        return super().weir(*rules, secret="test", **more)

    def test_only_5_of_64_parallel_wrong_passwords_to_two_instances_reach_the_upstream(self):
        refused, all_refused = threading.Semaphore(0), threading.Event()

        def deny_once_all_are_in(exchange):
            exchange.read_body()
            all_refused.wait(30)
            exchange.send(DENIED)

        self.upstream.reply = deny_once_all_are_in
        weirs = [self.weir(rule(**LOGIN), workers=2) for _ in range(2)]

        def guess(number):
            with Client(weirs[number % 2].port) as client:
                response = client.request("POST", "/login", body=b"password=%d" % number)
            if response.status == 429:
                refused.release()
            return response

        def wait_for_the_refusals():
            for _ in range(59):
                refused.acquire(timeout=30)
            all_refused.set()

        waiter = threading.Thread(target=wait_for_the_refusals, daemon=True)
        waiter.start()
        answers = together(64, guess)
        waiter.join(30)
        self.assertEqual(len(self.upstream.exchanges), 5)
        statuses = [response.status for response in answers]
        self.assertEqual((statuses.count(401), statuses.count(429)), (5, 59))
        for response in answers:
            if response.status == 429:
                self.assertGreater(int(response["retry-after"]), 86_000)
        for weir in weirs:
            self.assertEqual(weir.get("/login").status, 429)

    def test_refunded_units_can_be_used_by_all_instances(self):
        for algorithm in ('"sliding_log"', '"token_bucket"', '"fixed_window"', '"sliding_window"', '"gcra"'):
            with self.subTest(algorithm=algorithm):
                burst = {"burst": 63} if algorithm == '"gcra"' else {}
                free = rule(**{**LOGIN, "name": algorithm.strip('"'), "limit": "64/day", "algorithm": algorithm}, **burst)
                ports = [self.weir(free, workers=2).port for _ in range(2)]
                statuses = sum(together(16, lambda index, ports=ports: self.statuses(ports[index % 2], 30)), [])
                self.assertEqual(set(statuses), {200})
                eventually(lambda: self.redis.command("KEYS", "*") == [], "every charge is refunded")

    def test_units_owed_at_one_instance_are_owed_at_the_other_instance(self):
        self.upstream.reply = answer(headers="X-Tokens: 20000\r\n")
        tokens = rule(**settlement_test.CostOfTheAnswer.TOKENS, cost='{ response_header = "X-Tokens", reserve = 10 }')
        first, second = self.weir(tokens), self.weir(tokens)
        self.assertEqual(first.get("/")["x-ratelimit-remaining"], "0")
        eventually(lambda: second.get("/").status == 429, "the other instance knows the debt")
        # 20,000 units of a capacity of 10,000 are spent, and a request reserves 10 more. At 10,000 a day, the wait is at least a
        # day.
        self.assertGreaterEqual(int(second.get("/")["retry-after"]), 86_400)

    def test_settlement_that_redis_did_not_receive_is_counted_and_the_reserved_cost_stays_charged(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def hesitate(exchange):
            exchange.read_body()
            go.wait(30)
            exchange.send(answer())

        self.upstream.reply = hesitate
        weir = self.weir(rule(**LOGIN))
        client = self.start(Client(weir.port))
        client.send(request_bytes("GET", "/login"))
        eventually(lambda: len(self.upstream.exchanges) == 1, "the upstream has the request")
        self.redis.kill()
        eventually(lambda: weir.metric("weir_redis_up") == 0, "weir has noticed that Redis is down")
        go.set()
        self.assertEqual(client.read().status, 200)
        self.await_settled(weir, "login", refunded=1)
        eventually(lambda: weir.metric("weir_redis_amendments_lost_total") == 1, "a settlement was lost")

    def test_charges_of_the_local_share_are_settled_without_redis(self):
        weir = self.weir(rule(**LOGIN))
        self.redis.kill()
        eventually(lambda: weir.metric("weir_redis_up") == 0, "weir has noticed that Redis is down")
        with weir.connect() as client:
            self.assertEqual([client.get("/login").status for _ in range(12)], [200] * 12)
            self.upstream.reply = DENIED
            self.assertEqual([client.get("/login").status for _ in range(6)], [401] * 5 + [429])


if __name__ == "__main__":
    main()
