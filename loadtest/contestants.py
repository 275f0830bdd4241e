"""The contestants of `./dev bench`: nginx, HAProxy and weir, with one worker each, configured for the same work.

A mode is what a request meets:

- limited: A limit that is never reached, then the upstream.
- refused: A tiny limit, so the response is 429.
- tls: The same as limited, over TLS 1.3.
- redis: The same as limited, with the state in Redis and one script call a request.
- rules: Five limits at once, none of which is reached.
- watched: limited, with an access log to a file and, for weir, its metrics read once a second"""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MODES = ("limited", "refused", "tls", "redis", "rules", "watched")
RULES = 5  # for the mode "rules"
ANSWER = "x" * 98  # the body of every proxied response
PLENTY = 100_000  # requests per second that no contestant reaches here
START_SECONDS = 10
# Connections of a proxy, each with one to the upstream. HAProxy does not start without descriptors for them.
MOST_CONNECTIONS = min(16_384, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2 - 50)


class BenchError(Exception):
    """An error message for the user, who can fix its cause."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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


class Server:
    """A process on a port of 127.0.0.1, pinned to one CPU if there are several. stop() ends it."""

    def __init__(self, name, command, port, folder, cpu):
        self.name, self.port = name, port
        self.log = folder / f"{name}.log"
        pinned = ["taskset", "-c", str(cpu), *command] if cpu is not None else command
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(pinned, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            self.wait_open()
        except BenchError:
            self.stop()
            raise

    def wait_open(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise BenchError(f"{self.name} did not open port {self.port}:\n{self.log.read_text(errors='replace')[-2000:]}")

    def cpu_seconds(self):
        return cpu_seconds(self.process.pid)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Stage:
    """Shared parts of the contestants: a folder, a certificate, an upstream, a Redis, and the CPU of each process."""

    def __init__(self, folder, weir, other=None):
        self.folder, self.weir, self.other = folder, weir, other
        cpus = sorted(os.sched_getaffinity(0))
        split = len(cpus) > 1 and shutil.which("taskset")
        self.proxy_cpu, self.load_cpu = (cpus[0], cpus[1]) if split else (None, None)
        self.servers = []
        self.admins = {}  # {port of a weir: port of its metrics}
        make_certificate(folder)

    def start(self, name, command, port, cpu):
        server = Server(name, [str(part) for part in command], port, self.folder, cpu)
        self.servers.append(server)
        return server

    def start_upstream(self):
        """Starts nginx with a response from memory: the cheapest upstream, and the same for all."""
        port = free_port()
        config = nginx_config(self.folder, "upstream", "", f"""
            server {{ listen 127.0.0.1:{port}; default_type text/plain; location / {{ return 200 "{ANSWER}"; }} }}""")
        self.upstream = port
        self.start("upstream", ["nginx", "-c", config, "-p", self.folder], port, self.load_cpu)

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

    def start_contestant(self, name, mode):
        port = free_port()
        command = CONTESTANTS[name](self, mode, port)
        return self.start(f"{name}-{mode}", command, port, self.proxy_cpu) if command else None

    def stop(self, server):
        self.servers.remove(server)
        server.stop()

    def stop_all(self):
        for server in reversed(self.servers):
            server.stop()
        self.servers = []


@contextlib.contextmanager
def on_stage(name, weir, other=None):
    """Yields a stage, which is cleared at the end in any case. An error is printed as one line and ends the program."""
    with tempfile.TemporaryDirectory(prefix=f"weir-{name}-") as folder:
        stage = Stage(pathlib.Path(folder), weir.resolve(), other and other.resolve())
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


LUA_MODULES = """
        load_module /usr/lib/nginx/modules/ndk_http_module.so;
        load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;"""


def nginx(stage, mode, port):
    tls = f"ssl_certificate {stage.folder}/edge.crt; ssl_certificate_key {stage.folder}/edge.key; ssl_protocols TLSv1.3;"
    rate = "1r/m" if mode == "refused" else f"{PLENTY}r/s"
    burst = "" if mode == "refused" else f"burst={PLENTY}"
    limit = f"limit_req zone=clients {burst} nodelay;"
    zones = f"limit_req_zone $binary_remote_addr zone=clients:10m rate={rate};"
    if mode == "rules":
        zones += "".join(f"limit_req_zone $binary_remote_addr zone=more{n}:10m rate={rate};" for n in range(1, RULES))
        limit += "".join(f"limit_req zone=more{n} {burst} nodelay;" for n in range(1, RULES))
    lua = ""
    if mode == "redis":
        lua = f'lua_package_path "{HERE}/?.lua;;"; init_by_lua_block {{ gcra = require "nginx_gcra" }}'
        limit = f"access_by_lua_block {{ gcra.limit({stage.redis}, {PLENTY}, {PLENTY}) }}"
    config = nginx_config(stage.folder, mode, LUA_MODULES if mode == "redis" else "", f"""
            {zones}
            limit_req_status 429;
            {f"access_log {stage.folder}/nginx-access.log combined buffer=64k flush=1s;" if mode == "watched" else ""}
            upstream api {{ server 127.0.0.1:{stage.upstream}; keepalive 256; keepalive_requests 1000000000; }}
            {lua}
            server {{
                listen 127.0.0.1:{port} {'ssl' if mode == 'tls' else ''};
                {tls if mode == 'tls' else ''}
                location / {{
                    {limit}
                    proxy_pass http://api;
                    proxy_http_version 1.1;
                    proxy_set_header Connection "";
                    proxy_set_header X-Forwarded-For $remote_addr;
                }}
            }}""")
    return ["nginx", "-c", config, "-p", stage.folder]


def haproxy(stage, mode, port):
    if mode in ("redis", "rules", "watched"):
        return None  # no state in Redis; at most three stick counters a request; no log to a file
    most = 0 if mode == "refused" else 10 * PLENTY
    tls = f"ssl crt {stage.folder}/edge.pem ssl-min-ver TLSv1.3" if mode == "tls" else ""
    config = stage.folder / f"haproxy-{mode}.cfg"
    config.write_text(f"""
global
    nbthread 1
    maxconn {MOST_CONNECTIONS}
defaults
    mode http
    timeout client 300s
    timeout server 300s
    timeout connect 5s
    timeout http-keep-alive 300s
    http-reuse always
frontend edge
    bind 127.0.0.1:{port} {tls}
    stick-table type ip size 100k expire 60s store http_req_rate(10s)
    http-request track-sc0 src
    http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {most} }}
    option forwardfor
    default_backend api
backend api
    server one 127.0.0.1:{stage.upstream}
""")
    return ["haproxy", "-db", "-q", "-f", config]


def weir(stage, mode, port):
    tls = f'\ntls = {{ certificates = [{{ cert = "{stage.folder}/edge.crt", key = "{stage.folder}/edge.key" }}] }}'
    rate, burst = ("1/min", 1) if mode == "refused" else (f"{PLENTY}/s", PLENTY)
    state = f"""
[state]
key_secret = "bench"
redis = {{ url = "redis://127.0.0.1:{stage.redis}", timeout = "1s" }}""" if mode == "redis" else ""
    rules = "".join(f"""
[[rule]]
name = "per-client{f'-{n}' if n else ''}"
key = ["ip"]
limit = "{rate}"
burst = {burst}
store = "{'redis' if mode == 'redis' else 'memory'}"
""" for n in range(RULES if mode == "rules" else 1))
    log = f'access = "{stage.folder}/weir-{port}-access.log"' if mode == "watched" else 'access = "off"'
    admin = ""
    if mode == "watched":
        stage.admins[port] = free_port()
        admin = f'[admin]\naddress = "127.0.0.1:{stage.admins[port]}"'
    config = stage.folder / f"weir-{mode}-{port}.toml"
    config.write_text(f"""
[server]
workers = 1
[log]
{log}
{admin}
[[listener]]
address = "127.0.0.1:{port}"{tls if mode == 'tls' else ''}
{state}
[[upstream]]
name = "api"
servers = ["127.0.0.1:{stage.upstream}"]
[[route]]
upstream = "api"
{rules}
""")
    return [stage.weir, "run", "--config", config]


def other(stage, mode, port):
    """Returns the command of another build of weir, to compare before and after in one run (--other)."""
    return [stage.other, *weir(stage, mode, port)[1:]] if stage.other else None


CONTESTANTS = {"nginx": nginx, "haproxy": haproxy, "weir": weir, "other": other}
