"""A client of listeners with serves = "decide", and a weir that has such a listener beside one that proxies."""

import json

from harness import Client, TestCase, Upstream, Weir, config, eventually

TAKES_OVER = "another process of this server takes over; please retry"
ROUTES = '[[route]]\nname = "api"\nupstream = "api"\n'


class Asker(Client):
    """A connection to a listener that answers questions. `headers` are sent with every call."""

    def __init__(self, port, headers=None, **more):
        super().__init__(port, **more)
        self.headers = headers or {}

    def post(self, path, body, headers=None):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", path, {**self.headers, **(headers or {})}, text)

    def decide(self, question=None, **members):
        """Returns the answer to a question, or the answers to a list of questions."""
        response = self.post("/v1/decide", members if question is None else question)
        if response.status != 200:
            raise AssertionError(f"{response.status} {response.body}")
        return response.json()

    def settle(self, permit, **members):
        return self.post("/v1/settle", {"permit": permit, **members})

    def forward_auth(self, ip="203.0.113.7", uri="/", query="", **headers):
        fields = {"X-Forwarded-Uri": uri, "X-Forwarded-For": ip, "X-Forwarded-Host": "api.example.com",
                  **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.request("GET", "/v1/forward-auth" + query, {**self.headers, **fields})


class AskTestCase(TestCase):
    def ask_weir(self, *rules, decide="", files=None, upstream=None, more="", **settings):
        """Returns a weir whose first listener proxies to an upstream, and whose second answers questions."""
        if upstream is None:
            upstream = self.start(Upstream())
        settings.setdefault("routes", ROUTES)
        listener = f'[[listener]]\nname = "ask"\naddress = "127.0.0.1:0"\nserves = "decide"\n{decide}\n'
        text = config(upstream.port, rules="".join(rules) + more + listener, **settings)
        weir = self.start(Weir(text, files=files))
        weir.ask_port = weir.ports[1]
        return weir

    def asker(self, weir, **more):
        return self.start(Asker(weir.ask_port, **more))

    def await_permits(self, weir, count):
        eventually(lambda: weir.metric("weir_decide_permits") == count, f"{count} permits are open")
