"""The modes of `./dev bench`: what a proxy does with each request in one of them, and how the load is made."""

import handshakes
import processes

RULES = 5  # of the mode "rules", which all apply to each request
CONNECTIONS = {"limited-1000": 1000, "limited-5000": 5000, "refused-1000": 1000, "refused-5000": 5000}  # of wrk
PACED = {"paced-1": 1, "paced-8": 8, "paced-64": 64}  # connections
ROUTES = {"routes-1": 1, "routes-500": 500, "routes-1000": 1000}
TENANTS = {"tenants-1": 1, "tenants-30": 30, "tenants-1000": 1000}  # rules, of which one applies to each request
STREAMS = {"h2": (32, 8), "h2c": (32, 8), "grpc": (32, 8), "h2c-10x100": (10, 100), "h2c-1000x1": (1000, 1),
           "h2c-100x50": (100, 50), "h2c-1000x5": (1000, 5)}  # connections, and requests at once on each
MANY_STREAMS = ("h2c-10x100", "h2c-1000x1", "h2c-100x50", "h2c-1000x5")


def number_of(count, what):
    return f"{count:,} {what}s, of which one matches" if count > 1 else f"one {what}"


TITLES = {
    "limited": "Proxied and limited (98-byte answer, limit never reached)",
    "refused": "Refused (429)",
    "tls": "Proxied and limited over TLS 1.3, keep-alive",
    "redis": "Proxied and limited, state in Redis (nginx: Lua and one EVALSHA a request)",
    "rules": f"Proxied and limited by {RULES} limits at once",
    "watched": "Proxied and limited, access log to a file, weir's metrics read each second",
    "h2": "Proxied and limited over HTTP/2 and TLS 1.3: {} connections of {} streams".format(*STREAMS["h2"]),
    "h2c": "Proxied and limited over HTTP/2 without TLS: {} connections of {} streams".format(*STREAMS["h2c"]),
    "grpc": "gRPC unary calls, proxied and limited, without TLS: {} connections of {} calls".format(*STREAMS["grpc"]),
    "limited-1000": "Proxied and limited, 1,000 connections",
    "limited-5000": "Proxied and limited, 5,000 connections",
    "refused-1000": "Refused (429), 1,000 connections",
    "refused-5000": "Refused (429), 5,000 connections",
    **{mode: "HTTP/2 without TLS, {:,} requests at once: {:,} connections × {}".format(count * streams, count, streams)
       for mode, (count, streams) in STREAMS.items() if mode in MANY_STREAMS},
    **{mode: f"Latency at a third of the load over {'one connection' if count == 1 else f'{count} connections'}" for mode, count in PACED.items()},
    **{mode: f"Proxied and limited, {number_of(count, 'route')}" for mode, count in ROUTES.items()},
    **{mode: f"Proxied and limited, {number_of(count, 'rule')}" for mode, count in TENANTS.items()},
    "download": "Answers of 1 MiB",
    "upload": "Requests of 1 MiB",
    "tls-download": "Answers of 1 MiB over TLS 1.3",
    "tls-upload": "Requests of 1 MiB over TLS 1.3",
    "tls-full": "Full handshakes of TLS 1.3 (figures: of a handshake)",
    "tls-resumed": "Resumed handshakes of TLS 1.3 (figures: of a handshake)",
    "tls12-full": "Full handshakes of TLS 1.2 (figures: of a handshake)",
    "tls12-resumed": "Resumed handshakes of TLS 1.2 (figures: of a handshake)",
}
MODES = tuple(TITLES)
TLS = ("tls", "tls-download", "tls-upload", "h2", *handshakes.MODES)  # modes over TLS
HTTP2 = tuple(STREAMS)  # modes over HTTP/2

# Modes in which proxies are configured as in another mode, but the load differs.
SAME_AS = {"limited-1000": "limited", "limited-5000": "limited", "refused-1000": "refused", "refused-5000": "refused",
           "download": "limited", "upload": "limited", "tls-download": "tls", "tls-upload": "tls",
           **dict.fromkeys(PACED, "limited"), **dict.fromkeys(MANY_STREAMS, "h2c")}


def tenant_path(number):
    return f"/tenants/{number}/"


def path_of(mode):
    if mode in ROUTES or mode in TENANTS:
        return tenant_path({**ROUTES, **TENANTS}[mode] // 2) + "orders"
    if mode == "grpc":
        return processes.GRPC_PATH
    return processes.LARGE_PATH if mode.endswith("download") else processes.BODY_PATH if mode.endswith("upload") else "/"


def url_of(server, mode):
    return f"{'https' if mode in TLS else 'http'}://127.0.0.1:{server.port}{path_of(mode)}"


def expected_status(mode):
    return 429 if mode.startswith("refused") else 200
