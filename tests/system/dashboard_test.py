#!/usr/bin/env python3
"""The dashboard in a headless Chromium: it causes no errors, sends requests only to weir, updates itself and is readable."""

import json
import pathlib
import os
import re
import signal
import threading
import time
import unittest

from browser import Browser, find_chromium
from harness import PATIENCE, Client, TestCase, Upstream, Weir, answer, closed_port, config, eventually, get, main, rule
from http2_client import Http2Client

WEB = pathlib.Path(os.environ.get("WEIR_SOURCE", ".")) / "src" / "admin" / "web"
RULES = (rule("per-ip", "10/s", burst=5, key='["ip"]') + rule("candidate", "2/s", key='["ip"]', mode='"shadow"')
         + rule("login", "5/min", key='["ip"]', match='{ path = "/login" }'))
PHONE = 360  # pixels wide

# JavaScript that returns the lowest contrast between a text and its background, and that text (WCAG 2.1, 1.4.3).
CONTRAST = """(() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let worst = [99, ""];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || !element.checkVisibility() || element.closest("option, noscript")) continue;
    const [one, other] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < worst[0]) worst = [ratio, text];
  }
  return worst;
})()"""
UNLABELLED = """[...document.querySelectorAll("input, select, textarea, meter, table")]
  .filter((each) => !(each.labels?.length || each.getAttribute("aria-label") || each.closest("[aria-labelledby]"))).map((each) => each.outerHTML)"""

BADGES = """[...document.querySelectorAll(".badge")].filter((each) => each.checkVisibility() && each.textContent.length < 12).map((each) => {
  const text = document.createRange();
  text.selectNodeContents(each);
  return [each.textContent, text.getClientRects().length];
})"""


class Traffic:
    """Sends requests of one client until the `with` block ends."""

    def __init__(self, port):
        self.port, self.ending = port, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        with Client(self.port) as client:
            while not self.ending.is_set():
                client.get("/")
                time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join(10)


@unittest.skipUnless(find_chromium(), "needs Chromium: ./dev deps test")
class Dashboard(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.upstream = cls.enterClassContext(Upstream())
        cls.browser = cls.enterClassContext(Browser())

    def weir_of(self, token=None, rules=RULES, **more):
        text = config(self.upstream.port, rules=rules, **more)
        if token:
            text = text.replace("[admin]", f'[admin]\ntoken = "{token}"')
        return self.start(Weir(text))

    def open(self, weir, **how):
        page = self.browser.open(f"http://127.0.0.1:{weir.admin}/", **how)
        self.addCleanup(page.close)
        return page

    def await_figures(self, page, polls=2):
        page.await_true(f"document.documentElement.dataset.polls >= {polls}")

    def assert_clean(self, weir, page):
        self.assertEqual(page.complaints, [])
        own = f"http://127.0.0.1:{weir.admin}/"
        self.assertEqual([address for address in page.requests if not address.startswith(own)], [])

    def test_page_shows_current_data(self):
        weir = self.weir_of()
        with Traffic(weir.port):
            page = self.open(weir)
            page.await_true("document.querySelector('#headline').innerText.includes('limiting')")
            page.await_true("parseFloat(document.querySelector('[data-series=refused] output').innerText) > 10")
            page.await_true("parseFloat(document.querySelector('[data-series=admitted] output').innerText) > 3")
            self.assertIn("Healthy. 1 rule is limiting clients.", page.text("#headline"))
            self.assertRegex(page.text("#findings"), r"per-ip\s+refuses [\d.]+/s, since \d\d:\d\d:\d\d")
            self.assertRegex(page.text("#findings"), r"candidate\s+would refuse")
            rows = page.text("#rules tbody")
            self.assertRegex(rows, r"candidate\s+shadow")
            self.assertIn("token_bucket 10/s, burst 5", rows)
            self.assertLess(rows.index("per-ip"), rows.index("login"))  # the rules with the most refusals come first
            self.assertIn(self.upstream.address, page.text("#upstreams"))
            self.assertEqual(page.evaluate("[...document.querySelectorAll('.plot')].filter((plot) => plot.querySelector('canvas')).length"), 3)
            before = page.text("#freshness")
            page.await_true(f"document.querySelector('#freshness').innerText !== {before!r}")
            self.assert_clean(weir, page)

    def test_page_shows_which_connections_speak_http2(self):
        listener = 'protocols = ["http/1.1", "h2c"]'
        weir = self.weir_of(listener=listener)
        tile = """[...document.querySelectorAll("#tiles div")].map((each) => each.innerText).find((text) => text.startsWith("Connections"))"""
        page = self.open(weir)
        page.await_true(f"/0\\s+open, from clients/.test({tile})")
        with Http2Client(weir.port) as client, Client(weir.port) as other:
            client.get("/")
            other.get("/")
            page.await_true(f"/2\\s+1 HTTP.2 with 0 streams/.test({tile})")
        self.assert_clean(weir, page)

    def test_texts_have_enough_contrast_and_size_on_every_screen(self):
        weir = self.weir_of()
        self.statuses(weir.port, 20)
        page = self.open(weir)
        self.await_figures(page)
        grounds = set()
        for width, phone in ((1280, False), (PHONE, True)):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    page.resize(width, 800, phone)
                    page.prefer(dark)
                    # Charts are drawn again in the next frame.
                    page.await_true(f"document.documentElement.scrollWidth <= {width}")
                    ratio, text = page.evaluate(CONTRAST)
                    self.assertGreaterEqual(ratio, 4.5, text)
                    grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(grounds), 2)
        self.assertEqual(page.evaluate(UNLABELLED), [])
        self.assert_clean(weir, page)

    def test_short_badges_are_not_wrapped_on_a_phone(self):
        weir = self.weir_of(rules=RULES + rule("a-rule-whose-name-is-far-longer-than-phones-are-wide", "1/day", key='["ip"]', mode='"shadow"'))
        with Traffic(weir.port):
            page = self.open(weir)
            page.await_true("['candidate', 'a-rule-whose'].every((name) => document.querySelector('#findings').innerText.includes(name))")
            for width in (390, PHONE, 320):
                with self.subTest(width=width):
                    page.resize(width, 800, True)
                    page.await_true(f"document.documentElement.scrollWidth <= {width}")
                    badges = page.evaluate(BADGES)
                    self.assertIn(["candidate", 1], badges)
                    self.assertEqual([badge for badge in badges if badge[1] != 1], [])

    def test_shadow_rule_is_marked_in_every_list(self):
        weir = self.weir_of()
        self.statuses(weir.port, 20)
        page = self.open(weir)
        page.await_true("document.querySelector('#top-rules').innerText.includes('candidate')")
        rules = page.evaluate("[...document.querySelectorAll('.heavy-rule')].map((rule) => rule.innerText)")
        self.assertRegex(rules[0], r"^per-ip\s+Refused\s")
        self.assertRegex(rules[-1], r"^candidate\s+shadow\s+Would be refused\s")
        self.assertNotRegex(rules[-1], r"\bRefused\b")

    def test_page_shows_the_rules_in_use_first_if_there_are_a_thousand(self):
        weir = self.weir_of(rules="".join(rule(f"tenant-{i}", "1/day", key='["ip"]', match=f'{{ path = "/{i}" }}') for i in range(1000)))
        page = self.open(weir)

        def first_is_used():
            self.statuses(weir.port, 1, "/999")  # the page shows only what happens between two of its readings
            return page.evaluate("document.querySelector('#rules tbody tr')?.innerText.startsWith('tenant-999')")

        eventually(first_is_used, "the rule in use is the first on the page", 2 * PATIENCE)
        self.assertEqual(page.evaluate("document.querySelectorAll('#rules tbody tr').length"), 101)
        self.assertIn("900 more rules; /api/rules lists all.", page.text("#rules tbody"))
        self.assert_clean(weir, page)

    def test_rows_of_a_short_list_of_clients_are_not_stretched(self):
        weir = self.weir_of(client='trusted_proxies = ["127.0.0.1"]', rules=rule("per-ip", "2/day", key='["ip"]'))
        for client in range(6):
            self.statuses(weir.port, 3 if client == 0 else 1, x_forwarded_for=f"203.0.113.{client}")
        page = self.open(weir)
        page.await_true("document.querySelectorAll('.heavy tbody tr').length === 7")
        heights = page.evaluate("[...document.querySelectorAll('.heavy tbody tr')].map((row) => row.getBoundingClientRect().height)")
        self.assertLess(max(heights) - min(heights), 2, heights)  # only one row has a border, which takes two pixels

    def test_digest_is_shown_only_beside_names_that_several_clients_may_have(self):
        rules = rule("per-ip", "2/day", key='["ip"]') + rule("per-tenant", "2/day", key='["header:x-tenant"]')
        weir = self.weir_of(client='trusted_proxies = ["127.0.0.1"]', rules=rules)
        self.statuses(weir.port, 1, x_forwarded_for="2001:db8::1", x_tenant="acme")
        page = self.open(weir)
        page.await_true("document.querySelectorAll('.heavy td.code').length === 2")
        names = sorted(page.evaluate("[...document.querySelectorAll('.heavy td.code')].map((cell) => cell.innerText)"))
        self.assertEqual(names[0], "2001:db8::")
        self.assertRegex(names[1], r"^header:x-tenant [0-9a-f]{8}$")

    def test_headline_names_failures_but_not_rules_that_limit_clients(self):
        self.upstream_away = closed_port()
        text = config(self.upstream.port, self.upstream_away, rules=RULES, upstream='eject = { least = "1h", most = "1h" }')
        weir = self.start(Weir(text))
        self.statuses(weir.port, 20)
        page = self.open(weir)
        page.await_true("document.querySelector('#findings').innerText.includes('servers')")
        page.await_true("document.querySelector('#headline').innerText.includes('limiting')")
        self.assertEqual(page.text("#headline"), "Needs attention: upstream api. 1 rule is limiting clients.")
        self.assertIn(f"1 of 2 servers is down: 127.0.0.1:{self.upstream_away}.", page.text("#findings"))
        self.assertIn("ejected 1 time since the start", page.text("#upstreams"))
        self.assert_clean(weir, page)

    def test_page_shows_what_operators_changed_about_servers(self):
        weir = self.start(Weir(config(self.upstream.port, closed_port())))
        change = {"upstream": "api", "server": self.upstream.address, "drained": True, "weight": 5}
        with Client(weir.admin) as client:
            got = client.request("POST", "/api/servers", {"Content-Type": "application/json"}, json.dumps(change).encode())
            self.assertEqual(got.status, 200)
        page = self.open(weir)
        self.await_figures(page)
        self.assertIn(f"1 of 2 servers is drained: {self.upstream.address}.", page.text("#findings"))
        shown = page.text("#upstreams")
        for text in ("drained", "0 requests in flight, weight 5 instead of 1"):
            self.assertIn(text, shown)
        self.assertIn("Needs attention: upstream api.", page.text("#headline"))
        self.assert_clean(weir, page)

    def test_headline_says_that_weir_was_told_to_stop(self):
        weir = self.weir_of(server='drain_delay = "5min"')
        page = self.open(weir)
        page.await_true("document.querySelector('#headline').innerText.includes('Healthy')")
        weir.signal(signal.SIGTERM)
        page.await_true("document.querySelector('#headline').innerText === 'About to drain'")
        self.assertIn("weir was told to stop. It serves until drain_delay is over.", page.text("#findings"))
        self.assert_clean(weir, page)
        weir.signal(signal.SIGTERM)

    def test_explanation_on_the_page_agrees_with_the_real_decision(self):
        weir = self.weir_of(rules=rule("candidate", "1/day", key='["ip"]', mode='"shadow"') + rule("per-ip", "9/day", key='["ip"]'),
                            routes='[[route]]\nname = "api"\nmatch = { path = "/api/*" }\nupstream = "api"')
        self.statuses(weir.port, 2, "/api/x")
        page = self.open(weir)
        self.await_figures(page, 1)
        page.evaluate("document.querySelector('#explain-path').value = ''")
        page.type("#explain-path", "/none")
        page.press("Enter", 13)
        page.await_true("document.querySelector('#explanation .headline')")
        self.assertRegex(page.text("#explanation .headline"), r"answer 404\s+no route matches; every enforced rule admits it")
        self.assertRegex(page.text("#explanation tbody"), r"candidate\s+shadow[\s\S]*would refuse")

    def test_entered_request_is_explained_on_the_page(self):
        weir = self.weir_of()
        page = self.open(weir)
        self.await_figures(page, 1)
        page.evaluate("document.querySelector('#explain-path').value = ''")
        page.type("#explain-path", "/login")
        page.type("#explain-ip", "203.0.113.7")
        page.press("Enter", 13)
        page.await_true("document.querySelector('#explanation').innerText.includes('login')")
        self.assertIn("per-ip", page.text("#explanation"))
        self.assert_clean(weir, page)

    def test_entered_body_is_explained_on_the_page(self):
        weir = self.weir_of(rules=rule("logins", "1/day", key='["json:/email"]'))
        page = self.open(weir)
        self.await_figures(page, 1)
        page.type("#explain-body", '{"email":"ada"}')
        page.evaluate("document.querySelector('#explain-form button').click()")
        page.await_true("document.querySelector('#explanation').innerText.includes('json:/email:ada')")
        self.assert_clean(weir, page)

    def test_button_lifts_the_penalty_of_a_refused_key(self):
        weir = self.weir_of(token="right", rules=rule("log in", "1/day", key='["ip"]', penalty='{ after = 1, for = "2h" }'))
        self.assertEqual(self.statuses(weir.port, 3), [200, 429, 429])
        page = self.open(weir)
        page.await_true("document.querySelector('#login').checkVisibility()")
        page.type("#token", "right")
        page.press("Enter", 13)
        self.await_figures(page, 1)
        page.type("#explain-ip", "127.0.0.1")
        page.press("Enter", 13)
        page.await_true("document.querySelector('#explanation').innerText.includes('penalty for')")
        page.evaluate("document.querySelector('#explanation tbody button').click()")
        page.await_true("!document.querySelector('#explanation').innerText.includes('penalty')")
        self.assertRegex(page.text("#explanation tbody"), r"\sadmit\s")
        self.assertFalse(page.evaluate("!!document.querySelector('#explanation tbody button')"), "nothing is left to reset")
        self.assertEqual(self.statuses(weir.port, 1), [200])
        weir.wait_for(r"reset a key of rule log in")
        self.assert_clean(weir, page)

    def test_button_says_why_a_key_cannot_be_reset(self):
        release = threading.Event()
        upstream = self.start(Upstream(lambda exchange: (release.wait(60), exchange.send(answer()))))
        self.addCleanup(release.set)
        weir = self.start(Weir(config(upstream.port, rules=rule("at once", key='["ip"]', algorithm='"concurrency"')
                                      .replace('"1/day"', "1"))))
        self.start(Client(weir.port)).send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        eventually(lambda: upstream.exchanges, "the request is in flight")
        page = self.open(weir)
        self.await_figures(page, 1)
        page.type("#explain-ip", "127.0.0.1")
        page.press("Enter", 13)
        page.await_true("document.querySelector('#explanation tbody button')")
        page.evaluate("document.querySelector('#explanation tbody button').click()")
        page.await_true("document.querySelector('#explanation .fault')?.innerText.includes('requests in flight')")

    def test_page_asks_for_the_token_if_it_is_required(self):
        weir = self.weir_of(token="right")
        page = self.open(weir)
        page.await_true("document.querySelector('#login').checkVisibility()")
        self.assertEqual(page.text("#login-fault"), "")
        page.type("#token", "wrong")
        page.press("Enter", 13)
        page.await_true("document.querySelector('#login-fault').innerText.includes('Wrong token')")
        page.type("#token", "right")
        page.press("Enter", 13)
        self.await_figures(page, 1)
        self.assertEqual(page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]"), [1, 0, ""])
        page.command("Page.reload")
        page.await_true("document.querySelector('#login').hidden && document.documentElement.dataset.polls >= 1")
        page.evaluate("document.querySelector('#forget').click()")
        page.await_true("document.querySelector('#login').checkVisibility() && sessionStorage.length === 0")
        self.assertFalse([address for address in page.requests if "right" in address])
        self.assert_clean(weir, page)

    def test_page_reports_that_weir_does_not_answer(self):
        weir = self.weir_of()
        page = self.open(weir)
        self.await_figures(page, 1)
        self.assertEqual(weir.stop(), 0)
        page.await_true("document.documentElement.classList.contains('stale')")
        self.assertRegex(page.text("#trouble"), r"weir does not answer\. The data below is \d+ s old\.")

    def test_dashboard_page_needs_no_token_but_its_data_does(self):
        weir = self.weir_of(token="right")
        page = get(weir.admin, "/")
        self.assertEqual((page.status, page["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", page["content-security-policy"])
        self.assertEqual(get(weir.admin, "/", if_none_match=page["etag"]).status, 304)
        for path in re.findall(r'(?:src|href)="(/[^"]*)"', page.body.decode()):
            self.assertEqual(get(weir.admin, path).status, 200, path)
        for path in ("/api/overview", "/api/history"):
            self.assertEqual(get(weir.admin, path).status, 401)


class DashboardFiles(unittest.TestCase):
    def test_page_contains_no_third_party_files(self):
        self.assertEqual([each.name for each in WEB.iterdir() if each.is_dir()], [])
        for file in WEB.iterdir():
            self.assertLess(max(map(len, file.read_text().splitlines())), 1000, f"{file.name} is minified")


if __name__ == "__main__":
    main()
