#!/usr/bin/env python3
"""The requests of raw_requests.py, as attackers send them, in front of an HTTP/2 server. The library of the server checks what
arrives, and no HTTP/1.1 request becomes two requests."""

import raw_requests
import raw_test
from harness import Weir, config, main
from http2_server import Http2Server, hello

NOT_IN_HTTP2 = (b"transfer-encoding", b"connection", b"upgrade")


class Judge(Http2Server):
    """A server that shows the requests that it received in the form of HTTP/1.1 requests, as the checks of raw_test.py expect them."""

    @property
    def seen(self):
        return [self.text_of(request) for request in self.requests]

    @staticmethod
    def text_of(request):
        fields = {name: value for name, value in request.fields if name.startswith(":")}
        lines = [f"{name}: {value}" for name, value in (("host", fields[":authority"]), *request.fields) if not name.startswith(":")]
        head = "\r\n".join([f"{fields[':method']} {fields[':path']} HTTP/1.1", *lines, "", ""])
        seen = raw_test.Seen(head.encode("latin-1"))
        seen.body = request.body if request.ended else None
        return seen


def in_lower_case(line):
    name, colon, value = line.partition(b":")
    return name.lower() + colon + value


class Http2RawRequests(raw_test.RawRequests):
    def setUp(self):
        self.judge = self.start(Judge(hello))
        self.weir = self.start(Weir(config(self.judge.port, upstream='protocol = "h2c"')))
        self.words = {case.name: b"C%03d" % number for number, case in enumerate(raw_requests.CASES)}

    def passed(self, case, word, seen):
        lines = tuple(in_lower_case(line) for line in case.lines if not line.lower().startswith(NOT_IN_HTTP2))
        return super().passed(raw_requests.dataclasses.replace(case, lines=lines), word, seen)


if __name__ == "__main__":
    main()
