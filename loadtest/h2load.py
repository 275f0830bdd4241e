"""Load over HTTP/2: h2load with 32 connections of eight requests each, and a check of a single request by nghttp."""

import re
import subprocess

import contestants
import processes

CONNECTIONS, STREAMS = 32, 8
UNITS = {"us": 1, "ms": 1e3, "s": 1e6}  # in microseconds
CALL = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
MESSAGE_OCTETS = 14  # of the message of a call


def url_of(server, mode):
    return f"http{'s' if mode in contestants.TLS else ''}://127.0.0.1:{server.port}{processes.GRPC_PATH if mode == 'grpc' else '/'}"


def request_options(stage, mode):
    """Returns options of h2load and nghttp that make a request one of the mode."""
    if mode != "grpc":
        return []
    message = stage.folder / "message.grpc"
    message.write_bytes(processes.grpc_message(MESSAGE_OCTETS))
    return ["-d", message, *CALL]


def check_behaviour(stage, server, mode):
    """Checks that the server answers over HTTP/2 with 200 and, in the mode "grpc", with the trailer of a success."""
    command = ["nghttp", "-v", *request_options(stage, mode), url_of(server, mode)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
    for field in [":status: 200", *(["grpc-status: 0"] if mode == "grpc" else [])]:
        if field not in said:
            raise processes.BenchError(f"{server.name} does not answer with {field}:\n{said[-2000:]}"
                                       f"{server.log.read_text(errors='replace')[-2000:]}")


def microseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * UNITS[unit]


def run(stage, server, mode, seconds):
    command = ["h2load", "-t", "1", "-c", str(CONNECTIONS), "-m", str(STREAMS), "-D", str(seconds),
               *request_options(stage, mode), url_of(server, mode)]
    done = subprocess.run(stage.on_load_cpu(command), capture_output=True, text=True, timeout=seconds + 30, check=False)
    said = done.stdout
    counts = re.search(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout",
                       said)
    took = re.search(r"finished in ([\d.]+m?s)", said)
    waits = re.search(r"time for request: +(\S+) +(\S+) +(\S+)", said)
    refused = re.search(r"status codes: .* (\d+) 4xx", said)
    if not counts or not took or not waits or counts.group(1) == "0":
        raise processes.BenchError(f"h2load failed: {said}{done.stderr}")
    answered, _, failed, errored, late = map(int, counts.groups())
    refused = int(refused.group(1))
    return {"requests": answered, "seconds": microseconds(took.group(1)) / 1e6, "refused": refused,
            "faults": failed - refused + errored + late,  # a refusal is one of the failed
            "mean_us": microseconds(waits.group(3)), "max_us": microseconds(waits.group(2))}
