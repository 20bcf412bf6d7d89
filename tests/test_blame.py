# SPDX-License-Identifier: MIT
"""--blame: below a stack that waits, what the one does that it waits for, as the program measured it."""

import re
import sys

import harness
import pprof
from harness import start_wrap, tried
from terminal import run_in_terminal
from test_record import report

SECONDS = "3"
FOLLOWED = re.compile(r"found the cause of ([\d.]+) s of ([\d.]+) s of waiting")


def blame(mode, *args, form="folded", **run):
    return start_wrap([harness.fixture("blame"), SECONDS, mode], "--blame", *args, form=form, **run).finish(
        keep=(0,)
    )


class Blame(harness.TestCase):
    def check_chain(self, run, truth):
        """What the workers wait for is shared out among gc's functions as gc's own clock says."""
        wait_s, sweep_s, journal_s = (float(word) for word in truth.split()[1:])
        waits = {";".join(s): n for s, n in run.stacks().items() if "handle" in s and "--" in s and s[0] == "worker"}
        found = {name: sum(n for s, n in waits.items() if s.count(";--;") == links and f";{name}" in s)
                 for name, links in (("sweep", 1), ("flush_journal", 2))}  # fmt: skip
        total = sum(waits.values())
        # On a busy machine workers that are woken are ready, not waiting, while gc goes on: beside others the
        # shares are off by up to 0.15.
        for name, seconds in (("sweep", sweep_s), ("flush_journal", journal_s)):
            true = seconds / (sweep_s + journal_s)
            self.assertAlmostEqual(found[name] / total, true, delta=0.2, msg=f"{found} {truth}")
        self.assertGreater(total / run.summary.hz, 0.8 * wait_s)
        chain = next(s for s in waits if ";flush_journal" in s).split(";")
        names = [name for name in chain if name in ("handle", "--", "collect", "write_journal", "keep_journal")]
        self.assertEqual(names, ["handle", "--", "collect", "write_journal", "--", "keep_journal"])

    def test_chain(self):
        run = blame("chain", "-t")
        self.check_chain(run, run.stdout.decode())
        # The first thread joins "logger".
        joins = {";".join(s[s.index("--"):]) for s in run.stacks() if s[0] == "blame" and "--" in s}
        self.assertTrue([s for s in joins if ";keep_journal" in s], joins)
        followed_s, waiting_s = map(float, FOLLOWED.search(run.stderr).groups())
        self.assertGreater(followed_s, 0.3 * waiting_s)
        self.assertLess(followed_s, waiting_s)
        self.assertIn("; the rest was for work, time, a disk, ", run.stderr)

    def causes(self, mode):
        """What the workers' waits are followed to, which is "gc" each time."""
        stacks = [s for s in blame(mode, "-t").stacks() if s[0] == "worker" and "--" in s]
        causes = [";".join(s[s.index("--"):]) for s in stacks]
        self.assertTrue(causes and all(";collect" in cause for cause in causes), causes)
        return " ".join(causes)

    def test_rwlock(self):
        """Readers wait for the thread that writes."""
        causes = self.causes("rwlock")
        self.assertIn(";collect;sweep", causes)
        self.assertIn(";keep_journal;flush_journal", causes)

    def test_fsync(self):
        """Who holds the lock waits for another one, and that for the disk."""
        self.assertIn(";keep_journal;flush_journal;fsync", self.causes("fsync"))

    def test_recording(self):
        """Made with --locks, it says the same later, of a part of its time, and in each format."""
        run = start_wrap(
            [harness.fixture("blame"), SECONDS, "chain"], "--locks", form="record"
        ).finish(keep=(0,))  # fmt: skip
        folded, told = report(run.data, "--blame", "-t", "-f", "folded")
        self.assertRegex(told, FOLLOWED)
        counts = harness.read_folded(folded)
        blamed = sum(n for stack, n in counts.items() if "--" in stack and stack[0] == "worker")
        self.assertGreater(blamed, 0)
        self.assertNotIn(b";--;", report(run.data, "-f", "folded")[0])
        part = harness.read_folded(report(run.data, "--blame", "-t", "-f", "folded", "--to=1s")[0])
        self.assertLess(sum(part.values()), 0.5 * sum(counts.values()))
        self.assertTrue(any("--" in stack for stack in part))
        samples = pprof.Profile(report(run.data, "--blame", "-f", "pprof")[0]).samples
        self.assertEqual(sum(s.count for s in samples), sum(counts.values()))
        kinds = {s.labels.get("kind") for s in samples if "--" in s.stack and s.thread == "worker"}
        self.assertEqual(kinds, {"lock"})
        self.assertIn(b"flush_journal", report(run.data, "--blame", "-f", "html")[0])

    def test_child(self):
        """A process that is waited for, if it is sampled too."""
        run = blame("child", "-c")
        waits = {s: n for s, n in run.stacks().items() if "wait4" in s}
        blamed = sum(n for s, n in waits.items() if "--" in s and "sweep" in s[s.index("--"):])
        self.assertGreater(blamed, 0.8 * sum(waits.values()), waits)
        alone = blame("child")
        self.assertFalse([s for s in alone.stacks() if "--" in s])
        self.assertIn("were for threads not sampled then", alone.stderr)

    @tried
    def check_talk(self, way):
        """Who waits for an answer is shown what the process does that gives it, as its own clock says."""
        run = blame(way, "-c")
        wait_s, parse_s, rank_s, _ = (float(word) for word in run.stdout.decode().split()[1:])
        waits = {";".join(s): n for s, n in run.stacks().items() if "ask" in s[:[*s, "--"].index("--")]}
        total = sum(waits.values())
        found = {name: sum(n for s, n in waits.items() if ";--;" in s and f";{name}" in s[s.index(";--;"):])
                 for name in ("parse", "rank_all")}  # fmt: skip
        said = f"{found} of {total}, {parse_s} and {rank_s} of {wait_s}"
        self.assertGreater(total / run.summary.hz, 0.8 * wait_s, said)
        self.assertAlmostEqual(found["parse"] / total, parse_s / wait_s, delta=0.1, msg=said)
        self.assertAlmostEqual(found["rank_all"] / total, rank_s / wait_s, delta=0.1, msg=said)
        return found, said

    def test_pipe(self):
        self.check_talk("pipe")

    def test_unix(self):
        self.check_talk("unix")

    def test_tcp(self):
        self.check_talk("tcp")

    def test_file_lock(self):
        run = blame("flock", "-c")
        waits = {s: n for s, n in run.stacks().items() if s[-1] == "flock" or "--" in s}
        blamed = sum(n for s, n in waits.items() if "--" in s and "sweep" in s[s.index("--"):])
        self.assertGreater(blamed, 0.8 * sum(waits.values()), waits)

    def test_quiet(self):
        """Two that wait for each other's message: neither makes the other one wait."""
        target = self.start(harness.fixture("blame"), "60", "quiet", ready=None)
        run = harness.attach(target, "--blame", "-c", duration="1", form="folded")
        waits = {s: n for s, n in run.stacks().items() if s[-1].startswith("read")}
        self.assertLess(sum(n for s, n in waits.items() if "--" in s), 0.3 * sum(waits.values()), waits)

    def test_turns(self):
        """Who has the lock next is shown as well, although the last one has slept on meanwhile."""
        holders = [";".join(s).split(";--;")[1] for s in blame("turns", "-t").stacks() if s[0] == "worker" and "--" in s]
        self.assertTrue([stack for stack in holders if ";take_turn;" in stack], holders)

    def test_circle(self):
        run = blame("circle")
        self.assertIn("in a circle (a deadlock)", run.stderr)
        circles = {s for s in run.stacks() if s[-1] == "[each waits for the next, in a circle]"}
        self.assertEqual(len(circles), 1, circles)
        self.assertEqual([name for name in circles.pop() if name in ("--", "lock_both")], ["lock_both", "--"] * 2)

    def test_gil(self):
        """Who wants Python's lock is shown what the thread does that has it."""
        program = """
import threading
def burn():
    while True: sum(range(1000))
def want():
    while True: sum(range(1000))
threading.Thread(target=burn, daemon=True).start()
threading.Thread(target=want, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""
        target = self.start(sys.executable, "-c", program)
        stacks = harness.attach(target, "--blame", duration="1", form="folded").stacks()
        blamed = [s for s in stacks if "--" in s and "want" in s[:s.index("--")]]
        self.assertTrue([s for s in blamed if "burn" in s[s.index("--"):]], stacks)
        for _ in range(6):  # no sample is lost, not even the first tick's, which stands for no time
            harness.attach(target, "--blame", duration="0.05", form="folded")

    def test_terminal(self):
        """A person sees tables: who waits, who holds what is waited for, and what that one does meanwhile."""
        target = self.start(harness.fixture("blame"), "60", "rwlock", ready=None)
        _, text = run_in_terminal(["-p", target.pid, "-d", "1.5", "--blame"], self.directory())
        self.assertRegex(text, r' lock +\w+ 0x\w+ +"gc" \d+ +handle \(blame\.c:\d+\)')
        self.assertRegex(text, r"waits for a lock held by .* For \d+ % of that it is in \w+ \(blame\.c:\d+\)")
        self.assertRegex(text, r"wrote html to profiler\.\d+\.html")

    def test_usage(self):
        for args in (("--waits=1s",), ("--ring=10s", "-o", "/tmp")):
            run = harness.Run(["--blame", *args, "-p", "1"]).finish(expect=harness.STATUS_USAGE)
            self.assertIn("--blame covers the whole run", run.stderr)


if __name__ == "__main__":
    harness.main()
