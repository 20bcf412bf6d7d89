# SPDX-License-Identifier: MIT
"""profiler top: what threads do, live and of a recording, as tables and JSON."""

import collections
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import PROFILER, STATUS_OUTPUT, STATUS_TARGET, STATUS_USAGE, Run
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


OWN = """\
import textwrap, threading, time

def mine():
    return textwrap.fill("of the program's own code " * 2000)

def nap():
    time.sleep(1000)

threading.Thread(target=nap, daemon=True).start()
print("ready", flush=True)
while True:
    mine()
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


def signalled(number):
    """The environment in which top gets the signal just when it starts its sampler."""
    return {
        "LD_PRELOAD": harness.fixture("signalled_fork.so"), "SIGNAL": str(int(number)),
        "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
    }  # fmt: skip


def tracers(pid):
    return {harness.read_status(pid, tid)["TracerPid"] for tid in harness.tids_of(pid)}


def intervals(text):
    return [json.loads(line) for line in text.splitlines()]


def read(path):
    with open(path, "rb") as file:
        return file.read()


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
        self.assertEqual(told["version"], 2)
        self.assertEqual(told["samples"], sum(counts.values()))
        self.assertEqual(told["samples"], sum(told["kinds"].values()))
        threads = collections.Counter()
        for thread in told["threads"]:
            threads[thread["name"]] += thread["samples"]
            self.assertEqual(thread["samples"], sum(thread["kinds"].values()))
        self.assertEqual(threads, by_thread)
        leaves = collections.Counter()
        for function in told["functions"]:
            leaves[function["name"]] += function["self"]
            # Functions of one name are merged in stacks alone.
            self.assertLessEqual(function["total"], total[function["name"]])
        self.assertEqual(+leaves, own)
        waiting = told["samples"] - told["kinds"].get("running", 0)
        self.assertEqual(sum(wait["samples"] for wait in told["waits"]), waiting)

    def test_intervals(self):
        told = intervals(top(self.path, "--json", "--interval=500ms"))
        self.assertGreaterEqual(len(told), 4)
        for part in told:
            self.assertEqual(part["to_ns"] - part["from_ns"], 500_000_000)
            slice_ = self.report(f"--from={part['from_ns'] / 1e9}s", f"--to={part['to_ns'] / 1e9}s")
            if slice_:
                self.check(part, slice_)
        self.assertEqual(sum(part["samples"] for part in told), sum(self.report().values()))

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
            # A line above the titles may tell of waits for a CPU.
            titles = [line.split() for line in text.splitlines() if re.match(r"[A-Z%]+ ", line)]
            self.assertEqual(titles, titles[:1] * 2, text)
        text = top(self.path, "--view=functions", "--sort=function", "-n1")
        names = re.findall(r"(?m)^ *\d+\.\d.* \d+ ([^\d\s]\S* \(.*\))$", text)
        self.assertGreater(len(names), 1, text)
        self.assertEqual(names, sorted(names))

    def test_refused(self):
        for args, words in (
            ([], "top: give a process, a recording"), ([self.path, "--sort=nothing"], "no column"),
            ([self.path, "--view=stacks"], "unknown"), ([self.path, "--interval=1ms"], "100ms"),
            ([self.path, "-o", "x.wprof"], "leave it out for a recording"), (["1", "-o", "x.html"], "FILE.wprof"),
            ([self.path, "1"], "give processes or one file"), (["sleep"], "neither a process id nor"), ([self.path, "--", "true"], "give only one: a process"),
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
            self.assertEqual(sum(f["self"] for f in part["functions"]), part["samples"])
            self.assertEqual(sum(t["samples"] for t in part["threads"]), part["samples"])
            for thread in part["threads"]:
                # A spinner that no CPU was left for may have been told of late.
                self.assertRegex(thread["stack"][-1], r"^(?:_start|clone|\[truncated)")
        names = {f["name"] for part in told for f in part["functions"]}
        self.assertLessEqual({"spin_here", "futex_here", "pipe_here", "sleep_here"}, names)
        # What sleeps on is told of in one entry at the end: its samples are reckoned meanwhile.
        idle = [t["samples"] for t in told[-1]["threads"] if t["never_woke"]]
        self.assertEqual(len(idle), 7)
        self.assertLessEqual(max(idle) - min(idle), 1)
        self.assertEqual(tracers(target.pid), {"0"})

    def test_deleted(self):
        """A program whose file was deleted while it runs is named all the same, and the vdso, too."""
        path = os.path.join(self.directory(), "gone")
        shutil.copy(harness.fixture("threads"), path)
        target = self.start(path, 8, 2)
        os.unlink(path)
        (told,) = intervals(top(target.pid, "--json", "--interval=300ms", "-n", 1))
        names = {f["name"] for f in told["functions"]}
        self.assertLessEqual({"spin_here", "futex_here", "pipe_here", "sleep_here"}, names)
        self.assertFalse([name for name in names if re.match(r"\[(gone|vdso)\+", name)])

    def test_as_recorded(self):
        """In all there are as many samples of each as the sampler took."""
        target = self.start_fixture("threads", 4, 1)
        told = intervals(top(target.pid, "--json", "--interval=300ms", "-d", "1"))
        for thread in told[0]["threads"]:
            samples = [
                t["samples"] for part in told for t in part["threads"] if t["tid"] == thread["tid"]
            ]
            # 99 Hz; what was missed was counted.
            self.assertAlmostEqual(sum(samples) + told[-1]["missed_ticks"], 100, delta=len(told) + 1)

    def test_children(self):
        """Waits for the ends of children with the same name are one row."""
        target = self.start("sh", "-c", "while :; do sleep 0.05; done", ready=None)
        (told,) = intervals(top(target.pid, "--json", "--interval=1s", "-n", 1))
        ends = [wait["for"] for wait in told["waits"] if "sleep" in wait["for"]]
        self.assertEqual(ends, ['wait4(the end of "sleep")'], told["waits"])

    def test_the_end_of_plain_tables(self):
        """What is no interval any more has no table; what is part of one says how long it was."""
        target = self.start_fixture("threads", 4, 1)
        for duration, lengths in (("1", [0.5, 0.5]), ("0.8", [0.5, 0.3])):
            told = top(target.pid, "--interval=500ms", "-d", duration)
            heads = re.findall(r"^\S+Z   ([\d.]+) s   pid ", told, re.M)
            self.assertEqual(len(heads), len(lengths), told)
            for head, length in zip(heads, lengths):
                self.assertAlmostEqual(float(head), length, delta=0.11)

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
        self.assertGreaterEqual(kept["samples"], sum(part["samples"] for part in told) - 2 * len(names[0]))
        self.assertEqual(len([wait for wait in kept["waits"] if wait["holder"]]), 10)
        with open("/dev/full", "wb") as full:
            link = path + ".full.wprof"
            os.symlink(f"/proc/{os.getpid()}/fd/{full.fileno()}", link)
            run = Run(["top", target.pid, "-n", 1, "-o", link]).finish(expect=STATUS_OUTPUT)
        self.assertRegex(run.stderr, f"cannot write {link}: No space left")
        # What stands there is replaced when something can be written, and is sampled.
        before = read(path)
        fails = ((4, f"cannot write {path}: File too large"), (20, f"cannot continue writing {path}: File too large"))
        for size, said in fails:
            self.assertEqual(read(path), before)
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))  # noqa: E731, B023
            run = Run(["top", target.pid, "-n", 1, "-o", path], preexec_fn=limit).finish(expect=STATUS_OUTPUT)
            self.assertIn(said, run.stderr)
        self.assertEqual(len(read(path)), 20)
        target.end()
        Run(["top", target.pid, "-n", 1, "-o", path]).finish(expect=STATUS_TARGET)
        self.assertEqual(len(read(path)), 20)

    def test_own_code(self):
        """Library time counts for the program's own function that called it, and idle time for nothing."""
        path = os.path.join(self.directory(), "own.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(OWN)
        target = self.start(sys.executable, path)
        args = (target.pid, "--interval=500ms", "-n", 1)
        (told,) = intervals(top(*args, "--json"))
        functions = {function["name"]: function for function in told["functions"]}
        mine = functions["mine"]
        self.assertTrue(mine["own"])
        self.assertFalse(functions["fill"]["own"])  # of textwrap
        self.assertGreater(mine["own_self"], 5 * mine["self"])
        self.assertGreater(functions["nap"]["own_self"], 30)
        self.assertEqual(sum(function["own_self"] for function in told["functions"]), told["samples"])
        # The rows' functions, as they are sorted.
        rows = {
            option: re.findall(r"(?m)^(?: *[\d.]+){6,8} (\S+ ?\S*)$", top(*args, "--view=functions", *option))
            for option in ((), ("--raw",), ("--idle",))
        }
        self.assertEqual(rows[()][0], "mine (own.py:3)")
        self.assertFalse({row for row in rows[()] if re.match("nap |fill ", row)})
        self.assertIn("fill", {row.split()[0] for row in rows["--raw",]})
        self.assertIn("nap (own.py:6)", rows["--idle",])
        tree = top(*args, "--view=tree")
        self.assertRegex(tree, r"(?m)^ +[\d.]+ +[\d.]+ - <module> \(own.py:1\)\n +[\d.]+ +[\d.]+  - mine \(own.py:3\)$")
        self.assertNotIn("_start", tree)
        self.assertRegex(top(*args, "--view=tree", "--raw"), r"(?m) - _start\b")

    def test_cxx_names(self):
        """Tables have what the author calls a function, JSON all of its name."""
        target = self.start_fixture("cxx-O2", "inlines")
        (told,) = intervals(top(target.pid, "--json", "--interval=300ms", "-n", 1))
        self.assertIn("void shapes::run_inlines<int>(int)", {function["name"] for function in told["functions"]})
        for view in ("functions", "tree"):
            text = top(target.pid, f"--view={view}", "--interval=300ms", "-n", 1)
            self.assertRegex(text, r"(?m) shapes::run_inlines \(cxx.cpp:\d+\)$")

    def test_command(self):
        told = intervals(top("--json", "--", "sh", "-c", "sleep 0.3; exit 7", status=7))
        self.assertEqual({t["name"] for part in told for t in part["threads"]}, {"sh"})
        self.assertEqual(top("--", "/no/such/command", status=harness.STATUS_NOT_FOUND), "")

    def test_command_outlives_the_duration(self):
        """All that was sampled is told when sampling is over, not when the command is."""
        process = subprocess.Popen(
            [PROFILER, "top", "--json", "--interval=100ms", "-d", "300ms", "--", "cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        to_ns = 0
        while to_ns < 300_000_000:
            self.assertTrue(select.select([process.stdout], [], [], harness.WAIT_TIMEOUT_S)[0], to_ns)
            to_ns = json.loads(process.stdout.readline())["to_ns"]
        self.assertIsNone(process.poll())
        process.stdin.close()
        self.assertEqual(process.wait(harness.RUN_TIMEOUT_S), 0)

    def test_command_of_one_who_waits_for_none(self):
        """Whoever starts top ignores the ends of its children."""
        ignore = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # noqa: E731
        top("--json", "--", "sh", "-c", "exit 7", status=7, preexec_fn=ignore)

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

    def test_signals_at_the_start(self):
        """As later: it ends well, and so does the sampler."""
        target = self.start_fixture("threads", 2, 1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            top(target.pid, "--json", env={**os.environ, **signalled(number)})
            self.assertEqual(tracers(target.pid), {"0"})

    def test_without_hangups(self):
        """What nohup(1) had it ignore does not end it."""
        target = self.start_fixture("threads", 2, 1)
        with subprocess.Popen(
            ["nohup", PROFILER, "top", str(target.pid), "--json", "--interval=100ms"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as run:  # fmt: skip
            part = json.loads(run.stdout.readline())
            run.send_signal(signal.SIGHUP)
            later_ns = time.time_ns() + 500_000_000
            while part["start_ns"] + part["to_ns"] < later_ns:
                part = json.loads(run.stdout.readline())
            run.send_signal(signal.SIGTERM)
            run.communicate(timeout=harness.RUN_TIMEOUT_S)
        self.assertEqual(run.returncode, 0)

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
        samples = sum(part["samples"] for part in parts) + 3 * parts[-1]["missed_ticks"]
        self.assertGreaterEqual(samples, 3 * 99 - 3 * len(parts))


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


if __name__ == "__main__":
    harness.main()
