# SPDX-License-Identifier: MIT
"""Windows: a profile for each stretch of time, which add up to the whole exactly."""

import collections
import json
import math
import os
import shutil
import subprocess

import harness
import pprof
from harness import STATUS_OUTPUT, STATUS_USAGE, Run
from told import Summary


class Windows(harness.TestCase):
    def windows(self, target, *args, expect=0, hz=199, duration="1.6"):
        """The finished run's summary, and its files in order."""
        self.where = os.path.join(self.directory(), "new", "")
        run = Run(
            ["-p", target.pid, "-F", hz, "-d", duration, "-v", "-o", self.where, *args],
            target_pid=target.pid,
        )
        run.communicate()
        shutil.rmtree(run.directory, ignore_errors=True)
        run._check_no_sanitizer()
        run._check_let_go()
        self.assertEqual(run.status, expect, run.stderr)
        self.stderr = run.stderr
        return Summary(run.stderr), sorted(os.listdir(self.where))

    def n_least(self, summary, every_s):
        """How many windows it takes to hold all ticks; none is there for a time that has none, as
        they were missed."""
        return math.ceil(summary.ticks / (every_s * summary.hz + 1))

    def read(self, name):
        with open(os.path.join(self.where, name), "rb") as file:
            return pprof.Profile(file.read())

    def test_timelines(self):
        """Each thread's windows follow each other without a gap or an overlap."""
        target = self.start_fixture("threads", 4, 1, 1)
        summary, files = self.windows(target, "--every=300ms", "-f", "speedscope", duration="1")
        self.assertGreaterEqual(len(files), self.n_least(summary, 0.3))
        ends = {}
        for name in files:
            self.assertTrue(name.endswith(".speedscope.json"))
            with open(os.path.join(self.where, name), encoding="utf-8") as file:
                for profile in json.load(file)["profiles"]:
                    thread = profile["name"]
                    self.assertEqual(sum(profile["weights"]),
                                     profile["endValue"] - profile["startValue"])  # fmt: skip
                    self.assertEqual(profile["startValue"], ends.get(thread, 0))
                    ends[thread] = profile["endValue"]
        self.assertEqual(len(ends), 5)
        self.assertEqual(len(set(ends.values())), 1)

    def test_they_add_up(self):
        """Sample for sample, nanosecond for nanosecond."""
        target = self.start_fixture("threads", 8, 2, 3)
        summary, files = self.windows(target, "--every=400ms")
        self.assertGreaterEqual(len(files), self.n_least(summary, 0.4))
        counts, walls, cpus = (collections.Counter() for _ in range(3))
        end_ns = None
        for number, name in enumerate(files):
            profile = self.read(name)
            self.assertRegex(name, rf"\.{target.pid}\.{number:06}\.\d{{8}}T\d{{6}}Z\.pb\.gz$")
            self.assertIn(f"window {number}: from ", " ".join(profile.comments))
            if end_ns is not None:
                self.assertEqual(profile.time_ns, end_ns)  # one begins where the other ends
            end_ns = profile.time_ns + profile.duration_ns
            for sample in profile.samples:
                counts[sample.tid] += sample.count
                walls[sample.tid] += sample.wall_ns
                cpus[sample.tid] += sample.cpu_ns
        self.assertEqual(sum(counts.values()), summary.samples)
        for thread in summary.threads:
            self.assertEqual(counts[thread.tid], thread.samples)
            self.assertAlmostEqual(walls[thread.tid] / 1e9, thread.wall_s, places=8)
            self.assertAlmostEqual(cpus[thread.tid] / 1e9, thread.cpu_s, places=8)

    def test_threads_that_come_and_go(self):
        target = self.start_fixture("churn", 6, ready=None)
        summary, files = self.windows(target, "--every=100ms", hz=499)
        n_samples = 0
        for name in files:
            n_samples += sum(sample.count for sample in self.read(name).samples)
        self.assertEqual(n_samples, summary.samples)

    def test_keep_and_exec(self):
        """Only the last files stay, and each was handed on, whole, before."""
        target = self.start_fixture("threads", 2, 1)
        taken = self.directory()
        script = f"gzip -t <\"$1\" && cp -t {taken}"
        summary, files = self.windows(target, "--every=300ms", "--keep=2", f"--exec={script}")
        copies = sorted(os.listdir(taken))
        self.assertGreaterEqual(len(copies), self.n_least(summary, 0.3))
        self.assertEqual(files, copies[-2:])

    def test_a_slow_command(self):
        """While sixteen files are not finished, windows get longer; without --push none is given up."""
        target = self.start_fixture("threads", 2, 1)
        summary, files = self.windows(target, "--every=100ms", "--exec=sleep 4; :", hz=99, duration="3")
        profiles = [self.read(name) for name in files]
        self.assertEqual(sum(sample.count for profile in profiles for sample in profile.samples),
                         summary.samples)  # fmt: skip
        self.assertLessEqual(len(files), 16 + 2)
        self.assertGreater(max(profile.duration_ns for profile in profiles), 650e6)

    def test_a_command_that_fails(self):
        """The files stay; the status tells."""
        target = self.start_fixture("threads", 2, 1)
        summary, files = self.windows(target, "--every=400ms", "--exec=false", expect=STATUS_OUTPUT)
        self.assertGreaterEqual(len(files), self.n_least(summary, 0.4))
        self.assertIn("--exec: 'false' failed for", self.stderr)
        self.assertIn(f"--exec failed for {len(files)} of the files, which are there", self.stderr)

    def test_a_command_that_fails_and_keep(self):
        """Those it has failed for are removed in their turn, too."""
        target = self.start_fixture("threads", 2, 1)
        _, files = self.windows(target, "--every=200ms", "--keep=2", "--exec=false", expect=STATUS_OUTPUT)
        self.assertEqual(len(files), 2)

    def wrap_beside(self, helper, **popen):
        """A wrapped command that reads its input when a helper has ended: the finished run."""
        done = os.path.join(self.directory(), "done")
        command = ["sh", "-c", f"until [ -e {done} ]; do sleep 0.05; done; cat"]
        helper = f"{helper}; touch {done}; true"
        run = Run(["-q", "--every=200ms", f"--exec={helper}", "-o", "windows", "--", *command], **popen)
        run.communicate(b"hello\n")
        self.assertEqual(run.status, 0, run.stderr)
        return run

    def test_a_command_leaves_the_streams(self):
        """Standard input and output are the wrapped command's: a helper, even in the background,
        reads nothing of it and prints elsewhere."""
        for helper in ("cat", "read -r line; echo uploaded $line", "{ cat; echo late; } & wait"):
            with self.subTest(helper):
                run = self.wrap_beside(helper, stdin=subprocess.PIPE)
                self.assertEqual(run.stdout, b"hello\n")
                self.assertNotIn("hello", run.stderr)
        self.assertIn("late", run.stderr)

    def test_a_command_below_closed_streams(self):
        """A helper has streams that it can use, even where the profiler was started with none."""
        told = os.path.join(self.directory(), "told")
        target = self.start_fixture("threads", 2, 1)
        close = ["sh", "-c", 'exec "$@" <&- >&-', "sh"]
        helper = f"cat && echo x && readlink /proc/self/fd/0 >{told}; true"
        args = ["-p", target.pid, "-d", "0.5", "--every=200ms", "-o", "w", f"--exec={helper}"]
        run = Run(args, prefix=close)
        run.communicate()
        self.assertEqual(run.status, 0, run.stderr)
        with open(told, encoding="ascii") as file:
            self.assertEqual(file.read(), "/dev/null\n")

    def test_folded(self):
        target = self.start_fixture("calls-O2", "spin")
        _, files = self.windows(target, "--every=400ms", "-f", "folded", "-t")
        for name in files:
            with open(os.path.join(self.where, name), encoding="utf-8") as file:
                self.assertIn("calls-O2;", file.read())

    def test_refused(self):
        for args, pattern in (
            (["--every=1ms"], "less than two ticks"),
            (["--every=1s", "--ring=1s"], "leave one of them out"),
            (["--keep=3"], "are for --every and --ring"),
            (["--every=1s", "-f", "record"], "make no recordings"),
            (["--every=1s", "-o", "-"], "name a directory"),
            (["--ring=1s", "-o", "-"], "name a directory"),
        ):
            run = Run(["-p", os.getpid(), "-d", "1", *args]).finish(expect=STATUS_USAGE)
            self.assert_message(run, pattern, STATUS_USAGE)


if __name__ == "__main__":
    harness.main()
