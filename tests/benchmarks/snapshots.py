# SPDX-License-Identifier: MIT
"""Figure 4: the CPU time that one look at all threads takes: ours, eu-stack's and gdb's.

Ours is a tick at 99 Hz, after the start; each run of a peer is a whole one, since it has to be
started for each look. Beside it stands what a whole run of ours of a single tick takes, names and
file included.
"""

import sys
import time

import bench
import programs


def steady_tick_s(pid):
    """CPU time of a tick once the rules are known."""
    run = bench.Profiling(pid, hz=99)
    time.sleep(1)
    start_s, cpu_s = time.monotonic(), run.cpu_s()
    time.sleep(2 * bench.SECONDS)
    cpu_s = run.cpu_s() - cpu_s
    ticks = 99 * (time.monotonic() - start_s)
    figures = run.stop()
    # Those that were left out cost nothing: what is left is for those that were kept.
    kept = figures["ticks"] / (figures["ticks"] + figures["thinned"] + figures["missed"])
    return cpu_s / (ticks * kept)


def single_s(pid):
    return bench.Profiling(pid, "-d", "0.001", hz=1).finish()["total_cpu_s"]


def main():
    table = bench.Table(
        f"One snapshot of all threads, CPU time (medians of {bench.ROUNDS})",
        "figure", "target", "threads", "a tick of ours", "eu-stack", "gdb", "eu-stack : ours",
        "gdb : ours", "target", "met", "a whole run of ours",
    )  # fmt: skip
    for name in ("python3, 10 threads", "java, 40 threads", "cc1plus"):
        target = programs.start(name)
        if not target:
            continue
        ours, ours_whole, eu_stack, gdb = [], [], [], []
        with bench.ending(target):
            threads = len(bench.harness.tids_of(target.pid))
            for _ in range(bench.ROUNDS):
                ours.append(steady_tick_s(target.pid))
                ours_whole.append(single_s(target.pid))
                eu_stack.append(bench.run_cpu_s(bench.eu_stack(target.pid))[0])
                gdb.append(bench.run_cpu_s(bench.gdb(target.pid))[0])
        us, whole, eu, debugger = (
            1e6 * bench.median(values) for values in (ours, ours_whole, eu_stack, gdb)
        )
        table.row(
            "4", name, threads, f"{us:.0f} us", f"{eu / 1e3:.1f} ms", f"{debugger / 1e3:.0f} ms",
            f"{eu / us:.0f}", f"{debugger / us:.0f}", ">= 100, >= 1,000",
            bench.met(eu >= 100 * us and debugger >= 1000 * us), f"{whole / 1e3:.1f} ms",
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
