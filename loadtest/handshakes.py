"""TLS handshakes for `./dev bench`: full ones, and ones that resume the session of the connection before.

As a program, it is the client: eight connections at once, each closed after the handshake. It prints one line of JSON. A client of
TLS 1.3 receives tickets after the handshake, so each connection ends with close_notify from both sides: then the client has them."""

import argparse
import contextlib
import json
import pathlib
import socket
import ssl
import statistics
import subprocess
import sys
import threading
import time

import processes

CONNECTIONS = 8
PATIENCE = 10
VERSIONS = {"tls": ssl.TLSVersion.TLSv1_3, "tls12": ssl.TLSVersion.TLSv1_2}
MODES = tuple(f"{version}-{kind}" for version in VERSIONS for kind in ("full", "resumed"))


def client_context(mode):
    context = ssl._create_unverified_context()
    context.minimum_version = context.maximum_version = VERSIONS[mode.partition("-")[0]]
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")  # of TLS 1.2; otherwise not all servers choose the same
    return context


class Connection:
    """A connection whose records pass through memory, since Python forgets the session of a socket that has said close_notify."""

    def __init__(self, port, context, session):
        self.wire = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # Finished and close_notify follow each other
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, session=session)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def complete(self, step):
        """Does a step of TLS, and sends and receives as often as it needs."""
        while True:
            try:
                step()
            except ssl.SSLWantReadError:
                self.flush()
                received = self.wire.recv(65536)
                self.incoming.write(received) if received else self.incoming.write_eof()
            else:
                self.flush()
                return

    def flush(self):
        if self.outgoing.pending:
            self.wire.sendall(self.outgoing.read())


def shake_hands(port, context, session):
    """Returns the session for the next connection, true if this connection resumed `session`, and the seconds it took. A client
    uses a ticket of TLS 1.3 once, so the session is None if the server has sent no other one."""
    with Connection(port, context, session) as connection:
        begun = time.monotonic()
        connection.complete(connection.tls.do_handshake)
        took = time.monotonic() - begun
        with contextlib.suppress(ssl.SSLError, ConnectionError):  # not all servers end with close_notify
            connection.complete(connection.tls.unwrap)
        latest = connection.tls.session
        spent = session and connection.tls.version() == "TLSv1.3" and latest.id == session.id
        return None if spent else latest, connection.tls.session_reused, took


class Client(threading.Thread):
    """One connection after another until `end`, or so many of them. `failure` is the exception that ended them early."""

    def __init__(self, port, mode, end, most):
        super().__init__()
        self.port, self.context, self.resumes = port, client_context(mode), mode.endswith("resumed")
        self.end, self.most = end, most
        self.resumed, self.times, self.failure = 0, [], None

    def run(self):
        session = None
        try:
            if self.resumes:
                session, _, _ = shake_hands(self.port, self.context, None)
            while time.monotonic() < self.end and len(self.times) < self.most:
                latest, resumed, took = shake_hands(self.port, self.context, session)
                self.resumed += resumed
                self.times.append(took)
                if self.resumes:
                    session = latest
        except OSError as error:
            self.failure = error


def run(stage, server, mode, seconds, count=None):
    """Returns what the client has counted, under the names of report.lua. With `count`, it makes so many handshakes one by one."""
    command = [sys.executable, pathlib.Path(__file__), "--port", str(server.port), "--mode", mode, "--seconds", str(seconds)]
    if count:
        command += ["--connections", "1", "--most", str(count)]
    done = subprocess.run(stage.on_load_cpu(command), capture_output=True, text=True, timeout=seconds + 30, check=False)
    if done.returncode != 0:
        raise processes.BenchError(f"{server.name}: a handshake failed: {done.stdout}{done.stderr}")
    seen = json.loads(done.stdout)
    if seen["resumed"] != (seen["requests"] if mode.endswith("resumed") else 0):
        raise processes.BenchError(f"{server.name} resumed {seen['resumed']} of {seen['requests']} connections")
    return seen


def check_behaviour(stage, server, mode):
    """Makes a few connections, each of which must resume or must not."""
    run(stage, server, mode, 0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--most", type=int, default=sys.maxsize, help="handshakes of each of the connections")
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    options = parser.parse_args()
    begun = time.monotonic()
    clients = [Client(options.port, options.mode, begun + options.seconds, options.most) for _ in range(options.connections)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    took = time.monotonic() - begun
    for client in clients:
        if client.failure:
            sys.exit(str(client.failure))
    times = [each * 1e6 for client in clients for each in client.times]
    print(json.dumps({"requests": len(times), "resumed": sum(client.resumed for client in clients), "seconds": took, "refused": 0,
                      "faults": 0, "p50_us": statistics.median(times), "p99_us": statistics.quantiles(times, n=100)[98]}))


if __name__ == "__main__":
    main()
