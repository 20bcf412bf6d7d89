#!/usr/bin/env python3
"""Profiles real programs while they work, and prints how well their stacks came out.

    run.py [-d SECONDS] [-o RESULTS.md] [NAME...]

For each program: the share of samples whose stack reaches the thread's root, of all of them and of
those that ran; the share of frames that have a name; why stacks are truncated; which frames have no
name, and how many of those gdb can name with the same files; and how many frames lie in code without
unwinding rules. As root, on Debian 12 with

    apt-get install postgresql postgresql-contrib redis nginx-light wrk sqlite3 python3-numpy perl \\
        git g++ clang ffmpeg x264 rustc musl-tools golang-go nodejs openjdk-17-jdk-headless \\
        qemu-user gdb

What is not installed is left out, and said. Takes about five minutes; not a part of CI.
"""

import argparse
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import pprof  # noqa: E402  pylint: disable=wrong-import-position
from programs import PROGRAMS, Missing, Work  # noqa: E402  pylint: disable=wrong-import-position
import runtimes  # noqa: E402, F401  pylint: disable=wrong-import-position, unused-import

PROFILER = os.path.abspath(os.environ.get("PROFILER", "build/profiler"))
UNNAMED = re.compile(r"\[(.+)\+0x([0-9a-f]+)\]")
MAX_ASKED = 30  # unnamed addresses that gdb is asked about


# What came out.


def profile(arguments, seconds, directory):
    """Runs the profiler; the profile and what it said."""
    output = os.path.join(directory, "out.pb.gz")
    command = [PROFILER, "-d", seconds, "-F", 199, "-o", output, *arguments]
    process = subprocess.Popen(
        list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, cwd=directory, start_new_session=True, text=True, errors="replace",
    )  # fmt: skip
    # The command that it started goes on after its profile is written.
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith(("profiler: wrote", "profiler: next")):
            break
    time.sleep(0.2)
    end_session(process.pid)
    process.wait()
    with open(output, "rb") as file:
        return pprof.Profile(file.read()), "".join(said)


def end_session(session):
    """Ends what the profiler has started: all processes of its session."""
    for _ in range(20):
        found = False
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if int(pid) != os.getpid() and os.getsid(int(pid)) == session:
                    os.kill(int(pid), signal.SIGKILL)
                    found = True
            except ProcessLookupError:
                pass
        if not found:
            return
        time.sleep(0.05)


def named_by_gdb(unnamed):
    """Of the addresses (a Counter of file, address) the samples that gdb has a name for."""
    total = 0
    for (path, address), count in unnamed.most_common(MAX_ASKED):
        if path.startswith("/") and os.path.exists(path):
            said = subprocess.run(
                ["gdb", "-nx", "-batch", "-ex", f"info symbol {address:#x}", path],
                capture_output=True, text=True, check=False,
            ).stdout  # fmt: skip
            total += count * (" in section " in said and not said.startswith("No symbol"))
    return total


def percent(part, whole):
    if not whole:
        return "-"
    value = 100 * part / whole
    return "100" if part == whole else f"{min(value, 99.99):.2f}"


def judge(samples, said):
    """The cells of the table."""
    total = running = whole = running_whole = frames = named = 0
    ends, unnamed = collections.Counter(), collections.Counter()
    for sample in samples:
        total += sample.count
        truncated = [name for name in sample.stack if name.startswith("[truncated")]
        whole += 0 if truncated else sample.count
        if sample.state == "running":
            running += sample.count
            running_whole += 0 if truncated else sample.count
        for name in truncated:
            ends[name[12:-1]] += sample.count
        for frame in sample.frames:
            match = UNNAMED.fullmatch(frame.name)
            if frame.name.startswith("[truncated"):
                continue
            frames += sample.count
            named += 0 if match else sample.count
            if match:
                mapping = frame.location["mapping"] if frame.location else None
                path = mapping["filename"] if mapping else match[1]
                unnamed[path, int(match[2], 16)] += sample.count
    files = collections.Counter()
    for (path, _), count in unnamed.items():
        files[os.path.basename(path)] += count
    guesses = [
        f"{percent(int(n), int(of))} % {how}"
        for n, of, how in re.findall(
            r"(\d+) of (\d+) frames found by (frame pointer|following the code)", said
        )
    ]
    return [
        total,
        percent(whole, total),
        percent(running_whole, running),
        percent(named, frames),
        ", ".join(f"{end} {count}" for end, count in ends.most_common()) or "-",
        ", ".join(f"{file} {count}" for file, count in files.most_common(4)) or "-",
        percent(named_by_gdb(unnamed), sum(unnamed.values())),
        ", ".join(guesses) or "none",
    ]


HEAD = ["program", "samples", "whole %", "whole % of running", "named frames %", "truncated",
        "unnamed frames in", "of these gdb names %", "frames without rules"]  # fmt: skip


def run_one(name, seconds):
    tools, set_up = PROGRAMS[name]
    for tool in tools:
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed")
    directory = tempfile.mkdtemp(prefix="real-program-")
    work = Work(directory, seconds)
    try:
        profiled, said = profile(set_up(work), seconds, directory)
        return judge(profiled.samples, said)
    finally:
        work.end()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-d", "--duration", type=int, default=8)
    parser.add_argument("-o", "--output")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    options = parser.parse_args()
    rows = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    print("\n".join(rows), flush=True)
    for name in options.names or PROGRAMS:
        try:
            cells = run_one(name, options.duration)
        except Missing as missing:
            cells = [f"left out: {missing}"] + ["-"] * (len(HEAD) - 2)
        except subprocess.CalledProcessError as error:
            cells = [f"failed: {error}"] + ["-"] * (len(HEAD) - 2)
        rows.append("| " + " | ".join(map(str, [name, *cells])) + " |")
        print(rows[-1], flush=True)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
