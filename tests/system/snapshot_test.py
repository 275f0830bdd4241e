"""With a snapshot in [state.memory], a restart keeps all state. An unusable snapshot does not prevent the start."""

import pathlib
import re
import signal
import subprocess
import tempfile

from harness import PATIENCE, WEIR, TestCase, Upstream, Weir, answer, config, main, request_bytes, rule

RULES = (rule("day", "5/day", algorithm='"fixed_window"', key='["api_key"]')
         + rule("log", "20/day", algorithm='"sliding_log"', key="[]")
         + rule("spin", "1000000/s", algorithm='"gcra"', key='["ip"]'))


class Snapshot(TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weir-state-")))
        self.file = self.folder / "weir.state"
        self.upstream = self.start(Upstream())

    def text(self, rules=RULES, max_keys=1000, **more):
        state = f'memory = {{ max_keys = {max_keys}, snapshot = "{self.file}" }}'
        return config(self.upstream.port, rules=rules, state=state, **more)

    def spend(self, weir, key, count):
        return [status for _ in range(count) for status in [weir.get("/", **{"X-API-Key": key}).status]]

    def run_once(self, key, count, how=signal.SIGTERM, **text):
        """Runs a weir until it stops. Returns the statuses and the log lines about snapshots."""
        with Weir(self.text(**text)) as weir:
            statuses = self.spend(weir, key, count)
            weir.signal(how)
            self.assertEqual(weir.wait(), 0)
            return statuses, [line for line in weir.lines if re.search(r"snapshot|restored|saved", line)]

    def test_counts_of_a_daily_limit_survive_restarts(self):
        statuses, lines = self.run_once("a", 3)
        self.assertEqual(statuses, [200] * 3)
        self.assertRegex(lines[0], r"info no snapshot at .*weir\.state yet")
        self.assertRegex(lines[1], r"info saved [23] keys to .*weir\.state in \d+ ms \(\d+ bytes\)")
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)

        statuses, lines = self.run_once("a", 4, how=signal.SIGINT)
        self.assertEqual(statuses, [200, 200, 429, 429])
        self.assertRegex(lines[0], r"info restored 2 keys from .* in \d+ ms")
        # All clients share the sliding log, which has five entries now. So 15 of 20 units are left.
        statuses, _ = self.run_once("b", 1)
        self.assertEqual(statuses, [200])
        statuses = sum((self.run_once(f"c{i}", 5)[0] for i in range(3)), [])
        self.assertEqual(statuses, [200] * 14 + [429])
        self.assertEqual([path.name for path in self.folder.iterdir()], ["weir.state"])

    def test_units_owed_by_a_client_survive_restarts(self):
        self.upstream.reply = lambda exchange: exchange.send(answer(headers="X-Tokens: 9000\r\n"))
        tokens = rule("tokens", "10000/day", algorithm='"sliding_log"', key="[]",
                      cost='{ response_header = "X-Tokens", reserve = 1 }')
        self.assertEqual(self.run_once("a", 3, rules=tokens)[0], [200, 200, 429])
        statuses, lines = self.run_once("a", 1, rules=tokens)
        self.assertEqual(statuses, [429])
        self.assertRegex(lines[0], "restored 1 key")

    def test_message_counts_of_a_sliding_log_rule_survive_restarts(self):
        """A client switches to the WebSocket protocol and sends a text frame."""
        def echo(exchange):
            exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            exchange.send(exchange.wire.read_exactly(7)[:1] + b"\x01x")

        chat = rule("chat", "3/day", algorithm='"sliding_log"', key="[]", messages='"1/day"')
        fields = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        with Weir(self.text(rules=chat)) as weir:
            self.upstream.reply = echo
            with weir.connect() as client:
                client.send(request_bytes("GET", "/", fields))
                self.assertEqual(client.read().status, 101)
                client.send(b"\x81\x81\0\0\0\0x")
                self.assertEqual(client.wire.read_exactly(3), b"\x81\x01x")
                self.await_metric(weir, 1, "weir_messages_total", rule="chat")
            weir.signal(signal.SIGTERM)
            self.assertEqual(weir.wait(), 0)
        self.upstream.reply = answer()
        statuses, lines = self.run_once("a", 3, rules=chat)
        self.assertRegex(lines[0], "restored 2 keys")
        self.assertEqual(statuses, [200, 200, 429])

    def test_after_a_restart_only_a_rule_with_a_changed_algorithm_has_an_empty_count(self):
        self.assertEqual(self.run_once("a", 5)[0], [200] * 5)
        statuses, lines = self.run_once("a", 7, rules=RULES.replace("5/day", "6/day").replace("fixed_window", "sliding_window"))
        self.assertEqual(statuses, [200] * 6 + [429])
        self.assertRegex(lines[0], r"restored 1 key from .*; 1 belonged to removed or changed rules")

    def test_limit_that_a_restart_changes_keeps_the_percentage_that_is_used(self):
        """If half of the old limit was used, half of the new limit is used. This also holds for tiers, even if weir is
        restarted twice before the client returns."""
        def tiered(limit, of_tier):
            return rule("day", limit, algorithm='"fixed_window"', key='["api_key"]',
                        tiers=f'{{ pro = {{ limit = "{of_tier}" }} }}')

        keys = {"keys.toml": '[[key]]\nkey = "a"\n[[key]]\nkey = "b"\ntier = "pro"\n'}
        given = {"client": 'keys = "keys.toml"'}
        with Weir(self.text(tiered("5/day", "4/day"), **given), keys) as weir:
            self.assertEqual(self.spend(weir, "a", 3) + self.spend(weir, "b", 3), [200] * 6)
            weir.signal(signal.SIGTERM)
            self.assertEqual(weir.wait(), 0)
        with Weir(self.text(tiered("50/day", "8/day"), **given), keys) as weir:
            self.assertEqual(self.spend(weir, "b", 3), [200, 200, 429])
            weir.signal(signal.SIGTERM)
            self.assertEqual(weir.wait(), 0)
        with Weir(self.text(tiered("10/day", "8/day"), **given), keys) as weir:
            self.assertEqual(self.spend(weir, "a", 5), [200] * 4 + [429])
            self.assertEqual(self.spend(weir, "b", 1), [429])

    def test_damaged_snapshot_is_renamed_and_not_used(self):
        self.run_once("a", 5)
        whole = self.file.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        for damage, why in ((whole[:-9], "ends early|is damaged"), (bytes(flipped), "is damaged"), (b"", "ends early"),
                            (b"[state]\nmemory", "is not a snapshot"), (whole[:8] + b"\1" + whole[9:], "has version 1")):
            with self.subTest(why):
                self.file.write_bytes(damage)
                statuses, lines = self.run_once("a", 1)
                self.assertEqual(statuses, [200])
                self.assertRegex(lines[0], rf"warning snapshot \S*weir\.state ({why}).*; renamed to \S*weir\.state\.damaged")
                self.assertEqual((self.folder / "weir.state.damaged").read_bytes(), damage)

    def test_latest_snapshot_remains_after_the_process_was_killed(self):
        self.run_once("a", 4)
        weir = Weir(self.text())
        try:
            self.assertEqual(self.spend(weir, "a", 2), [200, 429])
            weir.process.kill()
            weir.wait()
        finally:
            weir.process.stderr.close()
            weir.scratch.cleanup()
        self.assertEqual(self.run_once("a", 2)[0], [200, 429])

    def test_snapshot_folder_without_write_permission_is_rejected(self):
        for path, why in ((self.folder / "none" / "weir.state", "which is not a folder"), (self.folder, "which is a folder")):
            self.file = path
            written = self.folder / "weir.toml"
            written.write_text(self.text())
            for command in ("check", "run"):
                done = subprocess.run([WEIR, command, "--config", written], capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, rf"weir\.toml:\d+: state\.memory\.snapshot: found .*{why}")


if __name__ == "__main__":
    main()
