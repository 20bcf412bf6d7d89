# SPDX-License-Identifier: MIT
"""Threads that wait for CPUs: one line says so, with the cause, wherever time is shown."""

import collections
import json
import os
import re
import subprocess

import harness
import page
import pprof
from cgroup import quota
from harness import PROFILER
from terminal import run_in_terminal
from test_record import report
from told import read_folded

LINE = re.compile(r"waited ([\d.]+) s for a CPU, and ran for ([\d.]+) s(?:: (.*))?")


def lines_of(text):
    lines = (line.removeprefix("profiler: ").removeprefix("the program ") for line in text.splitlines())
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

    def test_short_lives(self):
        """Threads compute for 30 ms and nap for 70: few are found before they nap. What they used until then
        counts."""
        figures = os.path.join(self.directory(), "metrics.json")
        run = harness.wrap([harness.fixture("clocked"), 1.5, "short", 100000, 2], "--metrics", figures, hz=19)
        functions = [line.split() for line in run.stdout.decode().splitlines() if line.startswith("function")]
        used_s = sum(float(cpu_s) for _, _, _, cpu_s, *_ in functions)
        with open(figures, encoding="utf-8") as file:
            told_s = json.load(file)["target_cpu_ns"] / 1e9
        self.assertGreater(told_s, 0.6 * used_s, run.stderr)
        # The kernel's count lacks their ends: what was sampled is not compared with it.
        run = harness.wrap([harness.fixture("clocked"), 1, "short", 2000, 2], hz=99)
        self.assertNotIn("samples found the target running", run.stderr)

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
        self.assertAlmostEqual(float(line[2]), used / 1e9, delta=0.01 * used / 1e9)
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

    def running_share(self, recording):
        """Of the time in which threads of a recording were not idle, as the table on a terminal has it."""
        directory = self.directory()
        with open(os.path.join(directory, "x.wprof"), "wb") as file:
            file.write(recording)
        _, shown = run_in_terminal(["report", "--thread=^worker", "x.wprof"], directory)
        run, ready = map(float, re.search(r" RUN% READY% .*\s+[\d.]+ +[\d.]+ +([\d.]+) +([\d.]+) ", shown).groups())
        return run / (run + ready)

    def test_three_words(self):
        """Eight threads that spin on one CPU: running is what the kernel counts as that, in every format."""
        cpu = str(min(os.sched_getaffinity(0)))
        target = self.start("taskset", "-c", cpu, harness.fixture("threads"), 8, 8)
        run = harness.attach(target, duration="2", form="record")
        data = run.recording
        threads = {thread.tid: thread for thread in run.summary.threads if thread.name.startswith("worker-")}
        self.assertEqual(len(threads), 8)
        times = collections.Counter()
        for sample in pprof.Profile(report(data, "-f", "pprof")[0]).samples:
            # What the profiler takes from a thread that runs is not CPU time.
            least, most = (0.3, 1) if sample.state == "running" else (0, 0)
            self.assertLessEqual(least * sample.wall_ns, sample.cpu_ns)
            self.assertLessEqual(sample.cpu_ns, most * sample.wall_ns)
            self.assertEqual(sample.kind == "runnable", sample.state == "runnable")
            times[sample.tid, sample.state] += sample.wall_ns / 1e9
            times[sample.tid, "cpu"] += sample.cpu_ns / 1e9
        for tid, thread in threads.items():
            off_s = abs(times[tid, "cpu"] - thread.kernel_cpu_s)
            self.assertLessEqual(off_s, max(0.02 * thread.kernel_cpu_s, 0.01), thread)
            self.assertGreater(times[tid, "runnable"], thread.kernel_cpu_s)
        running, runnable = (sum(times[tid, state] for tid in threads) for state in ("running", "runnable"))
        self.assertAlmostEqual(self.running_share(data), running / (running + runnable), delta=0.015)
        on_cpu, off_cpu = (
            sum(read_folded(report(data, "-f", "folded", "--thread=^worker", option)[0]).values())
            for option in ("--on-cpu", "--off-cpu")
        )
        self.assertGreater(off_cpu, on_cpu)
        kinds = collections.Counter()
        for thread, start, end, _, kind, _ in page.Page(report(data, "-f", "html", "--thread=^worker")[0]).runs:
            kinds[kind] += (end - start) * thread["weigh"][kind]
        self.assertGreater(kinds["runnable"], kinds["running"])
        firefox = json.loads(report(data, "-f", "firefox", "--thread=^worker")[0])
        used = collections.Counter()
        names = [category["name"] for category in firefox["meta"]["categories"]]
        categories = firefox["shared"]["frameTable"]["category"]
        for thread in firefox["threads"]:
            for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
                if stack is not None:
                    used[names[categories[firefox["shared"]["stackTable"]["frame"][stack]]]] += weight
        self.assertEqual((used["Running"], used["Waiting for a CPU"]), (on_cpu, off_cpu))
        dump = self.run_profiler("dump", target.pid).stdout
        self.assertRegex(dump, r'(?m)^"worker-0\d" \d+.*   waiting for a CPU\n    spin_here')

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
