# SPDX-License-Identifier: MIT
"""Windows: a profile for each stretch of time, which add up to the whole exactly."""

import collections
import datetime
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import harness
import pprof
from push_server import Server
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
        """Sample for sample; each thread's time, and what the kernel counted of it."""
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
            self.assertAlmostEqual(walls[thread.tid] / 1e9, thread.wall_s, delta=1e-6)
            # Each window's is the kernel's, but for what is too short to be seen.
            self.assertAlmostEqual(
                cpus[thread.tid] / 1e9,
                thread.kernel_cpu_s,
                delta=0.03 * thread.kernel_cpu_s + 0.02 * (len(files) + 1),
            )

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
        """While sixteen files are not finished, windows get longer."""
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
            (["--every=1ms"], "fewer than two samples"),
            (["--every=1s", "--ring=1s"], "choose one"),
            (["--keep=3"], "need --every or --ring"),
            (["--every=1s", "-f", "record"], "cannot write recordings"),
            (["--every=1s", "-o", "-"], "name a directory"),
            (["--ring=1s", "-o", "-"], "name a directory"),
        ):
            run = Run(["-p", os.getpid(), "-d", "1", *args]).finish(expect=STATUS_USAGE)
            self.assert_message(run, pattern, STATUS_USAGE)


class Hosts(harness.TestCase):
    """A host's name begins the names of files: whatever it is, they are no hidden ones."""

    def test_pushed(self):
        script = """
import ctypes, os, sys
name = os.fsencode(sys.argv[1])
assert ctypes.CDLL(None).sethostname(name, len(name)) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""
        server = Server()
        self.addCleanup(server.close)
        for host in ("", ".", "..", ".hidden", "-rf", "a b", "(none)", "x/../y", "$(x)"):
            with self.subTest(host):
                where, before = os.path.join(self.directory(), "w"), len(server.requests)
                prefix = [*harness.unshare("-u"), sys.executable, "-c", script, host]
                args = ["--every=200ms", "-o", where, "--", "sleep", "0.3"]
                run = Run(args, prefix=prefix)
                run.communicate()
                self.assertEqual(run.status, 0, run.stderr)
                files = os.listdir(where)
                self.assertTrue(files)
                self.assertEqual([name for name in files if name[0] == "."], [])
                push = [harness.PROFILER, "push", "--remove", server.url, where]
                self.assertEqual(subprocess.run(push, capture_output=True, check=False).returncode, 0)
                self.assertEqual((len(server.requests) - before, os.listdir(where)), (len(files), []))


class Clock(harness.TestCase):
    """The time of day is set while it samples: by NTP, by hand, or after a suspend."""

    STEP_S = 7200

    def setUp(self):
        if harness.is_sanitized():
            self.skipTest("a sanitizer's library must be loaded first")
        self.where, self.clock = os.path.join(self.directory(), "w"), os.path.join(self.directory(), "c")
        self.set_clock(0)
        self.target = self.start_fixture("threads", 2, 1)

    def set_clock(self, seconds):
        with open(self.clock + ".new", "w", encoding="ascii") as file:
            file.write(str(seconds))
        os.rename(self.clock + ".new", self.clock)

    def start_run(self, *args):
        env = {**os.environ, "LD_PRELOAD": harness.fixture("set_clock.so"), "SET_CLOCK": self.clock}
        return Run(args, target_pid=self.target.pid, env=env)

    def sample(self, *args):
        return self.start_run("-p", self.target.pid, "-F", 199, *args)

    def finished(self):
        """Each window's start by its name, by the clock, and how long it was; the first one first."""
        found = []
        for name in sorted(os.listdir(self.where) if os.path.isdir(self.where) else []):
            told = re.search(r"\.(\d{8}T\d{6}Z)\.pb\.gz$", name)
            if not name.startswith(".") and told:
                named = datetime.datetime.strptime(told[1] + "+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
                with open(os.path.join(self.where, name), "rb") as file:
                    profile = pprof.Profile(file.read())
                found.append((named, profile.time_ns / 1e9, profile.duration_ns / 1e9))
        return found

    def assert_shifted(self, window, step_s):
        named, start, _ = window
        self.assertAlmostEqual(named, start, delta=2)
        self.assertAlmostEqual(start - time.time(), step_s, delta=600)

    def test_every(self):
        """A window that ends after a step has the new time, on whichever side; those before keep theirs,
        and without a step one begins where the other ended."""
        for step_s in (self.STEP_S, -self.STEP_S):
            shutil.rmtree(self.where, ignore_errors=True)
            self.set_clock(0)
            run = self.sample("--every=200ms", "-o", self.where)
            harness.wait_for(lambda: len(self.finished()) >= 2, "windows")
            before = self.finished()
            self.set_clock(step_s)
            harness.wait_for(lambda n=len(before): len(self.finished()) >= n + 4, "more windows")
            run.signal(signal.SIGINT)
            run.communicate()
            self.assertEqual(run.status, 0, run.stderr)
            windows = self.finished()
            for window in before:
                self.assert_shifted(window, 0)
            self.assert_shifted(windows[-1], step_s)
            jumps = [a[1] + a[2] - b[1] for a, b in zip(windows, windows[1:])]
            self.assertEqual(sum(abs(jump) > 1e-3 for jump in jumps), 1, jumps)

    def test_ring_and_whole(self):
        """A window that is asked for, and a profile at its end."""
        run = self.sample("--ring=1s", "-o", self.where)
        run.wait_attached()
        self.set_clock(self.STEP_S)
        run.signal(signal.SIGUSR1)
        harness.wait_for(self.finished, "the window")
        run.signal(signal.SIGINT)
        run.communicate()
        self.assert_shifted(self.finished()[0], self.STEP_S)
        run = self.sample("-o", "out.pb.gz")
        run.wait_attached()
        self.set_clock(-self.STEP_S)
        run.signal(signal.SIGINT)
        self.assertLess(run.finish().pprof.time_ns / 1e9, time.time() - self.STEP_S / 2)


    def test_top(self):
        run = self.start_run("top", self.target.pid, "--json", "-n", 1000, "--interval=200ms")
        first = json.loads(run.process.stdout.readline())["start_ns"]
        self.set_clock(self.STEP_S)
        starts = (json.loads(line)["start_ns"] for line in run.process.stdout)
        self.assertAlmostEqual((next(s for s in starts if s != first) - first) / 1e9, self.STEP_S, delta=1)
        run.signal(signal.SIGINT)
        run.communicate()

    def test_push(self):
        """All that was sampled before and after is sent, with the time that it had when it was written."""
        server = Server()
        self.addCleanup(server.close)
        run = self.sample("--every=500ms", f"--push={server.url}", "--service=s", "-o", self.where)
        harness.wait_for(lambda: len(server.requests) >= 2, "windows")
        self.set_clock(self.STEP_S)
        n = len(server.requests)
        harness.wait_for(lambda: len(server.requests) >= n + 4, "more windows")
        run.signal(signal.SIGINT)
        run.communicate()
        self.assertIn("dropped 0 windows (0 samples); 0 windows are left", run.stderr)
        self.assertEqual(os.listdir(self.where), [])
        late = [s.profile.time_ns / 1e9 - time.time() > self.STEP_S / 2 for s in server.taken]
        # A window whose request failed, as on a very busy machine, comes after later ones.
        self.assertGreaterEqual(sum(late), 2)
        self.assertGreaterEqual(len(late) - sum(late), 1)


if __name__ == "__main__":
    harness.main()
