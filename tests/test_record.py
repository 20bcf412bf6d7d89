# SPDX-License-Identifier: MIT
"""Recordings: what is recorded is what is reported, whole, killed, cut, full or on another machine."""

import collections
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time
import zlib

import harness
import pprof
from harness import PROFILER, STATUS_OUTPUT, STATUS_TARGET, STATUS_USAGE, Run
from told import read_folded

BLOCK = b"WBLK"
TOLD = re.compile(
    r"profiler: recording of ([\d.]+) s: (\d+) ticks?, (\d+) missed; (\d+) samples? of "
    r"(\d+) threads?; (\d+) distinct stacks?"
)


def report(data, *args, status=0, verb="report", **run):
    """What `profiler report`, or dump, makes of the bytes: its output and what it told."""
    done = subprocess.run(
        [PROFILER, verb, "-", *args], input=data, capture_output=True, check=False,
        timeout=harness.RUN_TIMEOUT_S, **run,
    )  # fmt: skip
    told = done.stderr.decode()
    assert done.returncode == status, f"{args}: status {done.returncode}: {told}"
    for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
        assert word not in told, told
    return done.stdout, told


FIGURES, THREAD_FIGURES = 10, 18  # types of records


def pack(value):
    more = value >> 7
    return bytes([value & 127 | 128]) + pack(more) if more else bytes([value])


def as_before(data):
    """The recording as an older profiler would have made it: without what the kernel counted for each thread, and how
    late ticks were."""
    made, at = bytearray(data[:16]), 16
    while at < len(data):
        size, number = struct.unpack_from("<I4xI", data, at + 4)
        records, at, end = b"", at + 16, at + 16 + size
        while at < end:
            kind, start = pprof.read_varint(data, at)
            length, start = pprof.read_varint(data, start)
            at, fields = start + length, data[start : start + length]
            if kind == FIGURES:
                for _ in range(5):
                    _, start = pprof.read_varint(data, start)
                fields = fields[: len(fields) - (at - start)]
            if kind != THREAD_FIGURES:
                records += pack(kind) + pack(len(fields)) + fields
        counted = struct.pack("<I", number) + records
        made += BLOCK + struct.pack("<II", len(records), zlib.crc32(counted)) + counted
    return bytes(made)


class Recorded:
    """A run that has recorded, and its recording."""

    def __init__(self, target, *args, duration="1", **run):
        self.run = harness.start_attach(
            target, *(["-d", duration] if duration else []), *args, form="record", **run
        )

    def finish(self, **how):
        self.run.finish(**how)
        self.summary = self.run.summary
        self.data = self.run.recording
        return self


class Report(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.target = harness.Target([harness.fixture("threads"), "8", "2", "2"])
        run = harness.record_without_gaps(cls.target, "1.5")
        cls.data, cls.summary = run.recording, run.summary

    @classmethod
    def tearDownClass(cls):
        cls.target.end()

    def pprof(self, *args, data=None, **how):
        out, self.told = report(data or self.data, "-f", "pprof", "-o", "-", *args, **how)
        return pprof.Profile(out)

    def test_the_books(self):
        """Figure for figure what the run itself told of each thread."""
        profile = self.pprof()
        told = TOLD.search(self.told)
        self.assertEqual(int(told[2]), self.summary.ticks)
        self.assertEqual(int(told[3]), self.summary.missed)
        self.assertEqual(int(told[4]), self.summary.samples)
        self.assertEqual(int(told[5]), self.summary.n_threads)
        self.assertEqual(int(told[6]), self.summary.stacks)
        walls, counts, cpus = (collections.Counter() for _ in range(3))
        for sample in profile.samples:
            counts[sample.tid] += sample.count
            walls[sample.tid] += sample.wall_ns
            cpus[sample.tid] += sample.cpu_ns
        self.assertEqual(len(counts), len(self.summary.threads))
        for thread in self.summary.threads:
            self.assertEqual(counts[thread.tid], thread.samples)
            self.assertAlmostEqual(walls[thread.tid] / 1e9, thread.wall_s, places=8)
            # By the kernel's count, between its readings at the ticks.
            self.assertAlmostEqual(cpus[thread.tid] / 1e9, thread.kernel_cpu_s, delta=0.02 * thread.kernel_cpu_s + 0.01)
        names = {sample.thread for sample in profile.samples}
        self.assertEqual(names, {thread.name for thread in self.summary.threads})
        self.assertAlmostEqual(profile.time_ns / 1e9, time.time(), delta=3600)
        self.assertTrue(any("ticks at" in comment for comment in profile.comments))

    def test_filters_and_formats(self):
        whole, _ = report(self.data)
        total = sum(read_folded(whole).values())
        parts = [sum(read_folded(report(self.data, state)[0]).values()) for state in
                 ("--on-cpu", "--off-cpu")]  # fmt: skip
        self.assertEqual(sum(parts), total)
        self.assertGreater(min(parts), 0)
        one, _ = report(self.data, "--thread=^worker-00$", "-t")
        stacks = read_folded(one)
        self.assertEqual(sum(stacks.values()), self.summary.ticks)
        self.assertEqual({stack[0] for stack in stacks}, {"worker-00"})
        self.assertIn(b"(threads.c:", report(self.data, "--lines")[0])

    def test_slices(self):
        """Slices that follow each other add up to the whole, in counts and in time."""
        whole = self.pprof()
        cuts = ["0", "0.3s", "700ms", "1.1"]
        counts, walls = collections.Counter(), collections.Counter()
        start_ns = whole.time_ns
        for begin, end in zip(cuts, [*cuts[1:], None]):
            part = self.pprof("--from", begin, *(["--to", end] if end else []))
            seconds = float(begin.rstrip("ms")) / (1000 if begin.endswith("ms") else 1)
            self.assertAlmostEqual((part.time_ns - start_ns) / 1e9, seconds, delta=1e-3)
            for sample in part.samples:
                key = (sample.tid, sample.state, sample.stack)
                counts[key] += sample.count
                walls[sample.tid] += sample.wall_ns
        for sample in whole.samples:
            key = (sample.tid, sample.state, sample.stack)
            counts[key] -= sample.count
            walls[sample.tid] -= sample.wall_ns
        self.assertEqual({key: n for key, n in counts.items() if n}, {})
        # Weights are rounded to nanoseconds.
        self.assertEqual({tid: n for tid, n in walls.items() if abs(n) > 100}, {})

    def test_wall_clock_times(self):
        whole = self.pprof()
        at_ns = whole.time_ns + 500_000_000
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_ns // 10**9))
        text += f".{at_ns % 10**9:09d}Z"
        late = self.pprof("--from", text)
        self.assertEqual(late.time_ns, at_ns)
        n_late = sum(sample.count for sample in late.samples)
        # Of m missed ticks, all may be of one part: n_late = 2/3 (n + m) - a, where a is 0 to m.
        delta = 0.05 + self.summary.missed / self.summary.ticks
        self.assertAlmostEqual(n_late / self.summary.samples, 1 / 1.5, delta=delta)

    def test_nothing_between(self):
        for args in (["--from=1h"], ["--from=0.5", "--to=0.501"]):
            _, told = report(self.data, *args, status=STATUS_USAGE)
            self.assertRegex(told, r"fewer than two samples of a thread lie between --from and --to: sampling began at \d.* lasted 1\.5")
        _, told = report(self.data, "--to=2001-01-01T00:00:00Z", status=STATUS_USAGE)
        self.assertIn("give a later time", told)

    def test_cut_anywhere(self):
        """What is there is reported, and what is not is told."""
        most = 0
        for cut in [16, 17, 40, *range(100, len(self.data), max(1, len(self.data) // 12))]:
            out, told = report(self.data[:cut])
            self.assertIn("the recording has no end", told)
            n_samples = sum(read_folded(out).values())
            self.assertLessEqual(n_samples, self.summary.samples + self.summary.n_threads)
            most = max(most, n_samples)
        self.assertGreater(most, self.summary.samples / 2)

    def test_damaged(self):
        blocks = [m.start() for m in re.finditer(BLOCK, self.data)]
        self.assertGreaterEqual(len(blocks), 10)  # every 100 ms
        at = blocks[4] + 20
        damaged = self.data[:at] + bytes([self.data[at] ^ 0xFF]) + self.data[at + 1 :]
        out, told = report(damaged)
        self.assertRegex(told, r"damaged or cut short: \d+ bytes")
        self.assertRegex(told, r"1 blocks are missing")
        self.assertAlmostEqual(
            sum(read_folded(out).values()), self.summary.samples, delta=self.summary.samples / 2
        )

    def test_older(self):
        """Without the kernel's count of each thread, times are as ticks saw them; nothing is said to be damaged."""
        out, told = report(as_before(self.data), "-f", "pprof")
        self.assertNotRegex(told, "damaged|missing|cannot be read")
        older, now = pprof.Profile(out).samples, pprof.Profile(report(self.data, "-f", "pprof")[0]).samples
        for sample in older:
            self.assertEqual(sample.cpu_ns, sample.wall_ns if sample.state == "running" else 0)
        self.assertEqual(*(sum(sample.count for sample in samples) for samples in (older, now)))
        self.assertAlmostEqual(*(sum(sample.wall_ns for sample in samples) for samples in (older, now)), delta=1000)

    def test_no_recording(self):
        for data in (b"", b"main;leaf 12\n", self.data[:12]):
            _, told = report(data, status=STATUS_TARGET)
            self.assertIn("stdin is not a recording", told)
        run = Run(["report", "nowhere.wprof"]).finish(expect=STATUS_TARGET)
        self.assert_message(run, "cannot read nowhere.wprof: No such file")

    def test_a_command_of_that_name(self):
        """`--` tells a sub-command from a command."""
        directory = self.directory()
        path = os.path.join(directory, "report")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 7\n")
        os.chmod(path, 0o755)
        env = {**os.environ, "PATH": directory + ":" + os.environ["PATH"]}
        Run(["-o", "out.folded", "--", "report"], env=env).finish(expect=7)
        run = Run(["-q", "report"], env=env).finish(expect=STATUS_USAGE)
        self.assert_message(run, "give a file", STATUS_USAGE)


class Inputs(harness.TestCase):
    """Only what has an end is read, and nothing else is opened."""

    def told_of(self, *args, **stdin):
        run = subprocess.run(
            [PROFILER, *args], capture_output=True, check=False, timeout=harness.RUN_TIMEOUT_S,
            **stdin,
        )  # fmt: skip
        self.assertEqual((run.returncode, run.stdout), (STATUS_TARGET, b""), run.stderr)
        return run.stderr.decode()

    def endless(self):
        """{path: what is said of it}"""
        directory = self.directory()
        pipe, socket_path = (os.path.join(directory, name) for name in ("pipe", "socket"))
        os.mkfifo(pipe)
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(socket_path)
        terminal = os.openpty()
        self.addCleanup(os.close, terminal[0])
        self.addCleanup(os.close, terminal[1])
        return {
            directory: "a directory",
            pipe: "a named pipe",
            socket_path: "a socket",
            os.ttyname(terminal[1]): "a device",
            "/proc/self/status": "it is no file on a disk",
        }

    def test_refused(self):
        folded = os.path.join(self.directory(), "folded")
        with open(folded, "w", encoding="utf-8") as file:
            file.write("main;leaf 12\n")
        for path, what in self.endless().items():
            for args in (["report", path], ["diff", path, folded], ["diff", folded, path]):
                line = rf"^profiler: cannot read {path}: .*{what}.*\n$"
                self.assertRegex(self.told_of(*args), line)

    def test_refused_as_stdin(self):
        for path, what in self.endless().items():
            if what in ("a named pipe", "a socket"):
                continue
            fd = os.open(path, os.O_RDONLY | os.O_NOCTTY)
            for name in ("-", "/dev/stdin"):
                self.assertIn(what, self.told_of("report", name, stdin=fd))
            os.close(fd)

    def test_taken(self):
        """Pipes without a name and sockets, as shells and servers hand them over."""
        line = b"main;leaf 12\n"
        for make in (os.pipe, lambda: [end.detach() for end in socket.socketpair()]):
            for path in ("-", "/dev/stdin"):
                out_end, in_end = make()
                os.write(in_end, line)
                os.close(in_end)
                self.assertIn("is not a recording", self.told_of("report", path, stdin=out_end))
                os.close(out_end)
        out_end, in_end = os.pipe()
        os.write(in_end, line)
        os.close(in_end)
        told = self.told_of("report", f"/dev/fd/{out_end}", pass_fds=[out_end])
        os.close(out_end)
        self.assertIn("is not a recording", told)
        self.assertIn("for other profiles: profiler view", told)


    def test_file_size_limit(self):
        """SIGXFSZ ends nobody, and no half file is left."""
        data = Recorded(self.start_fixture("calls-O2", "spin"), duration="0.2").finish().data
        directory = self.directory()
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))  # noqa: E731
        for verb, more in (("report", []), ("dump", ["--at=0.1s"])):
            _, told = report(
                data, "-o", "x", *more, verb=verb, status=STATUS_OUTPUT, cwd=directory,
                preexec_fn=limit,
            )  # fmt: skip
            self.assertIn("cannot write x: File too large", told)
            self.assertEqual(os.listdir(directory), [])


class Slice(harness.TestCase):
    def test_while_it_runs(self):
        """A part of the time needs no recording."""
        target = self.start_fixture("threads", 4, 1)
        for _ in range(4):
            run = harness.start_attach(target, "-d", "1", "--from=0.2", "--to=600ms", hz=199)
            run.finish(expect=None)
            if "fewer than two samples" not in run.stderr:  # so few, where the machine was paused
                break
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.pprof.duration_ns, 400_000_000)
        walls = collections.Counter()
        for sample in run.pprof.samples:
            walls[sample.tid] += sample.wall_ns
        self.assertEqual(len(walls), 5)
        # What stands for missed ticks is on one side of the cut.
        delta = 0.1 + run.summary.missed / run.summary.hz
        for wall_ns in walls.values():
            self.assertAlmostEqual(wall_ns / 1e9, 0.4, delta=delta)
        self.assertAlmostEqual(run.summary.duration_s, 1, delta=0.1)

    def test_after_its_end(self):
        target = self.start_fixture("calls-O2", "spin")
        run = harness.start_attach(target, "-d", "0.2", "--from=5s").finish(expect=STATUS_USAGE)
        self.assertIn("fewer than two samples", run.stderr)

    def test_a_slice_that_is_over(self):
        """That is known when sampling begins, and not found out at its end."""
        target = self.start_fixture("calls-O2", "spin")
        args = ["-p", target.pid, "-d", "1000", "--to=2020-01-01T00:00:00Z"]
        run = harness.Run(args, target_pid=target.pid).finish(expect=harness.STATUS_USAGE)
        self.assertRegex(run.stderr, r"--to is -\d+\.\d+ s after the start")
        self.assertIsNone(run.pprof)


class Recording(harness.TestCase):
    def test_a_killed_profiler(self):
        """Not more than the last moment is lost when it is killed."""
        target = self.start_fixture("threads", 4, 1, 1)
        metronome = self.start_metronome()
        recorded = Recorded(target, duration=None, hz=99)
        recorded.run.wait_attached()
        time.sleep(1.2)
        worker = recorded.run.worker_pid()
        _, waited_s = harness.schedule_of(worker)  # for a CPU
        killed_ns = time.time_ns()
        os.kill(worker, signal.SIGKILL)
        recorded.finish(expect=128 + signal.SIGKILL)
        out, told = report(recorded.data, "-f", "pprof", "-o", "-")
        self.assertIn("the recording has no end", told)
        profile = pprof.Profile(out)
        lost_s = (killed_ns - profile.time_ns - profile.duration_ns) / 1e9
        # 100 ms, and what a busy machine delays the profiler by.
        late_s = metronome.late_s(recorded.run.start_s, recorded.run.end_s) + waited_s
        self.assertLess(lost_s, 0.5 + late_s)
        self.assertGreater(profile.duration_ns, (0.8 - late_s) * 1e9)
        walls = collections.Counter()
        for sample in profile.samples:
            walls[sample.tid] += sample.wall_ns
        for tid, wall_ns in walls.items():
            self.assertAlmostEqual(wall_ns, profile.duration_ns, delta=3e7, msg=str(tid))
        self.assertIn(b"spin_here", recorded.data)
        leaves = {frame.name for sample in profile.samples for frame in sample.frames}
        self.assertIn("spin_here", leaves)

    def test_a_killed_writer(self):
        """What it has read is in the file; sampling ends, and the target goes on."""
        target = self.start_fixture("threads", 4, 1, 1)
        recorded = Recorded(target, duration=None, hz=99)
        recorded.run.wait_attached()
        path = os.path.join(recorded.run.directory, "out.wprof")

        def n_ticks():
            with open(path, "rb") as file:
                return int(TOLD.search(report(file.read())[1])[2])

        harness.wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 16, "its beginning")
        harness.wait_for(lambda: n_ticks() > 20, "its growth")
        n = n_ticks()
        os.kill(recorded.run.writer_pid(), signal.SIGKILL)
        recorded.finish(expect=128 + signal.SIGKILL)
        self.assertEqual(harness.read_status(target.pid)["TracerPid"], "0")
        self.assertIn("the recording has no end", report(recorded.data)[1])
        self.assertGreaterEqual(int(TOLD.search(report(recorded.data)[1])[2]), n)

    def test_a_full_disk(self):
        """It ends with a message, and what was recorded until then can be read."""
        limit = 5000
        recorded = Recorded(
            self.start_fixture("threads", 8, 2, 4), hz=999, duration="20",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )  # fmt: skip
        recorded.finish(expect=STATUS_OUTPUT)
        self.assertIn("it holds what was recorded before", recorded.run.stderr)
        self.assertLess(recorded.run.elapsed_s, 19)
        out, told = report(recorded.data)
        self.assertIn("the recording has no end", told)
        self.assertGreater(sum(read_folded(out).values()), 0)

    def test_a_disk_that_is_full_before(self):
        """The file that is there is neither replaced nor said to be the recording."""
        path = os.path.join(self.directory(), "x.wprof")
        with open(path, "w", encoding="utf-8") as file:
            file.write("{}")
        run = Run(
            ["-p", self.start_fixture("calls-O2", "spin").pid, "-d", "20", "-o", path],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4)),
        ).finish(expect=STATUS_OUTPUT)  # fmt: skip
        self.assertIn(f"cannot write {path}: File too large", run.stderr)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "{}")
        self.assertEqual(os.listdir(os.path.dirname(path)), ["x.wprof"])

    def test_without_symbols(self):
        """The names come from the files that are here; from another build of one, none does."""
        path = os.path.join(self.directory(), "program")
        shutil.copy(harness.fixture("calls-O2"), path)
        target = self.start(path, "spin")
        bare = Recorded(target, "--no-symbols", duration="0.3").finish().data
        named = Recorded(target, duration="0.3").finish().data
        target.end()
        self.assertNotIn(b"leaf_spin", bare)
        self.assertIn(b"leaf_spin", report(bare)[0])
        shutil.copy(harness.fixture("threads"), path)
        out, told = report(bare)
        self.assertNotIn(b"leaf_spin", out)
        self.assertIn(b"[program+0x", out)
        self.assertIn("another build", told)
        os.unlink(path)
        out, told = report(bare)
        self.assertIn("not on this machine", told)
        self.assertIn(b"leaf_spin", report(named)[0])

    def test_a_command_and_its_children(self):
        script = "sleep 1000 & read end; kill $!; wait; exit 3"
        run = Run(
            ["-c", "-f", "record", "--", "/bin/sh", "-c", script], stdin=subprocess.PIPE
        )  # fmt: skip
        run.wait_attached()
        shell = run.command_pid()
        name_of = lambda pid: (harness.read_status(pid) or {"Name": ""})["Name"]
        harness.wait_for(lambda: "sleep" in map(name_of, harness.children(shell)), "the child")
        run.wait_ticks(20)
        run.finish(expect=3, stdin=b"\n")
        stacks = read_folded(report(run.recording)[0])
        roots = {re.sub(r"-\d+$", "", stack[0]) for stack in stacks}
        self.assertLessEqual({"sh", "sleep"}, roots)

    def test_births_and_deaths(self):
        """Threads that come and go: each thread's time is its own."""
        target = self.start_fixture("churn", ready=None)
        recorded = Recorded(target, duration="1").finish()
        profile = pprof.Profile(report(recorded.data, "-f", "pprof", "-o", "-")[0])
        self.assertGreater(recorded.summary.n_threads, 2)
        n_samples = sum(sample.count for sample in profile.samples)
        self.assertEqual(n_samples, recorded.summary.samples)

    def test_to_a_pipe(self):
        target = self.start_fixture("calls-O2", "spin")
        run = Run(["-p", target.pid, "-d", "0.3", "-f", "record", "-o", "-"], target_pid=target.pid)
        run.finish()
        out, _ = report(run.recording)
        self.assertEqual(sum(read_folded(out).values()), run.summary.samples)


if __name__ == "__main__":
    harness.main()
