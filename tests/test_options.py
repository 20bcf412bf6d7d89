# SPDX-License-Identifier: MIT
"""Every option does what the help says of it."""

import collections
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time

import harness
from harness import LEAVES, MAIN, PROFILER, THREAD, Run, attach
from terminal import run_in_terminal


class Help(harness.TestCase):
    OPTIONS = (
        "-p, --pid=", "-d, --duration=", "-F, --frequency=", "-o, --output=", "-f, --format=",
        "-t, --threads", "--on-cpu", "--off-cpu", "--thread=", "--inlines", "--no-inlines",
        "--lines", "--max-depth=", "-q, --quiet", "-v, --verbose", "--help", "--version",
    )  # fmt: skip
    COMMON = ("-p, --pid=", "-d, --duration=", "-o, --output=", "-c, --children", "--help-all")

    def test_help(self):
        for option, names in (("--help-all", self.OPTIONS), ("--help", self.COMMON), ("-h", self.COMMON)):
            run = Run([option]).finish()
            text = run.stdout.decode()
            for name in names:
                self.assertIn(name, text)
            self.assertLess(max(map(len, text.splitlines())), 81)
            self.assertEqual(run.stderr, "")

    def test_version(self):
        for option in ("--version", "-V"):
            run = Run([option]).finish()
            self.assertRegex(run.stdout.decode(), r"^profiler \d+\.\d+\.\d+\n")
            self.assertEqual(run.stderr, "")

    def test_help_to_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            run = Run(["--help"], stdout=full).finish(expect=harness.STATUS_OUTPUT)
        self.assertRegex(run.stderr, "^profiler: .*space")


class HowLong(harness.TestCase):
    def test_duration_forms(self):
        target = self.start_fixture("calls-O2", "spin")
        for form, seconds in {"0.005m": 0.3, ".3": 0.3}.items():
            run = attach(target, duration=form)
            self.assertGreaterEqual(run.summary.duration_s, seconds - 0.01, form)
            self.assertLess(run.summary.duration_s, seconds + 0.25, form)
            self.assertGreaterEqual(run.elapsed_s, seconds - 0.01, form)

    def test_frequency(self):
        target = self.start_fixture("calls-O2", "sleep")
        for hz in (1, 12.5, 10000):
            run = attach(target, hz=hz)
            self.assertEqual(run.summary.hz, hz)
            due = 0.4 * hz + 1
            self.assertAlmostEqual(run.summary.ticks + run.summary.missed, due, delta=2)
            self.assertAlmostEqual(run.pprof.period_ns, 1e9 / hz, delta=1)

    def test_until_signal(self):
        """SIGINT, SIGTERM and SIGHUP end it: the profile is written, the status is 0."""
        target = self.start_fixture("calls-O2", "spin")
        harness.wait_until_spinning(target)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            run = harness.start_attach(target, "--max-overhead=0")
            run.wait_attached()
            run.wait_ticks(50)
            run.signal(number)
            run.finish()
            self.assertGreater(run.summary.samples, 5)
            self.assert_stacks(run.stacks(), rf"{MAIN};many_arguments;.*;leaf_spin")

    def test_signal_at_any_moment(self):
        """However early: a profile and status 0, or, before all, death by that very signal."""
        target = self.start_fixture("calls-O2", "spin")
        for i in range(10):
            run = harness.start_attach(target, hz=1000)
            time.sleep(i * 0.002)
            run.signal(signal.SIGTERM)
            try:
                run.finish(expect=None)
            except AssertionError:
                if run.status != -signal.SIGTERM:
                    raise
                continue
            self.assertEqual(run.status, 0, run.stderr)

    def test_until_the_target_ends(self):
        target = self.start("cat", ready=None)
        run = harness.start_attach(target, "--max-overhead=0")
        run.wait_attached()
        run.wait_ticks(50)
        target.process.stdin.close()
        run.finish()
        self.assertGreater(run.summary.samples, 5)


class Which(harness.TestCase):
    def test_on_cpu(self):
        target = self.start_fixture("threads", 8, 2)
        run = attach(target, "--on-cpu")
        self.assertEqual({s.state for s in run.pprof.samples}, {"running"})
        leaves = {s.stack[-1] for s in run.pprof.samples if s.tid not in run.starved or s.stack != harness.NO_STACK}
        self.assertEqual(leaves, {"spin_here"})
        # As often as the two had a CPU, by the kernel's count.
        ran_s = sum(thread.kernel_cpu_s for thread in run.summary.threads)
        share = min(1, ran_s / (2 * run.summary.duration_s))
        self.assertGreater(sum(s.count for s in run.pprof.samples), 0.5 * share * 2 * run.summary.ticks)

    def test_off_cpu(self):
        target = self.start_fixture("threads", 8, 2)
        run = attach(target, "--off-cpu")
        states = collections.Counter()
        for sample in run.pprof.samples:
            states[sample.state, sample.stack[-1] == "spin_here"] += sample.count
        # What spins is blocked at no time; it may wait for a CPU.
        waiting = {("sleeping", False), ("runnable", False), ("runnable", True)}
        self.assertLessEqual(set(states), waiting)
        self.assertEqual(states["sleeping", False] + states["runnable", False], 7 * run.summary.ticks)

    def test_thread(self):
        target = self.start_fixture("threads", 12, 2)
        run = attach(target, "--thread=^worker-0[35]$")
        self.assertEqual({s.thread for s in run.pprof.samples}, {"worker-03", "worker-05"})
        self.assertEqual(sum(s.count for s in run.pprof.samples), 2 * run.summary.ticks)
        run = attach(target, "--thread=no-such-thread", form="folded")
        self.assertEqual(sum(run.folded.values()), 0)

    def test_state(self):
        target = self.start_fixture("threads", 8, 2)
        run = attach(target, "--state=sleeping")
        self.assertEqual({s.state for s in run.pprof.samples}, {"sleeping"})
        self.assertGreaterEqual(run.summary.left_out, 2 * run.summary.ticks)

    def test_syscall(self):
        target = self.start_fixture("blocking")
        run = attach(target, "--syscall=^(p|pp)oll$")
        self.assertEqual({s.thread for s in run.pprof.samples}, {"poll", "ppoll"})
        self.assertEqual({s.syscall for s in run.pprof.samples}, {"poll", "ppoll"})
        self.assertEqual(sum(s.count for s in run.pprof.samples), 2 * run.summary.ticks)

    def test_focus_and_ignore(self):
        target = self.start_fixture("blocking")
        threads = lambda run: {s.thread for s in run.pprof.samples}
        run = attach(target, "--ignore=^in_")
        self.assertEqual(threads(run), {"blocking"})
        self.assertEqual(run.summary.left_out, len(target.said) * run.summary.ticks)
        run = attach(target, "--focus=^block$", "--ignore=^in_[^p]", "--thread=e")
        self.assertEqual(threads(run), {"pipe_read", "pipe_write", "pause"})
        # Frames of system calls and of the kernel are frames.
        run = attach(target, "--syscalls", "--focus=^pause_.k.$")
        self.assertEqual(threads(run), {"pause", "blocking"})
        run = attach(target, "--focus=^pause_.k.$", form="folded")
        self.assertEqual(run.summary.left_out, run.summary.samples)


class Frames(harness.TestCase):
    def test_threads(self):
        target = self.start_fixture("threads", 4, 1)
        run = attach(target, "-t", form="folded")
        roots = {stack[0] for stack in run.folded}
        self.assertEqual(roots, {"threads"} | {f"worker-{i:02}" for i in range(4)})
        self.assert_stacks(
            run.folded.where(lambda stack: stack[0] != "threads"),
            rf"worker-\d\d;{THREAD}worker;(?:spin|futex|pipe|sleep)_here{LEAVES}",
        )

    def test_lines(self):
        with open(harness.HERE + "/fixtures/calls.c", encoding="utf-8") as file:
            source = file.read().splitlines()
        target = self.start_fixture("calls-O2", "spin")
        run = attach(target, "--lines", form="folded")
        calls = {"big_frame": "leaf();", "dynamic_frame": "big_frame(leaf);"}
        seen = set()
        for stack in run.folded:
            for frame in stack:
                match = re.fullmatch(r"(\w+) \(calls\.c:(\d+)\)", frame)
                if match and match[1] in calls:
                    self.assertEqual(source[int(match[2]) - 1].strip(), calls[match[1]])
                    seen.add(match[1])
        self.assertEqual(seen, set(calls))
        without = attach(target, form="folded")
        self.assertFalse([f for stack in without.folded for f in stack if "calls.c" in f])

    def test_inlines(self):
        if not os.path.exists(os.path.join(harness.FIXTURES, "cxx-O2")):
            harness.skip("no C++ compiler")
        target = self.start_fixture("cxx-O2", "inlines")
        run = attach(target, "--no-inlines", "--inlines", form="folded")
        self.assert_stacks(
            run.folded, r".*run_inlines.*;[^;]*inlined_outer[^;]*_\[i\];"
            r"[^;]*inlined_inner[^;]*_\[i\];spin\(\)"
        )  # fmt: skip
        run = attach(target, "--no-inlines")
        self.assert_stacks(run.stacks(), r".*run_inlines<int>\(int\);spin\(\)")


class Outputs(harness.TestCase):
    def setUp(self):
        self.target = self.start_fixture("calls-O2", "spin")

    def run_on(self, *args):
        return Run(["-p", self.target.pid, "-d", "0.1", *args], target_pid=self.target.pid).finish()

    def test_default_is_stdout(self):
        for args in ([], ["-o", "-"]):
            run = self.run_on(*args)
            self.assertTrue(run.stdout)
            self.assertEqual(sum(run.folded.values()), run.summary.samples)

    def test_children_at_work(self):
        """The master of a server, and a shell: a line says that its children used the CPU."""
        told = r"(?m)^profiler: its (?:2 )?child processes used \d+\.\d\d CPUs, itself 0\.0\d: add -c to sample them as well$"
        script = """if 1:
            import os, time
            master = os.getpid()
            for _ in range(2):
                if os.fork() == 0:
                    while os.getppid() == master:
                        pass
                    os._exit(0)
            print("ready", flush=True)
            time.sleep(1000)"""
        target = self.start(sys.executable, "-c", script)
        explain = ["explain", target.pid, "-d", "0.5"]
        runs = [lambda: attach(target, duration="0.5")]
        runs.append(lambda: Run([*explain, "--json"], brief=True).finish())
        for run_once in runs:
            for _ in range(10):
                children = harness.children(target.pid)
                n_before = sum(map(harness.cpu_ticks, children))
                run = run_once()
                if sum(map(harness.cpu_ticks, children)) - n_before > 0.1 * run.elapsed_s * os.sysconf("SC_CLK_TCK"):
                    break  # they had CPUs
            self.assertRegex(run.stderr, told)
        self.assertNotIn("add -c", attach(target, "-c").stderr)
        self.assertNotIn("add -c", Run([*explain, "-c"], brief=True).finish().stderr)
        target.end()  # its children leave the CPUs with it
        for _ in range(5):
            run = harness.wrap(["sh", "-c", f"{sys.executable} -c 'sum(range(10000000))'; true"])
            if run.elapsed_s < 5:
                break
        self.assertRegex(run.stderr, told)
        self.assertNotIn("add -c", harness.wrap(["true"]).stderr)  # it has none

    def answer(self, *args, directory=None):
        """What a terminal shows, and the pages of a run without -o and -f."""
        directory = directory or self.directory()
        status, shown = run_in_terminal(args, directory)
        self.assertEqual(status, 0, shown)
        names = sorted(n for n in os.listdir(directory) if n.startswith("profiler."))
        for name in names:
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                self.assertTrue(file.read(15).startswith("<!doctype html>"), name)
        return shown.replace("\r\n", "\n"), names

    def test_answer(self):
        """On a terminal: a table, and a page that replaces none; both without -q alone."""
        directory, args = self.directory(), ("-p", self.target.pid, "-d", "0.3")
        shown, names = self.answer(*args, directory=directory)
        self.assertEqual(names, [f"profiler.{self.target.pid}.html"])
        self.assertRegex(shown, r"(?m)^Functions.*:\n.*FUNCTION *\n *\d+\.\d .*\bleaf_spin")
        self.assertRegex(shown, r"(?m)^profiler: (?:look first at|then look at|most time goes here): \d+ % (leaf_spin .*computes|the program waited .*)$")
        self.assertRegex(shown, rf"next: profiler view {names[0]}\n$")
        shown, names = self.answer(*args, "-q", directory=directory)
        self.assertEqual((shown, len(names)), ("", 2))
        self.assertIn(f"profiler.{self.target.pid}-1.html", names)

    def test_findings(self):
        """With -o there are no tables, but up to three lines that say where the time went."""
        target, directory = self.start_fixture("blocking"), self.directory()
        args = ["-p", target.pid, "-d", "0.5", "-o", "x.pb.gz"]
        status, shown = run_in_terminal(args, directory)
        self.assertEqual((status, os.listdir(directory)), (0, ["x.pb.gz"]), shown)
        told = re.findall(r"profiler: (look first at|then): \d+ % in_\w+ .* waits for a lock", shown)
        self.assertEqual(told, ["look first at", "then", "then"], shown)
        self.assertNotIn("LONGEST", shown)

    def test_finding_of_none(self):
        """That a program is idle is an answer as well."""
        code = "import threading; print(flush=True); threading.Event().wait()"
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as target:
            self.addCleanup(target.kill)
            target.stdout.readline()
            status, shown = run_in_terminal(["-p", target.pid, "-d", "1", "-o", "x.pb.gz"], self.directory())
            target.kill()
        self.assertEqual(status, 0, shown)
        self.assertIn("profiler: It is idle: its threads wait for work nearly all of the time.", shown)

    def test_answer_without_a_page(self):
        """A folder that takes no file: one line says so, and the table is shown."""
        shown, _ = self.answer("-p", self.target.pid, "-d", "0.3", directory="/proc")
        self.assertRegex(shown, r"(?m)^profiler: no page with the whole profile: .*/proc$")
        self.assertIn("leaf_spin", shown)
        self.assertNotIn("wrote", shown)

    def test_answer_of_waits(self):
        target = self.start_fixture("locks")
        shown, _ = self.answer("-p", target.pid, "-d", "0.3")
        self.assertRegex(shown, r"(?m)^Waits:\n.*FOR.*\n(?:.*\n)*?.* lock +mutex 0x.* \"holder\" \d+ ")
        self.assertRegex(shown, r"(?m)^Idle time \(\d+ %\) is not counted")
        self.assertNotRegex(shown, r"(?m)^ .* (condition|timer|event) ")

    def test_answer_of_a_recording(self):
        """report on a terminal shows the tables; with a format, or piped, it writes as it always has."""
        directory = self.directory()
        self.last_line(directory, "out.wprof")
        shown, _ = self.answer("report", "out.wprof", directory=directory)
        self.assertRegex(shown, r"(?m)^Functions.*:\n.*FUNCTION *\n *\d+\.\d .*\bleaf_spin")
        self.assertRegex(shown, r"profiler view out\.wprof; folded stacks: -f folded\n$")
        shown, _ = self.answer("report", "out.wprof", "-f", "folded", "-q", directory=directory)
        self.assertRegex(shown, r"(?m)^_start;.*leaf_spin \d+$")
        done = subprocess.run([harness.PROFILER, "report", "out.wprof"], cwd=directory, capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r"(?m)\A_start;.*\d+$")

    def test_answer_of_a_command(self):
        """The table comes when the command has ended."""
        program = harness.fixture("calls-O2")
        script = f"timeout 0.5 {program} spin; sleep 0.5; echo its end"
        shown, names = self.answer("-d", "0.3", "-c", "--", "sh", "-c", script)
        self.assertEqual(len(names), 1)
        self.assertRegex(shown, r"(?s)its end\n.*Functions.*")

    def last_line(self, directory, name, *args):
        args = ["-p", self.target.pid, "-d", "0.1", "-o", name, *args]
        status, shown = run_in_terminal(args, directory)
        self.assertEqual(status, 0, shown)
        return shown.strip().splitlines()[-1] if shown.strip() else ""

    def test_next_command(self):
        """On a terminal the last line is the next command, as one types it to a shell."""
        directory = self.directory()
        commands = {
            "out.pb.gz": "profiler view", "out.html": "profiler view",
            "it's $HOME & more.folded": "profiler view", "out.wprof": "profiler view",
        }  # fmt: skip
        for name, command in commands.items():
            line = self.last_line(directory, name)
            self.assertEqual(shlex.split(line), ["profiler:", "next:", *command.split(), name])
            shown = subprocess.run(
                [harness.PROFILER, "view", name], cwd=directory, env={"BROWSER": "", "XDG_RUNTIME_DIR": directory},
                capture_output=True, check=False,
            )  # fmt: skip
            self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(self.last_line(directory, "out.html", "-q"), "")

    def test_summary(self):
        """Without -v: a line of what was sampled and what it cost, a line for each thing that is
        wrong, and what was written."""
        run = attach(self.target, brief=True)
        self.assertTrue(run.summary.brief, run.stderr)
        self.assertEqual(run.summary.n_threads, 1)
        others = [line for line in run.summary.lines[1:] if not re.match("missed|the program waited", line)]
        self.assertEqual(others, ["wrote pprof to out.pb.gz"], run.stderr)

    def test_summary_of_sleepers(self):
        target = self.start("sleep", 100, ready=None)
        harness.wait_until_in_calls(target.pid)
        run = attach(target, brief=True)
        self.assertRegex(run.summary.lines[0], r"; never paused the target, whose threads all slept$")

    def test_summary_warns(self):
        """Of stacks that are cut, if they are more than 1 %."""
        run = attach(self.target, "--max-depth=2", brief=True)
        self.assertEqual(run.summary.truncated, run.summary.samples, run.stderr)

    def test_thread_that_is_not_there(self):
        """Said at once, and which there are: before the summary, and by a check."""
        line = "profiler: no thread matches --thread; there are: calls-O2\n"
        run = attach(self.target, "--thread=nix", duration="1")
        self.assertTrue(run.stderr.startswith(line), run.stderr)
        self.assertNotIn("no thread matches", attach(self.target, "--thread=calls").stderr)
        check = Run(["dump", "--check", "--thread=nix", str(self.target.pid)])
        self.assertIn(line, check.finish().stderr)

    def test_threads_at_the_end(self):
        """Of many there may be few at a time: the summary tells both."""
        shell = "for i in 1 2 3 4; do sleep 0.1; done; exec sleep 1000"
        target = self.start("sh", "-c", shell, ready=None)
        run = attach(target, "-c", duration="2", brief=True)
        told = re.search(r" samples of (\d+) threads \(1 at the end\) in ", run.stderr)
        self.assertGreaterEqual(int(told[1]), 3, run.stderr)

    def test_quiet(self):
        run = attach(self.target, "--quiet")
        self.assertEqual(run.stderr, "")
        # It has not told whether the target had a CPU.
        stacks = {s: n for s, n in run.stacks().items() if s != harness.NO_STACK}
        self.assert_stacks(stacks, rf"{MAIN};many_arguments;.*;leaf_spin")

    def test_status_line(self):
        """While it runs, on a terminal: elapsed of duration, samples, threads, how to end it."""
        directory = self.directory()
        args = ["-p", self.target.pid, "-d", "1.5", "-o", "out.folded"]
        status, shown = run_in_terminal(args, directory)
        self.assertEqual(status, 0, shown)
        lines = [part for part in re.split(r"[\r\n]+|\x1b\[[\d;]*[A-Za-z]", shown) if part.strip()]
        live = [part for part in lines if "samples" in part and " in " not in part]
        self.assertGreaterEqual(len(live), 1, shown)
        self.assertRegex(live[-1], r"\b1\.5\b.*\d+ samples?, 1 thread; Ctrl-C ends it and writes$")
        self.assertRegex(shown, r"profiler: \d+ samples of 1 thread in ")

    def test_status_line_on_a_stopped_terminal(self):
        """After Ctrl-S sampling goes on, as nothing waits for the terminal until that is over."""
        path = os.path.join(self.directory(), "out.folded")
        pid, master = pty.fork()
        if pid == 0:
            try:
                os.execv(PROFILER, [PROFILER, "-p", str(self.target.pid), "-o", path])
            finally:
                os._exit(99)
        self.addCleanup(os.close, master)
        shown = b""
        while b"samples" not in shown:
            shown += os.read(master, 4096)
        worker = next(iter(harness.children(pid)))
        os.write(master, b"\x13")
        n_pauses = harness.n_pauses_of(worker) + 200
        harness.wait_for(lambda: harness.n_pauses_of(worker) >= n_pauses, "ticks")
        os.kill(pid, signal.SIGTERM)
        os.write(master, b"\x11")
        while b"wrote folded" not in shown:
            shown += os.read(master, 4096)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertGreater(os.path.getsize(path), 0)

    def test_no_status_line_in_a_file(self):
        run = attach(self.target, duration="1.2")
        self.assertNotIn("\r", run.stderr)
        self.assertNotIn("\x1b", run.stderr)
        self.assertEqual(run.summary.others, [])


if __name__ == "__main__":
    harness.main()
