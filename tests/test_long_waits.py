# SPDX-License-Identifier: MIT
"""--waits: what threads were blocked in for long, each such wait by itself."""

import os
import re

import harness
import pprof
from harness import STATUS_USAGE, attach
from terminal import run_in_terminal
from test_record import report

# threads 8 2 2: two spin, two sleep 10 ms at a time, four and the main thread wait for ever.
WAITING = {"threads", "worker-04", "worker-05", "worker-06", "worker-07"}


class LongWaits(harness.TestCase):
    def attach(self, *args, **run):
        target = self.start_fixture("threads", "8", "2", "2")
        return attach(target, *args, duration="1", **run)

    def test_only_long_ones(self):
        """A thread that sleeps often at one place has waited for long at no time."""
        run = self.attach("--waits=500ms")
        samples = run.pprof.samples
        self.assertEqual(sorted(s.thread for s in samples), sorted(WAITING))
        for sample in samples:
            self.assertGreaterEqual(sample.wall_ns, 500_000_000)
            self.assertEqual(sample.state, "sleeping")
            self.assertEqual(sample.cpu_ns, 0)
            self.assertRegex(sample.labels["since"], r"^20\d\d-\d\d-\d\dT[\d:.]+Z$")
        calls = {s.labels["syscall"] for s in samples}
        self.assertLessEqual({"futex", "read", "pause"}, calls)
        self.assertIn("5 waits of 0.5 s or longer, of 5 threads", run.stderr)

    def test_on_a_terminal(self):
        """A row for those of the same stack for the same thing, those of idle threads last; no file."""
        target, directory = self.start_fixture("threads", "8", "2", "2"), self.directory()
        status, shown = run_in_terminal(
            ["-p", target.pid, "-d", "1.2", "--waits=500ms"], directory
        )
        self.assertEqual((status, os.listdir(directory)), (0, []), shown)
        table = shown.replace("\r\n", "\n").split("LONGEST", 1)[1]
        self.assertRegex(table, r"(?m)^ *\d\.\d\d s +2 +2\.\d\d s worker-0[47] \+1 +pipe +read\(pipe:.* pipe_here ")
        self.assertRegex(table, rf"(?m)^ *\d\.\d\d s +1 +1\.\d\d s threads {target.pid} +timer +pause ")
        self.assertRegex(table, r"\nIdle threads come last\.\n")

    def test_max_threads(self):
        run = self.attach("--waits=500ms", "--max-threads=2")
        self.assertEqual(len({s.tid for s in run.pprof.samples}), 2)
        left_out = re.search(r"(\d+) more threads .* --max-threads=(\d+) shows all", run.stderr)
        self.assertEqual((int(left_out[1]), int(left_out[2])), (3, 5))

    def test_none(self):
        run = self.attach("--waits=10s")
        self.assertEqual(run.pprof.samples, [])
        self.assertIn("0 waits of 10 s or longer", run.stderr)

    def test_of_a_recording(self):
        """The same waits as in the run itself, by the spans that it has recorded."""
        target = self.start_fixture("threads", "8", "2", "2")
        data = attach(target, duration="1", form="record").recording
        out, told = report(data, "--waits=500ms", "-f", "pprof")
        samples = pprof.Profile(out).samples
        self.assertEqual(sorted(s.thread for s in samples), sorted(WAITING))
        for sample in samples:
            self.assertGreaterEqual(sample.wall_ns, 500_000_000)
            self.assertEqual(sample.state, "sleeping")
            self.assertRegex(sample.labels["since"], r"^20\d\d-\d\d-\d\dT[\d:.]+Z$")
        self.assertIn("5 waits of 0.5 s or longer, of 5 threads", told)

    def test_what_it_does_not_go_with(self):
        for args, words in (
            (["--waits=1s", "--ring=10s"], "--ring"),
            (["--waits=1s", "-f", "record", "-o", "x.wprof"], "-f pprof or -f folded"),
            (["--max-threads=3"], "--waits"),
            (["--waits=0"], "not a time above 0"),
        ):
            with self.subTest(args):
                run = harness.Run(["-p", "1", *args])
                run.finish(expect=STATUS_USAGE)
                self.assert_message(run, words, status=STATUS_USAGE)


if __name__ == "__main__":
    harness.main()
