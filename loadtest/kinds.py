"""Exactness of two kinds of rules, for exact.py and exact_shared.py: penalties, and costs that streams report.

- penalty: a log of LIMIT a second, and a penalty of a second after each refusal. A penalty ends when no admission is younger than
  a second. So each penalty follows LIMIT admissions, and the clients go on until a penalty runs: admitted = LIMIT x penalties.
- streams: the upstream answers with event streams that report different costs. In the end the clients have used up the sum of what
  the upstream has reported, to the unit."""

import asyncio
import http.client
import itertools
import json
import random
import threading
import time

LIMIT = 200
RESERVE = 100
PENALTY = f"""algorithm = "sliding_log"
limit = "{LIMIT}/s"
penalty = {{ after = 1, for = "1s", grows = 1, most = "1s" }}"""
STREAMS = f"""algorithm = "fixed_window"
limit = "1000000000/3000day"
cost = {{ response_json = "/usage/total_tokens", reserve = {RESERVE} }}
charge = {{ status = ["2xx"] }}"""


def routes(upstream):
    """Returns the routes to the upstream of streams, and to the limits of a client."""
    return f"""
[[upstream]]
name = "streams"
servers = ["127.0.0.1:{upstream.port}"]
[[route]]
match = {{ path = "/streams" }}
upstream = "streams"
[[route]]
match = {{ path = "/usage" }}
respond = "usage"
"""


class StreamUpstream:
    """Answers with event streams. `reported` is the sum of the costs that complete answers have reported."""

    def __init__(self):
        self.reported, self.random = 0, random.Random(1)
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve(ready)), daemon=True).start()
        ready.wait(10)

    async def serve(self, ready):
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await server.serve_forever()

    async def answer(self, reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                cost = self.random.randrange(1, 3 * RESERVE)
                events = b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in (
                    {"text": "a", "usage": None}, {"usage": {"total_tokens": cost // 2}}, {"usage": {"total_tokens": cost}}))
                cut = self.random.randrange(1, len(events))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                             + b"%x\r\n%b\r\n" % (cut, events[:cut]))
                await asyncio.sleep(0)
                self.reported += cost
                writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(events) - cut, events[cut:]))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def read_answer(reader):
    """Reads an answer with a Content-Length or in chunks. Returns its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), None)
    if length is not None:
        await reader.readexactly(length)
    while length is None and (size := int(await reader.readuntil(b"\r\n"), 16) + 2) > 2:
        await reader.readexactly(size)
    if length is None:
        await reader.readuntil(b"\r\n")
    return int(head[9:12])


async def ask_until(port, request, ends):
    """Sends requests over one connection until ends(). Reads each answer to its end. Returns the statuses."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    statuses = []
    while not ends():
        writer.write(request)
        statuses.append(await read_answer(reader))
    writer.close()
    return statuses


def flood(ports, path, client, connections, ends):
    """Sends requests over so many connections to the weirs until ends(). No client leaves before the end of its answer."""
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {client}\r\n\r\n".encode()

    async def all_of_them():
        return await asyncio.gather(*(ask_until(port, request, ends) for port in itertools.islice(itertools.cycle(ports), connections)))
    return [status for statuses in asyncio.run(all_of_them()) for status in statuses]


def run_penalties(ports, path, client, seconds, connections, count_penalties):
    """Returns the number of requests, the admitted ones, and how many one exact limiter admits before so many penalties."""
    before = count_penalties()
    until = time.monotonic() + seconds
    statuses = flood(ports, path, client, connections, lambda: time.monotonic() > until)
    last, status = http.client.HTTPConnection("127.0.0.1", ports[0], timeout=5), None
    while status != 429:  # continues until a penalty follows the last admissions
        last.request("GET", path, headers={"X-API-Key": client})
        answer = last.getresponse()
        answer.read()
        status = answer.status
        statuses.append(status)
    return len(statuses), statuses.count(200), LIMIT * (count_penalties() - before)


def run_streams(ports, path, client, requests, connections, upstream):
    """Returns the number of requests, what the client has used up in the end, and what the upstream has reported."""
    before, left = upstream.reported, itertools.count()
    statuses = flood(ports, path, client, connections, lambda: next(left) >= requests)
    reported = upstream.reported - before
    until = time.monotonic() + 5  # weir sends the correction to Redis only after the answer
    while (used := used_by(ports[0], client)) != reported and time.monotonic() < until:
        time.sleep(0.02)
    return statuses.count(200), used, reported


def used_by(port, client):
    """Returns what the client has used up of the rule "streams"."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/usage", headers={"X-API-Key": client})
    limits = json.loads(connection.getresponse().read())["limits"]
    return next(limit["used"] for limit in limits if limit["rule"] == "streams")
