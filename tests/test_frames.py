# SPDX-License-Identifier: MIT
"""Functions whose frames have no fixed size: each stack of their threads is a way that the program
may have gone (tests/fixtures/frames.c), and none has frames of another one's."""

import itertools
import os
import re

import harness
from harness import FIXTURES, LEAVES, MAIN, Run, attach, start_attach

HZ = 997
SECONDS = 2
N_THREADS = 4
BUILDS = ("frames-O0", "frames-O2", "frames-O2-fp", "frames-clang-O0", "frames-clang-O2")
SHAPES = ("plain", "alloca", "array", "realigned", "many", "sometimes")
N_LEVELS = 5
HELPERS = {"next_2", "next_3", "next_4", "next_5", "at_end"}  # inlined
# Where each function saves the frame pointer, the first one's frame tells it: its size is fixed.
NEVER_STOPPED = ("frames-O0", "frames-O2-fp")
MAX_MARKED = 0.001
# Of the samples, those of threads that sleep for microseconds where only a stop shows their callers,
# and had woken before it.
MAX_WOKEN = 0.25


def choices(code):
    first = (code * 2654435761 % 2**32) >> 28
    return {SHAPES[(first + i) % len(SHAPES)] for i in (0, 1)}


def check_way(names):
    """What is wrong with the frames below wander; None: nothing."""
    code, rest = 1, list(names)
    for level in itertools.count(1):
        if not rest or rest[0] != f"level_{level}" or level > N_LEVELS:
            break
        shape = rest[1].removesuffix(f"_{level}") if len(rest) > 1 else None
        if shape not in SHAPES:
            break  # the leaf, or in what it calls to choose
        if shape not in choices(code):
            return f"{rest[1]} may not come here"
        code = (code * 8 + SHAPES.index(shape) + 1) % 2**32
        rest = rest[2:]
    ours = [name for name in rest if re.fullmatch(r"\w+_\d", name) or name in ("main", "wander")]
    if len(ours) > 1 or (ours and ours != rest[:1]):
        return f"{ours} may not follow"
    return None


def check_stack(stack):
    names = [name for name in stack if name not in HELPERS]
    if names == ["clone3"]:
        return None  # a thread that has not begun
    if "wander" not in names:
        # Ends of libc's and of threads that are being made.
        return None if names[-1] == "main" or "pthread_create" in names else "no wander"
    at = names.index("wander")
    return check_way(names[at + 1 :])


class Frames(harness.TestCase):
    def judge(self, run, stops=True):
        run.finish()
        n = sum(s.count for s in run.pprof.samples)
        wrong, marked, woken = [], 0, 0
        for sample in run.pprof.samples:
            stack = list(sample.stack)
            if stops and stack[0] == "[truncated: unknown register]":
                woken += sample.count
                continue
            if stack[0].startswith("[truncated"):
                marked += sample.count
                continue
            why = check_stack(stack)
            if why:
                wrong.append((sample.count, why, ";".join(stack)))
        self.assertEqual(wrong, [], f"of {n}")
        self.assertLessEqual(marked, 1 + MAX_MARKED * n, run.stderr)
        self.assertLessEqual(woken, MAX_WOKEN * n, run.stderr)
        return n

    def start_run(self, build):
        target = self.start_fixture(build, N_THREADS)
        return start_attach(target, "-d", SECONDS, "--max-overhead=0", hz=HZ)

    def test_all_at_once(self):
        """More threads than the machine has CPUs."""
        built = [build for build in BUILDS if os.path.exists(os.path.join(FIXTURES, build))]
        for build, run in [(build, self.start_run(build)) for build in built]:
            with self.subTest(build):
                self.assertGreater(self.judge(run, build not in NEVER_STOPPED), 100)
                if build in NEVER_STOPPED:
                    self.assertIn("; 0 stopped asleep", run.stderr)

    def test_jump_table(self):
        """Its cases stand behind calls that never return, with pushed arguments."""
        target = self.start_fixture("jump_table")
        run = start_attach(target, "-d", 1, "--max-overhead=0", hz=HZ)
        run.finish()
        whole = sum(s.count for s in run.pprof.samples if "main" in s.stack and "choose" in s.stack)
        # A nap that is over by the time of the stop is told by the look before it, which had no registers.
        cut = [s for s in run.pprof.samples if s.stack[:2] == ("[truncated: unknown register]", "choose")]
        wrong = [s.stack for s in run.pprof.samples if "main" not in s.stack and s not in cut]
        self.assertEqual(wrong, [])
        self.assertGreater(whole, max(50, sum(s.count for s in cut)))


class ManyStacks(harness.TestCase):
    """Callers on several other stacks (tests/fixtures/many_stacks.c)."""

    @staticmethod
    def callers(n):
        # The last call is on one side, since n_left counts down to it.
        calls = ["call_on" if left % 2 == 0 else "call_noted" for left in range(n - 1, -1, -1)]
        frames = itertools.chain(*([call, "go_on"] for call in calls))
        return ["main", "go_on", *frames, "on_the_last"]

    def test_profile(self):
        for n, *mode in harness.a_few(((1,), (2,), (6,), (1, "asleep"), (6, "asleep"))):
            with self.subTest(n=n, mode=mode):
                run = attach(self.start_fixture("many_stacks", n, *mode))
                leaves = rf";pause{LEAVES}" if mode else ""
                wanted = rf"{MAIN};{';'.join(self.callers(n)[1:])}{leaves}"
                counts = run.stacks()
                partial = [s for s in counts if s[0] == "[truncated: unreadable memory]"]
                # Ticks at which it waits for a CPU show what the next stop does.
                ticks = run.summary.ticks
                waited = ticks // 2 if mode else ticks - run.summary.stopped
                n_partial = sum(counts.pop(stack) for stack in partial)
                self.assertLessEqual(n_partial, 2 * n + waited, run.stderr)
                self.assert_stacks(counts, wanted)

    def test_bottom(self):
        """What lies at the bottom of a fiber's stack, a function's address among it, is no caller."""
        run = attach(self.start_fixture("fiber_bottom"))
        counts = run.stacks()
        main = [stack for stack in counts if "main" in stack]
        for stack in main:
            del counts[stack]
        marked = r"\[truncated: no return address\]"
        self.assert_stacks(counts, rf"{marked};enter_fiber;serve_guest;cook_meal")

    def test_dump(self):
        """It looks once, but as often as that shows more."""
        for n, *mode in ((1,), (6,), (1, "asleep"), (6, "asleep")):
            with self.subTest(n=n, mode=mode):
                target = self.start_fixture("many_stacks", n, *mode)
                run = Run(["dump", target.pid], target_pid=target.pid)
                lines = run.finish().stdout.decode().splitlines()
                names = [line.split()[0] for line in lines if line.startswith("    ")][::-1]
                at = names.index("main") if "main" in names else 0
                wanted = self.callers(n)
                self.assertEqual(names[at : at + len(wanted)], wanted, lines)


if __name__ == "__main__":
    harness.main()
