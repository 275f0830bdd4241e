#!/usr/bin/env python3
"""weir before a small upstream, on loopback: `./dev demo` stays in front and says what to try,
`./dev demo --smoke` tries it with curl, checks every answer and exits."""

import argparse
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLAIN, TLS, ADMIN, UPSTREAM = 8080, 8443, 9900, 9001  # as config/demo.toml and its upstream say
READY_SECONDS = 10
BURST = 30  # requests; more than config/demo.toml admits at once


class DemoError(Exception):
    """What a person can read and act on."""


def check_ports_free():
    for port, use in ((PLAIN, "HTTP"), (TLS, "HTTPS"), (ADMIN, "admin"), (UPSTREAM, "weir echo")):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                raise DemoError(f"127.0.0.1:{port} ({use}) is taken: {error.strerror}; stop what listens there") from error


def make_certificate(folder):
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", folder / "edge.key", "-out", folder / "edge.crt"],
        capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise DemoError(f"openssl could not make a certificate:\n{made.stderr}")


class Demo:
    """The two processes and the folder they share; leaving the `with` ends them."""

    def __init__(self, weir):
        self.weir = weir
        self.processes = []

    def __enter__(self):
        check_ports_free()
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-demo-")
        self.folder = pathlib.Path(self.scratch.name)
        try:
            make_certificate(self.folder)
            self.start("echo", "--listen", f"127.0.0.1:{UPSTREAM}")
            self.start("run", "--config", str(ROOT / "config" / "demo.toml"))
            self.wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            stop(process)
        self.scratch.cleanup()

    def start(self, *arguments):
        with open(self.folder / f"{arguments[0]}.log", "wb") as log:
            self.processes.append(subprocess.Popen(
                [self.weir, *arguments], stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env={"PATH": "/usr/bin:/bin", "WEIR_DEMO_DIR": str(self.folder)}))

    def check_alive(self):
        for process, name in zip(self.processes, ("echo", "run")):
            if process.poll() is not None:
                log = (self.folder / f"{name}.log").read_text(errors="replace")
                raise DemoError(f"`weir {name}` ended with status {process.returncode}:\n{log[-2000:]}")

    def wait_ready(self):
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            self.check_alive()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{ADMIN}/readyz", timeout=1) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.05)
        raise DemoError(f"weir was not ready after {READY_SECONDS} s:\n{(self.folder / 'run.log').read_text()[-2000:]}")


def stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# ---- talking to it ------------------------------------------------------------------------------------------------


class Answer:
    def __init__(self, text):
        head, _, self.body = text.partition("\r\n\r\n")
        lines = head.split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()


def curl(*arguments):
    done = subprocess.run(["curl", "-sS", "-i", "--max-time", "15", *arguments],
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"curl {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return Answer(done.stdout.decode())


def expect(holds, what, answer=None):
    if not holds:
        seen = f"; got {answer.status} {answer.headers} {answer.body[:300]!r}" if answer else ""
        raise DemoError(f"expected {what}{seen}")


def expect_limit_headers(answer):
    for name in ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"):
        expect(answer.headers.get(name, "").isdigit(), f"a number in {name}", answer)
    expect(re.fullmatch(r'"[^"]+";q=\d+.*', answer.headers.get("ratelimit-policy", "")), "a RateLimit-Policy", answer)
    expect(re.fullmatch(r'"[^"]+";r=\d+.*', answer.headers.get("ratelimit", "")), "a RateLimit", answer)


def try_admitted():
    answer = curl(f"http://127.0.0.1:{PLAIN}/api/hello")
    expect(answer.status == 200, "200", answer)
    expect_limit_headers(answer)
    return f"200, {answer.headers['x-ratelimit-remaining']} of {answer.headers['x-ratelimit-limit']} left"


def try_burst():
    """One curl sends them all: a process each would leave the bucket time to refill."""
    url = f"http://127.0.0.1:{PLAIN}/api/burst"
    sent = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} ", "--max-time", "15", f"{url}?[1-{BURST}]"],
                          capture_output=True, text=True, check=False).stdout.split()
    expect(set(sent) == {"200", "429"}, f"{BURST} requests to begin with 200 and end in 429, got {sent}")
    answer = curl(url)
    expect(answer.status == 429, "429 right after the burst", answer)
    check_refusal(answer)
    time.sleep(int(answer.headers["retry-after"]))  # what is under test
    again = curl(url)
    expect(again.status == 200, "200 after waiting what Retry-After says", again)
    return f"{sent.count('200')} of {BURST} admitted, then 429, Retry-After: {answer.headers['retry-after']}, and admitted after it"


def check_refusal(answer):
    expect_limit_headers(answer)
    expect(answer.headers.get("retry-after", "").isdigit(), "Retry-After in seconds", answer)
    expect(int(answer.headers["retry-after"]) >= 1, "Retry-After of at least 1", answer)
    expect(answer.headers.get("cache-control") == "no-store", "Cache-Control: no-store", answer)
    expect(answer.headers.get("content-type") == "application/json", "a JSON body", answer)
    body = json.loads(answer.body)
    expect(body.get("error") == "rate_limit_exceeded", 'error "rate_limit_exceeded"', answer)
    expect(body.get("retry_after_seconds") == int(answer.headers["retry-after"]), "the same wait in the body", answer)
    expect(bool(body.get("rule")) and bool(body.get("message")), "rule and message", answer)


def try_tls(folder):
    answer = curl("--cacert", str(folder / "edge.crt"), "--resolve", f"localhost:{TLS}:127.0.0.1",
                  f"https://localhost:{TLS}/api/hello")
    expect(answer.status == 200, "200", answer)
    expect_limit_headers(answer)
    return "200 over TLS, certificate verified"


def try_queue():
    """Five at once leave one by one: what one waited tells the pace."""
    began = time.monotonic()
    sent = [subprocess.Popen(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{time_total}", "--max-time", "15",
                              f"http://127.0.0.1:{PLAIN}/queue"], stdout=subprocess.PIPE, text=True) for _ in range(5)]
    answers = [process.communicate()[0].split() for process in sent]
    took = time.monotonic() - began
    expect(all(status == "200" for status, _ in answers), f"200 for all five, got {answers}")
    waits = sorted(float(seconds) for _, seconds in answers)
    expect(waits[-1] - waits[0] > 0.3, f"departures one by one, got waits {waits}")
    return f"five at once answered one by one in {took:.1f} s, none refused"


def try_metrics():
    answer = curl(f"http://127.0.0.1:{ADMIN}/metrics")
    expect(answer.status == 200, "200", answer)
    refused = re.search(r'^weir_decisions_total\{[^}]*outcome="refused"[^}]*\} ([1-9]\d*)', answer.body, re.M)
    expect(refused is not None, "weir_decisions_total with a refusal counted", answer)
    expect("weir_requests_total{" in answer.body, "weir_requests_total", answer)
    return f"{len(answer.body.splitlines())} lines, {refused.group(1)} refused"


def smoke(demo):
    steps = [("admitted", try_admitted), ("burst", try_burst), ("tls", lambda: try_tls(demo.folder)),
             ("queue", try_queue), ("metrics", try_metrics)]
    failed = 0
    for name, attempt in steps:
        try:
            print(f"ok     {name}: {attempt()}", flush=True)
        except (DemoError, ValueError) as error:
            failed += 1
            print(f"FAILED {name}: {error}", flush=True)
        demo.check_alive()
    print(f"{len(steps) - failed} passed, {failed} failed")
    return 1 if failed else 0


def stay(demo):
    print(f"""
weir is in front of a small upstream. Try, in another terminal:

  an admitted request    curl -i http://127.0.0.1:{PLAIN}/api/hello
  a burst that ends      curl -s -o /dev/null -w '%{{http_code}} ' 'http://127.0.0.1:{PLAIN}/api/hello?[1-15]'
  what a refusal says    curl -i http://127.0.0.1:{PLAIN}/api/hello        (right after the burst)
  another client         curl -i --interface 127.0.0.2 http://127.0.0.1:{PLAIN}/api/hello
  TLS                    curl -i --cacert {demo.folder}/edge.crt https://localhost:{TLS}/api/hello
  the queue              seq 5 | xargs -P 5 -I N curl -s -o /dev/null -w '%{{time_total}} s\\n' http://127.0.0.1:{PLAIN}/queue
  the metrics            curl http://127.0.0.1:{ADMIN}/metrics

Rules: config/demo.toml. Logs: {demo.folder}. Ctrl-C ends it.""", flush=True)
    try:
        while True:
            demo.check_alive()
            time.sleep(0.5)
    except KeyboardInterrupt:
        print("\nstopping")
    return 0


def main():
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    parser.add_argument("--weir", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--smoke", action="store_true", help="send the requests, check the answers, exit")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        with Demo(pathlib.Path(options.weir).resolve()) as demo:
            return smoke(demo) if options.smoke else stay(demo)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
