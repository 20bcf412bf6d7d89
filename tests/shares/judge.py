# SPDX-License-Identifier: MIT
"""Compares a profile with what the program measured (fixtures/clocked.c), function by function."""

import collections
import math

Spent = collections.namedtuple("Spent", "wall_s cpu_s times kind")
# One function's share in one run, in percent of the total time of all threads.
Share = collections.namedtuple("Share", "name true found sigma")
RUNNING, RUNNABLE = "running", "runnable"
HELD_ASLEEP = {"sleeping", "disk"}


class Truth:
    """What the program printed: Spent by function, and (CPU s, delay s) of its threads by the kernel."""

    def __init__(self, text):
        self.functions, self.threads = {}, {}
        for line in text.splitlines():
            what, *words = line.split()
            if what == "function":
                name, wall_s, cpu_s, times, kind = words
                self.functions[name] = Spent(float(wall_s), float(cpu_s), int(times), kind)
            elif what == "thread":
                self.threads[int(words[0])] = float(words[1]), float(words[2])
        assert self.functions, f"the program measured nothing: {text!r}"
        self.wall_s = sum(spent.wall_s for spent in self.functions.values())
        self.cpu_s = sum(spent.cpu_s for spent in self.functions.values())


class Outcome:
    """A profile and the truth."""

    def __init__(self, truth, samples, n_missed=0):
        self.truth = truth
        self.wall_s, self.cpu_s, self.counts = (collections.Counter() for _ in range(3))
        self.asleep = collections.Counter()  # samples by function
        self.thread_cpu_s, self.thread_runnable_s = collections.Counter(), collections.Counter()
        self.unknown = collections.Counter()
        self.n_missed = n_missed
        for sample in samples:
            self._add(sample)

    def _add(self, sample):
        name = next((name for name in reversed(sample.stack) if name in self.truth.functions), None)
        self.thread_cpu_s[sample.tid] += sample.cpu_ns / 1e9
        if sample.state == RUNNABLE:
            self.thread_runnable_s[sample.tid] += sample.wall_ns / 1e9
        if name is None:
            self.unknown[sample.stack[-1]] += sample.wall_ns / 1e9
            return
        self.wall_s[name] += sample.wall_ns / 1e9
        self.cpu_s[name] += sample.cpu_ns / 1e9
        self.counts[name] += sample.count
        if sample.state in HELD_ASLEEP:
            self.asleep[name] += sample.count

    def _shares(self, spent, found):
        true_s = {name: spent(one) for name, one in self.truth.functions.items()}
        total_s, n = sum(true_s.values()), sum(self.counts.values())
        shares = []
        for name, seconds in true_s.items():
            p = seconds / total_s
            # The sample after a gap of missed ticks stands for the whole gap.
            variance = p * (1 - p) * (n + (1 + self.n_missed) ** 2) / max(1, n) ** 2
            shares.append(
                Share(name, 100 * p, 100 * found[name] / total_s, 100 * math.sqrt(variance))
            )
        return shares

    def of_wall_time(self):
        return self._shares(lambda spent: spent.wall_s, self.wall_s)

    def of_running_time(self):
        """Returns None if the program does not know it."""
        if math.isnan(self.truth.cpu_s):
            return None
        return self._shares(lambda spent: spent.cpu_s, self.cpu_s)

    def spinners_asleep(self):
        """Returns how many samples of functions that never sleep are asleep, and how many samples they have."""
        spinners = [name for name, one in self.truth.functions.items() if one.kind == "spins"]
        return sum(self.asleep[name] for name in spinners), sum(self.counts[name] for name in spinners)

    def cpu(self):
        """Returns the seconds that the threads were on a CPU: by the profile, and by the kernel."""
        return (
            sum(self.thread_cpu_s[tid] for tid in self.truth.threads),
            sum(cpu_s for cpu_s, _ in self.truth.threads.values()),
        )

    def waiting_for_cpu(self):
        """Returns the seconds that the threads waited for a CPU: by the profile, and by the kernel."""
        return (
            sum(self.thread_runnable_s[tid] for tid in self.truth.threads),
            sum(delay_s for _, delay_s in self.truth.threads.values()),
        )


def mean_and_z(values):
    """Returns the mean of errors, and how many standard errors it is from 0. For few values, Student's t is
    turned into the normal deviate of the same probability (Wallace 1959: error below 0.1)."""
    n = len(values)
    mean = sum(values) / n
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, n - 1))
    if not deviation:
        return mean, math.nan
    t, free = mean / (deviation / math.sqrt(n)), n - 1
    z = math.sqrt(free * math.log(1 + t * t / free)) * (8 * free + 1) / (8 * free + 3)
    return mean, math.copysign(z, t)
