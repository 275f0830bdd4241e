"""Sends the same requests by HTTP/1.1 and by HTTP/2 to two weirs with one configuration, and compares what the rules tell the clients."""

import dataclasses
import re

from harness import PATIENCE, Client, Weir, eventually
from http2_client import Http2Client, Http2TestCase

TOLD = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-exceeded", "ratelimit-policy", "www-authenticate", "cache-control",
        "content-type", "allow")
OUTCOMES = ("charged", "refunded", "surplus", "debt", "untold", "unreadable", "unanswered")
TIMES = ("retry-after", "x-ratelimit-reset", "ratelimit")


@dataclasses.dataclass
class Ask:
    """A request. `fields`: pairs, or a dictionary whose names may have underscores for hyphens."""

    path: str = "/"
    method: str = "GET"
    fields: list = ()
    body: bytes = None
    host: str = "localhost"

    def pairs(self):
        return [(name.replace("_", "-").lower(), value) for name, value in self.fields.items()] if isinstance(self.fields, dict) \
            else list(self.fields)


class Asker:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class OldClient(Asker):
    """Asks by HTTP/1.1. Connects again if weir has closed the connection after an answer."""

    def __init__(self, port, ahead=b"", **more):
        self.port, self.ahead, self.more, self.client = port, ahead, more, None

    def ask(self, ask):
        if self.client is None:
            self.client = Client(self.port, **self.more)
            self.client.send(self.ahead)
        length = [] if ask.body is None else [("content-length", str(len(ask.body)))]
        lines = [f"{ask.method} {ask.path} HTTP/1.1", f"Host: {ask.host}", *(f"{name}: {value}" for name, value in ask.pairs() + length)]
        self.client.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (ask.body or b""))
        response = self.client.read(ask.method)
        if response["connection"] == "close":
            self.close()
        return response

    def close(self):
        if self.client is not None:
            self.client.sock.close()
            self.client = None


class NewClient(Asker):
    """Asks by HTTP/2, on one connection."""

    def __init__(self, port, ahead=b"", **more):
        self.http2 = Http2Client(port, ahead=ahead, **more)

    def ask(self, ask):
        return self.http2.request(ask.method, ask.path, ask.pairs(), ask.body, authority=ask.host)

    def close(self):
        self.http2.sock.close()


def told(response):
    """Returns what the answer tells of the rules, without times."""
    return {"status": response.status, **{name: response.all(name) for name in TOLD},
            "timed": [name for name in (*TIMES, "x-request-id") if name in response],
            "left": [re.sub(r";t=\d+", "", value) for value in response.all("ratelimit")],
            "body": re.sub(rb"\d+", b"N", response.body)}


def times(response):
    """Returns the numbers of seconds that the answer tells."""
    return [int(number) for name in TIMES for value in response.all(name) for number in re.findall(r"(?:^|t=)(\d+)", value)]


class PairTestCase(Http2TestCase):
    def pair(self, *rules, files=None, **more):
        """Returns two weirs with one configuration, which have no state in common."""
        text = self.text(doors=more.pop("doors", [False]), rules="".join(rules), **more)
        return [self.start(Weir(text, {**self.files, **(files or {})})) for _ in range(2)]

    def same(self, pair, asks, clients=None):
        """Sends the requests to the first weir by HTTP/1.1 and to the second one by HTTP/2, one after another. Checks that the
        answers tell the same, and returns those of HTTP/2."""
        old, new = clients or (OldClient(pair[0].port), NewClient(pair[1].port))
        with old, new:
            answers = [(old.ask(ask), new.ask(ask)) for ask in asks]
        for ask, (one, other) in zip(asks, answers):
            self.assertEqual(told(other), told(one), ask)
            for first, second in zip(times(one), times(other), strict=True):
                self.assertAlmostEqual(first, second, delta=PATIENCE, msg=ask)
        return [other for _, other in answers]

    def statuses_of(self, pair, asks):
        return [response.status for response in self.same(pair, asks)]

    def assert_own_refusal(self, response, status, word):
        self.assert_own_error(response, status)
        self.assertIn(word, response.json()["message"])


class SettledTestCase(PairTestCase):
    def settled(self, weir, name):
        """Returns how often each result of a settlement has occurred."""
        counts = {outcome: int(weir.metric("weir_settlements_total", rule=name, outcome=outcome)) for outcome in OUTCOMES}
        return {outcome: count for outcome, count in counts.items() if count}

    def await_settled(self, weir, name, **expected):
        eventually(lambda: self.settled(weir, name) == expected, f"{name} settled {expected}, now {self.settled(weir, name)}")
