# SPDX-License-Identifier: MIT
"""Wrap a command: it runs as it would alone, from its first instruction to its end."""

import ast
import collections
import os
import re
import signal
import subprocess
import sys
import time
import unittest.mock

import harness
from harness import LEAVES, MAIN, Run, start_wrap, wrap
from terminal import Terminal, run_in_terminal

SHELL = ["sh", "-c"]


def start_spinning(*args, **run):
    """A wrapped command that spins, when it does: the run and the command's pid."""
    run = start_wrap([harness.fixture("calls-static"), "spin"], *args, **run)
    harness.read_until(run.process.stdout, "ready")
    return run, run.command_pid()


class Transparent(harness.TestCase):
    """Nothing that the command sees differs from a run without the profiler."""

    def test_stdin_and_stdout(self):
        data = os.urandom(3_000_000)
        run = start_wrap(["cat"], stdin=subprocess.PIPE).finish(stdin=data)
        self.assertEqual(run.stdout, data)

    def test_stderr(self):
        run = wrap(SHELL + ["echo one >&2; echo two >&2"])
        self.assertEqual(run.summary.others, ["one", "two"])

    def compare(self, *command):
        alone = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/", check=False
        )
        run = Run(["-o", "/dev/null", "-F", "251", "--", *command], cwd="/").finish(expect=None)
        self.assertEqual(run.stdout.decode(), alone.stdout)
        self.assertTrue(alone.stdout)
        return alone.stdout

    def test_signals_as_without(self):
        """Ignored, blocked and caught signals are inherited untouched."""
        self.compare("grep", "^Sig[BIC]\\|^Shd", "/proc/self/status")

    def test_ignored_child_signal(self):
        """Whoever starts the profiler may ignore SIGCHLD: so does the command, and all ends."""
        ignored = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            run = start_wrap(["grep", "^SigIgn", "/proc/self/status"])
        finally:
            signal.signal(signal.SIGCHLD, ignored)
        text = run.finish().stdout.decode()
        self.assertTrue(int(text.split()[1], 16) & 1 << (signal.SIGCHLD - 1))

    def test_timers(self):
        """An alarm from before exec is the command's: it would end it alone, too. The kernel makes one
        of CPU time longer by a tick (kernel/time/itimer.c, set_cpu_itimer)."""
        longest_tick_s = 0.01
        set_timers = (
            "import os, signal, sys\n"
            "for i in range(3): signal.setitimer(i, 3600 + i, 7)\n"
            "os.execvp(sys.argv[1], sys.argv[1:])"
        )
        tell = "import signal; print([signal.getitimer(i) for i in range(3)])"
        run = start_wrap([sys.executable, "-c", tell], prefix=[sys.executable, "-c", set_timers])
        timers = ast.literal_eval(run.finish().stdout.decode())
        for i, (left, interval) in enumerate(timers):
            self.assertTrue(0 < left <= 3600 + i + longest_tick_s, timers)
            self.assertEqual(interval, 7)

    def test_kept_by_exec(self):
        """Signals that were blocked in exec and timers are the command's, with what they say, though
        no more may be pending by now, as are the care for orphans, how it is scheduled, and its
        timers' slack, with the one to which it can return. So they are below top, whose tables have stdout."""
        begin = (
            "import ctypes, os, resource, signal, sys, threading\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
            "signal.setitimer(signal.ITIMER_REAL, 1 << 20, 7)\n"
            "ctypes.CDLL(None).prctl(36, 1)\n"  # PR_SET_CHILD_SUBREAPER
            "for number in (17, 15, 10, 28, 40, 40, 1, 20): os.kill(os.getpid(), number)\n"
            "for number in (12, 41, 41): signal.pthread_kill(threading.get_ident(), number)\n"
            "most = resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]\n"
            "resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, most))\n"
            "os.nice(3)\n"
            "os.sched_setscheduler(0, os.SCHED_BATCH | os.SCHED_RESET_ON_FORK, os.sched_param(0))\n"
            "ctypes.CDLL(None).prctl(29, 1234567)\n"  # PR_SET_TIMERSLACK
            "os.execvp(sys.argv[1], sys.argv[1:])"
        )
        tell = (
            "import ctypes, os, resource, signal, sys\n"
            "reaps, prctl = ctypes.c_int(), ctypes.CDLL(None).prctl\n"
            "prctl(37, ctypes.byref(reaps))\n"
            "print(prctl(30), prctl(29, 0), prctl(30), file=sys.stderr)\n"  # PR_GET_TIMERSLACK
            "print(os.sched_getscheduler(0), os.nice(0), file=sys.stderr)\n"
            "print(resource.getrlimit(resource.RLIMIT_SIGPENDING), file=sys.stderr)\n"
            "told = [reaps.value, signal.getitimer(signal.ITIMER_REAL)[0] > 1 << 19]\n"
            "told += [l for l in open('/proc/self/status') if l.startswith(('SigPnd', 'ShdPnd'))]\n"
            "while info := signal.sigtimedwait(range(1, 65), 0): told += [(info.si_signo, info.si_code)]\n"
            "print(*told, sep='\\n', file=sys.stderr)"
        )
        begin, tell = ([sys.executable, "-W", "ignore", "-c", script] for script in (begin, tell))
        alone = subprocess.run([*begin, *tell], capture_output=True, text=True, check=True).stderr
        self.assertEqual(len(alone.splitlines()), 3 + 6 + 11, alone)
        for options in ("-q", "-o", "/dev/null"), ("top", "-q", "--json"):
            with self.subTest(options):
                run = subprocess.run([*begin, harness.PROFILER, *options, "--", *tell],
                                     capture_output=True, text=True, check=True)  # fmt: skip
                self.assertEqual(run.stderr, alone)

    def test_open_files(self):
        script = "import os; print(sorted(os.listdir('/proc/self/fd')))"
        text = self.compare(sys.executable, "-c", script)
        self.assertIn("'0', '1', '2'", text)

    def test_limits_and_priority(self):
        self.compare("sh", "-c", "ulimit -a; nice; cat /proc/self/oom_score_adj; umask")
        self.compare("sh", "-c", "cut -d' ' -f18,19,40,41 /proc/self/stat")
        self.compare("cat", "/proc/self/timerslack_ns")

    def test_group_and_session(self):
        """In the profiler's own process group, as under time: Ctrl-C reaches it."""
        script = "import os; print(os.getpgrp(), os.getsid(0))"
        run = start_wrap([sys.executable, "-c", script], start_new_session=True).finish()
        self.assertEqual(run.stdout.decode().split(), [str(run.process.pid)] * 2)

    def test_environment_and_directory(self):
        with unittest.mock.patch.dict(os.environ, {"DEBUGINFOD_URLS": "http://localhost:1/"}):
            text = self.compare("sh", "-c", "env | grep -v ^_= | sort; pwd")
        self.assertIn("DEBUGINFOD_URLS", text)

    def test_not_traced_by_its_own_view(self):
        """Between ticks nothing is traced; privileges are not taken away either."""
        self.compare("grep", "^NoNewPrivs\\|^Seccomp\\|^Cap", "/proc/self/status")

    def test_arguments_are_not_options(self):
        run = Run(["-o", "out.folded", "echo", "-p", "1", "--help", "-d"]).finish()
        self.assertEqual(run.stdout, b"-p 1 --help -d\n")
        run = Run(["-o", "out.folded", "--", "echo", "--", "x"]).finish()
        self.assertEqual(run.stdout, b"-- x\n")


class FirstProcess(harness.TestCase):
    """Of a PID namespace, as a container's is."""

    UNSHARE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    QUIET = ("-q", "-o", "/dev/null")
    TOP = ("top", "-q", "--json")

    def setUp(self):
        super().setUp()
        harness.need(os.geteuid() == 0, "needs root")
        harness.unshare(*self.UNSHARE[1:])

    def run_first(self, script, *profiler):
        command = (*self.UNSHARE, *profiler, sys.executable, "-c", script)
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    def test_group(self):
        """That of whoever made the namespace, which has no number in it."""
        script = "import os; print(os.getpgrp())"
        self.assertEqual(self.run_first(script, harness.PROFILER, *self.QUIET, "--"), "0\n")

    def test_pids_begin_anew(self):
        """The tests find the command as the worker's first child, though a later one has a lower
        pid."""
        script = (
            "import os, subprocess, proc\n"
            "born = []\n"
            "for last in '999', '499':\n"
            "    open('/proc/sys/kernel/ns_last_pid', 'w').write(last)\n"
            "    born.append(subprocess.Popen(['sleep', '60']).pid)\n"
            "print(born, proc.children(os.getpid()))\n"
        )
        environment = {**os.environ, "PYTHONPATH": os.path.dirname(harness.__file__)}
        with unittest.mock.patch.dict(os.environ, environment):
            self.assertEqual(self.run_first(script), "[1000, 500] [1000, 500]\n")

    def test_orphans(self):
        """They are the command's, as they are alone; and none of others is left a zombie."""
        script = (
            "import os, time\n"
            "for i in range(10):\n"
            "    if os.fork() == 0: os._exit(0 if os.fork() else time.sleep(0.05) or 0)\n"
            "n = 0\n"
            "while n < 20 and os.wait(): n += 1\n"
            "print(n)\n"
        )
        self.assertEqual(self.run_first(script), "20\n")
        self.assertEqual(self.run_first(script, harness.PROFILER, *self.QUIET, "--"), "20\n")

    def start_first(self, *profiler, ready="ready"):
        """The process of unshare, and the first one in its namespace."""
        process = self.start(*self.UNSHARE, harness.PROFILER, *profiler, ready=ready).process
        first = harness.wait_for(lambda: harness.children(process.pid), "the profiler")[0]
        harness.wait_for(lambda: harness.read_status(first)["Name"] == "profiler", "exec")
        return process, first

    def start_wrapping(self, *options, **target):
        return self.start_first(*options, "--", harness.fixture("calls-static"), "spin", **target)

    def test_orphan_of_another(self):
        """Of a process that has come from outside."""
        agent = self.start_first("agent", "-q", "-o", self.directory(), "comm=nobody", ready=None)
        for _, first in self.start_wrapping(*self.QUIET), self.start_wrapping(*self.TOP), agent:
            enter = [harness.find_tool("nsenter"), f"--target={first}", "--pid", "--mount", "--root",
                     "sh", "-c"]  # fmt: skip
            text = subprocess.check_output([*enter, "sleep 0.05 >&2 & echo $!"], text=True)
            with self.subTest(first):
                self.assertTrue(text.strip().isdigit())
                look = [*enter, f"test ! -e /proc/{text.strip()}"]
                harness.wait_for(lambda a=look: subprocess.run(a, check=False).returncode == 0, "its end")

    def test_signals_from_outside(self):
        """What tells a container to end is for the command. So is any other, but SIGUSR1 is the flight
        recorder's."""
        for options in self.QUIET, self.TOP, (*self.TOP, "-d", "10ms"):
            for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGUSR2, signal.SIGRTMAX):
                with self.subTest(options, number=number):
                    process, first = self.start_wrapping(*options)
                    if "-d" in options:
                        time.sleep(0.2)  # sampling is over: the command goes on
                    os.kill(first, number)
                    self.assertEqual(process.wait(harness.RUN_TIMEOUT_S), 128 + number)

    def check_screen(self, number, *options):
        """A second after the signal the command ends; the screen is left then, and not before."""
        script = (
            "import os, signal, time\n"
            f"signal.signal({int(number)}, lambda *_: (time.sleep(1), os._exit(3)))\n"
            "while True: time.sleep(1)\n"
        )
        command = ("--interval=100ms", *options, "--", sys.executable, "-c", script)
        terminal = Terminal(self, *command, env=" ".join(self.UNSHARE))
        terminal.wait_for(r"\[ENDED\]" if options else r"\[LIVE\]")
        (pid,) = map(int, terminal.tmux("list-panes", "-F", "#{pane_pid}").split())
        while harness.read_status(pid)["Name"] != "profiler":
            (pid,) = harness.children(pid)
        first = pid
        for _ in ("sampler", "worker", "command"):
            pid = next(iter(harness.children(pid)))
        harness.wait_for(lambda: self.catches(pid, number), "the command to catch it")
        os.kill(first, number)
        while harness.is_there(pid):
            shown = terminal.tmux("display", "-p", "#{alternate_on}")
            self.assertTrue(shown == "1\n" or not harness.is_there(pid), "left too early")
        terminal.wait_for_end(3)

    def catches(self, pid, number):
        return int(harness.read_status(pid)["SigCgt"], 16) >> (number - 1) & 1

    def test_screen_and_signals_from_outside(self):
        """Whichever signal stops a container."""
        for number, *options in (
            (signal.SIGTERM,), (signal.SIGTERM, "-d", "10ms"), (signal.SIGHUP,), (signal.SIGRTMIN + 3, "-d", "10ms"),
        ):  # fmt: skip
            with self.subTest(options, number=number):
                self.check_screen(number, *options)


class Statuses(harness.TestCase):
    def test_exit_statuses(self):
        for status in (126, 127, 255):
            run = wrap(SHELL + [f"exit {status}"], expect=status)
            self.assertGreaterEqual(run.summary.samples, 1)

    def test_killed_by_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV):
            wrap(SHELL + [f"ulimit -c 0; kill -{int(number)} $$"], expect=128 + number)

    def test_command_not_found(self):
        for name in ("no-such-command-here", "./no-such-file", "/no/such/file"):
            run = Run(["--", name]).finish(expect=harness.STATUS_NOT_FOUND)
            self.assert_message(run, re.escape(name), status=harness.STATUS_NOT_FOUND)
            hint = "; to attach to a process of that name: profiler $(pidof no-such-command-here)\n"
            self.assertEqual(run.stderr.endswith(hint), "/" not in name)
        run = Run(["vieew", "x.html"]).finish(expect=harness.STATUS_NOT_FOUND)
        self.assertEqual(run.stderr, "profiler: vieew: command not found; did you mean profiler view?\n")

    def test_command_cannot_be_run(self):
        directory = self.directory()
        plain = os.path.join(directory, "plain")
        with open(plain, "w", encoding="utf-8") as file:
            file.write("no program\n")
        for name in (plain, directory):
            run = Run(["--", name]).finish(expect=harness.STATUS_CANNOT_RUN)
            self.assert_message(run, re.escape(name), status=harness.STATUS_CANNOT_RUN)

    def executable(self, directory, name, data):
        path = os.path.join(directory, name)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o755)
        return path

    def test_what_is_missing(self):
        """Of a file that is there: the interpreter, one's interpreter, or the loader. Found by a path or
        by PATH."""
        directory = self.directory()
        with open(harness.fixture("calls-O2"), "rb") as file:
            elf = file.read()
        loader = re.search(rb"/lib\S*/ld-[^\0]*", elf)[0]
        gone = b"/no/".ljust(len(loader), b"x")
        inner = self.executable(directory, "inner", b"#!/no/such/interpreter\n")
        for name, data, words in (
            ("gone", b"#!/no/such/interpreter -x\n", "its interpreter /no/such/interpreter is missing\n"),
            ("crlf", b"#!/bin/sh\r\necho hi\r\n", "its interpreter /bin/sh_ is missing, for its first line ends "
             "in a carriage return"),
            ("nested", f"#!{inner}\n".encode(), "its interpreter /no/such/interpreter is missing\n"),
            ("noloader", elf.replace(loader, gone), f"its loader {gone.decode()} is missing: it was built for "
             "another system\n"),
        ):  # fmt: skip
            path = self.executable(directory, name, data)
            for command in (path, name):
                env = {**os.environ, "PATH": f"/no/such:{directory}:{os.environ['PATH']}"}
                run = Run(["--", command], env=env).finish(expect=harness.STATUS_NOT_FOUND)
                self.assertIn(f"profiler: {command}: cannot be run: {words}", run.stderr)

    def test_not_a_script(self):
        """A program for another machine, and other binaries, are not given to a shell, which would be
        profiled; a script without an interpreter is, as ever."""
        directory = self.directory()
        with open(harness.fixture("calls-O2"), "rb") as file:
            elf = bytearray(file.read())
        elf[18:20] = b"\xb7\x00" if elf[18:20] != b"\xb7\x00" else b"\x3e\x00"  # e_machine
        for name, data in (("arm", bytes(elf)), ("cut", bytes(elf[:20])), ("nul", b"echo\0 hi\nexit 0\n")):
            run = Run(["--", self.executable(directory, name, data)]).finish(expect=harness.STATUS_CANNOT_RUN)
            self.assertIn("cannot be run: Exec format error", run.stderr)
        script = self.executable(directory, "script", b"echo hi $0; exit 5\n\0")
        self.assertEqual(wrap([script], expect=5).stdout, f"hi {script}\n".encode())

    def test_default_output(self):
        """profiler.PID.folded in the current directory, told on stderr; stdout is the command's."""
        run = Run(["--", "sh", "-c", "echo $$"]).finish()
        pid = int(run.stdout)
        self.assertEqual(os.path.basename(run.path), f"profiler.{pid}.folded")
        self.assertIn(f"profiler.{pid}.folded", run.summary.where)
        run = Run(["-f", "pprof", "--", "sh", "-c", "echo $$"]).finish()
        self.assertEqual(os.path.basename(run.path), f"profiler.{int(run.stdout)}.pb.gz")
        self.assertIsNotNone(run.pprof)

    def test_quiet_says_nothing(self):
        run = Run(["-q", "--", "sh", "-c", "echo said"]).finish()
        self.assertEqual((run.stdout, run.stderr), (b"said\n", ""))
        self.assertIsNotNone(run.folded)


class Sampling(harness.TestCase):
    def test_first_sample_at_exec(self):
        """The first tick is the program's first instruction, not the profiler's fork."""
        for _ in range(3):
            run, pid = start_spinning("-d", "100ms", hz=1)
            time.sleep(0.2)
            os.kill(pid, signal.SIGKILL)
            run.finish(expect=128 + signal.SIGKILL)
            # The second one is at the end of the duration.
            self.assertLessEqual(run.summary.samples, 2)
            self.assertGreaterEqual(run.stacks()[("_start",)], 1)  # 2: it has got no CPU until then

    def test_named_at_exec(self):
        """A child that executes another program has that one's name, however soon it ends."""
        directory, first = self.directory(), harness.fixture("exec_soon")
        second = os.path.join(directory, "second")
        os.symlink(first, second)
        run = wrap([first, 100, second], "-c", "--max-overhead=0", form="folded", hz=997)
        named = collections.Counter()
        for stack, count in run.folded.items():
            if "after_exec" in stack:
                named[stack[0].split("-")[0]] += count
        self.assertEqual(list(named), ["second"], named)

    def test_never_in_its_own_profile(self):
        """Nothing of the profiler's own, such as its fork, is seen."""
        for _ in range(3):
            run = wrap(["true"], hz=10000)
            files = {os.path.basename(m["filename"]) for m in run.pprof.mappings}
            self.assertNotIn("profiler", files)
            self.assertFalse([f for f in files if re.search(r"lib(?:dw|elf|asan)", f)])

    def test_stacks(self):
        run = start_wrap([harness.fixture("recursion"), "7"], "--max-overhead=0")
        harness.read_until(run.process.stdout, "ready")
        pid = run.command_pid()
        harness.wait_until_settled(pid)
        run.wait_ticks(100)
        os.kill(pid, signal.SIGKILL)
        run.finish(expect=128 + signal.SIGKILL)
        turns = ";".join(["descend_even", "descend_odd"] * 3 + ["descend_even"])
        # On a busy machine it may take its time to come there.
        there = {stack: n for stack, n in run.stacks().items() if "bottom" in stack}
        self.assert_stacks(there, rf"{MAIN};{turns};bottom{LEAVES}")

    def test_mapping_of_the_program_first(self):
        run = wrap(["sleep", "0.1"])
        self.assertTrue(run.pprof.mappings[0]["filename"].endswith("sleep"))

    def test_short_commands(self):
        """Whatever moment it ends in, its status is kept and a profile is written."""
        for i in range(12):
            run = wrap(SHELL + [f"exit {i}"], expect=i, hz=10000)
            self.assertGreaterEqual(run.summary.samples, 1)

    def test_outlives_duration(self):
        """A command that outlives -d runs on, untraced, and the profiler waits for it."""
        run = start_wrap(
            SHELL + ["read on; grep TracerPid /proc/self/status; exit 5"], "-d", "0.3",
            stdin=subprocess.PIPE,
        )  # fmt: skip
        path = os.path.join(run.directory, "out.pb.gz")
        harness.wait_for(lambda: os.path.exists(path), "the profile")
        run.finish(expect=5, stdin=b"\n")
        self.assertEqual(run.stdout, b"TracerPid:\t0\n")
        self.assertLess(run.summary.duration_s, 0.6)
        self.assertGreater(run.summary.duration_s, 0.29)

    def test_its_stops_are_not_taken_for_news(self):
        """A look whether the command has ended leaves its stops to those who asked for them."""
        for _ in range(2 * os.cpu_count() + 1):
            self.start_fixture("calls-O2", "spin")  # so that it waits before it stops
        preloaded = {
            **os.environ,
            "LD_PRELOAD": harness.fixture("slow_wait.so"),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
        }
        run, pid = start_spinning("-d", "1", hz=499, env=preloaded)
        time.sleep(1.5)
        states = set()
        for _ in range(20):
            states.add(harness.read_status(pid)["State"][0])
            time.sleep(0.02)
        os.kill(pid, signal.SIGKILL)
        run.finish(expect=128 + signal.SIGKILL)
        self.assertIn("R", states)

    def test_ends_before_duration(self):
        run = wrap(["sleep", "0.2"], "-d", "50")
        self.assertLess(run.elapsed_s, 20)
        self.assertLess(run.summary.duration_s, 10)

    def test_end_on_one_cpu(self):
        """The command's end is awaited without keeping the only CPU from it."""
        command = [harness.fixture("clocked"), "0.3", "naps", "1000", "1"]
        cpu = {min(os.sched_getaffinity(0))}
        run = wrap(command, "-F", "99", preexec_fn=lambda: os.sched_setaffinity(0, cpu))
        told_ms = float(re.search(r"([\d.]+) ms of CPU while sampling", run.stderr)[1])
        self.assertLess(told_ms, 500, run.stderr)

    def test_children_are_not_sampled(self):
        run = wrap(SHELL + ["sh -c 'sleep 0.2' & wait"])
        self.assertEqual(len({s.pid for s in run.pprof.samples}), 1)

    def test_orphans_are_not_waited_for(self):
        """As with time or env: only the command itself is waited for."""
        run = Run(
            ["-o", "out.folded", "--", "sh", "-c", "sleep 50 >/dev/null 2>&1 & exit 4"]
        ).finish(expect=4)
        self.assertLess(run.elapsed_s, 40)


class Interrupted(harness.TestCase):
    def in_terminal(self, args, keys):
        """Runs the profiler in a terminal and types `keys` when the command is ready and has been
        sampled. Returns its status, what the terminal showed, and its directory."""
        directory = self.directory()
        status, shown = run_in_terminal(
            args, directory, keys=keys, when="ready", n_ticks=50
        )
        return status, shown, directory

    def read_profile(self, directory, name="out.folded"):
        self.assertEqual(os.listdir(directory), [name])
        with open(os.path.join(directory, name), "rb") as file:
            return harness.read_folded(file.read())

    def test_ctrl_c_kills_the_command(self):
        program = harness.fixture("calls-O2")
        status, shown, directory = self.in_terminal(
            ["-o", "out.folded", "-F", "251", "--max-overhead=0", program, "spin"], b"\x03"
        )
        self.assertEqual(status, 128 + signal.SIGINT, shown)
        counts = self.read_profile(directory)
        begun = {stack: n for stack, n in counts.items() if "main" in stack}
        self.assert_stacks(begun, rf"{MAIN};many_arguments;.*leaf_spin", share=0.7)

    def test_ctrl_c_that_the_command_handles(self):
        script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done"
        status, shown, directory = self.in_terminal(
            ["-o", "out.folded", "sh", "-c", script], b"\x03"
        )
        self.assertEqual(status, 9, shown)
        self.assertIn("caught", shown)
        self.read_profile(directory)

    def test_ctrl_c_that_the_command_outlives(self):
        script = "trap '' INT; echo ready; read on; echo survived; exit 6"
        status, shown, directory = self.in_terminal(
            ["-o", "out.folded", "sh", "-c", script], b"\x03\n"
        )
        self.assertEqual(status, 6, shown)
        self.assertIn("survived", shown)
        self.read_profile(directory)

    def stop_before_exec(self, run):
        """Stops what is to become the command; its pid, or None where that was too late."""
        while run.process.poll() is None:
            pid = run.command_pid()
            try:
                if pid and os.getpgid(pid) == os.getpgid(run.process.pid):
                    os.kill(pid, signal.SIGSTOP)
                    harness.wait_for(lambda: self.state(pid) in "TtZX", "the stop")
                    if not self.is_command(pid):
                        return pid
                    os.kill(pid, signal.SIGCONT)
                    return None
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has ended
        return None

    def state(self, pid):
        return (harness.read_status(pid) or {"State": "X"})["State"][0]

    def is_command(self, pid):
        return not os.path.samefile(f"/proc/{pid}/exe", harness.PROFILER)

    def test_stop_before_exec(self):
        """Stopped when it is not the command yet, it stays so until it is continued."""
        links = self.directory()
        for i in range(30):
            os.symlink("./" * 1900 + f"{links}/{i + 1}", f"{links}/{i}")
        script = f"{links}/nap"
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nsleep 0.1\n")
        os.chmod(script, 0o755)
        # execvp looks for a script in each of them, for 1 ms.
        slow_path = f"{links}/0:" * 300 + f"{links}:" + os.environ["PATH"]
        for _ in range(20):  # on a busy machine the test itself may be too late for many of them
            run = start_wrap(["nap"], env={**os.environ, "PATH": slow_path})
            pid = self.stop_before_exec(run)
            if pid:
                break
            run.finish()
        self.assertTrue(pid, "none was stopped in time")
        time.sleep(0.3)
        self.assertFalse(self.is_command(pid), "it has gone on")
        self.assertIn(harness.read_status(pid)["State"][0], "Tt")
        os.kill(pid, signal.SIGCONT)
        run.finish()

    def test_ctrl_z_and_back(self):
        """A stop of the whole group, as a terminal's; both go on. The one that samples is not
        stopped: it might be holding a thread."""
        run, pid = start_spinning(start_new_session=True)
        os.killpg(run.process.pid, signal.SIGSTOP)
        for process in (pid, run.process.pid):
            harness.wait_for(
                lambda p=process: harness.read_status(p)["State"][0] in "Tt", f"stop of {process}"
            )
        os.killpg(run.process.pid, signal.SIGCONT)
        harness.wait_for(lambda: harness.read_status(pid)["State"][0] == "R", "its going on")
        time.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        run.finish(expect=128 + signal.SIGKILL)

    def test_termination(self):
        """SIGTERM and SIGHUP to the profiler: the profile is written at once; the command runs on
        and is waited for, as after -d."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            run, pid = start_spinning("--max-overhead=0")
            run.wait_attached()
            run.wait_ticks(50)
            run.signal(number)
            path = os.path.join(run.directory, "out.pb.gz")
            harness.wait_for(lambda p=path: os.path.exists(p), "the profile")
            status = harness.read_status(pid)
            self.assertEqual((status["State"][0], status["TracerPid"]), ("R", "0"))
            self.assertIsNone(run.process.poll())
            os.kill(pid, signal.SIGKILL)
            run.finish(expect=128 + signal.SIGKILL)
            self.assertGreater(run.summary.samples, 5)

    def test_killed_before_the_first_sample(self):
        """The one that samples: the exit status says by which signal. It waits for the writer here,
        and that for somebody who opens the pipe."""
        path = os.path.join(self.directory(), "pipe")
        os.mkfifo(path)
        run = Run(["-f", "folded", "-o", path, "--", "sleep", "1000"])
        worker = harness.wait_for(run.worker_pid, "the one that samples")
        os.kill(worker, signal.SIGKILL)
        with open(path, "rb") as pipe:
            self.assertEqual(pipe.read(), b"")
        run.finish(expect=128 + signal.SIGKILL)
        self.assertRegex(run.stderr, r"killed by signal 9 \(Killed\); the command may not have started\n")
        self.assertIn("no profile: sampling ended before its first sample\n", run.stderr)

    def test_killed_profiler_leaves_the_command_alone(self):
        run, pid = start_spinning(hz=997)
        worker = run.worker_pid()
        time.sleep(0.2)
        run.signal(signal.SIGKILL)
        run.process.wait()
        # The one that samples notices, and writes what it has.
        path = os.path.join(run.directory, "out.pb.gz")
        harness.wait_for(lambda: os.path.exists(path), "the profile")
        status = harness.read_status(pid)
        self.assertIsNotNone(status)
        self.assertEqual((status["State"][0], status["TracerPid"]), ("R", "0"))
        os.kill(worker, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        run.process.stdout.close()
        run.process.stderr.close()


if __name__ == "__main__":
    harness.main()
