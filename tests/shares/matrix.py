#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares every case of the suite of shares with the truth, by hand and as root, on a quiet machine:

    PROFILER=build/profiler FIXTURES=build/tests/fixtures tests/shares/matrix.py >shares.md

It prints a table with a row for each program, privilege, number of CPUs, rate and treatment. Each row has
--runs runs, each with its own seed. The whole table takes hours: --program, --who and --how (patterns), --cpus
and --hz choose cases. --short chooses those that matter most, for a quarter of an hour.
"""

import argparse
import itertools
import math
import re
import sys

import cases
from judge import mean_and_z

SIGMAS, MAX_BIAS = 3, 2  # the aims: standard errors, and points
MAX_FAR = 0.02  # the part of all shares that may be further off by chance
SHORT = {
    "program": "^(naps of 1 ms|8 threads spin|pool|Python, 4 threads)$",
    "who": "^(root|user)$", "how": "^$", "cpus": [1],
}  # fmt: skip
HEAD = (
    "program", "who", "CPUs", "Hz", "function: own clock, profile (z)", "on CPU: own clock, profile (z)",
    "CPU s: kernel, profile", "waiting s: kernel, profile", "spinners asleep",
)  # fmt: skip


class Cell:
    """The runs of one case."""

    def __init__(self, name, who, n_cpus, hz, how):
        self.name, self.who, self.n_cpus, self.hz, self.how = name, who, n_cpus, hz, how
        self.outcomes, self.faults = [], []

    def __str__(self):
        how = f", {self.how}" if self.how else ""
        return f"{self.name}{how}, {self.who}, {self.n_cpus} CPUs, {self.hz} Hz"

    def run(self, n_runs, seconds, options):
        for seed in range(1, n_runs + 1):
            try:
                outcome, _ = cases.profile(
                    self.name, self.who, self.n_cpus, self.hz, seconds, cases.HOW[self.how], seed,
                    options,
                )
                self.outcomes.append(outcome)
            except AssertionError as error:
                self.faults.append(str(error))

    def errors(self, shares_of):
        """Returns (function, true share, share in the profile, z) of each function, the worst first."""
        rows = [shares_of(outcome) for outcome in self.outcomes]
        if not rows or None in rows:
            return []
        by_name = {}
        for share in itertools.chain(*rows):
            by_name.setdefault(share.name, []).append(share)
        found = []
        for name, shares in by_name.items():
            true = sum(share.true for share in shares) / len(shares)
            mean, z = mean_and_z([share.found - share.true for share in shares])
            found.append((name, true, true + mean, z))
        return sorted(found, key=lambda row: -abs(row[2] - row[1]))

    def slowed(self):
        """Returns how much slower compute_b is in the profile, for programs that know it."""
        if not cases.slowed_by(self.name):
            return ""
        a_s, b_s = (sum(o.wall_s[f] for o in self.outcomes) for f in ("compute_a", "compute_b"))
        return f"; factor {b_s / a_s:.2f}" if a_s else ""

    def row(self):
        def worst(errors):
            return "{}: {:.1f}, {:.1f} ({:+.1f})".format(*errors[0]) if errors else ""

        def pair(figures):
            kernel_s, profile_s = (sum(column) for column in list(zip(*figures))[::-1])
            return f"{kernel_s:.2f}, {profile_s:.2f}" if kernel_s else ""

        outcomes = self.outcomes
        asleep, n = (sum(column) for column in zip(*(o.spinners_asleep() for o in outcomes)))
        name = f"{self.name}, {self.how}" if self.how else self.name
        return (
            name, self.who, self.n_cpus, self.hz, worst(self.errors(lambda o: o.of_wall_time())) + self.slowed(),
            worst(self.errors(lambda o: o.of_running_time())), pair([o.cpu() for o in outcomes]),
            pair([o.waiting_for_cpu() for o in outcomes]), f"{asleep} of {n}" if n else "",
        )  # fmt: skip


def choose(names, pattern):
    return [name for name in names if re.search(pattern, name)]


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--program", default="")
    parser.add_argument("--who", default="")
    parser.add_argument("--how", default="", help="^$: no special treatment")
    parser.add_argument("--option", action="append", default=[], help="one more of the profiler's")
    parser.add_argument("--cpus", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--hz", type=int, nargs="*", default=[99, 997])
    parser.add_argument("--short", action="store_true", help="four programs, root and a user, one CPU")
    args = parser.parse_args()
    if args.short:
        vars(args).update(SHORT)
    return args


def cells(args):
    programs, users = choose(cases.PROGRAMS, args.program), choose(cases.WHO, args.who)
    for how in choose(cases.HOW, args.how):
        for name, who, n_cpus, hz in itertools.product(programs, users, args.cpus, args.hz):
            # Special treatments are tried on one program.
            n_meant = 2 if how == "one CPU of its own" else 1
            if not how or name == "naps of 1 ms" and n_cpus == n_meant:
                yield Cell(name, who, n_cpus, hz, how)


def tell(row):
    print("| " + " | ".join(str(column) for column in row) + " |", flush=True)


def main():
    args = parse_args()
    if not cases.may_be_realtime():
        print("The machine gives no SCHED_FIFO: root has the next best.\n")
    tell(HEAD)
    tell(["---"] * len(HEAD))
    n = n_far = 0
    biased, faults = [], []
    for cell in cells(args):
        cell.run(args.runs, args.seconds, args.option)
        faults += [f"{cell}: {fault}" for fault in cell.faults]
        if not cell.outcomes:
            continue
        tell(cell.row())
        for name, true, found, z in cell.errors(lambda o: o.of_wall_time()):
            n += 1
            n_far += abs(z) > SIGMAS
            if abs(found - true) > MAX_BIAS and abs(z) > SIGMAS:
                biased.append(f"{cell}: {name}: {true:.1f} %, profile {found:.1f} % (z {z:+.1f})")
    is_far = n_far > math.ceil(MAX_FAR * n)
    print(f"\n{n_far} of {n} shares are beyond {SIGMAS} standard errors: {'too many' if is_far else 'by chance'}.")
    print(f"{len(biased)} are also off by more than {MAX_BIAS} points; {len(faults)} runs failed.")
    for line in biased + faults:
        print(f"- {line}")
    sys.exit(bool(is_far or biased or faults))


if __name__ == "__main__":
    main()
