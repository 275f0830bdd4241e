"""Upstream responses byte by byte, with what the client must get: a table for raw_test.py (upstream faults and forwarding).

STRAY follows most responses on the same connection. STRAY is a response to no request, and no client may ever see it."""

import dataclasses

OK = b"HTTP/1.1 200 OK\r\n"
STRAY = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Stray: 1\r\n\r\nstray"


@dataclasses.dataclass
class Case:
    name: str
    raw: bytes
    status: int
    body: bytes | None = None  # None: the client must see that the response is cut off
    then: str = "keep"  # what the upstream does with the connection: "keep", "close" or "reset"
    method: str = "GET"
    version: str = "1.1"  # HTTP version of the client
    lines: tuple = ()  # field lines that the client must see exactly once
    lacks: tuple = ()
    interim: tuple = ()  # statuses of the interim responses before the final response


def whole(name, raw, body=b"abc", status=200, **more):
    return Case(name, raw, status, body, **more)


def bad(name, raw, **more):
    return Case(name, raw, 502, **more)


def cut(name, raw, then="close", **more):
    return Case(name, raw, 200, then=then, **more)


def framed(fields, body=b"abc"):
    return OK + fields + b"\r\n\r\n" + body


HEADS = [bad(name, raw) for name, raw in {
    "words": b"nonsense\r\n\r\n",
    "no version": b"200 OK\r\nContent-Length: 0\r\n\r\n",
    "another protocol": b"ICY 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/0.9": b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
    "http in lower case": b"http/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "a status of two digits": b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
    "a status of letters": b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n",
    "a negative status": b"HTTP/1.1 -20 OK\r\nContent-Length: 0\r\n\r\n",
    "status 000": b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
    "status 099": b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
    "no status": b"HTTP/1.1 \r\nContent-Length: 0\r\n\r\n",
    "two blanks before the status": b"HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n",
    "NUL in the reason": b"HTTP/1.1 200 O\0K\r\nContent-Length: 0\r\n\r\n",
    "a bare CR in the reason": b"HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n",
    "SSH's greeting, and no more": b"SSH-2.0-OpenSSH_9.2\r\n",
    "SMTP's greeting, and no more": b"220 smtp ready\r\n",
    "an alert of TLS, and no more": b"\x15\x03\x03\x00\x02\x02\x0a",
    "a page without a head, and no more": b"<p>this is no HTTP</p>\n",
    "a bad status line, and no more": b"HTTP/1.1 2OO OK\r\n",
    "a switch that nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    "a blank before the colon": framed(b"Content-Length : 3"),
    "a folded field": framed(b"Content-Length: 3\r\nX: a\r\n b"),
    "NUL in a value": framed(b"Content-Length: 3\r\nX: a\0b"),
    "a bare CR that ends a line": b"HTTP/1.1 200 OK\rContent-Length: 0\r\n\r\n",
    "a folded line behind LF": b"HTTP/1.1 200 OK\nContent-Length: 3\nX: a\n b\n\nabc",
    "a bare CR in a value": framed(b"Content-Length: 3\r\nX: a\rb"),
    "no colon": framed(b"Content-Length: 3\r\nnonsense"),
    "no name": framed(b"Content-Length: 3\r\n: a"),
    "a name with a blank": framed(b"Content-Length: 3\r\nX Y: a"),
    "a huge head": framed(b"Content-Length: 3\r\nX: " + 40_000 * b"a"),
    "a huge line without an end": OK + b"X: " + 70_000 * b"a",
    "more fields than are taken": framed(b"\r\n".join(b"X-%d: 1" % number for number in range(200))),
    "a length that is none": framed(b"Content-Length: x"),
    "an empty length": framed(b"Content-Length:"),
    "a negative length": framed(b"Content-Length: -3"),
    "a length with a sign": framed(b"Content-Length: +3"),
    "a length of 2^64 + 3": framed(b"Content-Length: 18446744073709551619"),
    "two lengths that differ": framed(b"Content-Length: 3\r\nContent-Length: 4"),
    "a list of lengths that differ": framed(b"Content-Length: 3, 4"),
    "a length and chunks": framed(b"Content-Length: 3\r\nTransfer-Encoding: chunked", b"3\r\nabc\r\n0\r\n\r\n"),
    "another coding": framed(b"Transfer-Encoding: gzip"),
    "another coding and a length": framed(b"Transfer-Encoding: gzip\r\nContent-Length: 3"),
    "an empty coding": framed(b"Transfer-Encoding:"),
    "chunked twice": framed(b"Transfer-Encoding: chunked, chunked", b"3\r\nabc\r\n0\r\n\r\n"),
    "chunked in two lines": framed(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
    "identity": framed(b"Transfer-Encoding: identity"),
    "first chunk of no size": framed(b"Transfer-Encoding: chunked", b"zz\r\nabc\r\n"),
}.items()] + [
    bad("nothing", b"", then="close"),
    bad("a reset", b"", then="reset"),
    bad("half a status line", b"HTTP/1.1 20", then="close"),
    bad("half a head", OK + b"Content-Length: 3\r\nX: ", then="close"),
    bad("half a head of lines that end in LF", b"HTTP/1.1 200 OK\nContent-Length: 2\n", then="close"),
    bad("an interim answer alone", b"HTTP/1.1 103 Early Hints\r\n\r\n", then="close", interim=(103,)),
]

CUT = [
    cut("fewer octets than the length", framed(b"Content-Length: 30")),
    cut("fewer octets than the length, and a reset", framed(b"Content-Length: 30"), then="reset"),
    cut("none of the octets of the length", framed(b"Content-Length: 30", b"")),
    cut("no last chunk", framed(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n")),
    cut("half a chunk", framed(b"Transfer-Encoding: chunked", b"9\r\nabc")),
    cut("half a size", framed(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n1")),
    cut("half a trailer", framed(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\nX: ")),
    cut("a bad second chunk", framed(b"Transfer-Encoding: chunked", b"3\r\nabc\r\nzz\r\n"), then="keep"),
    cut("a chunk longer than its size", framed(b"Transfer-Encoding: chunked", b"3\r\nabcd\r\n0\r\n\r\n"), then="keep"),
    cut("a chunk that ends in LF", framed(b"Transfer-Encoding: chunked", b"3\r\nabc\n0\r\n\r\n"), then="keep"),
    cut("a reset for an end", framed(b"X: 1"), then="reset"),
    cut("half a body to HTTP/1.0", framed(b"Content-Length: 30"), version="1.0"),
    cut("half of the chunks to HTTP/1.0", framed(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n"), version="1.0"),
]

WHOLE = [
    whole("a length", framed(b"Content-Length: 3")),
    whole("a length, and more", framed(b"Content-Length: 3") + STRAY),
    whole("a length, and an octet more", framed(b"Content-Length: 3", b"abcd")),
    whole("two equal lengths", framed(b"Content-Length: 3\r\nContent-Length: 3"), lines=(b"Content-Length: 3",)),
    whole("no reason", b"HTTP/1.1 200 \r\nContent-Length: 3\r\n\r\nabc"),
    whole("no reason and no blank", b"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc"),
    whole("a status that nobody knows", b"HTTP/1.1 799 Odd\r\nContent-Length: 3\r\n\r\nabc", status=799),
    whole("until the end", framed(b"X: 1"), then="close", lines=(b"Transfer-Encoding: chunked",)),
    whole("until the end, to HTTP/1.0", framed(b"X: 1"), then="close", version="1.0", lacks=(b"Transfer-Encoding",)),
    whole("until the end, of HTTP/1.0", b"HTTP/1.0 200 OK\r\n\r\nabc", then="close"),
    whole("HTTP/1.0 with a length", b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc" + STRAY),
    whole("chunks", framed(b"Transfer-Encoding: chunked", b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n")),
    whole("chunks, and more", framed(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\n\r\n") + STRAY),
    whole("chunks with extensions and trailers", framed(b"Transfer-Encoding: chunked", b"3;x\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"), lacks=(b"X-T",)),
    whole("chunks whose sizes are padded", framed(b"Transfer-Encoding: chunked", b"3  \r\nabc\r\n0 \r\n\r\n")),
    whole("chunks of HTTP/1.0", b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + STRAY),
    whole("chunks to HTTP/1.0", framed(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\n\r\n"), version="1.0",
          lacks=(b"Transfer-Encoding",)),
    whole("HEAD with a length", framed(b"Content-Length: 3", b""), b"", method="HEAD", lines=(b"Content-Length: 3",)),
    whole("HEAD with a body all the same", framed(b"Content-Length: 73", STRAY), b"", method="HEAD"),
    whole("HEAD with chunks", framed(b"Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\n\r\n"), b"", method="HEAD"),
    whole("204 with a body all the same", b"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\nabc", b"", 204, lacks=(b"Content-Length",)),
    whole("204 with chunks", b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"", 204, lacks=(b"Transfer-Encoding",)),
    whole("204 and more", b"HTTP/1.1 204 No\r\n\r\n" + STRAY, b"", 204),
    whole("304 with a length", b"HTTP/1.1 304 Same\r\nContent-Length: 73\r\n\r\n" + STRAY, b"", 304, lines=(b"Content-Length: 73",)),
    whole("HEAD with a length and chunks", framed(b"Content-Length: 3\r\nTransfer-Encoding: chunked", b""), b"", method="HEAD",
          lacks=(b"Content-Length", b"Transfer-Encoding")),
    whole("HEAD with chunks and a length, and a body", framed(b"Transfer-Encoding: chunked\r\nContent-Length: 3", b"3\r\nabc\r\n0\r\n\r\n"),
          b"", method="HEAD", lacks=(b"Content-Length",)),
    whole("HEAD with another coding", framed(b"Transfer-Encoding: gzip, chunked", b""), b"", method="HEAD"),
    whole("HEAD with a length that is none", framed(b"Content-Length: x", b""), b"", method="HEAD", lacks=(b"Content-Length",)),
    whole("HEAD with two lengths", framed(b"Content-Length: 3\r\nContent-Length: 4", b""), b"", method="HEAD",
          lacks=(b"Content-Length",)),
    whole("304 with a length and chunks", b"HTTP/1.1 304 Same\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + STRAY,
          b"", 304, lacks=(b"Content-Length", b"Transfer-Encoding")),
    whole("204 with a length and chunks", b"HTTP/1.1 204 No\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + STRAY,
          b"", 204, lacks=(b"Content-Length", b"Transfer-Encoding")),
    whole("an interim answer with a length and chunks",
          b"HTTP/1.1 103 Early Hints\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + framed(b"Content-Length: 3"),
          interim=(103,)),
    whole("426 names the protocols", b"HTTP/1.1 426 Upgrade\r\nContent-Length: 3\r\nConnection: Upgrade\r\nUpgrade: TLS/1.2, x\r\n\r\nabc",
          status=426, lines=(b"Upgrade: TLS/1.2, x", b"Connection: upgrade")),
    whole("an interim answer", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + framed(b"Content-Length: 3"), interim=(103,)),
    whole("many interim answers", 9 * b"HTTP/1.1 102 Wait\r\n\r\n" + framed(b"Content-Length: 3"), interim=9 * (102,)),
    whole("100 that nobody asked for", b"HTTP/1.1 100 Continue\r\n\r\n" + framed(b"Content-Length: 3"), interim=(100,)),
    whole("an interim answer with a length", b"HTTP/1.1 103 Early Hints\r\nContent-Length: 73\r\n\r\n" + framed(b"Content-Length: 3"),
          interim=(103,)),
    whole("an interim answer to HTTP/1.0", b"HTTP/1.1 103 Early Hints\r\n\r\n" + framed(b"Content-Length: 3"), version="1.0"),
    whole("lines that end in LF", b"HTTP/1.1 200 OK\nContent-Length: 3\nX: 1\nY: 2 \nZ: 3\n\nabc", lines=(b"X: 1", b"Y: 2", b"Z: 3"),
          lacks=(b"Transfer-Encoding",)),
    whole("a status line that ends in LF", b"HTTP/1.1 200 OK\nContent-Length: 3\r\nX: 1\r\n\r\nabc", lines=(b"X: 1",)),
    whole("a field that ends in LF", framed(b"Content-Length: 3\r\nX: a\nSet-Cookie: b"), lines=(b"X: a", b"Set-Cookie: b")),
    whole("an empty line of LF alone", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\nabc" + STRAY),
    whole("lines that end in LF, of a script", b"HTTP/1.0 200 OK\nContent-Type: text/plain\n\nabc", then="close",
          lines=(b"Content-Type: text/plain",)),
    whole("an interim answer whose lines end in LF", b"HTTP/1.1 103 Early Hints\nLink: x\n\nHTTP/1.1 200 OK\nContent-Length: 3\n\nabc",
          interim=(103,)),
    whole("lines that end in LF, and chunks", b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\r\nabc\r\n0\r\n\r\n"),
    whole("hop-by-hop fields end here", framed(b"Content-Length: 3\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: x\r\nUpgrade: h2c\r\n"
                                              b"Proxy-Connection: x\r\nX-End: 1"), lines=(b"X-End: 1",),
          lacks=(b"X-Hop", b"Keep-Alive", b"Upgrade", b"Proxy-Connection", b"Connection")),
    whole("Connection cannot unframe an answer", framed(b"Content-Length: 3\r\nConnection: Content-Length"), lines=(b"Content-Length: 3",)),
    whole("blanks around values go", framed(b"Content-Length: \t 3 \r\nX:  \t a \t"), lines=(b"Content-Length: 3", b"X: a")),
    whole("cookies keep their lines", framed(b"Content-Length: 3\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2"),
          lines=(b"Set-Cookie: a=1", b"Set-Cookie: b=2")),
]

CASES = [*HEADS, *CUT, *WHOLE]
