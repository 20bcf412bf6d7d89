"""profiler top: what threads do, live and of a recording, as tables, JSON and on a terminal."""

import collections
import json
import os
import subprocess

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
            self.assertEqual(text.count(" ticks\n"), 2, text)
            self.assertEqual(text.count("%"), text.splitlines()[1].count("%") * 2, text)
        rows = top(self.path, "--view=functions", "--sort=function", "-n1").splitlines()[2:-1]
        names = [row.split(maxsplit=7)[-1] for row in rows]
        self.assertEqual(names, sorted(names))

    def test_refused(self):
        for args, words in (
            ([], "no recording is given"), ([self.path, "--sort=nothing"], "no column"),
            ([self.path, "--view=stacks"], "unknown"), ([self.path, "--interval=1ms"], "100ms"),
            ([self.path, "1"], "too many"),
        ):  # fmt: skip
            run = Run(["top", *args]).finish(expect=STATUS_USAGE)
            self.assert_message(run, words, STATUS_USAGE)
        run = Run(["top", "/dev/null"]).finish(expect=STATUS_TARGET)
        self.assert_message(run, "is no recording")
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
