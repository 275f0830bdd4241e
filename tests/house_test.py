#!/usr/bin/env python3
"""Checks the rules of ARCHITECTURE.md for folders and includes. A room (a library under src) includes only
rooms below it. Pure rooms use no I/O and no threads. Each third-party library is included in only a few files.
No folder has too many files."""

import pathlib
import re
import sys

ROOMS = ["base", "limit", "http", "policy", "observe", "ask", "replay", "net", "fetch", "acme", "redis", "upstream", "proxy", "admin", "log", "config",
         "upgrade", "server", "cli"]
# Pairs of rooms: the first must not include the second, whatever their order.
INDEPENDENT = [("policy", "net"), ("net", "policy"), ("net", "limit"), ("net", "http"), ("net", "observe"), ("net", "replay")]
PURE = {"base", "limit", "http", "policy", "ask", "observe", "replay"}
# Which files may include a library's headers: (pattern of the include, allowed path pattern).
CONFINED = [
    (r"boost/asio", r"^(include/weir|src|tests/unit)/(net|redis|upstream|proxy|admin|log|config|upgrade|server|cli)/"),
    (r"boost/beast", r"^tests/unit/http/head_lines_test\.cpp$|^src/net/beast\.cpp$|^src/admin/(server/server\.cpp|pages/messages\.[ch]pp)$"),
    (r"nghttp2/", r"^src/http/http2/(session\.cpp|callbacks\.hpp)$|^tests/unit/http/http2/http2_client\.hpp$"),
    (r"^ares", r"^src/net/dns/"),
    (r"curl/", r"^src/fetch/fetch\.cpp$"),
    (r"protozero/", r"^src/(observe/span|ask/rls/(rls|grpc_services))\.cpp$"),
    (r"hiredis", r"^src/redis/connection/resp\.cpp$"),
    (r"toml\+\+", r"^src/config/read/toml_reader\.cpp$"),
    (r"cctz/", r"^src/base/time_zone\.cpp$"),
    (r"maxminddb", r"^src/policy/identity/geo_databases\.cpp$"),
    (r"re2/", r"^src/policy/routing/patterns\.cpp$"),
    (r"spdlog", r"^src/log/"),
    (r"prometheus/", r"^src/admin/metrics/[a-z_]*\.[ch]pp$"),
    (r"yaml-cpp/", r"^src/cli/import/ingress/yaml\.cpp$"),
    (r"CLI/", r"^src/cli/(command_line|command_options|servers_options)\.cpp$"),
]
MOST_FILES = 30  # the largest number of files in a folder
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def files(root):
    for top in ("include/weir", "src"):
        for path in sorted((root / top).rglob("*.?pp")):
            yield path.relative_to(root)


def room_of(path):
    parts = path.parts
    room = parts[2] if parts[0] == "include" else parts[1]
    return room if room in ROOMS else None  # src/main.cpp belongs to no room


def violations_in(root, path):
    room = room_of(path)
    for included in INCLUDE.findall((root / path).read_text()):
        owner = included.removeprefix("weir/").split("/")[0]
        if owner in ROOMS and room is not None:
            if ROOMS.index(owner) > ROOMS.index(room):
                yield f"{path} includes {included}: {owner} is above {room}"
            if (room, owner) in INDEPENDENT:
                yield f"{path} includes {included}: {room} and {owner} must not include each other"
        for pattern, allowed in CONFINED:
            if re.search(pattern, included) and not re.search(allowed, str(path)):
                yield f"{path} includes {included}: confined to {allowed}"
        if room in PURE and re.match(r"(thread|fstream|iostream|sys/socket\.h|unistd\.h)$", included):
            yield f"{path} includes {included}: {room} is pure"


def overfull_folders(root):
    """Yields a message for each folder with more than MOST_FILES files."""
    for top in ("include", "src", "tests"):
        for folder in sorted({path.parent for path in (root / top).rglob("*.?pp")}):
            count = sum(1 for path in folder.iterdir() if path.is_file())
            if count > MOST_FILES:
                yield f"{folder.relative_to(root)} has {count} files: at most {MOST_FILES}; move some of them into a folder of their own"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    seen = list(files(root))
    violations = [violation for path in seen for violation in violations_in(root, path)] + list(overfull_folders(root))
    for violation in violations:
        print(violation)
    print(f"{len(seen)} files, {len(violations)} violations")
    return 1 if violations or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
