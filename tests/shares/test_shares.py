# SPDX-License-Identifier: MIT
"""Programs measure how long they are in each function. The profile must say the same.

A machine that others share may stand still for a while, and a program that was compared then is compared
once more: what is wrong in each of three runs is a fault. matrix.py compares more cases, more precisely, by
hand.
"""

import os
import re
import subprocess

import cases
import page
from cases import harness

SECONDS = 5
HZ = 99
# How far a share may be off: the larger of both.
SIGMAS, POINTS = 5, 5


class SharesCase(harness.TestCase):
    who = "root"

    @classmethod
    def setUpClass(cls):
        harness.need(os.geteuid() == 0, "needs root to become another user")

    def profile(self, name, n_cpus, hz=HZ):
        self.outcome, self.run_ = cases.profile(name, self.who, n_cpus, hz, SECONDS, seed=7)
        return self.outcome

    def check(self, shares, what, points=POINTS):
        for share in shares:
            self.assertLessEqual(
                abs(share.found - share.true), max(points, SIGMAS * share.sigma),
                f"{share.name} has {share.true:.1f} % of {what} by the program's clock, and "
                f"{share.found:.1f} % by the profile; {self.run_.stderr}",
            )  # fmt: skip

    def check_wall(self, name, n_cpus, points=POINTS, **more):
        self.check(self.profile(name, n_cpus, **more).of_wall_time(), "all time", points)

    def check_never_asleep(self):
        asleep, n = self.outcome.spinners_asleep()
        self.assertGreater(n, 0, self.run_.stderr)
        self.assertEqual(asleep, 0, f"of {n} samples of functions that never sleep")

    def check_kernel(self):
        """Checks the time on a CPU, and the wait for one, of each thread against the kernel's count."""
        for thread in self.run_.summary.threads:
            if thread.tid in self.outcome.truth.threads:
                self.check_thread(thread)

    def sampler_s(self):
        return float(re.search(r"([\d.]+) ms of CPU while sampling", self.run_.stderr)[1]) / 1000

    def check_thread(self, thread):
        cpu_s, delay_s = self.outcome.truth.threads[thread.tid]
        # The profile lacks the time before the first tick, and after the last one.
        unwatched_s = max(0, SECONDS - thread.watched_s)
        # The kernel counts the time for which the profiler stopped a thread neither way.
        held_s = self.run_.summary.held_percent / 100 * SECONDS
        # A thread that the sampler displaces counts as running: for no longer than the sampler ran.
        displaced_s = min(self.sampler_s(), max(0, delay_s - self.outcome.thread_runnable_s[thread.tid]))
        for what, found_s, kernel_s, more_s in (
            ("ran", self.outcome.thread_cpu_s[thread.tid], cpu_s, 0),
            ("waited for a CPU", self.outcome.thread_runnable_s[thread.tid] + displaced_s, delay_s,
             held_s),
        ):
            self.assertLessEqual(
                abs(found_s - kernel_s), 0.02 * kernel_s + 2 / HZ + unwatched_s + more_s,
                f"{thread.tid} {what} for {kernel_s:.3f} s by the kernel, for {found_s:.3f} s by the profile; "
                f"{self.run_.stderr}",
            )  # fmt: skip


class Programs:
    """The tests of each program, for every user."""

    def test_naps_on_one_cpu(self):
        self.check_wall("naps of 1 ms", 1)
        self.check_kernel()

    def test_four_threads_on_two_cpus(self):
        self.check_wall("4 threads nap 1 ms", 2)
        self.check_kernel()

    def test_starved(self):
        """Each of 8 threads waits for the one CPU most of the time: that is no CPU time."""
        # A wait lasts for up to 10 ticks: that is one independent sample of a function, not 10.
        self.check_wall("8 threads spin", 1, points=15)
        self.check_kernel()
        self.check_never_asleep()

    def test_pool(self):
        self.check_wall("pool", 2)
        self.check_kernel()

    def test_spinners(self):
        self.check_wall("2 threads spin", 2)
        self.check_kernel()
        self.check_never_asleep()

    def test_python(self):
        self.check_wall("Python, 4 threads", 2)
        self.check_kernel()

    def test_go(self):
        self.check_wall("Go, 4 goroutines", 2)

    def test_slowed_function(self):
        """compute_b does 3 times the work of compute_a. No clock is needed to know that."""
        self.check_wall("slowed by 3", 1, hz=499)
        a_s, b_s = (self.outcome.wall_s[name] for name in ("compute_a", "compute_b"))
        self.assertAlmostEqual(b_s / a_s, 3, delta=0.75, msg=self.run_.stderr)


class AsRoot(Programs, SharesCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not cases.may_be_realtime():
            print("This cgroup does not allow SCHED_FIFO: root samples without it.", flush=True)

    def test_python(self):
        """On one CPU the sampler displaces whoever runs, here for about 1 ms. The kernel counts that as waiting, but
        it counts as running: it would else go to those that wait for a CPU, and naps would get too much."""
        self.check_wall("Python, 4 threads", 1)
        self.check_kernel()
        threads = self.outcome.truth.threads
        displaced_s = sum(delay_s - self.outcome.thread_runnable_s[tid] for tid, (_, delay_s) in threads.items())
        n_running = sum(
            sample.count for sample in self.run_.pprof.samples
            if sample.state == "running" and sample.tid in threads
        )  # fmt: skip
        tick_s = self.sampler_s() / self.run_.summary.ticks
        self.assertGreater(displaced_s, n_running * tick_s / 2, self.run_.stderr)


class AsUser(Programs, SharesCase):
    who = "user"

    def test_short_threads(self):
        """Beside threads that compute, a user's ticks are late, and nothing corrects what is seen of short lives:
        the summary, a report, its page, and top say so."""
        path = os.path.join(self.directory(), "x.wprof")
        command = cases.command_of(cases.PROGRAMS["threads of 15 ms"], 1.5)
        run = harness.start_wrap(command, form="record", hz=HZ, prefix=[*cases.on_cpus(1), *cases.WHO["user"]()]).finish()
        with open(path, "wb") as file:
            file.write(run.recording)
        doubt = re.search(r"profiler: (\d+ % of the time belongs to threads with fewer than 16 samples.*)", run.stderr)
        self.assertTrue(doubt, run.stderr)
        done = subprocess.run(
            [harness.PROFILER, "report", path, "-f", "html", "-o", "-"], capture_output=True, check=True,
            timeout=harness.RUN_TIMEOUT_S,
        )  # fmt: skip
        self.assertIn(doubt[0], done.stderr.decode())
        self.assertEqual(page.Page(done.stdout).meta["doubts"], doubt[1])
        told = subprocess.run(
            [harness.PROFILER, "top", path, "--interval=1h", "-n", "1"], capture_output=True, check=True,
            timeout=harness.RUN_TIMEOUT_S,
        )  # fmt: skip
        self.assertIn(doubt[1], told.stdout.decode())


if __name__ == "__main__":
    harness.main()
