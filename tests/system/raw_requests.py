"""Requests byte by byte, with the expected results: a table for raw_test.py (framing and forwarding).

In a request, CASE stands for a word that differs for each case, so that the test knows which case the upstream saw. After each
request that weir must reject, the test sends a request for CASE-smuggled. The upstream must never see that request, and no
client may get a response to it."""

import dataclasses

HOST = b"Host: weir.test\r\n"
POST = b"POST /CASE HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
SMUGGLED = b"GET /CASE-smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
LONG = b"a" * 8000


@dataclasses.dataclass
class Case:
    name: str
    raw: bytes
    statuses: tuple  # statuses of the responses, in order; for a rejected request, any one of these
    kind: str  # head: weir forwards nothing; body: weir forwards at most a part; passes: weir forwards the request
    sees: tuple = ()  # for kind "passes": request lines, or pairs of request line and body
    lines: tuple = ()  # field lines that the upstream must see exactly once, in the first request
    lacks: tuple = ()  # texts with which no line of the first request may begin
    closes: bool = False


def head(name, raw, *statuses):
    return Case(name, raw, statuses or (400,), "head", closes=True)


def line(name, text, *statuses):
    return head(name, text + b"\r\n" + HOST + b"\r\n", *statuses)


def field(name, text, *statuses):
    """Puts the field between valid fields."""
    return head(name, b"GET /CASE HTTP/1.1\r\n" + HOST + text + b"\r\nX-Last: 1\r\n\r\n", *statuses)


def post(name, fields, *statuses, body=b"abc"):
    return head(name, POST + fields + b"\r\n\r\n" + body, *statuses)


def chunks(name, text):
    return Case(name, CHUNKED + b"\r\n" + text, (400,), "body", closes=True)


def passes(name, raw, *sees, **more):
    return Case(name, raw, more.pop("statuses", (200,) * max(1, len(sees))), "passes",
                sees or (b"GET /CASE HTTP/1.1",), **more)


def get(name, fields, **more):
    return passes(name, b"GET /CASE HTTP/1.1\r\n" + HOST + fields + b"\r\n\r\n", **more)


def target(name, text, sees=None, method=b"GET", **more):
    return passes(name, method + b" " + text + b" HTTP/1.1\r\n" + HOST + b"\r\n",
                  method + b" " + (sees or text) + b" HTTP/1.1", **more)


REQUEST_LINES = [
    line("no version", b"GET /CASE"),
    line("two blanks before the target", b"GET  /CASE HTTP/1.1"),
    line("two blanks before the version", b"GET /CASE  HTTP/1.1"),
    line("tabs for blanks", b"GET\t/CASE\tHTTP/1.1"),
    line("a blank in front", b" GET /CASE HTTP/1.1"),
    line("a blank behind", b"GET /CASE HTTP/1.1 "),
    line("a word too many", b"GET /CASE x HTTP/1.1"),
    line("no target", b"GET HTTP/1.1"),
    line("no method", b" /CASE HTTP/1.1"),
    line("brackets in the method", b"G(ET /CASE HTTP/1.1"),
    line("a control octet in the method", b"G\x01ET /CASE HTTP/1.1"),
    line("NUL in the target", b"GET /CASE\0 HTTP/1.1"),
    line("DEL in the target", b"GET /CASE\x7f HTTP/1.1"),
    line("a bare CR in the target", b"GET /CASE\rx HTTP/1.1"),
    line("a bare CR for a blank", b"GET /CASE\rHTTP/1.1"),
    line("http in lower case", b"GET /CASE http/1.1"),
    line("another protocol", b"GET /CASE HTTPS/1.1"),
    line("HTTP/0.9", b"GET /CASE HTTP/0.9"),
    line("HTTP/1.2", b"GET /CASE HTTP/1.2", 400, 505),
    line("HTTP/2.0", b"GET /CASE HTTP/2.0", 400, 505),
    line("HTTP/1.10", b"GET /CASE HTTP/1.10"),
    line("HTTP/11", b"GET /CASE HTTP/11"),
    line("HTTP/1.", b"GET /CASE HTTP/1."),
    line("HTTP/1,1", b"GET /CASE HTTP/1,1"),
    line("a blank in the version", b"GET /CASE HTTP/ 1.1"),
    head("the first line ends in LF", b"GET /CASE HTTP/1.1\n" + HOST + b"\r\n"),
    head("all lines end in LF", b"GET /CASE HTTP/1.1\nHost: weir.test\n\n"),
    head("the first line ends in CR", b"GET /CASE HTTP/1.1\r" + HOST + b"\r\n"),
    head("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, 505),
    head("TLS on the plain port", b"\x16\x03\x01\x00\x31\x01\x00\x00\x2d\x03\x03CASE\r\n\r\n"),
    head("PROXY that nobody asked for", b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET /CASE HTTP/1.1\r\n" + HOST + b"\r\n"),
    head("PROXY v2 that nobody asked for",
         b"\r\n\r\n\0\r\nQUIT\n!\x11\0\x0c\1\1\1\1\2\2\2\2\0\1\0\2GET /CASE HTTP/1.1\r\n" + HOST + b"\r\n"),
]

TARGETS = [
    line("a fragment", b"GET /CASE#x HTTP/1.1"),
    line("a relative target", b"GET CASE HTTP/1.1"),
    line("a relative target of a query", b"GET ?CASE HTTP/1.1"),
    line("an authority for a target", b"GET CASE.test:80 HTTP/1.1"),
    line("a backslash in front", b"GET \\CASE HTTP/1.1"),
    line("a backslash in the path", b"GET /x\\CASE HTTP/1.1"),
    line("an encoded NUL in the path", b"GET /CASE%00 HTTP/1.1"),
    line("* for another method", b"GET * HTTP/1.1"),
    line("* and something", b"OPTIONS *CASE HTTP/1.1"),
    line("a method in small letters", b"get /CASE HTTP/1.1", 400),
    line("a method with one small letter", b"POSt /CASE HTTP/1.1", 400),
    line("CONNECT", b"CONNECT CASE.test:443 HTTP/1.1", 405, 501),
    line("CONNECT with a path", b"CONNECT /CASE HTTP/1.1", 405, 501),
    line("another scheme", b"GET ftp://weir.test/CASE HTTP/1.1"),
    line("a scheme without its slashes", b"GET http:/CASE HTTP/1.1"),
    line("a URL without a host", b"GET http:///CASE HTTP/1.1"),
    line("a URL with a user", b"GET http://user@weir.test/CASE HTTP/1.1"),
    line("a URL with a bad port", b"GET http://weir.test:8x/CASE HTTP/1.1"),
    line("a URL with a comma of hosts", b"GET http://a.test,b.test\\@c/CASE HTTP/1.1"),
    head("a URL, and no Host", b"GET http://weir.test/CASE HTTP/1.1\r\n\r\n"),
    head("a target too long", b"GET /CASE" + 20_000 * b"a" + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
]

HOSTS = [head(name, b"GET /CASE HTTP/1.1\r\n" + fields + b"\r\n\r\n") for name, fields in {
    "no Host": b"X: 1",
    "Host twice": b"Host: weir.test\r\nHost: weir.test",
    "two Hosts that differ": b"Host: weir.test\r\nHost: other.test",
    "Host twice in two cases": b"Host: weir.test\r\nhOST: other.test",
    "Host with a blank in it": b"Host: weir.test other.test",
    "Host with a comma of hosts and a blank": b"Host: weir.test, other.test",
    "Host with a path": b"Host: weir.test/x",
    "Host with a user": b"Host: user@weir.test",
    "Host with a query": b"Host: weir.test?x",
    "Host with a fragment": b"Host: weir.test#x",
    "Host with a backslash": b"Host: weir.test\\x",
    "Host with a bad port": b"Host: weir.test:x",
    "Host with two ports": b"Host: weir.test:80:80",
    "Host with an open bracket": b"Host: [::1",
    "Host with words behind its bracket": b"Host: [::1]x",
    "Host beyond ASCII": "Host: wéir.test".encode(),
    "Host of a port alone": b"Host: :80",
    "Host folded": b"Host:\r\n weir.test",
    "Host with a blank before the colon": b"Host : weir.test",
}.items()]

FIELDS = [
    field("a blank before the colon", b"X : 1"),
    field("a tab before the colon", b"X\t: 1"),
    field("no colon", b"nonsense"),
    field("no name", b": 1"),
    field("a colon alone", b":"),
    field("a blank in the name", b"X Y: 1"),
    field("brackets in the name", b"X(Y): 1"),
    field("NUL in the name", b"X\0Y: 1"),
    field("a name beyond ASCII", "Ÿ: 1".encode()),
    field("a quoted name", b'"X": 1'),
    field("a folded value", b"X: 1\r\n 2"),
    field("a value folded with a tab", b"X: 1\r\n\t2"),
    field("a fold of blanks alone", b"X: 1\r\n  "),
    field("NUL in the value", b"X: a\0b"),
    field("a bare CR in the value", b"X: a\rb"),
    field("a bare CR at the end of the value", b"X: a\r"),
    field("a bare LF in the value", b"X: a\nY: b"),
    field("a line that ends in LF", b"X: a\nTransfer-Encoding: chunked"),
    field("DEL in the value", b"X: a\x7f"),
    field("ESC in the value", b"X: \x1b[31m"),
    field("0x01 in the value", b"X: \x01"),
    head("a blank-led line behind the first", b"GET /CASE HTTP/1.1\r\n X: 1\r\n" + HOST + b"\r\n"),
    head("a tab-led line behind the first", b"GET /CASE HTTP/1.1\r\n\t" + HOST + b"\r\n"),
    head("an empty line that is not: CR CR LF", b"GET /CASE HTTP/1.1\r\n" + HOST + b"\r\r\n"),
    field("more fields than are taken", b"\r\n".join(b"X-%d: 1" % number for number in range(128)), 431),
    field("a head too large", b"X: " + 20_000 * b"a", 431),
    field("a name too large", 20_000 * b"a" + b": 1", 431),
    field("Connection that names too many", b"Connection: " + b",".join(b"x%d" % number for number in range(40))),
    field("an expectation that nobody knows", b"Expect: 200-ok", 417),
    field("an expectation that nobody knows, in a list", b"Expect: 100-continue, 200-ok", 417),
    field("an expectation that nobody knows, in a second line", b"Expect: 100-continue\r\nExpect: 200-ok", 417),
]

LENGTHS = [post(name, b"Content-Length: " + value) for name, value in {
    "a length that is empty": b"",
    "a length with a sign": b"+3",
    "a negative length": b"-3",
    "a length in hex": b"0x3",
    "a length with a point": b"3.0",
    "a length with an exponent": b"3e0",
    "a length in quotes": b'"3"',
    "a length with a blank": b"3 3",
    "a length with an underscore": b"1_0",
    "a list of lengths that differ": b"3, 4",
    "a list of equal lengths": b"3, 3",
    "a list of a length and nothing": b"3,",
    "a length of 2^64 + 3": b"18446744073709551619",
    "a length of 2^64": b"18446744073709551616",
    "a length of 60 digits": 60 * b"9",
    "a length with letters": b"3abc",
    "a length with a semicolon": b"3;x=1",
    "a length with a vertical tab": b"\x0b3",
}.items()] + [
    post("two lengths that differ", b"Content-Length: 3\r\nContent-Length: 4"),
    post("two lengths, one empty", b"Content-Length: 3\r\nContent-Length:"),
    post("two lengths, one a zero", b"Content-Length: 0\r\nContent-Length: 3"),
    post("a length with a blank before the colon", b"Content-Length : 3"),
    post("a folded length", b"Content-Length:\r\n 3"),
    head("a length of GET that is none", b"GET /CASE HTTP/1.1\r\n" + HOST + b"Content-Length: x\r\n\r\n"),
]

CODINGS = [post(name, b"Transfer-Encoding: " + value, 400, 501, body=b"0\r\n\r\n") for name, value in {
    "a coding that is empty": b"",
    "a coding that nobody knows": b"xchunked",
    "another coding": b"gzip",
    "identity": b"identity",
    "identity, then chunked": b"identity, chunked",
    "chunked, then another": b"chunked, gzip",
    "another, then chunked": b"gzip, chunked",
    "chunked twice": b"chunked, chunked",
    "chunked and a comma": b"chunked,",
    "a comma and chunked": b",chunked",
    "chunked with a parameter": b"chunked;q=1",
    "chunked in quotes": b'"chunked"',
    "chunked behind a vertical tab": b"\x0bchunked",
    "chunked before a form feed": b"chunked\x0c",
    "chunked behind a no-break space": b"\xa0chunked",
    "chunked before NUL": b"chunked\0",
    "chunked with a blank in it": b"chun ked",
    "chunk": b"chunk",
}.items()] + [
    post("a length, then chunked", b"Content-Length: 3\r\nTransfer-Encoding: chunked", body=b"0\r\n\r\n"),
    post("chunked, then a length", b"Transfer-Encoding: chunked\r\nContent-Length: 3", body=b"0\r\n\r\n"),
    post("a length, and chunked in odd case", b"CONTENT-LENGTH: 3\r\ntransfer-encoding: cHuNkEd", body=b"0\r\n\r\n"),
    post("a length, and a coding that nobody knows", b"Content-Length: 3\r\nTransfer-Encoding: x", 400, 501),
    post("a length, and an empty coding", b"Content-Length: 3\r\nTransfer-Encoding:", 400, 501),
    post("chunked, blank before the colon, and a length", b"Transfer-Encoding : chunked\r\nContent-Length: 3"),
    post("chunked folded", b"Transfer-Encoding:\r\n chunked", body=b"0\r\n\r\n"),
    post("chunked in two lines", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400, 501, body=b"0\r\n\r\n"),
    post("chunked, then identity in another line", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", 400, 501),
    post("chunked behind a bare LF", b"X: 1\nTransfer-Encoding: chunked", body=b"0\r\n\r\n"),
    head("chunked in HTTP/1.0", b"POST /CASE HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    head("chunked in HTTP/1.0 kept alive",
         b"POST /CASE HTTP/1.0\r\n" + HOST + b"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
]

CHUNKS = [chunks(name, text) for name, text in {
    "no size": b"\r\nabc\r\n0\r\n\r\n",
    "a size of letters": b"zz\r\nabc\r\n0\r\n\r\n",
    "a size with 0x": b"0x3\r\nabc\r\n0\r\n\r\n",
    "a size with a sign": b"+3\r\nabc\r\n0\r\n\r\n",
    "a negative size": b"-3\r\nabc\r\n0\r\n\r\n",
    "a blank before the size": b" 3\r\nabc\r\n0\r\n\r\n",
    "a blank behind the size": b"3 \r\nabc\r\n0\r\n\r\n",
    "a tab behind the last size": b"3\r\nabc\r\n0\t\r\n\r\n",
    "an underscore in the size": b"0_3\r\nabc\r\n0\r\n\r\n",
    "a size with a point": b"3.0\r\nabc\r\n0\r\n\r\n",
    "a size of 17 digits": b"fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "a size of 2^64 + 3": b"10000000000000003\r\nabc\r\n0\r\n\r\n",
    "a size that ends in LF": b"3\nabc\r\n0\r\n\r\n",
    "a size that ends in CR": b"3\rabc\r\n0\r\n\r\n",
    "a size that ends in CR and a letter": b"3\rX\nabc\r\n0\r\n\r\n",
    "more data than the size": b"3\r\nabcd\r\n0\r\n\r\n",
    "less data than the size": b"5\r\nabc\r\n0\r\n\r\n",
    "no line's end behind the data": b"3\r\nabc0\r\n\r\n",
    "LF behind the data": b"3\r\nabc\n0\r\n\r\n",
    "CR behind the data": b"3\r\nabc\r0\r\n\r\n",
    "LF in an extension": b"3;a\nb\r\nabc\r\n0\r\n\r\n",
    "CR in an extension": b"3;a\rb\r\nabc\r\n0\r\n\r\n",
    "NUL in an extension": b"3;\0\r\nabc\r\n0\r\n\r\n",
    "an extension without a semicolon": b"3 x\r\nabc\r\n0\r\n\r\n",
    "an empty extension": b"3;\r\nabc\r\n0\r\n\r\n",
    "an extension without a name": b"3;=v\r\nabc\r\n0\r\n\r\n",
    "an extension with a blank in it": b"3; a b c\r\nabc\r\n0\r\n\r\n",
    "an extension's quote that stays open": b'3;a="\r\nabc\r\n0\r\n\r\n',
    "letters behind a quoted extension": b'3;a="b"c\r\nabc\r\n0\r\n\r\n',
    "extensions without end": b"3;" + 17_000 * b"a" + b"\r\nabc\r\n0\r\n\r\n",
    "zeros without end": 17_000 * b"0" + b"3\r\nabc\r\n0\r\n\r\n",
    "a trailer without a colon": b"3\r\nabc\r\n0\r\nnonsense\r\n\r\n",
    "a blank before a trailer's colon": b"3\r\nabc\r\n0\r\nTransfer-Encoding : chunked\r\n\r\n",
    "a trailer without a name": b"3\r\nabc\r\n0\r\n: a\r\n\r\n",
    "a folded trailer": b"3\r\nabc\r\n0\r\nX: a\r\n b\r\n\r\n",
    "a request in the trailers": b"3\r\nabc\r\n0\r\n" + SMUGGLED + b"\r\n",
    "LF in a trailer": b"3\r\nabc\r\n0\r\nX: 1\nY: 2\r\n\r\n",
    "NUL in a trailer": b"3\r\nabc\r\n0\r\nX: \0\r\n\r\n",
    "a bare CR in a trailer": b"3\r\nabc\r\n0\r\nX: a\rb\r\n\r\n",
    "trailers without end": b"3\r\nabc\r\n0\r\n" + 600 * (b"X: " + 30 * b"a" + b"\r\n") + b"\r\n",
    "LF for the last line": b"3\r\nabc\r\n0\r\n\n",
    "a last chunk that ends in LF": b"3\r\nabc\r\n0\n\r\n",
}.items()]

FRAMED = [
    passes("plain", b"GET /CASE HTTP/1.1\r\n" + HOST + b"\r\n", lines=(b"Host: weir.test",)),
    passes("an empty line in front", b"\r\nGET /CASE HTTP/1.1\r\n" + HOST + b"\r\n"),
    passes("four empty lines in front", 4 * b"\r\n" + b"GET /CASE HTTP/1.1\r\n" + HOST + b"\r\n"),
    passes("a body", POST + b"Content-Length: 3\r\n\r\nabc", (b"POST /CASE HTTP/1.1", b"abc"), lines=(b"Content-Length: 3",)),
    passes("a body of GET", b"GET /CASE HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc", (b"GET /CASE HTTP/1.1", b"abc")),
    passes("a body of none", POST + b"Content-Length: 0\r\n\r\n", (b"POST /CASE HTTP/1.1", b""), lines=(b"Content-Length: 0",)),
    passes("a length with zeros in front", POST + b"Content-Length: 003\r\n\r\nabc", (b"POST /CASE HTTP/1.1", b"abc"),
           lines=(b"Content-Length: 3",)),
    passes("two equal lengths", POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", (b"POST /CASE HTTP/1.1", b"abc"),
           lines=(b"Content-Length: 3",)),
    passes("a length with a tab", POST + b"Content-Length:\t3\t \r\n\r\nabc", (b"POST /CASE HTTP/1.1", b"abc"),
           lines=(b"Content-Length: 3",)),
    passes("a request in a body", POST + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED,
           (b"POST /CASE HTTP/1.1", SMUGGLED)),
    passes("chunks", CHUNKED + b"\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", (b"POST /CASE HTTP/1.1", b"abcde"),
           lines=(b"Transfer-Encoding: chunked",), lacks=(b"Content-Length",)),
    passes("a request in a chunk", CHUNKED + b"\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED),
           (b"POST /CASE HTTP/1.1", SMUGGLED)),
    passes("no chunk but the last", CHUNKED + b"\r\n0\r\n\r\n", (b"POST /CASE HTTP/1.1", b"")),
    passes("chunked in odd case", POST + b"tRANSFER-eNCODING:\t ChunkeD \r\n\r\n3\r\nabc\r\n0\r\n\r\n",
           (b"POST /CASE HTTP/1.1", b"abc"), lines=(b"Transfer-Encoding: chunked",)),
    passes("a size in capitals, zeros in front", CHUNKED + b"\r\n00A\r\n0123456789\r\n000\r\n\r\n",
           (b"POST /CASE HTTP/1.1", b"0123456789")),
    passes("a blank between the size and an extension", CHUNKED + b"\r\n3 ;a\r\nabc\r\n0\r\n\r\n", (b"POST /CASE HTTP/1.1", b"abc")),
    passes("extensions end here", CHUNKED + b'\r\n3;a=b; c = "d;\\"" ;e\r\nabc\r\n0;e\r\n\r\n', (b"POST /CASE HTTP/1.1", b"abc")),
    passes("trailers end here", CHUNKED + b"Trailer: X\r\n\r\n3\r\nabc\r\n0\r\nX: 1\r\nHost: other.test\r\nContent-Length: 9\r\n"
           b"Transfer-Encoding: gzip\r\nAuthorization: x\r\n\r\n", (b"POST /CASE HTTP/1.1", b"abc"),
           lacks=(b"X:", b"Content-Length", b"Authorization", b"Trailer")),
    passes("two behind each other", b"GET /CASE-a HTTP/1.1\r\n" + HOST + b"\r\nGET /CASE-b HTTP/1.1\r\n" + HOST + b"\r\n",
           b"GET /CASE-a HTTP/1.1", b"GET /CASE-b HTTP/1.1"),
    passes("one behind a body", POST + b"Content-Length: 3\r\n\r\nabcGET /CASE-b HTTP/1.1\r\n" + HOST + b"\r\n",
           (b"POST /CASE HTTP/1.1", b"abc"), b"GET /CASE-b HTTP/1.1"),
    passes("one behind chunks", CHUNKED + b"\r\n3\r\nabc\r\n0\r\n\r\nGET /CASE-b HTTP/1.1\r\n" + HOST + b"\r\n",
           (b"POST /CASE HTTP/1.1", b"abc"), b"GET /CASE-b HTTP/1.1"),
    passes("one behind a body and an empty line", POST + b"Content-Length: 3\r\n\r\nabc\r\nGET /CASE-b HTTP/1.1\r\n" + HOST + b"\r\n",
           (b"POST /CASE HTTP/1.1", b"abc"), b"GET /CASE-b HTTP/1.1"),
    passes("one behind close is nobody's", b"GET /CASE HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n" + SMUGGLED, closes=True),
    Case("one behind a bad one is nobody's", b"GET /CASE HTTP/1.1\r\n" + HOST + b"\r\nGET /x HTTP/9\r\n\r\n" + SMUGGLED,
         (200, 400), "passes", (b"GET /CASE HTTP/1.1",), closes=True),
    passes("HTTP/1.0 without Host", b"GET /CASE HTTP/1.0\r\n\r\n", lines=(b"Via: 1.0 weir",), closes=True),
    passes("HTTP/1.0 with a body", b"POST /CASE HTTP/1.0\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc",
           (b"POST /CASE HTTP/1.1", b"abc"), closes=True),
    passes("HTTP/1.0 kept alive", b"GET /CASE HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /CASE-b HTTP/1.0\r\n\r\n",
           b"GET /CASE HTTP/1.1", b"GET /CASE-b HTTP/1.1", closes=True),
]

ALIKE = [
    target("dot segments with parameters, where no rule goes by the path", b"/CASE/..;/x"),
    target("slashes in parameters, where no rule goes by the path", b"/CASE;to=%2Fx;off=50%25/a%2Fb"),
    target("a path goes on as it came", b"/CASE/%2e%2E/%41//b;p=1/./c?x=%00&y=a//b/../c"),
    target("a path of octets beyond ASCII", b"/CASE/\xc3\xa9"),
    target("8000 octets", b"/CASE/" + LONG),
    target("another method", b"/CASE", method=b"BREW"),
    target("a URL", b"http://other.test:81/CASE?x", b"/CASE?x", lines=(b"Host: other.test:81", b"X-Forwarded-Host: other.test:81")),
    target("a URL in odd case", b"HTTPS://OTHER.test/CASE", b"/CASE", lines=(b"Host: OTHER.test",)),
    target("a URL without a path", b"http://CASE.test", b"/", lines=(b"Host: CASE.test",)),
    target("a URL with a query and no path", b"http://other.test?CASE", b"/?CASE"),
    target("* of OPTIONS", b"*", method=b"OPTIONS"),
    target("* of OPTIONS as a URL", b"http://CASE.test", b"*", method=b"OPTIONS", lines=(b"Host: CASE.test",)),
    passes("Host with a port", b"GET /CASE HTTP/1.1\r\nHost: weir.test:8080\r\n\r\n", lines=(b"Host: weir.test:8080",)),
    passes("Host of IPv6", b"GET /CASE HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n", lines=(b"Host: [2001:db8::1]:80",)),
    get("fields keep their order and case", b"X-b: 1\r\nX-A: 2\r\nx-B: 3", lines=(b"X-b: 1", b"X-A: 2", b"x-B: 3")),
    get("blanks around a value go", b"X: \t a\tb \t", lines=(b"X: a\tb",)),
    get("an empty value", b"X:", lines=(b"X: ",)),
    get("a value beyond ASCII", b"X: \xff\x80", lines=(b"X: \xff\x80",)),
    get("a colon in a value", b"X: a:b", lines=(b"X: a:b",)),
]

RELAYED = [
    get("what Connection names ends here", b"Connection: X-Hop, close, x-other\r\nX-Hop: 1\r\nX-OTHER: 1\r\nX-End: 1",
        lines=(b"X-End: 1",), lacks=(b"X-Hop", b"X-OTHER", b"Connection"), closes=True),
    get("what Connection names in two lines", b"Connection: X-Hop\r\nX-Hop: 1\r\nConnection: X-Two\r\nX-Two: 1",
        lacks=(b"X-Hop", b"X-Two", b"Connection")),
    get("what is hop-by-hop ends here", b"Keep-Alive: timeout=5\r\nProxy-Connection: close\r\nTE: trailers\r\nTrailer: X\r\n"
        b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nConnection: Upgrade, HTTP2-Settings",
        lacks=(b"Keep-Alive", b"Proxy-Connection", b"TE:", b"Trailer", b"Upgrade", b"HTTP2-Settings", b"Connection")),
    passes("Connection cannot unframe a body", POST + b"Connection: Content-Length\r\nContent-Length: 3\r\n\r\nabc",
           (b"POST /CASE HTTP/1.1", b"abc"), lines=(b"Content-Length: 3",)),
    passes("Connection cannot unframe chunks", CHUNKED + b"Connection: Transfer-Encoding\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
           (b"POST /CASE HTTP/1.1", b"abc"), lines=(b"Transfer-Encoding: chunked",)),
    get("Connection cannot remove what weir says", b"Connection: Host, X-Forwarded-For, Via, X-Request-ID",
        lines=(b"Host: weir.test", b"X-Forwarded-For: 127.0.0.1", b"Via: 1.1 weir")),
    get("who asks is not for the client to say", b"X-Forwarded-For: 1.2.3.4\r\nx-forwarded-for: 5.6.7.8\r\n"
        b"X-Forwarded-Proto: https\r\nX-Forwarded-Host: other.test\r\nForwarded: for=1.2.3.4",
        lines=(b"X-Forwarded-For: 127.0.0.1", b"X-Forwarded-Proto: http", b"X-Forwarded-Host: weir.test"), lacks=(b"Forwarded",)),
    get("underscores end here", b"X_Forwarded_For: 1.2.3.4\r\nContent_Length: 5\r\nTransfer_Encoding: chunked",
        lacks=(b"X_", b"Content_", b"Transfer_")),
    get("Via goes on", b"Via: 1.1 first\r\nVia: 1.0 second", lines=(b"Via: 1.1 first, 1.0 second, 1.1 weir",)),
    get("an expectation without a body ends here", b"Expect: 100-continue", lacks=(b"Expect",)),
    passes("an expectation of HTTP/1.0 ends here", b"POST /CASE HTTP/1.0\r\n" + HOST + b"Connection: keep-alive\r\n"
           b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", (b"POST /CASE HTTP/1.1", b"abc"), lacks=(b"Expect",)),
    passes("an expectation twice", POST + b"Expect: 100-continue, 100-Continue\r\nContent-Length: 3\r\n\r\nabc",
           (b"POST /CASE HTTP/1.1", b"abc")),
    passes("an expectation, and the body at once", POST + b"Expect: 100-Continue\r\nContent-Length: 3\r\n\r\nabc",
           (b"POST /CASE HTTP/1.1", b"abc")),
    passes("Max-Forwards counts down", b"OPTIONS /CASE HTTP/1.1\r\n" + HOST + b"Max-Forwards: 7\r\n\r\n",
           b"OPTIONS /CASE HTTP/1.1", lines=(b"Max-Forwards: 6",)),
    get("Max-Forwards of GET is nobody's", b"Max-Forwards: 7", lines=(b"Max-Forwards: 7",)),
    Case("Max-Forwards ends here", b"OPTIONS /CASE HTTP/1.1\r\n" + HOST + b"Max-Forwards: 0\r\n\r\n", (200,), "passes"),
    Case("Max-Forwards of TRACE ends here", b"TRACE /CASE HTTP/1.1\r\n" + HOST + b"Max-Forwards: 0\r\n\r\n", (501,), "passes"),
    Case("Max-Forwards that is no number", b"OPTIONS /CASE HTTP/1.1\r\n" + HOST + b"Max-Forwards: x\r\n\r\n", (400,), "head", closes=True),
]

CASES = [*REQUEST_LINES, *TARGETS, *HOSTS, *FIELDS, *LENGTHS, *CODINGS, *CHUNKS, *FRAMED, *ALIKE, *RELAYED]
