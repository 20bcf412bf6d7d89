#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a profile of goroutines costs a Go program, beside fgprof in the same program. By hand:

    run.py PROFILER

Rounds for each second of the program's own CPU time, so that what else the machine does counts
little. The module of fgprof comes by its name.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HALF_SECONDS, SETTLING = 9, 2


def build(directory):
    shutil.copy(os.path.join(HERE, "main.go"), directory)
    for argv in (
        ["go", "mod", "init", "goroutines"],
        ["go", "get", "github.com/felixge/fgprof@latest"],
        ["go", "build", "-o", "goroutines"],
    ):
        subprocess.run(argv, cwd=directory, check=True, capture_output=True)
    return os.path.join(directory, "goroutines")


def measure(program, parked, profiler=None, fgprof=False):
    """Rounds a second of CPU time, and what the profiler says."""
    argv = [program, str(parked), *(["fgprof"] if fgprof else [])]
    target = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert target.stdout.readline() == "ready\n"
    other = profiler and subprocess.Popen(
        [profiler, "-p", str(target.pid), "-d", "5.5", "-o", program + ".pb.gz"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    lines = [target.stdout.readline().split() for _ in range(HALF_SECONDS)]
    said = other.communicate()[1] if other else ""
    target.kill()
    target.wait()
    rates = [int(rounds) / int(ns) * 1e9 for rounds, ns in lines[SETTLING:]]
    return statistics.median(rates), said


def main():
    with tempfile.TemporaryDirectory() as directory:
        program = build(directory)
        for parked in (1000, 10000, 100000):
            before, _ = measure(program, parked)
            ours, said = measure(program, parked, profiler=sys.argv[1])
            theirs, _ = measure(program, parked, fgprof=True)
            alone = (before + measure(program, parked)[0]) / 2
            print(f"{parked} parked: profiler keeps {ours / alone:.1%}, fgprof {theirs / alone:.1%}")
            print("\n".join(line for line in said.splitlines() if "goroutines (" in line or "held" in line))


main()
