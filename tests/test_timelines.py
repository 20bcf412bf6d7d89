# SPDX-License-Identifier: MIT
"""The formats that show time: one recording, turned into each of them, says the same in all.

What their importers make of them is tests/importers/run.py.
"""

import collections
import json
import os
import re
import signal
import sys

import harness
import pprof
from test_record import Recorded, report

FORMS = ("speedscope", "firefox", "chrome", "sentry")
HEX_ID = re.compile(r"[0-9a-f]{32}")


def sums_of(data, *args):
    """By tid, what pprof says: (samples, wall, cpu)."""
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for sample in pprof.Profile(report(data, "-f", "pprof", *args)[0]).samples:
        for i, value in enumerate((sample.count, sample.wall_ns, sample.cpu_ns)):
            sums[sample.tid][i] += value
    return sums


def seen_in(data, *args):
    """By tid, the time that ticks saw; pprof's is weighed by the kernel's count of each state."""
    seen = collections.Counter()
    for profile in json.loads(report(data, "-f", "speedscope", *args)[0])["profiles"]:
        tid = int(re.search(r"\((\d+)\)$", profile["name"])[1])
        seen[tid] += sum(w for w, s in zip(profile["weights"], profile["samples"]) if s)
    return seen


def ns(milliseconds):
    return round(milliseconds * 1_000_000)


class Timelines(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.target = harness.Target([harness.fixture("threads"), "6", "2", "2"])
        cls.recorded = Recorded(cls.target, duration="1").finish()
        cls.data = cls.recorded.data
        cls.sums = sums_of(cls.data)

    @classmethod
    def tearDownClass(cls):
        cls.target.end()

    def timeline(self, form, *args):
        return json.loads(report(self.data, "-f", form, *args)[0])

    def test_no_wait(self):
        """Of a program that never does, in each form."""
        target = self.start_fixture("calls-O2", "spin")
        recorded = Recorded(target, duration="1000")
        recorded.run.wait_attached()
        harness.wait_until_spinning(target)  # however long others have the CPUs
        recorded.run.signal(signal.SIGINT)
        data = recorded.finish().data
        target.end()
        for form in FORMS:
            self.assertIn("leaf_spin", json.dumps(json.loads(report(data, "-f", form)[0])))

    def tid_of(self, name):
        return int(re.search(r"\((\d+)\)$", name)[1])

    def test_speedscope(self):
        file = self.timeline("speedscope")
        n_frames = len(file["shared"]["frames"])
        self.assertEqual({self.tid_of(p["name"]) for p in file["profiles"]}, set(self.sums))
        for profile in file["profiles"]:
            self.assertEqual(profile["unit"], "nanoseconds")
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertTrue(all(0 <= f < n_frames for s in profile["samples"] for f in s))
            held = sum(w for w, s in zip(profile["weights"], profile["samples"]) if s)
            self.assertEqual(held, self.sums[self.tid_of(profile["name"])][1])
            self.assertEqual(
                sum(profile["weights"]), profile["endValue"] - profile["startValue"]
            )
        busiest = file["profiles"][file["activeProfileIndex"]]
        running = seen_in(self.data, "--on-cpu")
        self.assertEqual(running[self.tid_of(busiest["name"])], max(running.values()))
        names = {frame["name"] for frame in file["shared"]["frames"]}
        self.assertLessEqual({"spin_here", "worker", "main"}, names)

    def test_firefox(self):
        file, running = self.timeline("firefox"), seen_in(self.data, "--on-cpu")
        shared = file["shared"]
        self.assertEqual(file["meta"]["preprocessedProfileVersion"], 66)
        for table in shared.values():
            if isinstance(table, dict):
                lengths = {len(v) for v in table.values() if isinstance(v, list)}
                self.assertLessEqual(lengths, {table["length"]})
        self.assertEqual({t["tid"] for t in file["threads"]}, set(self.sums))
        for thread in file["threads"]:
            samples, markers = thread["samples"], thread["markers"]
            for table in (samples, markers):
                lengths = {len(v) for v in table.values() if isinstance(v, list)}
                self.assertEqual(lengths, {table["length"]})
            self.assertEqual(sum(samples["weight"]), self.sums[thread["tid"]][0])
            self.assertEqual(sum(samples["threadCPUDelta"]), running[thread["tid"]])
            self.assertEqual(samples["time"], sorted(samples["time"]))
            self.check_stacks(shared, samples["stack"])
        waits = {
            shared["stringArray"][name]
            for thread in file["threads"] for name in thread["markers"]["name"]
        }  # fmt: skip
        self.assertLessEqual({"pause", "clock_nanosleep"}, waits)

    def check_stacks(self, shared, stacks):
        """Each stack leads to a root, by way of frames and functions that there are."""
        table, frames = shared["stackTable"], shared["frameTable"]
        for stack in {s for s in stacks if s is not None}:
            while True:
                function = frames["func"][table["frame"][stack]]
                self.assertTrue(shared["stringArray"][shared["funcTable"]["name"][function]])
                offset = table["prefixOffset"][stack]
                self.assertLessEqual(offset, stack)
                if offset == 0:
                    break
                stack -= offset

    def test_chrome(self):
        events = self.timeline("chrome")["traceEvents"]
        by_tid = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                start = round(event["ts"] * 1000)
                by_tid[event["tid"]].append((start, start + round(event["dur"] * 1000)))
        self.assertEqual(set(by_tid), set(self.sums))
        for tid, spans in by_tid.items():
            outermost, open_until = 0, []
            for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
                while open_until and open_until[-1] <= start:
                    open_until.pop()
                self.assertTrue(not open_until or end <= open_until[-1], "not nested")
                outermost += 0 if open_until else end - start
                open_until.append(end)
            self.assertEqual(outermost, self.sums[tid][1])
        states = {e["args"]["state"] for e in events if e["ph"] == "X" and "args" in e}
        self.assertLessEqual({"running", "sleeping"}, states)
        names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.assertIn("worker-00", names)

    def test_chrome_states(self):
        """The innermost call's event has the state, and no other time: in each state as much as
        speedscope has, also of calls that another call returned into, naps and computing by turns."""
        program = """
import time
print("ready", flush=True)
while True:
    time.sleep(0.02)
    for _ in range(200000): pass
"""
        target = self.start(sys.executable, "-c", program)
        naps = Recorded(target, duration="1").finish().data
        for data in (naps, self.data):
            walls, durations = collections.Counter(), collections.Counter()
            for state in ("running", "runnable", "sleeping", "disk", "stopped"):
                walls.update({(tid, state): ns for tid, ns in seen_in(data, f"--state={state}").items()})
            for event in json.loads(report(data, "-f", "chrome")[0])["traceEvents"]:
                if event["ph"] == "X" and "args" in event:
                    durations[event["tid"], event["args"]["state"]] += round(event["dur"] * 1000)
            self.assertEqual(+durations, +walls)
            self.assertLessEqual({"running", "sleeping"}, {state for _, state in walls})

    def test_sentry(self):
        """The rules of Sentry's server (relay-profiling, sample/v2.rs)."""
        file = self.timeline("sentry")
        self.assertEqual(file["version"], "2")
        for key in ("profiler_id", "chunk_id"):
            self.assertRegex(file[key], HEX_ID)
        profile = file["profile"]
        counts = collections.Counter()
        for sample in profile["samples"]:
            self.assertLess(sample["stack_id"], len(profile["stacks"]))
            counts[int(sample["thread_id"])] += 1
        times = [sample["timestamp"] for sample in profile["samples"]]
        self.assertEqual(times, sorted(times))
        self.assertLessEqual(times[-1] - times[0], 66)
        for stack in profile["stacks"]:
            self.assertTrue(stack and all(frame < len(profile["frames"]) for frame in stack))
        self.assertEqual(dict(counts), {tid: sums[0] for tid, sums in self.sums.items()})
        self.assertEqual(set(profile["thread_metadata"]), {str(tid) for tid in self.sums})
        self.assertTrue(all(frame["function"] for frame in profile["frames"]))

    def test_slices(self):
        """A slice's times lie in it; two that follow each other have all of the time."""
        sums = collections.Counter()
        for part in (("--to=0.4",), ("--from=0.4",)):
            for profile in self.timeline("speedscope", *part)["profiles"]:
                sums[self.tid_of(profile["name"])] += sum(profile["weights"])
                edge = 400_000_000
                if part[0].startswith("--to"):
                    self.assertLessEqual(profile["endValue"], edge)
                else:
                    self.assertGreaterEqual(profile["startValue"], edge)
        for tid, (_, wall_ns, _) in self.sums.items():
            self.assertEqual(sums[tid], wall_ns)

    def test_ticks_of_slices(self):
        """Each tick is in one slice, the one that pprof has it in."""
        for part in (("--to=0.4",), ("--from=0.4",)):
            sums = sums_of(self.data, *part)
            for thread in self.timeline("firefox", *part)["threads"]:
                self.assertEqual(sum(thread["samples"]["weight"]), sums[thread["tid"]][0])

    def test_filters(self):
        file = self.timeline("speedscope", "--on-cpu", "--thread=^worker-0")
        self.assertTrue(file["profiles"])
        threads = self.timeline("firefox")["threads"]
        used = {thread["tid"]: sum(thread["samples"]["threadCPUDelta"]) for thread in threads}
        for profile in file["profiles"]:
            self.assertRegex(profile["name"], "^worker-0")
            held = sum(w for w, s in zip(profile["weights"], profile["samples"]) if s)
            self.assertEqual(held, used[self.tid_of(profile["name"])])

    def test_kernel_frames(self):
        """They have a category of their own, but for the leaf, which has the thread's state."""
        harness.need(os.access("/proc/self/stack", os.R_OK), "kernel stacks cannot be read")
        run = harness.Run(
            ["-p", self.target.pid, "-d", "0.3", "--kernel", "-o", "out.firefox.json"],
            target_pid=self.target.pid,
        ).finish()
        file = json.loads(run.data)
        names = [category["name"] for category in file["meta"]["categories"]]
        shared = file["shared"]
        kinds = set()
        for function, category in zip(shared["frameTable"]["func"], shared["frameTable"]["category"]):
            name = shared["stringArray"][shared["funcTable"]["name"][function]]
            if name.endswith("_[k]"):
                kinds.add(names[category])
            elif category is not None:
                self.assertNotEqual(names[category], "Kernel")
        self.assertIn("Kernel", kinds)
        self.assertLessEqual(kinds, {"Kernel", "Sleeping", "Disk"})

    def test_without_a_recording(self):
        """Each is written by the run itself, too; the name of the file decides."""
        for form, suffix in zip(FORMS, ("speedscope", "firefox", "trace", "sentry")):
            run = harness.Run(
                ["-p", self.target.pid, "-d", "0.3", "-o", f"out.{suffix}.json"],
                target_pid=self.target.pid,
            )
            run.finish()
            self.assertIn(f"wrote {form} to", run.stderr)
            self.assertTrue(json.loads(run.data))


if __name__ == "__main__":
    harness.main()
