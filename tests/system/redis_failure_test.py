#!/usr/bin/env python3
"""What befalls a Redis under load, and what clients notice: no error unless a rule asks for one, no request that waits,
and one exact limit again within a moment of its being well."""

import contextlib
import signal
import socket
import threading
import time

from harness import Load, Redis, TestCase, Upstream, Weir, config, eventually, main, rule


class Slow:
    """The way to a Redis at `port`, on which each answer is `delay` seconds late."""

    def __init__(self, port):
        self.target, self.delay = port, 0.0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, server = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.target))
                for sock in (client, server):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.carry, args=(client, server, lambda: 0.0), daemon=True).start()
                threading.Thread(target=self.carry, args=(server, client, lambda: self.delay), daemon=True).start()

    def carry(self, source, target, delay):
        with source, contextlib.suppress(OSError):
            while data := source.recv(65536):
                time.sleep(delay())
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Failures(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())
        self.redis = self.start(Redis())
        self.timeout, self.url = "50ms", self.redis.url

    def weir(self, policy="open", workers=2):
        state = f'key_secret = "test"\nredis = {{ url = "{self.url}", timeout = "{self.timeout}" }}'
        more = {"store": '"redis"', "on_store_failure": f'"{policy}"'}
        rules = [rule("load", "1000000/s", **more), rule("count", "1/day", burst=20, key='["header:X-Count"]', **more)]
        text = config(self.upstream.port, rules="\n".join(rules), state=state)
        return self.start(Weir(text.replace("workers = 2", f"workers = {workers}")))

    def shares(self, weirs, name):
        """Whether the weirs admit exactly the limit together, for a client that nobody has seen."""
        statuses = [weir.get("/", x_count=name).status for weir in weirs for _ in range(15)]
        return (statuses.count(200), statuses.count(429)) == (20, 10)

    def endure(self, strike, heal=lambda: None, noticed=True):
        weirs = [self.weir(), self.weir()]
        self.assertTrue(self.shares(weirs, "before"))
        load = Load([weir.port for weir in weirs for _ in range(2)])
        load.goes_on()
        strike()
        load.goes_on()
        if noticed:
            eventually(lambda: all(weir.metric("weir_decisions_total", outcome="store_failed") > 0 for weir in weirs), "it is noticed")
        heal()
        healed, attempt = time.monotonic(), 0
        while not self.shares(weirs, f"after {attempt}"):
            attempt += 1
            self.assertLess(time.monotonic() - healed, 10, "one limit again")
        print(f"\none limit again after {time.monotonic() - healed:.2f} s", flush=True)
        load.goes_on()
        self.assertEqual(load.stop(), {200})
        if not noticed:
            self.assertEqual([weir.metric("weir_decisions_total", outcome="store_failed") for weir in weirs], [0, 0])

    def closed(self, strike, heal):
        """With "closed" it is 503 meanwhile, and 200 again."""
        weir = self.weir("closed")
        self.assertEqual(weir.get("/").status, 200)
        strike()
        eventually(lambda: weir.get("/").status == 503, "refused")
        heal()
        eventually(lambda: weir.get("/").status == 200, "admitted again")

    def freeze(self):
        self.redis.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.redis.process.send_signal(signal.SIGCONT)

    def freeze_for_five_seconds(self):
        self.freeze()
        self.addCleanup(self.thaw)
        time.sleep(5)  # the failure itself: long enough for the pauses between attempts to grow

    def test_frozen_for_five_seconds(self):
        self.endure(self.freeze_for_five_seconds, self.thaw)

    def test_frozen_and_closed(self):
        self.closed(self.freeze, self.thaw)

    def test_killed_and_started(self):
        self.endure(self.redis.kill, self.redis.start)

    def test_killed_and_closed(self):
        self.closed(self.redis.kill, self.redis.start)

    def test_scripts_flushed(self):
        self.timeout = "5s"  # a busy machine's share, so that what is noticed is the failure
        self.endure(lambda: self.redis.command("SCRIPT", "FLUSH"), noticed=False)

    def test_everything_flushed(self):
        self.timeout = "5s"
        self.endure(lambda: self.redis.command("FLUSHALL"), noticed=False)

    def fill(self):
        self.redis.command("CONFIG", "SET", "maxmemory", "1")

    def empty(self):
        self.redis.command("CONFIG", "SET", "maxmemory", "0")

    def test_full(self):
        self.endure(self.fill, self.empty)

    def test_full_and_closed(self):
        self.closed(self.fill, self.empty)

    def demote(self):
        self.other = self.start(Redis())
        self.redis.command("REPLICAOF", "127.0.0.1", str(self.other.port))

    def promote(self):
        self.redis.command("REPLICAOF", "NO", "ONE")

    def test_a_replica_for_a_while(self):
        self.endure(self.demote, self.promote)

    def test_a_replica_and_closed(self):
        self.closed(self.demote, self.promote)

    def test_slower_than_the_timeout(self):
        """Once that is known no request waits for it, until it is fast enough again; and the log does not fill."""
        way = self.start(Slow(self.redis.port))
        self.url = f"redis://127.0.0.1:{way.port}"
        weir = self.weir(workers=1)
        eventually(lambda: weir.metric("weir_redis_up") == 1, "it is up")
        load = Load([weir.port] * 4)
        way.delay = 0.08
        weir.wait_for(r"is down: breaker_open, no answer within 50ms")
        seen, waited, lines = len(load.results), weir.metric("weir_redis_timeouts_total"), len(weir.lines)
        time.sleep(2)  # of attempts
        self.assertGreater(len(load.results), seen)
        self.assertEqual((weir.metric("weir_redis_timeouts_total"), weir.lines[lines:]), (waited, []))
        way.delay = 0.0
        eventually(lambda: weir.metric("weir_redis_up") == 1, "it is up again")
        self.assertEqual(load.stop(), {200})

    def test_loading(self):
        """What it has to load takes some seconds, in which it listens and answers LOADING."""
        self.redis.kill()
        self.redis.options = ("--rdbcompression", "no", "--key-load-delay", "4000", "--loading-process-events-interval-bytes", "1024")
        self.redis.start()

        def reload():
            self.redis.command("EVAL", "for i = 1, 400 do redis.call('SET', 'pad' .. i, string.rep('x', 2000)) end", "0")
            self.redis.command("SAVE")
            self.redis.kill()
            self.redis.start()
            self.assertIn(b"\nloading:1", self.redis.command("INFO", "persistence"))

        self.endure(reload, lambda: eventually(lambda: b"\nloading:0" in self.redis.command("INFO", "persistence"), "loaded"))


if __name__ == "__main__":
    main()
