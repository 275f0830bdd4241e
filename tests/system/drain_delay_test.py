#!/usr/bin/env python3
"""[server] drain_delay: after SIGTERM weir is not ready, but serves as before until the delay is over. Then it drains."""

import signal
import threading
import time

from drain_test import Held
from harness import PATIENCE, Client, TestCase, Upstream, Weir, answer, closed_port, config, eventually, get, main, request_bytes, rule
from lineage import Upgrade

LONG = 'drain_delay = "1min"'  # longer than a test waits, so the delay ends only by a signal


def ends_soon(weir):
    """Checks that the process ends long before LONG is over."""
    return weir.wait() == 0


class DrainDelay(TestCase):
    def setUp(self):
        self.upstream = self.start(Upstream(lambda exchange: (exchange.read_body(), exchange.send(answer()))))

    def weir(self, server=LONG, **given):
        return self.start(Weir(config(self.upstream.port, server=server, **given)))

    def stopping(self, weir):
        """Sends SIGTERM and waits until weir is not ready any more."""
        weir.signal(signal.SIGTERM)
        eventually(lambda: not weir.is_ready(), "weir is not ready any more")

    def test_weir_is_not_ready_but_serves_during_the_delay(self):
        weir = self.weir()
        with weir.connect() as kept:
            self.assertEqual(kept.get("/").status, 200)
            self.stopping(weir)
            self.assertEqual(get(weir.admin, "/readyz").json(), {"ready": False, "detail": "about to drain"})
            self.assertEqual(get(weir.admin, "/healthz").status, 200)
            overview = get(weir.admin, "/api/overview").json()
            self.assertEqual((overview["ready"], overview["detail"]), (False, "about to drain"))
            for _ in range(3):
                response = kept.get("/")
                self.assertEqual((response.status, response["connection"]), (200, None))
                self.assertEqual(weir.get("/").status, 200)
        weir.wait_for(r"info stopping: not ready any more; still serving for 60 s \(drain_delay\), then draining")
        self.assertNotIn("draining:", weir.log())
        weir.signal(signal.SIGTERM)
        self.assertTrue(ends_soon(weir))

    def test_drain_begins_when_the_delay_is_over(self):
        held = self.start(Held())
        weir = self.start(Weir(config(held.port, server='drain_delay = "700ms"')))
        with weir.connect() as client:
            client.send(request_bytes("GET", "/"))
            self.assertTrue(held.reached.wait(PATIENCE))
            began = time.monotonic()
            self.stopping(weir)
            weir.wait_for("info draining: completing open requests within 5 s")
            self.assertGreaterEqual(time.monotonic() - began, 0.7)
            self.assertEqual(get(weir.admin, "/readyz").json()["detail"], "draining")
            held.release.set()
            self.assertEqual(client.read().body, b"late")
        self.assertTrue(ends_soon(weir))

    def test_second_signal_begins_the_drain_and_the_third_ends_weir_at_once(self):
        held = self.start(Held())
        for first, second in (signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM):
            with self.subTest(first=first):
                held.reached.clear()
                weir = self.start(Weir(config(held.port, server=LONG).replace('drain = "5s"', 'drain = "5min"')))
                with weir.connect() as client:
                    client.send(request_bytes("GET", "/"))
                    self.assertTrue(held.reached.wait(PATIENCE))
                    weir.signal(first)
                    weir.wait_for("stopping: not ready any more")
                    weir.signal(second)
                    weir.wait_for("draining: completing open requests within 300 s")
                    weir.signal(second)
                    weir.wait_for("stopping at once")
                    self.assertTrue(ends_soon(weir))
        held.release.set()

    def test_request_in_progress_is_finished_by_a_drain_that_a_second_signal_began(self):
        held = self.start(Held())
        weir = self.start(Weir(config(held.port, server=LONG)))
        with weir.connect() as client:
            self.stopping(weir)
            client.send(request_bytes("GET", "/"))
            self.assertTrue(held.reached.wait(PATIENCE))
            weir.signal(signal.SIGTERM)
            weir.wait_for("draining: ")
            held.release.set()
            self.assertEqual(client.read().body, b"late")
            self.assertTrue(client.closed())
        self.assertTrue(ends_soon(weir))

    def test_reload_during_the_delay_is_refused(self):
        weir = self.weir()
        self.stopping(weir)
        with Client(weir.admin) as admin:
            refused = admin.request("POST", "/api/reload")
        self.assertIn("weir is stopping", refused.body.decode())
        weir.signal(signal.SIGHUP)
        weir.wait_for("error reload: failed; the running configuration is unchanged", 2)
        self.assertEqual(weir.get("/").status, 200)
        weir.signal(signal.SIGTERM)
        self.assertTrue(ends_soon(weir))

    def test_reload_changes_the_drain_delay(self):
        weir = self.weir(server="")
        file = weir.folder / "weir.toml"
        file.write_text(file.read_text().replace("[server]", "[server]\n" + LONG))
        weir.signal(signal.SIGHUP)
        weir.wait_for("reload: now: stop: not ready but serving for 1min, then a drain of up to 5s")
        weir.wait_for("reload: the configuration was reloaded")
        self.stopping(weir)
        self.assertEqual(weir.get("/").status, 200)
        weir.signal(signal.SIGTERM)
        self.assertTrue(ends_soon(weir))

    def test_weir_that_is_not_ready_yet_drains_without_a_delay(self):
        """Redis is unavailable, and weir waits for it before it accepts requests."""
        state = f'redis = {{ url = "redis://127.0.0.1:{closed_port()}", start_wait = "5min" }}'
        weir = self.weir(state=state, rules=rule(store='"redis"'))
        weir.signal(signal.SIGTERM)
        self.assertTrue(ends_soon(weir))
        self.assertNotIn("drain_delay", weir.log())

    def test_no_new_connection_is_refused_during_the_delay(self):
        weir = self.weir()
        statuses, over = [], threading.Event()

        def ask_until_over():
            while not over.is_set():
                statuses.append(weir.get("/").status)

        threads = [threading.Thread(target=ask_until_over, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(statuses) > 20, "requests are answered")
        self.stopping(weir)
        seen = len(statuses)
        eventually(lambda: len(statuses) > seen + 200, "requests are answered during the delay")
        over.set()
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())
        self.assertEqual(set(statuses), {200})
        weir.signal(signal.SIGTERM)
        self.assertTrue(ends_soon(weir))


class DrainDelayAndUpgrade(Upgrade):
    def test_old_process_of_an_upgrade_ends_without_drain_delay(self):
        weir = self.weir(routes=self.FREE, server=LONG)
        first = weir.pid
        weir.upgrade()
        self.assertEqual(weir.status_of(first), 0)
        self.assertTrue(get(weir.admin, "/readyz").json()["ready"])
        self.assertNotIn("stopping: ", weir.log())
        weir.signal(signal.SIGTERM)  # the new process has a delay of its own
        weir.wait_for("stopping: not ready any more")
        self.assertEqual(weir.get("/").status, 200)
        weir.signal(signal.SIGTERM)

    def test_upgrade_during_the_delay_is_refused(self):
        weir = self.weir(routes=self.FREE, server=LONG)
        weir.signal(signal.SIGTERM)
        weir.wait_for("stopping: not ready any more")
        weir.signal(signal.SIGUSR2)
        weir.wait_for("error upgrade: weir is stopping")
        self.assertEqual(weir.get("/").status, 200)
        weir.signal(signal.SIGTERM)

    def test_stop_signal_during_an_upgrade_keeps_the_old_process_for_the_delay(self):
        weir = self.weir(routes=self.FREE, server=LONG)
        weir.install("exec sleep 60")  # a new process that never gets ready
        weir.signal(signal.SIGUSR2)
        weir.wait_for(r"upgrade: started process \d+")
        weir.signal(signal.SIGTERM)
        weir.wait_for("weir is stopping; this process continues")
        self.assertEqual(get(weir.admin, "/readyz").json()["detail"], "about to drain")
        self.assertEqual(weir.get("/").status, 200)
        weir.signal(signal.SIGTERM)


if __name__ == "__main__":
    main()
