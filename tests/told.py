# SPDX-License-Identifier: MIT
"""What the profiler tells: its summary on stderr and its folded profiles, read strictly; and as much of
it as a message can show."""

import collections
import re
import unicodedata

Thread = collections.namedtuple(
    "Thread", "tid name watched_s wall_s samples cpu_s kernel_cpu_s kernel_delay_s"
)

UNSAMPLED = "stack not available"
NO_STACK = (f"[truncated: {UNSAMPLED}]",)


class Stacks(collections.Counter):
    """How often each stack was seen, root first; `starved` of them have none, as their threads got no
    CPU any more (Run.starved)."""

    starved = 0

    def unsampled(self):
        """How many have none; below a thread's name, too (--threads)."""
        return sum(n for stack, n in self.items() if stack[-1:] == NO_STACK)

    def where(self, is_wanted):
        """Those stacks. The starved ones may be among them."""
        wanted = Stacks({stack: n for stack, n in self.items() if is_wanted(stack)})
        wanted.starved = self.starved
        return wanted

    def told(self):
        """All but the starved ones."""
        told, n_starved = Stacks(self), self.starved
        for stack in [stack for stack in self if stack[-1:] == NO_STACK]:
            n = min(n_starved, told[stack])
            told[stack] -= n
            n_starved -= n
        return +told


def unsampled_by_tid(samples):
    """How many of a pprof's samples have no stack, of each thread that ran, or waited for a CPU, when it
    had been asked to stop. It may have slept in the tick that asked, and was woken by that."""
    counts, asked = collections.Counter(), set()
    for sample in samples:
        if sample.stack == NO_STACK and sample.state in ("running", "runnable"):
            counts[sample.tid] += sample.count
        elif sample.stack == NO_STACK and sample.state == "sleeping":
            asked.add(sample.tid)
    for tid in asked.intersection(counts):
        counts[tid] += 1
    return counts


class Summary:
    """What the profiler said on stderr, taken apart."""

    TOTALS = re.compile(
        r"(\d+) ticks? at ([\d.]+) Hz in ([\d.]+) s, (\d+) missed; "
        r"(\d+) samples? of (\d+) threads?; (\d+) distinct stacks?"
    )
    BRIEF = re.compile(
        r"(\d+) samples? of (\d+) threads?(?: and goroutines)?(?: \(\d+ at the end\))? in ([\d.]+) s; (?:paused the target ([\d.]+) % of the time "
        r"\(median \S+ \S+\)|never paused the target.*)"
    )
    TRUNCATED = re.compile(r"(\d+) samples? truncated \(([\d.]+) %\): (.+)")
    THINNED = re.compile(r"(\d+) of (\d+) ticks were skipped .*")
    HELD = re.compile(
        r"paused the target (-?[\d.]+) % of the time; "
        r"each time: median (\S+) (\S+), p99 (\S+) (\S+), max (\S+) (\S+)"
    )
    CPU = re.compile(
        r"cpu: samples found it running for ([\d.]+) s; "
        r"used ([\d.]+) s of CPU time; waited ([\d.]+) s for a CPU"
    )
    LEFT_OUT = re.compile(r"the filters left out (\d+) of (\d+) samples, ([\d.]+) of ([\d.]+) s")
    WROTE = re.compile(r"wrote (\w+) to (.+)")
    STOPPED = re.compile(r"engine: (\d+) threads stopped \(.+")
    THREAD = re.compile(
        r'thread (\d+) "(.*)": watched ([\d.]+) s, wall ([\d.]+) s, (\d+) samples, '
        r"sampled cpu ([\d.]+) s(?:, kernel cpu ([\d.]+) s, kernel delay ([\d.]+) s)?"
    )

    def __init__(self, stderr):
        self.lines, self.others = [], []
        for line in stderr.splitlines():
            if line.startswith("profiler: "):
                self.lines.append(line[len("profiler: ") :])
            else:
                self.others.append(line)
        self.threads = [
            Thread(int(m[1]), m[2], *(float(n) for n in m.group(3, 4)), int(m[5]), float(m[6]),
                   *(float(n) if n else None for n in m.group(7, 8)))
            for m in self._all(self.THREAD)
        ]  # fmt: skip
        totals = self._only(self.TOTALS)
        self.has_totals = bool(totals)
        if totals:
            self.ticks, self.missed = int(totals[1]), int(totals[4])
            self.hz, self.duration_s = float(totals[2]), float(totals[3])
            self.samples, self.n_threads, self.stacks = (int(totals[i]) for i in (5, 6, 7))
        self.brief = self._only(self.BRIEF)  # what is said without -v
        if self.brief:
            self.samples, self.n_threads = int(self.brief[1]), int(self.brief[2])
        truncated = self._only(self.TRUNCATED)
        self.truncated = int(truncated[1]) if truncated else 0
        self.truncated_by = {}
        if truncated:
            for part in truncated[3].split(", "):
                number, reason = part.split(" ", 1)
                self.truncated_by[reason] = int(number)
        thinned = self._only(self.THINNED)
        self.thinned = int(thinned[1]) if thinned else 0
        held = self._only(self.HELD)
        self.held_percent = float(held[1]) if held else None
        stopped = self._only(self.STOPPED)
        self.stopped = int(stopped[1]) if stopped else 0
        cpu = self._only(self.CPU)
        self.kernel_cpu_s = float(cpu[2]) if cpu else None
        left_out = self._only(self.LEFT_OUT)
        self.left_out = int(left_out[1]) if left_out else 0
        wrote = self._only(self.WROTE)
        self.format, self.where = (wrote[1], wrote[2]) if wrote else (None, None)

    def _all(self, pattern):
        return [match for match in map(pattern.fullmatch, self.lines) if match]

    def _only(self, pattern):
        matches = self._all(pattern)
        assert len(matches) <= 1, f"more than one line as {pattern.pattern}: {self.lines}"
        return matches[0] if matches else None


class FoldedError(Exception):
    """The folded file breaks a rule."""


def read_folded(data):
    """A folded profile as a Counter of stacks, tuples of names, root first."""
    counts = collections.Counter()
    if data and not data.endswith(b"\n"):
        raise FoldedError("the last line is not ended")
    for line in data.decode("utf-8").split("\n")[:-1]:
        match = re.fullmatch(r"([^\n]+) ([1-9]\d*)", line)
        # What a terminal or an editor obeys, instead of showing it.
        if not match or {"Cc", "Zl", "Zp"} & set(map(unicodedata.category, match[1])):
            raise FoldedError(f"no folded line: {line!r}")
        stack = tuple(match[1].split(";"))
        if "" in stack or re.search(r" \d+$", match[1]):
            raise FoldedError(f"a name that a consumer misreads: {line!r}")
        if stack in counts:
            raise FoldedError(f"a stack is there twice: {line!r}")
        counts[stack] = int(match[2])
    lines = data.split(b"\n")[:-1]
    if lines != sorted(lines):
        raise FoldedError("the lines are not sorted")
    return counts


def shorten(text, length=600):
    """The text, with its middle left out where it is long."""
    half = length // 2 - 50
    return text if len(text) < length else f"{text[:half]} ... {text[-half:]}"


def without_threads(text):
    """What a run has told, or a message that has it in it: without the lines of -v for each thread,
    of which there may be hundreds, and no longer than somebody reads."""
    return shorten(re.sub(r"(?m)^profiler: thread \d+ .*\n?", "", text), 4000)
