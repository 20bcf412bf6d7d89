#!/usr/bin/env python3
"""Measures what `profiler explain` finds in the corpus: programs with one fault each, and healthy ones (ok_*).

The first lines of a program say what is to be found: the cause (or several that are right), the function in which
it waits or computes, and the function that makes it wait, if another does. On a busy machine, a wait for a CPU may
come before the fault. A healthy program may have no finding that is a fault; what else is told describes what it does.
The programs here were written before the rules were read, but for seven healthy ones, which first gave false alarms; the
rules have been mended for them since. Those in unseen/ came after the rules, and before anybody had tried one on them.

By hand: tests/explain_corpus/measure.py build/profiler [--half=seen|unseen] [--seconds=5] [NAME...]
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
RULES = {  # the corpus's word: explain's rules
    "channel": "channel", "children": "child", "cpu": "cpu", "disk": "file", "dns": "name-lookup", "gil": "gil",
    "hot": "hot", "lock": "lock", "network": "peer", "pipe": "peer", "pool": "pool", "sleep": "sleep",
    "socket": "peer",
}


def programs():
    """All programs, each with its half."""
    for folder, half in ((HERE, "seen"), (HERE / "unseen", "unseen")):
        for path in sorted(folder.iterdir()):
            if path.suffix in (".c", ".cc", ".go", ".java", ".py") and path != HERE / "measure.py":
                yield path, half


def command(source, folder):
    """What runs the program, which is compiled into the folder; a script runs as it is."""
    binary = os.path.abspath(os.path.join(folder, source.stem))
    if source.suffix == ".py":
        return [sys.executable, str(source)]
    if source.suffix == ".go":
        subprocess.run(["go", "build", "-o", binary, str(source)], check=True)
    elif source.suffix == ".java":
        subprocess.run(["javac", "-g", "-d", folder, str(source)], check=True)
        return ["java", "-cp", ".", "Main"]
    else:
        compiler = {".c": "gcc", ".cc": "g++"}[source.suffix]
        subprocess.run([compiler, "-g", "-O1", "-pthread", str(source), "-o", binary, "-lresolv", "-lm"], check=True)
    return [binary]


def explain(profiler, source, seconds):
    with tempfile.TemporaryDirectory(dir=".") as folder, subprocess.Popen(
            command(source, folder), cwd=folder, stdout=subprocess.PIPE, process_group=0) as program:
        try:
            program.stdout.readline()  # "ready"
            text = subprocess.run([profiler, "explain", "--json", f"--duration={seconds}", str(program.pid)],
                                  check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
        finally:
            os.killpg(program.pid, 9)
    return json.loads(text)["findings"]


def judge(expected, findings):
    """Whether the cause and the function are first; and the function that makes it wait (None: there is none)."""
    causes, *functions = expected
    if causes not in ("cpu", "none"):
        findings = [finding for finding in findings if finding["rule"] != "cpu"]
    if causes == "none":
        return not any(finding["fault"] for finding in findings), None
    rules = [RULES[cause] for cause in causes.split("|")]
    right = bool(findings) and findings[0]["rule"] in rules and (
        causes == "cpu" or bool(re.search(rf"\b{functions[0]}\b", findings[0]["text"])))
    if len(functions) < 2:
        return right, None
    return right, right and any(re.search(rf"\b{functions[1]}\b", cause["text"]) for cause in findings[0]["causes"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("profiler")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--half", choices=("seen", "unseen"))
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--quiet", action="store_true", help="only the figures")
    arguments = parser.parse_intermixed_args()
    counts = {}
    for source, half in programs():
        if arguments.half not in (None, half) or arguments.names and source.stem not in arguments.names:
            continue
        expected = re.search(r"expect: (.*)", source.read_text(encoding="utf-8")).group(1).split()
        findings = explain(arguments.profiler, source, arguments.seconds)
        right, who = judge(expected, findings)
        is_healthy = expected == ["none"]
        told = bool(findings) and (findings[0]["fault"] if not is_healthy else True)
        for kind, is_right in (("healthy" if is_healthy else "faulty", right), ("who makes it wait", who),
                               ("something is told of the healthy" if is_healthy else "told as a fault", told)):
            if is_right is not None:
                group = counts.setdefault((half, kind), [0, 0])
                group[0] += is_right
                group[1] += 1
        if not arguments.quiet:
            print(f"{'right' if right else 'WRONG'} {source.name}: {' '.join(expected)}", flush=True)
            for finding in findings if not right else findings[:1]:
                print(f"    {'fault' if finding['fault'] else 'does'}: {finding['rule']} {finding['share']:.0%} {finding['text']}; "
                      + "; ".join(cause["text"] for cause in finding["causes"]))
    for (half, kind), (right, of) in counts.items():
        print(f"{half}, {kind}: right in {right} of {of}")


main()
