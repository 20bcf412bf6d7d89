# SPDX-License-Identifier: MIT
"""What tests of pushing share: windows that are made, so that their sums are known, and uploaders."""

import os
import re
import subprocess
import time

import harness
import pprof_maker
from harness import PROFILER
from push_server import Server

PUSHED = re.compile(
    r"pushed (\d+) windows \((\d+) samples\) to \S+; dropped (\d+) windows \((\d+) samples\); "
    r"(\d+) windows? (?:is|are) left"
)
RUNNING, SLEEPING = {"state": "running", "kind": "running"}, {"state": "sleeping", "kind": "lock"}


def window(n, **more):
    """n samples of one stack, and as many of another."""
    return pprof_maker.make(
        [(["leaf", "main"], n, {**RUNNING, "thread": "w-1", "descriptor": "/etc/x", "syscall": "read"}),
         (["[made+0x1f]", "main"], n, {**SLEEPING, "thread": "w-2"})], **more)  # fmt: skip


class Told:
    """The uploader's last line."""

    def __init__(self, stderr):
        match = PUSHED.search(stderr)
        assert match, stderr
        self.windows, self.samples, self.dropped, self.dropped_samples, self.left = map(int, match.groups())


class Push(harness.TestCase):
    def serve(self, *script, **more):
        server = Server(script or (200,), **more)
        self.addCleanup(server.close)
        return server

    def spool(self, *windows):
        """A directory with these windows, the first one the oldest."""
        directory = self.directory()
        for number, data in enumerate(windows):
            path = os.path.join(directory, f"host.1.{number:06}.pb.gz")
            with open(path, "wb") as file:
                file.write(data)
            at_ns = time.time_ns() - (100 - number) * 10**9
            os.utime(path, ns=(at_ns, at_ns))
        return directory

    def begin(self, *args, **more):
        process = subprocess.Popen([PROFILER, "push", *map(str, args)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)  # fmt: skip
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end(self, process, expect=0):
        self.stdout, self.stderr = process.communicate(timeout=harness.RUN_TIMEOUT_S)
        self.assertEqual(process.returncode, expect, self.stderr)
        for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
            self.assertNotIn(word, self.stderr)
        return self.stderr

    def push(self, *args, expect=0):
        return Told(self.end(self.begin(*args), expect))

    def await_requests(self, server, n):
        harness.wait_for(lambda: len(server.requests) >= n, f"{n} requests")
