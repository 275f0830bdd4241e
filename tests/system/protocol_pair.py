"""Sends the same requests by HTTP/1.1 and by HTTP/2 to two weir instances with the same configuration, and compares what the
answers say about the rules."""

import dataclasses
import json
import pathlib
import re
import tempfile

from harness import PATIENCE, Client, Weir, eventually
from http2_client import Http2Client, Http2TestCase

TOLD = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-exceeded", "ratelimit-policy", "www-authenticate", "cache-control",
        "content-type", "allow")
FIELDS = 'fields = ["usual", "api_key", "user", "org", "service", "device", "tier", "country", "replay"]'
OUTCOMES = ("charged", "refunded", "surplus", "debt", "untold", "unreadable", "unanswered", "estimated", "cut")
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
        pairs = self.fields
        if isinstance(pairs, dict):
            pairs = [(name.replace("_", "-").lower(), value) for name, value in pairs.items()]
        return [*pairs, *([] if self.body is None else [("content-length", str(len(self.body)))])]


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
        lines = [f"{ask.method} {ask.path} HTTP/1.1", f"Host: {ask.host}", *(f"{name}: {value}" for name, value in ask.pairs())]
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
    """Asks by HTTP/2, on one connection. Sends a short body together with the head, as OldClient does."""

    def __init__(self, port, ahead=b"", **more):
        self.http2 = Http2Client(port, ahead=ahead, **more)

    def ask(self, ask):
        if ask.body is None or len(ask.body) > 10_000:
            return self.http2.request(ask.method, ask.path, ask.pairs(), ask.body, authority=ask.host)
        with self.http2.corked():
            stream = self.http2.open(ask.method, ask.path, ask.pairs(), end=False, authority=ask.host)
            self.http2.send_body(stream, ask.body)
        return self.http2.read(stream)

    def close(self):
        self.http2.sock.close()


def told(response):
    """Returns what the answer says about the rules, without times."""
    return {"status": response.status, **{name: response.all(name) for name in TOLD},
            "timed": [name for name in (*TIMES, "x-request-id") if name in response],
            "left": [re.sub(r";t=\d+", "", value) for value in response.all("ratelimit")],
            "body": re.sub(rb"\d+", b"N", response.body)}


def times(response):
    """Returns the numbers of seconds in the answer."""
    return [int(number) for name in TIMES for value in response.all(name) for number in re.findall(r"(?:^|t=)(\d+)", value)]


class PairTestCase(Http2TestCase):
    def pair(self, *rules, files=None, **more):
        """Returns two weir instances with the same configuration, which share no state."""
        text = self.text(doors=more.pop("doors", [False]), rules="".join(rules), **more)
        return [self.start(Weir(text, {**self.files, **(files or {})})) for _ in range(2)]

    def same(self, pair, asks, clients=None):
        """Sends the requests to the first weir by HTTP/1.1 and to the second one by HTTP/2, one after another. Checks that the
        answers of both protocols say the same, and returns the answers of HTTP/2."""
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


class LoggedTestCase(PairTestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-test-")))

    def logged(self, *rules, name="access.log", files=None, fields=FIELDS, **more):
        """Returns a weir that writes its access log into the file, and the file's path."""
        text = self.text(doors=[False], rules="".join(rules), **more).replace("workers = 2", "workers = 1")  # keeps lines in order
        path = self.folder / name
        return self.start(Weir(text.replace('access = "off"', f'access = "{path}"\n{fields}'), {**self.files, **(files or {})})), path

    def lines(self, path, count):
        eventually(lambda: path.exists() and path.read_text().count("\n") >= count, f"{count} lines in the log")
        return [json.loads(line) for line in path.read_text().splitlines()]
