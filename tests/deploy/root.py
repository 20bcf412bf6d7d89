# SPDX-License-Identifier: MIT
"""Root directories in which a program of the release runs, and sees nothing else but /proc."""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness  # noqa: E402 (its place is known only now)

PYTHON = "import time\ndef work():\n while True: sum(range(1000))\nprint(flush=True)\nwork()"
IN_CHROOT = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'


class Root:
    """A directory, made and removed if none is given. `program`: the profiler's path in it."""

    def __init__(self, test, path=None, program="/profiler"):
        if not path:
            path = tempfile.mkdtemp()
            test.addCleanup(shutil.rmtree, path)
        self.path, self.program = path, program
        os.makedirs(path + "/proc", exist_ok=True)
        self.words = [*harness.unshare("--mount"), "sh", "-c", IN_CHROOT, path]

    def call(self, *command, expect=0):
        """Runs a command in it: (what it says on stdout, on stderr)."""
        told = subprocess.run(
            [*self.words, *map(str, command)], capture_output=True, text=True, check=False,
            timeout=harness.RUN_TIMEOUT_S,
        )  # fmt: skip
        assert told.returncode == expect, f"{command}: {told.returncode}: {told.stdout} {told.stderr}"
        return told.stdout, told.stderr

    def run(self, *args):
        return self.call(self.program, *args)

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.path + path), exist_ok=True)
        with open(self.path + path, "w", encoding="ascii") as file:
            file.write(text)


class Bubble(Root):
    """The same by bwrap, for the file system of a container."""

    def __init__(self, test, path, program):
        super().__init__(test, path, program)
        probe = subprocess.run([harness.find_tool("bwrap"), "--bind", "/", "/", "true"], capture_output=True, check=False)
        harness.need(probe.returncode == 0, f"bwrap: {probe.stderr.decode().strip()}")
        self.words = ["bwrap", "--die-with-parent", "--bind", path, "/", "--proc", "/proc", "--dev", "/dev"]
        if os.geteuid() == 0:
            self.words += ["--cap-add", "ALL"]


class Case(harness.TestCase):
    def begin(self, *command):
        """The pid of a process that has said that it is ready."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdout.readline()
        return process.pid

    def begin_native(self):
        return self.begin(harness.fixture("threads"), "6", "1", "1")

    def begin_python(self):
        return self.begin(sys.executable, "-c", PYTHON)

    def begin_go(self):
        return self.begin(harness.fixture("golang-stacks"))
