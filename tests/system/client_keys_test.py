#!/usr/bin/env python3
"""Requests to /api/client-keys, and weir client-keys, change the API keys of a running weir and the keys file."""

import fcntl
import hashlib
import json
import os
import pathlib
import re
import threading

from harness import Client, TestCase, Upstream, Weir, config, eventually, main, rule, run_weir

KEYS = '# the keys\n[[key]]\nkey = "a"\nuser = "ann"\ntier = "free"\n'
CLIENT = 'keys = "keys.toml"\nunknown_keys = "reject"'
TIERS = 'tiers = { free = { limit = "3/day", burst = 3 }, pro = { limit = "30/day", burst = 30 } }'


def digest(key):
    return hashlib.sha256(key.encode()).hexdigest()


def id_of(key):
    return "sha256:" + digest(key)[:16]


class ClientKeys(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream())

    def text(self, **more):
        rules = rule("plan", "1/day", key='["api_key"]') + TIERS + "\n"
        return config(self.upstream.port, rules=rules, client=CLIENT, **more)

    def weir(self, keys=KEYS, **more):
        return self.start(Weir(self.text(**more), {"keys.toml": keys}))

    def file(self, weir):
        return (weir.folder / "keys.toml").read_text()

    def ask(self, weir, method, body=None, query=""):
        with Client(weir.admin) as client:
            fields = {"Content-Type": "application/json"} if body is not None else {}
            return client.request(method, "/api/client-keys" + query, fields, json.dumps(body).encode() if body is not None else b"")

    def put(self, weir, **body):
        return self.ask(weir, "PUT", body)

    def statuses(self, weir, *keys):
        return [weir.get("/", x_api_key=key).status for key in keys]

    def command(self, weir, *words, stdin=""):
        return run_weir("client-keys", *words, "--admin", f"127.0.0.1:{weir.admin}", stdin=stdin)

    def test_new_key_is_known_at_once_and_kept_in_the_file(self):
        weir = self.weir()
        self.assertEqual(self.statuses(weir, "a", "b"), [200, 401])
        response = self.put(weir, key="b", user="bob", tier="pro")
        self.assertEqual((response.status, response.json()), (200, {"key": {"id": id_of("b"), "user": "bob", "tier": "pro"}, "created": True}))
        self.assertEqual(self.statuses(weir, *"bbbb"), [200] * 4, "each worker knows the key")
        self.assertEqual(self.file(weir), KEYS + f'\n[[key]]\nsha256 = "{digest("b")}"\nuser = "bob"\ntier = "pro"\n')
        self.assertEqual(weir.metric("weir_reloads_total", result="ok"), 0)
        again = self.start(Weir(self.text(), {"keys.toml": self.file(weir)}))
        self.assertEqual(self.statuses(again, "b"), [200])

    def test_list_of_client_keys_shows_owners_but_no_key(self):
        weir = self.weir(KEYS + '[[key]]\nkey = "secret-b"\norg = "acme"\n')
        response = self.ask(weir, "GET")
        self.assertEqual(response.json(), {"keys": [{"id": id_of("a"), "user": "ann", "tier": "free"}, {"id": id_of("secret-b"), "org": "acme"}]})
        self.assertNotIn(b"secret-b", response.body)

    def test_client_whose_tier_changes_keeps_its_used_units(self):
        weir = self.weir()
        self.assertEqual(self.statuses(weir, *"aaaa"), [200, 200, 200, 429])
        self.assertEqual(self.put(weir, id=id_of("a"), user="ann", tier="pro").json()["created"], False)
        self.assertEqual(weir.get("/", x_api_key="a")["x-ratelimit-limit"], "30")
        self.assertEqual(self.put(weir, id=id_of("a"), user="ann", tier="free").status, 200)
        self.assertEqual(self.statuses(weir, "a"), [429], "the limit of the tier was not refilled")

    def test_patch_request_keeps_members_that_it_leaves_out_and_put_request_clears_them(self):
        weir = self.weir()
        response = self.ask(weir, "PATCH", {"id": id_of("a"), "org": "acme"})
        self.assertEqual(response.json(), {"key": {"id": id_of("a"), "user": "ann", "org": "acme", "tier": "free"}, "created": False})
        self.assertEqual(self.ask(weir, "PATCH", {"key": "a", "user": ""}).json()["key"], {"id": id_of("a"), "org": "acme", "tier": "free"})
        self.assertEqual(self.ask(weir, "PATCH", {"key": "b", "tier": "pro"}).json(), {"key": {"id": id_of("b"), "tier": "pro"}, "created": True})
        self.assertEqual(self.put(weir, key="a", tier="pro").json()["key"], {"id": id_of("a"), "tier": "pro"})

    def test_removed_key_is_rejected_at_once(self):
        weir = self.weir(KEYS + '[[key]]\nkey = "b"\nuser = "bob"\n')
        response = self.ask(weir, "DELETE", query="?id=" + id_of("a"))
        self.assertEqual(response.json(), {"key": {"id": id_of("a"), "user": "ann", "tier": "free"}, "removed": True})
        self.assertEqual(self.statuses(weir, "a", "b"), [401, 200])
        self.assertEqual(self.file(weir), '# the keys\n[[key]]\nkey = "b"\nuser = "bob"\n')

    def test_client_keys_that_are_set_at_the_same_time_are_all_kept(self):
        weir = self.weir()
        names = [f"key-{number}" for number in range(24)]
        statuses = []

        def put(part):
            for name in part:
                statuses.append(self.put(weir, key=name, user=name).status)

        threads = [threading.Thread(target=put, args=(names[start::4],)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(statuses, [200] * len(names))
        self.assertEqual(set(self.statuses(weir, *names)), {200})
        self.assertEqual({each["id"] for each in self.ask(weir, "GET").json()["keys"]}, {id_of(name) for name in ["a", *names]})
        for name in names:
            self.assertIn(digest(name), self.file(weir))

    def locked(self, weir):
        """Returns True while weir changes the keys file, which it locks."""
        inode = f":{(weir.folder / 'keys.toml').stat().st_ino} "
        return any(inode in line and "FLOCK" in line for line in pathlib.Path("/proc/locks").read_text().splitlines())

    def test_health_checks_are_answered_during_a_change_of_the_keys_file(self):
        weir = self.weir(KEYS + "".join(f'[[key]]\nsha256 = "{digest(str(number))}"\n' for number in range(50_000)))
        statuses, during = [], 0
        thread = threading.Thread(target=lambda: statuses.append(self.put(weir, key="b").status))
        with Client(weir.admin) as client:
            thread.start()
            eventually(lambda: self.locked(weir) or statuses, "the change has begun")
            while self.locked(weir):
                self.assertEqual(client.get("/healthz").status, 200)
                during += self.locked(weir)
        thread.join()
        self.assertEqual(statuses, [200])
        self.assertGreater(during, 0, "no health check was answered before the end of the change")

    def test_edit_by_hand_is_kept_when_weir_changes_the_file_without_a_reload(self):
        weir = self.weir(server="watch = true")
        (weir.folder / "keys.toml").write_text(KEYS + '[[key]]\nkey = "by-hand"\n')
        self.assertEqual(self.put(weir, key="b").status, 200)
        self.assertEqual(self.statuses(weir, "a", "b", "by-hand"), [200] * 3)
        (weir.folder / "weir.toml").write_text(self.text(server="watch = true\nmax_in_flight = 500"))
        weir.wait_for("info reload: the configuration was reloaded")
        self.assertEqual(weir.metric("weir_reloads_total", result="ok"), 1, "the change of weir.toml alone caused a reload")
        self.assertEqual(self.statuses(weir, "b", "by-hand"), [429, 429])

    def test_reload_reads_the_keys_file_again(self):
        weir = self.weir()
        self.assertEqual(self.put(weir, key="b").status, 200)
        self.assertEqual(run_weir("reload", "--admin", f"127.0.0.1:{weir.admin}")[0], 0)
        self.assertEqual(self.statuses(weir, "b"), [200])

    def test_keys_file_keeps_its_mode_and_its_symbolic_link(self):
        weir = self.weir()
        (weir.folder / "keys.toml").rename(weir.folder / "real.toml")
        (weir.folder / "keys.toml").symlink_to("real.toml")
        os.chmod(weir.folder / "real.toml", 0o640)
        self.assertEqual(self.put(weir, key="b").status, 200)
        self.assertTrue((weir.folder / "keys.toml").is_symlink())
        self.assertEqual((weir.folder / "real.toml").stat().st_mode & 0o777, 0o640)

    def test_each_change_of_a_client_key_is_logged_without_the_key(self):
        weir = self.weir()
        self.put(weir, key="secret-b", user="bob\nx", tier="pro")
        self.ask(weir, "DELETE", query="?id=" + id_of("a"))
        self.put(weir, id="sha256:0000000000000000")
        weir.wait_for(rf'admin: 127\.0\.0\.1:[0-9]+ sets the API key {id_of("secret-b")} of user "bob\\x0ax", tier "pro"')
        weir.wait_for(rf'admin: 127\.0\.0\.1:[0-9]+ removes the API key {id_of("a")} of user "ann", tier "free"')
        weir.wait_for(r'sets the API key sha256:0000000000000000: refused: \S*keys\.toml has no key')
        self.assertNotIn("secret-b", weir.log())

    def test_api_key_that_is_sent_in_place_of_its_id_is_neither_logged_nor_sent_back(self):
        weir = self.weir()
        for key in ("kf8s-92h1", "sha256:kf8s-92h1", "kf8s-92h1" + "0" * 55, digest("kf8s-92h1")):
            for response in (self.put(weir, id=key, user="u"), self.ask(weir, "DELETE", query="?id=" + key)):
                self.assertEqual(response.status, 400)
                self.assertIn("sha256:", response.json()["message"])
                self.assertNotIn(key, response.json()["message"])
            status, out, errors = self.command(weir, "remove", key)
            self.assertEqual((status, out), (2, ""))
            self.assertIn("write the id as weir client-keys list shows it", errors)
            self.assertNotIn(key, errors)
        self.put(weir, key="end")
        weir.wait_for(f"sets the API key {id_of('end')} of nobody")
        self.assertNotIn("kf8s", weir.log())
        self.assertNotIn(digest("kf8s-92h1"), weir.log())

    def test_error_of_a_wrong_request_says_what_to_write(self):
        weir = self.weir()
        for body, status, sentence in (
                ({"user": "u"}, 400, "the key is missing; write one of key, sha256 and id"), ({"key": ""}, 400, '"key" is empty'),
                ({"key": "b", "sha256": digest("b")}, 400, "write only one of key, sha256 and id"), ({"sha256": "12"}, 400, "write 64 hexadecimal digits"),
                ({"key": "b", "teir": "pro"}, 400, 'there is no member "teir"; write one of key, sha256 or id'), ({"key": 1}, 400, '"key" is not a string'),
                ([], 400, "the body is not a JSON object"), ({"id": "sha256:0000000000000000"}, 404, "has no key")):
            response = self.ask(weir, "PUT", body)
            self.assertEqual(response.status, status, body)
            self.assertIn(sentence, response.json()["message"])
        for query in ("", "?id=", "?key=a", "?id=a&id=b"):
            self.assertIn("?id=sha256:9f86d081884c7d65", self.ask(weir, "DELETE", query=query).json()["message"])
        self.assertEqual(self.file(weir), KEYS)
        warned = self.put(weir, key="b", tier="por").json()
        self.assertRegex(warned["warnings"][0], 'the tier "por" is not used by any rule or route.*did you mean "pro"')

    def test_keys_file_that_weir_cannot_change_is_left_unchanged(self):
        weir = self.weir()
        for text, status, sentence in (('[[key]]\nkey = "a"\ncolour = 1\n', 409, "keys.toml:3"), ('key = [{ key = "a" }]\n', 409, "in a form that weir cannot change")):
            (weir.folder / "keys.toml").write_text(text)
            response = self.put(weir, key="a", user="x")
            self.assertEqual((response.status, response.json()["error"]), (status, "keys_file_refused"))
            self.assertIn(sentence, response.json()["message"])
            self.assertEqual(self.file(weir), text)
        self.assertEqual(self.statuses(weir, "a"), [200], "the keys in use are unchanged")
        (weir.folder / "keys.toml").unlink()
        response = self.put(weir, key="b")
        self.assertEqual((response.status, response.json()["error"]), (500, "keys_file_failed"))

    def test_change_of_a_client_key_gets_503_while_another_process_changes_the_file(self):
        weir = self.weir()
        with open(weir.folder / "keys.toml", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            response = self.put(weir, key="b")
            self.assertEqual((response.status, response.json()["error"]), (503, "busy"))
            self.assertIn("is being changed by another process; try again", response.json()["message"])
            self.assertEqual(self.file(weir), KEYS)
        self.assertEqual(self.put(weir, key="b").status, 200)

    def test_page_of_client_keys_gets_404_if_no_keys_file_is_configured(self):
        weir = self.start(Weir(config(self.upstream.port, rules=rule())))
        for response in (self.ask(weir, "GET"), self.put(weir, key="b"), self.ask(weir, "DELETE", query="?id=x")):
            self.assertEqual((response.status, response.json()["error"]), (404, "no_keys_file"))
            self.assertIn('[client] keys = "keys.toml"', response.json()["message"])

    def test_client_keys_command_lists_sets_and_removes_keys(self):
        weir = self.weir()
        status, out, errors = self.command(weir, "set", "-", "--user", "bob", "--tier", "pro", stdin="secret-b\n")
        self.assertEqual((status, out), (0, f"added {id_of('secret-b')}: user bob, tier pro\n"), errors)
        self.assertEqual(self.statuses(weir, "secret-b"), [200])
        self.assertEqual(self.command(weir, "set", id_of("a"), "--user", "ann", "--tier", "por")[1].split("\n")[0], f"changed {id_of('a')}: user ann, tier por")
        self.assertEqual(self.command(weir, "set", "sha256:" + digest("c"))[1], f"added {id_of('c')}\n")
        self.assertEqual(self.command(weir, "set", id_of("a"), "--org", "acme")[1].split("\n")[0], f"changed {id_of('a')}: user ann, org acme, tier por")
        self.assertEqual(self.command(weir, "set", id_of("a"), "--org", "")[1].split("\n")[0], f"changed {id_of('a')}: user ann, tier por")
        lines = self.command(weir, "list")[1].splitlines()
        self.assertEqual(lines, [id_of("c"), f"{id_of('a')}: user ann, tier por", f"{id_of('secret-b')}: user bob, tier pro"])
        self.assertEqual(self.command(weir, "remove", id_of("c"))[:2], (0, f"removed {id_of('c')}\n"))
        self.assertEqual(len(json.loads(self.command(weir, "list", "--json")[1])["keys"]), 2)
        for words, sentence in ((("set", "secret-c"), "write - and give the key to standard input"),
                                (("set", digest("x")), "write - and give the key to standard input"), (("remove", "sha256:0000000000000000"), "has no key"),
                                (("lst",), 'did you mean "list"?'), (("set", "-"), "standard input has no API key")):
            status, _, errors = self.command(weir, *words)
            self.assertEqual(status, 2, words)
            self.assertIn(sentence, errors)
        self.assertTrue(re.search("secret", self.file(weir)) is None)


if __name__ == "__main__":
    main()
