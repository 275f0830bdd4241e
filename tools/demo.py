#!/usr/bin/env python3
"""Runs weir in front of a small upstream on loopback. `./dev demo` keeps both running and prints requests to try.
`./dev demo --smoke` sends these requests itself, checks every answer and exits.

The checks hold on a machine of any speed: none of them needs a request to arrive before a bucket refills."""

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
# The usual port of each use, unless it is taken. config/demo.toml has the same defaults.
DEFAULT_PORTS = {"HTTP": 8080, "HTTPS": 8443, "admin": 9900, "upstream": 9001}
PORT_VARIABLES = {"HTTP": "WEIR_DEMO_PORT", "HTTPS": "WEIR_DEMO_TLS_PORT", "admin": "WEIR_DEMO_ADMIN_PORT",
                  "upstream": "WEIR_DEMO_UPSTREAM_PORT"}
PORTS_TRIED = 100  # how many consecutive ports are tried, beginning with the default
PATIENCE_SECONDS = 60  # for anything that takes milliseconds on an idle machine
BURST = 30  # requests; config/demo.toml admits 10 at once and 5 a second
QUEUED = 5  # requests; config/demo.toml forwards one each 200 ms


class DemoError(Exception):
    """An error message for the user, who can fix its cause."""


def why_taken(port):
    """Returns the reason why no server can listen on the port of 127.0.0.1; None if a server can listen."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError as error:
            return error.strerror
    return None


def free_port(first, used):
    for port in range(first, min(first + PORTS_TRIED, 65536)):
        if port not in used and why_taken(port) is None:
            return port
    raise DemoError(f"127.0.0.1 has no free port from {first} to {port}: stop what listens there, or choose with --port")


def choose_ports(chosen):
    """Returns the port for each use. `chosen` is the HTTP port that the user asked for, or None."""
    if chosen is not None and (reason := why_taken(chosen)) is not None:
        raise DemoError(f"--port {chosen}: 127.0.0.1:{chosen} cannot be used: {reason}. Choose another port, "
                        "or leave --port out to have a free one taken")
    ports = {}
    for use, default in DEFAULT_PORTS.items():
        is_chosen = use == "HTTP" and chosen is not None
        ports[use] = chosen if is_chosen else free_port(default, {chosen, *ports.values()})
        if ports[use] != default and not is_chosen:
            print(f"demo: port {default} ({use}) is taken; using {ports[use]}", flush=True)
    return ports


def make_certificate(folder):
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", folder / "edge.key", "-out", folder / "edge.crt"],
        capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise DemoError(f"openssl could not make a certificate:\n{made.stderr}")


class Demo:
    """The two processes and their common folder. Leaving the `with` block ends the processes."""

    def __init__(self, weir, ports):
        self.weir = weir
        self.ports = ports
        self.processes = []

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-demo-")
        self.folder = pathlib.Path(self.scratch.name)
        try:
            make_certificate(self.folder)
            self.start("echo", "--listen", f"127.0.0.1:{self.ports['upstream']}")
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
                env={"PATH": "/usr/bin:/bin", "WEIR_DEMO_DIR": str(self.folder), **self.port_variables()}))

    def port_variables(self):
        return {PORT_VARIABLES[use]: str(port) for use, port in self.ports.items()}

    def url(self, path):
        return f"http://127.0.0.1:{self.ports['HTTP']}{path}"

    def check_alive(self):
        for process, name in zip(self.processes, ("echo", "run")):
            if process.poll() is not None:
                log = (self.folder / f"{name}.log").read_text(errors="replace")
                raise DemoError(f"`weir {name}` ended with status {process.returncode}:\n{log[-2000:]}")

    def wait_ready(self):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            self.check_alive()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['admin']}/readyz", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.05)
        raise DemoError(f"weir was not ready after {PATIENCE_SECONDS} s:\n{(self.folder / 'run.log').read_text()[-2000:]}")


def stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# ---- requests to the demo ----------------------------------------------------------------------------------------


class Answer:
    def __init__(self, text):
        head, _, self.body = text.partition("\r\n\r\n")
        lines = head.split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()


def run_curl(*arguments):
    done = subprocess.run(["curl", "-sS", "-i", "--max-time", str(PATIENCE_SECONDS), *arguments],
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"curl {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout.decode()


def curl(*arguments):
    return Answer(run_curl(*arguments))


def curl_many(demo, name, count, url, *arguments):
    """Requests the URL `count` times from one curl, and returns the responses in order."""
    run_curl("-o", str(demo.folder / f"{name}-#1"), *arguments, f"{url}?[1-{count}]")
    return [Answer((demo.folder / f"{name}-{number}").read_bytes().decode()) for number in range(1, count + 1)]


def expect(holds, what, answer=None):
    if not holds:
        seen = f"; got {answer.status} {answer.headers} {answer.body[:300]!r}" if answer else ""
        raise DemoError(f"expected {what}{seen}")


def expect_limit_headers(answer):
    for name in ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"):
        expect(answer.headers.get(name, "").isdigit(), f"a number in {name}", answer)
    expect(re.fullmatch(r'"[^"]+";q=\d+.*', answer.headers.get("ratelimit-policy", "")), "a RateLimit-Policy", answer)
    expect(re.fullmatch(r'"[^"]+";r=\d+.*', answer.headers.get("ratelimit", "")), "a RateLimit", answer)


def try_admitted(demo):
    answer = curl(demo.url("/api/hello"))
    expect(answer.status == 200, "200", answer)
    expect_limit_headers(answer)
    return f"200, {answer.headers['x-ratelimit-remaining']} of {answer.headers['x-ratelimit-limit']} left"


def try_burst(demo):
    """Checks a refusal inside the burst. A request after the burst might find the bucket refilled."""
    url = demo.url("/api/burst")
    answers = curl_many(demo, "burst", BURST, url)
    statuses = [answer.status for answer in answers]
    expect(set(statuses) == {200, 429}, f"some of {BURST} requests answered 200 and the others 429, got {statuses}")
    refused = answers[statuses.index(429)]
    check_refusal(refused)
    time.sleep(int(refused.headers["retry-after"]))  # the test checks that a request succeeds after this time
    again = curl(url)
    expect(again.status == 200, "200 after waiting what Retry-After says", again)
    return f"{statuses.count(200)} of {BURST} admitted, then 429, Retry-After: {refused.headers['retry-after']}, and admitted after it"


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


def try_tls(demo):
    port = demo.ports["HTTPS"]
    answer = curl("--cacert", str(demo.folder / "edge.crt"), "--resolve", f"localhost:{port}:127.0.0.1",
                  f"https://localhost:{port}/api/hello")
    expect(answer.status == 200, "200", answer)
    expect_limit_headers(answer)
    return "200 over TLS, certificate verified"


def try_queue(demo):
    """Sends requests that arrive together and leave 200 ms apart. The last response comes at least 800 ms after the first."""
    began = time.monotonic()
    answers = curl_many(demo, "queue", QUEUED, demo.url("/queue"), "--parallel")
    took = time.monotonic() - began
    statuses = [answer.status for answer in answers]
    expect(set(statuses) == {200}, f"200 for all {QUEUED}, got {statuses}")
    expect(took > 0.2 * (QUEUED - 1) - 0.05, f"departures 200 ms apart, but all {QUEUED} were answered in {took:.2f} s")
    return f"{QUEUED} at once answered one by one in {took:.1f} s, none refused"


def try_metrics(demo):
    answer = curl(f"http://127.0.0.1:{demo.ports['admin']}/metrics")
    expect(answer.status == 200, "200", answer)
    refused = re.search(r'^weir_decisions_total\{[^}]*outcome="refused"[^}]*\} ([1-9]\d*)', answer.body, re.M)
    expect(refused is not None, "weir_decisions_total with a refusal counted", answer)
    expect("weir_requests_total{" in answer.body, "weir_requests_total", answer)
    return f"{len(answer.body.splitlines())} lines, {refused.group(1)} refused"


def smoke(demo):
    steps = [("admitted", try_admitted), ("burst", try_burst), ("tls", try_tls),
             ("queue", try_queue), ("metrics", try_metrics)]
    failed = 0
    for name, attempt in steps:
        try:
            print(f"ok     {name}: {attempt(demo)}", flush=True)
        except (DemoError, ValueError) as error:
            failed += 1
            print(f"FAILED {name}: {error}", flush=True)
        demo.check_alive()
    print(f"{len(steps) - failed} passed, {failed} failed")
    return 1 if failed else 0


def stay(demo):
    plain, tls, admin = (demo.ports[use] for use in ("HTTP", "HTTPS", "admin"))
    print(f"""
weir is in front of a small upstream. Try, in another terminal:

  an admitted request    curl -i http://127.0.0.1:{plain}/api/hello
  a burst that ends      curl -s -o /dev/null -w '%{{http_code}} ' 'http://127.0.0.1:{plain}/api/hello?[1-15]'
  what a refusal says    curl -i http://127.0.0.1:{plain}/api/hello        (right after the burst)
  another client         curl -i --interface 127.0.0.2 http://127.0.0.1:{plain}/api/hello
  TLS                    curl -i --cacert {demo.folder}/edge.crt https://localhost:{tls}/api/hello
  the queue              seq 5 | xargs -P 5 -I N curl -s -o /dev/null -w '%{{time_total}} s\\n' http://127.0.0.1:{plain}/queue
  the metrics            curl http://127.0.0.1:{admin}/metrics
  the dashboard          http://127.0.0.1:{admin}/ in a browser

Rules: config/demo.toml. Logs: {demo.folder}. Ctrl-C ends it.""", flush=True)
    try:
        while True:
            demo.check_alive()
            time.sleep(0.5)
    except KeyboardInterrupt:
        print("\nstopping")
    return 0


def port_number(text):
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: write a number from 1 to 65535")
    return int(text)


def main():
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    parser.add_argument("--weir", help=argparse.SUPPRESS)
    parser.add_argument("--check-arguments", action="store_true", help=argparse.SUPPRESS)  # ./dev checks the arguments before it builds
    parser.add_argument("--smoke", action="store_true", help="send the requests, check the answers, exit")
    parser.add_argument("--port", type=port_number, help="for HTTP; without it 8080, or the next free one")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        ports = choose_ports(options.port)
        if options.check_arguments:
            return 0
        with Demo(pathlib.Path(options.weir).resolve(), ports) as demo:
            return smoke(demo) if options.smoke else stay(demo)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
