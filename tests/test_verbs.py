# SPDX-License-Identifier: MIT
"""One real run of each verb, on one program: the first thing to try after a change (suite "quick")."""

import json
import os
import subprocess

import harness
from harness import PROFILER
from push_server import Server


class Verbs(harness.TestCase):
    def setUp(self):
        self.here = self.directory()
        self.target = self.start_fixture("locks", "cycle", "2")

    def path(self, name):
        return os.path.join(self.here, name)

    def run_verb(self, *args, expect=0):
        done = subprocess.run(
            [PROFILER, *map(str, args)], cwd=self.here, capture_output=True, text=True, check=False,
            timeout=harness.RUN_TIMEOUT_S,
            env={**os.environ, "XDG_RUNTIME_DIR": self.here, "SSH_CONNECTION": "no browser here"},
        )  # fmt: skip
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stdout

    def record(self):
        self.run_verb("-q", "-p", self.target.pid, "-d", "0.5", "-o", "a.wprof")

    def test_attach_and_wrap(self):
        for args in (("-p", self.target.pid, "-d", "0.5"), ("--", "sleep", "0.5")):
            self.run_verb("-q", "-o", "x.folded", *args)
            with open(self.path("x.folded"), encoding="utf-8") as file:
                self.assertRegex(file.read(), r"(?m)^\S.* \d+$")

    def test_dump(self):
        self.assertIn("DEADLOCK", self.run_verb("dump", "--check", self.target.pid, expect=10))

    def test_top(self):
        line = json.loads(self.run_verb("top", "-n", "1", "--interval=200ms", "--json", self.target.pid))
        self.assertIn("dead0", [thread["name"] for thread in line["threads"]])

    def test_report_diff_view(self):
        self.record()
        self.assertIn("dead1;", self.run_verb("report", "-q", "-t", "a.wprof"))
        self.assertRegex(self.run_verb("diff", "-q", "a.wprof", "a.wprof"), r"(?m) (\d+) \1$")
        with open(self.run_verb("view", "-q", "a.wprof").strip(), encoding="utf-8") as page:
            self.assertIn("<!doctype html>", page.readline())

    def test_closed_pipe(self):
        """What reads a text may end before it, as head does: nothing is said. A profile is then lost."""
        self.record()
        live = self.target.pid
        for args in (
            ("dump", live), ("dump", "--json", live), ("explain", "-q", "-d", "0.5", live), ("top", "-n", "1", live),
            ("report", "-q", "a.wprof"), ("explain", "-q", "a.wprof"), ("dump", "--at=0.2", "a.wprof"),
        ):  # fmt: skip
            with self.subTest(args=args):
                self.assertEqual(self.run_unread(args), (harness.STATUS_UNREAD, ""))
        status, words = self.run_unread(("-q", "-p", live, "-d", "0.5"))
        self.assertEqual(status, 3)
        self.assertIn("cannot write stdout: the pipe is closed", words)

    def run_unread(self, args):
        """Runs with a pipe that nobody reads. Returns the status, as a shell has it, and what is said."""
        reader, pipe = os.pipe()
        os.close(reader)
        with os.fdopen(pipe, "wb") as stdout:
            done = subprocess.run(
                [PROFILER, *map(str, args)], cwd=self.here, stdout=stdout, stderr=subprocess.PIPE, text=True,
                check=False, timeout=harness.RUN_TIMEOUT_S,
            )  # fmt: skip
        return (128 - done.returncode if done.returncode < 0 else done.returncode), done.stderr

    def test_push(self):
        self.run_verb("-q", "-p", self.target.pid, "-d", "0.5", "-o", "x.pb.gz")
        server = Server()
        self.addCleanup(server.close)
        self.run_verb("push", "-q", server.url, "x.pb.gz")
        self.assertGreaterEqual(len(server.requests), 1)

    def test_agent(self):
        listed = self.run_verb("agent", "--list", "--min-age=1ms", "comm=locks")
        self.assertRegex(listed, rf"(?m)\b{self.target.pid}\b")


if __name__ == "__main__":
    harness.main()
