# SPDX-License-Identifier: MIT
"""Figure 6: the profiler's memory, sampling at 999 Hz for BENCHMARK_MEMORY_SECONDS (600).

RssAnon is what the profiler allocated; RssFile what it and libdw map of files, the target's own
among them. What grows may grow with the distinct stacks alone, 1 KB for each. Both targets, a deep
Python program and a crowd of threads, are sampled at the same time. At the end the memory is
looked at again and again, until the profile is written.
"""

import contextlib
import os
import signal
import sys
import time

import bench
import programs

SECONDS = float(os.environ.get("BENCHMARK_MEMORY_SECONDS", "600"))
SHARES = (0.02, 0.1, 0.25, 0.5, 0.75, 1)


def watch_end(run):
    """The most RssAnon and RssFile from the end of sampling to the process's end."""
    run.process.send_signal(signal.SIGINT)
    most = [0, 0]
    while run.process.poll() is None:
        now = bench.memory_kb(run.worker)
        if now:
            most = [max(pair) for pair in zip(most, now)]
        time.sleep(0.002)
    return most


class Watched(bench.Profiling):
    """A run whose process is waited for elsewhere."""

    def text(self):
        self.stderr.seek(0)
        return self.stderr.read().decode("utf-8", "replace")


def main():
    table = bench.Table(
        f"Memory at 999 Hz for {SECONDS:g} s, MB",
        "figure", "target", *(f"RssAnon at {share * SECONDS:g} s" for share in SHARES),
        "RssFile", "most RssAnon while writing", "most RssFile", "target", "met", "notes",
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        targets = {"python3, 10 threads": programs.start("python3, 10 threads")}
        targets["160 threads"] = bench.Crowd(155, 5, 500, 2000)
        for target in targets.values():
            stack.enter_context(bench.ending(target))
        runs = {
            name: Watched(target.pid, "--max-overhead=0", hz=999)
            for name, target in targets.items()
        }
        seen = {name: [] for name in targets}
        start_s = time.monotonic()
        for share in SHARES:
            time.sleep(max(0, start_s + share * SECONDS - time.monotonic()))
            for name, run in runs.items():
                seen[name].append(bench.memory_kb(run.worker))
        for name, run in runs.items():
            most = watch_end(run)
            anon = [kb[0] / 1024 for kb in seen[name]]
            ticks = bench.TICKS.search(run.text())
            stacks = run.text().split(" distinct stacks")[0].rsplit(" ", 1)[1]
            grown_kb = seen[name][-1][0] - seen[name][0][0]
            most_mb = max(*anon, most[0] / 1024)
            table.row(
                "6", name, *(f"{mb:.1f}" for mb in anon), f"{seen[name][-1][1] / 1024:.1f}",
                f"{most[0] / 1024:.1f}", f"{most[1] / 1024:.1f}", "<= 32 MB, no growth",
                bench.met(most_mb <= 32 and grown_kb <= int(stacks)),
                f"{ticks[1]} ticks, {ticks[4]} missed, {stacks} distinct stacks: "
                f"{grown_kb / int(stacks):.2f} KB for each",
            )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
