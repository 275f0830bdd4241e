"""Starts nginx and Caddy on free ports, with configurations in which PORT is the port of the proxy."""

import os
import pathlib
import random
import tempfile
import time

from processes import BELOW_EPHEMERAL, Process
from wire import PATIENCE, Client


class Proxy(Process):
    """A proxy with a configuration. Ends with the `with` block."""

    def __init__(self, text):
        self.scratch = tempfile.TemporaryDirectory(prefix="weir-proxy-")
        self.folder = pathlib.Path(self.scratch.name)
        for _ in range(20):  # if another process has the port, the proxy ends at once
            self.port = random.randrange(*BELOW_EPHEMERAL)
            super().__init__(self.command(text.replace("PORT", str(self.port))), env={**os.environ, "HOME": str(self.folder)})
            if self.answers():
                return
        raise AssertionError(f"{type(self).__name__} does not start:\n{self.log()}")

    def command(self, text):
        """Writes the configuration into the folder, and returns the command that runs the proxy."""
        raise NotImplementedError

    def answers(self):
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                Client(self.port).sock.close()
            except OSError:
                time.sleep(0.02)
            else:
                return self.process.poll() is None
        self.stop()
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.scratch.cleanup()


class Nginx(Proxy):
    """nginx with these directives of http."""

    def command(self, text):
        folder = self.folder
        self.file = folder / "nginx.conf"
        self.file.write_text(f"""
            daemon off; master_process off; pid {folder}/pid; error_log stderr notice;
            events {{ worker_connections 512; }}
            http {{
              access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
              fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
              {text}
            }}""")
        return ["/usr/sbin/nginx", "-e", "stderr", "-c", str(self.file), "-p", str(folder)]


class Caddy(Proxy):
    """Caddy with these sites, without its admin endpoint and without certificates."""

    def command(self, text):
        file = self.folder / "Caddyfile"
        file.write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text)
        return ["/usr/bin/caddy", "run", "--adapter", "caddyfile", "--config", str(file)]
