#!/usr/bin/env python3
"""weir import translates configurations of nginx. A real nginx with the file and a weir with the translation give the same verdicts
to the same requests."""

import pathlib
import re
import subprocess
import tempfile
import textwrap
import threading
import time

from harness import PATIENCE, Client, TestCase, Upstream, Weir, answer, client_tls, eventually, main, make_certificate, run_weir, together
from proxies import Nginx

TREE = pathlib.Path(__file__).parents[2]
SAMPLES = TREE / "tests/unit/cli/import/samples"


def translated(file):
    """Returns the translation of a file, and the report."""
    status, toml, report = run_weir("import", str(file))
    if status != 0:
        raise AssertionError(f"weir import ends with {status}:\n{report}\n{toml}")
    return toml, report


class Import(TestCase):
    def pair(self, http):
        """Starts nginx, and weir with the translation. Returns both, and the report."""
        nginx = self.start(Nginx(http))
        toml, report = translated(nginx.file)
        toml = re.sub(r'^(address = )"127\.0\.0\.1:\d+"', r'\1"127.0.0.1:0"', toml, flags=re.M)
        return nginx, self.start(Weir(toml)), report

    def both(self, servers, work):
        """Runs the work with nginx and with weir at the same time, and returns the result that both have."""
        results = together(2, lambda index: work(servers[index].port))
        self.assertEqual(results[0], results[1], "nginx, weir")
        return results[1]

    def limited(self, zone, limit, more=""):
        """Starts nginx and weir, with one limit on the location /."""
        upstream = self.start(Upstream())
        return self.pair(f"""
            {zone}
            server {{ listen 127.0.0.1:PORT; {more}
              location / {{ {limit} proxy_pass http://{upstream.address}; }}
              location = /ping {{ return 200 pong; }}
            }}""")[:2]

    def statuses_of(self, count, path="/", **headers):
        return lambda port: self.statuses(port, count, path, **headers)

    def test_burst_without_delay_admits_as_many_requests_as_in_nginx(self):
        servers = self.limited("limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;", "limit_req zone=z burst=5 nodelay;")
        self.assertEqual(self.both(servers, self.statuses_of(9)), [200] * 6 + [503] * 3)
        self.assertEqual(self.both(servers, self.statuses_of(3, "/ping")), [200] * 3, "return comes before limits")

    def test_limit_without_a_burst_refuses_with_the_configured_status_as_in_nginx(self):
        servers = self.limited("limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;", "limit_req zone=z; limit_req_status 429;")
        self.assertEqual(self.both(servers, self.statuses_of(3)), [200, 429, 429])

    def test_limit_with_a_partly_delayed_burst_refuses_as_many_requests_as_in_nginx(self):
        servers = self.limited("limit_req_zone $binary_remote_addr zone=z:1m rate=30r/m;", "limit_req zone=z burst=2 delay=1;")
        results = self.both(servers, lambda port: sorted(together(5, lambda _: self.statuses(port, 1)[0])))
        self.assertEqual(results, [200] * 3 + [503] * 2)

    def test_burst_with_delay_delays_requests_as_in_nginx(self):
        servers = self.limited("limit_req_zone $binary_remote_addr zone=z:1m rate=30r/m;", "limit_req zone=z burst=2;")

        def ask(port):
            began = time.monotonic()

            def one(_):
                status = self.statuses(port, 1)[0]
                return status, round((time.monotonic() - began) / 2) if status == 200 else 0
            return sorted(together(5, one))

        self.assertEqual(self.both(servers, ask), [(200, 0), (200, 1), (200, 2), (503, 0), (503, 0)], "departures 2 s apart")

    def test_limit_refills_as_in_nginx(self):
        servers = self.limited("limit_req_zone $binary_remote_addr zone=z:1m rate=30r/m;", "limit_req zone=z burst=2 nodelay;")

        def ask(port):
            began, found = time.monotonic(), []
            for at, count in ((0, 4), (3, 2), (5, 2)):  # no verdict changes within a second of these times
                time.sleep(max(0, began + at - time.monotonic()))
                found += self.statuses(port, count)
            return found

        self.assertEqual(self.both(servers, ask), [200] * 3 + [503] + [200, 503] + [200, 503])

    def test_request_that_one_of_two_limits_refuses_is_charged_to_neither(self):
        zones = "limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m; limit_req_zone $http_x_k zone=k:1m rate=1r/m;"
        servers = self.limited(zones, "limit_req zone=z burst=3 nodelay; limit_req zone=k nodelay;")

        def ask(port):
            with Client(port) as client:
                return [client.get("/", x_k=key).status for key in "aaaabbbcde"]

        self.assertEqual(self.both(servers, ask), [200, 503, 503, 503, 200, 503, 503, 200, 200, 503])

    def test_keys_of_limits_distinguish_requests_as_in_nginx(self):
        for variable, requests in {
                "$http_x_key": [("/", {"X-Key": "a"}), ("/", {"X-Key": "b"}), ("/", {"X-Key": "a"}), ("/", {}), ("/", {})],
                "$arg_user": [("/?user=a", {}), ("/?user=b", {}), ("/?x=1&user=a", {}), ("/", {}), ("/", {})],
                "$cookie_id": [("/", {"Cookie": "id=a"}), ("/", {"Cookie": "x=1; id=b"}), ("/", {"Cookie": "id=a"}), ("/", {})],
                "$uri": [("/a", {}), ("/b", {}), ("/%61", {}), ("/b/../a", {}), ("/A", {})],
                "$host": [("/", {"Host": "a"}), ("/", {"Host": "b:80"}), ("/", {"Host": "A"}), ("/", {"Host": "b"})],
                "$server_name": [("/", {}), ("/x", {})],
                "$binary_remote_addr$http_x_key": [("/", {"X-Key": "a"}), ("/", {"X-Key": "b"}), ("/", {}), ("/", {}), ("/", {"X-Key": "b"})],
        }.items():
            with self.subTest(variable):
                servers = self.limited(f"limit_req_zone {variable} zone=z:1m rate=1r/m;", "limit_req zone=z;", "server_name a;")

                def ask(port, requests=requests):
                    with Client(port) as client:
                        return [client.request("GET", path, headers).status for path, headers in requests]
                self.assertLessEqual({200, 503}, set(self.both(servers, ask)))

    def test_limit_conn_bounds_concurrent_requests_as_in_nginx(self):
        release = threading.Event()

        def reply(exchange):
            if exchange.target == "/slow":
                release.wait(PATIENCE)
            return exchange.send(answer())

        upstreams = [self.start(Upstream(reply)) for _ in range(2)]
        nginx, weir, _ = self.pair(f"""
            limit_conn_zone $binary_remote_addr zone=c:1m;
            server {{ listen 127.0.0.1:PORT; location / {{ limit_conn c 2; proxy_pass http://{upstreams[0].address}; }} }}""")
        for server in (nginx, weir):
            release.clear()
            seen = len(upstreams[0].exchanges)
            with Client(server.port) as one, Client(server.port) as two:
                for client in (one, two):
                    client.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
                eventually(lambda seen=seen: len(upstreams[0].exchanges) == seen + 2, "two requests are under way")
                self.assertEqual(self.statuses(server.port, 2), [503, 503])
                release.set()
                self.assertEqual([one.read().status, two.read().status], [200, 200])
            eventually(lambda server=server: self.statuses(server.port, 1) == [200], "the places are free again")

    def test_requests_get_the_same_locations_and_servers_as_in_nginx(self):
        upstreams = {name: self.start(Upstream(answer(name.encode()))) for name in "abcdefgh"}
        to = {name: f"proxy_pass http://{upstream.address};" for name, upstream in upstreams.items()}
        nginx, weir, _ = self.pair(f"""
            limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;
            server {{ listen 127.0.0.1:PORT; server_name main.example;
              location / {{ {to["a"]} }}
              location /api {{ {to["b"]} }}
              location /api/v2/ {{ {to["c"]} }}
              location = /api/v2/exact {{ {to["d"]} }}
              location ^~ /static/ {{ {to["e"]} }}
              location /static/deep/ {{ {to["f"]} }}
              location ~* \\.(gif|png)$ {{ {to["g"]} }}
              location ~ ^/api/v[0-9]+/users {{ {to["h"]} }}
              location /closed/ {{ deny all; {to["a"]} }}
              location /gone/ {{ return 410; }}
            }}
            server {{ listen 127.0.0.1:PORT; server_name *.example; location / {{ {to["b"]} }} }}
            server {{ listen 127.0.0.1:PORT; server_name www.example tail.*; location / {{ {to["c"]} }} location /files/ {{ root /nowhere; }} }}
            server {{ listen 127.0.0.1:PORT; server_name ~^re[0-9]+\\.; location /x {{ {to["d"]} }} }}""")
        paths = ["/", "/api", "/apiary", "/api/v2/", "/api/v2/exact", "/api/v2/exact/", "/api/v2/users", "/api/v3/users/1", "/static/a.gif",
                 "/static/deep/a.gif", "/static/deep/a", "/A.PNG", "/api/v2/a.png", "/closed/x", "/closed/x.gif", "/gone/a", "/gone/a.png",
                 "//api//v2//exact", "/x/../api", "/%61pi", "/files/a", "/x", "/x/y.gif", "/?a=/api", "/API"]
        hosts = ["main.example", "www.example", "other.example", "a.b.example", "tail.org", "re1.org", "re1.example", "nobody", "MAIN.example:80"]

        def ask(port):
            found = {}
            with Client(port) as client:
                for host in hosts:
                    for path in paths:
                        response = client.get(path, host=host)
                        found[host, path] = response.status, response.body if response.status == 200 else b""
            return found
        found = self.both((nginx, weir), ask)
        self.assertEqual({body for _, body in found.values()}, {name.encode() for name in "abcdefgh"} | {b""})

    def test_requests_that_nginx_denies_are_denied(self):
        upstream = self.start(Upstream())
        to = f"proxy_pass http://{upstream.address};"
        nginx, weir, _ = self.pair(f"""
            server {{ listen 127.0.0.1:PORT;
              location ~ "^/private area/" {{ deny all; }}
              location ~ ^/v1/users/\\{{me\\}}/ {{ deny all; }}
              location ~ ^/a\\|b {{ deny all; }}
              location ~ ^/x.y$ {{ deny all; }}
              location ~* \\.php$ {{ deny all; }}
              location /read/ {{ limit_except GET {{ deny all; }} {to} }}
              location /asked/ {{ auth_basic off; auth_request /no; {to} }}
              location = /no {{ return 403; }}
              location / {{ {to} }}
            }}""")
        closed = ["/private%20area/x", "/v1/users/%7bme%7D/", "/a%7Cb", "/x%20y", "/x.y", "/x.php", "/X.PHP%0a", "/asked/"]
        opened = ["/private", "/v1/users/me/", "/a", "/b", "/x%20%20y", "/x.php%0a%0a", "/read/"]

        def ask(port):
            with Client(port) as client:
                found = [client.get(path).status for path in closed + opened]
                return found + [client.request(method, "/read/").status for method in ("HEAD", "POST", "DELETE")]
        self.assertEqual(self.both((nginx, weir), ask), [403] * len(closed) + [200] * len(opened) + [200, 403, 403])

    def test_rule_applies_to_its_location_and_nowhere_else(self):
        upstream = self.start(Upstream())
        to = f"proxy_pass http://{upstream.address};"
        nginx, weir, _ = self.pair(f"""
            limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;
            server {{ listen 127.0.0.1:PORT;
              location /a/ {{ limit_req zone=z burst=1 nodelay; {to} }}
              location /b/ {{ limit_req zone=z burst=1 nodelay; {to} }}
              location ~ \\.gif$ {{ {to} }}
              location / {{ {to} }}
            }}""")

        def ask(port):
            with Client(port) as client:
                return [client.get(path).status for path in ("/a/x.gif", "/c", "/a/1", "/b/1", "/a/2", "/b/2", "/b/x.gif", "/c", "/")]
        self.assertEqual(self.both((nginx, weir), ask), [200, 200, 200, 200, 503, 503, 200, 200, 200])

    def test_too_large_bodies_are_refused_as_in_nginx(self):
        servers = self.limited("", "client_max_body_size 2k;", more="client_max_body_size 1k;")

        def ask(port):
            found = []
            for path, size in (("/", 2048), ("/", 2049), ("/ping", 1024), ("/ping", 1025)):
                with Client(port) as client:
                    client.send(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode() + b"x" * min(size, 1000))
                    if size in (2048, 1024):
                        client.send(b"x" * (size - 1000))
                    found.append(client.read().status)
            return found
        self.assertEqual(self.both(servers, ask), [200, 413, 200, 413])

    def test_tls_and_load_balancing_work_as_in_nginx(self):
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-import-"))
        certificate = make_certificate(folder)["edge.crt"]
        upstreams = [self.start(Upstream(answer(name))) for name in (b"one", b"two")]
        nginx, weir, _ = self.pair(f"""
            upstream api {{ server {upstreams[0].address} weight=3; server {upstreams[1].address}; keepalive 4; }}
            server {{ listen 127.0.0.1:PORT ssl; ssl_certificate {folder}/edge.crt; ssl_certificate_key {folder}/edge.key;
              ssl_protocols TLSv1.3; location / {{ proxy_pass http://api; }} }}""")

        def ask(port):
            with Client(port, tls=client_tls(certificate, ["h2", "http/1.1"])) as client:
                chosen = client.sock.version(), client.sock.selected_alpn_protocol()
                return chosen, sorted(client.get().body for _ in range(8))
        self.assertEqual(self.both((nginx, weir), ask), (("TLSv1.3", "http/1.1"), [b"one"] * 6 + [b"two"] * 2))

    def test_redirects_are_the_same_as_in_nginx(self):
        nginx, weir, report = self.pair("""
            absolute_redirect off;
            server { listen 127.0.0.1:PORT; server_name main.example;
              location / { return 301 https://$host$request_uri; }
              location /scheme { return 308 $scheme://$server_name/new$uri; }
              location /query/ { return 302 /found?from=$host&$args; }
              location /other { return https://other.example/; }
            }
            server { listen 127.0.0.1:PORT; server_name old.example; return 307 https://main.example$uri$is_args$args; }""")

        def ask(port):
            found = []
            with Client(port) as client:
                for host in ("main.example", "MAIN.example:80", "old.example"):
                    for path in ("/", "/a/b?c=d&e", "/scheme", "/scheme/a", "/query/?a=1", "/other"):
                        response = client.get(path, host=host)
                        found.append((host, path, response.status, response["location"]))
            return found
        found = self.both((nginx, weir), ask)
        self.assertEqual({status for _, _, status, _ in found}, {301, 302, 307, 308})
        self.assertIn(("main.example", "/a/b?c=d&e", 301, "https://main.example/a/b?c=d&e"), found)
        self.assertNotIn(": return:", report)

    def test_servers_get_the_same_paths_as_from_nginx(self):
        upstream = self.start(Upstream(lambda exchange: exchange.send(answer(exchange.target.encode()))))
        to = f"proxy_pass http://{upstream.address}"
        nginx, weir, report = self.pair(f"""
            server {{ listen 127.0.0.1:PORT;
              location /strip/ {{ {to}/; }}
              location /swap/ {{ {to}/base/v2/; }}
              location /text {{ {to}/other; }}
              location /slash/ {{ {to}/joined; }}
              location = /exact {{ {to}/one; }}
              location /same/ {{ {to}/same/; }}
              location / {{ {to}/all/; }}
            }}""")
        paths = ["/strip/", "/strip/a/b?c=/strip/", "/swap/x", "/swap/", "/swap/a%20b/?q", "/text", "/textile/a?b", "/text/a", "/slash/a/b",
                 "/exact", "/exact?a=b", "/exacting", "/same/a", "/", "/a.b/c?d", "/x/../swap/%61"]

        def ask(port):
            with Client(port) as client:
                return [(path, client.get(path).body) for path in paths]
        found = dict(self.both((nginx, weir), ask))
        self.assertEqual(found["/swap/x"], b"/base/v2/x")
        self.assertEqual(found["/textile/a?b"], b"/otherile/a?b")
        self.assertNotIn("in place of", report)

    def test_header_fields_are_changed_as_in_nginx(self):
        fields = ("x-real-ip", "x-method", "x-path", "x-debug", "accept-encoding", "x-kept")

        def reply(exchange):
            seen = ";".join(f"{name}={exchange.head[name]}" for name in fields)
            exchange.send(answer(seen.encode(), headers="X-Powered-By: this\r\nX-Own: server\r\n"))

        upstream = self.start(Upstream(reply))
        nginx, weir, _ = self.pair(f"""
            add_header X-Frame-Options DENY always; add_header X-Host $host always;
            proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Method "$request_method {{it}}";
            proxy_set_header X-Path $uri; proxy_set_header X-Debug ""; proxy_set_header Accept-Encoding "";
            proxy_hide_header X-Powered-By;
            server {{ listen 127.0.0.1:PORT;
              location / {{ proxy_pass http://{upstream.address}; }}
              location /own/ {{ proxy_set_header X-Debug own; add_header X-Own more always; proxy_pass http://{upstream.address}; }}
              location /closed/ {{ deny all; proxy_pass http://{upstream.address}; }}
              location = /ping {{ add_header Cache-Control no-store always; return 200 pong; }}
            }}""")

        def ask(port):
            found = []
            with Client(port) as client:
                for path in ("/", "/a?b", "/own/a", "/closed/", "/ping"):
                    forged = {} if path == "/own/a" else {"x_real_ip": "forged"}  # nginx, unlike weir, would believe the field on this path
                    response = client.get(path, x_debug="1", x_kept="yes", accept_encoding="gzip", **forged)
                    body = response.body if response.status == 200 else b""
                    found.append((path, response.status, body, [response[name] for name in (
                        "x-frame-options", "x-host", "x-powered-by", "x-own", "cache-control")]))
            return found
        found = self.both((nginx, weir), ask)
        self.assertIn(b"x-real-ip=127.0.0.1;x-method=GET {it};x-path=/;x-debug=None", found[0][2].replace(b"%20", b" "))

    def test_client_behind_a_trusted_proxy_is_identified_as_in_nginx(self):
        upstream = self.start(Upstream())
        nginx, weir, _ = self.pair(f"""
            limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m; set_real_ip_from 127.0.0.0/8; real_ip_header X-Forwarded-For; real_ip_recursive on;
            server {{ listen 127.0.0.1:PORT; location / {{ limit_req zone=z; proxy_pass http://{upstream.address}; }} }}""")

        def ask(port):
            with Client(port) as client:
                return [client.get(x_forwarded_for=ip).status for ip in ("192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2")]
        self.assertEqual(self.both((nginx, weir), ask), [200, 503, 200, 200, 200])


class Command(TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-import-")))
        self.file = self.folder / "nginx.conf"
        self.file.write_text("server {\n  listen 8080;\n  gzip on;\n  location / { proxy_pass http://127.0.0.1:9; limit_rate 1k; }\n}\n")

    def test_weir_check_accepts_the_translation_of_every_sample(self):
        samples = sorted(SAMPLES.glob("*.conf"))
        self.assertTrue(samples)
        for sample in samples:
            with self.subTest(sample.name):
                toml, _ = translated(sample)
                (self.folder / "weir.toml").write_text(toml)
                status, _, errors = run_weir("check", str(self.folder / "weir.toml"))
                self.assertEqual(status, 0, errors)

    def test_nginx_accepts_the_samples(self):
        """The samples are configurations of nginx: nginx finds nothing wrong with the syntax of their limits and locations."""
        text = (SAMPLES / "guide.conf").read_text()
        self.file.write_text(f"pid {self.folder}/pid; error_log stderr; events {{}} http {{ access_log off; {text} }}")
        done = subprocess.run(["/usr/sbin/nginx", "-t", "-e", "stderr", "-c", self.file, "-p", self.folder], capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_guide_shows_the_translation_of_its_configuration(self):
        page = (TREE / "docs/guides/from-nginx.md").read_text()
        shown = re.search(r"^From this nginx .*?\n\n(.*?)\n\n.*?^```toml\n(.*?)^```", page, re.M | re.S)
        self.file.write_text(textwrap.dedent(shown[1]))
        toml, _ = translated(self.file)
        self.assertEqual(toml.replace(f"{self.folder}/", ""), shown[2])

    def test_report_names_the_file_and_line_of_each_note(self):
        _, report = translated(self.file)
        self.assertIn(f"{self.file}:3: gzip: no equal\n", report)
        self.assertIn(f'{self.file}:4: limit_rate: not imported; weir: bandwidth = "…" on a rule\n', report)

    def test_output_file_is_overwritten_only_with_the_option_force(self):
        output = self.folder / "weir.toml"
        self.assertEqual(run_weir("import", str(self.file), "-o", str(output))[:2], (0, ""))
        made = output.read_text()
        self.assertIn("[[listener]]", made)
        output.write_text("mine")
        status, _, errors = run_weir("import", str(self.file), "-o", str(output))
        self.assertEqual(status, 1)
        self.assertIn("exists already; write --force", errors)
        self.assertEqual(output.read_text(), "mine")
        self.assertEqual(run_weir("import", str(self.file), "-o", str(output), "--force")[0], 0)
        self.assertEqual(output.read_text(), made)

    def test_syntax_error_in_the_nginx_file_is_reported_with_its_line(self):
        self.file.write_text("server {\n  listen 80\n}\n")
        status, output, errors = run_weir("import", str(self.file))
        self.assertEqual((status, output), (2, ""))
        self.assertIn(f'{self.file}:2: "listen" ends without ";"', errors)
        self.assertEqual(run_weir("import", str(self.folder / "none"))[0], 2)

    def test_missing_certificate_file_is_reported_and_the_translation_is_still_printed(self):
        self.file.write_text("server { listen 443 ssl; ssl_certificate a.crt; ssl_certificate_key a.key; location / { proxy_pass http://127.0.0.1:9; } }")
        status, output, errors = run_weir("import", str(self.file))
        self.assertEqual(status, 1)
        self.assertIn(f'cert = "{self.folder}/a.crt"', output)
        self.assertIn("needs these changes", errors)


if __name__ == "__main__":
    main()
