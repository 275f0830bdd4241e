#!/usr/bin/env python3
"""The guides for those who keep their own proxy: nginx and Caddy with the configurations of docs/guides and docker/, which ask a
real weir about each request. Only ports, paths of files and timeouts are changed."""

import os
import re
import signal
import subprocess
import tempfile
import threading

from documents import TREE, blocks, commands, in_its_folder, is_keys_file, is_whole, on_free_ports
from harness import PATIENCE, WEIR, Client, TestCase, Upstream, Weir, answer, chunked, closed_port, eventually, main, request_bytes, run_weir, together
from processes import pause
from proxies import Caddy, Nginx

TOKEN = "0123456789abcdef0123456789abcdef"
DAY = 86400


def page(name):
    return TREE / "docs/guides" / f"{name}.md"


def block_of(name, language, text=""):
    """Returns the first block of the guide in this language that contains the text."""
    return next(block.text for block in blocks(page(name), language) if text in block.text)


def service(exchange):
    exchange.read_body()
    exchange.send(answer(b"pong", status="403 Forbidden" if exchange.target == "/forbidden" else "200 OK"))


class Behind:
    """Tests of a proxy that asks weir. A subclass for each proxy says how to start the proxy, and what it answers while weir is away."""

    guide = None
    away = ()  # statuses while weir is stopped, and while it does not answer in time
    admitted_fields = True  # whether admitted answers have the rate-limit fields
    keys = True  # whether the configuration knows API keys

    def setUp(self):
        self.upstream = self.start(Upstream(service))
        self.weir = self.start(self.make_weir())
        self.proxy = self.start(self.make_proxy())

    def weir_text(self):
        return next(block.text for block in blocks(page(self.guide), "toml") if is_whole(block))

    def make_weir(self, trusted=""):
        """Starts the guide's weir. `trusted`: a setting for its [client]."""
        files = {"keys.toml": "".join(block.text for block in blocks(page(self.guide), "toml") if is_keys_file(block))}
        text = on_free_ports(in_its_folder(self.weir_text()), "").replace("[client]", f"[client]\n{trusted}")
        return Weir(text, files, {"WEIR_ASK_TOKEN": TOKEN})

    def proxy_text(self):
        raise NotImplementedError

    def make_proxy(self, change=lambda text: text, port=None, patient=True):
        """Starts the proxy. `port`: the port of weir; None: the weir of this test. `patient`: true if the proxy waits longer for weir than
        the guide says, because the machine may be slow."""
        text = self.proxy_text()
        if patient:
            text = re.sub(r"\b((?:proxy_connect|proxy_read|dial|response_header)_timeout) \w+", rf"\1 {PATIENCE}s", text)
        for name in ("127.0.0.1:9100", "weir:9100"):
            text = text.replace(name, f"127.0.0.1:{port or self.weir.port}")
        for name in ("127.0.0.1:9001", "app:9001"):
            text = text.replace(name, self.upstream.address)
        return self.kind(change(text.replace("${WEIR_ASK_TOKEN}", TOKEN).replace("{$WEIR_ASK_TOKEN}", TOKEN)))

    def ask(self, path="/reports/1", source="127.0.0.1", proxy=None, method="GET", body=b"", **headers):
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        with Client((proxy or self.proxy).port, source=source) as client:
            return client.request(method, path, fields, body)

    def ask_often(self, count, **request):
        return [self.ask(**request).status for _ in range(count)]

    def test_weir_check_with_strict_accepts_the_configuration_of_the_guide_without_warnings(self):
        folder = self.weir.folder
        environment = {**os.environ, "WEIR_ASK_TOKEN": TOKEN}
        done = subprocess.run([WEIR, "check", "--strict", folder / "weir.toml"], capture_output=True, text=True, timeout=2 * PATIENCE,
                              env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_parallel_requests_get_exactly_the_limit(self):
        statuses = together(12, lambda number: self.ask(f"/reports/{number}").status)
        self.assertEqual(sorted(statuses), [200] * 5 + [429] * 7)
        self.assertEqual(len(self.upstream.exchanges), 5, "refused requests do not reach the application")

    def test_refusal_says_when_to_retry(self):
        self.assertEqual(self.ask_often(5), [200] * 5)
        refused = self.ask()
        self.assertEqual((refused.status, refused["content-type"]), (429, "application/json"), refused.raw)
        self.assertTrue(1 <= int(refused["retry-after"]) <= DAY, refused.raw)
        self.assertEqual((refused["x-ratelimit-limit"], refused["x-ratelimit-remaining"]), ("5", "0"))
        self.assertEqual(refused.json()["error"], "rate_limit_exceeded")

    def test_admitted_answers_have_the_rate_limit_fields(self):
        admitted = self.ask()
        self.assertEqual(admitted.body, b"pong")
        wanted = ("5", "4") if self.admitted_fields else (None, None)
        self.assertEqual((admitted["x-ratelimit-limit"], admitted["x-ratelimit-remaining"]), wanted, admitted.raw)

    def test_each_address_has_its_own_limit(self):
        self.assertEqual(self.ask_often(6, source="127.0.0.2"), [200] * 5 + [429])
        self.assertEqual(self.ask_often(6, source="127.0.0.3"), [200] * 5 + [429])

    def test_each_api_key_has_its_own_limit(self):
        if not self.keys:
            return self.assertNotIn("api_key", self.weir_text())
        for key in ("ann-1", "bob-1"):
            self.assertEqual(self.ask_often(6, X_API_Key=key), [200] * 5 + [429])
        self.assertEqual(self.ask_often(6, X_API_Key="invented"), [200] * 5 + [429], "counts by the address")
        return self.assertEqual(self.ask().status, 429)

    def test_forged_forwarding_fields_of_a_client_do_not_evade_its_limit(self):
        lies = {"X_Forwarded_Uri": "/", "X_Forwarded_Method": "PURGE", "X_Forwarded_Host": "other", "X_Forwarded_Proto": "https"}
        statuses = [self.ask(X_Forwarded_For=f"203.0.113.{number}", X_Real_IP=f"203.0.113.{number}", **lies).status for number in range(6)]
        self.assertEqual(statuses, [200] * 5 + [429])

    def test_request_of_a_page_in_a_browser_is_admitted(self):
        self.assertEqual(self.ask(Origin="https://example.com", Sec_Fetch_Site="cross-site", Cookie="a=b").status, 200)

    def test_bodies_and_queries_reach_the_application(self):
        body = b"x" * 200_000
        self.assertEqual(self.ask("/upload?refuse=599&a=b", method="POST", body=body).status, 200)
        self.assertEqual((self.upstream.exchanges[-1].target, self.upstream.exchanges[-1].body), ("/upload?refuse=599&a=b", body))
        with Client(self.proxy.port) as client:
            client.send(b"PUT /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body))
            self.assertEqual(client.read("PUT").status, 200)
        self.assertEqual(self.upstream.exchanges[-1].body, body)
        self.assertEqual(self.ask(method="POST", body=body).status, 200)

    def test_client_gets_the_status_of_the_application(self):
        self.assertEqual(self.ask("/forbidden").status, 403)

    def test_questions_use_few_connections(self):
        with Client(self.proxy.port) as client:
            self.assertEqual([client.get("/").status for _ in range(50)], [200] * 50)
        self.assertEqual(self.weir.metric("weir_decide_questions_total", api="forward_auth", result="allowed"), 50)
        self.assertLess(self.weir.metric("weir_connections_accepted_total"), 20, "admin listener included")

    def test_fail_closed_proxy_refuses_and_fail_open_proxy_forwards_while_weir_is_stopped(self):
        port = closed_port()
        closed, opened = self.start(self.make_proxy(port=port)), self.start(self.make_proxy(self.opened, port))
        self.assertEqual(self.ask("/", proxy=closed).status, self.away[0])
        self.assertEqual(self.upstream.exchanges, [])
        self.assertEqual(self.ask("/reports/1?a=b", proxy=opened, method="POST", body=b"text").status, 200)
        self.assertEqual(self.upstream.exchanges[-1].body, b"text")
        self.assertEqual(self.ask("/forbidden", proxy=opened).status, 403)

    def test_fail_closed_proxy_refuses_and_fail_open_proxy_forwards_while_weir_does_not_answer(self):
        closed, opened = self.start(self.make_proxy(patient=False)), self.start(self.make_proxy(self.opened, patient=False))
        pause(self.weir)
        try:
            self.assertEqual(self.ask("/", proxy=closed).status, self.away[1])
            self.assertEqual(self.ask("/", proxy=opened).status, 200)
        finally:
            self.weir.signal(signal.SIGCONT)

    def test_commands_of_the_guide_print_the_shown_output(self):
        """Runs only the guide's commands of curl, and compares their output. The other commands install and start what this test starts
        itself."""
        curl = f"curl() {{ command curl --connect-to ':8080:127.0.0.1:{self.proxy.port}' \"$@\"; }}\n"
        seen = 0
        for block in blocks(page(self.guide), "console"):
            for command, wanted in commands(block):
                if "curl" not in command:
                    continue
                done = subprocess.run(["bash", "-c", curl + command], capture_output=True, text=True, timeout=2 * PATIENCE)
                pattern = re.escape("\n".join(wanted)).replace("…", ".*")
                self.assertRegex("\n".join(line.rstrip() for line in done.stdout.splitlines()), f"^{pattern}$", command)
                seen += 1
        self.assertGreater(seen, 0)

    def test_explain_command_of_the_guide_admits_the_request(self):
        for command in re.findall(r"^    (weir explain .*)$", page(self.guide).read_text(), re.M):
            words = command.replace("--config /etc/weir/weir.toml", f"--admin 127.0.0.1:{self.weir.admin}").split()[1:]
            self.assertRegex(run_weir(*words)[1], "(?s)reports .*admits.*answer +200")


class BehindNginx(Behind, TestCase):
    guide, kind, away = "behind-nginx", Nginx, (500, 500)

    def proxy_text(self):
        return block_of(self.guide, "nginx", "server {").replace("listen 8080;", "listen 127.0.0.1:PORT;")

    @staticmethod
    def opened(text):
        return re.sub(r"# (error_page .*@weir_is_away;)", r"\1", text)

    def rules(self, text):
        """Starts a weir with these rules in place of the guide's, and a proxy that asks it."""
        listener = self.weir_text().partition("[client]")[0]
        self.weir = self.start(Weir(on_free_ports(listener, "") + text))
        self.proxy = self.start(self.make_proxy())

    def test_request_that_nginx_itself_denies_gets_403(self):
        proxy = self.start(self.make_proxy(lambda text: text.replace("location / {", "location / { deny 127.0.0.5;")))
        self.assertEqual(self.ask("/", proxy=proxy, source="127.0.0.5").status, 403)
        self.assertEqual(self.ask("/", proxy=proxy).status, 200)

    def test_second_weir_is_asked_if_the_first_is_unreachable(self):
        both = f"server 127.0.0.1:{closed_port()} max_fails=0; server 127.0.0.1:{self.weir.port};"
        proxy = self.start(self.make_proxy(lambda text: text.replace(f"server 127.0.0.1:{self.weir.port};", both)))
        self.assertEqual(self.ask_often(12, proxy=proxy), [200] * 5 + [429] * 7)

    def test_nginx_executes_a_return_directive_without_asking_weir(self):
        ping = "location = /ping { auth_request /_weir; return 200 pong; } location / {"
        proxy = self.start(self.make_proxy(lambda text: text.replace("location / {", ping)))
        self.assertEqual(self.ask("/ping", proxy=proxy).body, b"pong")
        self.assertEqual(self.weir.metric("weir_decide_questions_total"), 0)

    def test_weir_answers_questions_on_a_unix_socket(self):
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-socket-"))
        text = on_free_ports(self.weir_text().partition("[client]")[0], "")
        text += f'[[ listener ]]\naddress = "unix:{folder}/ask.sock"\nserves = "decide"\n'  # the blanks keep the harness from waiting for its port
        weir = self.start(Weir(text + '[[rule]]\nname = "one"\nkey = ["ip"]\nlimit = "1/day"\n'))
        weir.wait_for("listening on unix:")
        proxy = self.start(self.make_proxy(lambda text: text.replace(f"server 127.0.0.1:{self.weir.port};", f"server unix:{folder}/ask.sock;")))
        self.assertEqual([self.ask("/", source, proxy).status for source in ("127.0.0.2", "127.0.0.2", "127.0.0.3")], [200, 429, 200])

    def test_client_address_is_believed_only_from_the_load_balancer(self):
        self.weir = self.start(self.make_weir(trusted='trusted_proxies = ["127.0.0.9"]'))
        self.proxy = self.start(self.make_proxy())
        for client in ("203.0.113.7", "203.0.113.8"):
            self.assertEqual(self.ask_often(6, source="127.0.0.9", X_Forwarded_For=client), [200] * 5 + [429])
        self.assertEqual(self.ask_often(6, X_Forwarded_For="203.0.113.9"), [200] * 5 + [429], "not from the load balancer")
        self.assertEqual(self.ask(X_Forwarded_For="203.0.113.10").status, 429)

    def test_rule_that_charges_by_status_charges_every_request_because_weir_sees_no_status(self):
        self.rules("""[[rule]]
            name = "logins"
            key = ["ip"]
            algorithm = "sliding_log"
            limit = "3/day"
            charge = { status = ["401", "403"] }""")
        self.assertEqual(self.ask_often(4, path="/login"), [200] * 3 + [429])

    def test_delayed_request_waits_in_weir(self):
        self.rules("""[[rule]]
            name = "slowly"
            key = ["ip"]
            algorithm = "leaky_bucket"
            limit = "4/s"
            queue = 3""")
        statuses = together(6, lambda _: self.ask("/").status)
        self.assertEqual(sorted(statuses), [200] * 4 + [429] * 2)
        times = sorted(exchange.arrived for exchange in self.upstream.exchanges)
        self.assertGreater(times[-1] - times[0], 0.7, "four departures, 250 ms apart")

    def test_concurrency_limit_bounds_questions_and_not_requests(self):
        self.rules("""[[rule]]
            name = "at-once"
            key = ["ip"]
            algorithm = "concurrency"
            limit = 1""")
        release = threading.Event()
        self.upstream.reply = lambda exchange: (release.wait(PATIENCE), exchange.send(answer()))
        with Client(self.proxy.port) as first, Client(self.proxy.port) as second:
            for number, client in enumerate((first, second), 1):  # two questions at once would exceed the limit
                client.send(request_bytes("GET", "/"))
                eventually(lambda wanted=number: len(self.upstream.exchanges) == wanted, "the request is at the application")
            release.set()
            self.assertEqual([first.read().status, second.read().status], [200, 200])

    def test_nginx_answers_429_whatever_status_the_rule_states(self):
        self.rules("""[[rule]]
            name = "plan"
            key = ["ip"]
            limit = "1/day"
            status = 402
            body = "pay"
            """)
        self.assertEqual(self.ask_often(2), [200, 429])

    def test_request_without_the_key_of_the_rule_gets_401(self):
        self.rules("""[[rule]]
            name = "users"
            key = ["api_key"]
            on_missing = "reject"
            limit = "1/day"
            """)
        refused = self.ask()
        self.assertEqual(refused.status, 401, refused.raw)
        self.assertIn("www-authenticate", refused)


class BehindNginxInDocker(BehindNginx):
    """docker/compose.nginx.yaml: with a token, and without API keys."""

    keys = False
    test_client_address_is_believed_only_from_the_load_balancer = test_request_without_the_key_of_the_rule_gets_401 = None
    test_rule_that_charges_by_status_charges_every_request_because_weir_sees_no_status = None
    test_concurrency_limit_bounds_questions_and_not_requests = None
    test_delayed_request_waits_in_weir = None
    test_nginx_answers_429_whatever_status_the_rule_states = test_commands_of_the_guide_print_the_shown_output = None
    test_explain_command_of_the_guide_admits_the_request = None
    test_weir_answers_questions_on_a_unix_socket = None

    def weir_text(self):
        return (TREE / "docker/ask/weir.toml").read_text()

    def proxy_text(self):
        return (TREE / "docker/ask/nginx.conf.template").read_text().replace("listen 8080;", "listen 127.0.0.1:PORT;")

    @staticmethod
    def opened(text):
        return re.sub(r"(proxy_read_timeout \w+;)", r"\1 error_page 500 502 504 = @away;", text).replace(
            "location / {", "location @away { return 204; } location / {")

    def test_client_gets_500_if_nginx_has_a_wrong_token_for_weir(self):
        proxy = self.start(self.make_proxy(lambda text: text.replace(TOKEN, TOKEN[::-1])))
        refused = self.ask("/", proxy=proxy)
        self.assertEqual((refused.status, "www-authenticate" in refused), (500, False))
        self.assertEqual(self.weir.metric("weir_decide_denied_total"), 1)


class BehindCaddy(Behind, TestCase):
    guide, kind, away, admitted_fields = "behind-caddy-traefik", Caddy, (502, 504), False

    def proxy_text(self):
        return block_of(self.guide, "caddyfile", "forward_auth").replace(":8080 {", "http://:PORT {")

    def opened(self, text):
        errors = block_of(self.guide, "caddyfile", "handle_errors").replace("127.0.0.1:9001", self.upstream.address)
        return text.rstrip().removesuffix("}") + errors + "}\n"

    def test_client_address_is_believed_only_from_the_load_balancer(self):
        self.weir = self.start(self.make_weir(trusted='trusted_proxies = ["127.0.0.9"]'))
        self.proxy = self.start(self.make_proxy(lambda site: site.replace("uri /v1", "trusted_proxies 127.0.0.9/32\n\t\turi /v1")))
        for client in ("203.0.113.7", "203.0.113.8"):
            self.assertEqual(self.ask_often(6, source="127.0.0.9", X_Forwarded_For=client), [200] * 5 + [429])
        self.assertEqual(self.ask_often(6, X_Forwarded_For="203.0.113.9"), [200] * 5 + [429], "not from the load balancer")

    def test_client_gets_the_refusal_of_weir(self):
        self.ask_often(5)
        refused = self.ask()
        self.assertEqual((refused.json()["rule"], refused.json()["retry_after_seconds"]), ("reports", int(refused["retry-after"])))
        self.assertEqual(refused["cache-control"], "no-store")


class BehindCaddyWithFields(BehindCaddy):
    """The guide's longer configuration of Caddy, which keeps the rate-limit fields of admitted answers."""

    admitted_fields = True

    def proxy_text(self):
        return block_of(self.guide, "caddyfile", "handle_response").replace(":8080 {", "http://:PORT {")

    test_client_address_is_believed_only_from_the_load_balancer = None


class BehindCaddyInDocker(BehindCaddy):
    """docker/compose.caddy.yaml: with a token, and without API keys."""

    keys = False
    test_client_address_is_believed_only_from_the_load_balancer = None
    test_commands_of_the_guide_print_the_shown_output = None
    test_explain_command_of_the_guide_admits_the_request = None

    def weir_text(self):
        return (TREE / "docker/ask/weir.toml").read_text()

    def proxy_text(self):
        return (TREE / "docker/ask/Caddyfile").read_text().replace(":8080 {", "http://:PORT {")


class Traefik(TestCase):
    """Questions as Traefik 3 asks them (forward.go, forwarded_header.go): a GET with the fields of the client's request, and with the
    fields X-Forwarded-… and X-Real-Ip."""

    def test_question_of_traefik_is_charged_to_the_client_of_the_described_request(self):
        behind = Behind()
        behind.guide = "behind-caddy-traefik"
        weir = self.start(behind.make_weir())
        fields = {"User-Agent": "curl", "Accept": "*/*", "Accept-Encoding": "gzip", "Origin": "https://example.com", "X-Api-Key": "ann-1",
                  "X-Forwarded-Host": "api.example.com", "X-Forwarded-Method": "POST", "X-Forwarded-Port": "443", "X-Forwarded-Proto": "https",
                  "X-Forwarded-Server": "edge", "X-Forwarded-Uri": "/reports/1?refuse=500", "X-Real-Ip": "203.0.113.7", "X-Forwarded-For": "203.0.113.7"}
        with Client(weir.port) as traefik:
            answers = [traefik.request("GET", "/v1/forward-auth", fields) for _ in range(6)]
            self.assertEqual([one.status for one in answers], [200] * 5 + [429])
            self.assertEqual(answers[5].json()["retry_after_seconds"], int(answers[5]["retry-after"]))
            del fields["X-Api-Key"]
            self.assertEqual([traefik.request("GET", "/v1/forward-auth", fields).status for _ in range(6)], [200] * 5 + [429])


if __name__ == "__main__":
    main()
