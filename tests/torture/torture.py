# SPDX-License-Identifier: MIT
"""What the torture tests share: self-checking programs, run alone and while they are profiled.

TORTURE in the environment says where the programs are, PROFILER_TORTURE_SECONDS how long each run
lasts: the default suits CI, more finds more.
"""

import collections
import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness  # noqa: E402
from harness import tried  # noqa: E402, F401

PROGRAMS = os.path.abspath(os.environ.get("TORTURE", "build/tests/torture"))
SECONDS = float(os.environ.get("PROFILER_TORTURE_SECONDS", "1"))
LONG = SECONDS >= 5
ALL_MODES = [(hz, more) for more in ((), ("--stop-all",)) for hz in (99, 1000)]
# A sanitized profiler is there to find its own faults, not the target's.
MODES = ALL_MODES[::3] if harness.is_sanitized() and not LONG else ALL_MODES
BUILDS = {"calls-O2": MODES[::3], "calls-O0": MODES[1:3]}
START_TRIES = 10  # of a profiler that begins more slowly than its target ends
# How likely it is that one of the many bounds on what may happen by chance is exceeded.
MAX_CHANCE = 1e-6
ALL_TICKS = "--max-overhead=0"  # the most that the target can be asked to bear

Told = collections.namedtuple("Told", "name calls faults median_ms p90_ms fault")


def program(name):
    path = os.path.join(PROGRAMS, "torture-" + name)
    assert os.path.exists(path), f"{path} is not built: set TORTURE"
    return path


def parse(lines):
    """What a self-checking program said before its "end", a Told by each name."""
    assert lines and lines[-1] == "end", f"it did not come to its end: {lines}"
    rows = [line.split(None, 5) for line in lines[:-1]]
    return {
        row[0]: Told(row[0], int(row[1]), int(row[2]), float(row[3]), float(row[4]),
                     row[5] if len(row) > 5 else "")
        for row in rows
    }  # fmt: skip


def describe(hz, more):
    return " ".join([f"{hz} Hz", *more])


class TestCase(harness.TestCase):
    def start_program(self, name, *args, **target):
        return self.start(program(name), *args, **target)

    def run_alone(self, name, *args):
        target = self.start_program(name, *args)
        return parse(target.rest())

    def run_profiled(self, hz, more, name, *args, pid=None):
        """Runs it to its end, attached to; what it said, and the finished run."""
        for _ in range(START_TRIES):
            target = self.start_program(name, *args)
            run = harness.start_attach(
                pid(target) if pid else target, ALL_TICKS, *more, "-d", "600", hz=hz
            )
            lines = target.rest()
            self.assertEqual(target.process.wait(), 0, f"of the program, which said {lines}")
            told = parse(lines)
            run.finish(expect=None)
            if run.status == 0:
                return told, run
            self.assertRegex(run.stderr, "no process|has ended", "other than late")
        raise AssertionError(f"the profiler comes too late: {run.stderr}")

    def assert_no_faults(self, told):
        faults = [f"{t.name}: {t.faults} of {t.calls}: {t.fault}" for t in told.values() if t.faults]
        self.assertEqual(faults, [], "the target found faults")
        for one in told.values():
            self.assertGreater(one.calls, 0, one.name)

    def assert_untouched(self, pid, timeout_s=harness.WAIT_TIMEOUT_S):
        """No thread of the process is stopped or traced; soon, if a profiler is just dying."""
        touched = []

        def is_untouched():
            states = [harness.read_status(pid, tid) for tid in harness.tids_of(pid)]
            states = [status for status in states if status]
            assert states, f"process {pid} has ended"
            touched[:] = [
                f"{s['Pid']}: {s['State']}, tracer {s['TracerPid']}"
                for s in states
                if s["State"][0] in "tT" or s["TracerPid"] != "0"
            ]
            return not touched

        try:
            harness.wait_for(is_untouched, f"process {pid} to be let go", timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}: {touched}") from None


class CallsCase(TestCase):
    """For code without and with frame pointers: each in half of the modes where time is short, else
    in all."""

    def check_all(self, group, *more_args):
        for build, modes in BUILDS.items():
            for hz, more in MODES if LONG else modes:
                # Most stops are at the high rate: what is done to the calls besides is tried at that one.
                if LONG or hz == 1000 or not more_args:
                    with self.subTest(f"{build}, {describe(hz, more)}"):
                        self.check(hz, more, build, group, SECONDS, *more_args)

    def check(self, hz, more, *command):
        told, _ = self.run_profiled(hz, more, *command)
        self.assert_no_faults(told)


def most_by_chance(mean):
    """The least number that Poisson's distribution exceeds with at most MAX_CHANCE."""
    count, chance, exceeds = 0, math.exp(-mean), 1 - math.exp(-mean)
    while exceeds > MAX_CHANCE:
        count += 1
        chance *= mean / count
        exceeds -= chance
    return count


def rounds(default):
    """How often something is tried that takes no given time: more where there is more time."""
    return max(1, int(default * SECONDS))


def pause(seconds):
    time.sleep(seconds)


def main():
    harness.main()
