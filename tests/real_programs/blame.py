#!/usr/bin/env python3
"""How well --blame finds who makes a thread wait, by programs that measure it themselves.

    blame.py [-d SECONDS] [NAME...]

Prints a table. Named: the part of the waiters' time that has a cause. Off: by how much the causes' shares differ at most
from what the program's own clock says, in points. Wrong: the part of the causes in which the program says nobody is.
What is not installed (javac, postgres) is left out, and said. By hand, as root; takes about two minutes.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROFILER = os.path.abspath(os.environ.get("PROFILER", "build/profiler"))
FIXTURES = os.path.abspath(os.environ.get("FIXTURES", "build/tests/fixtures"))
POSTGRES = "/usr/lib/postgresql/15/bin"
GIL = """
import threading, time
def burn():
    while True: sum(range(1000))
def want():
    while True: sum(range(1000))
threading.Thread(target=burn, daemon=True).start()
want()
"""
CONDITION = """
import threading, time
filled, items = threading.Condition(), []
def produce():
    while True:
        time.sleep(0.02)
        with filled: items.append(1); filled.notify()
def consume():
    while True:
        with filled:
            while not items: filled.wait()
            items.pop()
threading.Thread(target=produce, daemon=True).start()
consume()
"""
# The server's clock is that of \\timing: of the whole query, from its parser to what ends it.
QUERY = r"(pg_parse|pg_analyze|standard_Executor|Portal|secure_write)\w*"
QUERIES = "select pg_sleep(0.02);\nselect sum(i) from generate_series(1, 60000) i;\n" * 2000


def read(path):
    """Of a folded file, the stacks and how often each was seen."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            stack, count = line.rstrip("\n").rsplit(" ", 1)
            yield stack.split(";"), int(count)


def judge(path, waits_in, truth):
    """`truth`: of each function in which a cause may be its share (None: any is right)."""
    total = named = right = 0
    found = dict.fromkeys(truth, 0)
    for stack, count in read(path):
        at = stack.index("--") if "--" in stack else len(stack)
        if not any(waits_in in frame for frame in stack[:at]) or not is_wait(stack[:at]):
            continue
        total += count
        if at == len(stack):
            continue
        named += count
        last = {name: max((i for i, frame in enumerate(stack[at:]) if re.search(rf"\b({name})\b", frame)), default=-1)
                for name in truth}  # fmt: skip
        name = max(last, key=last.get)
        if last[name] >= 0:
            right += count
            found[name] += count
    off = max((abs(found[name] / right - share) for name, share in truth.items()), default=0) if right else 1
    return total, named, off, named - right


def is_wait(frames):
    """Whether a stack of the waiter's waits for somebody: it does not nap."""
    return re.search(r"(?<!c)lock|wait|read|recv|poll|select|take_gil|sem|park|futex|join|chan", frames[-1]) is not None


def record(command, *options, seconds, pids=()):
    """Under the profiler, or of running processes: the folded file, and what the program printed."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        path = file.name
    what = [word for pid in pids for word in ("-p", str(pid))] + ["-d", str(seconds)] if pids else ["--", *command]
    run = subprocess.run([PROFILER, "-q", "--blame", "--off-cpu", "-t", *options, "-f", "folded", "-o", path, *what],
                         stdout=subprocess.PIPE, encoding="utf-8", check=False)  # fmt: skip
    return path, run.stdout


def fixture(mode, waits_in, functions, *options):
    """A mode of the fixture blame, which tells how long it has waited and for what."""

    def measure(seconds):
        path, text = record([f"{FIXTURES}/blame", str(seconds), mode], *options, seconds=seconds)
        if not functions[1:]:
            return judge(path, waits_in, {functions[0]: 1})
        times = [float(word) for word in text.split()[2:]]
        return judge(path, waits_in, {name: time / sum(times) for name, time in zip(functions, times)})

    return measure


def attached(make, waits_in, truth):
    def measure(seconds):
        program = make()
        try:
            time.sleep(2)
            return judge(record([], seconds=seconds, pids=[program.pid])[0], waits_in, truth)
        finally:
            program.kill()
            program.wait()

    return measure


def python(text):
    return lambda: subprocess.Popen([sys.executable, "-c", text])


def corpus(name):
    """A program of the corpus of explain."""

    def make():
        source = os.path.join(HERE, "..", "explain_corpus", name)
        folder = tempfile.mkdtemp()
        if name.endswith(".java"):
            subprocess.run(["javac", "-g", "-d", folder, source], check=True)
            return subprocess.Popen(["java", "-cp", folder, "Main"], stdout=subprocess.DEVNULL)
        subprocess.run(["go", "build", "-o", f"{folder}/program", source], check=True)
        return subprocess.Popen([f"{folder}/program"], stdout=subprocess.DEVNULL)

    return make


def postgres(seconds):
    """psql waits for the server's process, which sleeps or counts."""
    folder = tempfile.mkdtemp(dir="/tmp")
    shutil.chown(folder, "postgres")
    as_postgres = {"user": "postgres", "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([f"{POSTGRES}/initdb", "-D", f"{folder}/data", "--no-sync"], check=True, **as_postgres)
    with subprocess.Popen([f"{POSTGRES}/postgres", "-D", f"{folder}/data", "-k", folder, "-h", ""], **as_postgres) as server:
        try:
            time.sleep(4)
            more = {**as_postgres, "stdout": open(f"{folder}/out", "w", encoding="utf-8")}
            with subprocess.Popen([shutil.which("psql"), "-h", folder, "-c", "\\timing", "-f", "-", "postgres"],
                                  stdin=subprocess.PIPE, encoding="utf-8", **more) as client:  # fmt: skip
                client.stdin.write(QUERIES)
                client.stdin.flush()
                time.sleep(1)
                path, _ = record([], "-c", seconds=seconds, pids=[client.pid, server.pid])
                client.kill()
            with open(f"{folder}/out", encoding="utf-8") as file:
                times = [float(ms) for ms in re.findall(r"^Time: ([\d.]+) ms", file.read(), re.M)]
            slept, counted = sum(times[0::2][: len(times) // 2]), sum(times[1::2])
            return judge(path, "PQ", {"pg_sleep": slept / (slept + counted), QUERY: counted / (slept + counted)})
        finally:
            server.terminate()
            server.wait()
            shutil.rmtree(folder, ignore_errors=True)


JOURNAL = "write_journal|flush_journal"  # the first waits for the second, which gc's clock counts as well
LATE = "read|fork"  # the server is asked, but has not begun

CASES = {
    "lock convoy": fixture("chain", "handle", ("sweep", JOURNAL)),
    "reader and writer": fixture("rwlock", "handle", ("sweep", JOURNAL)),
    "fsync under a lock": fixture("fsync", "handle", ("sweep", JOURNAL)),
    "join": fixture("chain", "join", ("keep_journal",)),
    "child": fixture("child", "wait4", ("sweep",), "-c"),
    "file lock": fixture("flock", "flock", ("sweep",), "-c"),
    "pipe pair": fixture("pipe", "ask", ("parse", "rank_all", LATE), "-c"),
    "unix request and answer": fixture("unix", "ask", ("parse", "rank_all", LATE), "-c"),
    "TCP request and answer": fixture("tcp", "ask", ("parse", "rank_all", LATE), "-c"),
    "GIL": attached(python(GIL), "want", {"burn": 1}),
    "Java's monitor": attached(corpus("unseen/lock_report.java"), "handleOrder", {"writeReport": 1}),
    "Postgres: client and backend": postgres,
    "condition with a producer": attached(python(CONDITION), "consume", {"produce": 1}),
    "Go's mutex": attached(corpus("mutex_session.go"), "lookup", {"evict": 1}),
    "Go's channel": attached(corpus("channel_slow.go"), "submit", {"store": 1}),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-d", dest="seconds", type=int, default=6)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    print("| program | wait samples | named | off by | wrong |\n|---|---|---|---|---|")
    for name, measure in CASES.items():
        if args.names and name not in args.names:
            continue
        try:
            total, named, off, wrong = measure(args.seconds)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"| {name} | not measured: {error} |", flush=True)
            continue
        if named == 0:
            print(f"| {name} | {total} | 0 | - | - |", flush=True)
        else:
            print(f"| {name} | {total} | {100 * named / total:.0f} % | {100 * off:.1f} points | {100 * wrong / named:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
