# SPDX-License-Identifier: MIT
"""Java: what the virtual machine says of its threads' stacks is what is shown, by its names and lines."""

import collections
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile

import harness
from harness import attach, tried
from terminal import run_in_terminal

SOURCE = os.path.join(harness.HERE, "fixtures", "JavaStacks.java")
N_BLOCKED = 20
# How methods become machine code, as options of java: as they get hot, not at all, or at once.
AT_ONCE = ["-Xcomp", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,JavaStacks*::*"]
MODES = [[], ["-Xint"], [*AT_ONCE, "-XX:+UseSerialGC"]]
# Java tells all frames, also those that it leaves out as a rule, as those of lambdas' own classes.
ALL_FRAMES = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames"]
MIN_WHOLE = 0.99  # of running stacks
UNNAMED = re.compile(r"\[(anon|jit|unknown)\+")


def other_javas():
    """JDKs beside the one that is the default; JAVAS in the environment has more, with ":" between."""
    default = os.path.realpath(shutil.which("java") or "")
    more = os.environ.get("JAVAS", "").split(":")
    found = {os.path.realpath(path) for path in [*glob.glob("/usr/lib/jvm/*/bin/java"), *filter(None, more)]}
    return sorted(found - {default})


def java_frames(sample):
    """(name, file, line) of each, the innermost first. Native methods have no line."""
    return [
        (frame.name, frame.file, frame.line)
        for frame in reversed(sample.frames)
        if re.match(r"(java|jdk|JavaStacks)\b", frame.name)
    ]


def without_number(name):
    """The name of a lambda's class without what tells it from others of the same origin."""
    return re.sub(r"(\$\$Lambda)(\$\d+)?([/+]0x[0-9a-f]+)?(?=\.)", r"\1", re.sub(r"[/+]0x[0-9a-f]+(?=\.)", "", name))


# What exceptions do not show; up to JDK 20 other threads' stacks have it all the same.
HIDDEN = re.compile(r"\S+\$\$Lambda\.|java\.lang\.invoke\.(LambdaForm|\w+\$Holder|Invokers)")


def read_told(path, is_all):
    told = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            thread, stack = line.rstrip("\n").split(" ", 1)
            frames = re.findall(r"(\S+?)\(([^():]*):(-?\d+)\);", stack)
            named = [(without_number(name), file, max(int(n), 0)) for name, file, n in frames]
            told[thread] = [frame for frame in named if is_all or not HIDDEN.match(frame[0])]
    return told


def read_locks(path):
    """{thread: (class, owner)}; the threads in a deadlock."""
    told, dead = {}, set()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            name, *rest = line.rstrip("\n").split("|")
            if name == "dead":
                dead.add(rest[0])
            else:
                told[name] = (rest[0], rest[1])
    return told, dead


def short_name(lock):
    """As the program calls it."""
    name = re.sub(r"^java\.util\.concurrent\.(locks\.)?(AbstractQueuedSynchronizer\$)?", "", lock)
    return re.sub(r"\$(Nonfair|Fair)?Sync$", "", name) if name != lock else lock


def wait_kind(stack):
    """What a blocked thread waits for, by what it has called."""
    names = {name for name, _, _ in stack}
    if names & {"JavaStacks.entered", "JavaStacks.locked"}:
        return "lock"
    return "timer" if "java.lang.Thread.sleep" in names else "condition"


class Java(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        harness.need(shutil.which("java") and shutil.which("javac"), "no JDK is installed")
        cls.classes = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.classes.cleanup)
        javac = ["javac", "--release", "11", "-nowarn", "-d", cls.classes.name, SOURCE]
        subprocess.run(javac, check=True)

    def start_java(self, *args, java="java", options=()):
        return self.start(java, *options, "-cp", self.classes.name, "JavaStacks", *args)

    def check_blocked(self, java, options, *args):
        path = os.path.join(self.directory(), "stacks")
        target = self.start_java("blocked", path, java=java, options=options)
        run = attach(target, *args)
        told = read_told(path, "--frames=all" in args)
        self.assertEqual(len(told), N_BLOCKED)
        seen = set()
        for sample in run.pprof.samples:
            if sample.thread in told:
                frames = [(name, file if line else "", line) for name, file, line in java_frames(sample)]
                expected = [(name, file if line else "", line) for name, file, line in told[sample.thread]]
                self.assertEqual(frames, expected)
                self.assertIn(sample.stack[0], ("clone3", "clone"))
                self.assertEqual([name for name in sample.stack if UNNAMED.match(name)], [])
                seen.add(sample.thread)
        self.assertEqual(seen, told.keys())
        dump = [harness.PROFILER, "dump", str(target.pid)]
        text = subprocess.run(dump, stdout=subprocess.PIPE, check=True).stdout.decode()
        kinds = dict(re.findall(r'^"(blocked-\d+)" \d+ +(lock|timer|condition)\b', text, re.M))
        for thread, kind in kinds.items():
            self.assertEqual(kind, wait_kind(told[thread]), thread)
        # One that waits for a monitor wakes now and then, to look.
        n_enter = sum("JavaStacks.entered" in str(stack) for stack in told.values())
        self.assertGreaterEqual(len(kinds), N_BLOCKED - n_enter)
        return run

    def dump(self, target, told):
        """A dump in which no waiting thread was just looking at its monitor, as some do now and then."""
        for _ in range(10):
            dump = json.loads(harness.Run(["dump", "--json", str(target.pid)]).finish().stdout)
            threads = {thread["name"]: thread for thread in dump["threads"]}
            if all(threads[name]["waits_for"] for name, (_, owner) in told.items() if owner) and dump["deadlocks"]:
                break
        return dump, threads

    def check_dump(self, target, told, dead):
        dump, threads = self.dump(target, told)
        for name, (lock, owner) in told.items():
            waits = threads[name]["waits_for"]
            if not owner:
                self.assertFalse(waits and waits["owners"], name)
                continue
            self.assertEqual([(one["name"], one["tid"]) for one in waits["owners"]], [(owner, threads[owner]["tid"])])
            self.assertEqual(waits["symbol"], short_name(lock), name)
            self.assertEqual(waits["what"], "lock" if "concurrent" in lock else "monitor", name)
            self.assertEqual(threads[name]["kind"], "lock", name)
        self.assertEqual([set(tids) for tids in dump["deadlocks"]], [{threads[name]["tid"] for name in dead}])
        return {name: thread["tid"] for name, thread in threads.items()}

    def check_locks(self, java, options):
        path = os.path.join(self.directory(), "locks")
        target = self.start_java("locks", path, java=java, options=options)
        told, dead = read_locks(path)
        tids = self.check_dump(target, told, dead)
        waits = collections.defaultdict(set)
        for sample in attach(target, hz=99).pprof.samples:
            waits[sample.thread].add(sample.descriptor)
        for name, (lock, owner) in told.items():
            what = re.escape(short_name(lock))
            pattern = rf'\w+ {what} 0x[0-9a-f]+, held by "{owner}" {tids.get(owner)}$'
            if lock:
                self.assertRegex("".join(waits[name] - {None}), pattern if owner else rf"^\w+ o[fn] {what}$", name)
            else:
                self.assertEqual(waits[name] - {None}, set(), name)

    def test_locks(self):
        """What each thread waits for, who has it, and deadlocks, as Java itself tells."""
        for options in [["-XX:+UseSerialGC"], []]:
            with self.subTest(options=options):
                self.check_locks("java", options)

    @tried
    def test_blame(self):
        """Below a stack that waits, what the thread does in Java that has the monitor or the lock."""
        target = self.start_java("contended")
        stacks = attach(target, "--blame", "-t", duration="1", form="folded").stacks()
        for waiter, waits, does in (
            ("wants", "JavaStacks.entered", "JavaStacks.tally"),
            ("wants-lock", "java.util.concurrent.locks.ReentrantLock.lock", "JavaStacks.keep"),
        ):
            told = collections.Counter()
            for stack, n in stacks.items():
                if stack[0] == waiter and "--" in stack and waits in stack[: stack.index("--")]:
                    told[does in stack[stack.index("--") :]] += n
            # The holder is between two turns now and then.
            self.assertGreater(told[True], 4 * told[False], (waiter, told, stacks))

    def test_unread_heap(self):
        """ZGC moves objects at any time: who has a monitor is right, and no lock in the heap is named."""
        path = os.path.join(self.directory(), "locks")
        target = self.start_java("locks", path, options=["-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC"])
        told = {name[:15]: (lock, owner[:15]) for name, (lock, owner) in read_locks(path)[0].items()}
        seen = {}
        for _ in range(10):
            dump = json.loads(harness.Run(["dump", "--json", str(target.pid)]).finish().stdout)
            waits = {thread["name"]: thread["waits_for"] for thread in dump["threads"]}
            seen = {name: wait for name, wait in waits.items() if name in told and wait and wait["owners"]}
            if seen:
                break
        self.assertTrue(seen)
        for name, wait in seen.items():
            lock, owner = told[name]
            self.assertNotIn("concurrent", lock, name)
            self.assertEqual([one["name"] for one in wait["owners"]], [owner], name)

    def test_blocked(self):
        """Every name, file and line, interpreted, compiled and inlined; native frames around them."""
        for options in MODES:
            with self.subTest(options=options):
                run = self.check_blocked("java", options)
                parked = next(
                    s.stack for s in run.pprof.samples if "jdk.internal.misc.Unsafe.park" in s.stack
                )
                at = parked.index("jdk.internal.misc.Unsafe.park")
                self.assertLess(parked.index("start_thread"), at)
                self.assertIn("Unsafe_Park", parked[at:])

    def test_all_frames(self):
        """--frames=all shows those that Java's own stack traces leave out."""
        run = self.check_blocked("java", [*ALL_FRAMES, "-Xint"], "--frames=all")
        names = {name for sample in run.pprof.samples for name in sample.stack}
        self.assertTrue([name for name in names if name.startswith("JavaStacks$$Lambda")])

    def test_other_versions(self):
        """The other JDKs that are installed."""
        javas = other_javas()
        if not javas:
            self.skipTest("there is no other JDK here")
        for java in javas:
            with self.subTest(java=java):
                self.check_blocked(java, [])
                self.check_locks(java, [])

    def test_running(self):
        """Threads that compute: each stack begins at the thread's start, and each frame has a name."""
        target = self.start_java("running")
        run = attach(target, duration="1.5", hz=199)
        counts = run.stacks("running")
        total = sum(counts.values())
        whole = sum(n for stack, n in counts.items() if stack[0] in ("clone3", "clone"))
        named = sum(n for stack, n in counts.items() if not any(map(UNNAMED.match, stack)))
        self.assertGreaterEqual(whole, MIN_WHOLE * total)
        self.assertGreaterEqual(named, MIN_WHOLE * total)
        names = {name for stack in counts for name in stack}
        self.assertLessEqual(
            {"java.lang.Thread.run", "JavaStacks.spinFib", "JavaStacks.spinTree", "JavaStacks.spinLoop"},
            names,
        )
        for stack in counts:
            spins = [name for name in stack if name.startswith("JavaStacks.spin")]
            self.assertLessEqual(len(spins), 1, stack)

    @tried
    def test_vm_threads(self):
        """Collecting and compiling are one row of the table, not functions of the program's own."""
        target = self.start_java("churn", options=["-Xmx64m", "-XX:+UseParallelGC"])
        _, text = run_in_terminal(["-p", target.pid, "-d", "1.5"], self.directory())
        table = re.search(r"Functions, by their own time:\r?\n[^\n]*\n(.*?)\r?\n(Idle|\r?\n)", text, re.S)[1]
        names = [re.match(r"[ \d.]*\d (\D.*?)( \(.*)?\r?$", row)[1] for row in table.splitlines()]
        self.assertIn("[not in your code]", names)
        self.assertEqual([name for name in names if not re.match(r"\[not in|JavaStacks", name)], [])

    def test_unloading(self):
        """Classes come and go, at the same addresses: no method has the name of another one's."""
        target = self.start_java("churn", options=["-Xmx64m", "-XX:+UseSerialGC"])
        run = attach(target, "--max-overhead=50", duration="3", hz=997)
        n_own = 0
        for own, other in (("Even", "Odd"), ("Odd", "Even")):
            for stack, n in run.stacks(own.lower()).items():
                names = [name for name in stack if "Turn." in name]
                self.assertEqual([name for name in names if other in name or other.lower() in name], [])
                n_own += n if names else 0
        self.assertGreater(n_own, 0)

    def test_turned_off(self):
        """--runtimes=none shows the machine's frames."""
        target = self.start_java("running")
        run = attach(target, "--runtimes=none")
        names = {name for stack in run.stacks("running") for name in stack}
        self.assertFalse([name for name in names if name.startswith("JavaStacks.")])


if __name__ == "__main__":
    harness.main()
