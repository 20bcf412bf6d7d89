# SPDX-License-Identifier: MIT
"""JavaScript: what Error.stack says of threads' stacks is what is shown, and running code has its own names."""

import json
import os
import re
import shutil
import subprocess

import harness
from harness import attach
from pprof import UNSEEN

SOURCE = os.path.join(harness.HERE, "fixtures", "v8_stacks.js")
# How functions become machine code, as options of node and the number of calls before the last one: not at
# all, all at once by the simple compiler, or as they get hot.
MODES = [([], 0), (["--always-sparkplug"], 2), (["--no-turbo-inlining", "--no-maglev"], 3000)]
# Functions of V8's own, which are machine code in its file; Error.stack has them as well.
BUILTINS = {"map", "sort", "reduce", "replace", "next"}
UNNAMED = re.compile(r"\[(anon|jit|unknown)\+")
# What Node starts a worker by: Error.stack does not always have the outermost of it.
START = ("(anonymous)", "node:internal/main/worker_thread")
UNNAMED_TOO = "Builtins_InterpreterEntryTrampoline"  # of interpreted functions
# Of the CPU time: a function that begins or ends has no frame, and one may be moved or freed before it is read.
MIN_NAMED = 0.9
MAX_OFF = 0.03  # of a share


def other_nodes():
    """NODES in the environment has more programs, with ":" between."""
    return list(filter(None, os.environ.get("NODES", "").split(":")))


def is_javascript(frame):
    """Those of a runtime are in no mapping."""
    return not frame.location["mapping"] and not frame.name.startswith("[")


def javascript(sample):
    """Its functions, the innermost first."""
    return [frame for frame in reversed(sample.frames) if is_javascript(frame)]


def told_name(name, file):
    """As V8 knows the function: names that are computed when the program runs, as those by symbols, are its own."""
    if name is None or name.startswith("[") or (name == "eval" and not file):
        return "(anonymous)"
    return name


def read_told(directory):
    """{thread: [(name, file, line)]}."""
    told = {}
    for tid in os.listdir(directory):
        with open(os.path.join(directory, tid), encoding="utf-8") as file:
            rows = [(told_name(name, file), file or "", line) for name, file, line in json.load(file)]
        told[int(tid)] = [row for row in rows if row[0] not in BUILTINS]
    return told


def without_start(rows):
    while rows and rows[-1][:2] == START:
        rows = rows[:-1]
    return rows


def shown_name(frame):
    return "(anonymous)" if frame.name == "anonymous" else frame.name  # of new Function


def is_stripped(target):
    """Debian's is."""
    with open(f"/proc/{target.pid}/maps", encoding="utf-8") as maps:
        return "/libnode.so" in maps.read()


class V8(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        harness.need(shutil.which("node"), "node is not installed")

    def start_node(self, *args, node="node", options=()):
        known = subprocess.run([node, "--v8-options"], stdout=subprocess.PIPE, check=True).stdout.decode()
        names = {option: re.split("=", option[2:].removeprefix("no-"))[0] for option in options}
        options = [option for option, name in names.items() if f"--{name} (" in known]
        return self.start(node, *options, SOURCE, *args)

    def check_blocked(self, options, calls, node="node"):
        directory = self.directory()
        target = self.start_node("blocked", directory, str(calls), node=node, options=options)
        told = read_told(directory)
        seen = set()
        version = subprocess.run([node, "--version"], stdout=subprocess.PIPE, check=True).stdout
        is_copying = version.startswith(b"v18.")  # V8's own code, to memory without a file
        for sample in attach(target).pprof.samples:
            if sample.tid not in told or UNSEEN in sample.stack:
                continue
            shown = [(shown_name(frame), frame.file) for frame in javascript(sample) if frame.name not in BUILTINS]
            shown, expected = without_start(shown), without_start([row[:2] for row in told[sample.tid]])
            if is_stripped(target):  # such a file does not say how its code is unwound that C++ calls JavaScript by
                self.assertEqual(shown, expected[: len(shown)])
            else:
                self.assertEqual(shown, expected, sample.stack)
                self.assertIn(sample.stack[0], ("clone3", "clone"))
            if not is_copying:
                self.assertEqual([name for name in sample.stack if UNNAMED.match(name)], [])
            seen.add(sample.tid)
        self.assertEqual(seen, told.keys())

    def test_blocked(self):
        for options, calls in harness.a_few(MODES):
            with self.subTest(options=options):
                self.check_blocked(options, calls)

    def test_other_versions(self):
        nodes = other_nodes()
        if not nodes:
            self.skipTest("there is no other node here")
        for node in nodes:
            for options, calls in MODES:
                with self.subTest(node=node, options=options):
                    self.check_blocked(options, calls, node)
            with self.subTest(node=node):
                self.check_churn(node)

    def check_pairs(self, names):
        """Each function of the chain calls the next one, each that is made anew one of the same number."""
        chain = [int(name[5:]) for name in names if re.fullmatch(r"chain\d", name)]
        self.assertEqual(chain, list(range(len(chain))), names)
        turns = [name.split("_") for name in names if re.fullmatch(r"(turn|outer|inner)_\d+", name)]
        self.assertLessEqual(len({number for _, number in turns}), 1, names)
        self.assertEqual([kind for kind, _ in turns], ["turn", "outer", "inner"][: len(turns)], names)
        self.assertFalse(chain and turns, names)
        return bool(chain or turns)

    def check_churn(self, node="node"):
        options = ["--max-semi-space-size=1", "--expose-gc", *MODES[-1][0]]
        target = self.start_node("churn", node=node, options=options)
        run = attach(target, "--max-overhead=50", duration="3", hz=997)
        n_own = n_named = n_unnamed = 0
        for sample in run.pprof.samples:
            if sample.tid != target.pid:
                continue
            if any(map(UNNAMED.match, sample.stack)) or UNNAMED_TOO in sample.stack:
                n_unnamed += sample.cpu_ns
                continue
            names = [frame.name for frame in javascript(sample)][::-1]
            if self.check_pairs(names):
                n_own += sample.count
                n_named += sample.cpu_ns
        self.assertGreater(n_own, 100)
        self.assertLessEqual(n_unnamed, (1 - MIN_NAMED) * (n_named + n_unnamed))

    def test_churn(self):
        """Garbage is collected, and functions come and go: none has the name of another one."""
        self.check_churn()

    def test_left_over(self):
        """What is left of functions that are over is not taken for the callers of one that waits."""
        target = self.start_node("idle", options=["--no-opt", "--no-sparkplug"])
        waits = [s for s in attach(target, hz=499).pprof.samples if s.tid == target.pid and "epoll" in s.stack[-1]]
        self.assertGreater(sum(s.count for s in waits), 100)
        self.assertEqual([s.stack for s in waits if javascript(s)], [])

    def test_shares(self):
        """Two functions that compute have the shares that the program's own clock says."""
        path = os.path.join(self.directory(), "spent")

        def spent():
            with open(path, encoding="utf-8") as file:
                return json.load(file)

        target = self.start_node("spin", path)
        before = spent()
        run = attach(target, "--max-overhead=50", duration="4", hz=997)
        after = spent()
        told = {name: after[name] - before[name] for name in after}
        counts = dict.fromkeys(told, 0)
        for sample in run.pprof.samples:
            for name in {frame.name for frame in javascript(sample)} & counts.keys():
                counts[name] += sample.cpu_ns
        for name, microseconds in told.items():
            share = counts[name] / sum(counts.values())
            self.assertAlmostEqual(share, microseconds / sum(told.values()), delta=MAX_OFF)

    def test_turned_off(self):
        """--runtimes=none shows the machine's frames."""
        target = self.start_node("churn")
        run = attach(target, "--runtimes=none")
        self.assertFalse([frame for sample in run.pprof.samples for frame in javascript(sample)])

    def test_own_frames(self):
        """--frames=python shows JavaScript alone."""
        target = self.start_node("churn")
        run = attach(target, "--frames=python")
        stacks = [sample.frames for sample in run.pprof.samples if javascript(sample)]
        self.assertTrue(stacks)
        # A mark stays: in a file without symbols a stack ends where C++ has called JavaScript.
        marks = {"[truncated: no unwinding rule]"} if is_stripped(target) else set()
        for frames in stacks:
            self.assertLessEqual({frame.name for frame in frames if not is_javascript(frame)}, marks)


if __name__ == "__main__":
    harness.main()
