# SPDX-License-Identifier: MIT
"""Targets with very many mappings, threads or pieces of made code: as test_hostile.py. The profiler
samples all that it can at real-time priority, which leaves others no CPU."""

import harness
from test_hostile import MAX_RSS_MB, TestCase


class Crowds(TestCase):
    def test_images_for_debuggers(self):
        """Of 16 million pieces of made code; with four billion symbols."""
        for mode in "many", "tables":
            with self.subTest(mode):
                target = self.start_fixture("jit_image", mode)
                run = self.profile(target, seconds=1)
                target.end()
                pattern = r"\[truncated: [^;]+\];\[(anon|jit).*;from_code.*"
                self.assert_stacks(run.stacks(), pattern)

    def test_mappings(self):
        """As many as the system allows."""
        with open("/proc/sys/vm/max_map_count", encoding="utf-8") as file:
            most = min(int(file.read()), 65530)
        target = self.start_hostile("maps", 2 * most)
        with open(f"/proc/{target.pid}/maps", "rb") as file:
            self.assertGreater(len(file.readlines()), most - 100)
        run = self.profile(target, seconds=1)
        self.assert_stacks(run.stacks(), "_start;.*main;(maps;)?spin")

    def test_churn_of_code(self):
        run = self.profile(self.start_hostile("churn"), seconds=2, hz=999)
        self.assert_stacks(run.stacks(), r".*main;churn.*|\[truncated: [^;]*\].*")
        self.assertTrue([s for s in run.stacks() if "run_code" in s or "[anon" in s[-1]])

    def room(self):
        """How many threads more the machine can have, and still some for others."""
        limits = [open(f"/proc/sys/kernel/{name}", encoding="ascii").read()
                  for name in ("pid_max", "threads-max")]  # fmt: skip
        with open("/proc/loadavg", encoding="ascii") as file:
            there_are = int(file.read().split()[3].split("/")[1])
        return max(0, min(map(int, limits)) - there_are - 3000)

    def test_threads(self):
        """As many as the machine can, up to 30,000."""
        target = self.start_hostile("sleepers", min(30000, self.room()))
        started = int(target.said[0])
        harness.need(started >= 1000, "so few threads are allowed here")
        run = self.profile(target, seconds=2, hz=10, brief=True, max_mb=2 * MAX_RSS_MB)
        self.assertGreater(run.summary.n_threads, started * 0.9)
        self.assert_stacks(run.stacks(), r".*;(wait_for_ever|sleepers).*", share=0.9)


if __name__ == "__main__":
    harness.main()
