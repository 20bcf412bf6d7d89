# SPDX-License-Identifier: MIT
"""Figure 8: how long a running thread is held, on a machine with four spinning processes for each
CPU, one of which is sampled; and what an idle machine says to it."""

import contextlib
import sys

import bench


def show(table, what, n_others, hz):
    runs = []
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(bench.ending(bench.Crowd(0, 1)))
        for _ in range(n_others):
            stack.enter_context(bench.ending(bench.Crowd(0, 1)))
        for _ in range(bench.ROUNDS):
            runs.append(bench.Profiling(target.pid, "-d", 2 * bench.SECONDS, hz=hz).finish())
    medians = [r["hold_us"][0] for r in runs]
    median = bench.median(medians)
    table.row(
        "8" if n_others else "", what, f"{median:.0f} us", bench.spread(medians),
        "<= 200 us" if n_others else "", bench.met(median <= 200) if n_others else "",
        f"{bench.median([r['hold_us'][1] for r in runs]):.0f} us",
        f"{max(r['hold_us'][2] for r in runs):.0f} us", sum(r["stops"] for r in runs),
        runs[0]["priority"],
    )  # fmt: skip


def main():
    table = bench.Table(
        f"Hold of a running thread ({2 * bench.SECONDS:g} s a run, {bench.ROUNDS} runs for each)",
        "figure", "machine", "median", "quartiles of the medians", "target", "met",
        "median p99", "max", "stops", "priority",
    )  # fmt: skip
    n = 4 * bench.CPUS
    show(table, f"{n} spinning processes on {bench.CPUS} CPUs, 99 Hz", n - 1, 99)
    show(table, f"{n} spinning processes on {bench.CPUS} CPUs, 999 Hz", n - 1, 999)
    show(table, "the target alone, 99 Hz", 0, 99)


if __name__ == "__main__":
    sys.exit(main())
