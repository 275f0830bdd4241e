#!/usr/bin/env python3
"""An HTTP/2 client that sends many requests at once does not delay the other clients of its worker."""

import pathlib
import random
import signal
import tempfile

from harness import Weir, eventually, main, rule
from http2_client import Http2TestCase

ANSWER_ITSELF = '[[route]]\nrespond = { status = 204 }\n'


class WorkerFairness(Http2TestCase):
    def place_of_another_client(self, count, rules="", fields=(), http2=""):
        """Sends this number of requests in one write, while weir is stopped, and then a request of another client. Returns how
        many of the requests weir answers before the other client's request."""
        log = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-test-"))) / "access.log"
        text = self.text(http2, doors=[False], rules=rules, routes=ANSWER_ITSELF).replace("workers = 2", "workers = 1")
        weir = self.start(Weir(text.replace('access = "off"', f'access = "{log}"'), self.files))
        greedy, modest = self.client(weir), self.client(weir)
        self.assertEqual([greedy.request(path="/warm", fields=fields).status, modest.get("/warm").status], [204, 204])
        weir.signal(signal.SIGSTOP)  # so that weir finds the requests of both clients when it continues
        with greedy.corked():
            streams = [greedy.open(path="/greedy", fields=fields) for _ in range(count)]
        other = modest.open(path="/modest")
        weir.signal(signal.SIGCONT)
        self.assertEqual(modest.read(other).status, 204)
        self.assertEqual({greedy.read(stream).status for stream in streams}, {204})
        eventually(lambda: log.read_text().count("\n") == count + 3, "every request is in the log")
        return next(number for number, line in enumerate(log.read_text().splitlines()) if "/modest" in line) - 2

    def test_other_clients_are_served_after_at_most_sixteen_streams(self):
        self.assertLess(self.place_of_another_client(2000, http2="max_streams = 5000"), 200)

    def test_streams_with_slow_decisions_do_not_delay_other_clients(self):
        """The HPACK table contains one long field. So each further request has only fourteen octets, but takes about a
        millisecond to decide."""
        slow = "~x[xy]{14}z"  # a regular expression with more states than RE2 caches
        rules = "".join(rule(f"r{number}", "1000/s", key="[]", match=f'{{ headers = {{ X-Long = "{slow}{number}" }} }}') for number in range(10))
        long = "".join(random.Random(3).choices("xy", k=3_800))
        self.assertLess(self.place_of_another_client(100, rules, [("x-long", long)]), 20)


if __name__ == "__main__":
    main()
