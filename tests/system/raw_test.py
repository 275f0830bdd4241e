#!/usr/bin/env python3
"""Requests and responses as attackers and broken servers send them. Sends each line of the tables in raw_requests.py and
raw_responses.py to a running weir. A strict parser checks the bytes that the upstream received."""

import concurrent.futures
import contextlib
import re
import socket
import threading

import raw_requests
import raw_responses
from harness import Client, TestCase, Weir, config, main
from wire import CRLF2, Response, Wire, read_response

AT_ONCE = 16
LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [^\0-\x20\x7f]+ HTTP/1\.1")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([^\0-\x08\x0a-\x1f\x7f]*)")
CHUNK_SIZE = re.compile(rb"[0-9a-f]{1,16}")


class Seen:
    """One request as the upstream received it. `body` is None if the request is incomplete."""

    def __init__(self, raw):
        self.raw, self.body = raw, None
        self.line, *self.lines = raw.removesuffix(CRLF2).split(b"\r\n")

    def values(self, name):
        return [value for line in self.lines if (match := FIELD.fullmatch(line)) for key, value in [match.groups()]
                if key.lower() == name]


class RecordingUpstream:
    """An upstream that records every request, and any bytes that are no request. `reply(seen)` returns the response, and what
    happens to the connection afterwards: "keep", "close" or "reset"."""

    def __init__(self, reply):
        self.reply, self.seen, self.faults = reply, [], []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def read(self, wire):
        """Returns the next request, or None at the end of the connection."""
        try:
            seen = Seen(wire.read_until(CRLF2))
        except EOFError:
            if wire.buffer:
                self.faults.append(wire.buffer)
            return None
        self.seen.append(seen)
        lengths, codings = seen.values(b"content-length"), seen.values(b"transfer-encoding")
        sound = (LINE.fullmatch(seen.line) and all(FIELD.fullmatch(line) for line in seen.lines)
                 and len(seen.values(b"host")) == 1 and len(lengths) + len(codings) <= 1
                 and all(length.isdigit() for length in lengths) and codings in ([], [b"chunked"]))
        if not sound:
            self.faults.append(seen.raw)
            return None
        with contextlib.suppress(EOFError):  # the request is cut short, so the upstream never has all of it
            seen.body = self.chunks(wire) if codings else wire.read_exactly(int(lengths[0]) if lengths else 0)
        return seen if seen.body is not None else None

    def chunks(self, wire):
        body = b""
        while True:
            size = wire.read_until(b"\r\n")[:-2]
            if not CHUNK_SIZE.fullmatch(size):
                self.faults.append(size)
                raise EOFError
            data = wire.read_exactly(int(size, 16) + 2)
            if data[-2:] != b"\r\n":
                self.faults.append(data)
                raise EOFError
            if len(data) == 2:
                return body
            body += data[:-2]

    def serve(self, sock):
        wire = Wire(sock)
        with contextlib.suppress(OSError), sock:
            while seen := self.read(wire):
                raw, then = self.reply(seen)
                sock.sendall(raw)
                if then == "reset":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                if then != "keep":
                    return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def all_at_once(cases, check):
    """Runs all cases at the same time. Returns the names of the failed cases, each with its fault."""
    def run(case):
        try:
            return check(case)
        except (OSError, EOFError, ValueError, IndexError) as fault:
            return repr(fault)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return {case.name: fault for case, fault in zip(cases, pool.map(run, cases)) if fault}


class RawRequests(TestCase):
    def setUp(self):
        self.judge = self.start(RecordingUpstream(lambda seen: (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "keep")))
        self.weir = self.start(Weir(config(self.judge.port)))
        self.words = {case.name: b"C%03d" % number for number, case in enumerate(raw_requests.CASES)}

    def answers(self, client, case):
        """Reads responses until weir closes the connection. If the connection stays open, reads as many responses as the case
        expects."""
        answers = []
        while case.closes or len(answers) < len(case.statuses):
            try:
                answers.append(read_response(client.wire))
            except (EOFError, ConnectionResetError):
                break
        return answers

    def check(self, case):
        word = self.words[case.name]
        raw = case.raw + (raw_requests.SMUGGLED if case.kind != "passes" else b"")
        with Client(self.weir.port) as client:
            with contextlib.suppress(ConnectionError):  # rejected before all of it was sent
                client.send(raw.replace(b"CASE", word))
            answers = self.answers(client, case)
        statuses = tuple(answer.status for answer in answers)
        if case.kind == "passes":
            if statuses != case.statuses:
                return f"answered {statuses}, not {case.statuses}"
        elif len(statuses) != 1 or statuses[0] not in case.statuses:
            return f"answered {statuses}, not one of {case.statuses}"
        for answer in answers:
            if answer.status >= 400 and not {"error", "message"} <= answer.json().keys():
                return f"no JSON: {answer.body}"
        if case.closes and answers[-1]["connection"] != "close":
            return "closed without a word"
        return self.judge_of(case, word)

    def judge_of(self, case, word):
        """Checks a case against the requests that the upstream received."""
        seen = [each for each in self.judge.seen if re.search(word + rb"\b", each.raw + (each.body or b""))]
        if case.kind == "head" and seen:
            return f"the upstream saw {seen[0].raw}"
        if case.kind == "body" and any(each.body is not None or b"smuggled" in each.line for each in seen):
            return f"the upstream saw a whole request: {seen[0].raw}"
        return self.passed(case, word, seen) if case.sees and b"*" not in case.sees[0] else None

    def passed(self, case, word, seen):
        if case.sees[0] == b"OPTIONS * HTTP/1.1":
            return None  # this case differs from other cases only in its Host field
        wanted = [each if isinstance(each, tuple) else (each, b"") for each in case.sees]
        wanted = [(line.replace(b"CASE", word), body.replace(b"CASE", word)) for line, body in wanted]
        if (found := [(each.line, each.body) for each in seen]) != wanted:
            return f"the upstream saw {found}, not {wanted}"
        first = seen[0]
        for line in case.lines:
            if first.lines.count(line.replace(b"CASE", word)) != 1:
                return f"not once {line}: {first.raw}"
        for start in case.lacks:
            if any(line.lower().startswith(start.lower()) for line in first.lines):
                return f"{start} went on: {first.raw}"
        return None

    def test_each_request_of_the_table_has_the_expected_result(self):
        self.assertGreaterEqual(len(raw_requests.CASES), 150)
        self.assertEqual(all_at_once(raw_requests.CASES, self.check), {})
        self.assertEqual(self.judge.faults, [], "the upstream received bytes that are not a request")
        self.assertEqual([each.raw for each in self.judge.seen if b"smuggled" in each.line], [])
        refused = sum(case.kind == "head" for case in raw_requests.CASES)
        bad = sum(self.weir.metric("weir_client_errors_total", kind=kind) for kind in ("bad_head", "head_too_large"))
        self.assertGreaterEqual(bad, refused - 1, "counted")


class RawResponses(TestCase):
    def setUp(self):
        self.judge = self.start(RecordingUpstream(self.reply))
        self.weir = self.start(Weir(config(self.judge.port)))

    @staticmethod
    def reply(seen):
        number = seen.line.split(b" ")[1].removeprefix(b"/")
        if not number.isdigit():
            return b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright", "keep"
        case = raw_responses.CASES[int(number)]
        return case.raw, case.then

    def read(self, client, case):
        """Returns the response, and whether the response looked complete."""
        interim = []
        while (answer := Response(client.wire.read_until(CRLF2))).status < 200:
            interim.append(answer.status)
        if tuple(interim) != case.interim:
            raise ValueError(f"{interim} before, not {case.interim}")
        try:
            answer.body = read_body(client.wire, answer, case.method)
            return answer, True
        except (EOFError, ConnectionResetError):
            return answer, False

    def check(self, case):
        number = raw_responses.CASES.index(case)
        host = b"Host: weir.test\r\n"
        with Client(self.weir.port) as client:
            client.send(f"{case.method} /{number} HTTP/{case.version}\r\n".encode() + host + b"\r\n")
            try:
                answer, is_whole = self.read(client, case)
            except ConnectionResetError:  # after a reset, earlier data may be lost
                return "cut off" if case.body is not None or case.status != 200 else None
            fault = self.judge_of(case, answer, is_whole)
            if fault or not is_whole or answer["connection"] == "close" or case.version == "1.0":
                return fault
            client.send(b"GET /next HTTP/1.1\r\n" + host + b"\r\n")
            body = client.read().body
            return None if body == b"right" else f"the next answer is {body}"

    def judge_of(self, case, answer, is_whole):
        if answer.status != case.status:
            return f"answered {answer.status}: {answer.body}"
        if answer.status == 502:
            return None if answer["content-type"] == "application/json" else f"not weir's own: {answer.raw}"
        if is_whole != (case.body is not None) or (is_whole and answer.body != case.body):
            return f"whole: {is_whole}, {answer.body}"
        if answer.raw.count(b"\n") != answer.raw.count(b"\r\n"):
            return f"a bare LF went on: {answer.raw}"
        lines = answer.raw.split(b"\r\n")[1:]
        for line in case.lines:
            if lines.count(line) != 1:
                return f"not once {line}: {answer.raw}"
        for start in case.lacks:
            if any(line.lower().startswith(start.lower()) for line in lines):
                return f"{start} went on: {answer.raw}"
        return f"a stray answer: {answer.raw}" if "x-stray" in answer else None

    def test_each_response_of_the_table_has_the_expected_result(self):
        self.assertGreaterEqual(len(raw_responses.CASES), 50)
        self.assertEqual(all_at_once(raw_responses.CASES, self.check), {})
        self.assertEqual(self.judge.faults, [])
        with self.weir.connect() as client:  # the server connections in weir's pool must have nothing to send
            self.assertEqual([client.get("/next").body for _ in range(4 * AT_ONCE)], [b"right"] * 4 * AT_ONCE)


def read_body(wire, answer, method):
    if method == "HEAD" or answer.status in (204, 304):
        return b""
    if answer["transfer-encoding"] == "chunked":
        return wire.read_chunked()
    if (length := answer["content-length"]) is not None:
        return wire.read_exactly(int(length))
    return wire.read_to_end()


if __name__ == "__main__":
    main()
