# SPDX-License-Identifier: MIT
"""profiler top: what threads do, live and of a recording, as tables, JSON and on a terminal."""

import collections
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import harness
import page
import pprof
from harness import PROFILER, STATUS_OUTPUT, STATUS_TARGET, STATUS_USAGE, Run
from terminal import Terminal
from told import read_folded

# Its thread has a name that would do things to a terminal.
HOSTILE = """
import time
with open("/proc/self/comm", "wb") as comm:
    comm.write(b"\\x1b[2J\\x9b1m\\r\\xe2\\x80\\xaeX")
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


def top(*args, status=0, **run):
    """What `profiler top` writes to a pipe."""
    done = subprocess.run(
        [PROFILER, "top", *map(str, args)], capture_output=True, check=False,
        timeout=harness.RUN_TIMEOUT_S, stdin=subprocess.DEVNULL, **run,
    )  # fmt: skip
    told = done.stderr.decode()
    assert done.returncode == status, f"{args}: status {done.returncode}: {told}"
    assert b"\x1b" not in done.stdout, done.stdout
    for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
        assert word not in told, told
    return done.stdout.decode()


def tracers(pid):
    return {harness.read_status(pid, tid)["TracerPid"] for tid in harness.tids_of(pid)}


def intervals(text):
    return [json.loads(line) for line in text.splitlines()]


class Replay(harness.TestCase):
    """A recording: each interval is what report makes of that part of the time."""

    @classmethod
    def setUpClass(cls):
        target = harness.Target([harness.fixture("bursts"), "60", "3"])
        try:
            cls.data = harness.start_attach(target.pid, "-d", "2", form="record").finish().recording
        finally:
            target.end()

    def setUp(self):
        self.path = os.path.join(self.directory(), "x.wprof")
        with open(self.path, "wb") as file:
            file.write(self.data)

    def report(self, *args):
        """Counts by stack, of which threads are the roots."""
        done = subprocess.run(
            [PROFILER, "report", "-q", "-t", self.path, *args],
            capture_output=True, check=False, timeout=harness.RUN_TIMEOUT_S,
        )  # fmt: skip
        return read_folded(done.stdout) if done.returncode == 0 else collections.Counter()

    def check(self, told, counts):
        by_thread, own, total = (collections.Counter() for _ in range(3))
        for stack, n in counts.items():
            by_thread[stack[0]] += n
            own[stack[-1].removesuffix("_[i]")] += n
            for name in {frame.removesuffix("_[i]") for frame in stack[1:]}:
                total[name] += n
        self.assertEqual(told["ticks"], sum(counts.values()))
        self.assertEqual(told["ticks"], sum(told["kinds"].values()))
        threads = collections.Counter()
        for thread in told["threads"]:
            threads[thread["name"]] += thread["ticks"]
            self.assertEqual(thread["ticks"], sum(thread["kinds"].values()))
        self.assertEqual(threads, by_thread)
        leaves = collections.Counter()
        for function in told["functions"]:
            leaves[function["name"]] += function["self"]
            # Functions of one name are merged in stacks alone.
            self.assertLessEqual(function["total"], total[function["name"]])
        self.assertEqual(+leaves, own)
        waiting = told["ticks"] - told["kinds"].get("running", 0)
        self.assertEqual(sum(wait["ticks"] for wait in told["waits"]), waiting)

    def test_intervals(self):
        told = intervals(top(self.path, "--json", "--interval=500ms"))
        self.assertGreaterEqual(len(told), 4)
        for part in told:
            self.assertEqual(part["to_ns"] - part["from_ns"], 500_000_000)
            slice_ = self.report(f"--from={part['from_ns'] / 1e9}s", f"--to={part['to_ns'] / 1e9}s")
            if slice_:
                self.check(part, slice_)
        self.assertEqual(sum(part["ticks"] for part in told), sum(self.report().values()))

    def test_whole(self):
        (told,) = intervals(top(self.path, "--json", "--interval=1h"))
        self.check(told, self.report())
        self.assertEqual(top(self.path, "--json"), top(self.path, "--json"))

    def test_selected(self):
        (told,) = intervals(top(self.path, "--json", "--interval=1h", "--on-cpu"))
        self.check(told, self.report("--on-cpu"))
        self.assertEqual(set(told["kinds"]), {"running"})

    def test_tables(self):
        for view in ("threads", "functions", "tree", "waits"):
            text = top(self.path, f"--view={view}", "-n", 2)
            self.assertEqual(text.count(" samples\n"), 2, text)
            self.assertEqual(text.count("%"), text.splitlines()[1].count("%") * 2, text)
        rows = top(self.path, "--view=functions", "--sort=function", "-n1").splitlines()[2:-1]
        names = [row.split(maxsplit=7)[-1] for row in rows]
        self.assertEqual(names, sorted(names))

    def test_refused(self):
        for args, words in (
            ([], "no process is given"), ([self.path, "--sort=nothing"], "no column"),
            ([self.path, "--view=stacks"], "unknown"), ([self.path, "--interval=1ms"], "100ms"),
            ([self.path, "-o", "x.wprof"], "not for a recording"), (["1", "-o", "x.html"], "FILE.wprof"),
            ([self.path, "1"], "too many"), ([self.path, "--", "true"], "give one of"),
        ):  # fmt: skip
            run = Run(["top", *args]).finish(expect=STATUS_USAGE)
            self.assert_message(run, words, STATUS_USAGE)
        run = Run(["top", "/dev/null"]).finish(expect=STATUS_TARGET)
        self.assert_message(run, "is not a recording")
        with open("/dev/full", "wb") as full:
            run = Run(["top", self.path], stdout=full).finish(expect=STATUS_OUTPUT)
        self.assertRegex(run.stderr, "cannot be written")

    def test_cut(self):
        """A recording of any length is shown as far as it goes."""
        for size in (16, 300, len(self.data) // 2, len(self.data) - 1):
            with open(self.path, "wb") as file:
                file.write(self.data[:size])
            for view in ("threads", "functions", "tree", "waits"):
                top(self.path, f"--view={view}")
            top(self.path, "--json")

    def test_reader_leaves(self):
        with subprocess.Popen(
            [PROFILER, "top", self.path, "--interval=100ms", "--json"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as run:  # fmt: skip
            run.stdout.readline()
            run.stdout.close()
            told = run.stderr.read().decode()
            run.wait(harness.RUN_TIMEOUT_S)
        self.assertNotIn("rror:", told)


class Live(harness.TestCase):
    def waited_s(self, target, tid):
        """How long a thread has waited for a CPU. The kernel counts that when it has got one."""
        ran_s, _ = harness.schedule_of(target.pid, tid)
        harness.wait_for(
            lambda: harness.read_status(target.pid, tid)["State"][0] != "R"
            or harness.schedule_of(target.pid, tid)[0] > ran_s, "its turn"
        )
        return harness.schedule_of(target.pid, tid)[1]

    def test_attached(self):
        """All threads, at each tick; the target is let go."""
        target = self.start_fixture("threads", 8, 2)
        waited = {tid: -self.waited_s(target, tid) for tid in harness.tids_of(target.pid)}
        told = intervals(top(target.pid, "--json", "--interval=500ms", "-n", 3))
        starved_s = max(start_s + self.waited_s(target, tid) for tid, start_s in waited.items())
        self.assertEqual([part["from_ns"] for part in told], [0, 500_000_000, 1_000_000_000])
        missed = 0
        for part in told:
            # 49 or 50 ticks: if most were missed, the spinners may have none, or if they got no CPU.
            n_missed, missed = part["missed_ticks"] - missed, part["missed_ticks"]
            has_all = n_missed < 25 and starved_s < 0.25
            self.assertIn(len(part["threads"]), (9,) if has_all else range(7, 10))
            self.assertEqual(sum(f["self"] for f in part["functions"]), part["ticks"])
            self.assertEqual(sum(t["ticks"] for t in part["threads"]), part["ticks"])
            for thread in part["threads"]:
                # A spinner that no CPU was left for may have been told of late.
                self.assertRegex(thread["stack"][-1], r"^(?:_start|clone|\[truncated)")
        names = {f["name"] for part in told for f in part["functions"]}
        self.assertLessEqual({"spin_here", "futex_here", "pipe_here", "sleep_here"}, names)
        # What sleeps on is told of in one entry at the end: its ticks are reckoned meanwhile.
        idle = [t["ticks"] for t in told[-1]["threads"] if t["never_woke"]]
        self.assertEqual(len(idle), 7)
        self.assertLessEqual(max(idle) - min(idle), 1)
        self.assertEqual(tracers(target.pid), {"0"})

    def test_as_recorded(self):
        """In all there are as many ticks as the sampler took."""
        target = self.start_fixture("threads", 4, 1)
        told = intervals(top(target.pid, "--json", "--interval=300ms", "-d", "1"))
        for thread in told[0]["threads"]:
            ticks = [
                t["ticks"] for part in told for t in part["threads"] if t["tid"] == thread["tid"]
            ]
            # 99 Hz; what was missed was counted.
            self.assertAlmostEqual(sum(ticks) + told[-1]["missed_ticks"], 100, delta=len(told) + 1)

    def test_holders(self):
        """What is waited for is a row, and says who has it where the lock does."""
        target = self.start_fixture("locks", "all")
        (told,) = intervals(top(target.pid, "--json", "--interval=300ms", "-n", 1))
        threads = {thread["name"]: thread for thread in told["threads"]}
        rows = {wait["for"]: wait for wait in told["waits"]}
        lines = [line.split() for line in target.said if line.startswith("wait ")]
        for _, name, _, kind, what, owner in lines:
            said = threads[name]["waits_for"]
            self.assertEqual(threads[name]["now"], kind, name)
            if owner == "0":
                self.assertEqual(said, "futex(...)", name)
            elif what == "join":
                self.assertEqual(said, f'futex(the end of "holder" {owner})')
            else:
                thing, holder = re.fullmatch(r"(futex\(.*), held by (.*)\)", said).groups()
                self.assertRegex(thing, rf"^futex\({what} 0x[0-9a-f]+$", name)
                self.assertEqual(holder, f'"holder" {owner}', name)
                row = rows[thing + ")"]
                self.assertEqual((row["holder"], row["kind"], row["threads"]), (holder, "lock", 1), name)
        self.assertEqual(len(lines), 15)

    def test_kept(self):
        """The recording that is looked at is a file, too, and whole."""
        target = self.start_fixture("locks", "all")
        path = os.path.join(self.directory(), "x.wprof")
        told = intervals(top(target.pid, "--json", "--interval=300ms", "-n", 2, "-o", path))
        (kept,) = intervals(top(path, "--json", "--interval=1h"))
        names = [{t["name"] for t in part["threads"]} for part in (*told, kept)]
        self.assertEqual(names, [names[0]] * 3)
        self.assertGreaterEqual(kept["ticks"], sum(part["ticks"] for part in told) - 2 * len(names[0]))
        self.assertEqual(len([wait for wait in kept["waits"] if wait["holder"]]), 10)
        with open("/dev/full", "wb") as full:
            link = path + ".full.wprof"
            os.symlink(f"/proc/{os.getpid()}/fd/{full.fileno()}", link)
            run = Run(["top", target.pid, "-n", 1, "-o", link]).finish(expect=STATUS_OUTPUT)
        self.assertRegex(run.stderr, "cannot continue writing")

    def test_command(self):
        told = intervals(top("--json", "--", "sh", "-c", "sleep 0.3; exit 7", status=7))
        self.assertEqual({t["name"] for part in told for t in part["threads"]}, {"sh"})
        self.assertEqual(top("--", "/no/such/command", status=harness.STATUS_NOT_FOUND), "")

    def test_no_target(self):
        run = Run(["top", "999999999"]).finish(expect=STATUS_TARGET)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        self.assertEqual(run.stdout, b"")

    def test_target_ends(self):
        """The last interval is told, and is not longer than the process lived."""
        target = self.start_fixture("threads", 2, 1)
        with subprocess.Popen(
            [PROFILER, "top", str(target.pid), "--json", "--interval=200ms"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as run:  # fmt: skip
            json.loads(run.stdout.readline())
            target.process.kill()
            rest, told = run.stdout.read(), run.stderr.read()
        self.assertEqual(run.returncode, 0, told)
        self.assertTrue(intervals(rest.decode()))

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            target = self.start_fixture("threads", 2, 1)
            with subprocess.Popen(
                [PROFILER, "top", str(target.pid), "--json", "--interval=200ms"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            ) as run:  # fmt: skip
                run.stdout.readline()
                run.send_signal(number)
                _, told = run.stdout.read(), run.stderr.read()
                run.wait(harness.RUN_TIMEOUT_S)
            self.assertEqual((run.returncode, told), (0, b""))
            self.assertEqual(tracers(target.pid), {"0"})

    def test_killed(self):
        """Whoever of the profiler's processes is killed: the target goes on by itself."""
        target = self.start_fixture("threads", 2, 1)
        with subprocess.Popen(
            [PROFILER, "top", str(target.pid), "--json", "--interval=200ms"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as run:  # fmt: skip
            run.stdout.readline()
            sampler = harness.children(run.pid)
            sampler += [worker for pid in sampler for worker in harness.children(pid)]
            run.kill()
            run.wait(harness.RUN_TIMEOUT_S)
        harness.wait_for(lambda: not any(map(harness.is_there, sampler)), "the sampler's end")
        self.assertEqual(tracers(target.pid), {"0"})

    def test_stopped(self):
        """While the reader is stopped sampling goes on, and then it catches up."""
        target = self.start_fixture("threads", 2, 1)
        with subprocess.Popen(
            [PROFILER, "top", str(target.pid), "--json", "--interval=100ms"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as run:  # fmt: skip
            first = json.loads(run.stdout.readline())
            run.send_signal(signal.SIGSTOP)
            time.sleep(1)
            run.send_signal(signal.SIGCONT)
            run.send_signal(signal.SIGTERM)
            rest, told = run.stdout.read(), run.stderr.read()
        parts = [first, *intervals(rest.decode())]
        self.assertGreaterEqual(parts[-1]["to_ns"], 1_000_000_000, told)
        self.assertEqual(parts[-1]["dropped"], 0)
        ticks = sum(part["ticks"] for part in parts) + 3 * parts[-1]["missed_ticks"]
        self.assertGreaterEqual(ticks, 3 * 99 - 3 * len(parts))


class Hostile(harness.TestCase):
    def test_names(self):
        target = self.start("python3", "-c", HOSTILE)
        run = harness.start_attach(target, "-d", "0.3", form="record").finish()
        path = os.path.join(self.directory(), "x.wprof")
        with open(path, "wb") as file:
            file.write(run.recording)
        for args in ([], ["--json"], ["--view=functions"], ["--view=tree"], ["--view=waits"]):
            text = top(path, *args)
            for bad in ("\x1b", "\x9b", "\r", "\x00"):
                self.assertNotIn(bad, text)
            if not args:
                self.assertNotIn("\u202e", text)  # turns the direction of a terminal's text
                self.assertRegex(text, "(?m)^_\\[2J\ufffd1m__X ")  # no UTF-8, and turned off


class Screen(harness.TestCase):
    VIEWS = {"1": "THREAD", "2": "FUNCTION", "3": "CALLS", "4": "WAITS%", "5": "STACK"}

    def setUp(self):
        self.target = self.start_fixture("threads", 8, 2)

    def test_all_asleep(self):
        """A program that hangs: those that wait for locks are shown, or all, where nobody else is."""
        target = self.start_fixture("locks", "cycle", 3)
        terminal = Terminal(self, target.pid, "--interval=100ms")
        # A frame may be seen half drawn: all of it at some time.
        rows = "".join(rf"(?=.*^{name} +\d+ lock)" for name in ("dead0", "dead1", "dead2", "victim"))
        terminal.wait_for(rf"(?ms)\A{rows}(?=.*\+ 1 never woke)")
        terminal.type("4")
        terminal.wait_for(r'(?m) lock +futex\(mutex 0x[0-9a-f]+\)? +"dead')
        program = "import time; print('ready', flush=True); time.sleep(1000)"
        terminal = Terminal(self, self.start(sys.executable, "-c", program).pid, "--interval=100ms")
        terminal.wait_for(r"(?m)^python\S* +\d+ timer")

    def test_views(self):
        terminal = Terminal(self, self.target.pid, "--interval=100ms", columns=140)
        terminal.wait_for(r"\[LIVE\].* ticks.*\n.*9 threads")
        terminal.wait_for(
            r"(?s)\A(?=.*\nworker-00 +\d+ running[^\n]* R+ +spin_here)(?=.*\+ 7 never woke: h shows them)"
        )
        terminal.type("h")
        terminal.wait_for(r"worker-07 .* pipe_here +read\(pipe:")
        for key, title in self.VIEWS.items():
            terminal.type(key)
            terminal.wait_for(rf"(?m)^ ?{title}|{title}$")
        terminal.type("1")
        terminal.type("\\", "worker-01", "Enter")
        terminal.wait_for(r"(?s)\A(?!.*worker-00).*only with: worker-01")
        terminal.type("Enter")
        terminal.wait_for(r"STACK\nspin_here\nworker\n")
        terminal.type("Escape")
        terminal.wait_for(r"worker-00")
        terminal.type("?")
        terminal.wait_for("PgUp PgDn")
        terminal.type("x", "3")
        terminal.wait_for(r"\+ pipe_here")
        terminal.type("Down", "Down", "+")
        terminal.wait_for(r"\+ worker")
        terminal.type("q")
        terminal.wait_for_end()
        self.assertEqual(tracers(self.target.pid), {"0"})

    def test_saved(self):
        """What is looked at goes to files: all stacks, the last minute as a page, the window as pprof."""
        terminal = Terminal(self, self.target.pid, "--interval=100ms", columns=200)
        terminal.wait_for(r"(?m)^worker-00 +\d+ running.* spin_here")
        files = []
        for key, suffix in (("d", "txt"), ("S", "html"), ("p", "pb.gz")):
            terminal.type(key)
            shown = terminal.wait_for(rf"written: profiler\.{self.target.pid}\.\w+\.{suffix}")
            name = re.search(r"written: (\S+)", shown)[1]
            with open(os.path.join(terminal.directory, name), "rb") as file:
                files.append(file.read())
            terminal.type("1")
        dump, html, profile = files
        self.assertEqual(len(set(re.findall(rb'"(worker-0\d)"', dump))), 8)
        self.assertRegex(dump, rb'"worker-0\d" \d+.*   running\n    spin_here +threads.c:')
        self.assertEqual({t["name"] for t in page.Page(html).threads}, {"threads", *(f"worker-0{i}" for i in range(8))})
        self.assertEqual(len({sample.tid for sample in pprof.Profile(profile).samples}), 9)
        terminal.type("q")
        terminal.wait_for_end()

    def test_keys(self):
        terminal = Terminal(self, self.target.pid, "--interval=100ms", columns=220, rows=20)
        terminal.wait_for(r"(?m)^worker-00 +\d+ running.* spin_here")
        for key, pattern in (
            ("K", "LOCK%  COND%  FILE%.* READY% LAST"), ("2", "READY%    TICKS FUNCTION"), ("K", "IDLE%    TICKS"),
            ("F5", "TOTAL%  SELF% CALLS"), ("1", "THREAD +TID"), ("R", r"\[LIVE\]"),
            ("s", r"\[LIVE\]"), ("I", r"\[LIVE\]"), ("+", r"\[LIVE\]"), ("-", r"\[LIVE\]"),
        ):  # fmt: skip
            terminal.type(key)
            terminal.wait_for(pattern)
        terminal.type("\\", "worker-00", "Enter")  # whatever row the cursor was on
        terminal.wait_for(r"(?m)^--- spin_here < worker")
        terminal.type("Enter")
        terminal.wait_for(r"STACK\nspin_here\n")
        terminal.type("l")
        terminal.wait_for(r"STACK\nspin_here  threads.c:\d+\n")
        terminal.type("q")
        terminal.wait_for_end()

    def test_sizes(self):
        for columns, rows in ((20, 5), (300, 100)):
            terminal = Terminal(self, self.target.pid, "--interval=100ms", columns=columns, rows=rows)
            terminal.wait_for(r"\[LIVE\] pid")
            for key in (*self.VIEWS, "1", "h", "End", "Home", "NPage", "PPage", "?", "x", "w"):
                terminal.type(key)
                shown = terminal.wait_for(r"\[LIVE\]")
                self.assertLessEqual(max(map(len, shown.splitlines())), columns)
            terminal.tmux("resize-window", "-x", 90, "-y", 12)
            terminal.type("1")
            terminal.wait_for(r"(?m)^THREAD +TID")
            terminal.tmux("resize-window", "-x", 1, "-y", 1)
            terminal.tmux("resize-window", "-x", columns, "-y", rows)
            terminal.type("q")
            terminal.wait_for_end()

    def test_target_ends(self):
        """The last state stays, and says so."""
        terminal = Terminal(self, self.target.pid, "--interval=100ms")
        terminal.wait_for("spin_her")
        self.target.process.kill()
        terminal.wait_for(r"(?s)\[ENDED\].*\nworker-0[01] +\d+ ")
        terminal.type(",")
        terminal.wait_for(r"\[AT ")
        terminal.type("q")
        terminal.wait_for_end()

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGSEGV):
            terminal = Terminal(self, self.target.pid)
            terminal.wait_for(r"\[LIVE\]")
            os.kill(terminal.profiler(), number)
            if number != signal.SIGSEGV:
                terminal.wait_for_end()
                self.assertEqual(tracers(self.target.pid), {"0"})
                continue
            terminal.wait_for_end(128 + number)
            # Nobody is there to wait for the sampler: the kernel tells it of the end.
            harness.wait_for(lambda: tracers(self.target.pid) == {"0"}, "the sampler to let go")

    def test_sampler_killed(self):
        terminal = Terminal(self, self.target.pid, "--interval=100ms")
        terminal.wait_for("spin_her")
        supervisor = next(iter(harness.children(terminal.profiler())))
        os.kill(next(iter(harness.children(supervisor))), signal.SIGKILL)
        terminal.wait_for(r"\[ENDED\]")
        terminal.type("q")
        terminal.wait_for(r"status [1-9]")
        self.assertEqual(tracers(self.target.pid), {"0"})

    def test_suspended(self):
        """Ctrl-Z: the shell has its terminal, sampling goes on, and all of it is there later."""
        terminal = Terminal(self, self.target.pid, "--interval=100ms", env="set -m;")
        terminal.wait_for(r"\[LIVE\]")
        pid = terminal.profiler()
        terminal.type("C-z")
        harness.wait_for(lambda: "T" in harness.read_status(pid)["State"], "the stop")
        terminal.wait_for("status")
        self.assertEqual(terminal.tmux("display", "-p", "#{alternate_on}"), "0\n")
        started = time.monotonic()
        time.sleep(1)
        os.kill(pid, signal.SIGCONT)
        seconds = time.monotonic() - started
        harness.wait_for(lambda: "T" not in harness.read_status(pid)["State"], "its going on")
        os.kill(pid, signal.SIGTERM)
        harness.wait_for(lambda: not harness.children(pid), "its end")
        self.assertGreaterEqual(seconds, 1)

    def test_names(self):
        target = self.start("python3", "-c", HOSTILE)
        terminal = Terminal(self, target.pid, "--interval=100ms")
        terminal.wait_for(r"(?m)^_\[2J\ufffd1m__X +\d+ ")
        terminal.type("q")
        terminal.wait_for_end()

    def test_command(self):
        """What it writes to the terminal is not for the screen."""
        terminal = Terminal(self, "--interval=100ms", "--", "sh", "-c", "while sleep .1; do echo LOUD; done")
        shown = terminal.wait_for(r"(?m)^sh +\d+ ")
        self.assertNotIn("LOUD", shown)
        os.kill(int(re.search(r"(?m)^sh +(\d+) ", shown)[1]), signal.SIGKILL)
        terminal.wait_for(r"\[ENDED\]")
        terminal.type("q")
        terminal.wait_for_end(128 + signal.SIGKILL)

    def start_unread(self):
        """On a terminal that takes nothing, as after Ctrl-S: its pid, and the terminal's other end."""
        pid, master = pty.fork()
        if pid == 0:
            try:
                os.environ["TERM"] = "xterm"
                args = [PROFILER, "top", str(self.target.pid), "--interval=100ms", "--sort=tid"]
                os.execv(PROFILER, args)
            finally:
                os._exit(99)
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 400, 0, 0))
        # By default they end it, and it awaits them only when the sampler has been started.
        harness.wait_for(
            lambda: "anon_inode:[signalfd]" in harness.read_links(f"/proc/{pid}/fd"), "its watch for signals"
        )
        time.sleep(1)  # more than the terminal's buffer holds is drawn
        return pid, master

    def check_end(self, pid):
        harness.wait_for(lambda: harness.read_status(pid)["State"][0] == "Z", "its end")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual(tracers(self.target.pid), {"0"})

    def test_unread(self):
        """Such a terminal keeps nobody from ending."""
        pid, master = self.start_unread()
        self.addCleanup(os.close, master)
        os.kill(pid, signal.SIGTERM)
        self.check_end(pid)

    def test_gone(self):
        """A terminal that is gone, with a frame only half written."""
        pid, master = self.start_unread()
        os.close(master)
        self.check_end(pid)

    def test_without_screen(self):
        """TERM=dumb, and errors: plain."""
        terminal = Terminal(self, self.target.pid, "-d", "0.3", env="TERM=dumb")
        terminal.wait_for_end()
        self.assertIn("THREAD", terminal.screen())
        terminal = Terminal(self, 999999999)
        terminal.wait_for_end(STATUS_TARGET)
        self.assertIn("profiler: no process has the pid", terminal.screen())


class ReplayScreen(harness.TestCase):
    def test_play(self):
        """The same keys show the same, and the times are those of the recording."""
        target = self.start_fixture("threads", 4, 1)
        run = harness.start_attach(target, "-d", "2.5", form="record").finish()
        path = os.path.join(self.directory(), "x.wprof")
        with open(path, "wb") as file:
            file.write(run.recording)
        terminals = [Terminal(self, path, columns=120) for _ in range(2)]
        for terminal in terminals:
            terminal.wait_for(r"\[AT \d of \d s\]")
            terminal.type(",", "h")
            terminal.wait_for(r"(?m)\[AT [12] of [23] s\](.*\n)+threads +\d+ timer")
        for key, title in (("1", "THREAD"), ("2", "FUNCTION"), ("3", "CALLS"), ("4", "WAITS%")):
            for terminal in terminals:
                terminal.type(key)
                terminal.wait_for(title)
            # A frame may be seen half drawn.
            a, b = terminals
            harness.wait_for(lambda a=a, b=b: a.screen() == b.screen(), "equal frames")
        for terminal in terminals:
            terminal.type("<")
            terminal.wait_for(r"\[AT [01] of \d s\]")
            terminal.type("Space")
            # A test that is slow sees no more than that it has come to the end.
            terminal.wait_for(r"\[PLAYS \d|\[AT (\d) of \1 s\]")
            terminal.wait_for(r"\[AT (\d) of \1 s\]")
            terminal.type("q")
            terminal.wait_for_end()


if __name__ == "__main__":
    harness.main()
