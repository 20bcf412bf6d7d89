"""No thread is held for long, whatever its stack lies on and whatever else there is to look at."""

import re

import harness
from harness import THREAD, attach

MISSING = "page not in memory"
WHOLE = rf"{THREAD}work;outer;middle;leaf"

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
        self.assertLess(run.elapsed_s, 15)
        return run

    def test_between_frames(self):
        target = self.start_missing("gap", "run")
        before = self.count(target)
        run = self.profile(target)
        self.assertGreater(self.count(target), before)
        self.assertGreater(self.matching(run, WHOLE), 0)
        self.assertEqual(run.summary.truncated, 0, run.stderr)

    def test_with_frames(self):
        target = self.start_missing("frames", "run")
        before = self.count(target)
        run = self.profile(target)
        self.assertGreater(self.count(target), before)
        self.check_marked(run)

    def test_of_a_sleeper(self):
        run = self.profile(self.start_missing("frames", "sleep"))
        self.check_marked(run)

    def check_marked(self, run):
        n = self.matching(run, rf"\[truncated: {MISSING}\];middle;leaf(;[^;]+)*")
        self.assertEqual(run.summary.truncated_by, {MISSING: n})
        self.assertGreaterEqual(n, run.summary.ticks - 1)

    def matching(self, run, pattern):
        return sum(n for stack, n in run.folded.items() if re.fullmatch(pattern, ";".join(stack)))


if __name__ == "__main__":
    harness.main()
