# SPDX-License-Identifier: MIT
"""A call that a stop has cut, and that goes on after the profile's end."""

import os
import signal

import torture
from torture import ALL_TICKS, harness

CUT_TRIES = 10  # of a call: most are cut at once, but a busy machine may have no CPU for the profiler


class RestCase(torture.TestCase):
    def setUp(self):
        self.target = self.start_writer(torture.program("life"))

    def start_writer(self, program):
        """It writes to a pipe, of which a megabyte at a time is the most that it takes."""
        self.reader, writer = os.pipe()
        self.addCleanup(os.close, self.reader)
        self.n_read = 0
        target = self.start(program, "write", writer, pass_fds=[writer])
        os.close(writer)
        return target

    def read(self, size):
        part = os.read(self.reader, size)
        self.n_read += len(part)
        return part

    def is_traced(self):
        return any(
            (harness.read_status(self.target.pid, tid) or {"TracerPid": "0"})["TracerPid"] != "0"
            for tid in harness.tids_of(self.target.pid)
        )

    def run_into_rest(self):
        """Reads slowly until the call is cut, and then no more until the profile is written."""
        run = harness.start_attach(self.target, ALL_TICKS, "-d", "600", hz=1000)
        run.wait_attached()
        self.read_slowly()
        run.signal(signal.SIGTERM)
        run.finish()
        return run

    def read_slowly(self):
        n_looks = 0
        while n_looks < 20 and self.n_read < 60 << 20:
            n_looks = n_looks + 1 if self.is_traced() else 0
            if n_looks == 0:
                self.assertTrue(self.read(4096), "the target has ended")
            else:
                torture.pause(0.002)

    def written(self):
        """What the program is told, when all is read that there is."""
        while self.read(1 << 20):
            pass
        told = self.target.rest()
        return int(told[0].split()[1])

    def start_rest(self):
        """The process that stays."""
        for _ in range(CUT_TRIES):
            run = self.run_into_rest()
            if run.stays:
                return run.stays
            if self.n_read > 30 << 20:
                self.target.end()
                self.target = self.start_writer(self.target.process.args[0])
        raise AssertionError("no call was cut")

    def is_gone(self, pid):
        return not os.path.exists(f"/proc/{pid}") or harness.read_status(pid)["State"][0] in "ZX"
