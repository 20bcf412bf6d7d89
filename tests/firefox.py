# SPDX-License-Identifier: MIT
"""A headless Firefox, driven by its Marionette protocol, as browser.py drives Chromium."""

import json
import os
import socket
import subprocess
import tempfile
import time

from browser import CTRL, SHIFT, TIMEOUT_S, Browser, BrowserError

KEYS = {
    "Backspace": "\ue003", "Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Home": "\ue011", "End": "\ue010",
}  # fmt: skip
MODIFIERS = {SHIFT: "\ue008", CTRL: "\ue009", 1: "\ue00a"}
# What the browser itself fetches is kept apart from what the page asks for by who asks.
WATCH = """
globalThis.asked = [];
Services.obs.addObserver(channel => {
    channel.QueryInterface(Ci.nsIChannel);
    if (channel.loadInfo && !channel.loadInfo.triggeringPrincipal.isSystemPrincipal)
        globalThis.asked.push(channel.URI.spec);
}, 'http-on-modify-request');
"""

class Firefox(Browser):
    """One window of it."""

    min_width = 500  # that it can have
    reads_console = False  # ->errors stays empty

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="browser-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(f"{self.home}/user.js", "w", encoding="utf-8") as file:
            for name, value in (
                ("marionette.port", port), ("datareporting.policy.dataSubmissionEnabled", False),
                ("app.update.enabled", False), ("network.captive-portal-service.enabled", False),
                ("network.connectivity-service.enabled", False), ("browser.shell.checkDefaultBrowser", False),
                ("security.sandbox.content.level", 0),
            ):  # fmt: skip
                file.write(f'user_pref("{name}", {json.dumps(value)});\n')
        self.process = subprocess.Popen(
            ["firefox-esr", "--headless", "--marionette", "--no-remote", "--profile", self.home,
             "--width", "1280", "--height", "800"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, env={**os.environ, "HOME": self.home, "MOZ_REMOTE_ALLOW_SYSTEM_ACCESS": "1"},
        )  # fmt: skip
        self.number, self.rest = 0, b""
        self.requests, self.errors = [], []
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise BrowserError("Firefox does not answer") from None
                time.sleep(0.1)
        self.read()  # who it is
        self.ask("WebDriver:NewSession", capabilities={"alwaysMatch": {"unhandledPromptBehavior": "accept"}})
        self.has_chrome = True
        try:
            self.chrome(WATCH)
        except BrowserError:
            self.has_chrome = False

    def disconnect(self):
        self.socket.close()

    def read(self):
        while b":" not in self.rest or len(self.rest.partition(b":")[2]) < int(self.rest.partition(b":")[0]):
            data = self.socket.recv(1 << 20)
            if not data:
                raise BrowserError("the browser has ended")
            self.rest += data
        size, _, rest = self.rest.partition(b":")
        self.rest = rest[int(size) :]
        return json.loads(rest[: int(size)])

    def ask(self, command, **params):
        self.number += 1
        data = json.dumps([0, self.number, command, params]).encode()
        self.socket.sendall(b"%d:%s" % (len(data), data))
        _, _, error, result = self.read()
        if error:
            raise BrowserError(f"{command}: {error.get('message')}")
        return result

    def chrome(self, script):
        self.ask("Marionette:SetContext", value="chrome")
        try:
            return self.ask("WebDriver:ExecuteScript", script=script, args=[], newSandbox=False, sandbox="system")["value"]
        finally:
            self.ask("Marionette:SetContext", value="content")

    def evaluate(self, script):
        """The value of the expression, or of what it promises."""
        return self.ask(
            "WebDriver:ExecuteScript", args=[], sandbox=None,
            script=f"return ({script})",
        )["value"]  # fmt: skip

    def open(self, path, ready="window.profilerTest"):
        """Shows the file, until the script says that it is ready."""
        self.ask("WebDriver:Navigate", url="about:blank")
        self.requests, self.errors = [], []
        if self.has_chrome:
            self.chrome("globalThis.asked = [];")
        self.ask("WebDriver:Navigate", url=path if "://" in path else "file://" + path)
        self.wait(f"document.readyState === 'complete' && !!({ready})")
        self.settle()

    def settle(self):
        """Until what was asked for is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        if self.has_chrome:
            self.requests = self.chrome("return globalThis.asked;")

    def resize(self, width, height, ratio=1):
        del ratio  # it is the screen's
        self.ask("WebDriver:SetWindowRect", width=width, height=height)
        inner = self.evaluate("[window.innerWidth, window.innerHeight]")
        self.ask("WebDriver:SetWindowRect", width=2 * width - inner[0], height=2 * height - inner[1])
        self.settle()

    def act(self, *sources):
        self.ask("WebDriver:PerformActions", actions=list(sources))

    def key(self, key, modifiers=0, text=None):
        del text
        held = [value for bit, value in MODIFIERS.items() if modifiers & bit]
        key = KEYS.get(key, key)
        actions = [{"type": "keyDown", "value": value} for value in (*held, key)]
        actions += [{"type": "keyUp", "value": value} for value in (key, *held)]
        self.act({"type": "key", "id": "keys", "actions": actions})
        self.settle()

    def mouse(self, kind, x, y, button="left", modifiers=0, deltaX=0, deltaY=0, **_):
        number = {"left": 0, "middle": 1, "right": 2}[button]
        held = [value for bit, value in MODIFIERS.items() if modifiers & bit]
        if held:
            self.act({"type": "key", "id": "keys", "actions": [{"type": "keyDown", "value": v} for v in held]})
        move = {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}
        then = {"mousePressed": {"type": "pointerDown", "button": number}, "mouseReleased": {"type": "pointerUp", "button": number}}
        if kind == "mouseWheel":
            self.act({"type": "wheel", "id": "wheel", "actions": [
                {"type": "scroll", "x": round(x), "y": round(y), "deltaX": deltaX, "deltaY": deltaY}]})  # fmt: skip
        else:
            actions = [move, *([then[kind]] if kind in then else [])]
            self.act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions})
        if held:
            self.act({"type": "key", "id": "keys", "actions": [{"type": "keyUp", "value": v} for v in held]})

    def picture(self):
        return self.ask("WebDriver:TakeScreenshot", full=False)["value"]
