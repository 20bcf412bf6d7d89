# SPDX-License-Identifier: MIT
"""The flight recorder: the last window is written when it is asked for, and sampling goes on."""

import json
import os
import resource
import select
import shutil
import signal
import time

import harness
import pprof
from harness import STATUS_OUTPUT, STATUS_USAGE, Run
from told import Summary

# For a window to be written. Its writer has nice 10: while ten others want a CPU, it has a hundredth.
MAX_WAIT_S = 200


class Flight(harness.TestCase):
    def start_ring(self, target, *args, hz=199, ring="1s", **run):
        self.windows = self.directory()
        pid = target.pid
        return Run(
            ["-p", pid, "-F", hz, "-o", self.windows, f"--ring={ring}", *args],
            target_pid=pid, **run,
        )  # fmt: skip

    def files(self):
        """Those that stand under their names."""
        return sorted(name for name in os.listdir(self.windows) if not name.startswith("."))

    def finish(self, run, expect=0):
        """The run's summary; whatever it ended as, the target was let go."""
        run.communicate()
        shutil.rmtree(run.directory, ignore_errors=True)
        run._check_no_sanitizer()
        run._check_let_go()
        self.assertEqual(run.status, expect, run.stderr)
        return Summary(run.stderr)

    def read(self, name):
        with open(os.path.join(self.windows, name), "rb") as file:
            return pprof.Profile(file.read())

    def wait_seconds(self, run, seconds):
        """Waits until it has sampled for so long: the tick under way has begun after that."""
        run.wait_attached()
        time.sleep(seconds)
        run.wait_ticks(20)

    def test_timeline(self):
        """The last window as a timeline: all threads, for the whole of it and no more."""
        target = self.start_fixture("threads", 6, 1, 1)
        run = self.start_ring(target, "-f", "speedscope", ring="500ms")
        self.wait_seconds(run, 1.0)
        run.signal(signal.SIGUSR1)
        harness.wait_for(lambda: len(self.files()) == 1, "the window", MAX_WAIT_S)
        run.signal(signal.SIGINT)
        self.finish(run)
        with open(os.path.join(self.windows, self.files()[0]), encoding="utf-8") as file:
            profiles = json.load(file)["profiles"]
        self.assertEqual(len(profiles), 7)
        for profile in profiles:
            self.assertGreater(profile["startValue"], 100_000_000)
            length = profile["endValue"] - profile["startValue"]
            self.assertLessEqual(length, 500_000_001)
            self.assertGreater(length, 250_000_000)

    def test_thread_without_a_cpu(self):
        """It stops late; its window has it nevertheless, up to the end, or says that it has not."""
        cpu = min(os.sched_getaffinity(0))
        targets = [self.start_fixture("threads", 1, 1) for _ in range(2)]
        for target, nice in zip(targets, (19, 0)):
            for tid in harness.tids_of(target.pid):
                os.sched_setaffinity(tid, {cpu})
                os.setpriority(os.PRIO_PROCESS, tid, nice)
        run = self.start_ring(targets[0], "-f", "speedscope", ring="100ms")
        for n in range(1, 11):
            self.wait_seconds(run, 0.3)
            run.signal(signal.SIGUSR1)
            harness.wait_for(lambda n=n: len(self.files()) == n, "the window", MAX_WAIT_S)
        run.signal(signal.SIGINT)
        self.finish(run)
        n_late = run.stderr.count("but for the last moments of 1 thread")
        for name in self.files():
            with open(os.path.join(self.windows, name), encoding="utf-8") as file:
                ends = [profile["endValue"] for profile in json.load(file)["profiles"]]
            n_late -= len(ends) != 2 or ends[0] != ends[1]
        self.assertEqual(n_late, 0)

    def test_asked_for(self):
        """SIGUSR1, again and again: each is the last second, and sampling goes on."""
        target = self.start_fixture("threads", 6, 1, 1)
        run = self.start_ring(target)
        self.wait_seconds(run, 1.2)
        asked_ns, seen_ns = [], []
        # The last one only shows that a tick has come after the one before.
        for n, sleep_s in enumerate((0, 0.5, 0.5, 0), start=1):
            time.sleep(sleep_s)
            asked_ns.append(time.time_ns())
            run.signal(signal.SIGUSR1)
            harness.wait_for(lambda n=n: len(self.files()) == n, "the window", MAX_WAIT_S)
            seen_ns.append(time.time_ns())
        run.signal(signal.SIGINT)
        summary = self.finish(run)
        files = self.files()
        for number, (name, at_ns) in enumerate(zip(files[:-1], asked_ns)):
            self.assertRegex(name, rf"\.{target.pid}\.{number:06}\.\d{{8}}T\d{{6}}Z\.pb\.gz$")
            profile = self.read(name)
            self.assertAlmostEqual(profile.duration_ns, 1e9, delta=1e6)
            end_ns = profile.time_ns + profile.duration_ns
            # It ends with the period for which the tick under way stands: the one in which that
            # began, or where that one's own tick is still to come, the one before. It may have
            # begun long ago: the periods that it takes beyond its own are missed, and so are all
            # but one of those until the next. In a thinned one no tick takes place.
            period_ns = 1e9 / summary.hz
            n_behind = summary.missed + summary.thinned + 2
            self.assertGreaterEqual(end_ns, at_ns - n_behind * period_ns)
            self.assertLess(end_ns, seen_ns[number] + period_ns)
            self.assertTrue(any("SIGUSR1" in comment for comment in profile.comments))
            walls = {}
            for sample in profile.samples:
                walls[sample.tid] = walls.get(sample.tid, 0) + sample.wall_ns
            self.assertEqual(len(walls), 7)
            # What stands for missed ticks may be within its start, or not.
            delta = 0.15 + summary.missed / summary.hz
            for wall_ns in walls.values():
                self.assertAlmostEqual(wall_ns / 1e9, 1, delta=delta)
        spinning = {frame.name for sample in profile.samples for frame in sample.frames}
        self.assertLessEqual({"spin_here", "worker", "wait_for_end"}, spinning)
        self.assertGreater(summary.duration_s, 2)
        self.assertEqual(summary.samples, summary.ticks * 7)

    def test_blocked(self):
        target = self.start_fixture("threads", 3, 0, 1)
        metronome = self.start_metronome()
        run = self.start_ring(target, "--dump-when=blocked>400ms", "-d", "1")
        self.finish(run)
        self.assertEqual(len(self.files()), 1)  # all of them at once
        comment = " ".join(self.read(self.files()[0]).comments)
        # Longer, if the ticks after 0.4 s are missed.
        self.assertRegex(comment, r"thread \d+ \(.+\) has been blocked for (0\.[4-9]|[1-9])")
        # It wakes all the time, but while the machine pauses.
        if metronome.late_s(run.start_s, run.end_s) < 0.35:
            self.assertNotIn("worker-00", comment)

    def test_blocked_of_some(self):
        """Threads that wait for ever, as some programs have, can be left out of it."""
        target = self.start_fixture("threads", 3, 0, 1)
        metronome = self.start_metronome()
        run = self.start_ring(
            target, "--dump-when=blocked>400ms", "--thread=^worker-00$", "-d", "1"
        )
        self.finish(run)
        # It wakes all the time, but while the machine pauses.
        if metronome.late_s(run.start_s, run.end_s) < 0.35:
            self.assertEqual(self.files(), [])
            self.assertIn("no window was asked for", run.stderr)

    def test_cpu(self):
        target = self.start_fixture("threads", 2, 2)
        run = self.start_ring(target, "--dump-when=cpu>1,cpu<0.0001", "-d", "2.5")
        self.finish(run)
        self.assertEqual(len(self.files()), 1)
        self.assertRegex(" ".join(self.read(self.files()[0]).comments), r"uses [\d.]+ % of a CPU")

    def test_death(self):
        """What it did before it was killed."""
        target = self.start_fixture("calls-O2", "spin")
        harness.wait_until_spinning(target)
        run = self.start_ring(target, "--dump-when=death", "--lines", "-f", "folded")
        run.wait_attached()
        n_ticks = harness.cpu_ticks(target.pid)
        harness.wait_for(lambda: harness.cpu_ticks(target.pid) >= n_ticks + 5, "its CPU time")
        run.wait_ticks(10)
        target.process.kill()
        self.finish(run)
        self.assertEqual(len(self.files()), 1, run.stderr)
        with open(os.path.join(self.windows, self.files()[0]), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"leaf_spin")

    def test_nothing_asked(self):
        target = self.start_fixture("calls-O2", "spin")
        run = self.start_ring(target, "-d", "0.2")
        self.finish(run)
        self.assertEqual(self.files(), [])
        self.assertIn("no window was asked for", run.stderr)

    def test_a_full_disk(self):
        """The window cannot be written: sampling goes on, and the status tells."""
        target = self.start_fixture("threads", 2, 1)
        run = self.start_ring(
            target, "-d", "0.8", "--dump-when=blocked>200ms",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        )  # fmt: skip
        summary = self.finish(run, expect=STATUS_OUTPUT)
        self.assertEqual(self.files(), [])
        self.assertGreater(summary.duration_s, 0.7)
        self.assertRegex(run.stderr, r"cannot write \S+\.pb\.gz: File too large")
        self.assertRegex(run.stderr, r"profiler: [12] windows? could not be written: \d\d+ samples are lost\n")

    def test_memory_is_flat(self):
        """A short soak, with threads that come and go: what is not in the window is forgotten."""
        target = self.start_fixture("churn", 200, ready=None)
        # Where it is sanitized, freed memory is soon used again.
        env = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}
        run = self.start_ring(target, hz=999, ring="300ms", env=env)
        run.wait_attached()
        worker = run.worker_pid()

        def resident_kb():
            """In the course of a second, as the load changes what is in the window."""
            found = []
            for _ in range(50):
                found.append(int(harness.read_status(worker)["VmRSS"].split()[0]))
                time.sleep(0.02)
            return found

        time.sleep(2)
        early = max(resident_kb())
        time.sleep(2)
        late = min(resident_kb())
        run.signal(signal.SIGINT)
        self.finish(run)
        self.assertLess(late - early, 2048, f"{early} kB, then {late} kB")

    def test_without_a_ring(self):
        """SIGUSR1 does no harm."""
        target = self.start_fixture("calls-O2", "spin")
        run = harness.start_attach(target, "-d", "1000")
        run.wait_attached()
        run.signal(signal.SIGUSR1)
        # Both at once, where the profiler had no CPU, would be taken with SIGINT first.
        self.assertTrue(select.select([run.process.stderr], [], [], harness.WAIT_TIMEOUT_S)[0])
        run.wait_ticks(10)
        run.signal(signal.SIGINT)
        run.finish()
        self.assertIn("SIGUSR1 is ignored, as no window is kept", run.stderr)

    def test_refused(self):
        run = Run(["-p", os.getpid(), "--dump-when=death"]).finish(expect=STATUS_USAGE)
        self.assert_message(run, "need --ring", STATUS_USAGE)
        run = Run(["-p", os.getpid(), "--ring=1s", "-o", "/dev/null/x"])
        run.finish(expect=STATUS_OUTPUT)
        self.assertIn("cannot make the directory", run.stderr)


if __name__ == "__main__":
    harness.main()
