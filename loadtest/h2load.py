"""Load over HTTP/2 by h2load, and a check of a single request by nghttp."""

import re
import subprocess

import modes
import processes

UNITS = {"us": 1, "ms": 1e3, "s": 1e6}  # in microseconds
CALL = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
MESSAGE_OCTETS = 14  # of the message of a call
LAST_SECONDS = 0.5  # of h2load, after a measurement


def request_options(stage, mode):
    """Returns options of h2load and nghttp that make a request one of the mode."""
    if mode != "grpc":
        return []
    message = stage.folder / "message.grpc"
    message.write_bytes(processes.grpc_message(MESSAGE_OCTETS))
    return ["-d", message, *CALL]


def check_behaviour(stage, server, mode):
    """Checks that the server answers over HTTP/2 with 200 and, in the mode "grpc", with the trailer of a success."""
    command = ["nghttp", "-v", *request_options(stage, mode), modes.url_of(server, mode)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
    for field in [":status: 200", *(["grpc-status: 0"] if mode == "grpc" else [])]:
        if field not in said:
            raise processes.BenchError(f"{server.name} does not answer with {field}:\n{said[-2000:]}"
                                       f"{server.log.read_text(errors='replace')[-2000:]}")


def microseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * UNITS[unit]


def start(stage, server, mode, connections, streams, amount):
    """Starts h2load. `amount` is an option that says how much it sends."""
    command = ["h2load", "-t", "1", "-c", connections, "-m", streams, *amount, *([] if mode in modes.HTTP2 else ["--h1"]),
               *request_options(stage, mode), modes.url_of(server, mode)]
    return subprocess.Popen(stage.on_load_cpu(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(h2load, seconds):
    """Waits for the end of h2load, at most so long. Returns what it has counted."""
    said, _ = h2load.communicate(timeout=seconds)
    counts = re.search(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout",
                       said)
    took = re.search(r"finished in ([\d.]+m?s)", said)
    waits = re.search(r"time for request: +(\S+) +(\S+) +(\S+)", said)
    refused = re.search(r"status codes: .* (\d+) 4xx", said)
    octets = re.search(r"traffic: .*?\((\d+)\) total", said)
    if not counts or not took or not waits or counts.group(1) == "0":
        raise processes.BenchError(f"h2load has no answers: {' '.join(map(str, h2load.args))}\n{said}")
    answered, _, failed, errored, late = map(int, counts.groups())
    refused = int(refused.group(1))
    return {"requests": answered, "seconds": microseconds(took.group(1)) / 1e6, "refused": refused, "octets": int(octets.group(1)),
            "faults": failed - refused + errored + late,  # a refusal is one of the failed
            "mean_us": microseconds(waits.group(3)), "max_us": microseconds(waits.group(2))}


def run(stage, server, mode, seconds):
    return end(start(stage, server, mode, *modes.STREAMS[mode], ["-D", seconds]), seconds + 30)


def run_steadily(stage, server, mode, warm_seconds, seconds):
    """Does the same, but counts requests and CPU only of a time in which all connections were open: "counted", "seconds", "spent"."""
    running = start(stage, server, mode, *modes.STREAMS[mode], ["-D", round(warm_seconds + seconds + LAST_SECONDS + 0.5)])
    samples = processes.sample(server, running.pid, (warm_seconds, seconds))
    return processes.share(samples, end(running, warm_seconds + seconds + 30))


def send(stage, server, mode, requests):
    """Sends so many requests, one after the other over one connection. Returns what h2load has counted. Modes of HTTP/1.1 use that."""
    return end(start(stage, server, mode, 1, 1, ["-n", requests]), 300)
