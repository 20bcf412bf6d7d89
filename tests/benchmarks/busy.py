# SPDX-License-Identifier: MIT
"""Figure 8: how long a running thread is held, on a machine with four spinning processes for each
CPU, one of which is sampled; what an idle machine says to it; and whether it is held longer for the
sake of 30,000 threads that sleep beside it, or of a very deep stack."""

import contextlib
import sys

import bench
import harness


def spinner():
    return bench.Crowd(0, 1)


def spinner_in_a_crowd():
    return bench.Crowd(30000, 1)


def spinner_deep_down():
    return harness.Target([harness.find_tool("prlimit"), "--stack=unlimited",
                           harness.fixture("recursion"), "1000000", "spin"])  # fmt: skip


def show(table, what, n_others, hz, start=spinner):
    runs = []
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(bench.ending(start()))
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
    show(table, "30,000 threads sleep beside it, 99 Hz", 0, 99, spinner_in_a_crowd)
    show(table, "a stack of 1,000,000 frames, 99 Hz", 0, 99, spinner_deep_down)


if __name__ == "__main__":
    sys.exit(main())
