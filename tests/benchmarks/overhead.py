# SPDX-License-Identifier: MIT
"""What profiling costs, for 1 to 1,000 threads: `meson test --benchmark`.

A table of: how long a tick holds the target, in all and for each thread; the profiler's own CPU
time for each sample; how much less the target gets done, alone and profiled in turns; and the
profiler's peak memory. Of the target's threads at most 4 count as fast as they can, a quarter of
the others wakes 100 times a second, the rest waits.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness  # noqa: E402

THREADS = (1, 10, 100, 1000)
ROUNDS = int(os.environ.get("BENCHMARK_ROUNDS", "5"))
SECONDS = float(os.environ.get("BENCHMARK_SECONDS", "2"))
HZ = 99
UNITS_US = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}


def throughput(text):
    """The counts of a second that the fixture said."""
    return float(re.search(r"^(\d+) counts/s", text, re.M)[1])


def start_target(n_threads):
    return harness.Target([harness.fixture("throughput"), str(n_threads), str(SECONDS)])


def alone(n_threads):
    target = start_target(n_threads)
    rate = throughput("\n".join(target.rest()))
    target.end()
    return rate


def profiled(n_threads):
    """The target's throughput and what the profiler used: a dict."""
    target = start_target(n_threads)
    directory = tempfile.mkdtemp(prefix="profiler-benchmark-")
    try:
        with open(os.path.join(directory, "stderr"), "w+b") as stderr:
            process = subprocess.Popen(
                [harness.PROFILER, "-p", str(target.pid), "-F", str(HZ),
                 "-o", os.path.join(directory, "out.pb.gz")],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
            )  # fmt: skip
            rate = throughput("\n".join(target.rest()))
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            stderr.seek(0)
            text = stderr.read().decode()
    finally:
        target.end()
        shutil.rmtree(directory)
    if process.returncode:
        raise SystemExit(f"the profiler failed: {text}")
    summary = harness.Summary(text)
    held = summary.HELD
    match = next(m for m in map(held.fullmatch, summary.lines) if m)
    return {
        "rate": rate,
        "median_us": float(match[2]) * UNITS_US[match[3]],
        "p99_us": float(match[4]) * UNITS_US[match[5]],
        "held": float(match[1]),
        "cpu_us": (usage.ru_utime + usage.ru_stime) * 1e6 / summary.samples,
        "peak_mb": usage.ru_maxrss / 1024,
        "missed": summary.missed,
    }


def main():
    print(
        f"{HZ} Hz, {SECONDS:g} s a run, medians of {ROUNDS} runs alone and {ROUNDS} profiled, in "
        f"turns, {os.cpu_count()} CPUs\n"
    )
    print(
        f"{'threads':>7}  {'hold/tick us':>12}  {'p99 us':>8}  {'hold/thread us':>14}  "
        f"{'held %':>6}  {'cpu/sample us':>13}  {'slowdown %':>10}  {'peak MB':>7}  {'missed':>6}"
    )
    for n_threads in THREADS:
        rates, runs = [], []
        for _ in range(ROUNDS):
            rates.append(alone(n_threads))
            runs.append(profiled(n_threads))
        median = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        slowdown = (1 - median["rate"] / statistics.median(rates)) * 100
        print(
            f"{n_threads:7}  {median['median_us']:12.0f}  {median['p99_us']:8.0f}  "
            f"{median['median_us'] / (n_threads + 1):14.2f}  {median['held']:6.2f}  "
            f"{median['cpu_us']:13.2f}  {slowdown:10.2f}  {median['peak_mb']:7.1f}  "
            f"{median['missed']:6.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
