# SPDX-License-Identifier: MIT
"""A headless Chromium, driven through a pipe by the DevTools protocol: no more than the tests need."""

import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

TIMEOUT_S = 60
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
    "--window-size=1280,800",
)  # fmt: skip
SHIFT, CTRL = 8, 2


class BrowserError(Exception):
    """What the browser was asked for failed."""


class Browser:
    """One window. `requests`: what it fetched; `errors`: what went wrong in the page."""

    min_width = 0
    reads_console = True

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="browser-")
        (theirs_in, self.to), (self.back, theirs_out) = os.pipe(), os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (theirs_in, theirs_out)]
        self.process = subprocess.Popen(
            ["chromium", *FLAGS, f"--user-data-dir={self.home}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(3, 4), preexec_fn=lambda: (os.dup2(high[0], 3), os.dup2(high[1], 4)),
            start_new_session=True,
        )  # fmt: skip
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self.number, self.rest, self.answers, self.session = 0, b"", {}, None
        self.requests, self.errors = [], []
        pages = [t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self.ask("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # the session is its own
        except ProcessLookupError:
            pass
        self.process.wait()
        self.disconnect()
        for _ in range(50):  # its processes may write still
            shutil.rmtree(self.home, ignore_errors=True)
            if not os.path.exists(self.home):
                break
            time.sleep(0.1)

    def disconnect(self):
        os.close(self.to)
        os.close(self.back)

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data) :]
        while self.number not in self.answers:
            self.read()
        answer = self.answers.pop(self.number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        return answer["result"]

    def read(self):
        data = os.read(self.back, 1 << 20)
        if not data:
            raise BrowserError("the browser has ended")
        *messages, self.rest = (self.rest + data).split(b"\0")
        for text in messages:
            message = json.loads(text)
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.note(message["method"], message["params"])

    def note(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:2000])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(json.dumps(params["args"])[:2000])

    def evaluate(self, script):
        """The value of the expression, or of what it promises."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def open(self, path, ready="window.profilerTest"):
        """Shows the file, until the script says that it is ready."""
        self.requests, self.errors = [], []
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=path if "://" in path else "file://" + path)
        self.wait(f"document.readyState === 'complete' && !!({ready})")
        self.settle()

    def wait(self, condition):
        deadline = time.monotonic() + TIMEOUT_S
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise BrowserError(f"never: {condition}; {self.errors}")
            time.sleep(0.02)

    def settle(self):
        """Until what was asked for is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def resize(self, width, height, ratio=1):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False)
        self.settle()

    def key(self, key, modifiers=0, text=None):
        text = key if text is None and len(key) == 1 else text
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)
        self.settle()

    def mouse(self, kind, x, y, **how):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **how)

    def click(self, x, y, button="left", modifiers=0):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button=button, clickCount=1, modifiers=modifiers)
        self.settle()

    def drag(self, x, y, to_x, to_y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        for step in range(1, 5):
            self.mouse("mouseMoved", x + (to_x - x) * step / 4, y + (to_y - y) * step / 4, button="left", buttons=1)
        self.mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)
        self.settle()

    def picture(self):
        return self.ask("Page.captureScreenshot", format="png")["data"]

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.picture()))
