#!/usr/bin/env python3
"""A Redis whose replies weir cannot use. weir decides by `on_store_failure`. It counts the charges about which it does not know whether
Redis made them, and truncates its log lines about such replies. Once the replies are valid, weir uses Redis again. redis_replies_test.py
tests how much memory weir takes."""

import contextlib
import socket
import threading

from harness import Redis, TestCase, Upstream, Weir, config, eventually, main, rule

MIB = 1 << 20
HUGE = b"*1024\r\n" + b"$%d\r\n" % MIB + bytes(MIB)  # the beginning of an array of 1,024 elements with 1 MiB each


class Hostile:
    """A TCP proxy between weir and a Redis. In place of the next reply to a script, the proxy sends `answer` and then 1,024
    times `rest`. If `ends` is true, it then closes the connection."""

    def __init__(self, redis):
        self.redis, self.answer, self.rest, self.ends = redis, None, b"", False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, server = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.redis.port))
                threading.Thread(target=self.carry, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self.carry, args=(server, client, True), daemon=True).start()

    def carry(self, source, target, answers):
        with source, target, contextlib.suppress(OSError):
            while data := source.recv(65536):
                if answers and self.answer is not None and data.startswith((b"*", b"-")):
                    data, self.answer = self.answer, None
                    target.sendall(data)
                    for _ in range(1024 if self.rest else 0):
                        target.sendall(self.rest)
                    if self.ends:
                        break
                else:
                    target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class HostileRedis(TestCase):
    # (answer, rest, ends, number of charges with an unknown outcome, text of the log's first lines about the outage)
    ANSWERS = ((HUGE, HUGE[6:], False, 1, "the peer does not speak the Redis protocol"),
               (b"*1000000\r\n", b"", False, 1, ""),
               (b"-ERR " + b"x" * 10_000 + b"\r\n", b"", False, 0, "ERR xxx"),
               (b"-" + b"y" * 10_000 + b"\r\n", b"", True, 0, ""),
               (b"$5\r\nhello\r\n", b"", False, 1, ""),
               (b"+OK\r\n", b"", False, 1, ""),
               (b":1\r\n", b"", False, 1, ""),
               (b"*-1\r\n", b"", False, 1, ""),
               (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", False, 1, ""),
               (b"*5\r\n:1\r\n:1", b"", True, 1, ""),
               (b"", b"", True, 1, ""))

    def setUp(self):
        self.upstream, self.redis = self.start(Upstream()), self.start(Redis())

    def weir(self, policy):
        self.way = self.start(Hostile(self.redis))
        state = f'key_secret = "test"\nredis = {{ url = "redis://127.0.0.1:{self.way.port}", timeout = "10s" }}'
        shared = rule("shared", "1000000/day", key='["ip"]', store='"redis"', on_store_failure=f'"{policy}"')
        text = config(self.upstream.port, rules=shared, state=state)
        weir = self.start(Weir(text.replace("workers = 2", "workers = 1")))
        self.is_well(weir)
        return weir

    def is_well(self, weir):
        eventually(lambda: weir.metric("weir_redis_up") == 1, "Redis is up")

    def test_invalid_redis_reply_triggers_on_store_failure_and_its_charges_count_as_lost(self):
        for policy, status in (("closed", 503), ("open", 200)):
            weir = self.weir(policy)
            for answer, rest, ends, unknown, said in self.ANSWERS:
                with self.subTest(policy=policy, answer=answer[:40]):
                    lost = weir.metric("weir_redis_amendments_lost_total")
                    if answer == b"*1000000\r\n":
                        rest = b":1\r\n" * 1000
                    self.way.answer, self.way.rest, self.way.ends = answer, rest, ends
                    self.assertEqual(weir.get("/").status, status)
                    self.assertGreaterEqual(weir.metric("weir_redis_amendments_lost_total"), lost + unknown)
                    self.is_well(weir)
                    eventually(lambda: weir.get("/").status == 200, "weir uses Redis again")
                    if policy == "closed" and said:
                        weir.wait_for(said)
            for line in weir.log().splitlines():
                self.assertLess(len(line), 600, line)


if __name__ == "__main__":
    main()
