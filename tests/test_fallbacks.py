# SPDX-License-Identifier: MIT
"""What the profiler does where the system gives it less: each fallback, on real processes."""

import functools
import os
import resource
import shutil
import signal
import subprocess
import sys

import harness
from harness import LEAVES, STATUS_TARGET, THREAD, attach, start_attach

STOPPED_SLEEPERS = "sleeping threads had to be stopped"


def without(file):
    """The environment of a profiler that does not find this file of a thread in /proc."""
    return {
        **os.environ,
        "LD_PRELOAD": harness.fixture("hide_proc.so"),
        "HIDE_PROC": file,
        # A sanitized profiler wants its own library to be the first.
        "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
    }


def sleepers(run):
    return [sample for sample in run.pprof.samples if "sleep_here" in sample.stack]


class Proc(harness.TestCase):
    """A kernel without schedstat or syscall, or one that does not show them to us: stops."""

    def check(self, file):
        target = self.start_fixture("threads", 6, 1)
        sleeper = max(harness.tids_of(target.pid), key=lambda tid: self.is_sleeper(target, tid))
        _, start_s = harness.schedule_of(target.pid, sleeper)
        run = attach(target, env=without(file))
        waited_s = harness.schedule_of(target.pid, sleeper)[1] - start_s
        self.assertIn(STOPPED_SLEEPERS, run.stderr)
        for name, leaf in (("worker-00", "spin_here"), ("worker-05", "sleep_here" + LEAVES)):
            counts = run.stacks(name)
            self.assertEqual(sum(counts.values()), run.summary.ticks)
            self.assert_stacks(counts, rf"{THREAD}worker;{leaf}", share=0.9)
        # Each stop wakes it for a moment, in which on a busy machine it waits for a CPU.
        asleep = sum(s.count for s in sleepers(run) if s.state == "sleeping")
        share = max(0, 1 - waited_s / run.summary.duration_s)
        self.assertGreaterEqual(asleep, 0.5 * share * sum(s.count for s in sleepers(run)))

    def is_sleeper(self, target, tid):
        return harness.read_status(target.pid, tid)["Name"] == "worker-05"

    def test_without_schedstat(self):
        self.check("schedstat")

    def test_without_counts(self):
        """A schedstat that is 0 of each thread does not say that none has run."""
        self.check("counts")

    def test_without_syscall(self):
        self.check("syscall")

    def test_with_both(self):
        target = self.start_fixture("threads", 6, 1)
        run = attach(target, env=without("nothing"))
        self.assertNotIn(STOPPED_SLEEPERS, run.stderr)


# The main thread fills a pipe, and waits for room; when it is told to, another one reads it all.
BLOCKED_WRITER = """
import os, sys, threading
read_fd, write_fd = os.pipe()
BYTES = 300000
def drain():
    sys.stdin.readline()
    left = BYTES
    while left > 0:
        left -= len(os.read(read_fd, left))
threading.Thread(target=drain, daemon=True).start()
print("ready", flush=True)
print(os.write(write_fd, bytes(BYTES)), flush=True)
"""


def wchan(pid):
    with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
        return file.read()


class Calls(harness.TestCase):
    def test_blocked_writer(self):
        """One that has given a part of its data is not stopped: the rest could come at any time."""
        for file in ("syscall", "schedstat"):
            with self.subTest(file):
                target = self.start(sys.executable, "-c", BLOCKED_WRITER)
                harness.wait_for(lambda t=target: "pipe_write" in wchan(t.pid), "the full pipe")
                run = attach(target, env=without(file))
                self.assertEqual({s.stack for s in run.pprof.samples if s.tid == target.pid},
                                 {("[truncated: stack not available]",)})
                target.process.stdin.write(b"\n")
                self.assertEqual(target.rest(), ["300000"])


class Threads(harness.TestCase):
    def test_list_fails(self):
        """Where the kernel cannot list the threads for a while, none is taken for ended, and those
        that were born meanwhile are found."""
        command = [harness.fixture("threads"), "8", "1"]
        run = harness.start_wrap(command, "-d", "600", env=without("list"))
        run.wait_attached()
        pid = harness.wait_for(run.command_pid, "the command")
        harness.wait_for(lambda: len(harness.tids_of(pid)) == 9, "its threads")
        run.wait_ticks(500)
        os.kill(pid, signal.SIGKILL)
        run.finish(expect=128 + signal.SIGKILL)
        self.assertEqual(run.summary.n_threads, 9)


class Descriptors(harness.TestCase):
    def test_few(self):
        """Files of threads are opened for each use when they cannot all be kept open."""
        target = self.start_fixture("threads", 32, 2)

        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))

        run = attach(target, preexec_fn=limit)
        self.assertEqual(run.summary.n_threads, 33)
        self.assertEqual(run.summary.samples, 33 * run.summary.ticks)
        self.assertLess(run.summary.truncated, 0.05 * run.summary.samples, run.stderr)
        self.assertNotIn("ulimit -n", run.stderr)

    def test_too_few(self):
        """That is no reason to disturb the calls of the process: it is left alone."""
        target = self.start_fixture("threads", 8, 2)

        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))

        run = start_attach(target, "-d", "0.4", preexec_fn=limit).finish(expect=STATUS_TARGET)
        self.assertRegex(run.stderr, r"the limit of open files \(24\) is too low.*\(ulimit -n\)")

    def test_almost_none(self):
        """Whichever cannot be opened first: nobody takes the command for one that cannot be run."""
        for n in range(6, 13):
            run = subprocess.run(
                [harness.PROFILER, "-o", "/dev/null", "sh", "-c", "exit 5"],
                preexec_fn=functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (n, n)),
                capture_output=True, text=True, timeout=harness.RUN_TIMEOUT_S,
            )  # fmt: skip
            self.assertIn((run.returncode, "unprofiled" in run.stderr), ((1, False), (5, True)))
            self.assertRegex(run.stderr, r"^profiler: .*raise (it|the limit) \(ulimit -n\).*\n$")


class Stack(harness.TestCase):
    """A limit of the stack that is too low for the profiler holds for the command alone."""

    LIMIT = 64 << 10

    def test_raised(self):
        _, hard = resource.getrlimit(resource.RLIMIT_STACK)

        def limit():
            resource.setrlimit(resource.RLIMIT_STACK, (self.LIMIT, hard))

        script = "ulimit -S -s; sleep 0.3"
        run = harness.wrap(["sh", "-c", script], preexec_fn=limit)
        self.assertEqual(run.stdout.split()[0], b"64")

    def test_refused(self):
        """Before anything is done to the process, and not by a death in the midst: also where there
        is hardly room to say so. (Sanitizers do not begin there.)"""
        target = self.start_fixture("threads", 1, 1)
        directory = self.directory()
        os.chown(directory, 65534, 65534)  # where the profiler is, others may not be let in
        profiler = shutil.copy(harness.PROFILER, directory)
        for kib in (64,) if harness.is_sanitized() else (64, 16):
            def limit_and_drop(limit=kib << 10):
                os.setuid(65534)
                resource.setrlimit(resource.RLIMIT_STACK, (limit, limit))

            run = start_attach(
                target, "-d", "0.1", preexec_fn=limit_and_drop, env={}, profiler=profiler
            )
            run.finish(expect=STATUS_TARGET)
            self.assertRegex(run.stderr, rf"no larger than {kib} KiB here.*\(ulimit -s\)")


class BusyMachine(harness.TestCase):
    """More threads want a CPU than there are."""

    def spin(self):
        for _ in range(2 * os.cpu_count() + 1):
            self.start_fixture("calls-O2", "spin")

    def test_every_thread_every_tick(self):
        self.spin()
        target = self.start_fixture("threads", 8, 4)
        run = attach(target, duration="1")
        for thread in run.summary.threads:
            self.assertEqual(thread.samples, run.summary.ticks, thread)
        self.assertEqual(sum(s.count for s in run.pprof.samples if s.state == "stopped"), 0)

    def test_priority_is_said(self):
        target = self.start_fixture("calls-O2", "spin")
        run = attach(target)
        self.assertRegex(run.stderr, "scheduled by (SCHED_FIFO|short slice|nice -20|usual)")
        if os.geteuid() == 0:
            self.assertRegex(
                run.stderr, "scheduled by (SCHED_FIFO|short slice|nice -20)", run.stderr)

    def test_stop_all_sees_runners(self):
        """What a thread that never sleeps makes of itself: its name, a child, and its time on a
        CPU, by the kernel's account."""
        script = (
            "import ctypes, os, sys, time\n"
            "end = time.monotonic() + 3\n"
            "while time.monotonic() < end - 2.5: pass\n"
            "is_parent = os.fork() != 0\n"
            "name = b'parent' if is_parent else b'child'\n"
            "ctypes.CDLL(None).prctl(15, name, 0, 0, 0)\n"  # PR_SET_NAME
            "while time.monotonic() < end: pass\n"
            "if is_parent: open(sys.argv[1], 'w').write(str(time.process_time()))\n"
        )
        path = os.path.join(self.directory(), "cpu")
        run = harness.wrap([sys.executable, "-c", script, path], "--stop-all", "-c")
        threads = {thread.name: thread for thread in run.summary.threads}
        self.assertLessEqual({"parent", "child"}, set(threads), run.stderr)
        parent, child = threads["parent"], threads["child"]
        self.assertGreater(parent.wall_s, 1, run.stderr)
        self.assertGreater(child.wall_s, 1, run.stderr)
        with open(path, encoding="utf-8") as file:
            cpu_s = float(file.read())
        self.assertGreater(parent.kernel_cpu_s, 0.5 * cpu_s, run.stderr)
        self.assertLess(parent.kernel_cpu_s, 1.1 * cpu_s + 0.1, run.stderr)

    def test_stop_all(self):
        self.spin()
        target = self.start_fixture("threads", 8, 4)
        run = attach(target, "--stop-all", duration="1")
        for thread in run.summary.threads:
            self.assertEqual(thread.samples, run.summary.ticks, thread)


class Overhead(harness.TestCase):
    def test_thinned_ticks_are_said(self):
        """A budget that cannot be kept: ticks are left out, and the times stay right."""
        target = self.start_fixture("threads", 32, 16)
        # The budget begins with a loan, which it takes some 1,000 ticks to spend: longer, where many
        # are missed, or few of the threads have a CPU and need to be stopped.
        for seconds in (2, 4, 8, 16, 32):
            run = attach(target, "--max-overhead=0.1", duration=str(seconds), hz=1000)
            if run.summary.ticks < 0.95 * 1000 * seconds and run.summary.thinned:
                break
        self.assertRegex(run.stderr, r"ticks were skipped to stay within --max-overhead=0\.1")
        self.assertLess(run.summary.ticks, 0.95 * 1000 * seconds)
        wall_s = sum(thread.wall_s for thread in run.summary.threads)
        self.assertGreater(wall_s, 0.9 * seconds * len(run.summary.threads))


class Signals(harness.TestCase):
    def test_more_than_one(self):
        """A signal more, while the profile is being made, does not cost it."""
        run = start_attach(self.start_fixture("calls-O2", "spin"))
        run.wait_attached()
        for number in 2 * (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            run.signal(number)
        run.finish()
        self.assertGreater(run.summary.samples, 0)


if __name__ == "__main__":
    harness.main()
