#!/usr/bin/env python3
"""The machine's clock is changed while weir runs. Tokens, dates and logs use the new time. Limits use weir's own clock until weir
restarts."""

import base64
import email.utils
import hashlib
import hmac
import json
import os
import pathlib
import socket
import ssl
import tempfile
import time
import unittest

from harness import (PATIENCE, SANITIZED, TestCase, Upstream, Weir, config, eventually, get, main, make_certificate, metric,
                     request_bytes, rule)
from lineage import Lineage, adopt_orphans

LIBRARY = next(iter(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
SECRET = "s" * 40
CLAIM = rule("claim", "1000/day", key='["claim:sub"]', on_missing='"reject"')


def token(**claims):
    def text(octets):
        return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()
    body = ".".join(text(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return body + "." + text(hmac.new(SECRET.encode(), body.encode(), hashlib.sha256).digest())


def rfc3339(text):
    return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone


class MachineClock:
    """The machine's clock as the started processes see it. Their monotonic clock is the real one."""

    def __init__(self, seconds):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-clock-")
        self.file = pathlib.Path(self.folder.name) / "faketime"
        self.set(seconds)
        self.environment = {"LD_PRELOAD": str(LIBRARY), "FAKETIME_TIMESTAMP_FILE": str(self.file),
                            "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    def set(self, seconds):
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}\n")
        os.replace(fresh, self.file)


@unittest.skipIf(SANITIZED, "a sanitizer's library has to be the first")
@unittest.skipIf(LIBRARY is None, "libfaketime is not installed")
class ClockSet(TestCase):
    @classmethod
    def setUpClass(cls):
        adopt_orphans()

    def setUp(self):
        self.upstream = self.start(Upstream())
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-state-")))
        self.log = self.folder / "access.log"

    def text(self, rules, leeway="30s", log=False):
        text = config(self.upstream.port, rules=rules, state=f'memory = {{ snapshot = "{self.folder}/weir.state" }}',
                      client=f'jwt = {{ algorithm = "HS256", secret = "{SECRET}", leeway = "{leeway}" }}')
        return text.replace('access = "off"', f'access = "{self.log}"') if log else text

    def weir(self, clock, rules=CLAIM, **more):
        return self.start(Weir(self.text(rules, **more), environment=clock.environment))

    def judge(self, weir, **claims):
        return get(weir.port, authorization=f"Bearer {token(sub='ann', **claims)}").status

    def test_token_is_valid_as_soon_as_the_machines_clock_is_corrected(self):
        clock = MachineClock(3000)
        weir = self.weir(clock)
        expires = int(time.time()) + 1500
        self.assertEqual(self.judge(weir, exp=expires), 401, "the token has expired by the fast clock")
        clock.set(0)
        self.assertEqual(self.judge(weir, exp=expires), 200)

    def test_expired_token_is_rejected_after_the_clock_jumped_forward(self):
        clock = MachineClock(0)
        weir = self.weir(clock)
        expires = int(time.time()) + 3600
        self.assertEqual(self.judge(weir, exp=expires), 200)
        clock.set(8 * 3600)
        self.assertEqual(self.judge(weir, exp=expires), 401)
        self.assertEqual(self.judge(weir, nbf=expires), 200)

    def test_leeway_allows_small_clock_differences_for_tokens(self):
        weir = self.weir(MachineClock(0), leeway="1h")
        now = int(time.time())
        judged = [self.judge(weir, **claims) for claims in
                  ({"exp": now - 1800}, {"nbf": now + 1800}, {"exp": now - 5400}, {"nbf": now + 5400})]
        self.assertEqual(judged, [200, 200, 401, 401])

    def test_tls_session_ends_two_hours_after_its_full_handshake(self):
        """A resumed connection gets a new ticket, which must not prolong the session."""
        clock = MachineClock(0)
        listener = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }'
        weir = self.start(Weir(config(self.upstream.port, listener=listener), make_certificate(self.folder), environment=clock.environment))
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl._create_unverified_context()
            context.maximum_version = version
            session, resumed = None, []
            for minutes in (0, 90, 150):
                clock.set(60 * minutes)
                with socket.create_connection(("127.0.0.1", weir.port), PATIENCE) as wire:
                    with context.wrap_socket(wire, session=session) as client:
                        client.sendall(request_bytes("GET", "/"))
                        self.assertTrue(client.recv(65536).startswith(b"HTTP/1.1 "))  # the tickets precede the response
                        resumed.append(client.session_reused)
                        session = client.session
            self.assertEqual(resumed, [False, True, False], version)

    def test_date_field_and_access_log_follow_a_changed_clock(self):
        clock = MachineClock(3000)
        weir = self.weir(clock, log=True)
        clock.set(0)
        before = int(time.time())
        answers = [get(weir.port, authorization=f"Bearer {token(sub='ann')}"), get(weir.port)]
        self.assertEqual([answer.status for answer in answers], [200, 401])
        told = email.utils.parsedate_to_datetime(answers[1]["date"]).timestamp()
        self.assertTrue(before <= told <= time.time() + 1, answers[1]["date"])
        eventually(lambda: len(self.log.read_text().splitlines()) == 2, "both requests are in the log")
        for line in self.log.read_text().splitlines():
            self.assertTrue(before <= rfc3339(json.loads(line)["time"]) <= time.time() + 1, line)

    def test_beginning_and_end_of_a_clock_difference_are_logged_once(self):
        clock = MachineClock(0)
        weir = self.weir(clock)
        clock.set(-3000)
        weir.wait_for(r"warning clock: the system clock is 50 ?min behind the clock that limits use")
        clock.set(-4000)
        clock.set(0)
        weir.wait_for(r"info clock: .* agree again")
        self.assertEqual(len([line for line in weir.lines if " clock: " in line]), 2)

    RULES = (rule("day", "5/day", algorithm='"fixed_window"', key="[]", match='{ path = "/day" }')
             + rule("hour", "1/h", burst=5, key="[]", match='{ path = "/hour" }')
             + rule("log", "5/day", algorithm='"sliding_log"', key="[]", match='{ path = "/log" }'))

    def spend(self, weir, count):
        return [[get(weir.port, path).status for _ in range(count)] for path in ("/day", "/hour", "/log")]

    def check_moved(self, port, admin, shift):
        """Checks that spent units remain spent, and that they become available again at the right time of the new clock."""
        for path in ("/day", "/hour", "/log"):
            self.assertEqual(get(port, path).status, 200, path)
            refused = get(port, path)
            self.assertEqual(refused.status, 429, path)
            if path == "/hour":
                self.assertLessEqual(int(refused["retry-after"]), 3600)
            self.assertLessEqual(int(refused["x-ratelimit-reset"]), time.time() + 86400 + 2, path)
        self.assertLess(abs(metric(admin, "weir_clock_step_seconds")), 2)

    def test_snapshot_saved_with_a_fast_clock_is_corrected_when_restored(self):
        for fast in (3000, 20_000, -7200):
            with self.subTest(fast=fast):
                (self.folder / "weir.state").unlink(missing_ok=True)
                clock = MachineClock(fast)
                with Weir(self.text(self.RULES), environment=clock.environment) as weir:
                    self.assertEqual(self.spend(weir, 4), [[200] * 4] * 3)
                    clock.set(0)
                with Weir(self.text(self.RULES), environment=clock.environment) as weir:
                    weir.wait_for(rf"restored 3 keys.*; times shifted by {-fast} s")
                    self.check_moved(weir.port, weir.admin, -fast)

    def test_clock_set_back_while_weir_is_stopped_loses_no_state(self):
        clock = MachineClock(20_000)
        with Weir(self.text(self.RULES), environment=clock.environment) as weir:
            self.assertEqual(self.spend(weir, 4), [[200] * 4] * 3)
        clock.set(0)
        with Weir(self.text(self.RULES), environment=clock.environment) as weir:
            weir.wait_for(r"restored 3 keys")
            self.check_moved(weir.port, weir.admin, -20_000)

    def test_upgrade_shifts_the_state_to_the_corrected_clock(self):
        clock = MachineClock(3000)
        weir = self.start(Lineage(self.text(self.RULES), environment=clock.environment))
        self.assertEqual(self.spend(weir, 4), [[200] * 4] * 3)
        clock.set(0)
        weir.upgrade()
        weir.wait_for(r"took over with the state of 3 keys.*; times shifted by -3000 s")
        self.check_moved(weir.port, weir.admin, -3000)


class SystemdUnit(TestCase):
    def test_systemd_unit_starts_after_time_synchronisation(self):
        unit = pathlib.Path(os.environ.get("WEIR_SOURCE", "."), "packaging", "weir.service").read_text()
        self.assertRegex(unit, r"(?m)^After=.*\btime-sync\.target\b")


if __name__ == "__main__":
    main()
