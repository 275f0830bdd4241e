"""The contestants of `./dev bench`: nginx, HAProxy and weir, with one worker each, configured for the same work.

A mode is what a request meets:

- limited: A limit that is never reached, then the upstream.
- refused: A tiny limit, so the response is 429.
- tls: The same as limited, over TLS 1.3.
- redis: The same as limited, with the state in Redis and one script call a request.
- rules: Five limits at once, none of which is reached.
- watched: limited, with an access log to a file and, for weir, its metrics read once a second"""

import pathlib
import resource

import processes

HERE = pathlib.Path(__file__).resolve().parent
MODES = ("limited", "refused", "tls", "redis", "rules", "watched")
RULES = 5  # for the mode "rules"
PLENTY = 100_000  # requests per second that no contestant reaches here
# Connections of a proxy, each with one to the upstream. HAProxy does not start without descriptors for them.
MOST_CONNECTIONS = min(16_384, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2 - 50)

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
    config = processes.nginx_config(stage.folder, mode, LUA_MODULES if mode == "redis" else "", f"""
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


def start(stage, name, mode):
    """Starts a contestant. Returns its server, or None if the contestant does not take part in the mode."""
    port = processes.free_port()
    command = CONTESTANTS[name](stage, mode, port)
    return stage.start(f"{name}-{mode}", command, port, stage.proxy_cpu) if command else None
