# SPDX-License-Identifier: MIT
"""A call that a stop has cut is put right though its thread gets no CPU for long: whoever sees to it
waits for that, and is not cut short itself.

meson runs this test alone: meanwhile a process of realtime priority has one of the CPUs.
"""

import os
import signal
import subprocess

import rests
import torture
from torture import ALL_TICKS, harness

STARVED_S = 3  # longer than anybody waits for whoever gets a CPU


class Starved(rests.RestCase):
    def setUp(self):
        harness.need(os.geteuid() == 0, "needs root for realtime priorities")
        harness.need(len(os.sched_getaffinity(0)) > 1, "needs two CPUs")
        super().setUp()

    def starve(self):
        """Takes the target's CPU, and wakes it: it is in the middle of its call then."""
        cpus = os.sched_getaffinity(0)
        cpu = max(cpus)
        self.addCleanup(os.sched_setaffinity, 0, cpus)
        os.sched_setaffinity(0, cpus - {cpu})
        for tid in harness.tids_of(self.target.pid):
            os.sched_setaffinity(tid, {cpu})
            os.sched_setscheduler(tid, os.SCHED_FIFO, os.sched_param(1))
        spin = ["chrt", "-f", "2", "taskset", "-c", str(cpu), "sh", "-c", "echo; while :; do :; done"]
        self.spinner = subprocess.Popen(spin, stdout=subprocess.PIPE)
        self.addCleanup(self.feed)
        self.spinner.stdout.readline()
        self.read(1 << 16)
        harness.wait_for(
            lambda: harness.read_status(self.target.pid)["State"][0] == "R", "the target to starve"
        )

    def feed(self):
        self.spinner.kill()
        self.spinner.wait()
        self.spinner.stdout.close()

    def check_starved(self, pid, number):
        self.starve()
        os.kill(pid, number)
        torture.pause(STARVED_S)
        self.feed()
        harness.wait_for(lambda: not self.is_traced(), "the target to be let go")
        self.assertEqual(self.written(), self.n_read)
        self.assertLess(self.n_read, 64 << 20)

    def test_told_to_end(self):
        self.check_starved(self.start_rest(), signal.SIGTERM)

    def test_killed(self):
        self.check_starved(self.start_rest(), signal.SIGKILL)

    def test_worker_killed(self):
        """While it still samples: its parent sees to the call."""
        for _ in range(rests.CUT_TRIES):
            run = harness.start_attach(self.target, ALL_TICKS, "-d", "600", hz=1000)
            run.wait_attached()
            self.read_slowly()
            if self.is_traced():
                break
            run.signal(signal.SIGTERM)
            run.finish()
            self.target.end()
            self.target = self.start_writer(self.target.process.args[0])
        self.assertTrue(self.is_traced(), "no call was cut")
        self.check_starved(run.worker_pid(), signal.SIGKILL)
        run.process.wait()
        run.process.stdout.close()
        run.process.stderr.close()


if __name__ == "__main__":
    torture.main()
