"""A dnsmasq whose records the test sets. It may be stopped and started again on its port."""

import getpass
import pathlib
import random
import re
import signal
import tempfile
import time

from processes import BELOW_EPHEMERAL, Process
from wire import PATIENCE


class Dnsmasq:
    """Dnsmasq(api="127.0.0.2 127.0.0.3") gives api.test these addresses; no other name of .test exists. `ttl`: of the addresses,
    in seconds. `records`: options of dnsmasq that add records."""

    def __init__(self, *records, ttl=1, **names):
        self.records, self.ttl = records, ttl
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-dns-")
        self.hosts = pathlib.Path(self.scratch.name) / "hosts"
        self.write(**names)
        for _ in range(20):  # if another process has the port, dnsmasq ends at once
            self.port = random.randrange(*BELOW_EPHEMERAL)
            if self.start():
                return
        raise AssertionError(f"dnsmasq does not start:\n{self.process.log()}")

    def start(self):
        self.process = Process(
            ["dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--pid-file=", f"--user={getpass.getuser()}", "--log-queries",
             f"--port={self.port}", "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv", "--no-hosts", "--local=/test/",
             f"--addn-hosts={self.hosts}", f"--local-ttl={self.ttl}", *self.records])
        deadline = time.monotonic() + PATIENCE
        while self.process.process.poll() is None and time.monotonic() < deadline:
            if self.lines_with(r"read .*/hosts - \d+ "):
                return True
            time.sleep(0.02)
        self.process.stop()
        return False

    def stop(self):
        self.process.stop()

    def lines_with(self, pattern):
        return [line for line in list(self.process.lines) if re.search(pattern, line)]

    def questions(self, name, kind="A"):
        """Returns how many times this name was asked for since the start."""
        return len(self.lines_with(rf"query\[{kind}\] {re.escape(name)} from"))

    def write(self, **names):
        text = "".join(f"{address} {name}.test\n" for name, addresses in names.items() for address in addresses.split())
        self.hosts.write_text(text)

    def say(self, **names):
        """Replaces the addresses of all names."""
        self.write(**names)
        count = len(self.lines_with(r"read .*/hosts - \d+ "))
        self.process.signal(signal.SIGHUP)
        self.process.wait_for(r"read .*/hosts - \d+ ", count + 1)

    @property
    def setting(self):
        """The setting of [server] by which weir asks this dnsmasq."""
        return f'nameservers = ["127.0.0.1:{self.port}"]'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.process.poll() is None:
            self.process.stop()
        self.scratch.cleanup()
