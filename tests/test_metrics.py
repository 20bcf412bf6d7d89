# SPDX-License-Identifier: MIT
"""What programs are told: the run's own figures, and when sampling has begun."""

import json
import os
import select
import time

import harness
from harness import STATUS_OUTPUT, STATUS_USAGE, Run


class Metrics(harness.TestCase):
    def read(self):
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)

    def setUp(self):
        self.path = os.path.join(self.directory(), "metrics.json")

    def test_they_are_the_summary(self):
        target = self.start_fixture("threads", 5, 2, 1)
        run = harness.attach(target, f"--metrics={self.path}", duration="1")
        told, summary = self.read(), run.summary
        self.assertTrue(told["ended"])
        self.assertEqual(told["pid"], target.pid)
        self.assertEqual(told["ticks"], summary.ticks)
        self.assertEqual(told["missed_ticks"], summary.missed)
        self.assertEqual(told["thinned_ticks"], summary.thinned)
        self.assertEqual(told["samples"], summary.samples)
        self.assertEqual(told["stacks"], summary.stacks)
        self.assertEqual(told["threads_seen"], summary.n_threads)
        self.assertEqual(told["frequency_hz"], summary.hz)
        self.assertEqual(sum(told["truncated"].values()), summary.truncated + run.starved.total())
        self.assertAlmostEqual(told["duration_ns"] / 1e9, summary.duration_s, delta=0.001)
        hold = told["tick_hold_ns"]
        self.assertLessEqual(hold["median"], hold["p90"])
        self.assertLessEqual(hold["p90"], hold["p99"])
        self.assertLessEqual(hold["count"], told["ticks"])
        self.assertLessEqual(told["held_ns"], told["duration_ns"] * 2)
        self.assertGreater(told["profiler_cpu_ns"], 0)
        self.assertGreater(told["profiler_peak_memory_bytes"], 1 << 20)
        threads = {thread["tid"]: thread for thread in told["threads"]}
        self.assertEqual(len(threads), 6)
        for thread in summary.threads:
            one = threads[thread.tid]
            self.assertEqual(one["name"], thread.name)
            self.assertTrue(one["alive"])
            self.assertAlmostEqual(one["watched_ns"] / 1e9, thread.watched_s, places=8)
            self.assertAlmostEqual(one["cpu_ns"] / 1e9, thread.kernel_cpu_s, places=8)
            self.assertAlmostEqual(one["run_queue_ns"] / 1e9, thread.kernel_delay_s, places=8)
        self.assertAlmostEqual(told["target_cpu_ns"] / 1e9, summary.kernel_cpu_s, delta=0.001)

    def test_strange_names(self):
        target = self.start_fixture("strange_names")
        harness.attach(target, f"--metrics={self.path}")
        self.assertEqual(len(self.read()["threads"]), 9)

    def test_each_window(self):
        """The file is there, whole, while sampling goes on."""
        target = self.start_fixture("threads", 2, 1)
        windows = self.directory()
        run = Run(
            ["-p", target.pid, "-q", "--every=200ms", "-o", windows, "--metrics", self.path],
            target_pid=target.pid,
        )
        harness.wait_for(lambda: os.path.exists(self.path), "the first window's figures")
        first = self.read()
        self.assertFalse(first["ended"])
        harness.wait_for(lambda: self.read()["ticks"] > first["ticks"], "the second window's")
        run.signal(2)
        run.communicate()
        self.assertEqual(run.status, 0, run.stderr)
        self.assertTrue(self.read()["ended"])

    def test_cannot_be_written(self):
        """The profile is written all the same; the status tells."""
        target = self.start_fixture("threads", 2, 1)
        run = harness.start_attach(target, "-d", "0.2", "--metrics=/dev/full")
        run.finish(expect=STATUS_OUTPUT)
        self.assertIsNotNone(run.pprof)
        self.assertRegex(run.stderr, "cannot write /dev/full")


class Ready(harness.TestCase):
    def pipe(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        return reader, writer

    def test_attached(self):
        """A newline, then the end, while sampling goes on."""
        target = self.start_fixture("threads", 2, 1)
        reader, writer = self.pipe()
        run = harness.start_attach(target, f"--ready-fd={writer}", pass_fds=[writer])
        os.close(writer)
        self.assertEqual(os.read(reader, 10), b"\n")
        self.assertEqual(os.read(reader, 10), b"")
        self.assertIsNone(run.process.poll())
        run.signal(2)
        run.finish()
        self.assertGreaterEqual(run.summary.ticks, 1)

    def test_before_the_first_instruction(self):
        """As long as the newline cannot be written, the command does not begin."""
        reader, writer = self.pipe()
        os.set_blocking(writer, False)
        filled = 0
        try:
            while True:
                filled += os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        marker = os.path.join(self.directory(), "begun")
        run = harness.start_wrap(
            ["/bin/sh", "-c", f"echo >{marker}; ls /proc/self/fd"],
            f"--ready-fd={writer}", pass_fds=[writer],
        )  # fmt: skip
        os.close(writer)
        harness.wait_for(run.command_pid, "the command")
        time.sleep(0.3)
        self.assertFalse(os.path.exists(marker))
        text = b""
        while not text.endswith(b"\n"):
            self.assertTrue(select.select([reader], [], [], 30)[0])
            text += os.read(reader, 65536)
        self.assertEqual(len(text), filled + 1)
        run.finish()
        self.assertTrue(os.path.exists(marker))
        # It is not the command's: ls has its three, and the directory.
        self.assertLessEqual(len(run.stdout.split()), 4)

    def test_nobody_reads(self):
        target = self.start_fixture("threads", 2, 1)
        reader, writer = os.pipe()
        os.close(reader)
        run = harness.start_attach(target, "-d", "0.2", f"--ready-fd={writer}", pass_fds=[writer])
        os.close(writer)
        run.finish()

    def test_not_open(self):
        for fd in ("77", "2", "x"):
            run = Run(["-p", os.getpid(), f"--ready-fd={fd}"]).finish(expect=STATUS_USAGE)
            self.assert_message(run, "--ready-fd: ", STATUS_USAGE)


if __name__ == "__main__":
    harness.main()
