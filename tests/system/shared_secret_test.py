#!/usr/bin/env python3
"""weir instances without `key_secret` name clients with a secret that is stored in Redis. So all instances use the same names,
and share their limits."""

import signal

from harness import Client, Redis, TestCase, Upstream, Weir, config, eventually, main, rule, run_weir, together
from lineage import Lineage, adopt_orphans
from redis_cluster import Node, form
from sentinel_test import MASTER, Liar

RULE = rule("per-key", "1/day", burst=100, key='["api_key"]', store='"redis"', on_store_failure='"closed"')


def is_hexadecimal(text):
    return len(text) == 32 and all(digit in "0123456789abcdef" for digit in text)


class SharedSecret(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def weir(self, redis, start_wait="20s", kind=Weir):
        """Starts an instance. `redis`: settings of [state.redis], except time-outs."""
        state = f'redis = {{ {redis}, timeout = "2s", start_wait = "{start_wait}" }}'
        return self.start(kind(config(self.upstream.port, rules=RULE, state=state)))

    def digest(self, weir):
        """Returns the name that this instance gives to the client "alice" in Redis; None while its store is not ready."""
        question = b'{"path": "/", "headers": {"X-API-Key": "alice"}}'
        with Client(weir.admin) as admin:
            told = admin.request("POST", "/api/explain", {"Content-Type": "application/json"}, question).json()
        return told["rules"][0]["limits"][0].get("digest")

    def agree(self, *weirs, other_than=None):
        """Returns true if all instances give "alice" one name. The name must differ from `other_than`."""
        digests = {self.digest(weir) for weir in weirs}
        return len(digests) == 1 and not digests & {None, other_than}

    def admitted_together(self, *weirs, client="bob"):
        statuses = sum(together(8, lambda index: self.statuses(weirs[index % len(weirs)].port, 30, x_api_key=client)), [])
        return statuses.count(200), statuses.count(429)

    def test_two_instances_that_start_together_share_one_limit(self):
        redis = self.start(Redis())
        url = f'url = "{redis.url}"'
        weirs = together(2, lambda _: self.weir(url))
        for weir in weirs:
            eventually(weir.is_ready, "weir is connected to Redis")
        self.assertEqual(self.admitted_together(*weirs), (100, 140))
        self.assertTrue(self.agree(*weirs))
        self.assertTrue(is_hexadecimal(redis.command("GET", "weir:secret").decode()))
        self.assertNotIn("key_secret", run_weir("check", config=config(1, rules=RULE, state=f"redis = {{ {url} }}"))[2])

    def test_restart_keeps_the_counts(self):
        redis = self.start(Redis())
        first = self.weir(f'url = "{redis.url}"')
        eventually(first.is_ready, "weir is connected to Redis")
        self.assertEqual(self.statuses(first.port, 60, x_api_key="bob"), [200] * 60)
        first.stop()
        second = self.weir(f'url = "{redis.url}"')
        eventually(second.is_ready, "weir is connected to Redis")
        self.assertEqual(self.statuses(second.port, 50, x_api_key="bob"), [200] * 40 + [429] * 10)

    def test_instance_that_started_without_redis_adopts_the_shared_secret(self):
        redis = self.start(Redis())
        secret = "0123456789abcdef" * 2
        redis.kill()
        weir = self.weir(f'url = "{redis.url}"', start_wait="10ms")
        eventually(weir.is_ready, "weir serves without Redis")
        self.assertEqual(weir.get("/", x_api_key="bob").status, 503, "on_store_failure")
        self.assertEqual(weir.metric("weir_redis_up"), 0)
        redis.start()
        redis.command("SET", "weir:secret", secret)  # replaces a secret that weir may have stored
        other = self.weir(f'url = "{redis.url}"')
        eventually(lambda: weir.metric("weir_redis_up") == 2, "weir is connected to Redis")
        eventually(lambda: self.agree(weir, other), "both instances use one secret")
        self.assertEqual(redis.command("GET", "weir:secret").decode(), secret)
        self.assertEqual(self.admitted_together(weir, other), (100, 140))

    def test_nothing_is_charged_before_the_secret_is_known(self):
        redis = self.start(Redis())
        redis.command("SET", "weir:secret", "not one of weir's")
        weir = self.weir(f'url = "{redis.url}"', start_wait="10ms")
        weir.wait_for("weir:secret contains something other than weir's secret; delete that key, or set .state. key_secret on every instance")
        weir.wait_for(r"redis \S+ is up", 2)
        self.assertEqual(weir.get("/", x_api_key="bob").status, 503, "on_store_failure")
        self.assertEqual(weir.metric("weir_redis_up"), 0)
        with Client(weir.admin) as admin:
            self.assertIn("redis does not answer or refuses", admin.get("/readyz").body.decode())
            limit = admin.get("/api/keys?rule=per-key&key=alice").json()["limits"][0]
        self.assertIn("weir has not read the secret", limit["note"])
        self.assertEqual([key for key in redis.command("KEYS", "*") if b":probe:" not in key], [b"weir:secret"])
        redis.command("DEL", "weir:secret")
        eventually(lambda: weir.metric("weir_redis_up") == 2, "the secret is agreed")
        self.assertEqual(weir.get("/", x_api_key="bob").status, 200)

    def test_after_data_loss_all_instances_agree_on_one_secret(self):
        redis = self.start(Redis())
        weirs = [self.weir(f'url = "{redis.url}"') for _ in range(2)]
        for weir in weirs:
            eventually(weir.is_ready, "weir is connected to Redis")
        before, secret = self.digest(weirs[0]), redis.command("GET", "weir:secret")
        redis.command("FLUSHALL")
        eventually(lambda: redis.command("GET", "weir:secret") == secret, "the secret is restored")
        redis.command("SET", "weir:secret", "0123456789abcdef" * 2)
        eventually(lambda: self.agree(*weirs, other_than=before), "both instances use another secret")
        self.assertEqual(self.admitted_together(*weirs), (100, 140))
        weirs[0].wait_for("contains another secret than before")

    def test_reload_and_upgrade_keep_the_shared_secret(self):
        adopt_orphans()
        redis = self.start(Redis())
        redis.command("SET", "weir:secret", "0123456789abcdef" * 2)
        weir, other = (self.weir(f'url = "{redis.url}"', kind=Lineage) for _ in range(2))
        for each in (weir, other):
            eventually(lambda each=each: each.metric("weir_redis_up") == 2, "weir is connected to Redis")
        weir.signal(signal.SIGHUP)
        weir.wait_for("the configuration was reloaded")
        self.assertTrue(self.agree(weir, other))
        weir.upgrade()
        eventually(lambda: weir.metric("weir_redis_up") == 2, "weir is connected to Redis")
        self.assertTrue(self.agree(weir, other))
        self.assertEqual(self.admitted_together(weir, other), (100, 140))

    def test_all_instances_of_a_cluster_use_one_secret(self):
        nodes = [self.start(Node()) for _ in range(3)]
        form(nodes)
        seeds = [f'"127.0.0.1:{node.port}"' for node in nodes]
        weirs = [self.weir(f'url = "redis://ignored", topology = "cluster", nodes = [{seeds[index]}]') for index in range(3)]
        for weir in weirs:
            eventually(lambda weir=weir: weir.metric("weir_redis_up") == 2, "weir is connected to all masters")
        self.assertTrue(self.agree(*weirs))
        self.assertEqual(self.admitted_together(*weirs), (100, 140))

    def test_shared_secret_is_stored_in_the_master_named_by_the_sentinels(self):
        master = self.start(Redis())
        sentinels = [self.start(Liar(master.port)) for _ in range(2)]
        addresses = ", ".join(f'"127.0.0.1:{sentinel.port}"' for sentinel in sentinels)
        sentinel = f'url = "redis://ignored", topology = "sentinel", master = "{MASTER}", sentinels = [{addresses}]'
        weirs = [self.weir(sentinel) for _ in range(2)]
        for weir in weirs:
            eventually(lambda weir=weir: weir.metric("weir_redis_up") == 2, "weir is connected to the master")
        self.assertEqual(self.admitted_together(*weirs), (100, 140))
        self.assertTrue(is_hexadecimal(master.command("GET", "weir:secret").decode()))


if __name__ == "__main__":
    main()
