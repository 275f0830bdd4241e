#!/usr/bin/env python3
"""Common client programs over TLS. Each sends requests with and without a body and keeps its connection open. The clients
trust only weir's own certificate."""

import base64
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from browser import Browser, find_chromium
from harness import PATIENCE, TestCase, Upstream, Weir, answer, client_tls, config, eventually, main, make_certificate

BODY = b"0123456789abcdef" * 20_000  # larger than all buffers between client and upstream
DEBIANS_PYTHON = "/usr/bin/python3"
ROUTES = """
[[upstream]]
name = "chat"
servers = ["127.0.0.1:{port}"]
[[route]]
match = {{ path = "/chat" }}
upstream = "chat"
[[route]]
upstream = "api"
"""

NODE = """
const https = require("node:https");
const [base, size] = [process.argv[1], Number(process.argv[2])];
const body = "0123456789abcdef".repeat(size / 16);
const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
const ask = (method, path, body) => new Promise((done, failed) => {
  const request = https.request(base + path, { method, agent }, (reply) => {
    let text = "";
    reply.setEncoding("utf8").on("data", (piece) => (text += piece)).on("end", () => done([reply.statusCode, text]));
  });
  request.on("error", failed).end(body);
});
const fetched = async (method, path, body) => {
  const reply = await fetch(base + path, { method, body });
  return [reply.status, await reply.text()];
};
(async () => {
  for (const way of [ask, fetched])
    for (const [method, path, sent] of [["GET", "/1"], ["POST", "/2", body], ["GET", "/3"], ["PUT", "/4", body], ["GET", "/5"]]) {
      const [status, text] = await way(method, path, sent);
      if (status !== 200 || text !== `${method} ${path} ${sent ?? ""}`) throw new Error(`${way.name} ${method} ${path}: ${status}`);
    }
  agent.destroy();
})();
"""

PAGE = f"""(async () => {{
  const body = "0123456789abcdef".repeat({len(BODY) // 16});
  const wrong = [];
  for (const [method, path, sent] of [["GET", "/1"], ["POST", "/2", body], ["GET", "/3"], ["PUT", "/4", body], ["GET", "/5"]]) {{
    const reply = await fetch(path, {{ method, body: sent }});
    if (reply.status !== 200 || await reply.text() !== `${{method}} ${{path}} ${{sent ?? ""}}`) wrong.push(path);
  }}
  return wrong;
}})()"""

CHAT = """new Promise((done, failed) => {
  const socket = new WebSocket(`wss://${location.host}/chat`);
  const said = [];
  socket.onopen = () => { socket.send("hello"); socket.send("x".repeat(100000)); };
  socket.onmessage = (event) => { said.push(event.data.length); if (said.length === 2) socket.close(1000); };
  socket.onerror = () => failed("error");
  socket.onclose = (event) => done([...said, event.code, event.wasClean]);
})"""


def echo(exchange):
    exchange.read_body()
    exchange.send(answer(f"{exchange.method} {exchange.target} ".encode() + exchange.body, headers="Content-Type: text/html\r\n"))


class RealClients(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream(echo))
        self.folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-clients-")))
        files = make_certificate(self.folder, address="127.0.0.1")
        self.certificate = self.folder / "edge.crt"
        self.trusted = files["edge.crt"]
        self.weir = self.weir_before(self.upstream.port, files)

    def weir_before(self, port, files, routes=""):
        tls = 'tls = { certificates = [{ cert = "edge.crt", key = "edge.key" }] }'
        text = config(port, listener=tls, routes=routes).replace('access = "off"', 'access = "access.log"')
        return self.start(Weir(text, files))

    def connections(self):
        return self.weir.metric("weir_connections_accepted_total")

    def run_to_its_end(self, command, **environment):
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE, check=False, env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_curl_reuses_its_connection_for_gets_and_an_upload_with_expect(self):
        (self.folder / "body").write_bytes(BODY)
        common = ["--cacert", self.certificate, "--resolve", f"localhost:{self.weir.port}:127.0.0.1", "-o", self.folder / "answer"]
        base = f"https://localhost:{self.weir.port}"
        said = self.run_to_its_end(
            ["curl", "-sS", "-w", "%{http_code} %{num_connects}\\n", *common, f"{base}/1", "--next", *common, "-w",
             "%{http_code} %{num_connects}\\n", f"{base}/2", "--next", "-w", "%{http_code} %{num_connects}\\n", *common, "-H",
             "Expect: 100-continue", "--data-binary", f"@{self.folder}/body", f"{base}/3"])
        self.assertEqual(said.split(), ["200", "1", "200", "0", "200", "0"], "all requests use one connection")
        self.assertEqual((self.folder / "answer").read_bytes(), b"POST /3 " + BODY)

    def test_python_http_client_reuses_its_connection_for_gets_and_uploads(self):
        client = http.client.HTTPSConnection("127.0.0.1", self.weir.port, timeout=PATIENCE, context=client_tls(self.trusted))
        self.addCleanup(client.close)
        for method, path, body in (("GET", "/1", None), ("POST", "/2", BODY), ("POST", "/3", iter([BODY[:7], BODY[7:]])), ("GET", "/4", None)):
            client.request(method, path, body, encode_chunked=True,
                           headers={"Transfer-Encoding": "chunked"} if body is not None and not isinstance(body, bytes) else {})
            reply = client.getresponse()
            self.assertEqual((reply.status, reply.read()), (200, f"{method} {path} ".encode() + (BODY if body else b"")))
        self.assertEqual(self.connections(), 1)

    @unittest.skipUnless(shutil.which("node"), "needs Node.js: ./dev deps test")
    def test_node_http_agent_and_fetch_reuse_their_connections(self):
        self.run_to_its_end(["node", "-e", NODE, f"https://127.0.0.1:{self.weir.port}", str(len(BODY))],
                            NODE_EXTRA_CA_CERTS=str(self.certificate))
        self.assertEqual(len(self.upstream.exchanges), 10)
        self.assertLessEqual(self.connections(), 3, "the agent uses one connection, fetch uses two")

    def key_of_certificate(self):
        """Returns the hash of the certificate's public key, in the form of Chromium's option that trusts a key."""
        public = subprocess.run(["openssl", "x509", "-in", self.certificate, "-noout", "-pubkey"], capture_output=True, check=True).stdout
        der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=public, capture_output=True, check=True).stdout
        return base64.b64encode(hashlib.sha256(der).digest()).decode()

    @unittest.skipUnless(find_chromium(), "needs Chromium: ./dev deps test")
    def test_browser_loads_a_page_and_uses_a_websocket(self):
        peer = subprocess.Popen([DEBIANS_PYTHON, pathlib.Path(__file__).parent / "websocket_peer.py", "serve"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(peer.stdout.close)
        self.addCleanup(peer.wait)
        self.addCleanup(peer.kill)
        files = {name: (self.folder / name).read_text() for name in ("edge.crt", "edge.key")}
        self.weir = self.weir_before(self.upstream.port, files, ROUTES.format(port=int(peer.stdout.readline())))
        with Browser(f"--ignore-certificate-errors-spki-list={self.key_of_certificate()}") as browser:
            page = browser.open(f"https://localhost:{self.weir.port}/")
            page.await_true("document.body && document.body.innerText === 'GET /'")
            self.assertEqual(page.evaluate(PAGE), [])
            self.assertLess(self.connections(), len(self.upstream.exchanges), "connections are kept alive")
            self.assertEqual(page.evaluate(CHAT), [5, 100_000, 1000, True])
            self.assertEqual(page.complaints, [])
        self.await_metric(self.weir, 1, "weir_tunnels_total", end="closed")
        log = self.weir.folder / "access.log"
        chat = eventually(lambda: [line for line in map(json.loads, log.read_text().splitlines()) if line["target"] == "/chat"],
                          "the line of the WebSocket is written")
        self.assertEqual([(line["protocol"], line["status"]) for line in chat], [("HTTP/2", 101)])


if __name__ == "__main__":
    main()
