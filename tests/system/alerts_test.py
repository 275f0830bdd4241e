#!/usr/bin/env python3
"""Alerts: weir posts a message to a webhook when refusals or failures become too frequent, and another message when they are rare
again. A slow webhook delays no other webhook."""

import http.server
import json
import signal
import ssl
import tempfile
import threading
import time
import unittest

from harness import (PATIENCE, Client, Redis, TestCase, Upstream, Weir, answer, closed_port, config, eventually, logged_requests,
                     main, make_certificate, rule)
from own_etc import WAY, Names, NameServer


class Receiver:
    """A webhook that responds with each of `statuses` in turn, then with 200."""

    def __init__(self, *statuses, certificate=None):
        self.statuses, self.posts, receiver = list(statuses), [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.posts.append((time.monotonic(), self.path, dict(self.headers), json.loads(body)))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def states(self):
        return [(post[3]["alert"], post[3]["state"]) for post in self.posts]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def alert(port, scheme="http", host="127.0.0.1", above='refused_above = "3/s"', what='rule = "per-ip"', path="/hook?a=b", **more):
    lines = ["[[alert]]", what, above, f'webhook = "{scheme}://{host}:{port}{path}"', *(f"{key} = {value}" for key, value in more.items())]
    return "\n".join(lines) + "\n"


class Alerts(TestCase):
    KEYS = '[[key]]\nkey = "s3cret-of-ada"\nuser = "ada"\n[[key]]\nkey = "s3cret-of-bob"\nuser = "bob"\n'

    def setUp(self):
        self.upstream = self.start(Upstream())
        self.rules = rule(limit="1/day", key='["ip"]')

    def weir_of(self, *alerts, rules=None, state=""):
        text = config(self.upstream.port, rules=(self.rules if rules is None else rules) + "".join(alerts), state=state)
        return self.start(Weir(text))

    def surge(self, weir, count=6):
        self.statuses(weir.port, count)

    def test_beginning_and_end_of_an_alert_are_posted(self):
        receiver = self.start(Receiver())
        weir = self.weir_of(alert(receiver.port, name='"logins"', authorization='"Bearer hush"'))
        self.statuses(weir.port, 4)  # three refusals do not exceed the threshold of three a second
        self.await_metric(weir, 3, "weir_decisions_total", outcome="refused")
        time.sleep(2.2)  # waits until the refusals are older than a second
        self.assertEqual(receiver.posts, [])
        self.surge(weir)
        eventually(lambda: receiver.posts, "the alert is posted")
        _, path, headers, said = receiver.posts[0]
        self.assertEqual((path, headers["Authorization"], headers["Content-Type"]), ("/hook?a=b", "Bearer hush", "application/json"))
        self.assertLessEqual({"alert": "logins", "state": "firing", "rule": "per-ip", "above": "3/s", "repeated": False}.items(), said.items())
        self.assertEqual(said["refusals"], 6)
        self.assertIn("6 refusals of rule per-ip", said["text"])
        self.assertEqual(weir.metric("weir_alert_firing", alert="logins"), 1)
        eventually(lambda: len(receiver.posts) == 2, "the end of the alert is posted")
        self.assertEqual(receiver.states(), [("logins", "firing"), ("logins", "ended")])
        self.assertEqual(receiver.posts[1][3]["since"], said["since"])
        self.await_metric(weir, 2, "weir_alert_posts_total", alert="logins")
        self.assertEqual([weir.metric("weir_alerts_total", state=state) for state in ("firing", "ended")], [1, 1])
        self.assertEqual(weir.metric("weir_alert_firing"), 0)

    def test_alert_on_each_client_names_the_client_that_is_refused_too_often(self):
        receiver = self.start(Receiver())
        limits = rule("by-key", limit="1/day", key='["api_key"]')
        watched = alert(receiver.port, what='rule = "by-key"', above='key_refused_above = "3/s"', name='"clients"', max_clients=2)
        text = config(self.upstream.port, rules=limits + watched, client='keys = "keys.toml"')
        text = text.replace('access = "off"', 'access = "access.log"\nfields = ["status", "key"]')
        weir = self.start(Weir(text, files={"keys.toml": self.KEYS}))
        self.assertEqual(self.statuses(weir.port, 3, x_api_key="s3cret-of-bob"), [200, 429, 429])
        self.assertEqual(self.statuses(weir.port, 7, x_api_key="s3cret-of-ada"), [200] + [429] * 6)
        eventually(lambda: receiver.posts, "the alert is posted")
        said = receiver.posts[0][3]
        self.assertLessEqual({"alert": "clients", "state": "firing", "rule": "by-key", "client": "api_key of ada", "refusals": 6,
                              "above": "3/s"}.items(), said.items())
        lines = eventually(lambda: (read := logged_requests(weir.folder / "access.log"))[9:] and read, "the requests are logged")
        refused = [line["key"] for line in lines if line["status"] == 429]
        self.assertEqual(sorted(key == said["digest"] for key in refused), [False] * 2 + [True] * 6)
        self.assertIn(f"6 refusals of client {said['digest']} (api_key of ada) by rule by-key", said["text"])
        self.assertEqual(weir.metric("weir_alert_firing", alert="clients"), 1)
        eventually(lambda: len(receiver.posts) == 2, "the end of the alert is posted")
        self.assertEqual([post[3]["digest"] for post in receiver.posts], [said["digest"]] * 2)
        self.assertEqual(receiver.states(), [("clients", "firing"), ("clients", "ended")])
        self.assertNotIn("s3cret", json.dumps([post[3] for post in receiver.posts]) + weir.log())

    def test_log_says_that_a_newer_message_replaces_one_that_the_webhook_may_not_have_received(self):
        may_close = threading.Event()
        receiver = self.start(Upstream(lambda exchange: (exchange.read_body(), may_close.wait(4 * PATIENCE), exchange.close())))
        weir = self.weir_of(alert(receiver.port, name='"logins"', timeout='"1min"'))
        self.surge(weir)
        eventually(lambda: receiver.exchanges, "the first message is being sent")
        eventually(lambda: weir.metric("weir_alert_firing", alert="logins") == 0, "the alert has ended")
        may_close.set()
        weir.wait_for("alert logins: .* may not have received the message: it closed the connection before a response; a newer message replaces it")

    def test_lasting_alert_is_posted_again(self):
        receiver = self.start(Receiver())
        weir = self.weir_of(alert(receiver.port, repeat='"1s"', posts='"100/min"'))
        ending = threading.Event()

        def go_on():
            while not ending.is_set():
                self.statuses(weir.port, 1)
                time.sleep(0.1)

        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        eventually(lambda: len(receiver.posts) >= 3, "the alert is posted again")
        ending.set()
        thread.join(PATIENCE)
        self.assertEqual([post[3]["repeated"] for post in receiver.posts[:3]], [False, True, True])
        (weir.folder / "weir.toml").write_text(config(self.upstream.port, rules=self.rules))
        weir.signal(signal.SIGHUP)
        eventually(lambda: receiver.states()[-1] == ("per-ip", "ended"),
                   "the alert that the configuration no longer has is posted as ended")

    def test_webhook_that_missed_all_attempts_gets_the_present_state_later(self):
        receiver = self.start(Receiver(*[503] * 1000))
        weir = self.weir_of(alert(receiver.port, attempts=1, posts='"100/min"'))
        self.surge(weir)
        eventually(lambda: ("per-ip", "ended") in receiver.states(), "weir tries to post the end of the alert")
        eventually(lambda: weir.metric("weir_alert_posts_failed_total") >= 1, "the message counts as failed")
        receiver.statuses.clear()
        self.await_metric(weir, 1, "weir_alert_posts_total")
        self.assertEqual(receiver.states()[-1], ("per-ip", "ended"))

    def test_alerts_on_failures_of_an_upstream_and_of_redis_are_posted(self):
        receiver, redis = self.start(Receiver()), self.start(Redis())
        self.upstream.reply = answer(status="500 Internal Server Error")
        rules = rule("shared", limit="1000/s", store='"redis"', on_store_failure='"open"')
        above = 'failures_above = "3/min"'
        weir = self.weir_of(alert(receiver.port, what='upstream = "api"', above=above), alert(receiver.port, what='store = "redis"', above=above),
                            rules=rules, state=f'redis = {{ url = "{redis.url}" }}\nkey_secret = "s"')
        eventually(weir.is_ready, "weir is ready")
        self.surge(weir)
        eventually(lambda: ("api", "firing") in receiver.states(), "responses of the upstream count as failures")
        self.assertEqual(receiver.posts[0][3]["failures"], 6)
        redis.kill()
        with Client(weir.port) as client:
            eventually(lambda: client.get("/") and ("redis", "firing") in receiver.states(), "the alert on Redis is posted")


@unittest.skipUnless(WAY, "unshare(1) may give no mount namespace here, so weir cannot have an /etc/hosts of its own")
class WebhookNames(TestCase):
    def test_webhook_host_name_is_looked_up_again_if_the_first_lookup_timed_out(self):
        upstream, receiver = self.start(Upstream()), self.start(Upstream(lambda exchange: exchange.wait_for_close()))
        names, server = self.start(Names()), self.start(NameServer())
        names.ask(server)
        told = alert(receiver.port, host="hook.test", timeout='"200ms"', posts='"100/min"', name='"late"')
        weir = self.start(Weir(config(upstream.port, rules=rule(limit="1/day", key='["ip"]') + told), within=names.within()))
        self.statuses(weir.port, 6)
        server.await_question()
        time.sleep(0.5)  # the test needs an attempt that has timed out
        server.speak("127.0.0.1")
        eventually(lambda: weir.metric("weir_alert_posts_retried_total", alert="late") >= 1, "the first attempt was too late")
        receiver.reply = answer()
        self.await_metric(weir, 1, "weir_alert_posts_total", alert="late")


    def test_slow_look_up_of_a_webhook_name_does_not_delay_other_alerts(self):
        upstream, receiver = self.start(Upstream()), self.start(Receiver())
        names, server = self.start(Names(known="127.0.0.1")), self.start(NameServer())
        names.ask(server)
        alerts = [alert(receiver.port, host="slow.test", name='"slow"', timeout='"1s"'),
                  alert(receiver.port, name='"numeric"', timeout='"20s"'),
                  alert(receiver.port, host="known.test", name='"named"', timeout='"20s"')]
        weir = self.start(Weir(config(upstream.port, rules=rule(limit="1/day", key='["ip"]') + "".join(alerts)), within=names.within()))
        self.statuses(weir.port, 6)
        server.await_question()  # the name server has the question and sends no response
        eventually(lambda: sorted(name for name, _ in receiver.states()) == ["named", "numeric"], "the other alerts are posted")
        weir.wait_for("alert slow: its webhook at slow.test:.* did not accept the message: the DNS lookup timed out; trying again")
        eventually(lambda: weir.metric("weir_alert_posts_superseded_total", alert="slow") == 1,
                   "the message about the firing alert is replaced")
        self.assertEqual(weir.metric("weir_alert_posts_total", alert="slow"), 0)
        server.speak("127.0.0.1")
        eventually(lambda: ("slow", "ended") in receiver.states(), "the end is posted when the name is known")


class WebhookFailures(TestCase):
    """Several alerts on one rule. Each alert posts to a webhook that fails in its own way."""

    @classmethod
    def setUpClass(cls):
        upstream = cls.enterClassContext(Upstream())
        with tempfile.TemporaryDirectory() as folder:
            files = {name: text for each in ("hook", "other") for name, text in make_certificate(folder, each, address="127.0.0.1").items()}
            files |= make_certificate(folder, "named")
            cls.https, cls.named = (cls.enterClassContext(Receiver(certificate=(f"{folder}/{name}.crt", f"{folder}/{name}.key")))
                                    for name in ("hook", "named"))
        def quits(sent):
            return cls.enterClassContext(Upstream(lambda exchange: (exchange.read_body(), exchange.send(sent), exchange.close())))

        cls.busy, cls.wrong = cls.enterClassContext(Receiver(503, 429)), cls.enterClassContext(Receiver(404))
        silent = cls.enterClassContext(Upstream(lambda exchange: exchange.wait_for_close()))
        above = 'refused_above = "3/min"'
        alerts = [alert(silent.port, above=above, name='"patient"', timeout='"1min"'),  # other alerts do not wait for this webhook
                  alert(cls.busy.port, above=above, name='"busy"'),
                  alert(cls.wrong.port, above=above, name='"wrong"'),
                  alert(closed_port(), above=above, name='"nobody"', attempts=1),
                  alert(silent.port, above=above, name='"silent"', attempts=1, timeout='"200ms"'),
                  alert(quits(b"").port, above=above, name='"leaver"', attempts=1),
                  alert(quits(b"HTTP/1.1 20").port, above=above, name='"cutter"', attempts=1),
                  alert(quits(b"SSH-2.0-OpenSSH_9.2\r\n\r\n").port, above=above, name='"other"', attempts=1),
                  alert(cls.https.port, "https", "127.0.0.1", above, name='"good"', ca='"hook.crt"'),
                  alert(cls.https.port, "https", "127.0.0.1", above, name='"stranger"', ca='"other.crt"', attempts=1),
                  alert(cls.named.port, "https", "127.0.0.1", above, name='"misnamed"', ca='"named.crt"', attempts=1)]
        cls.weir = cls.enterClassContext(Weir(config(upstream.port, rules=rule(limit="1/day", key='["ip"]') + "".join(alerts)), files))
        with Client(cls.weir.port) as client:
            for _ in range(6):
                client.get("/")

    def has_failed(self, name, why, and_then="trying again"):
        eventually(lambda: self.weir.metric("weir_alert_posts_failed_total", alert=name) >= 1, f"{name} has failed")
        self.weir.wait_for(f"alert {name}: .*{why}.*; {and_then}")

    def test_webhook_that_responds_503_is_tried_again(self):
        eventually(lambda: len(self.busy.posts) == 3, "the third attempt is made")
        self.assertEqual(len({json.dumps(post[3]) for post in self.busy.posts}), 1)
        self.await_metric(self.weir, 1, "weir_alert_posts_total", alert="busy")
        self.assertEqual([self.weir.metric(f"weir_alert_posts_{what}_total", alert="busy") for what in ("retried", "failed")], [2, 0])

    def test_message_that_the_webhook_rejects_is_dropped(self):
        self.has_failed("wrong", "it returned 404", "giving up")
        self.assertEqual(len(self.wrong.posts), 1)
        self.assertNotIn("/hook", self.weir.log())

    def test_message_is_dropped_at_last_if_the_webhook_is_unreachable_or_does_not_respond(self):
        self.has_failed("nobody", "no connection")
        self.has_failed("silent", "no response in time")

    def test_log_says_that_a_webhook_without_a_valid_response_may_have_the_message(self):
        self.has_failed("leaver", "may not have received the message: it closed the connection before a response")
        self.has_failed("cutter", "may not have received the message: it closed the connection during the response")
        self.has_failed("other", "may not have received the message: its response is not HTTP")

    def test_certificate_of_an_https_webhook_is_verified(self):
        self.await_metric(self.weir, 1, "weir_alert_posts_total", alert="good")
        self.has_failed("stranger", "its TLS handshake failed")
        self.has_failed("misnamed", "its TLS handshake failed")
        self.assertEqual(self.https.states(), [("good", "firing")])
        self.assertEqual(self.named.states(), [])


if __name__ == "__main__":
    main()
