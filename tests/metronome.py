# SPDX-License-Identifier: MIT
"""How late the machine itself was, so that a test can take that out of what it asserts.

A virtual machine is paused by its host: for 20 to 200 ms, several times a minute, at times for
seconds. Nothing in the guest shows it (idle CPUs, nobody who waits for one), but all timers are late
at once. A profiler then misses ticks, and whatever a test times takes longer, by no fault of theirs.

A metronome tells: a process that only sleeps, a few milliseconds at a time, on each CPU and before
all other programs, and notes each sleep that was too long (as jHiccup does for Java). What is late
there is late everywhere. It can look after a process as well, and tell for how long that waited in the
kernel where no signal reaches it: for memory that another one is just changing, say, which may have no
CPU to go on. Where it may not go before the others (it is not root), the time for which
they had the CPUs counts as well: a test bears more there, and holds.
"""

import json
import os
import subprocess
import sys
import threading
import time

BEAT_S = 0.004  # of each sleep
LATE_S = 0.005  # by which a sleep may be longer: the kernel itself may take a few milliseconds


class Metronome:
    """Listens from its start to its end. All times are those of time.monotonic()."""

    def __init__(self, beat_s=BEAT_S):
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), str(beat_s)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._ask()

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def _ask(self):
        print(file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def watch(self, pid):
        """From now on looks after that process's first thread, too."""
        print(pid, file=self.process.stdin, flush=True)

    def blocked_s(self):
        """For how long it was in an uninterruptible wait (state D)."""
        return self._ask()["blocked_s"]

    def pauses(self, from_s, to_s):
        """When the machine was late between the two: (start, end) in order, none with another."""
        apart = []
        for start, end in sorted(self._ask()["late"]):
            start, end = max(start, from_s), min(end, to_s)
            if apart and start <= apart[-1][1]:
                apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
            elif start < end:
                apart.append((start, end))
        return apart

    def late_s(self, from_s, to_s):
        """By how much, at most, something between the two was late for the machine's sake."""
        return sum(end - start for start, end in self.pauses(from_s, to_s))

    def lost_ticks(self, from_s, to_s, hz):
        """How many ticks between the two are missed for the machine's sake, at most: of those that
        are due in a pause all but the last. Each is due at a random place in its period, so that one
        more may be due than the periods that the pause lasts, beside the last."""
        return sum((end - start) * hz + 1 for start, end in self.pauses(from_s, to_s))


def beat(cpu, beat_s, noted):
    os.sched_setaffinity(0, {cpu})  # of this thread
    while True:
        start = time.monotonic()
        time.sleep(beat_s)
        end = time.monotonic()
        if end - start > beat_s + LATE_S:
            noted.append((start, end))


def look_after(pid, blocked_s):
    last_s = time.monotonic()
    while True:
        time.sleep(BEAT_S / 2)
        now_s = time.monotonic()
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                state = file.read().rsplit(") ", 1)[1][0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "D":
            blocked_s.append(now_s - last_s)
        last_s = now_s


def main():
    """For each line that it reads: tells what was noted, or looks after the process that it names."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    except OSError:
        pass
    beat_s, noted, blocked_s = float(sys.argv[1]), [], []
    for cpu in os.sched_getaffinity(0):
        threading.Thread(target=beat, args=(cpu, beat_s, noted), daemon=True).start()
    for line in sys.stdin:
        if line.strip():
            threading.Thread(target=look_after, args=(int(line), blocked_s), daemon=True).start()
            continue
        time.sleep(2 * beat_s)  # for a pause that is only just over
        print(json.dumps({"late": noted, "blocked_s": sum(blocked_s)}), flush=True)


if __name__ == "__main__":
    main()
