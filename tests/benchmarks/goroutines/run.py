#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a profile of goroutines costs a Go program, beside fgprof in the same program. By hand:

    nice -n -15 env PROFILER=build/profiler FLOOR=build/tests/floor run.py

One process for each number of parked goroutines, as two processes may differ by 30 % in what they
get done. Windows by turns in it: alone, profiler, alone, fgprof, and so on, each set against those
alone just before and after; the rounds by the clock and for each second of the program's own CPU
time. Told are the median, an interval in which it lies with 95 % (bootstrap), and the quartiles.
"threads" is --runtimes=none, "floor" stops the thread that runs and does nothing else (floor.c),
and "alone" is a window alone between two others: the noise. CPU of the tool is in percent of one CPU.

BENCHMARK_ROUNDS, BENCHMARK_SECONDS (of a window) and BENCHMARK_PARKED ("0 1000 10000 100000")
change the run. The module of fgprof comes by its name.
"""

import os
import random
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

import bench  # noqa: E402
import latency  # noqa: E402

PARKED = [int(n) for n in os.environ.get("BENCHMARK_PARKED", "0 1000 10000 100000").split()]
ROUNDS = int(os.environ.get("BENCHMARK_ROUNDS", "20"))
SECONDS = float(os.environ.get("BENCHMARK_SECONDS", "1"))
SETTLE_S = 1.0  # until all stacks have been read once
N_FIRST = 5  # runs for the time to the first sample


def build():
    shutil.copy(os.path.join(HERE, "main.go"), bench.SCRATCH)
    for argv in (
        ["go", "mod", "init", "goroutines"],
        ["go", "get", "github.com/felixge/fgprof@latest"],
        ["go", "build", "-o", "goroutines"],
    ):
        subprocess.run(argv, cwd=bench.SCRATCH, check=True, capture_output=True)
    return os.path.join(bench.SCRATCH, "goroutines")


class Program:
    def __init__(self, path, parked):
        self.process = subprocess.Popen(
            [path, str(parked)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.process.pid
        self.ask()

    def ask(self, line=""):
        """Its rounds, the time and its CPU time, so far."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return [int(word) for word in self.process.stdout.readline().split()]

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Fgprof:
    def __init__(self, program):
        self.program = program
        program.ask("fgprof")

    def cpu_s(self):
        return 0.0  # its own is the program's

    def stop(self):
        self.program.ask("fgprof")
        return {}


TOOLS = {
    "profiler": lambda program: bench.Profiling(program.pid),
    "threads": lambda program: bench.Profiling(program.pid, "--runtimes=none"),
    "fgprof": Fgprof,
    **({"floor": lambda program: bench.floor(99, program.pid)} if "FLOOR" in os.environ else {}),
}


def window(program, tool=None):
    """Rounds a second by the clock and by its own CPU time, and the tool's CPU time a second."""
    before, tool_s = program.ask(), tool.cpu_s() if tool else 0.0
    time.sleep(SECONDS)
    tool_s = tool.cpu_s() - tool_s if tool else 0.0
    rounds, wall_ns, cpu_ns = (now - then for now, then in zip(program.ask(), before))
    return {"clock": rounds / wall_ns, "own": rounds / cpu_ns, "tool": tool_s / wall_ns * 1e9}


def beside(program, start, before):
    """A window with the tool and the one after it; the former's rates are made ratios."""
    tool = start(program)
    time.sleep(SETTLE_S)
    result = window(program, tool)
    # Not wait4's word, which has this process's own, from which that one was made.
    peak_kb = bench.memory_kb(tool.worker)[2] if hasattr(tool, "worker") else 0
    result["end"] = {**tool.stop(), "peak_mb": peak_kb / 1024}
    after = window(program)
    for key in ("clock", "own"):
        result[key] /= (before[key] + after[key]) / 2
    return result, after


def measure(program):
    seen = {name: [] for name in (*TOOLS, "alone")}
    alone = window(program)
    for _ in range(ROUNDS):
        for name, start in TOOLS.items():
            before = alone
            result, alone = beside(program, start, before)
            seen[name].append(result)
        middle, after = window(program), window(program)
        ratios = {key: 2 * middle[key] / (alone[key] + after[key]) for key in ("clock", "own")}
        seen["alone"].append({**middle, **ratios, "end": {}})
        alone = after
    return seen


def interval(values):
    """The median in percent, its interval and the quartiles, as text."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.1%} ({medians[50]:.1%} to {medians[-51]:.1%}); {low:.1%} to {high:.1%}"


def notes(results):
    """What the profiler's own summaries tell."""
    ends = [result["end"] for result in results]
    if "hold_us" not in ends[0]:
        return "", ""
    hold = [statistics.median(end["hold_us"][i] for end in ends) for i in (0, 1)]
    peak = max(end["peak_mb"] for end in ends)
    return f"{hold[0]:.0f}, {hold[1]:.0f} us", f"{peak:.0f} MB"


def show(path, parked, table):
    program = Program(path, parked)
    try:
        time.sleep(1)
        for name, results in measure(program).items():
            cpu = statistics.median(result["tool"] for result in results)
            table.row(
                f"{parked:,}", name, *(interval([r[key] for r in results]) for key in ("clock", "own")),
                f"{cpu:.1%}", *notes(results),
            )  # fmt: skip
        first = [latency.run(program.pid, 0.001)[0] for _ in range(N_FIRST)]
        print(f"| {parked:,} | first sample | {statistics.median(first):.3f} s, at most {max(first):.3f} s |")
    finally:
        program.end()


def main():
    path = build()
    table = bench.Table(
        f"Goroutines, beside fgprof in the same program: {ROUNDS} windows of {SECONDS:g} s each",
        "parked", "beside", "kept by the clock: median (95 %); quartiles",
        "kept for each second of its own CPU time", "CPU of the tool", "hold: median, p99", "peak memory",
    )  # fmt: skip
    for parked in PARKED:
        show(path, parked, table)


main()
