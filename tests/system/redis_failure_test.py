#!/usr/bin/env python3
"""Failures of Redis under load. Clients see no error unless a rule requests one, and no request waits. Shortly after Redis
works again, the weir instances enforce one exact limit again."""

import contextlib
import re
import signal
import socket
import struct
import threading
import time

from harness import PAUSES, SANITIZED, Client, Load, Redis, TestCase, Upstream, Weir, config, eventually, main, rule

AT_ONCE = 3.0 if SANITIZED else 1.0  # seconds within which the instances must enforce one limit again


class Way:
    """A network path to the Redis at `port`, with faults. `delay`: replies arrive this number of seconds late. `torn`: half of a
    reply passes, then the connection is reset. `silent`: nothing passes. Connections in `forgotten` pass nothing, while new
    connections work. `losing`: this number of whole replies to scripts is lost; later replies pass."""

    def __init__(self, port):
        self.target, self.delay, self.torn, self.silent, self.losing = port, 0.0, False, False, 0
        self.carried, self.forgotten = [], []  # weir's connections to this path
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, server = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.target))
                self.carried.append(client)
                for sock in (client, server):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.carry, args=(client, server), daemon=True).start()
                threading.Thread(target=self.carry, args=(server, client, True), daemon=True).start()

    def carry(self, source, target, answers=False):
        with source, contextlib.suppress(OSError):
            while data := source.recv(65536):
                if answers:
                    time.sleep(self.delay)
                if answers and self.torn:
                    target.sendall(data[:len(data) // 2])
                    target.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
                    break
                if answers and self.losing:
                    data = self.without_one(data)
                if not self.silent and source not in self.forgotten and target not in self.forgotten:
                    target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
            source.shutdown(socket.SHUT_RDWR)

    def without_one(self, data):
        """Returns `data`, which Redis wrote at once, without its first reply. That reply is an array of numbers."""
        answer = re.match(rb"\*(\d+)\r\n", data)
        if not answer:
            return data
        self.losing -= 1
        return data[answer.end():].split(b"\r\n", int(answer[1]))[-1]

    def forget(self):
        """Makes the open connections pass nothing from now on, like a firewall that has lost its state."""
        self.forgotten = list(self.carried)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Newcomers(Load):
    """A load in which each request comes from a new client."""

    def get(self, client, number):
        return client.get("/", x_count=f"{id(client)}-{number}")


class RedisFailures(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())
        self.redis = self.start(Redis())
        self.timeout, self.url = 0.4, self.redis.url

    def weir(self, policy="open", workers=2):
        state = f'key_secret = "test"\nreplicas = 2\nredis = {{ url = "{self.url}", timeout = "{self.timeout * 1000:.0f}ms" }}'
        more = {"store": '"redis"', "on_store_failure": f'"{policy}"'}
        rules = [rule("load", "1000000/s", **more), rule("count", "1/day", burst=20, key='["header:X-Count"]', **more)]
        text = config(self.upstream.port, rules="\n".join(rules), state=state)
        return self.start(Weir(text.replace("workers = 2", f"workers = {workers}")))

    def admitted(self, weirs, name):
        """Sends 30 requests of one client to each instance. Returns the number of admitted requests of each instance. All other
        requests must be refused."""
        statuses = [[weir.get("/", x_count=name).status for _ in range(30)] for weir in weirs]
        self.assertLessEqual(set(sum(statuses, [])), {200, 429})
        return [of_one.count(200) for of_one in statuses]

    def endure(self, strike, heal=lambda: None, policy="open", noticed=True, lasting=True, within=AT_ONCE, workers=2, clients=2):
        """Checks a failure of Redis. No request fails or waits, and on_store_failure decides during the failure. Afterwards the
        instances soon enforce one limit again."""
        weirs = [self.weir(policy, workers), self.weir(policy, workers)]
        self.assertEqual(self.admitted(weirs, "before"), [20, 0])
        load = Load([weir.port for weir in weirs for _ in range(clients)], self.upstream.port)
        load.goes_on()
        load.fails_from_here()
        strike()
        load.goes_on()
        if noticed:
            eventually(lambda: all(weir.metric("weir_decisions_total", outcome="store_failed") > 0 for weir in weirs),
                       "weir has noticed the failure")
        if noticed and lasting:
            self.assertEqual(self.admitted(weirs, "meanwhile"), [30, 30] if policy == "open" else [10, 10])
            eventually(lambda: all(weir.metric("weir_redis_up") == 0 for weir in weirs), "weir sends no request to Redis")
        heal()
        healed = time.monotonic()
        eventually(lambda: all(weir.metric("weir_redis_up") == workers for weir in weirs), "weir is connected to Redis again")
        took = time.monotonic() - healed
        self.assertEqual(self.admitted(weirs, "after"), [20, 0], "the instances enforce one limit again")
        print(f"\none limit again after {took:.2f} s", flush=True)
        self.assertLess(took, within - PAUSES + load.pause)
        load.goes_on()
        self.assertEqual(load.stop(self.timeout), {200})
        self.assertEqual([weir.process.poll() for weir in weirs], [None, None])
        if not noticed:
            self.assertEqual([weir.metric("weir_decisions_total", outcome="store_failed") for weir in weirs], [0, 0])

    def closed(self, strike, heal):
        """Checks on_store_failure = "closed": the status is 503 during the failure and 200 afterwards, and no response takes
        longer than the timeout."""
        weir = self.weir("closed", workers=1)
        load = Load([], self.upstream.port)  # this load only measures the delays of the machine
        client, took = self.start(Client(weir.port)), []  # one connection for all requests, like that of `load`

        def ask():
            began = time.monotonic()
            status = client.get("/").status
            took.append(time.monotonic() - began)
            return status

        self.assertEqual(ask(), 200)
        strike()
        eventually(lambda: ask() == 503, "refused")
        eventually(lambda: weir.metric("weir_redis_up") == 0 or ask() != 503, "weir sends no request to Redis")
        self.assertEqual([ask() for _ in range(5)], [503] * 5)
        heal()
        eventually(lambda: ask() == 200, "requests are admitted again")
        load.stop()
        self.assertLess(max(took), self.timeout + load.pause)

    def freeze(self):
        self.redis.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.redis.process.send_signal(signal.SIGCONT)

    def freeze_for_five_seconds(self):
        self.freeze()
        self.addCleanup(self.thaw)
        time.sleep(5)  # the duration of the failure, in which weir lengthens the pauses between its attempts

    def test_clients_see_no_error_while_redis_is_frozen_for_five_seconds(self):
        self.endure(self.freeze_for_five_seconds, self.thaw)

    def test_clients_see_no_error_while_redis_is_frozen_and_all_calls_to_redis_are_in_use(self):
        """There are more requests than weir may have open calls to Redis. So some requests always wait for other requests,
        even while Redis does not answer."""
        self.endure(self.freeze, self.thaw, workers=1, clients=24)

    def test_local_share_applies_while_redis_is_frozen_if_on_store_failure_is_local(self):
        self.endure(self.freeze, self.thaw, policy="local")

    def test_requests_are_refused_while_redis_is_frozen_if_on_store_failure_is_closed(self):
        self.closed(self.freeze, self.thaw)

    def test_clients_see_no_error_while_redis_is_restarted(self):
        self.endure(self.redis.kill, self.redis.start)

    def test_local_share_applies_while_redis_is_down_if_on_store_failure_is_local(self):
        self.endure(self.redis.kill, self.redis.start, policy="local")

    def test_requests_are_refused_while_redis_is_down_if_on_store_failure_is_closed(self):
        self.closed(self.redis.kill, self.redis.start)

    def test_clients_see_no_error_when_the_scripts_are_flushed(self):
        self.timeout = 5  # no call times out on a busy machine, so weir notices only the failure
        self.endure(lambda: self.redis.command("SCRIPT", "FLUSH"), noticed=False)

    def test_clients_see_no_error_when_all_keys_are_flushed(self):
        self.timeout = 5
        self.endure(lambda: self.redis.command("FLUSHALL"), noticed=False)

    def fill(self):
        self.redis.command("CONFIG", "SET", "maxmemory", "1")

    def empty(self):
        self.redis.command("CONFIG", "SET", "maxmemory", "0")

    def test_clients_see_no_error_while_redis_is_full(self):
        self.endure(self.fill, self.empty)

    def test_requests_are_refused_while_redis_is_full_if_on_store_failure_is_closed(self):
        self.closed(self.fill, self.empty)

    def demote(self):
        self.other = self.start(Redis())
        self.redis.command("REPLICAOF", "127.0.0.1", str(self.other.port))

    def promote(self):
        self.redis.command("REPLICAOF", "NO", "ONE")

    def test_clients_see_no_error_while_redis_is_a_replica(self):
        self.endure(self.demote, self.promote)

    def test_requests_are_refused_while_redis_is_a_replica_if_on_store_failure_is_closed(self):
        self.closed(self.demote, self.promote)

    def way(self):
        way = self.start(Way(self.redis.port))
        self.url = f"redis://127.0.0.1:{way.port}"
        return way

    def on_the_way(self, trouble, value, rest, within=AT_ONCE):
        way = self.way()
        self.endure(lambda: setattr(way, trouble, value), lambda: setattr(way, trouble, rest), within=within)

    def test_after_a_lost_reply_no_client_gets_the_reply_to_another_client(self):
        """After a lost reply, later replies must not be matched to the wrong calls. Otherwise a client over its limit could
        get another client's admission."""
        way = self.way()
        way.delay = 0.002  # so that several calls are open at once
        weir = self.weir("closed", workers=1)
        self.assertEqual(self.admitted([weir], "spent"), [20])
        load = Newcomers([weir.port] * 3)
        load.goes_on()
        way.losing = 1
        eventually(lambda: not way.losing, "the reply is lost")
        lost, statuses = time.monotonic(), []
        while time.monotonic() < lost + 2.5:  # a refusal is cached for a second
            statuses.append(weir.get("/", x_count="spent").status)
            time.sleep(0.02)  # a pause; the clients of the load send requests meanwhile
        self.assertLessEqual(set(statuses), {429, 503})
        weir.wait_for(r"is down: bad_reply, an unexpected reply")
        self.assertEqual(weir.metric("weir_redis_up"), 1)
        self.assertEqual(statuses[-1], 429)
        self.assertEqual(self.admitted([weir], "after"), [20])
        self.assertLessEqual(load.stop(), {200, 503})

    def test_clients_see_no_error_while_the_network_delays_replies(self):
        self.on_the_way("delay", 0.6, 0.0)

    def test_clients_see_no_error_while_the_network_truncates_replies(self):
        self.on_the_way("torn", True, False)

    def test_clients_see_no_error_while_the_network_drops_all_packets(self):
        self.timeout = 0.125  # a connection attempt without an answer takes eight times as long: a second
        self.on_the_way("silent", True, False, within=AT_ONCE + 1)

    def test_requests_are_no_longer_delayed_once_redis_is_known_to_be_slower_than_the_timeout(self):
        """Once weir has noticed that Redis is slow, no request waits for Redis until Redis is fast enough again. Meanwhile
        weir logs only a few lines."""
        way, self.timeout = self.way(), 0.05
        weir = self.weir(workers=1)
        eventually(lambda: weir.metric("weir_redis_up") == 1, "weir is connected to Redis")
        load = Load([weir.port] * 4)
        way.delay = 0.08
        weir.wait_for(r"is down: breaker_open, no reply within 50ms")
        seen, waited, lines = len(load.results), weir.metric("weir_redis_timeouts_total"), len(weir.lines)
        time.sleep(2)  # time for some failed attempts
        self.assertGreater(len(load.results), seen)
        self.assertEqual((weir.metric("weir_redis_timeouts_total"), weir.lines[lines:]), (waited, []))
        way.delay = 0.0
        eventually(lambda: weir.metric("weir_redis_up") == 1, "weir is connected to Redis again")
        self.assertEqual(load.stop(), {200})

    def test_clients_see_no_error_while_redis_loads_its_data(self):
        """Loading takes Redis some seconds. Meanwhile Redis accepts connections and replies LOADING."""
        self.redis.kill()
        self.redis.options = ("--rdbcompression", "no", "--key-load-delay", "4000", "--loading-process-events-interval-bytes", "1024")
        self.redis.start()

        def reload():
            self.redis.command("EVAL", "for i = 1, 400 do redis.call('SET', 'pad' .. i, string.rep('x', 2000)) end", "0")
            self.redis.command("SAVE")
            self.redis.kill()
            self.redis.start()
            self.assertIn(b"\nloading:1", self.redis.command("INFO", "persistence"))

        self.endure(reload, lambda: eventually(lambda: b"\nloading:0" in self.redis.command("INFO", "persistence"), "loaded"),
                    lasting=False)


if __name__ == "__main__":
    main()
