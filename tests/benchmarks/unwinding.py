# SPDX-License-Identifier: MIT
"""Figure 5: nanoseconds a frame, warm: our unwinder, and libdw's own on the same copies.

The program unwind_bench, linked with the layers, copies the stack of a live process at
random moments and unwinds each copy many times; UNWIND_BENCH names it.
"""

import os
import subprocess
import sys

import bench
import programs

SNAPSHOTS, INTERVAL_MS = 40, 20


def run(program, pid):
    text = subprocess.run(
        [program, str(pid), str(SNAPSHOTS), str(INTERVAL_MS)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return {name: float(value) for name, value in map(str.split, text.splitlines())}


def main():
    program = os.environ["UNWIND_BENCH"]
    table = bench.Table(
        f"Unwinding ({SNAPSHOTS} copies, CPU time, medians of {bench.ROUNDS} runs)",
        "figure", "program", "ns a frame", "runs", "target", "met", "and interned", "libdw's own",
        "frames", "libdw's frames", "rules",
    )  # fmt: skip
    for name in ("through qsort", "python3", "sqlite3", "perl", "cc1plus", "clang"):
        target = programs.start(name)
        if not target:
            continue
        with bench.ending(target):
            runs = [run(program, target.pid) for _ in range(bench.ROUNDS)]
        median = {key: bench.median([r[key] for r in runs]) for key in runs[0]}
        table.row(
            "5", name, f"{median['ours_ns']:.0f}", bench.spread([r["ours_ns"] for r in runs]),
            "<= 60", bench.met(median["ours_ns"] <= 60), f"{median['interned_ns']:.0f}",
            f"{median['libdw_ns']:.0f}", f"{median['frames']:.1f}",
            f"{median['libdw_frames']:.1f}", f"{median['rules']:.0f}",
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
