"""Runs the files of config/examples. Only addresses are changed. An hour is shortened if a test cannot wait that long."""

import math
import os
import pathlib
import time

from harness import Client, TestCase, Upstream, Weir, answer, request_bytes

FOLDER = pathlib.Path(os.environ.get("WEIR_SOURCE", ".")) / "config/examples"
BESIDE = ("keys.toml", "countries.mmdb")  # files that the examples name; these files are no configurations
HOUR, DAY = 3600, 86400


class Example(TestCase):
    """A test of the example file with this name. `reply`: how its upstream responds."""

    name = None
    reply = staticmethod(lambda exchange: (exchange.read_body(), exchange.send(answer())))

    def setUp(self):
        self.upstream = self.start(Upstream(self.reply))
        self.began = time.monotonic()

    def weir(self, **environment):
        text = (FOLDER / f"{self.name}.toml").read_text()
        where = {"WEIR_LISTEN": "127.0.0.1:0", "WEIR_UPSTREAM": self.upstream.address}
        return self.start(Weir(text, {file: (FOLDER / file).read_bytes() for file in BESIDE}, {**where, **environment}))

    @staticmethod
    def send(weir, count, method="GET", path="/", source="127.0.0.1", body=b"", **headers):
        """Sends this number of requests of one client, without waiting for responses in between."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        with Client(weir.port, source=source) as client:
            client.send(request_bytes(method, path, fields, body) * count)
            return [client.read(method) for _ in range(count)]

    def admits(self, weir, count, **request):
        """Checks that weir admits all of these requests."""
        self.assertEqual([response.status for response in self.send(weir, count, **request)], [200] * count)

    def refuses(self, weir, rule, within, status=429, **request):
        """Checks that this rule refuses one request. Retry-After must be `within` seconds, minus the time since the test
        began."""
        refused = self.send(weir, 1, **request)[0]
        self.assertEqual(refused.status, status, refused.raw + refused.body)
        self.assertEqual(refused.json().get("rule"), rule)
        least = within - math.ceil(time.monotonic() - self.began)
        self.assertTrue(max(1, least) <= int(refused["retry-after"]) <= within, refused.raw)
        return refused
