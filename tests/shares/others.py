#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Profiles the same programs with the other profilers that are installed, by hand and as root:

    PROFILER=build/profiler FIXTURES=build/tests/fixtures tests/shares/others.py >others.md

Each profiler attaches to its own copy of the program, as an ordinary user. A share is a function's part of
all samples in the program's functions. It is compared with the share of all time, or of CPU time for profilers
that see only that.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import cases
import pprof
from judge import Truth

MARGIN_S = 0.3  # before and after the profiler
PYTHON = "Python, 4 threads"
PROGRAMS = [PYTHON, "naps of 1 ms", "4 threads nap 1 ms", "pool", "slowed by 1.2"]


def folded(text, functions):
    """Counts how often each function is the innermost known one, in lines of FRAME;FRAME... COUNT."""
    counts = collections.Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        known = [word for word in re.findall(r"\w+", stack) if word in functions]
        if known and count.isdigit():
            counts[known[-1]] += int(count)
    return counts


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def own(pid, hz, seconds, path, functions):
    """Runs this profiler."""
    run([cases.harness.PROFILER, "-q", "-p", pid, "-F", hz, "-d", seconds, "-o", path + ".pb.gz"])
    counts = collections.Counter()
    with open(path + ".pb.gz", "rb") as file:
        for sample in pprof.Profile(file.read()).samples:
            name = next((name for name in reversed(sample.stack) if name in functions), None)
            counts[name] += sample.wall_ns
    del counts[None]
    return counts


def py_spy(*more):
    def profile(pid, hz, seconds, path, functions):
        run(["py-spy", "record", "-p", pid, "-r", hz, "-d", max(1, round(seconds)), "-f", "raw", "--function",
             "-o", path, *more])  # fmt: skip
        return folded(read(path), functions)

    return profile


def austin(pid, hz, seconds, path, functions):
    run(["austin", "-i", f"{round(1e6 / hz)}us", "-x", round(seconds), "-o", path, "-p", pid])
    return folded(read(path), functions)


def perf(pid, hz, seconds, path, functions):
    run(["perf", "record", "-q", "-e", "cpu-clock", "-F", hz, "-g", "-o", path, "-p", pid, "--", "sleep", seconds])
    text = run(["perf", "script", "-i", path, "-F", "ip,sym"])
    words = ([line.split() for line in stack.splitlines()] for stack in text.split("\n\n"))
    stacks = (reversed([row[-1] for row in rows if row]) for rows in words)
    return folded("\n".join(";".join(stack) + " 1" for stack in stacks), functions)


def eu_stack(pid, hz, seconds, path, functions):
    """Prints one stack after the other, which needs no profiler."""
    texts, end_s = [], time.monotonic() + seconds
    while time.monotonic() < end_s:
        texts.append(run(["eu-stack", "-p", pid]))
        time.sleep(1 / hz)
    stacks = re.split(r"\nTID \d+:", "\n".join(texts))
    names = ([line.split()[-1] for line in stack.splitlines() if line.startswith("#")] for stack in stacks)
    return folded("\n".join(";".join(reversed(stack)) + " 1" for stack in names), functions)


# is_for_python: None for profilers that take any program.
Other = collections.namedtuple("Other", "command profile sees_running is_for_python")
OTHERS = {
    "profiler": Other(cases.harness.PROFILER, own, False, None),
    "py-spy --idle": Other("py-spy", py_spy("--idle"), False, True),
    "py-spy": Other("py-spy", py_spy(), True, True),
    "py-spy --nonblocking --idle": Other("py-spy", py_spy("--nonblocking", "--idle"), False, True),
    "austin": Other("austin", austin, False, True),
    "perf": Other("perf", perf, True, False),
    "eu-stack, in a loop": Other("eu-stack", eu_stack, False, False),
}


def run(command):
    words = [str(word) for word in command]
    return subprocess.run(
        [*prefix, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    ).stdout


def compare(name, other, n_cpus, hz, seconds):
    """Returns (function, true share, share in the profile) of each function, in percent."""
    global prefix
    prefix = [*cases.on_cpus(n_cpus), *cases.WHO["user"]()]
    command = cases.command_of(cases.PROGRAMS[name], seconds + 2 * MARGIN_S)
    program = subprocess.Popen([*prefix, *command], stdout=subprocess.PIPE, text=True)
    directory = tempfile.mkdtemp(prefix="profiler-shares-")
    os.chmod(directory, 0o777)
    try:
        assert program.stdout.readline() == "ready\n"
        time.sleep(MARGIN_S)
        names = {"compute_a", "compute_b", "nap", "wait_for_job"}
        counts = other.profile(program.pid, hz, seconds, os.path.join(directory, "out"), names)
        truth = Truth(program.stdout.read())
    finally:
        program.kill()
        program.wait()
        shutil.rmtree(directory)
    time_of = (lambda one: one.cpu_s) if other.sees_running else (lambda one: one.wall_s)
    true = {name: time_of(one) for name, one in truth.functions.items()}
    total_s, n = sum(true.values()), max(1, sum(counts.values()))
    return [(name, 100 * s / total_s, 100 * counts[name] / n) for name, s in true.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--cpus", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--hz", type=int, nargs="*", default=[99])
    args = parser.parse_args()
    print("| program | CPUs | Hz | by | sees | own clock | by it | off by, points |\n|" + "---|" * 8)
    for name in PROGRAMS:
        for n_cpus in args.cpus:
            for hz in args.hz:
                for by, other in OTHERS.items():
                    if other.is_for_python not in (None, name == PYTHON) or not shutil.which(other.command):
                        continue
                    tell(name, n_cpus, hz, by, other, args.seconds)


def tell(name, n_cpus, hz, by, other, seconds):
    sees = "on CPU" if other.sees_running else "all time"
    try:
        rows = compare(name, other, n_cpus, hz, seconds)
    except subprocess.CalledProcessError as error:
        print(f"{by}: {' '.join((error.stderr or '').split())[-200:]}", file=sys.stderr)
        return
    true, found = (", ".join(f"{row[0]} {row[i]:.1f}" for row in rows) for i in (1, 2))
    worst = max(abs(row[2] - row[1]) for row in rows)
    print(f"| {name} | {n_cpus} | {hz} | {by} | {sees} | {true} | {found} | {worst:.1f} |", flush=True)


if __name__ == "__main__":
    main()
