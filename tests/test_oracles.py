# SPDX-License-Identifier: MIT
"""Oracles that know the truth: targets that publish their call path, formats that must agree."""

import array
import bisect
import collections
import os
import re
import signal
import sys
import time

import harness
import pprof
import told
from harness import wrap
from test_record import Recorded, report

LEVELS, MAX_ROUNDS = 24, 1 << 16  # as in fixtures/paths.c
MIN_ROUNDS = 20  # of each walker, while it is sampled
CLOCKS_NS = 10**6  # between readings of the clocks for the profile's start
BIT = {"zero": 0, "one": 1}


def decode(names):
    """The round that a path tells, as (its known bits, their number); None: there is no such."""
    number = n_bits = parity = 0
    for level, name in enumerate(names):
        bit = BIT[name]
        if level % 3 != 2:
            number |= bit << n_bits
            n_bits += 1
        elif bit != (parity ^ level) & 1:
            return None
        parity ^= bit
    return number, n_bits


class Path:
    """What a sample of a walker shows: in walk a call of zero or one for each level, then of leaf,
    each by way of descend, which is inlined."""

    def __init__(self, stack):
        below = list(stack[stack.index("walk") + 1 :]) if "walk" in stack else []
        self.is_whole = "leaf" in stack
        names = below[: below.index("leaf")] if self.is_whole else below
        bits = [name for name in names if name in BIT]
        calls = [name for bit in bits for name in ("descend", bit)]
        ends = [calls + ["descend"]] if self.is_whole else [calls, calls + ["descend"]]
        between = not bits and not self.is_whole  # rounds, where walk reads the time
        self.is_right = between or (
            names in ends and (len(bits) == LEVELS or not self.is_whole)
        )
        self.decoded = decode(bits) if len(bits) <= LEVELS else None
        self.is_right &= self.decoded is not None


class PublishedPaths(harness.TestCase):
    """Each sample's functions are those of the instant, by the target's own account."""

    def test_decode(self):
        """An oracle that accepts everything knows nothing."""
        def encode(number):
            names, parity = [], 0
            for level in range(LEVELS):
                bit = (parity ^ level) & 1 if level % 3 == 2 else number & 1
                number >>= level % 3 != 2
                parity ^= bit
                names += ["descend", ["zero", "one"][bit]]
            return names + ["descend"]

        for number in (0, 1, 4711, MAX_ROUNDS - 1):
            names = encode(number)
            stack = ("start", "walk", *names, "leaf", "nanosleep")
            self.assertTrue(Path(stack).is_right)
            self.assertEqual(Path(stack).decoded, (number, 16))
            for at in range(2 * LEVELS):
                self.assertTrue(Path(("walk", *names[:at])).is_right)
                self.assertEqual(Path(("walk", *names[:at], "x")).is_right, at < 2)
                self.assertFalse(Path(("walk", *names[:at], "leaf")).is_right)
                self.assertFalse(Path(("walk", *names[:at], "x", *names[at:], "leaf")).is_right)
                without = (*names[:at], *names[at + 1 :])
                self.assertFalse(Path(("walk", *without, "leaf")).is_right)
                if names[at] in BIT:
                    other = "one" if names[at] == "zero" else "zero"
                    wrong = (*names[:at], other, *names[at + 1 :])
                    self.assertFalse(Path(("walk", *wrong, "leaf")).is_right)
            self.assertFalse(Path(("walk", *names, "one", "descend", "leaf")).is_right)

    def rounds(self, samples, period_ns):
        """[round, its ticks' time], in the order in which they were first seen, which is that of the
        samples; and the time of which it is not known where it belongs: of samples that are of no
        certain round, of ticks that were missed or left out, and of the first tick, which stands for
        none. (Wall times are weighed by the kernel's count, and do not tell when a tick was.)"""
        ticks = sum(sample.count for sample in samples)
        missing_ns = sum(sample.wall_ns for sample in samples) - (ticks - 1) * period_ns
        rounds, others_ns = [], max(0, missing_ns) + period_ns
        for sample in samples:
            tick_ns = sample.count * period_ns
            path = Path(sample.stack)
            if sample.stack[0].startswith("[truncated") or "walk" not in sample.stack:
                others_ns += tick_ns
                continue
            self.assertTrue(path.is_right, sample.stack)
            number = path.decoded[0]
            if not path.is_whole:
                others_ns += tick_ns
            elif rounds and rounds[-1][0] == number:
                rounds[-1][1] += tick_ns
            else:
                rounds.append([number, tick_ns])
        return rounds, others_ns

    def check_times(self, rounds, others_ns, starts, begin_ns, period_ns):
        """A round whose last sample was at tick t had not ended then, and it had begun when the
        next one came. Ticks are known from the wall times but for their places within periods:
        samples stand for whole periods, up to the end of that in which the tick was. Of the others
        it is not known when they were."""
        time_ns = begin_ns - period_ns  # of the first tick
        for (number, wall_ns), (following, next_wall_ns) in zip(rounds, rounds[1:]):
            self.assertLess(number, following, "a round of the past")
            time_ns += wall_ns
            self.assertGreater(starts[number + 1] + CLOCKS_NS, time_ns - period_ns)
            self.assertLess(starts[number], time_ns + next_wall_ns + others_ns + CLOCKS_NS)

    def starts_of(self, path, threads):
        """For each thread, when its rounds began; 0: not yet."""
        starts = array.array("q")
        with open(path, "rb") as file:
            starts.frombytes(file.read())
        return [starts[n * MAX_ROUNDS : (n + 1) * MAX_ROUNDS] for n in range(threads)]

    def count_rounds(self, path, threads):
        return [bisect.bisect_left(own, True, key=lambda start: start == 0)
                for own in self.starts_of(path, threads)]  # fmt: skip

    def check(self, *args, hz, seconds=1.5, threads=6):
        path = os.path.join(self.directory(), "paths")
        target = self.start_fixture("paths", path, threads)
        harness.wait_for(lambda: all(self.count_rounds(path, threads)), "their first rounds")
        run = harness.start_attach(target, *args, hz=hz)
        run.wait_attached()
        before = self.count_rounds(path, threads)
        time.sleep(seconds)  # not long enough where others have the CPUs
        harness.wait_for(
            lambda: all(
                now > first + MIN_ROUNDS
                for first, now in zip(before, self.count_rounds(path, threads))
            ), f"{MIN_ROUNDS} rounds of each",
        )  # fmt: skip
        run.signal(signal.SIGINT)
        run.finish()
        target.end()
        by_thread = collections.defaultdict(list)
        for sample in run.pprof.samples:
            by_thread[sample.thread].append(sample)
        for number, own in enumerate(self.starts_of(path, threads)):
            rounds, others_ns = self.rounds(by_thread[f"walker-{number}"], run.pprof.period_ns)
            self.check_times(rounds, others_ns, own, run.pprof.time_ns, run.pprof.period_ns)
            self.assertGreater(len(rounds), 5, (number, run.stderr))
        return run

    def test_often(self):
        self.check(hz=1000)

    def test_all_at_once(self):
        self.check("--stop-all", hz=251)


def folded_of(profile, args):
    """What folded output must be, by the same profile as pprof."""
    counts = collections.Counter()
    for sample in profile.samples:
        names = []
        for frame in sample.frames:
            name = frame.name.replace(";", ":")
            if "--lines" in args and frame.file:
                line = f":{frame.line}" if frame.line else ""
                name += f" ({frame.file.rsplit('/', 1)[-1]}{line})"
            if frame.inlined:
                name += "_[i]"
            names.append(re.sub(r" ([\d.]*\d[\d.]*)\Z", r"_\1", name))
        counts[tuple(names)] += sample.count
    return counts


class Formats(harness.TestCase):
    """pprof and folded output of one run agree in every count."""

    def check(self, recorded, *args):
        as_pprof, _ = report(recorded.data, "-f", "pprof", "-o", "-", *args)
        as_folded, _ = report(recorded.data, "-f", "folded", "-o", "-", *args)
        folded = told.read_folded(as_folded)
        self.assertEqual(folded, folded_of(pprof.Profile(as_pprof), args))
        return sum(folded.values())

    def record(self, name, *args, options=(), duration="0.7"):
        target = self.start_fixture(name, *args)
        return Recorded(target, *options, duration=duration).finish()

    def test_calls(self):
        for name, *args in (("recursion", 5), ("churn",), ("cxx-O2", "virtual"), ("threads", 8, 2)):
            recorded = self.record(name, *args)
            for options in ([], ["--lines"], ["--off-cpu"], ["--focus=main", "--lines"]):
                n = self.check(recorded, *options)
                if not options:
                    self.assertEqual(n, recorded.summary.samples)

    def test_waits(self):
        recorded = self.record("blocking", options=["-k"])
        for options in ([], ["--syscalls"], ["--syscalls", "--syscall=read", "--ignore=in_recv"]):
            self.check(recorded, *options)

    def test_strange_names(self):
        self.check(self.record("strange_names"))

    def test_a_program(self):
        """Many different stacks, with inlined calls."""
        path = os.path.join(self.directory(), "out.wprof")
        code = "import re,json\nfor i in range(300): re.compile('(a|b%d)*' % i); json.dumps([i] * 999)"
        run = wrap([sys.executable, "-c", code], "-o", path, "-f", "record", hz=997)
        with open(path, "rb") as file:
            run.data = file.read()
        for options in ([], ["--lines"]):
            self.check(run, *options)


if __name__ == "__main__":
    harness.main()
