# SPDX-License-Identifier: MIT
"""Every output through its real consumers, and their figures read back."""

import collections
import os
import re
import shutil
import subprocess
import tempfile

import harness
from harness import attach

FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"


class Folded(harness.TestCase):
    def flamegraph(self, data):
        path = shutil.which("flamegraph.pl") or FLAMEGRAPH
        harness.need(os.path.exists(path), "flamegraph.pl is not installed")
        run = subprocess.run(
            [harness.find_tool("perl"), path], input=data, capture_output=True, check=True
        )
        self.assertEqual(run.stderr, b"")
        return run.stdout.decode("utf-8")

    def test_flamegraph(self):
        """Each function's samples are what the folded file adds up to."""
        target = self.start_fixture("threads", 8, 2)
        run = attach(target, form="folded", duration="1")
        svg = self.flamegraph(run.data)
        shown = dict(re.findall(r"<title>(\S+) \(([\d,]+) samples, [\d.]+%\)</title>", svg))
        shown = {name: int(count.replace(",", "")) for name, count in shown.items()}
        self.assertEqual(shown["all"], run.summary.samples)
        inclusive = collections.Counter()
        for stack, count in run.folded.items():
            for name in set(stack):
                inclusive[name] += count
        for name in ("worker", "spin_here", "pipe_here", "futex_here", "sleep_here"):
            self.assertEqual(shown.get(name), inclusive[name], name)
            self.assertGreater(inclusive[name], 0)

    def test_to_stdout_as_in_the_readme(self):
        """profiler -p PID -d TIME | flamegraph.pl"""
        target = self.start_fixture("calls-O2", "spin")
        run = harness.Run(["-p", target.pid, "-d", "1"], target_pid=target.pid).finish()
        self.assertIn("leaf_spin", self.flamegraph(run.stdout))
        self.assertEqual(run.summary.where, "stdout")


class Pprof(harness.TestCase):
    def setUp(self):
        self.go = shutil.which("go") or "/usr/local/go/bin/go"
        harness.need(os.path.exists(self.go), "go is not installed")

    def pprof(self, path, *args):
        with tempfile.TemporaryDirectory() as directory:
            run = subprocess.run(
                [self.go, "tool", "pprof", "-symbolize=none", *args, path],
                capture_output=True, text=True, check=False,
                env={**os.environ, "PPROF_TMPDIR": directory, "PPROF_BINARY_PATH": directory},
            )  # fmt: skip
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def profile(self, target, *args, **run):
        """A finished run and its file, to be given to pprof."""
        run = attach(target, *args, **run)
        path = os.path.join(self.directory(), "out.pb.gz")
        with open(path, "wb") as file:
            file.write(run.data)
        return run, path

    def test_top(self):
        """The functions' times, flat and cumulative, in each sample type."""
        target = self.start_fixture("threads", 8, 2)
        run, path = self.profile(target, duration="1")
        for index, unit in (("samples", ""), ("cpu", "ns"), ("wall", "ns")):
            args = [f"-sample_index={index}"] if index != "wall" else []  # wall is the default
            text = self.pprof(path, "-top", "-nodecount=1000", "-nodefraction=0", *args,
                              *([f"-unit={unit}"] if unit else []))  # fmt: skip
            self.assertIn(f"Type: {index}", text)
            self.assertIn("File: threads", text)
            rows = re.findall(
                r"^ *([\d.]+)(?:ns)? +[\d.]+% +[\d.]+% +([\d.]+)(?:ns)? +[\d.]+% +(.+)$", text, re.M
            )
            found = {name: (float(flat), float(cum)) for flat, cum, name in rows}
            flat, cum = collections.Counter(), collections.Counter()
            for sample in run.pprof.samples:
                value = {"samples": sample.count, "cpu": sample.cpu_ns, "wall": sample.wall_ns}
                flat[sample.stack[-1]] += value[index]
                for name in set(sample.stack):
                    cum[name] += value[index]
            for name in ("spin_here", "worker", "main", "pipe_here"):
                if not cum[name]:
                    continue
                self.assertIn(name, found, text)
                self.assertAlmostEqual(found[name][0], flat[name], delta=1 + flat[name] * 0.01)
                self.assertAlmostEqual(found[name][1], cum[name], delta=1 + cum[name] * 0.01)
            self.assertGreater(cum["spin_here"], 0)

    def test_tags(self):
        """Labels: pid, tid, thread, state; each can be chosen by."""
        target = self.start_fixture("threads", 4, 2)
        run, path = self.profile(target)
        text = self.pprof(path, "-tags", "-sample_index=samples")
        for tag in ("pid", "tid", "thread", "state", "kind"):
            self.assertRegex(text, rf"(?m)^ *{tag}: Total {run.summary.samples}\b")
        running = sum(s.count for s in run.pprof.samples if s.state == "running")
        self.assertRegex(text, rf"(?m)^ +{running}(\.0)? \([ \d.]+%\): running$")
        for tid in harness.tids_of(target.pid):
            self.assertRegex(text, rf"(?m)^ +{run.summary.ticks}(\.0)? \([ \d.]+%\): {tid}$")
        only = self.pprof(path, "-top", "-sample_index=samples", "-tagfocus=state=sleeping")
        self.assertNotIn("spin_here", only)
        roots = self.pprof(path, "-traces", "-tagroot=thread")
        self.assertIn("worker-00", roots)

    def test_lines_and_build_ids(self):
        target = self.start_fixture("calls-O2", "spin")
        run, path = self.profile(target)
        text = self.pprof(path, "-raw")
        build_id = re.search(
            r"Build ID: ([0-9a-f]+)",
            subprocess.run(
                [harness.find_tool("readelf"), "-n", harness.fixture("calls-O2")],
                capture_output=True, text=True, check=True,
            ).stdout,
        )[1]  # fmt: skip
        self.assertIn(build_id, text)
        self.assertEqual(run.pprof.mappings[0]["build_id"], build_id)
        with open(harness.HERE + "/fixtures/calls.c", encoding="utf-8") as file:
            source = file.read().splitlines()
        lines = self.pprof(path, "-top", "-lines", "-nodefraction=0", "-nodecount=1000")
        for name, call in (("big_frame", "leaf();"), ("dynamic_frame", "big_frame(leaf);")):
            number = re.search(rf" {name} \S*calls\.c:(\d+)$", lines, re.M)
            self.assertIsNotNone(number, lines)
            self.assertEqual(source[int(number[1]) - 1].strip(), call)

    def test_check_valid(self):
        """pprof's own Go package parses it and finds it valid."""
        build = self.directory()
        program = os.path.join(build, "check_pprof")
        made = subprocess.run(
            [self.go, "build", "-o", program, "."],
            cwd=os.path.join(harness.HERE, "check_pprof"), capture_output=True, text=True,
            check=False, env={**os.environ, "CGO_ENABLED": "0"},
        )  # fmt: skip
        harness.need(made.returncode == 0, f"check_pprof cannot be built: {made.stderr}")
        for name, args in (("strange_names", []), ("threads", ["9"]), ("cxx-O2", ["virtual"])):
            run, path = self.profile(self.start_fixture(name, *args), duration="0.2")
            checked = subprocess.run([program, path], capture_output=True, text=True, check=False)
            self.assertEqual(checked.returncode, 0, checked.stderr)
            samples = re.search(r"samples/count (\d+)", checked.stdout)
            self.assertEqual(int(samples[1]), run.summary.samples)
        garbage = os.path.join(build, "garbage")
        with open(garbage, "wb") as file:
            file.write(b"no profile")
        refused = subprocess.run([program, garbage], capture_output=True, check=False)
        self.assertNotEqual(refused.returncode, 0)


if __name__ == "__main__":
    harness.main()
