# SPDX-License-Identifier: MIT
"""Java: what a frame costs, for how long a running thread is stopped, how soon the first sample
comes, and how much less a busy program gets done, beside jcmd Thread.print and jstack in a loop.

async-profiler (in Maven: tools.profiler:async-profiler) is not compared here: RESULTS.md has one run by hand.
"""

import os
import shutil
import sys
import tempfile
import time

import bench
import programs


class Requests(bench.Command):
    def __init__(self):
        self.path = tempfile.mktemp(dir=bench.SCRATCH)
        source = os.path.join(programs.TARGETS, "Requests.java")
        super().__init__([programs.need("java"), source, self.path], settle_s=5)

    def count(self):
        with open(self.path, encoding="utf-8") as file:
            return int(file.read())


def rate(target):
    """Counts for each second of the target's own CPU time, which others do not change."""
    cpu_s, count = bench.process_cpu_s(target.pid), target.count()
    time.sleep(bench.SECONDS)
    return (target.count() - count) / (bench.process_cpu_s(target.pid) - cpu_s)


def tools():
    yield "profiler, 99 Hz", lambda pid: bench.Profiling(pid, hz=99)
    yield "profiler, 997 Hz", lambda pid: bench.Profiling(pid, hz=997)
    for name, argv in (("jcmd Thread.print", ["jcmd"]), ("jstack", ["jstack"])):
        if shutil.which(argv[0]):
            rest = ["Thread.print"] if argv[0] == "jcmd" else []
            yield f"{name} in a loop", lambda pid, argv=argv, rest=rest: bench.Loop(
                [*argv, str(pid), *rest]
            )


def notes(ends):
    if "rate" in ends[0]:
        return "", "", "", f"{bench.median([end['rate'] for end in ends]):.1f} dumps a second"
    stops = [end["hold_us"] for end in ends]
    frame_us = bench.median([1e6 * end["sampling_cpu_s"] / end["frames"] for end in ends])
    return (
        f"{frame_us:.1f} us",
        f"{bench.median([stop[0] for stop in stops]):.0f} us, {bench.median([stop[1] for stop in stops]):.0f} us",
        f"{bench.median([end['held_percent'] for end in ends]):.2f} %",
        f"{sum(end['missed'] for end in ends)} of {sum(end['ticks'] for end in ends)} ticks missed",
    )


def throughput(target):
    table = bench.Table(
        f"Java: 2 threads at work, 100 that wait ({bench.SECONDS:g} s a window, {bench.ROUNDS} each)",
        "tool", "work of alone, by CPU time", "quartiles", "CPU time for a frame, all included",
        "running thread stopped: median, p99", "paused", "notes",
    )  # fmt: skip
    for name, start in tools():
        ratios, ends = [], []
        alone = rate(target)
        for _ in range(bench.ROUNDS):
            tool = start(target.pid)
            time.sleep(0.5)
            beside = rate(target)
            ends.append(tool.stop())
            after = rate(target)
            ratios.append(200 * beside / (alone + after))
            alone = after
        table.row(name, f"{bench.median(ratios):.1f} %", bench.spread(ratios), *notes(ends))


def attaching(target):
    table = bench.Table("Java: the first sample", "tool", "wall", "CPU")
    path = os.path.join(bench.SCRATCH, "one")
    one = [bench.harness.PROFILER, "-p", str(target.pid), "-d", "0.001", "-F", "1", "-o", path]
    runs = {"profiler, one sample, start to file": one}
    if shutil.which("jcmd"):
        runs["jcmd Thread.print"] = ["jcmd", str(target.pid), "Thread.print"]
    if shutil.which("jstack"):
        runs["jstack"] = ["jstack", str(target.pid)]
    for name, argv in runs.items():
        times = [bench.run_cpu_s(argv) for _ in range(bench.ROUNDS)]
        wall_s, cpu_s = (bench.median([one[i] for one in times]) for i in (1, 0))
        table.row(name, f"{1e3 * wall_s:.0f} ms", f"{1e3 * cpu_s:.0f} ms")


def main():
    if not shutil.which("java"):
        print("java is left out: it is not installed", file=sys.stderr)
        return
    with bench.ending(Requests()) as target:
        attaching(target)
        throughput(target)


if __name__ == "__main__":
    sys.exit(main())
