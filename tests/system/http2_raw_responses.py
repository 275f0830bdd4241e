"""Responses of HTTP/2 servers frame by frame, with what the client must get: a table for http2_upstream_malformed_test.py."""

import dataclasses

from http2_client import CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, \
    frame
from http2_server import PUSH_PROMISE, literal

OK = (":status", "200")
EVIL = ("x-evil", "1")  # no client may see it
PADDED, UNKNOWN = 8, 0xbe
MOST = (1 << 31) - 1


@dataclasses.dataclass
class Case:
    name: str
    frames: tuple  # (kind, flags, content) on the stream, or bytes for the connection
    status: int = 502
    body: bytes | None = None  # None: the client must see that the answer is cut off, or gets weir's own 502
    method: str = "GET"
    ends: bool | None = False  # true: the fault ends the connection to the server; false: only the stream; None: either


def head(*fields, end=True, more=False):
    return HEADERS, (0 if more else END_HEADERS) | (END_STREAM if end else 0), literal(*fields)


def data(octets, end=False):
    return DATA, END_STREAM if end else 0, octets


def bad(name, *frames, **more):
    return Case(name, frames, **more)


def cut(name, *frames, **more):
    return Case(name, frames, 200, **more)


def fatal(name, *frames, **more):
    return Case(name, frames, ends=True, **more)


def whole(name, *frames, body=b"abc", status=200, **more):
    return Case(name, frames, status, body, **more)


HEADS = [bad(name, head(*fields)) for name, fields in {
    "no :status": [EVIL],
    "no field": [],
    "an empty :status": [(":status", ""), EVIL],
    "a status of two digits": [(":status", "20"), EVIL],
    "a status of four digits": [(":status", "2000"), EVIL],
    "a status of letters": [(":status", "abc"), EVIL],
    "a status with a sign": [(":status", "+20"), EVIL],
    "a status with a blank": [(":status", "200 "), EVIL],
    "status 000": [(":status", "000"), EVIL],
    "status 099": [(":status", "099"), EVIL],
    ":status twice": [OK, OK, EVIL],
    ":status twice that differs": [OK, (":status", "404"), EVIL],
    ":status behind a field": [EVIL, OK],
    "an unknown pseudo-header field": [OK, (":x", "1"), EVIL],
    "a pseudo-header field of requests": [OK, (":path", "/"), EVIL],
    "a name in upper case": [OK, ("X-Evil", "1")],
    "a name with a blank": [OK, ("x-evil x", "1")],
    "a name with a colon": [OK, ("x-evil:", "1")],
    "a name with CR LF": [OK, ("x-a\r\nx-evil", "1")],
    "a name with NUL": [OK, ("x-evil\0", "1")],
    "a name that is not ASCII": [OK, ("x-evil\xe4", "1")],
    "no name": [OK, ("", "1"), EVIL],
    "a value with CR LF": [OK, ("x-a", "1\r\nx-evil: 1")],
    "a value with CR LF and a body": [OK, ("x-a", "1\r\n\r\nx-evil")],
    "a value with CR": [OK, ("x-evil", "a\rb")],
    "a value with LF": [OK, ("x-evil", "a\nb")],
    "a value with NUL": [OK, ("x-evil", "a\0b")],
    "connection": [OK, ("connection", "x-a"), EVIL],
    "keep-alive": [OK, ("keep-alive", "timeout=5"), EVIL],
    "proxy-connection": [OK, ("proxy-connection", "keep-alive"), EVIL],
    "transfer-encoding": [OK, ("transfer-encoding", "chunked"), EVIL],
    "upgrade": [OK, ("upgrade", "websocket"), EVIL],
    "a switch of protocols": [(":status", "101"), EVIL],
    "an interim answer that ends the stream": [(":status", "103"), EVIL],
    "a length that is none": [OK, ("content-length", "x"), EVIL],
    "an empty length": [OK, ("content-length", ""), EVIL],
    "a negative length": [OK, ("content-length", "-3"), EVIL],
    "a length with a sign": [OK, ("content-length", "+3"), EVIL],
    "a length of 2^64 + 3": [OK, ("content-length", "18446744073709551619"), EVIL],
    "a list of lengths that differ": [OK, ("content-length", "3, 4"), EVIL],
}.items()] + [
    bad("two lengths that differ", head(OK, ("content-length", "3"), ("content-length", "4"), EVIL, end=False), data(b"abc", True)),
    bad("two equal lengths", head(OK, ("content-length", "3"), ("content-length", "3"), EVIL, end=False), data(b"abc", True)),
    bad("a switch of protocols, and data", head((":status", "101"), EVIL, end=False), data(b"abc", True)),
    bad("a huge field", head(OK, ("x-evil", "a" * 14_000), more=True, end=False), (CONTINUATION, END_HEADERS, literal(("x-b", "b" * 14_000))),
        data(b"abc", True)),
    bad("many fields", head(OK, *((f"x-evil{number}", "1") for number in range(200)))),
    bad("data ahead of the head", data(b"abc"), head(OK, EVIL), ends=None),
    bad("data alone", data(b"abc", True), ends=None),
    bad("a reset alone", (RST_STREAM, 0, bytes([0, 0, 0, 2]))),
    bad("a reset with NO_ERROR alone", (RST_STREAM, 0, bytes(4))),
    bad("an interim answer, and a reset", head((":status", "103"), end=False), (RST_STREAM, 0, bytes([0, 0, 0, 2]))),
    bad("an interim answer, and a head without :status", head((":status", "103"), end=False), head(EVIL)),
    bad("a window of no octet", (WINDOW_UPDATE, 0, bytes(4)), ends=None),
    bad("a window that is too large", *[(WINDOW_UPDATE, 0, MOST.to_bytes(4, "big"))] * 2),
]

BODIES = [
    cut("fewer octets than the length", head(OK, ("content-length", "30"), end=False), data(b"abc", True)),
    cut("more octets than the length", head(OK, ("content-length", "2"), end=False), data(b"abc", True)),
    cut("a second head", head(OK, end=False), data(b"abc"), head(OK, EVIL)),
    cut("a second head that does not end", head(OK, end=False), data(b"abc"), head(OK, EVIL, end=False)),
    cut("trailers that do not end the stream", head(OK, end=False), data(b"abc"), head(EVIL, end=False), data(b"d", True)),
    cut("trailers with a pseudo-header field", head(OK, end=False), data(b"abc"), head((":path", "/"), EVIL)),
    cut("trailers with a name in upper case", head(OK, end=False), data(b"abc"), head(("X-Evil", "1"))),
    cut("trailers with CR LF", head(OK, end=False), data(b"abc"), head(("x-a", "1\r\nx-evil: 1"))),
    cut("trailers with a field of the connection", head(OK, end=False), data(b"abc"), head(("connection", "x-a"), EVIL)),
    cut("a reset within the body", head(OK, end=False), data(b"abc"), (RST_STREAM, 0, bytes([0, 0, 0, 2]))),
    cut("a reset with NO_ERROR within the body", head(OK, end=False), data(b"abc"), (RST_STREAM, 0, bytes(4))),
    cut("trailers that are too large", head(OK, end=False), data(b"abc"), head(("x-evil", "a" * 14_000), more=True),
          *[(CONTINUATION, 0, literal(("x-evil", "a" * 14_000)))] * 2,
          (CONTINUATION, END_HEADERS, literal(("x-evil", "1")))),
]

CONNECTIONS = [
    fatal("a head that HPACK cannot read", (HEADERS, END_HEADERS | END_STREAM, b"\xff\xff\xff\xff\xff\xff\xff\xff")),
    fatal("index 0 of HPACK", (HEADERS, END_HEADERS | END_STREAM, b"\x80")),
    fatal("an index beyond the table of HPACK", (HEADERS, END_HEADERS | END_STREAM, b"\xfe")),
    fatal("a string of HPACK that is cut short", (HEADERS, END_HEADERS | END_STREAM, b"\x88\x00\x05ab")),
    fatal("a push", (PUSH_PROMISE, END_HEADERS, (2).to_bytes(4, "big") + literal((":method", "GET"), (":path", "/"), (":scheme", "http"),
                                                                                (":authority", "a")))),
    fatal("a push that is promised by SETTINGS", frame(SETTINGS, 0, 0, b"\0\2\0\0\0\1")),
    fatal("a head on another stream", frame(HEADERS, END_HEADERS | END_STREAM, 9999, literal(OK, EVIL))),
    fatal("a head on a stream of the server", frame(HEADERS, END_HEADERS | END_STREAM, 2, literal(OK, EVIL))),
    fatal("a head on stream 0", frame(HEADERS, END_HEADERS | END_STREAM, 0, literal(OK, EVIL))),
    fatal("data on stream 0", frame(DATA, 0, 0, b"abc")),
    fatal("data on another stream", frame(DATA, 0, 9999, b"abc")),
    fatal("a continuation of nothing", (CONTINUATION, END_HEADERS, literal(OK, EVIL))),
    fatal("a head that another frame interrupts", head(OK, EVIL, more=True), frame(PING, 0, 0, bytes(8))),
    fatal("a head without an end", head(OK, EVIL, more=True), *[(CONTINUATION, 0, literal(("x-b", "b" * 16_000)))] * 50),
    fatal("a head of empty frames", head(OK, EVIL, more=True), *[(CONTINUATION, 0, b"")] * 10_000),
    fatal("a frame that is too large", (DATA, 0, b"a" * 20_000)),
    fatal("SETTINGS of five octets", frame(SETTINGS, 0, 0, bytes(5))),
    fatal("SETTINGS on a stream", (SETTINGS, 0, b"")),
    fatal("SETTINGS with a window that is too large", frame(SETTINGS, 0, 0, b"\0\4\xff\xff\xff\xff")),
    fatal("SETTINGS with a frame size that is too small", frame(SETTINGS, 0, 0, b"\0\5\0\0\0\x64")),
    fatal("PING of seven octets", frame(PING, 0, 0, bytes(7))),
    fatal("PING on a stream", (PING, 0, bytes(8))),
    fatal("GOAWAY on a stream", (GOAWAY, 0, bytes(8))),
    fatal("RST_STREAM of three octets", (RST_STREAM, 0, bytes(3))),
    fatal("RST_STREAM of a stream that nobody opened", frame(RST_STREAM, 0, 9999, bytes(4))),
    fatal("a window of no octet for the connection", frame(WINDOW_UPDATE, 0, 0, bytes(4))),
    fatal("a window that is too large for the connection", *[frame(WINDOW_UPDATE, 0, 0, MOST.to_bytes(4, "big"))] * 2),
    fatal("unknown frames without end", frame(UNKNOWN, 0, 0, b"abc") * 1_001, head(OK, EVIL)),
    fatal("text of HTTP/1.1", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Evil: 1\r\n\r\nabc"),
    fatal("padding that is longer than the frame", head(OK, end=False), (DATA, PADDED | END_STREAM, b"\x09abc"), status=200),
    cut("more data than the window", head(OK, end=False), *[data(b"a" * 16_000)] * 200, ends=None),
]

WHOLE = [
    whole("a head and data", head(OK, end=False), data(b"abc", True)),
    whole("a length", head(OK, ("content-length", "3"), end=False), data(b"abc", True)),
    whole("data in pieces, and an empty end", head(OK, end=False), data(b"a"), data(b""), data(b"bc"), data(b"", True)),
    whole("padding", head(OK, end=False), (DATA, PADDED | END_STREAM, b"\x02abc\0\0")),
    whole("trailers", head(OK, end=False), data(b"abc"), head(("x-t", "1"))),
    whole("trailers behind a length", head(OK, ("content-length", "3"), end=False), data(b"abc"), head(("x-t", "1"))),
    whole("many unknown frames", frame(UNKNOWN, 0, 0, b"abc") * 900, head(OK, end=False), frame(UNKNOWN, 0, 0, b"abc") * 900, data(b"abc", True)),
    whole("an unknown frame", (UNKNOWN, 0, b"abc"), head(OK, end=False), (UNKNOWN, 0, b"abc"), data(b"abc", True)),
    whole("a priority", (PRIORITY, 0, bytes([0, 0, 0, 0, 7])), head(OK, end=False), data(b"abc", True)),
    whole("PING", frame(PING, 0, 0, bytes(8)), head(OK, end=False), data(b"abc", True)),
    whole("an unknown setting", frame(SETTINGS, 0, 0, b"\xbe\xbe\0\0\0\1"), head(OK, end=False), data(b"abc", True)),
    whole("interim answers", head((":status", "103"), end=False), head((":status", "100"), end=False), head(OK, end=False), data(b"abc", True)),
    whole("a head in pieces", (HEADERS, 0, literal(OK)[:1]), (CONTINUATION, END_HEADERS, literal(OK)[1:]), data(b"abc", True)),
    whole("a status that nobody knows", head((":status", "799"), end=False), data(b"abc", True), status=799),
    whole("a reset behind the end", head(OK, end=False), data(b"abc", True), (RST_STREAM, 0, bytes(4))),
    whole("nothing but a head", head(OK), body=b""),
    whole("HEAD with a length", head(OK, ("content-length", "30")), body=b"", method="HEAD"),
    whole("204", head((":status", "204")), body=b"", status=204),
    whole("304 with a length", head((":status", "304"), ("content-length", "30")), body=b"", status=304),
]

CASES = HEADS + BODIES + CONNECTIONS + WHOLE
