"""Common parts of the system tests: a weir with a given configuration, upstreams with given behaviour, a Redis, and clients that
send exact bytes. Needs only the standard library. Every server listens on 127.0.0.1 at a free port, and ends with the `with`
block or the test that started it.

The variable $WEIR names the binary under test. $WEIR_SANITIZE is set if the binary runs slowly under a sanitizer."""

import itertools
import json
import os
import pathlib
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from processes import BELOW_EPHEMERAL, WEIR, Echo, Process, Redis, Weir, metric, rss_kib, run_weir
from upstream import Exchange, Upstream, answer, closed_port
from wire import PATIENCE, Client, Response, chunked, exchange_raw, get, read_response, request_bytes

SANITIZED = bool(os.environ.get("WEIR_SANITIZE"))
PAUSES = 2.0 if SANITIZED else 0.35  # seconds that a busy machine may delay a request, without a fault of weir

__all__ = [
    "BELOW_EPHEMERAL",
    "PATIENCE", "PAUSES", "SANITIZED", "WEIR", "Client", "Echo", "Exchange", "Load", "Process", "Redis", "Response", "TestCase", "Upstream", "Weir",
    "answer", "chunked", "client_tls", "closed_port", "config", "eventually", "exchange_raw", "get", "main",
    "make_authority", "make_certificate", "make_client_certificate", "read_response", "request_bytes", "rss_kib", "rule", "run_weir",
    "together",
]


def together(count, work):
    """Runs work(0) … work(count-1) at the same time, each in its own thread. Returns their results in order."""
    results, start = [None] * count, threading.Barrier(count)

    def run(index):
        start.wait(PATIENCE)
        try:
            results[index] = work(index)
        except Exception as fault:  # any exception is passed on to the caller below
            results[index] = fault

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * PATIENCE)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def eventually(holds, what, seconds=PATIENCE):
    """Polls until the condition is true, and returns its value. Use it for effects that only become visible from outside, such
    as counters."""
    deadline = time.monotonic() + seconds
    while not (value := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
    return value


def logged_requests(log):
    """Returns the lines of an access log as objects. Leaves out a last line of which weir has written only a part so far."""
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


class Load:
    """A client for each port in `ports`, which sends requests until it is stopped. Records the statuses (0: the connection
    broke) and durations. Another client sends requests directly to `upstream`: its waits are caused by the machine and not by
    weir."""

    def __init__(self, ports, upstream=None):
        self.results, self.ending, self.failing, self.pause = [], threading.Event(), 0, PAUSES
        self.threads = [threading.Thread(target=self.ask, args=(port,), daemon=True) for port in ports]
        if upstream is not None:
            self.threads.append(threading.Thread(target=self.watch, args=(upstream,), daemon=True))
        for thread in self.threads:
            thread.start()

    def get(self, client, number):
        return client.get("/", x_api_key="load")

    def ask(self, port):
        began = time.monotonic()
        try:
            with Client(port) as client:
                for number in itertools.count():
                    if self.ending.is_set():
                        return
                    began = time.monotonic()
                    self.results.append((self.get(client, number).status, time.monotonic() - began))
        except Exception:
            self.results.append((0, time.monotonic() - began))
            raise

    def watch(self, upstream):
        slowest = 0
        with Client(upstream) as client:
            while not self.ending.is_set():
                began = time.monotonic()
                client.get("/")
                slowest = max(slowest, time.monotonic() - began)
                self.pause = PAUSES + 2 * slowest

    def goes_on(self, count=100):
        seen = len(self.results)
        eventually(lambda: len(self.results) > seen + count, "more requests are answered")

    def fails_from_here(self):
        """Marks the time of the failure. stop() compares the durations after it with the durations before it."""
        self.failing = len(self.results)

    def stop(self, timeout=None):
        """Stops and returns all statuses. No request may have waited more than `timeout` seconds longer than normal. Normal is
        the longest duration before the failure, plus the pauses of a busy machine."""
        self.ending.set()
        for thread in self.threads:
            thread.join(4 * PATIENCE)
        normal = max((took for _, took in self.results[:self.failing]), default=0)
        slowest = max((took for _, took in self.results), default=0)
        print(f"\n{len(self.results)} requests, slowest {slowest * 1000:.0f} ms, before the failure {normal * 1000:.0f} ms, pauses {self.pause * 1000:.0f} ms", flush=True)
        if timeout is not None and slowest > timeout + normal + self.pause:
            raise AssertionError(f"a request took {slowest:.3f} s, with a timeout of {timeout} s and {normal:.3f} s before the failure")
        return {status for status, _ in self.results}


def config(*upstreams, rules="", server="", client="", state="", listener="", routes="", upstream=""):
    """Returns a configuration with one listener without TLS, an upstream with servers at these ports, and an admin listener.
    Keyword arguments add settings."""
    servers = ", ".join(f'"127.0.0.1:{port}"' for port in upstreams)
    return f"""
[server]
workers = 2
drain = "5s"
{server}
[log]
access = "off"
[[listener]]
address = "127.0.0.1:0"
{listener}
[admin]
address = "127.0.0.1:0"
[client]
{client}
[state]
{state}
[[upstream]]
name = "api"
servers = [{servers}]
{upstream}
{routes or '[[route]]' + chr(10) + 'upstream = "api"'}
{rules}
"""


def rule(name="per-ip", limit="1/day", **more):
    """Returns a [[rule]] table. Values are in TOML: rule(key='["ip"]', burst=3)."""
    lines = ["[[rule]]", f'name = "{name}"', f'limit = "{limit}"', *(f"{key} = {value}" for key, value in more.items())]
    return "\n".join(lines) + "\n"


def make_certificate(folder, name="edge", host="localhost", address=None, days=2):
    """Makes NAME.crt and NAME.key, self-signed for a host name and optionally an address. Returns their contents by file name.
    A minimal system may not be able to resolve the name, so clients that resolve names use the address."""
    folder = pathlib.Path(folder)
    names = f"DNS:{host}" + (f",IP:{address}" if address else "")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", str(days), "-subj", f"/CN={host}", "-addext", f"subjectAltName={names}",
                    "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"], check=True, capture_output=True)
    return {file: (folder / file).read_text() for file in (f"{name}.crt", f"{name}.key")}


def make_authority(folder, name="ca"):
    """Makes NAME.crt and NAME.key, a root authority that signs client certificates. Returns their contents by file name."""
    folder = pathlib.Path(folder)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
                    "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                    "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"], check=True, capture_output=True)
    return {file: (folder / file).read_text() for file in (f"{name}.crt", f"{name}.key")}


def make_client_certificate(folder, name, subject, authority="ca", days=2):
    """Makes NAME.crt and NAME.key, signed by an authority of make_authority(). If `days` is negative, the certificate has
    expired."""
    folder = pathlib.Path(folder)
    request = folder / f"{name}.csr"
    subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject,
                    "-keyout", folder / f"{name}.key", "-out", request], check=True, capture_output=True)
    subprocess.run(["openssl", "x509", "-req", "-in", request, "-days", str(days), "-CAcreateserial",
                    "-CA", folder / f"{authority}.crt", "-CAkey", folder / f"{authority}.key",
                    "-out", folder / f"{name}.crt"], check=True, capture_output=True)


def make_revocation_list(folder, revoked=(), authority="ca"):
    """Returns the PEM text of a revocation list of an authority of make_authority(). `revoked`: names of certificates of
    make_client_certificate()."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch, folder = pathlib.Path(scratch), pathlib.Path(folder)
        (scratch / "index").touch()
        (scratch / "conf").write_text(f"[ca]\ndefault_ca = own\n[own]\ndatabase = {scratch / 'index'}\n"
                                      "default_md = sha256\ndefault_crl_days = 1\n")
        command = ["openssl", "ca", "-config", scratch / "conf", "-cert", folder / f"{authority}.crt",
                   "-keyfile", folder / f"{authority}.key"]
        for name in revoked:
            subprocess.run([*command, "-revoke", folder / f"{name}.crt"], check=True, capture_output=True)
        return subprocess.run([*command, "-gencrl"], check=True, capture_output=True, text=True).stdout


def client_tls(certificate, alpn=None, shown=None):
    """Returns a TLS context for a client. `shown`: the path, without its ending, of the certificate and key of
    make_client_certificate() that the client shows."""
    context = ssl.create_default_context(cadata=certificate)
    if shown:
        context.load_cert_chain(f"{shown}.crt", f"{shown}.key")
    if alpn:
        context.set_alpn_protocols(alpn)
    return context


class TestCase(unittest.TestCase):
    maxDiff = None

    def start(self, context):
        """Enters a context that ends with the test."""
        return self.enterContext(context)

    def assert_own_error(self, response, status):
        """Checks that the response is one of weir's own errors: JSON with an error code and a message."""
        self.assertEqual(response.status, status, response.raw + response.body)
        self.assertEqual(response["content-type"], "application/json")
        self.assertLessEqual({"error", "message"}, response.json().keys())

    def await_metric(self, weir, expected, name, **labels):
        """Waits until the metric has the value. A request is counted shortly after its client has received the whole response."""
        eventually(lambda: weir.metric(name, **labels) == expected, f"{name} {labels} is {expected}")

    def statuses(self, port, count, path="/", **headers):
        with Client(port) as client:
            return [client.get(path, **headers).status for _ in range(count)]


main = unittest.main
