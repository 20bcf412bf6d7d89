# SPDX-License-Identifier: MIT
"""Threads that wait for CPUs: one line says so, with the cause, wherever time is shown."""

import json
import os
import re
import subprocess

import harness
import page
from cgroup import quota
from harness import PROFILER

LINE = re.compile(r"waited ([\d.]+) s for a CPU \((\d+) % of its active time\)(?:: (.*))?")


def lines_of(text):
    lines = (line.removeprefix("profiler: ") for line in text.splitlines())
    return [match for match in map(LINE.fullmatch, lines) if match]


class CpuWaits(harness.TestCase):
    def run_profiler(self, *args):
        done = subprocess.run(
            [PROFILER, *map(str, args)], capture_output=True, text=True, check=False,
            timeout=harness.RUN_TIMEOUT_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def only_line(self, text):
        found = lines_of(text)
        self.assertEqual(len(found), 1, text)
        return found[0]

    def check(self, target, cause, metrics):
        """The summary, a recording's report, its page, and top say the same. Returns the figures."""
        directory = self.directory()
        record, html = os.path.join(directory, "x.wprof"), os.path.join(directory, "x.html")
        figures = os.path.join(directory, "metrics.json")
        run = self.run_profiler("-p", target.pid, "-d", 1.6, "-o", record, "--metrics", figures)
        line = self.only_line(run.stderr)
        self.assertRegex(line[3], cause)
        with open(figures, encoding="utf-8") as file:
            told = json.load(file)
        waited, used = told["target_run_queue_ns"], told["target_cpu_ns"]
        self.assertAlmostEqual(float(line[1]), waited / 1e9, delta=0.01 * waited / 1e9)
        self.assertAlmostEqual(float(line[2]), 100 * waited / (waited + used), delta=1)
        for name, value in metrics.items():
            self.assertEqual(told[name], value, name)
        again = self.only_line(self.run_profiler("report", record, "-o", html).stderr)
        self.assertEqual(again[0], line[0])
        with open(html, "rb") as file:
            self.assertEqual(page.Page(file.read()).meta["cpu_wait"], line[0])
        whole = self.run_profiler("top", record, "--interval=1h").stdout
        self.assertEqual(self.only_line(whole)[0], line[0])
        (whole,) = self.run_profiler("top", record, "--interval=1h", "--json").stdout.splitlines()
        whole = json.loads(whole)["cpu"]
        self.assertEqual((whole["waited_ns"], whole["used_ns"]), (waited, used))
        # A part of the time has a part of it.
        parts = [json.loads(part) for part in self.run_profiler("top", record, "--json").stdout.splitlines()]
        self.assertEqual(sum(part["cpu"]["waited_ns"] for part in parts if "cpu" in part), waited)
        return told

    def test_one_cpu(self):
        cpu = str(min(os.sched_getaffinity(0)))
        target = self.start("taskset", "-c", cpu, harness.fixture("threads"), 8, 8)
        told = self.check(
            target, "^8 threads share 1 CPU$",
            {"target_cpus": 1, "target_cpu_limit": None, "target_throttled_ns": 0},
        )  # fmt: skip
        self.assertEqual(told["target_throttled_periods"], 0)

    def test_limit(self):
        """A quota is the cause, though there are enough CPUs."""
        with quota(3) as prefix:
            target = self.start(*prefix, harness.fixture("threads"), 1, 1)
            try:
                told = self.check(
                    target, r"^its control group may use 0\.03 CPUs, and was throttled in \d+ of \d+ periods$",
                    {"target_cpu_limit": 0.03},
                )  # fmt: skip
                self.assertGreater(told["target_throttled_periods"], 1)
                self.assertGreater(told["target_throttled_ns"], 0)
                self.assertLessEqual(told["target_throttled_periods"], told["target_limit_periods"])
            finally:
                target.end()

    def test_asleep(self):
        """A program that hardly runs is not told of, however busy the machine is."""
        target = self.start_fixture("threads", 8, 0)
        run = self.run_profiler("-p", target.pid, "-d", 0.5, "-o", os.path.join(self.directory(), "x.html"))
        self.assertEqual(lines_of(run.stderr), [])

    def test_live(self):
        """profiler top says it of each interval."""
        cpu = str(min(os.sched_getaffinity(0)))
        target = self.start("taskset", "-c", cpu, harness.fixture("threads"), 4, 4)
        text = self.run_profiler("top", target.pid, "--interval=2s", "-n", 1).stdout
        self.assertEqual(self.only_line(text)[3], "4 threads share 1 CPU")


if __name__ == "__main__":
    harness.main()
