#!/usr/bin/env python3
"""Stops real programs at work, and compares their stacks with gdb's and eu-stack's, frame by frame.

    compare.py [-n STOPS] [-o RESULTS.md] [NAME...]

The programs are those of run.py. Each is stopped with SIGSTOP some times; then the profiler, gdb's
backtrace and eu-stack look at the same threads. A stack is the same when all names are, inlined
calls among them (eu-stack is asked for the functions in the machine code alone). As root, with gdb
and elfutils installed; not a part of CI.
"""

import argparse
import collections
import glob
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
sys.path.insert(0, HERE)
import pprof  # noqa: E402  pylint: disable=wrong-import-position
from programs import PROGRAMS, Missing, Work  # noqa: E402  pylint: disable=wrong-import-position

PROFILER = os.path.abspath(os.environ.get("PROFILER", "build/profiler"))
DEFAULT = ["redis", "sqlite3", "python3", "perl", "rust-thin-lto", "cxx-coroutines", "glibc-static",
           "musl-static", "go-default", "x264", "ucontext-sigaltstack"]  # fmt: skip
MAX_SHOWN = 3


def plain(name):
    """A name without what the three write in ways of their own: parameters, template arguments,
    versions, clones."""
    name = re.sub(r"\(anonymous namespace\)", "anonymous", name)
    name = re.sub(r"\{lambda.*", "lambda", name)
    if name in ("??", "-", "") or re.fullmatch(r"\[.*\+0x[0-9a-f]+\]", name):
        return "?"
    name = re.sub(r"(@@?[A-Z_].*|@plt|\.abi0|\[clone.*|\.(constprop|part|isra|cold|llvm|lto_priv)[.\d]*)", "", name)
    depth, kept = 0, ""
    for i, c in enumerate(name):
        if c == "<" and name[:i].endswith("operator"):
            kept += c
            continue
        depth += c == "<"
        if depth == 0:
            if c == "(" and kept and not kept.endswith("operator"):
                break
            kept += c
        depth -= c == ">" and depth > 0
    kept = re.sub(r"(::)+h[0-9a-f]{16}$", "", kept.strip().split(" ")[-1]).rstrip(":")
    # The last part: traits' paths are written in three ways. An alias of libc is as good as another.
    kept = re.split(r"::", kept)[-1].removeprefix("__GI_").lstrip("_").removeprefix("libc_")
    return re.sub(r"(_impl|64)+$", "", kept) or "?"


def ours(pid, directory, inlines):
    output = os.path.join(directory, "out.pb.gz")
    options = [] if inlines else ["--no-inlines"]
    subprocess.run(
        [PROFILER, "-q", "-p", str(pid), "-d", "0.1", "-o", output, *options], check=True
    )
    with open(output, "rb") as file:
        profile = pprof.Profile(file.read())
    stacks = {}
    for sample in profile.samples:
        names = [n for n in reversed(sample.stack) if not n.startswith("[truncated")]
        stacks[sample.tid] = [plain(name) for name in names]
    return stacks


def parse(text, thread, frame):
    stacks, here = {}, None
    for line in text.splitlines():
        match = re.search(thread, line)
        if match:
            here = stacks.setdefault(int(match[1]), [])
            continue
        match = re.match(frame, line)
        if match and here is not None and "<signal handler called>" not in line:
            here.append(plain(match[1] or ""))
    return stacks


def gdbs(pid):
    text = subprocess.run(
        ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex",
         "set print frame-arguments none", "-ex", "thread apply all backtrace", "-p", str(pid)],
        capture_output=True, text=True, check=False, errors="replace",
    ).stdout  # fmt: skip
    thread = r"^Thread .*(?:LWP |process )(\d+)"
    return parse(text, thread, r"#\d+ +(?:0x[0-9a-f]+ in )?((?:\(anonymous namespace\)|[^(]|operator\(\))*)")


def eu_stacks(pid):
    text = subprocess.run(
        ["eu-stack", "-n", "0", "-p", str(pid)], capture_output=True, text=True, check=False,
        errors="replace", env={**os.environ, "DEBUGINFOD_URLS": ""},
    ).stdout  # fmt: skip
    text = subprocess.run(
        ["c++filt"], input=text, capture_output=True, text=True, check=True, errors="replace"
    ).stdout
    return parse(text, r"^TID (\d+):", r"#\d+ +0x[0-9a-f]+(?: - \d+)? *(.*)")


def equal(a, b):
    return a == b or "?" in (a, b)


def whose_truth(mine, theirs):
    """How two stacks differ: a key of HOWS."""
    # gdb says <signal handler called>.
    mine = [name for name in mine if name != "restore_rt"]
    theirs = [name for name in theirs if name != "restore_rt"]
    if all(map(equal, mine, theirs)):
        if len(mine) == len(theirs):
            return "same"
        return "they end earlier" if len(theirs) < len(mine) else "ours ends earlier"
    # gdb makes frames up for functions that have made way for another by a tail call.
    rest = iter(theirs)
    if all(any(equal(name, other) for other in rest) for name in mine):
        return "same, but for tail calls"
    return "other"


def pids_of(arguments, directory):
    """The processes to look at, and what to end then."""
    if arguments[0] == "-p":
        return [int(arguments[1])], None
    command = arguments[arguments.index("--") + 1 :]
    process = subprocess.Popen(
        command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    return [process.pid], process


def is_stopped(pid):
    for path in glob.glob(f"/proc/{pid}/task/*/stat"):
        with open(path, encoding="utf-8", errors="replace") as file:
            if file.read().rsplit(")", 1)[1].split()[0] not in "Tt":
                return False
    return True


def look(pid, directory, counts, name):
    os.kill(pid, signal.SIGSTOP)
    while not is_stopped(pid):
        time.sleep(0.01)
    for who, stacks, inlines in (("gdb", gdbs, True), ("eu-stack", eu_stacks, False)):
        mine, theirs = ours(pid, directory, inlines), stacks(pid)
        for tid in sorted(mine.keys() & theirs.keys()):
            how = whose_truth(mine[tid], theirs[tid])
            counts[who][how] += 1
            if how in ("other", "ours ends earlier") and counts[who][how] <= MAX_SHOWN:
                print(f"{name}, {how} than {who}:\n  ours   {mine[tid]}\n  theirs {theirs[tid]}",
                      file=sys.stderr)  # fmt: skip
    os.kill(pid, signal.SIGCONT)


def run_one(name, stops):
    tools, set_up = PROGRAMS[name]
    for tool in (*tools, "gdb", "eu-stack"):
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed")
    directory = tempfile.mkdtemp(prefix="real-program-")
    work = Work(directory, 60)
    counts = collections.defaultdict(collections.Counter)
    process = None
    try:
        pids, process = pids_of(set_up(work), directory)
        for _ in range(stops):
            time.sleep(0.4)
            for pid in pids:
                look(pid, directory, counts, name)
    finally:
        if process:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        work.end()
        shutil.rmtree(directory, ignore_errors=True)
    return counts


HOWS = ["same", "same, but for tail calls", "they end earlier", "ours ends earlier", "other"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--stops", type=int, default=5)
    parser.add_argument("-o", "--output")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    options = parser.parse_args()
    rows = ["| program | compared with | " + " | ".join(HOWS) + " |", "|---" * 7 + "|"]
    print("\n".join(rows), flush=True)
    for name in options.names or DEFAULT:
        try:
            counts = run_one(name, options.stops)
        except Missing as missing:
            counts = {f"left out: {missing}": {}}
        for who, how in counts.items():
            cells = [name, who, *(str(how.get(key, 0)) for key in HOWS)]
            rows.append("| " + " | ".join(cells) + " |")
            print(rows[-1], flush=True)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
