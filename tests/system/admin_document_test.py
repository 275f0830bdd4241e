#!/usr/bin/env python3
"""The outputs of weir explain, weir keys and weir servers in docs/admin.md are what the commands really print."""

import json
import os
import pathlib
import re
import subprocess

from harness import WEIR, TestCase, Upstream, Weir, main

DOCUMENT = pathlib.Path(os.environ.get("WEIR_SOURCE", ".")) / "docs/admin.md"


def lasting(text):
    """Returns the parts of an output that are the same in each run. Names of keys are random, and times differ."""
    text = re.sub(r"\b[0-9a-f]{32}\b", "DIGEST", text)
    text = re.sub(r"(refuses?,? for|free in|retry after|full in) [0-9]+[a-z]+( [0-9]+[a-z]+)?", r"\1 TIME", text)
    text = re.sub(r"(_seconds\\?\": ?)[0-9.]+(E[+0-9]+)?", r"\1TIME", text)
    text = re.sub(r"retry after [0-9]+ second", "retry after TIME second", text)
    text = re.sub(r"((?:Reset|Retry-After)\"?: ?\"?)[0-9]+", r"\1TIME", text)
    text = re.sub(r"  +", "  ", text)  # the widths of columns depend on the port
    return re.sub(r";t=[0-9]+", ";t=TIME", text)


class AdminDocument(TestCase):
    def test_outputs_of_admin_commands_in_the_document_are_the_real_outputs(self):
        text = DOCUMENT.read_text()
        settings = re.search(r"```toml\n(.*?)```", text, re.S).group(1)
        upstream = self.start(Upstream())
        settings = settings.replace("127.0.0.1:9000", upstream.address).replace("127.0.0.1:8080", "127.0.0.1:0")
        weir = self.start(Weir(settings.replace("127.0.0.1:9900", "127.0.0.1:0")))
        with weir.connect() as client:  # the client in the examples, which has no login left
            self.assertEqual([client.request("POST", "/api/login").status for _ in range(3)], [200, 200, 429])
        shown = re.findall(r"```console\n\$ (.*?)\n(.*?)```", text, re.S)
        self.assertGreaterEqual(len(shown), 5)
        for line, output in shown:
            line = line.replace("127.0.0.1:9900", f"127.0.0.1:{weir.admin}").replace("127.0.0.1:9000", upstream.address)
            if line.startswith("weir "):
                line = f"{WEIR} {line[5:]} --admin 127.0.0.1:{weir.admin}"
            done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=weir.folder, check=False)
            said = json.dumps(json.loads(done.stdout), indent=2) + "\n" if line.startswith("curl") else done.stdout
            self.assertEqual(lasting(said.replace(upstream.address, "127.0.0.1:9000")), lasting(output), done.stderr)


if __name__ == "__main__":
    main()
