"""A gRPC client in Node.js, with the library @grpc/grpc-js. `./dev test` installs the library into build/grpc_js."""

import base64
import itertools
import json
import os
import queue
import subprocess
import unittest
import threading

from documents import TREE
from harness import PATIENCE

PACKAGES = TREE / "build/grpc_js/node_modules"


def encode(octets):
    return base64.b64encode(octets).decode()


def metadata_of(pairs):
    """Returns metadata as a dictionary."""
    return {name: base64.b64decode(value) if name.endswith("-bin") else value for name, value in pairs}


class JsCall:
    """A call in progress in the client. When the call ends, it sets `code`, `details` and `metadata` (before and after the
    messages)."""

    def __init__(self, client, number):
        self.client, self.number, self.events = client, number, queue.Queue()
        self.code, self.details, self.initial, self.trailing = None, None, {}, {}

    def tell(self, **change):
        self.client.write({"id": self.number, **change})

    def send(self, message):
        self.tell(send=encode(message))

    def receive(self):
        """Returns the next message, or None after the end of the call."""
        event = self.events.get(timeout=2 * PATIENCE)
        if "message" in event:
            return base64.b64decode(event["message"])
        self.code, self.details = event["code"], event["details"]
        self.initial, self.trailing = metadata_of(event["initial"]), metadata_of(event["trailing"])
        return None

    def finish(self):
        """Waits for the end, and returns the messages that have come until then."""
        return list(iter(self.receive, None))


class JsClient:
    """The process. Calls to the same port with the same options share a connection."""

    def __init__(self, authority):
        if not PACKAGES.is_dir():
            raise unittest.SkipTest(f"{PACKAGES} is not there: ./dev test installs it if npm reaches its registry")
        self.authority, self.numbers, self.calls, self.lock = authority, itertools.count(), {}, threading.Lock()
        self.process = subprocess.Popen(["node", TREE / "tests/grpc_js/client.js"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "NODE_PATH": str(PACKAGES)})
        threading.Thread(target=self.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def write(self, line):
        with self.lock:
            self.process.stdin.write(json.dumps(line) + "\n")
            self.process.stdin.flush()

    def read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            self.calls[event["id"]].events.put(event)

    def begin(self, weir, method, *messages, kind="unary", secure=False, metadata=(), timeout=PATIENCE, options=None, stays_open=False):
        """Begins a call. `kind`: "unary", or the side that sends a stream: "client", "server" or "both"."""
        call = JsCall(self, next(self.numbers))
        self.calls[call.number] = call
        pairs = [(name, encode(value) if isinstance(value, bytes) else value) for name, value in metadata]
        call.tell(target=f"127.0.0.1:{weir.ports[-1] if secure else weir.ports[0]}", ca=self.authority if secure else None, method=method,
                  kind=kind, messages=[encode(message) for message in messages], metadata=pairs, deadline=int(1000 * timeout),
                  options=options or {}, stays_open=stays_open)
        return call

    def call(self, *arguments, **options):
        """Makes a whole call. Returns the call and its messages."""
        call = self.begin(*arguments, **options)
        return call, call.finish()
