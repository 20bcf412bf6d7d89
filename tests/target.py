# SPDX-License-Identifier: MIT
"""Programs that tests look at."""

import subprocess

from proc import WAIT_TIMEOUT_S, read_until, wait_until_settled


class Target:
    """A fixture that runs and has said that it is ready."""

    def __init__(self, argv, ready="ready", **popen):
        popen.setdefault("stdin", subprocess.PIPE)
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=0, **popen)
        self.pid = self.process.pid
        self.said = []
        if ready:
            try:
                self.said = self.read_until(ready)
                wait_until_settled(self.pid)
            except AssertionError:
                self.end()
                raise

    def read_until(self, line):
        return read_until(self.process.stdout, line)

    def rest(self):
        """What it says until its end, as lines."""
        text = self.process.stdout.read().decode()
        self.process.wait(timeout=WAIT_TIMEOUT_S)
        return text.splitlines()

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for file in (self.process.stdin, self.process.stdout):
            if file:
                file.close()
