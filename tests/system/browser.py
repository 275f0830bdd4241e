"""A headless Chromium, driven by the DevTools protocol over two pipes, without a port or a library.

    with Browser() as browser:
        page = browser.open("http://127.0.0.1:9900/")
        page.await_true("document.title !== ''")
        page.complaints   # the errors and warnings of its console
        page.requests     # the addresses that it requested"""

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

PATIENCE = 20  # seconds


def find_chromium():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """Starts Chromium. `options`: further options of Chromium."""

    def __init__(self, *options):
        self.profile = tempfile.TemporaryDirectory(prefix="weir-chromium-", ignore_cleanup_errors=True)
        theirs_in, self.outgoing = os.pipe()
        self.incoming, theirs_out = os.pipe()
        command = [find_chromium() or "chromium", "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--mute-audio",
                   "--force-color-profile=srgb", f"--user-data-dir={self.profile.name}", *options, "about:blank"]
        # Chromium reads from descriptor 3 and writes to 4.
        wired = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", *command]
        self.process = subprocess.Popen(wired, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.profile.name})
        os.close(theirs_in)
        os.close(theirs_out)
        self.numbers, self.answers, self.news = itertools.count(1), {}, threading.Condition()
        self.pages = {}
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        rest = b""
        while True:
            try:
                piece = os.read(self.incoming, 1 << 16)
            except OSError:
                piece = b""
            if not piece:
                break
            *messages, rest = (rest + piece).split(b"\0")
            for message in messages:
                self.take(json.loads(message))
        with self.news:
            self.answers[None] = True
            self.news.notify_all()

    def take(self, message):
        with self.news:
            if "id" in message:
                self.answers[message["id"]] = message
            elif page := self.pages.get(message.get("sessionId")):
                page.take(message["method"], message["params"])
            self.news.notify_all()

    def command(self, method, session=None, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self.outgoing, json.dumps(message).encode() + b"\0")
        with self.news:
            if not self.news.wait_for(lambda: number in self.answers or None in self.answers, PATIENCE) or number not in self.answers:
                raise AssertionError(f"Chromium does not answer {method} (status {self.process.poll()})")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, address, width=1280, height=900, dark=False, phone=False):
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.command(f"{domain}.enable")
        page.resize(width, height, phone)
        page.prefer(dark)
        page.go(address)
        return page

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(AssertionError, OSError):
            self.command("Browser.close")
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.outgoing)
        os.close(self.incoming)
        self.profile.cleanup()


class Page:
    def __init__(self, browser, session, target):
        self.browser, self.session, self.target = browser, session, target
        self.complaints, self.requests = [], []

    def take(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(each.get("value", each.get("description"))) for each in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def command(self, method, **params):
        return self.browser.command(method, self.session, **params)

    def resize(self, width, height, phone=False):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
                     mobile=phone)

    def prefer(self, dark):
        self.command("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def go(self, address):
        self.command("Page.navigate", url=address)

    def evaluate(self, expression):
        done = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def await_true(self, expression, seconds=PATIENCE):
        """Waits until the JavaScript expression is true. While the page loads, the expression is treated as false."""
        deadline, fault = time.monotonic() + seconds, None
        while time.monotonic() < deadline:
            try:
                if self.evaluate(f"Boolean({expression})"):
                    return
            except AssertionError as error:
                fault = error
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {expression}\n{self.complaints}\n{self.text('body')}") from fault

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def type(self, selector, text):
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.command("Input.insertText", text=text)

    def press(self, key, code):
        for kind in ("rawKeyDown", "char", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                         **({"text": "\r"} if kind == "char" and key == "Enter" else {}))

    def screenshot(self, path, whole=True):
        """Takes a screenshot of the whole page, or only of the part that is visible without scrolling."""
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def close(self):
        self.browser.command("Target.closeTarget", targetId=self.target)
