#!/usr/bin/env python3
"""weir's explanation of a request agrees with the real response, and explaining charges nothing. A single key can be shown and
reset."""

import hashlib
import json
import os
import re
import subprocess
import threading

from harness import (PATIENCE, WEIR, Client, Redis, TestCase, Upstream, Weir, answer, closed_port, config, eventually, get,
                     logged_requests, main, rule, run_weir)
from redis_cluster import Node, form, state


def busy(limit, **more):
    return rule("busy", "0", key='["ip"]', algorithm='"concurrency"', **more).replace('limit = "0"', f"limit = {limit}")


def post(port, path, body, **headers):
    with Client(port) as client:
        return client.request("POST", path, {"Content-Type": "application/json", **headers}, json.dumps(body).encode())


def delete(port, path, **headers):
    with Client(port) as client:
        return client.request("DELETE", path, headers)


class ExplainTestCase(TestCase):
    def begin(self, *rules, environment=None, **more):
        self.upstream = self.start(Upstream())
        self.weir = self.start(Weir(config(self.upstream.port, rules="".join(rules), **more), environment=environment))
        return self.weir

    def explain(self, **inquiry):
        answer = post(self.weir.admin, "/api/explain", {"host": "localhost", **inquiry})
        self.assertEqual(answer.status, 200, answer.body)
        return json.loads(answer.body)

    def command(self, *arguments):
        done = subprocess.run([WEIR, *arguments, "--config", str(self.weir.folder / "weir.toml"),
                               "--admin", f"127.0.0.1:{self.weir.admin}"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def keys(self, query, method="GET"):
        answer = (delete if method == "DELETE" else get)(self.weir.admin, f"/api/keys?{query}")
        return answer.status, json.loads(answer.body)


class Explain(ExplainTestCase):
    def test_explained_verdict_agrees_with_the_real_response(self):
        weir = self.begin(rule("burst", "1/day", burst=2, key='["ip"]'))
        for _ in range(4):
            said = self.explain()["verdict"]
            got = weir.get("/")
            self.assertEqual(said["verdict"], "forward" if got.status == 200 else "refuse")
            for name in ("X-RateLimit-Limit", "X-RateLimit-Remaining", "RateLimit-Policy"):
                self.assertEqual(said["headers"][name], got[name.lower()], name)
            if got.status == 429:
                self.assertEqual((said["status"], said["rule"]), (429, "burst"))
                self.assertAlmostEqual(int(said["headers"]["Retry-After"]), int(got["retry-after"]), delta=1)
                self.assertEqual(json.loads(said["body"])["rule"], "burst")

    def is_what_it_gets(self, got, **inquiry):
        """Checks that the verdict describes the response `got`. Only the form of the body and one second of time may differ."""
        said = self.explain(**inquiry)["verdict"]
        self.assertEqual(said["status"], got.status)
        self.assertEqual(re.sub(r"\d+", "N", said.get("body", "")), re.sub(r"\d+", "N", got.body.decode()))
        told = {name.lower(): value for name, value in said["headers"].items()}
        rest = {name: value for name, value in got.fields if name not in ("date", "content-length", "cache-control", "connection", "x-request-id")}
        self.assertEqual(told.keys(), rest.keys())
        for name, value in rest.items():
            self.assertEqual(re.sub(r"\d+", "N", told[name]), re.sub(r"\d+", "N", value), name)
            for one, other in zip(re.findall(r"\d+", told[name]), re.findall(r"\d+", value)):
                self.assertAlmostEqual(int(one), int(other), delta=1, msg=name)
        return said

    def test_request_of_a_client_at_its_queue_bound_is_explained_as_refused(self):
        weir = self.begin(rule("queue", "1/20s", key="[]", algorithm='"leaky_bucket"', queue=9, queue_per_client=1))
        self.assertEqual(weir.get("/").status, 200)
        with Client(weir.port) as waiting:
            waiting.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually(lambda: self.keys("rule=queue")[1]["limits"][0].get("waiting") == 1, "the request waits in the queue")
            got = weir.get("/")
            self.assertEqual((got.status, got["x-ratelimit-remaining"]), (429, "0"))
            said = self.is_what_it_gets(got, ip="127.0.0.1")
            self.assertEqual((said["verdict"], said["rule"]), ("refuse", "queue"))
            self.assertLessEqual(said["retry_after_seconds"], 20)
            self.assertIn("queue_per_client of rule queue", said["why"])
            self.assertEqual(self.explain(ip="203.0.113.9")["verdict"]["verdict"], "delay")

    def test_explanation_of_a_request_without_the_required_key_shows_its_response(self):
        weir = self.begin(rule(key='["user"]', on_missing='"reject"'))
        got = weir.get("/")
        self.assertEqual((got.status, got["www-authenticate"]), (401, "ApiKey"))
        self.is_what_it_gets(got)

    def test_explanation_states_the_answer_to_requests_with_max_forwards_0(self):
        weir = self.begin(rule("many", "1000/s", key='["ip"]'))
        last = {"Max-Forwards": "0"}
        with Client(weir.port) as client:
            for method, status in (("OPTIONS", 200), ("TRACE", 501)):
                got = client.request(method, "/", last)
                self.assertEqual(got.status, status)
                self.is_what_it_gets(got, method=method, headers=last, ip="127.0.0.1")

    def test_explain_command_charges_nothing_and_creates_no_key(self):
        weir = self.begin(rule("one", "1/day", burst=1, key='["ip"]'), rule("log", "1/day", key='["ip"]', algorithm='"sliding_log"'),
                          rule("queue", "1/day", key='["ip"]', algorithm='"leaky_bucket"', queue=1),
                          busy(1))

        def explanation():
            said = self.explain()
            del said["verdict"]["headers"]["X-RateLimit-Reset"]  # changes with the clock
            return said

        first = explanation()
        self.assertEqual({limit["says"] for rule in first["rules"] for limit in rule["limits"]}, {"admit"})
        for _ in range(5):
            self.assertEqual(explanation(), first)
        self.assertEqual(weir.metric("weir_keys"), 0)
        self.assertEqual(weir.metric("weir_decisions_total"), 0)
        self.assertEqual(weir.get("/").status, 200)

    def test_explanation_lists_every_rule_and_why_it_does_not_apply(self):
        self.begin(rule("api", key='["ip"]', match='{ path = "/api/*" }'), rule("posts", key='["ip"]', match='{ methods = ["POST"] }'),
                   rule("users", key='["user"]'), rule("trial", key='["ip"]', mode='"shadow"'))
        rules = self.explain(path="/login", ip="203.0.113.9")["rules"]
        self.assertEqual([(r["name"], r["applies"], r.get("why")) for r in rules],
                         [("api", False, "path /login does not match /api/*"), ("posts", False, "method GET is not POST"),
                          ("users", False, "the request has no [user]"), ("trial", True, None)])
        self.assertEqual((rules[3]["mode"], rules[3]["key"]), ("shadow", ["ip:203.0.113.9"]))

    def test_explanation_shows_the_identity_of_the_client_without_secrets(self):
        keys = '[[key]]\nkey = "s3cret-key"\nuser = "ada"\ntier = "pro"\n'
        self.upstream = self.start(Upstream())
        text = config(self.upstream.port, client='keys = "keys.toml"\ntrusted_proxies = ["10.0.0.0/8"]',
                      rules=rule("per-key", "1/day", key='["api_key"]', tiers='{ pro = { limit = "5/day" } }'))
        self.weir = self.start(Weir(text, files={"keys.toml": keys}))
        said = self.explain(ip="10.0.0.1", headers={"X-API-Key": "s3cret-key", "X-Forwarded-For": "203.0.113.7"})
        self.assertEqual({name: said["client"][name] for name in ("address", "peer", "peer_trusted", "user", "tier")},
                         {"address": "203.0.113.7", "peer": "10.0.0.1", "peer_trusted": True, "user": "ada", "tier": "pro"})
        self.assertNotIn("s3cret-key", json.dumps(said))
        limit = said["rules"][0]["limits"][0]
        self.assertEqual((limit["chosen_by"], limit["limit"]), ("tier pro", 5))

    def test_questions_are_explained_without_a_url_or_a_route(self):
        self.begin(rule("by-user", "5/day", key='["descriptor:user"]', match='{ domains = ["edge"] }'), rule("all", "9/day", key="[]"),
                   routes='[[route]]\nname = "api"\nmatch = { path = "/api/*" }\nupstream = "api"')
        said = self.explain(domain="edge", descriptor={"user": "ada", "page": "2"}, cost=3)
        self.assertEqual([(r["name"], r["applies"], r.get("key"), r.get("cost")) for r in said["rules"]],
                         [("by-user", True, ["descriptor:user:ada"], 3), ("all", True, [], 3)])
        self.assertEqual((said["verdict"]["verdict"], said["verdict"]["status"], said["verdict"]["why"]), ("allow", 200, "every rule admits it"))
        self.assertEqual(said["verdict"]["headers"]["X-RateLimit-Remaining"], "2")
        self.assertEqual(self.explain(domain="edge", descriptor={"user": "ada"}, cost=6)["verdict"]["rule"], "by-user")
        why = "the descriptor must have exactly the keys that the rule names: user"
        self.assertEqual(self.explain(domain="edge", descriptor={"user": "ada", "page": "2"}, exact=True)["rules"][0]["why"], why)
        self.assertEqual(self.explain(path="/api/")["rules"][0]["why"], "the rule needs a descriptor, which only a question has")
        code, out, err = self.command("explain", "--domain", "edge", "--descriptor", "user=ada", "--descriptor", "page=2")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("  by-user  descriptor:user:ada  token_bucket 5/day", out)
        self.assertIn("verdict  allow: every rule admits it", out)
        for wrong, fault in ((("--descriptor", "user"), '--descriptor "user" has no key; write KEY=VALUE'),
                             ((), "there is no request; write a URL, such as weir explain /api"),
                             (("--cost", "x"), '--cost "x" is not a whole number')):
            code, _, err = self.command("explain", *wrong)
            self.assertEqual(code, 2)
            self.assertIn(fault, err)

    def test_explanation_of_a_request_that_is_rejected_before_any_limit_has_the_reason(self):
        self.begin(rule(key='["user"]', on_missing='"reject"'), server='max_head = "1KiB"',
                   routes='[[route]]\nname = "api"\nmatch = { path = "/api/*" }\nupstream = "api"')
        said = self.explain(path="/login")
        self.assertEqual((said["route"]["name"], said["route"]["passed_over"]),
                         (None, [{"name": "api", "why": "path /login does not match /api/*"}]))
        self.assertEqual((said["verdict"]["status"], said["verdict"]["rule"]), (401, "per-ip"))
        self.assertEqual(self.explain(headers={"X-Large": "x" * 2000})["verdict"]["status"], 431)
        self.assertEqual(self.explain(method="get")["verdict"]["status"], 400)
        self.assertEqual(self.explain(headers={"X-A": "1\r\nX-B: 2"})["verdict"]["status"], 400)

    def test_explanation_of_an_ambiguous_path_agrees_with_its_response(self):
        self.begin(rule("login", match='{ path = "/login" }'), rule("all", "99/day"),
                   routes='[[route]]\nname = "own"\nmatch = { path = "/own/*" }\nrespond = { status = 204 }\n'
                   '[[route]]\nname = "api"\nupstream = "api"\n')
        for path, status, rule_named, why in (
                ("/x/..;/login", 400, "login", "the path is ambiguous: servers may interpret it in several ways that rule login treats differently"),
                ("/x/..;/own/a", 400, None, "servers may read the path in several ways, which the routes lead apart"),
                ("/signin;returnPath=%2Ftrack", 200, "all", None)):
            said = self.explain(path=path)["verdict"]
            self.assertEqual(said.get("rule"), rule_named, path)
            with self.weir.connect() as client:
                client.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                self.assertEqual(client.read().status, status)
            if why:
                self.assertEqual((said["status"], said["why"]), (status, f"no limit is asked: {why}"))

    def test_explanation_shows_that_a_shadow_rule_would_refuse_the_request(self):
        weir = self.begin(rule("trial", "1/day", key='["ip"]', mode='"shadow"'))
        self.assertEqual(weir.get("/").status, 200)
        self.assertEqual(self.explain(ip="127.0.0.1")["verdict"]["why"], "it goes to upstream api; no enforced rule limits it")
        self.assertEqual(self.explain(ip="203.0.113.9")["verdict"]["why"], "it goes to upstream api; no rule limits it")
        weir = self.begin(rule("trial", "1/day", key='["ip"]', mode='"shadow"'), rule("all", "9/day", key='["ip"]'))
        self.assertEqual(self.explain(ip="127.0.0.1")["verdict"]["why"], "every rule admits it; it goes to upstream api")
        self.assertEqual(self.statuses(weir.port, 2), [200, 200])
        said = self.explain(ip="127.0.0.1")
        self.assertEqual(said["rules"][0]["limits"][0]["says"], "refuse")
        self.assertEqual((said["verdict"]["verdict"], said["verdict"]["why"]), ("forward", "every enforced rule admits it; it goes to upstream api"))
        out = self.command("explain", "http://localhost/", "--ip", "127.0.0.1")[1]
        self.assertRegex(out, r"(?m)^  trial \(shadow\)  ip:127\.0\.0\.1  token_bucket .*: would refuse; free in ")
        self.assertRegex(out, r"(?m)^verdict  forward: every enforced rule admits it; it goes to upstream api$")

    def test_explanation_says_that_weir_itself_answers_if_no_server_gets_the_request(self):
        self.begin(rule("all", "9/day", key='["ip"]'), routes='[[route]]\nname = "pong"\nmatch = { path = "/ping" }\n'
                   'respond = { status = 200, body = "pong" }\n[[route]]\nname = "api"\nmatch = { path = "/api/*" }\nupstream = "api"')
        for path, verdict in (("/none", ("answer", 404, "no route matches; every rule admits it")),
                              ("/ping", ("answer", 200, "every rule admits it; route pong answers")),
                              ("/api/x", ("forward", None, "every rule admits it; it goes to upstream api"))):
            said = self.explain(path=path)["verdict"]
            self.assertEqual((said["verdict"], said.get("status"), said["why"]), verdict)
        self.assertRegex(self.command("explain", "http://localhost/none")[1],
                         r"(?m)^verdict  answer 404: no route matches; every rule admits it\nanswer   404$")

    def test_explanation_shows_the_delay_and_the_number_of_waiting_requests(self):
        weir = self.begin(rule("queue", "1/2s", key="[]", algorithm='"leaky_bucket"', queue=5))
        self.assertEqual(weir.get("/").status, 200)
        with Client(weir.port) as waiting:
            waiting.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually(lambda: self.keys("rule=queue")[1]["limits"][0].get("waiting") == 1, "the request waits in the queue")
            verdict = self.explain()["verdict"]
            self.assertEqual((verdict["verdict"], verdict["rule"]), ("delay", "queue"))
            self.assertGreater(verdict["delay_seconds"], 2)

    def test_explain_command_prints_a_line_for_each_rule(self):
        weir = self.begin(rule("api", key='["ip"]', match='{ path = "/api/*" }'), rule("all", key='["ip"]'))
        self.assertEqual(weir.get("/").status, 200)
        status, out, err = self.command("explain", "GET", "http://localhost/x", "-H", "X-A: 1", "-H", "X-B: 2", "--ip", "127.0.0.1")
        self.assertEqual(status, 0, err)
        self.assertRegex(out, r"(?m)^client   127\.0\.0\.1$")
        self.assertRegex(out, r"(?m)^  api  -             path /x does not match /api/\*$")
        self.assertRegex(out, r"(?m)^  all  ip:127\.0\.0\.1  token_bucket 1/day, burst 1: refuses; free in .*, 0 of 1 left")
        self.assertRegex(out, r"(?m)^verdict  refuse: rule all refuses")
        self.assertRegex(out, r"(?m)^answer   429$")
        self.assertRegex(self.command("explain", "/api/x")[1], r"(?m)^route    \*, .*\n           for localhost, because no host is given$")
        self.assertIn("-H \"rubbish\"", self.command("explain", "/", "-H", "rubbish")[2])
        self.assertIn('"GET" is not a URL; write a path such as "/api"', self.command("explain", "GET")[2])
        self.assertIn('"localhost/api" is not a URL; write "http://localhost/api", or only a path: "/localhost/api"',
                      self.command("explain", "POST", "localhost/api")[2])
        self.assertIn("write weir explain GET /api", self.command("explain", "/api", "GET")[2])
        said = json.loads(self.command("explain", "--json", "GET", "http://localhost/x")[1])
        self.assertEqual((said["verdict"]["verdict"], [each["name"] for each in said["rules"]]), ("refuse", ["api", "all"]))
        self.assertEqual(self.command("explain", "GET", "/", "--ip", "nobody")[0], 2)
        self.assertEqual(self.command("explain", "GET", "/", "-H", "rubbish")[0], 2)

    def test_commands_report_that_the_address_is_not_an_admin_listener(self):
        self.begin()
        self.upstream.reply = answer(b"{}")
        for command in (("explain", "/"), ("keys", "show", "per-ip", "127.0.0.1"), ("reload",), ("upgrade",)):
            done = subprocess.run([WEIR, *command, "--admin", f"127.0.0.1:{self.weir.port}"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), command)
            self.assertIn("this is not an admin listener of weir", done.stderr)

    def test_explain_command_says_how_to_start_weir_if_nothing_listens(self):
        weir = self.begin()
        done = subprocess.run([WEIR, "explain", "--config", str(weir.folder / "weir.toml"), "--admin", f"127.0.0.1:{closed_port()}",
                               "GET", "/"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Connection refused", done.stderr)
        self.assertIn("weir run --config", done.stderr)


class PlainNumbers(ExplainTestCase):
    def test_json_numbers_have_no_exponent_on_any_page_or_in_any_command(self):
        weir = self.begin(rule("window", "2/day", key='["ip"]', algorithm='"fixed_window"'), rule("log", "3/8h", key='["ip"]', algorithm='"sliding_log"'),
                          rule("elastic", "1/day", key='["ip"]', elastic='{ limit = "9/day", while_load_below = 0.5 }'))
        said = json.loads(self.command("explain", "/", "--json")[1])
        self.assertEqual(said["rules"][1]["limits"][0]["reset_after_seconds"], 28800)
        self.assertEqual(weir.get("/").status, 200)
        address = ("--admin", f"127.0.0.1:{weir.admin}")
        texts = [self.command("explain", "/", "--json")[1], self.command("keys", "show", "log", "127.0.0.1", "--json")[1],
                 subprocess.check_output([WEIR, "top", "--json", *address], text=True), subprocess.check_output([WEIR, "schema"], text=True)]
        texts += [get(weir.admin, page).body.decode() for page in ("/api/overview", "/api/history", "/api/rules", "/api/top", "/api/keys?rule=log&key=127.0.0.1")]
        texts.append(post(weir.admin, "/api/explain", {"host": "localhost", "path": "/"}).body.decode())
        for text in texts:
            self.assertEqual(re.findall(r'[:\[,]\s*-?[\d.]+[eE][-+]?\d+', text), [])
        self.assertRegex(texts[-1], r'"name":"log"[^}]*"reset_after_seconds":28800[,}]')


class KeyCommands(ExplainTestCase):
    def test_keys_page_shows_and_resets_one_key(self):
        weir = self.begin(rule("log", "2/day", key='["ip"]', algorithm='"sliding_log"'), rule("all", "3/day", key='["api_key|ip"]'))
        self.assertEqual(self.statuses(weir.port, 3), [200, 200, 429])
        status, said = self.keys("rule=log&key=127.0.0.1")
        self.assertEqual((status, said["key"], said["limits"][0]["remaining"], said["limits"][0]["says"]),
                         (200, ["ip:127.0.0.1"], 0, "refuse"))
        self.assertEqual(self.keys("rule=all&key=ip:127.0.0.1")[1]["limits"][0]["remaining"], 1)
        status, said = self.keys("rule=log&key=127.0.0.1", "DELETE")
        self.assertEqual((status, said["reset"], said["limits"][0]["remaining"]), (200, True, 0))
        digest = said["limits"][0]["digest"]
        audit = weir.wait_for(rf"admin: 127\.0\.0\.1:\d+ reset a key of rule log: {digest}")
        self.assertTrue(audit)
        self.assertEqual(self.keys("rule=log&key=127.0.0.1")[1]["limits"][0]["remaining"], 2)
        self.assertEqual(weir.get("/").status, 200)

    def test_key_bytes_that_are_not_text_are_shown_escaped_and_accepted_escaped(self):
        weir = self.begin(rule("tenant", "5/day", key='["query:tenant"]'))
        self.assertEqual(weir.get("/?tenant=a%FFb").status, 200)
        status, said = self.keys("rule=tenant&key=a%FFb")
        self.assertEqual((status, said["key"], said["limits"][0]["remaining"]), (200, ["query:tenant:a%FFb"], 4))
        self.assertIn("key query:tenant:a%FFb: reset", self.command("keys", "reset", "tenant", said["key"][0])[1])
        self.assertEqual(self.keys("rule=tenant&key=a%FFb")[1]["limits"][0]["remaining"], 5)
        self.assertIn("\ufffd", self.keys("rule=%FF&key=a")[1]["message"])

    def test_invalid_key_gets_an_error_with_the_parts_of_the_rules_key(self):
        self.begin(rule("pair", key='["ip", "method"]'), busy(1))
        status, said = self.keys("rule=nobody&key=a")
        self.assertEqual((status, "there are pair, busy" in said["message"]), (404, True))
        status, said = self.keys("rule=pair&key=127.0.0.1")
        self.assertEqual((status, "[ip, method]" in said["message"]), (400, True))
        self.assertEqual(self.keys("rule=pair&key=nobody&key=GET")[0], 400)
        status, said = self.keys("rule=busy&key=127.0.0.1", "DELETE")
        self.assertEqual((status, said["error"]), (409, "under_way"))

    def test_each_limit_of_a_key_is_shown_with_the_condition_under_which_it_applies(self):
        self.begin(rule("r", "1/day", key='["ip"]', tiers='{ pro = { limit = "5/day" } }',
                        overrides='[{ match = { path = "/x" }, limit = "7/day" }]', elastic='{ limit = "9/day", while_load_below = 0.5 }'))
        self.assertEqual(self.weir.get("/").status, 200)
        limits = self.keys("rule=r&key=127.0.0.1")[1]["limits"]
        self.assertEqual([limit.get("chosen_by") for limit in limits],
                         [None, "while load is below 0.5", "override 1 (path /x)", "tier pro"])
        self.assertEqual([limit["limit"] for limit in limits], [1, 9, 7, 5])

    def test_keys_command_shows_and_resets_a_key(self):
        weir = self.begin(rule("log", "2/day", key='["ip"]'))
        self.assertEqual(weir.get("/").status, 200)
        status, out, err = self.command("keys", "show", "log", "127.0.0.1")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"rule log, key ip:127\.0\.0\.1\n  token_bucket 2/day, burst 2: admits, 1 of 2 left, full in .*, memory")
        self.assertEqual(json.loads(self.command("keys", "show", "--json", "log", "127.0.0.1")[1])["limits"][0]["remaining"], 1)
        self.assertRegex(self.command("keys", "reset", "log", "127.0.0.1")[1], r"reset; its state before was\n.* 1 of 2 left")
        self.assertRegex(self.command("keys", "show", "log", "127.0.0.1")[1], r"2 of 2 left, memory")
        self.assertEqual(self.command("keys", "show", "log")[0], 2)

    def test_keys_command_works_without_the_configuration_file(self):
        text = config(closed_port(), rules=rule("log", "2/day", key='["ip"]')).replace("[admin]", '[admin]\ntoken = "0123456789abcdef"')
        weir = self.start(Weir(text))

        weir.get("/")

        def ask(*access, **environment):
            done = subprocess.run([WEIR, "keys", "show", "log", "127.0.0.1", "--admin", f"127.0.0.1:{weir.admin}", *access],
                                  capture_output=True, text=True, check=False, env={**os.environ, **environment})
            return done.returncode, done.stderr

        self.assertEqual(ask("--token", "0123456789abcdef"), (0, ""))
        self.assertEqual(ask(WEIR_ADMIN_TOKEN="0123456789abcdef"), (0, ""))
        status, err = ask()
        self.assertEqual(status, 1)
        self.assertIn("it requires its token; write --token TOKEN or --config FILE", err)
        self.assertIn("it has another token; write its own with --token TOKEN or --config FILE", ask("--token", "wrong")[1])


class KeysByShownText(ExplainTestCase):
    """Users can name a client by the text that weir shows for the client. The keys file contains only hashes, so weir knows no
    API key."""

    KEYS = "".join(f'[[key]]\nsha256 = "{hashlib.sha256(key).hexdigest()}"\nuser = "{user}"\ntier = "{tier}"\n'
                   for key, user, tier in ((b"paulas-key", "paula", "pro"), (b"adas-first", "ada", "free"), (b"adas-second", "ada", "free")))

    def begin(self, *rules, admin="", **more):
        self.upstream = self.start(Upstream())
        text = config(self.upstream.port, client='keys = "keys.toml"', rules="".join(rules), **more).replace("[admin]", f"[admin]\n{admin}")
        text = text.replace('access = "off"', 'access = "access.log"')
        self.weir = self.start(Weir(text, files={"keys.toml": self.KEYS}))
        return self.weir

    def logged(self):
        """Returns the access log's line about the last refusal."""
        log = self.weir.folder / "access.log"
        return eventually(lambda: [line for line in logged_requests(log) if line["status"] == 429], "the refusal is logged")[-1]

    def top(self, rule):
        return json.loads(get(self.weir.admin, f"/api/top?rule={rule}").body)["top"][0]["refused"]

    def frees(self, rule, text, key, limit):
        """Sends a request of paula, which is refused. Resets the key that the text names, and checks that paula is admitted
        again."""
        self.assertEqual(self.weir.get("/", x_api_key=key).status, 429)
        status, out, err = self.command("keys", "show", rule, *text)
        self.assertEqual((status, err), (0, ""), text)
        self.assertIn(f" 0 of {limit} left", out)
        status, out, err = self.command("keys", "reset", rule, *text)
        self.assertEqual((status, err), (0, ""), text)
        self.assertIn("reset; its state before", out)
        self.assertEqual(self.statuses(self.weir.port, limit + 1, x_api_key=key), [200] * limit + [429], text)

    def test_client_with_a_hashed_key_can_be_named_by_digest_label_or_user(self):
        self.begin(rule("per-key", "1/day", burst=1, key='["api_key|ip"]', tiers='{ pro = { limit = "2/day", burst = 2 } }'))
        self.assertEqual(self.statuses(self.weir.port, 3, x_api_key="paulas-key"), [200, 200, 429])
        digest = self.logged()["key"]
        shown = self.top("per-key")[0]
        self.assertEqual((shown["client"], shown["digest"]), ("api_key of paula", digest))
        for text in (["user:paula"], ["api_key of paula"], [digest], [digest.upper()], [digest[:8]], [f"digest:{digest}"],
                     [f"api_key of paula {digest[:8]}"], ["api_key", "of", "paula", digest[:8]]):
            self.frees("per-key", text, "paulas-key", 2)
        self.assertEqual(self.keys("rule=per-key&key=user:paula")[1]["key"], [f"api_key of paula {digest[:8]}"])

    def test_digest_in_the_access_log_identifies_a_key_even_if_top_is_0(self):
        for more in ({}, {"store": '"redis"'}):
            state = ""
            if more:
                state = f'redis = {{ url = "redis://127.0.0.1:{self.start(Redis()).port}/0", timeout = "2s" }}'
            self.begin(rule("per-key", "2/day", burst=2, key='["api_key"]', **more), rule("per-path", "9/day", key='["api_key", "path"]', **more),
                       admin="top = 0", state=state)
            eventually(self.weir.is_ready, "weir is ready")
            self.assertEqual(self.statuses(self.weir.port, 3, x_api_key="paulas-key"), [200, 200, 429])
            self.frees("per-key", [self.logged()["key"]], "paulas-key", 2)
            status, out, err = self.command("keys", "show", "per-key", "user:paula")
            self.assertEqual((status, out), (2, ""))
            self.assertIn('has no state for "user:paula"', err)
            self.assertIn("a digest", err)

    def test_keys_in_redis_can_be_named_by_label_and_by_digest(self):
        redis = self.start(Redis())
        self.begin(rule("per-key", "1/day", burst=1, key='["api_key"]', store='"redis"', tiers='{ pro = { limit = "2/day", burst = 2 } }'),
                   state=f'redis = {{ url = "redis://127.0.0.1:{redis.port}/0", timeout = "2s" }}')
        eventually(self.weir.is_ready, "weir is ready")
        self.assertEqual(self.statuses(self.weir.port, 3, x_api_key="paulas-key"), [200, 200, 429])
        for text in (["user:paula"], [self.top("per-key")[0]["digest"][:8]]):
            self.frees("per-key", text, "paulas-key", 2)

    def test_ambiguous_label_gets_an_error_that_asks_for_a_digest(self):
        self.begin(rule("per-key", "1/day", burst=1, key='["api_key"]'))
        for key in ("adas-first", "adas-second"):
            self.assertEqual(self.statuses(self.weir.port, 2, x_api_key=key), [200, 429])
        status, _, err = self.command("keys", "reset", "per-key", "user:ada")
        self.assertEqual(status, 2)
        self.assertIn('2 clients of rule per-key have the label "user:ada"', err)
        for each in self.top("per-key"):
            self.assertIn(each["digest"], err)
            self.assertEqual(self.command("keys", "reset", "per-key", each["digest"])[0], 0)
        self.assertEqual(self.weir.get("/", x_api_key="adas-second").status, 200)

    def test_key_of_several_parts_can_be_named_by_its_label_or_part_by_part(self):
        self.begin(rule("per-path", "1/day", burst=1, key='["api_key", "path"]'), rule("users", "9/day", key='["user"]'))
        self.assertEqual(self.statuses(self.weir.port, 2, x_api_key="paulas-key"), [200, 429])
        for text in (["user:paula", "path:/"], ["api_key of paula path:/"]):
            self.frees("per-path", text, "paulas-key", 1)
        self.assertEqual(self.keys("rule=users&key=user:paula")[1]["limits"][0]["limit"], 9)

    def test_keys_command_reports_that_a_rule_has_no_state_for_the_key(self):
        self.begin(rule("per-key", "10/day", key='["api_key"]'), rule("per-ip", "10/day", key='["ip"]'), rule("all", "10/day", key="[]"))
        for name, text in (("per-key", "user:nobody"), ("per-key", "0" * 32), ("per-key", "27de914d"), ("per-key", "paulas-kye"),
                           ("per-ip", "203.0.113.9"), ("per-ip", "0" * 32)):
            for what in ("show", "reset"):
                status, out, err = self.command("keys", what, name, text)
                self.assertEqual((status, out), (2, ""), (what, text))
                self.assertIn(f'rule {name} has no state for "{text}"', err)
        self.assertEqual(self.keys("rule=per-key&key=user:nobody")[0], 404)
        self.assertEqual(self.command("keys", "show", "per-ip", "paula")[0], 2)
        self.assertIn("10 of 10 left", self.command("keys", "show", "all")[1])
        self.assertEqual(self.weir.get("/").status, 200)
        self.assertIn("9 of 10 left", self.command("keys", "show", "per-ip", "127.0.0.1")[1])


class KeyResets(ExplainTestCase):
    """The test resets a key while four logins are in progress. These four logins succeed. After that, five logins fail."""

    def five_go_wrong(self, **more):
        held, gate = threading.Semaphore(0), threading.Event()

        def reply(exchange):
            if exchange.target == "/held":
                held.release()
                gate.wait(PATIENCE)
            exchange.send(answer(status="200 OK" if exchange.target == "/held" else "401 Unauthorized"))

        names = ("token_bucket", "fixed_window", "sliding_window", "sliding_log")
        self.begin(*(rule(name, "5/3000day", algorithm=f'"{name}"', key='["ip"]', charge='{ status = ["401"] }',
                          **({"store": '"redis"'} if more else {})) for name in names), **more)
        eventually(self.weir.is_ready, "weir is ready")
        self.upstream.reply = reply
        threads = [threading.Thread(target=self.weir.get, args=("/held",), daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
            self.assertTrue(held.acquire(timeout=PATIENCE))
        for name in names:
            self.assertEqual(self.keys(f"rule={name}&key=127.0.0.1", "DELETE")[0], 200)
        self.assertEqual(self.statuses(self.weir.port, 6), [401] * 5 + [429])
        gate.set()
        for thread in threads:
            thread.join(PATIENCE)
        for name in names:
            self.await_metric(self.weir, 4, "weir_settlements_total", rule=name, outcome="refunded")
            self.assertEqual(self.keys(f"rule={name}&key=127.0.0.1")[1]["limits"][0]["remaining"], 0, name)
        self.assertEqual(self.statuses(self.weir.port, 2), [429] * 2)

    def test_requests_from_before_a_reset_are_not_refunded(self):
        self.five_go_wrong()

    def test_requests_from_before_a_reset_are_not_refunded_in_redis(self):
        redis = self.start(Redis())
        self.five_go_wrong(state=f'redis = {{ url = "redis://127.0.0.1:{redis.port}/0", timeout = "2s" }}')

    def test_requests_from_before_a_reset_are_not_refunded_in_a_cluster(self):
        nodes = [self.start(Node()) for _ in range(3)]
        form(nodes)
        self.five_go_wrong(state=state(nodes, timeout="1s"))


class ExplainWithRedis(ExplainTestCase):
    RULES = {"bucket": ("2/day", {"burst": 2}), "window": ("2/3000day", {"algorithm": '"fixed_window"'}),
             "weighted": ("2/3000day", {"algorithm": '"sliding_window"'}), "log": ("2/day", {"algorithm": '"sliding_log"'}),
             "queue": ("1/day", {"algorithm": '"leaky_bucket"', "queue": 5, "match": '{ path = "/queue" }'})}

    def setUp(self):
        self.redis = self.start(Redis())
        rules = (rule(name, limit, store='"redis"', key='["ip"]', **more) for name, (limit, more) in self.RULES.items())
        self.begin(*rules, busy(2, store='"redis"'), state=f'redis = {{ url = "redis://127.0.0.1:{self.redis.port}/0", timeout = "2s" }}')
        eventually(self.weir.is_ready, "weir is ready")

    def dump(self):
        names = sorted(name.decode() for name in self.redis.command("KEYS", "*"))
        return {name: (self.redis.command("DUMP", name), self.redis.command("PEXPIRETIME", name)) for name in names}

    def test_explanation_leaves_redis_unchanged(self):
        self.assertEqual(self.weir.get("/queue").status, 200)
        eventually(lambda: self.keys("rule=busy&key=127.0.0.1")[1]["limits"][0]["remaining"] == 2, "no request is in progress")
        before = self.dump()
        said = self.explain(path="/queue")
        self.assertEqual([r["limits"][0]["store"] for r in said["rules"]], ["redis"] * (len(self.RULES) + 1))
        self.assertEqual([r["limits"][0]["remaining"] for r in said["rules"]][:4], [0] * 4)
        self.assertEqual((said["verdict"]["verdict"], said["verdict"]["rule"]), ("delay", "queue"))
        for name in (*self.RULES, "busy"):
            self.keys(f"rule={name}&key=127.0.0.1")
        self.assertEqual(self.dump(), before)
        self.assertEqual(self.statuses(self.weir.port, 2), [200, 429])
        self.assertEqual(self.explain(ip="127.0.0.1")["verdict"]["status"], 429)

    def test_reset_also_clears_redis_and_the_caches_of_this_instance(self):
        self.assertEqual(self.statuses(self.weir.port, 4), [200, 200, 429, 429])
        for name in ("bucket", "window", "weighted", "log"):
            status, said = self.keys(f"rule={name}&key=127.0.0.1", "DELETE")
            self.assertEqual((status, said["limits"][0]["remaining"]), (200, 0), name)
            self.assertEqual(self.keys(f"rule={name}&key=127.0.0.1")[1]["limits"][0]["remaining"], 2, name)
        self.assertEqual(self.statuses(self.weir.port, 3), [200, 200, 429], "no cache has kept the refusal")

    def test_explanation_names_the_setting_on_store_failure_if_redis_is_unreachable(self):
        self.redis.kill()
        eventually(lambda: "note" in self.keys("rule=bucket&key=127.0.0.1")[1]["limits"][0], "weir has noticed that Redis is down")
        said = self.explain(ip="127.0.0.1")
        limits = said["rules"][0]["limits"]
        self.assertEqual([limit["says"] for limit in limits], ["unknown", "admit"])
        self.assertIn("on_store_failure", limits[1]["note"])
        self.assertEqual(self.keys("rule=bucket&key=127.0.0.1", "DELETE")[0], 503)


if __name__ == "__main__":
    main()
