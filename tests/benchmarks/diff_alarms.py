# SPDX-License-Identifier: MIT
"""How often `profiler diff` sees a change where there is none, by hand:

    diff_alarms.py [--pairs N] [--seconds S] [--pieces K] [--seed N] [--from S] RECORDING... [-- OPTION...]

Cuts pairs of parts at random from each long recording of a program that always does the same, and compares each pair:
K pieces a side, S seconds in all, none of them twice. A pair is a false alarm if any function is said to have changed:
with the correction for many functions that should be 5 of 100. Options after -- are profiler diff's, such as --on-cpu.
"""

import argparse
import math
import os
import random
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROFILER = os.environ.get("PROFILER", os.path.join(HERE, "..", "..", "build", "profiler"))
NONE = "No function has changed for certain."


def length_of(path):
    """Of the recording, in seconds."""
    run = subprocess.run([PROFILER, "report", path, "-o", "/dev/null", "-f", "folded"], capture_output=True, text=True, check=True)
    return float(re.search(r"recording of ([\d.]+) s", run.stderr)[1])


def cut(path, start, end, pieces, seconds):
    """Two lists of parts."""
    piece = seconds / pieces
    places = random.sample(range(int((end - start) / piece)), 2 * pieces)
    words = [f"{path}@{start + place * piece:.3f}s..{start + (place + 1) * piece:.3f}s" for place in places]
    return words[:pieces], words[pieces:]


def is_alarm(before, after, options):
    run = subprocess.run([PROFILER, "diff", "--table", *options, "--before", *before, "--after", *after],
                         capture_output=True, text=True, check=True)  # fmt: skip
    return not run.stdout.startswith(NONE), run.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pieces", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", type=float, default=30, dest="start")
    parser.add_argument("--show", action="store_true", help="print the alarms")
    parser.add_argument("recordings", nargs="+")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, options = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1 :]
    random.seed(args.seed)
    alarms = total = 0
    for path in args.recordings:
        end, n = length_of(path), 0
        for _ in range(args.pairs):
            alarm, text = is_alarm(*cut(path, args.start, end, args.pieces, args.seconds), options)
            n += alarm
            if alarm and args.show:
                print(text)
        alarms, total = alarms + n, total + args.pairs
        print(f"{os.path.basename(path):20} {n} of {args.pairs} pairs", flush=True)
    error = 100 * math.sqrt(alarms / total * (1 - alarms / total) / total)
    print(f"{'all':20} {alarms} of {total}: {100 * alarms / total:.1f} % +- {error:.1f}")


if __name__ == "__main__":
    main()
