# SPDX-License-Identifier: MIT
"""No thread is held for long, whatever its stack lies on and whatever else there is to look at."""

import array
import contextlib
import json
import os
import re
import subprocess
import time

import elf_maker
import harness
from harness import THREAD, attach

MISSING = "page not in memory"
WHOLE = rf"{THREAD}work;outer;middle;leaf"
MAX_OVERHEAD = 0.05  # the default of --max-overhead


class Watched(harness.TestCase):
    """Figures of whoever begins or ends a program, or changes its memory, are had when that is done:
    /proc waits for it, and it may have no CPU meanwhile. So for as long as the profiler waits there, it
    neither ticks nor sees that a thread has stopped, and makes up for such holds with ticks left out."""

    def start_watched(self, *args, **run):
        """A run whose worker self.metronome looks after."""
        self.metronome = self.start_metronome()
        run = harness.start_wrap(*args, **run)
        self.metronome.watch(harness.wait_for(run.worker_pid, "the worker"))
        return run


class MissingPages(harness.TestCase):
    """Pages that do not come when they are asked for: userfaultfd(2), and nobody who answers. A
    swap device or a file server that is slow is the same to whoever reads them."""

    def start_missing(self, *args):
        target = self.start_fixture("missing_pages", *args, ready=None)
        if target.process.stdout.readline() == b"not permitted\n":
            self.skipTest("userfaultfd(2) is not permitted here")
        return target

    def count(self, target):
        target.process.stdin.write(b"\n")
        return int(target.process.stdout.readline())

    def profile(self, target):
        """A run, which ends in time, on a target that counts on."""
        run = attach(target, form="folded", duration="1", hz=99)
        self.assertLess(run.elapsed_s, 60)
        return run

    def check_counting(self, target, before):
        """It may get a CPU only after a while."""
        harness.wait_for(lambda: self.count(target) > before, "the target to count on")

    def test_between_frames(self):
        target = self.start_missing("gap", "run")
        before = self.count(target)
        run = self.profile(target)
        self.check_counting(target, before)
        self.assertGreater(self.matching(run, WHOLE), 0)
        self.assertEqual(run.summary.truncated, 0, run.stderr)

    def test_with_frames(self):
        target = self.start_missing("frames", "run")
        before = self.count(target)
        run = self.profile(target)
        self.check_counting(target, before)
        self.check_marked(run)

    def test_of_a_sleeper(self):
        run = self.profile(self.start_missing("frames", "sleep"))
        self.check_marked(run)

    def check_marked(self, run):
        n = self.matching(run, rf"\[truncated: {MISSING}\];middle;leaf(;[^;]+)*")
        self.assertEqual(run.summary.truncated_by, {MISSING: n})
        self.assertGreaterEqual(n, run.summary.ticks - run.starved.total() - 1)

    def matching(self, run, pattern):
        return sum(n for stack, n in run.folded.items() if re.fullmatch(pattern, ";".join(stack)))


class NewCode(Watched):
    """Code whose rules take long to read, while threads stop that have waited for a CPU."""

    N_BUSY = 6  # threads, of which some have no CPU
    N_FILES = 3
    N_SYMBOLS = 8_000_000  # of a file, all of which are read for its first rule

    def write_file(self, path):
        head = elf_maker.STT_FUNC_GLOBAL << 32 | 1 << 48 | 1
        table = array.array("Q", (head, 0, 1)) * self.N_SYMBOLS
        table[1::3] = array.array("Q", (7 * i * i % 99_999_989 for i in range(self.N_SYMBOLS)))
        sections = [
            (".strtab", elf_maker.SHT_STRTAB, 0, b"\0f\0", ""),
            (".symtab", elf_maker.SHT_SYMTAB, 0, table.tobytes(), ".strtab"),
        ]
        with open(path, "wb") as file:
            file.write(elf_maker.make(sections))

    def test_holds_nobody(self):
        where = self.directory()
        self.write_file(f"{where}/0")
        for i in range(1, self.N_FILES):
            os.link(f"{where}/0", f"{where}/{i}")  # another one, to the profiler
        with open(f"{where}/counts", "wb") as file:
            file.write(bytes(64 * self.N_BUSY))
        program = (
            f"{harness.fixture('crowd')} {where}/counts 0 {self.N_BUSY} 0 0 & sleep 0.3; "
            f"for i in $(seq {self.N_FILES}); do "
            f"timeout 0.7 {harness.fixture('hostile')} run {where}/$((i - 1)) </dev/null; done; "
            "kill $!"
        )
        run, late_s = self.run_unpaused(
            lambda: self.start_watched(["sh", "-c", program], "-c", "--no-symbols",
                                       f"--metrics={where}/told", form="record", hz=99)
        )  # fmt: skip
        blocked_s = self.metronome.blocked_s()
        with open(f"{where}/told", encoding="utf-8") as file:
            told = json.loads(file.read().splitlines()[-1])
        # The first stack of a file takes most of the profiler's time.
        self.assertGreater(told["profiler_cpu_ns"], 1.5e8)
        # Whoever is held while a file is read is held for about a third of that time.
        waited_ns = told["held_waiting_ns"] + 1e9 * (late_s + blocked_s)
        self.assertLess(
            told["tick_hold_ns"]["max"] - waited_ns, told["profiler_cpu_ns"] / (4 * self.N_FILES),
            f"paused for {late_s:.3f} s, blocked for {blocked_s:.3f} s; {run.brief}"
        )  # fmt: skip


class ManyThreads(harness.TestCase):
    """What takes the kernel long is not asked for while somebody may be held."""

    N_SLEEPERS = 1200
    N_BUSY = 2 + 2 * (os.cpu_count() or 1)  # of which some wait for a CPU at each tick

    def test_nobody_waits_for_figures(self):
        where = self.directory()
        with open(f"{where}/counts", "wb") as file:
            file.write(bytes(64 * self.N_BUSY))
        target = self.start_fixture("crowd", f"{where}/counts", self.N_SLEEPERS, self.N_BUSY, 0, 0)
        environment = {
            **os.environ,
            "LD_PRELOAD": harness.fixture("long_looks.so"),
            "LONG_LOOKS": f"{where}/looks",
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
        }
        run = attach(target, "--max-overhead=0", form="folded", duration="1", env=environment)
        with open(f"{where}/looks", encoding="ascii") as file:
            looks = [tuple(map(int, line.split())) for line in file]
        self.assertGreater(sum(n for n, _ in looks), 0)
        self.assertEqual(sum(n for _, n in looks), 0, run.stderr)


class ManyProcesses(Watched):
    """Ten processes of ten idle threads each: what they have in common is read once, and in time."""

    N_PROCESSES, N_SLEEPERS, HZ = 10, 9, 99

    def program(self, where):
        idle = f"{harness.fixture('crowd')} {where}/counts {self.N_SLEEPERS} 0 0 0"
        return f"for i in $(seq {self.N_PROCESSES}); do {idle} >>{where}/out & done; read end"

    def end_when_sampled(self, run, where):
        """Ends the command when all have been sampled for as long as two seconds take. For how long the
        profiler has waited for a CPU, as known just before its end."""

        def have_begun():
            with open(f"{where}/out", encoding="ascii") as file:
                return file.read().count("ready") == self.N_PROCESSES

        harness.wait_for(lambda: os.path.exists(f"{where}/out") and have_begun(), "all processes")
        run.wait_ticks(2 * self.HZ)
        worker, waited_s = run.worker_pid(), 0
        run.process.stdin.write(b"\n")
        run.process.stdin.flush()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            while run.process.poll() is None:
                _, waited_s = harness.schedule_of(worker)
                time.sleep(0.02)
        run.finish()
        return waited_s

    def test_ticks_are_kept(self):
        where = self.directory()
        open(f"{where}/counts", "wb").close()
        run = self.start_watched(
            ["sh", "-c", self.program(where)], "-c", form="folded", hz=self.HZ, stdin=subprocess.PIPE
        )  # fmt: skip
        own_wait_s = self.end_when_sampled(run, where)
        summary = run.summary
        self.assertGreaterEqual(summary.n_threads, self.N_PROCESSES * (self.N_SLEEPERS + 1))
        due = summary.ticks + summary.missed + summary.thinned
        lost = self.metronome.lost_ticks(run.start_s, run.end_s, self.HZ)
        blocked_s = self.metronome.blocked_s()
        others = 2 * (own_wait_s + blocked_s) * self.HZ + lost
        made_up = blocked_s / MAX_OVERHEAD * self.HZ
        self.assertLessEqual(
            max(0, summary.missed - others) + max(0, summary.thinned - made_up), 0.05 * due,
            f"{summary.missed} of {due} ticks are missed, {summary.thinned} left out; {lost:.0f} for "
            f"the machine's pauses, waited {own_wait_s:.3f} s for a CPU, blocked {blocked_s:.3f} s",
        )  # fmt: skip


if __name__ == "__main__":
    harness.main()
