#!/usr/bin/env python3
"""weir instances that use the Redis master that Sentinels name. A failover under load fails no request, and afterwards the
instances enforce one limit on the new master."""

import pathlib
import signal
import socketserver
import subprocess
import threading
import time

from harness import SANITIZED, Load, Redis, TestCase, Upstream, Weir, closed_port, config, eventually, main, rule, run_weir

MASTER = "mymaster"
TIMEOUT = 0.4
AT_ONCE = 3.0 if SANITIZED else 1.0  # seconds within which the instances must enforce one limit again


class Sentinel(Redis):
    """One of several Sentinels that watch `master`."""

    def __init__(self, master, *more):
        self.master, self.more = master, more
        super().__init__()

    def start(self):
        path = pathlib.Path(self.folder.name) / "sentinel.conf"
        path.write_text("\n".join([
            f"port {self.port}", "bind 127.0.0.1", f"sentinel monitor {MASTER} 127.0.0.1 {self.master.port} 2",
            f"sentinel down-after-milliseconds {MASTER} 600", f"sentinel failover-timeout {MASTER} 3000", *self.more]) + "\n")
        self.process = subprocess.Popen(["redis-server", str(path), "--sentinel"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.STDOUT, cwd=self.folder.name)
        return self.answers()

    @property
    def knows(self):
        """Returns the port of the server that this Sentinel names as the master."""
        return int(self.command("SENTINEL", "get-master-addr-by-name", MASTER)[1])

    def is_ready(self):
        said = self.command("SENTINEL", "master", MASTER)
        facts = dict(zip(said[::2], said[1::2], strict=True))
        return facts[b"num-slaves"] == b"1" and facts[b"num-other-sentinels"] == b"2" and facts[b"flags"] == b"master"


class Liar(socketserver.ThreadingTCPServer):
    """A fake Sentinel that names a given server as the master. Records how often it was asked, and which clients subscribe to
    it."""

    allow_reuse_address = daemon_threads = True

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            try:
                while words := self.request.recv(4096):
                    if b"PING" in words:
                        self.request.sendall(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n")
                        continue
                    port = str(self.server.named).encode()
                    self.server.asked += 1
                    self.request.sendall(b"*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n" % (len(port), port))
                    if b"SUBSCRIBE" in words:
                        self.server.listeners.append(self.request)
                        self.request.sendall(b"*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n")
            except OSError:
                pass  # the client has closed
            finally:
                if self.request in self.server.listeners:
                    self.server.listeners.remove(self.request)

    def __init__(self, named):
        self.named, self.asked, self.listeners = named, 0, []
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def __exit__(self, *reason):
        self.shutdown()
        super().__exit__(*reason)


class MasterCheck(TestCase):
    def test_writable_replica_is_not_used_as_master(self):
        master = self.start(Redis())
        replica = self.start(Redis("--replicaof", "127.0.0.1", str(master.port), "--replica-read-only", "no"))
        liar = self.start(Liar(replica.port))
        state = (f'key_secret = "test"\nredis = {{ url = "redis://ignored", topology = "sentinel", master = "{MASTER}", '
                 f'sentinels = ["127.0.0.1:{liar.port}"] }}')
        rules = rule("count", "1/day", burst=20, key="[]", store='"redis"', on_store_failure='"closed"')
        weir = self.start(Weir(config(self.start(Upstream()).port, rules=rules, state=state)))
        weir.wait_for(r"is down: readonly, it is a slave, not a master")
        self.assertEqual(weir.get("/").status, 503)
        liar.named = master.port
        weir.wait_for(rf"redis {MASTER} at 127\.0\.0\.1:{master.port} is up", 2)  # once for each worker
        self.assertEqual(weir.get("/")["x-ratelimit-remaining"], "19")


class OutdatedSentinels(TestCase):
    """The first of three Sentinels names an old master. weir skips this Sentinel, and does not subscribe to its messages."""

    def follow(self, old):
        master = self.start(Redis())
        stale, *others = [self.start(Liar(port)) for port in (old, master.port, master.port)]
        addresses = ", ".join(f'"127.0.0.1:{sentinel.port}"' for sentinel in (stale, *others))
        state = (f'key_secret = "test"\nredis = {{ url = "redis://ignored", topology = "sentinel", master = "{MASTER}", '
                 f'sentinels = [{addresses}], start_wait = "10s" }}')
        text = config(self.start(Upstream()).port, rules=rule("count", "1/day", key="[]", store='"redis"'), state=state)
        weir = self.start(Weir(text))
        eventually(lambda: weir.metric("weir_redis_up") == 2, "weir is connected to the master")
        eventually(lambda: not stale.listeners and sum(len(other.listeners) for other in others) == 2,
                   "weir listens to the other Sentinels")
        asked, lines = stale.asked, len(weir.lines)
        self.assertLess(asked, 10)
        time.sleep(0.5)
        self.assertEqual((stale.asked, weir.lines[lines:]), (asked, []), "the outdated Sentinel is not asked again")
        status, said, errors = run_weir("redis-check", config=text)
        self.assertEqual((status, errors), (0, ""))
        self.assertIn(f"at 127.0.0.1:{master.port} according to the sentinels\n", said)

    def test_sentinel_that_names_an_unreachable_server_is_skipped(self):
        self.follow(closed_port())

    def test_sentinel_that_names_a_replica_is_skipped(self):
        self.follow(self.start(Redis("--replicaof", "127.0.0.1", str(closed_port()))).port)

    def test_sentinel_that_names_an_unresponsive_server_is_skipped(self):
        frozen = self.start(Redis())
        frozen.process.send_signal(signal.SIGSTOP)
        self.follow(frozen.port)


class Failover(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())
        self.master = self.start(Redis())
        self.replica = self.start(Redis("--replicaof", "127.0.0.1", str(self.master.port)))
        self.sentinels = [self.start(Sentinel(self.master)) for _ in range(3)]
        for sentinel in self.sentinels:
            eventually(sentinel.is_ready, "the Sentinels know each other and the replica")

    def state(self, *ports, more=""):
        ports = ports or [sentinel.port for sentinel in self.sentinels]
        addresses = ", ".join(f'"127.0.0.1:{port}"' for port in ports)
        return (f'key_secret = "test"\nredis = {{ url = "redis://ignored", topology = "sentinel", master = "{MASTER}", '
                f'sentinels = [{addresses}], timeout = "{TIMEOUT * 1000:.0f}ms"{more} }}')

    def weir(self, *ports, policy="open", more=""):
        rules = [rule("load", "1000000/s", store='"redis"', on_store_failure=f'"{policy}"'),
                 rule("count", "1/day", burst=20, store='"redis"', key='["header:X-Count"]', on_store_failure=f'"{policy}"')]
        return self.start(Weir(config(self.upstream.port, rules="\n".join(rules), state=self.state(*ports, more=more))))

    def shares(self, weirs, name):
        """Returns true if the instances together admit exactly the limit for a new client."""
        statuses = [weir.get("/", x_count=name).status for weir in weirs for _ in range(15)]
        return (statuses.count(200), statuses.count(429)) == (20, 15 * len(weirs) - 20)

    def fail_over(self, failure):
        """Causes a failover under load. No request may fail. Soon after the failover the instances must enforce one limit on the
        new master."""
        weirs = [self.weir(), self.weir()]
        self.assertTrue(self.shares(weirs, "before"))
        load = Load([weir.port for weir in weirs for _ in range(2)], self.upstream.port)
        load.goes_on(200)
        load.fails_from_here()
        failure()
        eventually(lambda: all(sentinel.knows == self.replica.port for sentinel in self.sentinels), "all Sentinels name the new master", 30)
        promoted = time.monotonic()
        eventually(lambda: all(weir.metric("weir_redis_up") == 2 for weir in weirs) and self.replica.calls("evalsha") > 0,
                   "weir is connected to the new master")
        attempt = 0
        while not self.shares(weirs, f"after {attempt}"):
            attempt += 1
            self.assertLess(time.monotonic() - promoted, AT_ONCE, "the instances enforce one limit again")
        print(f"\none limit again {time.monotonic() - promoted:.2f} s after the Sentinels agreed", flush=True)
        load.goes_on(200)
        self.assertEqual(load.stop(TIMEOUT), {200})
        self.assertEqual([weir.process.poll() for weir in weirs], [None, None])
        self.assertGreater(self.replica.calls("evalsha"), 0)

    def test_killed_master_is_replaced_by_its_replica(self):
        self.fail_over(self.master.kill)

    def test_frozen_master_is_replaced_by_its_replica(self):
        try:
            self.fail_over(lambda: self.master.process.send_signal(signal.SIGSTOP))
        finally:
            self.master.process.send_signal(signal.SIGCONT)

    def test_planned_failover_loses_no_request(self):
        self.fail_over(lambda: self.sentinels[0].command("SENTINEL", "FAILOVER", MASTER))

    def test_instance_without_requests_follows_a_failover(self):
        weir = self.weir()
        weir.wait_for(rf"redis {MASTER} at 127\.0\.0\.1:{self.master.port} is up", 2)  # once for each worker
        self.master.process.send_signal(signal.SIGSTOP)  # no request reveals the failure, so weir must learn it from the Sentinels
        try:
            weir.wait_for(rf"redis {MASTER} at 127\.0\.0\.1:{self.replica.port} is up", 2)
        finally:
            self.master.process.send_signal(signal.SIGCONT)
        self.assertEqual(weir.get("/", x_count="a")["x-ratelimit-remaining"], "19")

    def test_requests_are_refused_until_the_failover_if_on_store_failure_is_closed(self):
        weir = self.weir(policy="closed")
        self.assertEqual(weir.get("/", x_count="a").status, 200)
        self.master.kill()
        eventually(lambda: weir.get("/", x_count="a").status == 503, "refused")
        eventually(lambda: weir.get("/", x_count="a").status == 200, "requests are admitted on the new master", 30)

    def test_one_reachable_sentinel_is_enough(self):
        self.sentinels[0].kill()
        self.sentinels[1].process.send_signal(signal.SIGSTOP)
        try:
            weir = self.weir(closed_port(), *(sentinel.port for sentinel in self.sentinels), more=', start_wait = "10s"')
            self.assertEqual(weir.get("/", x_count="a")["x-ratelimit-remaining"], "19")
            self.assertEqual(weir.metric("weir_decisions_total", outcome="store_failed"), 0)
        finally:
            self.sentinels[1].process.send_signal(signal.SIGCONT)

    def test_sentinels_can_have_their_own_password(self):
        for sentinel in self.sentinels:
            sentinel.command("ACL", "SETUSER", "default", "resetpass", ">theirs")
        weir = self.weir(more=', sentinel_password = "theirs"')
        self.assertEqual(weir.get("/", x_count="a")["x-ratelimit-remaining"], "19")
        wrong = self.weir(more=', sentinel_password = "hunter2"')
        wrong.wait_for(r"redis mymaster is down: not_allowed, sentinel 127\.0\.0\.1:\d+: WRONGPASS")
        self.assertNotIn("hunter2", wrong.log())

    def test_redis_check_checks_the_master_named_by_the_sentinels(self):
        status, said, _ = run_weir("redis-check", config=config(9, state=self.state()))
        self.assertEqual(status, 0)
        self.assertIn(f"redis {MASTER}, at 127.0.0.1:{self.master.port} according to the sentinels\n", said)
        status, said, errors = run_weir("redis-check", config=config(9, state=self.state().replace(MASTER, "nobody")))
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"sentinel 127\.0\.0\.1:\d+ does not know a master nobody")


if __name__ == "__main__":
    main()
