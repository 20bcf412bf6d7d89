# SPDX-License-Identifier: MIT
"""Figure 3: many threads that sleep.

What a tick costs where nothing runs, where a single thread wakes now and then (so that every
thread has to be looked at), and what the target notices of it: context switches of its threads,
beyond those that it has alone. System calls of a tick are counted by strace, where that is there.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import bench

SECONDS = 2 * bench.SECONDS
START_S = 1


def profile(crowd, hz=99):
    """A run's figures, with the context switches that the target made meanwhile, and with the CPU
    time of a tick once the start is over, when every thread is opened and looked at."""
    before = bench.context_switches(crowd.pid)
    run = bench.Profiling(crowd.pid, hz=hz)
    time.sleep(START_S)
    start_s, cpu_s = time.monotonic(), run.cpu_s()
    time.sleep(SECONDS)
    cpu_s, wall_s = run.cpu_s() - cpu_s, time.monotonic() - start_s
    figures = run.stop()
    after = bench.context_switches(crowd.pid)
    figures["switches"] = after[0] - before[0], after[1] - before[1]
    figures["percent"] = 100 * cpu_s / wall_s
    kept = figures["ticks"] / (figures["ticks"] + figures["thinned"] + figures["missed"])
    figures["tick_us"] = 1e6 * cpu_s / (wall_s * hz * kept)
    return figures


def missed_at_start(crowd, hz=99):
    """The ticks that the first one, which opens and looks at everything, makes late."""
    return bench.Profiling(crowd.pid, "-d", START_S, hz=hz).finish()["missed"]


def calls_per_tick(crowd):
    """System calls of a tick, by strace: the difference of two runs of different length."""
    if not shutil.which("strace"):
        return None
    counts = []
    for ticks in (20, 120):
        with tempfile.NamedTemporaryFile(dir=bench.SCRATCH, mode="r") as log:
            subprocess.run(
                ["strace", "-f", "-c", "-U", "calls,name", "-o", log.name, bench.harness.PROFILER,
                 "-p", str(crowd.pid), "-F", "10", "-d", str(ticks / 10), "-q", "--max-overhead=0",
                 "-o", os.path.join(bench.SCRATCH, "strace.pb.gz")],
                check=True, capture_output=True,
            )  # fmt: skip
            text = log.read()
        counts.append(sum(int(n) for n in re.findall(r"^ *(\d+) (?!total)\w+$", text, re.M)))
    return (counts[1] - counts[0]) / 100


def show(table, what, sleepers, workers, max_percent=None, count_calls=True):
    with bench.ending(bench.Crowd(sleepers, workers, 20, 5000)) as crowd:
        time.sleep(START_S)  # until its last thread has gone to sleep
        runs = [profile(crowd) for _ in range(bench.ROUNDS)]
        at_start = max(missed_at_start(crowd) for _ in range(3))
        calls = calls_per_tick(crowd) if count_calls else None
    percents = [r["percent"] for r in runs]
    percent = bench.median(percents)
    ticks, missed = sum(r["ticks"] for r in runs), sum(r["missed"] for r in runs)
    thinned = sum(r["thinned"] for r in runs)
    switches = sum(sum(r["switches"]) for r in runs)
    reached = missed <= 1.25 * at_start * len(runs) and thinned == 0 and (workers or switches == 0)
    target = "none missed after the first"
    if max_percent:
        reached = percent <= max_percent and (workers or switches == 0)
        target = f"<= {max_percent} %"
    table.row(
        "3", what, f"{percent:.2f} %", bench.spread(percents), target, bench.met(reached),
        f"{missed} of {ticks + missed}", at_start, thinned, "" if workers else switches,
        f"{bench.median([r['tick_us'] for r in runs]):.1f} us",
        f"{calls:.0f}" if calls is not None else "",
    )  # fmt: skip


def show_floor(table):
    """What this machine asks of a thread that does nothing but wake."""
    with bench.ending(bench.Crowd(0, 1, 0, 10101)) as crowd:
        wakes, cpu_s = crowd.count(), bench.process_cpu_s(crowd.pid)
        time.sleep(2 * SECONDS)
        wakes, cpu_s = crowd.count() - wakes, bench.process_cpu_s(crowd.pid) - cpu_s
    table.row(
        "", "for comparison: a thread that only wakes at 99 Hz",
        f"{100 * cpu_s / (2 * SECONDS):.2f} %", "", "", "", "", "", "", "",
        f"{1e6 * cpu_s / wakes:.1f} us", 1,
    )  # fmt: skip


def main():
    table = bench.Table(
        f"Sleeping threads at 99 Hz ({SECONDS:g} s a run, {bench.ROUNDS} runs for each)",
        "figure", "threads", "of one CPU", "quartiles", "target", "met", "ticks missed",
        "by the first one",
        "ticks thinned", "context switches added", "CPU for a tick", "system calls of a tick",
    )  # fmt: skip
    show_floor(table)
    show(table, "10, all asleep", 9, 0, 0.2)
    show(table, "1,000, all asleep", 999, 0, 12)
    show(table, "1,000, one of them wakes at 200 Hz", 998, 1, 12)
    show(table, "5,000, all asleep", 4999, 0, count_calls=False)
    show(table, "5,000, one of them wakes at 200 Hz", 4998, 1, count_calls=False)


if __name__ == "__main__":
    sys.exit(main())
