#!/usr/bin/env python3
"""`weir redis-check` with real servers, suitable and unsuitable."""

import json
import re
import signal
import socketserver
import threading

from harness import Redis, TestCase, closed_port, config, eventually, main, run_weir
from redis_cluster import Node, form, state

SECRET = 'key_secret = "test"\n'


def check(url, more=""):
    return run_weir("redis-check", config=config(9, state=f'{SECRET}redis = {{ url = "{url}"{more} }}'))


class OldRedis(socketserver.ThreadingTCPServer):
    """A server that claims to be an old version of Redis, and answers no other command."""

    allow_reuse_address = daemon_threads = True

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            while words := self.request.recv(4096):
                info = b"redis_version:5.0.7\r\nrole:master\r\n"
                known = {b"PING": b"+PONG\r\n", b"INFO": b"$%d\r\n%s\r\n" % (len(info), info)}
                self.request.sendall(next((answer for word, answer in known.items() if word in words), b"-ERR no\r\n"))

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *reason):
        self.shutdown()
        super().__exit__(*reason)


class RedisCheck(TestCase):
    def test_suitable_redis_passes_every_check(self):
        redis = self.start(Redis())
        status, said, errors = check(redis.url)
        self.assertEqual((status, errors), (0, ""))
        for line in (rf"^redis 127\.0\.0\.1:{redis.port}$", r"^  reachable +yes, as the default user$", r"^  server +Redis \d+\.\d",
                     r"^  role +master$", r"^  maxmemory +no limit", r"^  eviction +noeviction$",
                     r"^  round trip +\d+\.\d\d ms median, \d+\.\d\d ms worst of 50; timeout 20ms$",
                     r"^  clock +\d+\.\d\d ms (ahead of|behind) this host's, give or take \d+\.\d\d ms$",
                     r"^  scripts +load, charge and refund$", r"^  prefix +weir$", r"^  key_secret +set$"):
            self.assertRegex(said, f"(?m){line}")
        eventually(lambda: redis.command("KEYS", "*") == [], "the keys written by the check expire")

    def test_json_output_has_the_same_findings_as_the_text_output(self):
        redis = self.start(Redis("--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"))
        text = config(9, state=f'{SECRET}redis = {{ url = "{redis.url}" }}')
        status, said, errors = run_weir("redis-check", "--json", config=text)
        said = json.loads(said)
        self.assertEqual((status, said["ok"], said["faults"], said["prefix"]), (0, True, [], "weir"))
        self.assertIn(f"weir: warning: {said['warnings'][0]}", errors)
        node = said["nodes"][0]
        self.assertEqual((node["address"], node["reachable"], node["role"], node["eviction"], node["max_memory_bytes"], node["scripts"]),
                         (f"127.0.0.1:{redis.port}", True, "master", "volatile-ttl", 100 << 20, True))
        self.assertGreater(node["round_trip_median_seconds"], 0)
        status, said, _ = run_weir("redis-check", "--json", config=config(9, state=f'{SECRET}redis = {{ url = "redis://127.0.0.1:{closed_port()}" }}'))
        said = json.loads(said)
        self.assertEqual((status, said["ok"], said["nodes"][0]["reachable"]), (1, False, False))

    def test_invalid_value_in_the_key_of_the_shared_secret_is_reported(self):
        redis = self.start(Redis())
        text = config(9, state=f'redis = {{ url = "{redis.url}", prefix = "edge" }}')
        good = "0123456789abcdef" * 2
        for put, holds in ((None, None), (("SET", "edge:secret", good), None),
                           (("SET", "edge:secret", "hello"), "a text of 5 octets"), (("SET", "edge:secret", ""), "a text of 0 octets"),
                           (("SET", "edge:secret", good.upper()), "a text of 32 octets"), (("SET", "edge:secret", good + "0"), "a text of 33 octets"),
                           (("RPUSH", "edge:secret", good), "a value of type list"), (("HSET", "edge:secret", "a", "b"), "a value of type hash")):
            redis.command("DEL", "edge:secret")
            if put:
                redis.command(*put)
            with self.subTest(put):
                status, said, errors = run_weir("redis-check", config=text)
                told = json.loads(run_weir("redis-check", "--json", config=text)[1])
                self.assertEqual((status, told["ok"]), (0, True) if holds is None else (1, False), errors)
                self.assertEqual(redis.command("EXISTS", "edge:secret"), 1 if put else 0, "the check writes no secret")
                self.assertEqual("which the first one creates" in said, put is None, said)
                fault = (f"edge:secret holds {holds} instead of weir's secret (32 hexadecimal digits), so rules in Redis follow "
                         "on_store_failure; delete that key (redis-cli DEL edge:secret), or set [state] key_secret on every instance")
                self.assertEqual(told["faults"], [] if holds is None else [fault])
                self.assertEqual(errors, "" if holds is None else f"weir: {fault}\n")
        self.assertEqual(check(redis.url, ', prefix = "edge"')[0], 0, "with key_secret the shared secret is not checked")

    def test_invalid_shared_secret_is_reported_even_if_weir_may_not_send_the_type_command(self):
        redis = self.start(Redis())
        redis.command("ACL", "SETUSER", "weir", "on", ">secret", "~weir:*", "+@all", "-type")
        url = redis.url.replace("//", "//weir:secret@")
        text = config(9, state=f'redis = {{ url = "{url}" }}')
        self.assertEqual(run_weir("redis-check", config=text)[0], 0)
        redis.command("RPUSH", "weir:secret", "x")
        status, _, errors = run_weir("redis-check", config=text)
        self.assertEqual(status, 1)
        self.assertIn("weir:secret holds a value that is not a text", errors)

    def test_eviction_policy_that_deletes_keys_causes_a_warning(self):
        redis = self.start(Redis("--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"))
        status, said, errors = check(redis.url)
        self.assertEqual(status, 0)
        self.assertRegex(said, r"(?m)^  maxmemory +100\.0 MiB, ")
        self.assertRegex(errors, "^weir: warning: eviction: with volatile-ttl")

    def test_missing_acl_rights_are_listed(self):
        redis = self.start(Redis())
        rights = ["~weir:*", "-@all", "+evalsha", "+script|load", "+mget", "+set", "+time"]
        redis.command("ACL", "SETUSER", "weir", "on", ">secret", *rights)
        url = redis.url.replace("//", "//weir:secret@")
        status, said, errors = check(url)
        self.assertEqual(status, 1)
        self.assertRegex(said, r"(?m)^  scripts +do not work$")
        self.assertRegex(errors, "(?m)^weir: scripts: .*can't run this command")
        self.assertRegex(errors, "(?m)^weir: warning: this check was not allowed to read INFO: NOPERM")
        redis.command("ACL", "SETUSER", "weir", "+@write", "+@read", "+@connection", "+info")
        self.assertEqual(check(url)[0], 0)
        redis.command("ACL", "SETUSER", "weir", "-script|load")
        self.assertRegex(check(url)[2], "(?m)^weir: scripts: NOPERM")

    def test_wrong_password_is_reported_but_not_shown(self):
        redis = self.start(Redis())
        redis.command("CONFIG", "SET", "requirepass", "right")
        status, said, errors = check(redis.url.replace("//", "//default:hunter2@"))
        self.assertEqual(status, 1)
        self.assertIn("WRONGPASS", errors)
        self.assertNotIn("hunter2", said + errors)

    def test_password_may_have_any_characters(self):
        redis = self.start(Redis())
        for number, password in enumerate(("p/w", "50%", "a@b", "a:b:", "%2F", "@/:%?#&=", "a b", "{}'|")):
            with self.subTest(password):
                user = f"weir{number}"
                redis.command("ACL", "SETUSER", user, "on", f">{password}", "~weir:*", "+@all")
                self.assertEqual(check(redis.url, f', username = "{user}", password = "{password}"')[0], 0)
                status, said, errors = check(redis.url, f', username = "{user}", password = "x{password}"')
                self.assertEqual(status, 1)
                self.assertIn("WRONGPASS", errors)
                self.assertNotIn(password, said + errors.replace(str(redis.port), ""))
        redis.command("ACL", "SETUSER", "reserved", "on", ">p/w@x:?#", "~weir:*", "+@all")
        self.assertEqual(check(redis.url.replace("//", "//reserved:p/w@x:?#@"))[0], 0)

    def test_invalid_redis_url_is_not_shown(self):
        for url in ("redis://weir:hunter2%@cache", "redis://weir:hunter2@cache:port", "redis://weir:hunter2", "cache:hunter2@x"):
            status, said, errors = check(url)
            self.assertEqual(status, 2)
            self.assertIn("state.redis.url: the Redis URL ", errors)
            self.assertNotIn("hunter2", said + errors)

    def test_replica_and_cluster_node_are_rejected(self):
        replica = self.start(Redis("--replicaof", "127.0.0.1", str(closed_port())))
        status, _, errors = check(replica.url)
        self.assertEqual(status, 1)
        self.assertIn("it is a replica", errors)
        node = self.start(Redis("--cluster-enabled", "yes"))
        status, _, errors = check(node.url)
        self.assertEqual(status, 1)
        self.assertIn("it is a cluster node", errors)

    def test_every_master_of_a_cluster_is_checked(self):
        nodes = [self.start(Node()) for _ in range(4)]
        form(nodes[:3])
        nodes[3].ok("CLUSTER", "MEET", "127.0.0.1", str(nodes[0].port))
        eventually(lambda: nodes[0].name.encode() in nodes[3].command("CLUSTER", "NODES"), "the node has joined the cluster")
        nodes[3].ok("CLUSTER", "REPLICATE", nodes[0].name)

        def ask():
            return run_weir("redis-check", config=config(9, state=state(nodes[:3], timeout="1s")))

        eventually(lambda: b"connected_slaves:1" in nodes[0].command("INFO", "replication"), "the replica is connected")
        status, said, errors = ask()
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(len(re.findall(r"(?m)^redis 127\.0\.0\.1:\d+ of a cluster$", said)), 3)
        self.assertEqual(re.findall(r"(?m)^  role +(.*)$", said).count("master, with a replica"), 1)
        nodes[2].command("CONFIG", "SET", "maxmemory", "100mb")
        nodes[2].command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        status, _, errors = ask()
        self.assertEqual(status, 0)
        self.assertIn(f"weir: warning: 127.0.0.1:{nodes[2].port}: eviction: with allkeys-lru", errors)
        nodes[1].process.kill()
        nodes[1].process.wait()
        status, _, errors = ask()
        self.assertEqual(status, 1)
        self.assertIn(f"weir: 127.0.0.1:{nodes[1].port}: Connection refused", errors)

    def test_old_redis_version_is_rejected(self):
        with OldRedis() as old:
            status, said, errors = check(f"redis://127.0.0.1:{old.server_address[1]}")
        self.assertEqual(status, 1)
        self.assertRegex(said, r"(?m)^  server +Redis 5\.0\.7$")
        self.assertIn("too old; weir needs Redis 6.2", errors)

    def test_unreachable_server_and_unresponsive_server_are_reported(self):
        status, said, errors = check(f"redis://127.0.0.1:{closed_port()}")
        self.assertEqual((status, errors), (1, "weir: Connection refused (expected a Redis where url of [state.redis] says)\n"))
        self.assertRegex(said, r"(?m)^  reachable +no$")
        redis = self.start(Redis())
        redis.process.send_signal(signal.SIGSTOP)
        self.assertEqual(check(redis.url)[::2], (1, "weir: no reply within 2s (expected a Redis where url of [state.redis] says)\n"))

    def test_configuration_without_redis_or_with_a_mistake_is_rejected(self):
        status, said, errors = run_weir("redis-check", config=config(9))
        self.assertEqual((status, said), (2, ""))
        self.assertIn("has no [state] redis", errors)
        self.assertEqual(check("redis://x:y:z")[0], 2)


if __name__ == "__main__":
    main()
