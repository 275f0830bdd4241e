"""The processes of a measurement: proxies, upstreams and a Redis on free ports of 127.0.0.1, and the CPU and memory that they use."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ANSWER = "x" * 98  # the body of every proxied response, but of those to LARGE_PATH
LARGE_PATH, LARGE_OCTETS = "/large", 1 << 20
BODY_PATH = "/body"  # reads the whole request, then answers
LUA_MODULES = """
        load_module /usr/lib/nginx/modules/ndk_http_module.so;
        load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;"""
GRPC_PATH = "/bench.Echo/Say.grpc"  # nghttpd chooses the content type by the ending
START_SECONDS = 120  # of a busy machine, or of a server under valgrind


class BenchError(Exception):
    """An error message for the user, who can fix its cause."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def grpc_message(octets):
    """Returns a message of so many octets with the prefix that gRPC puts before each: not compressed, and the length."""
    return b"\0" + octets.to_bytes(4, "big") + b"x" * octets


def processes_below(pid):
    """Returns the process and all its descendants."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += processes_below(int(child))
    return found


def cpu_seconds(pid):
    """Returns user plus system time of a process tree: proc(5), fields 14 and 15 of stat."""
    total = 0
    for each in processes_below(pid):
        fields = pathlib.Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def octets_read(pid):
    """Returns how many octets a process has read, from sockets as well: rchar of /proc/PID/io (proc(5))."""
    return int(re.search(r"rchar: (\d+)", pathlib.Path(f"/proc/{pid}/io").read_text()).group(1))


def sample(server, client, waits):
    """Waits so often and so long. Returns the time, the CPU of the server and the octets that the client has read after each wait."""
    samples = []
    for wait in waits:
        time.sleep(wait)
        samples.append((time.monotonic(), server.cpu_seconds(), octets_read(client)))
    return samples


def share(samples, seen):
    """Adds the requests, seconds and CPU between two samples to what a client has counted in all. Octets say which part that is."""
    seconds, spent, octets = (last - first for first, last in zip(*samples))
    return seen | {"spent": spent, "counted": octets / max(seen["octets"], 1) * seen["requests"], "seconds": seconds}


def resident_bytes(pid):
    """Returns VmRSS of a process tree (proc(5))."""
    total = 0
    for each in processes_below(pid):
        status = pathlib.Path(f"/proc/{each}/status").read_text()
        total += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) * 1024
    return total


class Server:
    """A process on a port of 127.0.0.1. stop() ends it."""

    def __init__(self, name, command, port, folder):
        self.name, self.port = name, port
        self.log = folder / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            self.wait_open()
        except BenchError:
            self.stop()
            raise

    def wait_open(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                self.opened = time.monotonic()
                return
            time.sleep(0.02)
        raise BenchError(f"{self.name} did not open port {self.port}:\n{self.log.read_text(errors='replace')[-2000:]}")

    def cpu_seconds(self):
        return cpu_seconds(self.process.pid)

    def stop(self, seconds=10):
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Stage:
    """Shared parts of the contestants: a folder, a certificate, an upstream, a Redis, and the CPU of each process. If `realtime` is
    true, all processes run before any other process of the machine (SCHED_FIFO), which needs root."""

    def __init__(self, folder, weir, other=None, realtime=False):
        self.folder, self.weir, self.other = folder, weir, other
        self.run_in_realtime(realtime)
        cpus = sorted(os.sched_getaffinity(0))
        split = len(cpus) > 1 and shutil.which("taskset")
        self.proxy_cpu, self.load_cpu = (cpus[0], cpus[1]) if split else (None, None)
        self.servers = []
        self.admins = {}  # {port of a weir: port of its metrics}
        self.rates = {}  # {mode at a constant rate: requests a second}
        make_certificate(folder)

    def run_in_realtime(self, realtime):
        """Says whether processes that start from now on run before any other process of the machine."""
        self.scheduling = ["chrt", "--fifo", "1"] if realtime else []

    def start(self, name, command, port, cpu):
        server = Server(name, self.on_cpu(cpu, command), port, self.folder)
        self.servers.append(server)
        return server

    def on_cpu(self, cpu, command):
        """Returns the command pinned to this CPU, if there are several."""
        pinned = ["taskset", "-c", cpu] if cpu is not None else []
        return [str(part) for part in (*self.scheduling, *pinned, *command)]

    def on_load_cpu(self, command):
        return self.on_cpu(self.load_cpu, command)

    def start_upstream(self):
        """Starts nginx with a response from memory. This is the cheapest upstream, and all contestants use it. A large response is
        a file."""
        port = free_port()
        (self.folder / LARGE_PATH.lstrip("/")).write_bytes(b"x" * LARGE_OCTETS)
        config = nginx_config(self.folder, "upstream", LUA_MODULES, f"""
            server {{
                listen 127.0.0.1:{port} backlog=4096;
                default_type text/plain;
                location / {{ return 200 "{ANSWER}"; }}
                location {LARGE_PATH} {{ root {self.folder}; sendfile on; }}
                location {BODY_PATH} {{
                    client_body_buffer_size 1m;
                    content_by_lua_block {{ ngx.req.read_body(); ngx.header.content_length = 2; ngx.print("ok") }}
                }}
            }}""")
        self.upstream = port
        self.upstream_server = self.start("upstream", ["nginx", "-c", config, "-p", self.folder], port, self.load_cpu)

    def start_grpc_upstream(self):
        """Starts nghttpd, which answers each call of GRPC_PATH with a message from a file and the trailer of a success."""
        self.grpc_upstream = free_port()
        service = self.folder / "grpc" / GRPC_PATH.rpartition("/")[0].lstrip("/")
        service.mkdir(parents=True)
        (self.folder / "grpc" / GRPC_PATH.lstrip("/")).write_bytes(grpc_message(len(ANSWER) - 5))
        types = self.folder / "mime.types"
        types.write_text("application/grpc grpc\n")
        self.start("grpc-upstream", ["nghttpd", "--no-tls", "--address=127.0.0.1", "--trailer=grpc-status: 0", "--no-content-length",
                                     f"--mime-types-file={types}", f"--htdocs={self.folder / 'grpc'}", self.grpc_upstream],
                   self.grpc_upstream, self.load_cpu)

    def start_redis(self):
        self.redis = free_port()
        self.start("redis", ["redis-server", "--port", self.redis, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
                   self.redis, self.load_cpu)

    def redis_octets(self):
        """Returns the number of bytes that Redis has received. Calls are no measure, because several requests may share one."""
        with socket.create_connection(("127.0.0.1", self.redis), 5) as connection:
            connection.sendall(b"INFO stats\r\nQUIT\r\n")
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        return int(re.search(r"total_net_input_bytes:(\d+)", text).group(1))

    def stop(self, server, seconds=10):
        self.servers.remove(server)
        server.stop(seconds)

    def stop_all(self):
        for server in reversed(self.servers):
            server.stop()
        self.servers = []


@contextlib.contextmanager
def on_stage(name, weir, other=None, realtime=False):
    """Yields a stage, which is cleared at the end in any case. An error is printed as one line and ends the program."""
    with tempfile.TemporaryDirectory(prefix=f"weir-{name}-") as folder:
        stage = Stage(pathlib.Path(folder), weir.resolve(), other and other.resolve(), realtime)
        try:
            yield stage
        except (BenchError, OSError) as error:
            sys.exit(f"{name}: {error}")
        finally:
            stage.stop_all()


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-keyout", folder / "edge.key", "-out", folder / "edge.crt"],
                   check=True, capture_output=True)
    (folder / "edge.pem").write_text((folder / "edge.crt").read_text() + (folder / "edge.key").read_text())


def nginx_config(folder, name, top, http):
    path = folder / f"nginx-{name}.conf"
    path.write_text(f"""
        user root;
        worker_processes 1;
        daemon off;
        pid {folder}/nginx-{name}.pid;
        error_log {folder}/nginx-{name}-error.log crit;
        {top}
        events {{ worker_connections 32768; }}
        http {{
            access_log off;
            keepalive_requests 1000000000;
            keepalive_timeout 300s;
            client_body_temp_path {folder}/{name}-body; proxy_temp_path {folder}/{name}-proxy;
            fastcgi_temp_path {folder}/{name}-f; uwsgi_temp_path {folder}/{name}-u; scgi_temp_path {folder}/{name}-s;
            {http}
        }}""")
    return path
