#!/usr/bin/env python3
"""weir replay of an access log that HTTP/2 clients have caused."""

import json
import random
import threading

from harness import Weir, answer, config, main, rule, run_weir
from http2_client import Http2Client
from protocol_pair import FIELDS, LoggedTestCase
from replay_test import RULES


class Replayed(LoggedTestCase):
    def ask(self, port, seed, rounds):
        """Sends streams together. The server does not answer two of them, which the client resets."""
        chance = random.Random(seed)
        with Http2Client(port) as client:
            for _ in range(rounds):
                with client.corked():
                    streams = [client.open(chance.choice(["GET", "PUT"]), f"/{chance.randrange(12)}", self.fields(chance))
                               for _ in range(18)]
                    held = [client.open("GET", "/held", self.fields(chance)) for _ in range(2)]
                client.ping()
                for stream in held:
                    if not client.answers[stream].ended:
                        client.reset(stream)
                for stream in streams:
                    client.read(stream)

    @staticmethod
    def fields(chance):
        keys = [("x-api-key", chance.choice(["one", "two"]))] if chance.random() < 0.7 else []
        return [("x-tenant", chance.choice("ab")), *keys]

    @staticmethod
    def say(exchange):
        if exchange.target == "/held":
            return exchange.wait_for_close()
        number = int(exchange.target[1:])
        return exchange.send(answer(status="404 Not Found" if number == 9 else "200 OK", headers=f"X-Tokens: {number % 5}\r\n"))

    def replay(self, text, log):
        file = self.folder / "candidate.toml"
        file.write_text(text)
        status, out, errors = run_weir("replay", "--config", str(file), "--json", str(log))
        self.assertEqual(status, 0, errors)
        return json.loads(out)

    def test_log_of_http2_requests_replays_with_the_same_decisions(self):
        log, rounds, clients = self.folder / "access.log", 25, 4
        self.upstream.reply = self.say
        text = config(self.upstream.port, rules=RULES, listener='protocols = ["http/1.1", "h2c"]\nhttp2 = { resets = "1000/s" }',
                      upstream='timeouts = { abandoned = "0s" }')
        text = text.replace('access = "off"', f'access = "{log}"\n{FIELDS}')
        weir = self.start(Weir(text))
        threads = [threading.Thread(target=self.ask, args=(weir.port, seed, rounds)) for seed in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.lines(log, 20 * rounds * clients)
        told = self.replay(text, log)
        self.assertEqual((told["lines"], told["requests"], told["left_out"]), (2000, 2000, {}))
        self.assertEqual((told["newly_refused"], told["newly_admitted"]), (0, 0))
        for one in told["rules"]:
            self.assertEqual((one["rule"], one["otherwise"], one["refused_now"]), (one["rule"], 0, one["refused_then"]))
            self.assertGreater(one["met"], 0, one["rule"])
        self.assertGreater(told["refused_now"], 100)

    def test_replay_of_http2_requests_shows_what_other_rules_would_refuse(self):
        log, limit = self.folder / "access.log", rule("per-ip", "20/day", key='["ip"]')
        weir, log = self.logged(limit)
        client = self.client(weir)
        streams = [client.open() for _ in range(50)]
        self.assertEqual([client.read(stream).status for stream in streams].count(200), 20)
        self.lines(log, 50)
        told = self.replay(config(1, rules=limit.replace("20/day", "5/day")), log)
        self.assertEqual((told["admitted_then"], told["admitted_now"], told["newly_refused"]), (20, 5, 15))


if __name__ == "__main__":
    main()
