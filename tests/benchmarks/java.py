# SPDX-License-Identifier: MIT
"""Java: how much less a busy program gets done beside the profiler and beside async-profiler, and what
share of its time each of its methods takes by both and by its own count.

ASYNC_PROFILER names a libasyncProfiler.so (in Maven: tools.profiler:async-profiler, linux-x64/ in its
jar); without one it is left out. The windows take turns: alone, beside one, alone, beside the other.
"""

import collections
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import bench
import programs

ASYNC = os.environ.get("ASYNC_PROFILER")
METHODS = ("accept", "parse", "check", "route", "look", "join", "render", "send")
OWN = re.compile(r"\bRequests\.(" + "|".join(METHODS) + r")\b")
ROW = 16  # numbers of each of the two threads


class Requests(bench.Command):
    def __init__(self):
        self.path = tempfile.mktemp(dir=bench.SCRATCH)
        source = os.path.join(programs.TARGETS, "Requests.java")
        super().__init__([programs.need("java"), source, self.path], settle_s=8)

    def counts(self):
        """The requests served, and the nanoseconds spent in each method."""
        with open(self.path, "rb") as file:
            numbers = struct.unpack(f"{2 * ROW}q", file.read(16 * ROW))
        return [numbers[i] + numbers[ROW + i] for i in range(1 + len(METHODS))]


class Async:
    """async-profiler in its wall-clock mode, loaded into the target."""

    def __init__(self, pid, interval_ms=10):
        self.pid, self.path = pid, tempfile.mktemp(dir=bench.SCRATCH)
        self.load(f"start,event=wall,interval={interval_ms}ms")

    def load(self, command):
        argv = ["jcmd", str(self.pid), "JVMTI.agent_load", ASYNC, f'"{command}"']
        if b"return code: 0" not in subprocess.run(argv, capture_output=True, check=True).stdout:
            raise RuntimeError("async-profiler cannot be loaded")

    def stop(self):
        self.load(f"stop,file={self.path},collapsed")
        return {}


def window(target):
    """Requests for each second, and for each second of the target's CPU time."""
    before = time.monotonic(), bench.process_cpu_s(target.pid), target.counts()[0]
    time.sleep(bench.SECONDS)
    after = time.monotonic(), bench.process_cpu_s(target.pid), target.counts()[0]
    wall_s, cpu_s, served = (a - b for a, b in zip(after, before))
    return served / wall_s, served / cpu_s


def interval(values):
    """The mean and half of its 95 % interval, as text."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("inf")
    return f"{statistics.mean(values):.2f} % ± {2.1 * error:.2f}"


def notes(ends):
    if not ends[0]:
        return "", "", ""
    frame_us = [1e6 * end["sampling_cpu_s"] / end["frames"] for end in ends]
    stop_us, paused = [end["hold_us"][0] for end in ends], [end["held_percent"] for end in ends]
    return f"{bench.median(frame_us):.1f} us", f"{bench.median(stop_us):.0f} us", f"{bench.median(paused):.2f} %"


def throughput(target, tools):
    ratios, ends = collections.defaultdict(list), collections.defaultdict(list)
    alone = window(target)
    for _ in range(bench.ROUNDS):
        for name, start in tools.items():
            tool = start(target.pid)
            time.sleep(0.5)
            beside = window(target)
            ends[name].append(tool.stop())
            after = window(target)
            ratios[name].append([200 * b / (x + y) for b, x, y in zip(beside, alone, after)])
            alone = after
    table = bench.Table(
        f"Java: 2 threads at work, 100 that wait ({bench.ROUNDS} windows of {bench.SECONDS:g} s each)",
        "tool", "throughput of alone", "median", "by the target's CPU time", "CPU time for a frame",
        "running thread stopped, median", "paused",
    )  # fmt: skip
    for name, pairs in ratios.items():
        wall, cpu = zip(*pairs)
        table.row(name, interval(wall), f"{bench.median(wall):.2f} %", interval(cpu), *notes(ends[name]))


def shares_of(counts):
    return {name: 100 * n / sum(counts.values()) for name, n in counts.items()}


def read_folded(path):
    counts = collections.Counter()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            stack, n = line.rsplit(" ", 1)
            for name in OWN.findall(stack)[-1:]:
                counts[name] += int(n)
    return counts


def shares(target):
    """All three at once, so that they tell of the same time."""
    path, before = tempfile.mktemp(dir=bench.SCRATCH), target.counts()
    other = Async(target.pid, interval_ms=2) if ASYNC else None
    argv = ["-p", str(target.pid), "-F", "499", "-d", "60", "-f", "folded", "-o", path, "--max-overhead=0"]
    subprocess.run([bench.harness.PROFILER, *argv], stderr=subprocess.DEVNULL, check=True)
    spent = [after - n for after, n in zip(target.counts(), before)][1:]
    told = [shares_of(dict(zip(METHODS, spent))), shares_of(read_folded(path))]
    if other:
        other.stop()
        told.append(shares_of(read_folded(other.path)))
    table = bench.Table("Java: share of each method", "method", "its own count", "profiler", "async-profiler")
    for name in METHODS:
        table.row(name, *(f"{of.get(name, 0):.2f} %" for of in told))
    worst = [max(abs(of.get(name, 0) - told[0][name]) for name in METHODS) for of in told[1:]]
    table.row("furthest off", "", *(f"{points:.2f} points, {bench.met(points <= 1)}" for points in worst))


def main():
    if not shutil.which("java") or not shutil.which("jcmd"):
        print("java is left out: no JDK is installed", file=sys.stderr)
        return
    tools = {"profiler, 99 Hz": lambda pid: bench.Profiling(pid, hz=99)}
    if ASYNC:
        tools["async-profiler, wall, 10 ms"] = Async
    with bench.ending(Requests()) as target:
        throughput(target, tools)
        shares(target)


if __name__ == "__main__":
    sys.exit(main())
