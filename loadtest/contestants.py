"""The contestants of `./dev bench`: nginx, HAProxy, nghttpx and weir, with one worker each, configured for the same work. modes.py
lists the modes: what they do with each request."""

import pathlib
import resource
import subprocess
import sys

import processes
from modes import HTTP2, ROUTES, RULES, SAME_AS, TENANTS, TLS, tenant_path

HERE = pathlib.Path(__file__).resolve().parent
PLENTY = 100_000  # requests per second that no contestant reaches here
# The most client connections of a proxy. Each needs a descriptor, and one more for its connection to the upstream. HAProxy
# does not start if the system allows fewer descriptors than these and its pipes need.
MOST_CONNECTIONS = min(16_384, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2 - 150)


def upstream_of(stage, mode):
    return stage.grpc_upstream if mode == "grpc" else stage.upstream


def nginx(stage, mode, port):
    tls = f"ssl_certificate {stage.folder}/edge.crt; ssl_certificate_key {stage.folder}/edge.key; ssl_protocols TLSv1.2 TLSv1.3;"
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
    forward = """
                    proxy_pass http://api;
                    proxy_http_version 1.1;
                    proxy_request_buffering off; proxy_max_temp_file_size 0;
                    proxy_set_header Connection "";
                    proxy_set_header X-Forwarded-For $remote_addr;"""
    if mode == "grpc":
        forward = "grpc_pass grpc://api; grpc_set_header X-Forwarded-For $remote_addr;"
    locations = f"location / {{ {limit} {forward} }}"
    if mode in TENANTS:
        zones = "".join(f"limit_req_zone $binary_remote_addr zone=tenant{n}:32k rate={rate};" for n in range(TENANTS[mode]))
        locations = "".join(f"location {tenant_path(n)} {{ limit_req zone=tenant{n} {burst} nodelay; {forward} }}"
                            for n in range(TENANTS[mode]))
    elif mode in ROUTES:
        locations = "".join(f"location {tenant_path(n)} {{ {limit} {forward} }}" for n in range(ROUTES[mode]))
    config = processes.nginx_config(stage.folder, f"{mode}-{port}", processes.LUA_MODULES if mode == "redis" else "", f"""
            {zones}
            limit_req_status 429;
            {f"access_log {stage.folder}/nginx-access.log combined buffer=64k flush=1s;" if mode == "watched" else ""}
            upstream api {{ server 127.0.0.1:{upstream_of(stage, mode)}; keepalive 256; keepalive_requests 1000000000; }}
            {lua}
            server {{
                listen 127.0.0.1:{port} {'ssl' if mode in TLS else ''} {'http2' if mode in HTTP2 else ''};
                {tls if mode in TLS else ''}
                {locations}
            }}""")
    return ["nginx", "-c", config, "-p", stage.folder]


def haproxy(stage, mode, port):
    if mode in ("redis", "rules", "watched") or mode in TENANTS:
        return None  # HAProxy has no state in Redis, at most three stick counters a request, and no log to a file
    most = 0 if mode == "refused" else 10 * PLENTY
    tls = f"ssl crt {stage.folder}/edge.pem ssl-min-ver TLSv1.2" if mode in TLS else ""
    version = {"h2": "alpn h2,http/1.1", "h2c": "proto h2", "grpc": "proto h2"}.get(mode, "")
    choice = "default_backend api"
    if mode in ROUTES:
        paths = stage.folder / f"haproxy-{mode}-{port}.map"
        paths.write_text("".join(f"{tenant_path(n)} api\n" for n in range(ROUTES[mode])))
        choice = f"use_backend %[path,map_beg({paths})]"
    config = stage.folder / f"haproxy-{mode}-{port}.cfg"
    config.write_text(f"""
global
    nbthread 1
    maxpipes 64
    maxconn {MOST_CONNECTIONS}
defaults
    mode http
    timeout client 300s
    timeout server 300s
    timeout connect 5s
    timeout http-keep-alive 300s
    http-reuse always
    option splice-auto
frontend edge
    bind 127.0.0.1:{port} {tls} {version}
    stick-table type ip size 100k expire 60s store http_req_rate(10s)
    http-request track-sc0 src
    http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {most} }}
    option forwardfor
    {choice}
backend api
    server one 127.0.0.1:{upstream_of(stage, mode)} {"proto h2" if mode == "grpc" else ""}
""")
    return ["haproxy", "-db", "-q", "-f", config]


def nghttpx(stage, mode, port):
    """Returns a command for HTTP/2 modes. nghttpx limits no requests, so it does less than the others."""
    if mode not in HTTP2:
        return None
    secure = mode in TLS
    files = [stage.folder / "edge.key", stage.folder / "edge.crt"] if secure else []
    return ["nghttpx", "--conf=/dev/null", "--workers=1", "--no-ocsp", "--errorlog-file=/dev/stderr", "--add-x-forwarded-for",
            "--tls-min-proto-version=TLSv1.3", f"--frontend=127.0.0.1,{port}{'' if secure else ';no-tls'}",
            f"--backend=127.0.0.1,{upstream_of(stage, mode)};/;proto={'h2' if mode == 'grpc' else 'http/1.1'}", *files]


def weir(stage, mode, port):
    return weir_command(stage, stage.weir, mode, port)


def other(stage, mode, port):
    """Returns the command of another build of weir, to compare before and after in one run (--other)."""
    return weir_command(stage, stage.other, mode, port) if stage.other else None


def lacks_http2_to_servers(binary, config):
    """Returns true, and says so, if this build of weir does not know the key `protocol` of an upstream."""
    done = subprocess.run([binary, "check", "--config", config], capture_output=True, text=True, check=False)
    lacks = ".protocol: unknown key" in done.stdout + done.stderr
    if lacks:
        print(f"bench: skips grpc for {binary}, which speaks only HTTP/1.1 to servers", file=sys.stderr)
    return lacks


def match_of_weir(path):
    return f'match = {{ path = "{path}*" }}' if path else ""


def route_of_weir(path=None):
    """Returns a route for all paths that begin with `path`, or for all."""
    return f"""
[[route]]
upstream = "api"
{match_of_weir(path)}
"""


def rule_of_weir(name, rate, burst, in_redis, path=None):
    return f"""
[[rule]]
name = "{name}"
key = ["ip"]
limit = "{rate}"
burst = {burst}
store = "{'redis' if in_redis else 'memory'}"
{match_of_weir(path)}
"""


def weir_command(stage, binary, mode, port):
    tls = f'\ntls = {{ certificates = [{{ cert = "{stage.folder}/edge.crt", key = "{stage.folder}/edge.key" }}] }}'
    rate, burst = ("1/min", 1) if mode == "refused" else (f"{PLENTY}/s", PLENTY)
    state = f"""
[state]
key_secret = "bench"
redis = {{ url = "redis://127.0.0.1:{stage.redis}", timeout = "1s" }}""" if mode == "redis" else ""
    rules = "".join(rule_of_weir(f"per-client-{n}", rate, burst, mode == "redis") for n in range(RULES if mode == "rules" else 1))
    routes = route_of_weir()
    if mode in TENANTS:
        rules = "".join(rule_of_weir(f"tenant-{n}", rate, burst, False, tenant_path(n)) for n in range(TENANTS[mode]))
    elif mode in ROUTES:
        routes = "".join(route_of_weir(tenant_path(n)) for n in range(ROUTES[mode]))
    log = f'access = "{stage.folder}/weir-{port}-access.log"' if mode == "watched" else 'access = "off"'
    admin = ""
    if mode == "watched":
        stage.admins[port] = processes.free_port()
        admin = f'[admin]\naddress = "127.0.0.1:{stage.admins[port]}"'
    config = stage.folder / f"weir-{mode}-{port}.toml"
    config.write_text(f"""
[server]
workers = 1
[log]
{log}
{admin}
[[listener]]
address = "127.0.0.1:{port}"{tls if mode in TLS else ''}
{'protocols = ["h2c"]' if mode in ("h2c", "grpc") else ""}
{state}
[[upstream]]
name = "api"
servers = ["127.0.0.1:{upstream_of(stage, mode)}"]
{'protocol = "h2c"' if mode == "grpc" else ""}
{routes}
{rules}
""")
    if mode == "grpc" and lacks_http2_to_servers(binary, config):
        return None
    return [binary, "run", "--config", config]


CONTESTANTS = {"nginx": nginx, "haproxy": haproxy, "nghttpx": nghttpx, "weir": weir, "other": other}


def start(stage, name, mode, wrapper=()):
    """Starts a contestant, under the command `wrapper` if there is one. Returns its server, or None if the contestant does not take
    part in the mode."""
    port = processes.free_port()
    command = CONTESTANTS[name](stage, SAME_AS.get(mode, mode), port)
    return stage.start(f"{name}-{mode}", [*wrapper, *command], port, stage.proxy_cpu) if command else None
