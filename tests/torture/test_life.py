# SPDX-License-Identifier: MIT
"""Births, deaths and changes of programs, threads and tracers, while they are profiled."""

import collections
import os
import random
import re
import signal
import subprocess
import sys
import time

import torture
from torture import ALL_TICKS, LONG, MODES, SECONDS, START_TRIES, describe, harness, rounds, tried


CHILDREN = ((), ("--children",), ("--children",), ())  # of each mode, where time is short
HALVES = (MODES, MODES) if LONG else (MODES[::3], MODES[1:3])  # for one of two that differ little, and the other

# Local functions of libc and its loader have names only where their debug files are installed.
WITHOUT_NAME = re.compile(r"\[(libc|ld-linux)[^+]*\+0x[0-9a-f]+\]$")
# For so long a thread that was found not to end may begin to before it is asked to stop, and its
# parent be faster than the profiler then. Measured at 1,000 Hz, with and without another load: 0.2 us
# (5 of 30,314 children); without the look 20 us. A sanitized profiler takes its time.
EXITS_S = 3e-6 if harness.is_sanitized() else 1e-6
ROOTS = {"_start", "_dl_start_user", "clone", "__clone", "clone3", "__clone3"}


class Threads(torture.TestCase):
    def test_births(self):
        """1,000 threads a second."""
        for hz, more in MODES:
            with self.subTest(describe(hz, more)):
                told, run = self.run_profiled(hz, more, "life", "births", SECONDS, 1000)
                self.assert_no_faults(told)
                self.assertGreater(run.summary.samples, run.summary.ticks)

    def test_main_thread_leaves(self):
        for hz, more in MODES:
            with self.subTest(describe(hz, more)):
                target = self.start_fixture("leader_exit")
                run = harness.attach(target, ALL_TICKS, *more, hz=hz)
                self.assertEqual({s.thread for s in run.pprof.samples}, {"survivor"})
                self.assert_stacks(run.stacks(), r".*survive;survive_inner(?:;.*)?")


class Waits(torture.TestCase):
    """Uninterruptibly, and in job control's stops."""

    def test_disk_sleep(self):
        """Whoever waits uninterruptibly cannot stop; it does so when it surfaces, or never."""
        for i, (hz, more) in enumerate(MODES):
            # With frame pointers only a stop shows its stack.
            with self.subTest(describe(hz, more)):
                build = ("life", "life-O0")[i % 2]
                target = self.start_program(build, "vfork", 600)
                run = harness.attach(target, ALL_TICKS, *more, hz=hz, duration="0.2")
                self.assert_mostly(run, "disk", target.pid)
                self.assert_untouched(target.pid)
                told, run = self.run_profiled(hz, more, build, "vfork", 0.5 * SECONDS)
                self.assert_no_faults(told)
                self.assert_mostly(run, "disk", run.target_pid)

    def test_stops_when_sampling_is_over(self):
        """Another process's thread that never stops keeps nobody held."""
        target = self.start_program("life-O0", "vforks", 100)  # both need a stop
        harness.attach(target, ALL_TICKS, "--children", hz=99, duration="0.5")
        target.process.stdin.write(b"\n")
        kept_ms = torture.parse([*target.read_until("end"), "end"])["vforks"].median_ms
        self.assertLess(kept_ms, 200)

    def test_stopped_before_during_and_after(self):
        for i, (hz, more) in enumerate(MODES):
            with self.subTest(describe(hz, more)):
                target = self.start_program(("life", "life-O0")[i % 2], "births", 600, 20)
                self.send(target.pid, signal.SIGSTOP)
                run = harness.attach(target, ALL_TICKS, *more, hz=hz, duration="0.1")
                self.assert_mostly(run, "stopped", target.pid)
                self.assert_stopped(target.pid)
                self.send(target.pid, signal.SIGCONT)
                run = harness.start_attach(target, ALL_TICKS, *more, "-d", "0.3", hz=hz)
                run.wait_attached()
                self.send(target.pid, signal.SIGSTOP)
                run.communicate()
                self.assert_stopped(target.pid)
                self.send(target.pid, signal.SIGCONT)
                harness.attach(target, ALL_TICKS, *more, hz=hz, duration="0.1")
                self.send(target.pid, signal.SIGSTOP)
                self.send(target.pid, signal.SIGCONT)

    def send(self, pid, number):
        """Stops or continues it: that is so soon, for every thread."""
        os.kill(pid, number)
        if number == signal.SIGSTOP:
            self.assert_stopped(pid)
        else:
            self.assert_untouched(pid)

    def assert_mostly(self, run, state, pid):
        """So was its main thread; on its way back there, after a sample, it is ready, for as long as
        others have the CPUs."""
        counts = collections.Counter()
        for sample in run.pprof.samples:
            if sample.tid == pid:
                counts[sample.state] += sample.count
        waited = sum(
            (t.kernel_delay_s or 0) / (t.watched_s or 1) for t in run.summary.threads if t.tid == pid
        )
        self.assertGreater(counts[state], 0.5 * (1 - waited) * counts.total(), f"{counts} {waited}")

    def assert_stopped(self, pid):
        """By job control, each thread, and traced by nobody."""

        def is_stopped():
            # A thread may end before it stops.
            states = [harness.read_status(pid, tid) for tid in harness.tids_of(pid)]
            states = [status for status in states if status]
            return states and all(s["State"][0] == "T" and s["TracerPid"] == "0" for s in states)

        harness.wait_for(is_stopped, "its stop")


class Programs(torture.TestCase):
    def test_exec_attached(self):
        """One program after the other, from the main thread or from another one."""
        n_computing = 0
        for who, modes in zip(("leader", "thread"), HALVES):
            for hz, more in modes:
                with self.subTest(f"{who}, {describe(hz, more)}"):
                    told, run = self.run_profiled(hz, more, "life", "exec", who, rounds(10))
                    self.assertEqual(list(told), ["exec"])
                    n_computing += self.check_images_apart(run)
        self.assertGreater(n_computing, 0)

    def test_exec_wrapped(self):
        n_computing = 0
        for who, modes in zip(("leader", "thread"), reversed(HALVES)):
            for hz, more in modes:
                with self.subTest(f"{who}, {describe(hz, more)}"):
                    command = [torture.program("life"), "exec", who, str(rounds(10))]
                    run = harness.wrap(command, ALL_TICKS, *more, hz=hz)
                    self.assertEqual(run.stdout.splitlines()[-1], b"end")
                    n_computing += self.check_images_apart(run)
        self.assertGreater(n_computing, 0)

    def test_exec_while_held(self):
        """By another thread, while the main thread, whose tid it then has, is held."""
        command = [torture.program("life"), "exec", "thread", str(rounds(60))]
        run = harness.wrap(command, ALL_TICKS, "--stop-all", hz=5000)
        self.assertEqual(run.stdout.splitlines()[-1], b"end")

    def test_look_within_an_exec(self):
        """What a look in the midst of an exec took for the stack's start is not kept: stacks of the
        new program are whole from its first instruction on."""
        command = [torture.program("life"), "exec", "thread", str(rounds(75))]
        run = harness.wrap(command, ALL_TICKS, hz=5000)
        marked = {s: n for s, n in run.stacks().items()
                  if s[0] == "[truncated: no unwinding rule]" and s[1] == "_start"}
        self.assertLessEqual(sum(marked.values()), 1, marked)

    def test_exec_beside_a_call_that_is_continued(self):
        """Its thread is gone then, and its registers are not for the one that has its tid."""
        command = [torture.program("life"), "exec", "writer", str(rounds(100))]
        run = harness.wrap(command, ALL_TICKS, hz=5000)
        self.assertEqual(run.stdout.splitlines()[-1], b"end")

    def check_images_apart(self, run):
        """The stacks of one image are not read with the eyes of another one, which lies elsewhere:
        they reach their roots. Some cannot be had: of threads that are killed just then. How many
        are of threads that compute: none, in a short run, if the machine pauses in most of it."""
        counts = run.stacks()
        known = {s: n for s, n in counts.items() if s != ("[truncated: stack not available]",)}
        named = {s: tuple(f for f in s if not WITHOUT_NAME.match(f)) for s in known}
        bad = {
            s: n for s, n in known.items()
            if (named[s][:1] == s[:1] and s[0] not in ROOTS) or any("+0x" in f for f in named[s])
        }  # fmt: skip
        self.assertLessEqual(sum(bad.values()), 0.05 * sum(known.values()) + 2, bad)
        return sum(n for s, n in known.items() if "compute" in s)

    def test_storms(self):
        """fork, vfork and posix_spawn, attached, with and without --children."""
        for i, (hz, more) in enumerate(MODES):
            for children in ((), ("--children",)) if LONG else (CHILDREN[i],):
                with self.subTest(f"{describe(hz, more)} {children}"):
                    target = self.start_fixture("forks", SECONDS)
                    run = harness.start_attach(target, ALL_TICKS, *more, *children, hz=hz)
                    run.wait_attached()
                    target.process.stdin.close()
                    good, _, bad, _ = target.rest()[-1].split()
                    run.finish()
                    self.assertGreater(int(good), 0)
                    self.assertEqual(int(bad), 0, "the target found faults")
                    if not children:
                        self.assertEqual({s.pid for s in run.pprof.samples}, {target.pid})

    def test_exit_at_any_instant(self):
        for i in range(rounds(12)):
            hz, more = MODES[i % len(MODES)]
            status, us = 1 + i, random.randrange(30000)
            with self.subTest(f"{describe(hz, more)}, {us} us"):
                target = self.start_program("life", "exit", status, us)
                run = harness.start_attach(target, ALL_TICKS, *more, hz=hz)
                target.rest()
                self.assertEqual(target.process.returncode, status)
                run.finish(expect=None)
                self.assertIn(run.status, (0, harness.STATUS_TARGET), run.stderr)
                command = [torture.program("life"), "exit", str(status), str(us)]
                harness.wrap(command, ALL_TICKS, *more, hz=hz, expect=status)

    def test_death_by_signal(self):
        """The same status, and the same core dump."""
        for number, modes in zip((signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM), 2 * HALVES):
            alone = self.die(number, None, ())
            for hz, more in modes:
                with self.subTest(f"{number.name}, {describe(hz, more)}"):
                    self.assertEqual(self.die(number, hz, more), alone)

    def die(self, number, hz, more):
        """The status and the core file that such a death leaves."""
        directory = self.directory()
        target = subprocess.Popen(
            [torture.program("life"), "die", str(int(number)), str(60000)],
            stdout=subprocess.PIPE, cwd=directory,
        )  # fmt: skip
        self.addCleanup(target.stdout.close)
        harness.read_until(target.stdout, "ready")
        run = harness.start_attach(target.pid, ALL_TICKS, *more, hz=hz) if hz else None
        _, status = os.waitpid(target.pid, 0)
        target.returncode = -number
        if run:
            run.finish(expect=None)
            self.assertIn(run.status, (0, harness.STATUS_TARGET), run.stderr)
        return status, os.WCOREDUMP(status), bool(os.listdir(directory))

    def test_waited_for_by_pidfd(self):
        """A parent whose child's pidfd can be read finds that child to be waited for."""
        command = [torture.program("life"), "pidfd", str(1.5 * SECONDS)]
        for hz, more in MODES:
            with self.subTest(describe(hz, more)):
                run = harness.wrap(command, ALL_TICKS, "--children", *more, hz=hz)
                told = torture.parse(run.stdout.decode().splitlines()[1:])["pidfd"]
                most = torture.most_by_chance(told.calls * hz * EXITS_S)
                self.assertLessEqual(told.faults, most, f"the target found faults: {told}")


class Tracers(torture.TestCase):
    def attach_tracer(self, target):
        """A debugger comes: it may have to try again, as a thread may be held just then."""
        for _ in range(50):
            try:
                return self.start_fixture("tracer", target.pid, stderr=subprocess.DEVNULL)
            except AssertionError:
                continue
        raise AssertionError("the tracer cannot attach")

    def test_debugger_comes_and_goes(self):
        for hz, more in MODES:
            with self.subTest(describe(hz, more)):
                target = self.start_fixture("threads", 4, 1)
                run = harness.start_attach(target, ALL_TICKS, *more, "-d", "0.6", hz=hz)
                run.wait_attached()
                tracer = self.attach_tracer(target)
                torture.pause(0.1)
                self.assertEqual(
                    harness.read_status(target.pid)["TracerPid"], str(tracer.pid)
                )
                tracer.end()
                run.finish()
                self.assertEqual(run.summary.samples, 5 * run.summary.ticks)
                self.assert_untouched(target.pid)

    def test_two_profilers(self):
        """Neither disturbs the target. Each finds threads held by the other one now and then; nearly
        always where a busy machine gives it a few ticks alone, so there are some tries."""
        for hz, more in MODES:
            with self.subTest(describe(hz, more)):
                self.check_both(hz, more)

    @tried
    def check_both(self, hz, more):
        for one in self.profile_twice(hz, more):
            self.assertLess(one.truncated, 0.5 * one.samples)

    def profile_twice(self, hz, more):
        """Both summaries; of another target, if one of the two comes too late for the first."""
        for _ in range(START_TRIES):
            target = self.start_program("calls-O0", "woken", SECONDS)
            runs = [harness.start_attach(target, ALL_TICKS, *more, hz=hz) for _ in range(2)]
            self.assert_no_faults(torture.parse(target.rest()))
            late = [run for run in runs if run.finish(expect=None).status != 0]
            for run in late:
                self.assertRegex(run.stderr, "no process|has ended", "other than late")
            if not late:
                return [run.summary for run in runs]
        raise AssertionError(f"a profiler comes too late: {late[0].stderr}")

    TWO = """
        for i in 1 2; do "$0" -c -p $$ -F 997 --max-overhead=0 -d 0.5 -o /dev/null & done
        wait
    """

    def test_profilers_of_each_other(self):
        """Two that could profile each other do not wait for each other for ever."""
        shell = subprocess.Popen(
            ["sh", "-c", self.TWO, harness.PROFILER], stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(self.kill_tree, shell.pid)
        _, told = shell.communicate(timeout=harness.WAIT_TIMEOUT_S)
        self.assertEqual(len(re.findall(r"\d+ samples of", told)), 2, told)
        self.assertIn("a profiler that started later", told)

    def kill_tree(self, pid):
        for child in harness.children(pid):
            self.kill_tree(child)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Children(torture.TestCase):
    SCRIPT = """
        pids=
        for i in 1 2 3 4; do "$0" spin >/dev/null & pids="$pids $!"; done
        read end
        kill $pids
        wait
    """

    def test_names_and_pids(self):
        """Each child's samples have its own name and pid."""
        spin = harness.fixture("calls-O2")
        for hz, more in MODES:
            with self.subTest(describe(hz, more)):
                run = harness.start_wrap(
                    ["sh", "-c", self.SCRIPT, spin], ALL_TICKS, "--children", *more, hz=hz,
                    stdin=subprocess.PIPE,
                )  # fmt: skip
                shell = harness.wait_for(run.command_pid, "the command")
                pids = harness.wait_for(
                    lambda s=shell: len(harness.children(s)) == 4 and harness.children(s),
                    "its children",
                )
                # There are several pauses in a tick that stops four that share a CPU, and very
                # many where these get none.
                n_pauses = 100
                time.sleep(0.5)
                run.wait_ticks(n_pauses)
                run.finish(stdin=b"\n")
                counts = collections.Counter()
                for sample in run.pprof.samples:
                    counts[sample.pid, sample.process] += sample.count
                for pid in pids:
                    names = {name for p, name in counts if p == pid}
                    self.assertLessEqual(names, {"sh", "calls-O2"}, counts)
                    total = sum(n for (p, _), n in counts.items() if p == pid)
                    self.assertGreater(total, n_pauses / 20, counts)

    def test_pid_used_again(self):
        """Processes of one pid, one after the other: each has its own samples, recorded or not."""
        harness.need(os.geteuid() == 0, "needs root")
        script = (
            "import os, time\n"
            "for name in 'one', 'two', 'three':\n"
            "    begin = time.monotonic()\n"
            "    open('/proc/sys/kernel/ns_last_pid', 'w').write('999')\n"
            "    if os.fork() == 0:\n"
            "        assert os.getpid() == 1000\n"
            "        open('/proc/self/comm', 'w').write(name)\n"
            # A name is read anew when its process is twice as old as it was the last time.
            "        end = 2 * time.monotonic() - begin + 0.5\n"
            "        while time.monotonic() < end: time.sleep(0.005)\n"
            "        os._exit(0)\n"
            "    assert os.wait() == (1000, 0)\n"
        )
        directory = self.directory()
        first = harness.unshare("--pid", "--fork", "--kill-child", "--mount-proc")
        command = [ALL_TICKS, "-F", "251", "-c", "--", sys.executable, "-c", script]
        for name in "x.folded", "x.wprof":
            with self.subTest(name):
                run = subprocess.run(
                    [*first, harness.PROFILER, "-o", name, *command],
                    cwd=directory, check=True, capture_output=True, text=True,
                )
                if name == "x.wprof":
                    report = [harness.PROFILER, "report", "-q", "-o", "x.folded", name]
                    subprocess.run(report, cwd=directory, check=True)
                with open(os.path.join(directory, "x.folded"), encoding="utf-8") as file:
                    roots = {line.split(";")[0] for line in file}
                self.assertLessEqual({"one-1000", "two-1000", "three-1000"}, roots, run.stderr)

    def test_short_commands(self):
        """Nothing that a tick saw is lost: the samples of all processes add up to the total."""
        for hz, more in MODES:
            with self.subTest(describe(hz, more)):
                script = f"i=0; while [ $i -lt {rounds(75)} ]; do /bin/true; i=$((i + 1)); done"
                run = harness.wrap(["sh", "-c", script], ALL_TICKS, "--children", *more, hz=hz)
                by_name = collections.Counter()
                for sample in run.pprof.samples:
                    by_name[sample.process] += sample.count
                self.assertLessEqual(set(by_name), {"sh", "true"})
                self.assertGreater(by_name["true"] + by_name["sh"], 0.9 * run.summary.ticks)


if __name__ == "__main__":
    torture.main()
