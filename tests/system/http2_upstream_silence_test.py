#!/usr/bin/env python3
"""HTTP/2 servers that fall silent while requests wait. Takes half a minute, because weir waits for 15 seconds twice."""

import threading
import time

from harness import main
from http2_client import PING
from http2_upstream import Http2UpstreamTestCase

QUIET = 15  # seconds until weir sends a PING; after as many more seconds, weir ends the connection


class Silence(Http2UpstreamTestCase):
    def test_a_server_that_does_not_answer_a_ping_loses_its_connection(self):
        release = threading.Event()

        def reply(request):
            if request.path == "/held":
                release.wait(4 * QUIET)
            request.answer()

        dead, alive = self.serve(reply, quiet={PING}), self.serve(reply)
        began, streams = time.monotonic(), []
        for server in (dead, alive):
            client = self.client(self.weir(server, upstream='timeouts = { response = "90s" }\nretry = { attempts = 1 }'))
            client.sock.settimeout(4 * QUIET)
            streams.append((client, client.open("POST", "/held")))
            self.await_requests(server, 1)
        for server in (dead, alive):
            session = server.sessions[0]
            session.wait(lambda session=session: session.pings > 0, 2 * QUIET)
            self.assertGreater(time.monotonic() - began, QUIET - 1)
        client, stream = streams[0]
        self.assert_own_error(client.read(stream), 502)
        self.assertGreater(time.monotonic() - began, 2 * QUIET - 2)
        self.assertEqual(client.get().status, 200)
        self.assertEqual((dead.connections, alive.connections, alive.sessions[0].ended), (2, 1, False))
        release.set()
        client, stream = streams[1]
        self.assertEqual(client.read(stream).status, 200)


if __name__ == "__main__":
    main()
