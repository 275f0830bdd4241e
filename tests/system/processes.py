"""Starts weir, `weir echo` and redis-server on free ports, and ends them with the `with` block."""

import contextlib
import os
import pathlib
import queue
import random
import re
import signal
import subprocess
import tempfile
import threading
import time

from wire import PATIENCE, Client, get

WEIR = os.environ.get("WEIR", "build/weir")
REPORT = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|: runtime error: ")  # a text in every sanitizer's report
# For outgoing connections the kernel uses only ports of its ephemeral range. A Redis port from that range could become the port
# of a connection attempt while redis-server does not listen. The attempt would connect to itself and block the port.
EPHEMERAL = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
BELOW_EPHEMERAL = (20_000, max(21_000, min(EPHEMERAL, 32_768)))  # some systems begin their ephemeral range lower


class Process:
    """A program whose standard error is read line by line."""

    def __init__(self, command, **options):
        self.lines, self.news = [], queue.Queue()
        options.setdefault("stdout", subprocess.DEVNULL)
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                                        errors="replace", **options)
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self.follow, daemon=True)
        self.reader.start()

    def follow(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            self.news.put(line)
        self.news.put(None)

    def wait_for(self, pattern, count=1):
        """Waits for `count` matches of the pattern in the lines, and returns them."""
        deadline = time.monotonic() + PATIENCE
        while len(found := [match for line in list(self.lines) if (match := re.search(pattern, line))]) < count:
            try:
                ended = self.news.get(timeout=max(0.01, deadline - time.monotonic())) is None
            except queue.Empty:
                ended = True
            if ended:
                raise AssertionError(f"no line matches {pattern!r} (status {self.process.poll()}):\n{self.log()}")
        return found[:count]

    def log(self):
        return "\n".join(self.lines[-60:])

    def check_reports(self):
        """Fails the present test if the program has printed a sanitizer's report, whatever its exit status is."""
        for number, line in enumerate(self.lines):
            if REPORT.search(line):
                raise AssertionError("a sanitizer reports:\n" + "\n".join(self.lines[number:number + 120]))

    def signal(self, which):
        self.process.send_signal(which)

    def wait(self, seconds=PATIENCE):
        status = self.process.wait(seconds)
        self.reader.join(seconds)
        return status

    def stop(self):
        """Sends SIGTERM and returns the exit status. If the process does not end, sends SIGKILL."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"SIGTERM did not end it:\n{self.log()}") from None
        finally:
            self.process.stderr.close()


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def pause(process):
    """Stops a process with SIGSTOP, and returns once none of its threads runs any more. SIGCONT lets it go on."""
    process.signal(signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE
    tasks = pathlib.Path(f"/proc/{process.pid}/task")
    while any((task / "stat").read_text().rpartition(")")[2].split()[0] != "T" for task in tasks.iterdir()):
        if time.monotonic() > deadline:
            raise AssertionError("SIGSTOP did not stop the process")
        time.sleep(0.002)


class Weir(Process):
    """`weir run` with a configuration text whose ports are 0. `files` are written into its folder. `within`: a command that runs
    weir's command. At the end, checks the exit: a crash or a sanitizer's report fails the test."""

    def __init__(self, text, files=None, environment=None, output=subprocess.DEVNULL, within=(), **options):
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-test-")
        self.folder = pathlib.Path(self.scratch.name)
        for name, content in {"weir.toml": text, **(files or {})}.items():
            (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        super().__init__([*within, WEIR, "run", "--config", str(self.folder / "weir.toml")],
                         env={**os.environ, **(environment or {})}, stdout=output, **options)
        try:
            listeners = len(re.findall(r"(?m)^\s*\[\[listener\]\]", text))  # not those in comments
            self.ports = [int(match.group(1)) for match in self.wait_for(r"listening on \S*:(\d+)", listeners)]
            self.port = self.ports[0]
            self.admin = int(self.wait_for(r"admin on \S*:(\d+)")[0].group(1)) if "[admin]" in text else None
        except BaseException:
            self.process.kill()
            self.process.wait()
            self.scratch.cleanup()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            status = self.stop()
        finally:
            self.scratch.cleanup()
        self.check_reports()
        if status != 0 and kind is None:
            raise AssertionError(f"weir ended with status {status}:\n{self.log()}")

    def is_ready(self):
        return get(self.admin, "/readyz").status == 200

    def connect(self, **options):
        return Client(self.port, **options)

    def get(self, path="/", **headers):
        return get(self.port, path, **headers)

    def metric(self, name, **labels):
        return metric(self.admin, name, **labels)


def metric(admin, name, **labels):
    """Returns the sum of a metric's samples with these labels. Reads them from the admin listener at this port."""
    total = 0.0
    for line in get(admin, "/metrics").body.decode().splitlines():
        if re.match(rf"{name}(\{{|\s)", line) and all(f'{key}="{value}"' in line for key, value in labels.items()):
            total += float(line.rpartition(" ")[2])
    return total


def run_weir(*arguments, config=None, stdin=""):
    """Runs a command of weir until it ends. `config` is the content of the file for --config, `stdin` the standard input. Returns
    status, output, errors."""
    with tempfile.TemporaryDirectory(prefix="weir-test-") as folder:
        if config is not None:
            path = pathlib.Path(folder) / "weir.toml"
            path.write_text(config)
            arguments = (*arguments, "--config", str(path))
        done = subprocess.run([WEIR, *arguments], input=stdin, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    if REPORT.search(done.stderr):
        raise AssertionError("a sanitizer reports:\n" + done.stderr)
    return done.returncode, done.stdout, done.stderr


class Echo(Process):
    """`weir echo`."""

    def __init__(self, *arguments):
        super().__init__([WEIR, "echo", "--listen", "127.0.0.1:0", *arguments])
        self.port = int(self.wait_for(r"listening on \S*:(\d+)")[0].group(1))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        status = self.stop()
        self.check_reports()
        if status != 0 and kind is None:
            raise AssertionError(f"weir echo ended with status {status}:\n{self.log()}")


class Redis:
    """A redis-server without persistence, which can be killed and started again on its port."""

    def __init__(self, *options, environment=None):
        self.options, self.environment = options, {**os.environ, **(environment or {})}
        self.folder = tempfile.TemporaryDirectory(prefix="weir-redis-")
        for _ in range(20):  # if another process has the port, redis-server ends at once
            self.port = random.randrange(*BELOW_EPHEMERAL)
            if self.start():
                return
        raise AssertionError("redis-server does not start")

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
             *self.options],
            stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd=self.folder.name, env=self.environment)
        return self.answers()

    def answers(self):
        """Returns true if this redis-server answers on its port, and not another process."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError, EOFError):
                if self.command("INFO", "server").find(f"process_id:{self.process.pid}\r".encode()) >= 0:
                    return True
            time.sleep(0.02)
        return False

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def command(self, *words):
        with Client(self.port) as client:
            client.send(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words))
            return self.reply(client.wire)

    def reply(self, wire):
        line = wire.read_until(b"\r\n")[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return wire.read_exactly(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if kind == b"*":
            return [self.reply(wire) for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def calls(self, command):
        """Returns how often Redis ran the command, from INFO commandstats."""
        found = re.search(rf"cmdstat_{command}:calls=(\d+)", self.command("INFO", "commandstats").decode())
        return int(found.group(1)) if found else 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
        self.folder.cleanup()
