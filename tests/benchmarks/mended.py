# SPDX-License-Identifier: MIT
"""What it costs to mend the calls that a stop cuts: each kind of the torture suite's calls that are
cut, by itself, at 1,000 Hz.

A call that is entered again costs nothing more than its stop; each part of a continued one is two
more stops, at its entry and at its end. What was held is the stop that has cut the call.
"""

import os
import re
import subprocess
import sys

import bench

PROGRAM = os.path.join(os.environ.get("TORTURE", "build/tests/torture"), "torture-calls-O2")
GROUPS = ("cut", "sockets")
CALLS = re.compile(r"engine: of interrupted system calls, (\d+) restarted, (\d+) continued in (\d+) parts")
LEFT = re.compile(r"(\d+) system calls? ended early because of a pause")


def kinds_of(group):
    told = subprocess.run([PROGRAM, group, "0.1"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in told.splitlines() if line not in ("ready", "end")]


def measure(group, kind):
    """The kind's own line, and what the profiler has told."""
    command = [bench.harness.PROFILER, "-v", "-F", "1000", "--max-overhead=0", "-o", os.devnull, "--",
               PROGRAM, group, str(bench.SECONDS), kind]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    told = next(line for line in run.stdout.splitlines() if line.startswith(kind + " "))
    return told.split(), run.stderr


def main():
    table = bench.Table(
        f"Calls that are mended, at 1,000 Hz ({bench.SECONDS:g} s for each kind)",
        "calls", "made", "wrong", "stops", "entered again", "continued", "parts for each",
        "not mended", "hold, median",
    )  # fmt: skip
    for group in GROUPS:
        for kind in kinds_of(group):
            told, summary = measure(group, kind)
            engine, calls = bench.ENGINE.search(summary), CALLS.search(summary)
            again, rests, parts = (int(text) for text in calls.groups())
            left = LEFT.search(summary)
            table.row(
                kind, told[1], told[2], engine[1], again, rests,
                f"{parts / rests:.1f}" if rests else "-", left[1] if left else 0,
                f"{engine[2]} {engine[3]}",
            )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
