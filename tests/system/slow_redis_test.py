#!/usr/bin/env python3
"""A Redis that stalls. Delays and reset times in a late reply must be counted from the arrival of the reply, not from the moment
of the request. So none of these times lies before the end of the stall. The tests check only such lower bounds, which hold on a
slow machine, too."""

import signal
import threading
import time

from harness import PATIENCE, Redis, TestCase, Upstream, Weir, config, eventually, main, rule

COUNT, INTERVAL = 12, 0.1


class SlowRedis(TestCase):
    def setUp(self):
        self.upstream, self.redis = self.start(Upstream()), self.start(Redis())

    def weir(self, timeout, rules):
        state = f'key_secret = "test"\nredis = {{ url = "{self.redis.url}", timeout = "{timeout}", start_wait = "20s" }}'
        weir = self.start(Weir(config(self.upstream.port, rules=rules, state=state)))
        eventually(weir.is_ready, "weir is connected to Redis")
        return weir

    def queueing(self, timeout, policy):
        return self.weir(timeout, rule("queue", "10/s", algorithm='"leaky_bucket"', queue=50, key="[]", store='"redis"',
                                       on_store_failure=f'"{policy}"'))

    def freeze(self):
        self.redis.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.thaw)

    def thaw(self):
        self.redis.process.send_signal(signal.SIGCONT)

    def ask(self, weir, count):
        """Sends this number of requests that need Redis. Returns a function that returns their statuses."""
        statuses = []
        threads = [threading.Thread(target=lambda: statuses.append(weir.get("/").status), daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        eventually(lambda: weir.metric("weir_redis_calls_total") == count, "weir has sent its calls to Redis")

        def read():
            for thread in threads:
                thread.join(4 * PATIENCE)
            return statuses

        return read

    def assert_spaced(self, heard):
        """Checks that departures are one interval apart, and that the first is not earlier than the arrival of the reply."""
        after = [exchange.arrived - heard for exchange in sorted(self.upstream.exchanges, key=lambda exchange: exchange.arrived)]
        print("\nat the upstream after", " ".join(f"{seconds * 1000:.0f}" for seconds in after), "ms", flush=True)
        early = [number for number, seconds in enumerate(after) if seconds < number * INTERVAL - 0.02]
        self.assertEqual((len(after), early), (COUNT, []))

    def test_queued_requests_that_waited_for_redis_keep_their_interval(self):
        weir = self.queueing("10s", "closed")
        self.freeze()
        read = self.ask(weir, COUNT)
        time.sleep(1)  # the duration of the stall: ten intervals
        thawed = time.monotonic()
        self.thaw()
        self.assertEqual(read(), [200] * COUNT)
        self.assert_spaced(thawed)

    def test_queued_requests_keep_their_interval_after_falling_back_to_the_local_share(self):
        weir = self.queueing("1s", "local")
        self.freeze()
        began = time.monotonic()
        self.assertEqual(self.ask(weir, COUNT)(), [200] * COUNT)
        self.assertEqual(weir.metric("weir_decisions_total", rule="queue", outcome="store_failed"), COUNT)
        self.assert_spaced(began + 1)

    def test_reset_time_is_correct_after_a_slow_redis_reply(self):
        weir = self.weir("10s", rule("bucket", "1/5s", burst=5, key="[]", store='"redis"', on_store_failure='"closed"'))
        self.freeze()
        answers = []
        asking = threading.Thread(target=lambda: answers.append(weir.get("/")), daemon=True)
        asking.start()
        eventually(lambda: weir.metric("weir_redis_calls_total") == 1, "weir has sent its calls to Redis")
        time.sleep(1.5)  # the duration of the stall: longer than the error of rounding up
        thawed = time.time()
        self.thaw()
        asking.join(4 * PATIENCE)
        self.assertEqual(answers[0].status, 200)
        self.assertGreaterEqual(int(answers[0]["x-ratelimit-reset"]), thawed + 5 - 0.1, "the bucket is full again after five seconds")


if __name__ == "__main__":
    main()
