"""Instructions in user mode that a proxy executes for a request, counted by callgrind.

Unlike CPU time, this number does not depend on what else the machine does. It leaves out the kernel. It is the difference of two
runs with few and many requests, so that neither the start nor the end of a process counts. Both runs take equally long, so that
work of every tick does not count either. Requests follow each other on one connection."""

import re
import sys
import time

import contestants
import h2load
import handshakes
import processes

FEW = 200  # requests
NOT_COUNTED = "nghttpx"  # its processes end without a report
STOP_SECONDS = 60


def total(stage, name, mode, requests, least_seconds=0):
    """Runs a process that serves so many requests, for at least so long. Returns its instructions, and the seconds between its start
    and its end. Returns None if it does not take part in the mode."""
    for old in stage.folder.glob("callgrind.*"):
        old.unlink()
    wrapper = ["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={stage.folder}/callgrind.%p"]
    server = contestants.start(stage, name, mode, wrapper)
    if not server:
        return None
    if mode in handshakes.MODES:
        seen = handshakes.run(stage, server, mode, STOP_SECONDS, requests)
    else:
        seen = h2load.send(stage, server, mode, requests)
    if seen["requests"] != requests or seen["faults"]:
        raise processes.BenchError(f"{name} under callgrind: {seen['requests']} of {requests} answers, {seen['faults']} faults")
    left = least_seconds - (time.monotonic() - server.opened)
    time.sleep(max(left, 0))
    seconds = time.monotonic() - server.opened
    stage.stop(server, STOP_SECONDS)
    texts = [file.read_text() for file in stage.folder.glob("callgrind.*")]
    counts = [int(found.group(1)) for found in (re.search(r"^(?:summary|totals): (\d+)", text, re.M) for text in texts) if found]
    if not counts:
        raise processes.BenchError(f"{name}: callgrind has counted nothing:\n{server.log.read_text(errors='replace')[-2000:]}")
    return sum(counts), seconds


def count(stage, mode, names, requests):
    """Returns {contestant: instructions of a request}."""
    counts = {}
    for name in (each for each in names if each != NOT_COUNTED):
        many = total(stage, name, mode, FEW + requests)
        if many:
            few = total(stage, name, mode, FEW, many[1])
            counts[name] = (many[0] - few[0]) / requests
            print(f"  {mode} {name}: {counts[name]:.0f} instructions", file=sys.stderr)
    return counts
