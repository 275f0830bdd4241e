#!/usr/bin/env python3
"""Turns the public sets http2-frame-test-case and hpack-test-case into first inputs of the fuzz targets http2 and http2_answer.

Usage: http2_cases.py CASES INPUTS

CASES: a folder that contains the sets, at any depth, as JSON files. INPUTS: the folder that gets http2/ and http2_answer/. Each
frame becomes an input of both targets. Each HPACK story (a sequence of encoded heads) becomes heads of requests or of answers, up
to 4096 octets."""

import argparse
import json
import pathlib

MOST = 4096  # octets of an input (see -max_len in ./dev)
HEADERS, CONTINUATION = 1, 9
END_STREAM, END_HEADERS = 1, 4
MOST_FRAME = 16_384
CHOICES = {"http2": b"\0\0", "http2_answer": b"\0\0"}  # the first two octets of an input choose what the target does


def frame(kind, flags, stream, content):
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def head(stream, block):
    """Returns the frames of one head, which ends its stream."""
    pieces = [block[at:at + MOST_FRAME] for at in range(0, len(block), MOST_FRAME)] or [b""]
    frames = [frame(CONTINUATION if number else HEADERS,
                    (0 if number else END_STREAM) | (END_HEADERS if number == len(pieces) - 1 else 0), stream, piece)
              for number, piece in enumerate(pieces)]
    return b"".join(frames)


def input_of_story(story):
    """Returns the target of a story and the octets of its input; None for a story without encoded heads."""
    cases = [case for case in story["cases"] if "wire" in case]
    if not cases:
        return None
    answers = any(":status" in field for case in cases for field in case["headers"])
    octets = b""
    for number, case in enumerate(cases):
        octets += head(2 * number + 1, bytes.fromhex(case["wire"]))
        if len(octets) > MOST:
            break
    return "http2_answer" if answers else "http2", octets


def inputs(folder):
    """Yields a target, a name and the octets of each input."""
    for file in sorted(folder.rglob("*.json")):
        case = json.loads(file.read_text())
        name = "-".join(file.relative_to(folder).with_suffix("").parts[-2:])
        if not isinstance(case, dict):
            continue
        if "cases" in case:
            found = input_of_story(case)
            if found:
                yield found[0], name, found[1]
        elif "wire" in case:
            for target in CHOICES:
                yield target, name, bytes.fromhex(case["wire"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("inputs", type=pathlib.Path)
    options = parser.parse_args()
    count = 0
    for target, name, octets in inputs(options.cases):
        folder = options.inputs / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((CHOICES[target] + octets)[:MOST])
        count += 1
    if not count:
        parser.exit(1, f"http2_cases.py: {options.cases} has no JSON file of these sets\n")
    print(f"{count} inputs from {options.cases}")


if __name__ == "__main__":
    main()
