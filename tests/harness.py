# SPDX-License-Identifier: MIT
"""What the integration tests share: targets, runs of the profiler, and the books of each run.

Every run goes through Run.finish(), which reads the summary and the profile and asserts that the
books balance, that the target was let go, and that no file was left behind. PROFILER and FIXTURES
in the environment say where the profiler and the fixture programs are.
"""

import atexit
import collections
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import again
import pprof
from again import TRIES, tried  # noqa: F401
from metronome import Metronome
from proc import (  # noqa: F401 (tests use them by way of this module)
    WAIT_TIMEOUT_S, children, cpu_ticks, find_disk, is_there, n_pauses_of, read_links, read_status,
    read_until, schedule_of, tids_of, uncounted_s, wait_for, wait_for_work, wait_until_in_calls,
    wait_until_settled, wait_until_spinning, wait_until_untraced,
)  # fmt: skip
from target import Target
from told import (  # noqa: F401
    NO_STACK, UNSAMPLED, Stacks, Summary, read_folded, shorten, unsampled_by_tid, without_threads,
)  # fmt: skip

HERE = os.path.dirname(os.path.abspath(__file__))
PROFILER = os.path.abspath(
    os.environ.get("PROFILER", os.path.join(HERE, "..", "build", "profiler"))
)
FIXTURES = os.path.abspath(
    os.environ.get("FIXTURES", os.path.join(HERE, "..", "build", "tests", "fixtures"))
)
# In CI a test that must run may not be skipped.
MUST_RUN = os.environ.get("PROFILER_TESTS_MUST_RUN") == "1"
SKIP_STATUS = 77
# The profiler may take long where it is sanitized and the machine is busy; it may not hang.
RUN_TIMEOUT_S = 240

STATUS_TARGET, STATUS_USAGE, STATUS_OUTPUT = 1, 2, 3
STATUS_CANNOT_RUN, STATUS_NOT_FOUND, STATUS_UNREAD = 126, 127, 141

# Under nohup(1) it is ignored, which the profiler would inherit and keep to.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Patterns for stacks, names joined by ";".
UNNAMED = r"\[[^\[\];]+\+0x[0-9a-f]+\]"
LIBRARY = r"(?:[^;]+;){1,6}"  # frames of somebody else's code, between two of ours
MAIN = r"_start;(?:[^;]+;){1,3}main"
THREAD = r"(?:[^;]+;){1,2}"  # below a thread's function
LEAVES = r"(?:;[^;]+){0,4}"  # somebody else's code at the leaf


def fixture(name):
    """The path of a fixture program; skips the test where it could not be built."""
    path = os.path.join(FIXTURES, name)
    if not os.path.exists(path):
        skip(f"the fixture {name} is not built")
    return path


def is_sanitized():
    """Does the profiler look after itself (AddressSanitizer), and take its time and memory?"""
    try:
        with open(PROFILER, "rb") as file:
            return b"__asan_init" in file.read()
    except FileNotFoundError:
        return False


def a_few(cases):
    """All of them; the first and the last where the profiler is sanitized: it does the same in each, and the
    whole list is tried without sanitizers."""
    cases = list(cases)
    return cases[:: max(1, len(cases) - 1)] if is_sanitized() else cases


def skip(why):
    if MUST_RUN:
        raise AssertionError(f"must run, but would be skipped: {why}")
    raise unittest.SkipTest(why)


def need(condition, why):
    if not condition:
        skip(why)


def find_tool(*names):
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    return skip(f"{names[0]} is not installed")


def unshare(*options):
    """The words that run a command in namespaces of its own; skips the test if this machine forbids that."""
    words = [find_tool("unshare"), *options]
    probe = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    need(probe.returncode == 0, f"{probe.stderr.strip()} (as in a plain chroot or an unprivileged container)")
    return words


def read_symbols(path):
    """Sorted (address, end, name) of a program's functions."""
    text = subprocess.run(
        [find_tool("nm"), "-S", "--defined-only", path],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rows = [re.fullmatch(r"([0-9a-f]+) ([0-9a-f]+) [tTwWiI] (\S+)", r) for r in text.splitlines()]
    return sorted((int(r[1], 16), int(r[1], 16) + int(r[2], 16), r[3]) for r in rows if r)


def name_of(symbols, frame):
    """The name of a frame such as [module+0x123]."""
    address = int(re.search(r"\+0x([0-9a-f]+)\]$", frame)[1], 16)
    for start, end, name in symbols:
        if start <= address < end and not name.startswith("."):
            return name
    return "?"


def cpu_of_children():
    """The CPU time of those that have ended, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Run:
    """A run of the profiler, in a directory of its own. It tells all figures (-v), for the books,
    unless it is to be brief."""

    def __init__(self, args, target_pid=None, profiler=PROFILER, prefix=(), brief=False, **popen):
        self.args = [str(arg) for arg in args]
        self.is_brief = brief or bool({"-q", "--quiet", "-v"} & set(self.args))
        self.target_pid = target_pid
        self.directory = tempfile.mkdtemp(prefix="profiler-test-")
        os.chmod(self.directory, 0o777)
        # For a run that a test never finishes.
        atexit.register(self._abandon)
        popen.setdefault("cwd", self.directory)
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        self.states_before = self._states()
        more, told = self._ask_to_be_told(popen)
        self.start_s, self.start_cpu_s = time.monotonic(), cpu_of_children()
        self.process = subprocess.Popen([*prefix, profiler, *more, *self.args], **popen)
        if told:
            os.close(told)
        self.status = self.stdout = self.stderr = self.folded = self.pprof = None
        self.recording = None
        self.starved = collections.Counter()

    def _ask_to_be_told(self, popen):
        """For runs that sample: the option by which the profiler says when it does so, and the end
        of a pipe that is for it alone."""
        self._ready = None
        if not {"-p", "--"} & set(self.args):
            return [], None
        more = [] if self.is_brief else ["-v"]
        if any("--ready-fd" in arg for arg in self.args):
            return more, None
        self._ready, told = os.pipe()
        popen["pass_fds"] = [*popen.get("pass_fds", ()), told]
        return [f"--ready-fd={told}", *more], told

    def _states(self):
        """(state, tracer) of each thread of the target."""
        states = {}
        for tid in tids_of(self.target_pid) if self.target_pid else []:
            status = read_status(self.target_pid, tid)
            if status:
                states[tid] = (status["State"][0], int(status["TracerPid"]))
        return states

    def _abandon(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        self._close_ready()
        if self.process.poll() is None:
            for pid in [self.command_pid(), self.worker_pid(), self.process.pid]:
                if pid:
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def wait_attached(self):
        """Waits until the profiler has said that it samples, and some ticks have passed."""
        if not select.select([self._ready], [], [], WAIT_TIMEOUT_S)[0]:
            raise AssertionError("waited in vain for the first tick")
        self.wait_ticks(10)

    def wait_ticks(self, n):
        """Waits until so many are due, and for as many pauses of the one that samples: it pauses
        after each tick that is not late, but also for threads that it stops, and for files."""
        hz = float(self.args[self.args.index("-F") + 1]) if "-F" in self.args else 99
        n_pauses, due_s = self.n_pauses(), time.monotonic() + n / hz

        def have_been():
            return self.n_pauses() > n_pauses + n and time.monotonic() > due_s

        wait_for(lambda: self.process.poll() is not None or have_been(), f"{n} ticks")

    def worker_pid(self):
        """The process that samples: a child of the one that was started."""
        return next(iter(children(self.process.pid)), None)

    def writer_pid(self):
        """The process that writes."""
        pids = children(self.process.pid)
        return next((pid for pid in pids if read_status(pid)["Name"] == "profiler-writer"), None)

    def command_pid(self):
        """The wrapped command."""
        worker = self.worker_pid()
        return next(iter(children(worker)), None) if worker else None

    def n_pauses(self):
        """How often the worker has slept: after each tick that is not late."""
        return n_pauses_of(self.worker_pid())

    def _close_ready(self):
        if self._ready is not None:
            os.close(self._ready)
            self._ready = None

    def communicate(self, stdin=None, timeout_s=RUN_TIMEOUT_S):
        try:
            out, err = self.process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"hung: {self.args}; stderr: {err!r}") from None
        finally:
            self.end_s = time.monotonic()
            self.elapsed_s, self.cpu_s = self.end_s - self.start_s, cpu_of_children() - self.start_cpu_s
            self.status = self.process.returncode
            self._close_ready()
        self.stdout = out
        self.stderr = err.decode("utf-8", "replace") if err is not None else ""

    def finish(self, expect=0, stdin=None, stderr=None, keep=()):
        """Waits for the end, reads what it left, and checks the books. `keep`: files that the
        target itself left in the directory."""
        try:
            self.communicate(stdin)
            if stderr is not None:
                self.stderr = stderr
            self.summary = Summary(self.stderr)
            self._check_no_sanitizer()
            if expect is not None:
                assert self.status == expect, f"{self.args}: status {self.status}: {self.brief}"
            self._check_let_go()
            self._read_profile(set(keep))
            if self.folded is not None or self.pprof is not None:
                self._check_books()
            if self.pprof is not None or self.folded and len(self.summary.threads) == 1:
                self._tell_starved()
            elif self.folded is not None:
                self._tell_starved_folded()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
        return self

    def _check_no_sanitizer(self):
        for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
            assert word not in self.stderr, self.stderr
        assert self.status is not None and self.status >= 0, f"died of signal {-self.status}"

    def _check_let_go(self):
        """No thread of the target is stopped or traced that was not before, but by the process that
        the profiler has said it leaves behind, which has let go of all else."""
        told = re.search(r"process (\d+) stays until", self.stderr)
        self.stays = int(told[1]) if told else 0
        for tid, (state, tracer) in self._states().items():
            before = self.states_before.get(tid, ("", 0))
            assert tracer in (before[1], self.stays), f"thread {tid} is left traced by {tracer}"
            if tracer == self.stays != 0:
                files = read_links(f"/proc/{tracer}/fd")
                assert files <= {"/dev/null"}, f"{tracer} keeps {files}"
                # It may have had no CPU to stop on before, and just stop.
                wait_for(lambda tid=tid: self._states().get(tid, ("",))[0] != "t", "its release")
                continue
            assert state not in "tT" or state == before[0], f"thread {tid} is left {state}"

    def _option(self, *names):
        value = None
        for i, arg in enumerate(self.args):
            if arg == "--":
                break
            for name in names:
                if arg == name and i + 1 < len(self.args):
                    value = self.args[i + 1]
                elif name.startswith("--") and arg.startswith(name + "="):
                    value = arg[len(name) + 1 :]
        return value

    def _read_profile(self, keep):
        output = self._option("-o", "--output")
        names = set(os.listdir(self.directory)) - keep
        path = None
        if output and output != "-":
            path = os.path.join(self.directory, output)
            names.discard(os.path.relpath(path, self.directory).split("/")[0])
        elif not output and not self._option("-p", "--pid"):
            made = {n for n in names if re.fullmatch(r"profiler\.\d+\.(folded|pb\.gz|wprof)", n)}
            assert len(made) <= 1, f"more than one profile: {made}"
            names -= made
            if made:
                path = os.path.join(self.directory, made.pop())
        assert not names, f"files were left behind: {sorted(names)}"
        self.path = path
        if path and not os.path.isfile(path):
            path = None
        if path:
            with open(path, "rb") as file:
                data = file.read()
        elif (output == "-" or not output) and self._option("-p", "--pid") and self.stdout:
            data = self.stdout
        elif output == "-" and self.stdout:
            data = self.stdout
        else:
            return
        self.data = data
        if data.startswith(b"\x89WPROF"):
            self.recording = data
        elif data.startswith(b"{") and not (path or "").endswith(".folded"):
            pass  # a timeline, which test_timelines reads; a thread's name may begin so, too
        elif data[:2] == b"\x1f\x8b" or b"wall" in data[:200] and b"nanoseconds" in data[:400]:
            self.pprof = pprof.Profile(data)
        elif self.summary.format in ("folded", None) and self.status in (0, None) or path:
            self.folded = Stacks(read_folded(data))

    @property
    def filtered(self):
        return any(
            re.match(r"--(on-cpu|off-cpu|thread|state|syscall|focus|ignore|label-filter|from|to)(=|$)", arg)
            for arg in self.args
        )

    def _check_books(self):
        """Counts and times add up, as far as this run shows them."""
        totals = collections.Counter()
        counts = collections.Counter()
        if self.pprof:
            for sample in self.pprof.samples:
                totals[sample.tid] += sample.wall_ns
                counts[sample.tid] += sample.count
            n_samples = sum(counts.values())
            assert self.pprof.duration_ns <= (self.elapsed_s + 0.01) * 1e9, "lasted too long"
        else:
            n_samples = sum(self.folded.values())
        summary = self.summary
        if not summary.has_totals:
            return
        if self._option("--waits"):
            return  # of the samples, only some
        assert self.filtered or not summary.left_out, "samples are left out"
        told = summary.samples - summary.left_out
        sliced = self._option("--from", "--to") is not None
        assert n_samples == told or (sliced and n_samples < told), f"{n_samples} != {told} samples"
        self._check_ticks()
        if summary.held_percent is not None:
            assert 0 <= summary.held_percent <= 100, f"held: {self.brief}"
        if summary.threads:
            self._check_threads(totals, counts)

    def _check_ticks(self):
        summary = self.summary
        period_s = 1 / summary.hz
        assert summary.ticks >= 1, "no tick"
        assert summary.samples <= summary.ticks * summary.n_threads, "more samples than ticks"
        # The first tick comes at once, then one each period; late ones are missed, not made up.
        # The duration ends with the last tick, but more can be missed, until the target's end.
        due = summary.duration_s / period_s + 1
        assert summary.ticks <= due + 1.5 + 0.0005 / period_s, f"too many ticks: {self.brief}"
        most = self.elapsed_s / period_s + 2  # one more is at the very end
        told = summary.ticks + summary.missed + summary.thinned
        assert told <= most, f"too many missed: {self.brief}"
        rounded = 0.0005 / period_s  # the summary has milliseconds
        assert told >= due - 2.5 - rounded, f"ticks are lost: {self.brief}"
        assert summary.duration_s <= self.elapsed_s + 0.01, "lasted too long"

    def _check_threads(self, totals, counts):
        summary = self.summary
        period_s = 1 / summary.hz
        assert len(summary.threads) == summary.n_threads, "not every thread is told"
        assert sum(t.samples for t in summary.threads) == summary.samples, "samples of threads"
        for thread in summary.threads:
            assert thread.samples <= summary.ticks, f"more samples than ticks: {thread}"
            off_s = abs(thread.wall_s - thread.watched_s)
            assert off_s < 2e-9, f"wall is not the time watched: {thread}"
            assert thread.watched_s <= summary.duration_s + 2 * period_s + 0.01, f"{thread}"
            assert thread.cpu_s <= thread.wall_s + 1e-6, f"more cpu than wall: {thread}"
        if not self.pprof or self.filtered:
            return
        by_tid = collections.defaultdict(list)
        for thread in summary.threads:
            # Without --goroutine-ids those of goroutines are known together alone.
            is_nameless = None in totals and thread.tid >= pprof.FIRST_GOROUTINE
            by_tid[None if is_nameless else thread.tid].append(thread)
        for tid, threads in by_tid.items():  # a tid may be used again
            watched_s = sum(t.watched_s for t in threads)
            assert abs(totals[tid] / 1e9 - watched_s) < 2e-9 * len(threads), (
                f"thread {tid}: wall {totals[tid]} ns, watched {watched_s} s"
            )
            assert counts[tid] == sum(t.samples for t in threads), f"samples of thread {tid}"
        assert set(totals) <= set(by_tid), "a thread that is not told"

    def _tell_starved(self):
        """What a thread did that got no CPU from some tick to the end, nobody knows: its samples from
        then on have no stack. These are no fault where the kernel, too, counted that the thread ran
        for no longer than the rest of the time."""
        if "the kernel denied the stop" in self.stderr:
            return
        unsampled = unsampled_by_tid(self.pprof.samples if self.pprof else ())
        if not self.pprof:
            unsampled[self.summary.threads[0].tid] = self.folded.unsampled()
        for thread in self.summary.threads:
            period_s = 1 / self.summary.hz
            n = unsampled.pop(thread.tid, 0)
            rest_s = thread.watched_s - n * period_s
            if n and thread.kernel_cpu_s is not None and thread.kernel_cpu_s <= rest_s + 2 * period_s:
                self.starved[thread.tid] += n
        self._forgive(self.starved.total())

    def _tell_starved_folded(self):
        """The same where samples have no threads: those without a stack are no more than the time for
        which threads seemed to run and, as the kernel counted, had no CPU."""
        if "the kernel denied the stop" in self.stderr:
            return
        n, n_most = self.folded.unsampled(), 0
        for thread in self.summary.threads:
            if thread.cpu_s and thread.kernel_cpu_s is not None:
                n_most += max(0, thread.cpu_s - thread.kernel_cpu_s) * self.summary.hz + 2
        if 0 < n <= n_most:
            self.starved[None] = n
            self._forgive(n)

    def _forgive(self, n_starved):
        """Such samples are no truncated ones."""
        self.summary.truncated -= n_starved
        if n_starved:
            self.summary.truncated_by[UNSAMPLED] -= n_starved
            self.summary.truncated_by = +collections.Counter(self.summary.truncated_by)
        if not self.pprof:
            self.folded.starved = n_starved

    # What tests look at.

    @property
    def brief(self):
        """What it told but for its threads."""
        return without_threads(self.stderr)

    @property
    def n_sampled(self):
        """Samples of threads that were not starved."""
        return self.summary.samples - self.starved.total()

    def stacks(self, thread=None, tid=None):
        """The stacks; of a pprof, only of the threads of that name, or of that thread."""
        if self.folded is not None:
            return self.folded
        counts, tids = Stacks(), set()
        for sample in self.pprof.samples:
            if thread in (None, sample.thread) and tid in (None, sample.tid):
                counts[sample.stack] += sample.count
                tids.add(sample.tid)
        counts.starved = sum(self.starved[tid] for tid in tids)
        return counts


def attach_until(is_enough, target, *args, **run):
    """The stacks of as many runs as it takes to see what there is, at most 10: on a busy machine a
    target may be stopped a few times a second alone, and all else is those same stacks again."""
    counts = Stacks()
    for _ in range(10):
        done = attach(target, *args, **run)
        stacks = done.stacks()
        counts.update(stacks)
        counts.starved += stacks.starved
        if is_enough(counts):
            break
    return done, counts


def attach(target, *args, duration="0.4", hz=251, form="pprof", **run):
    """Attaches to the target for a while; the finished run. Again, if it has seen little: if no
    thread got a CPU, or the machine was paused for most of the time, or in a tick, for which the
    profiler then leaves out most of the others."""
    for _ in range(4):
        done = start_attach(
            target, "-d", duration, *args, hz=hz, form=form, **run
        ).finish()
        is_starved = done.starved and sum(done.starved.values()) >= done.summary.samples
        is_missed = done.summary.has_totals and (
            done.summary.missed > done.summary.ticks or done.summary.thinned > 4 * done.summary.ticks
        )
        if not is_starved and (not is_missed or not is_there(done.target_pid)):
            break
        if "stays until" in done.stderr:
            wait_until_untraced(done.target_pid)
    return done


def start_attach(target, *args, hz=251, form="pprof", **run):
    pid = target if isinstance(target, int) else target.pid
    name = {"pprof": "out.pb.gz", "folded": "out.folded", "record": "out.wprof"}[form]
    return Run(["-p", pid, "-F", hz, "-o", name, *args], target_pid=pid, **run)


def record_without_gaps(target, duration):
    """A finished run that has recorded, and has missed so little that each part of a fifth of the time
    has samples: again where the machine was paused for longer."""
    for _ in range(4):
        run = start_attach(target, "-d", duration, "--max-overhead=0", form="record").finish()
        if run.summary.missed < 0.15 * run.summary.ticks:
            break
    return run


def start_wrap(command, *args, hz=251, form="pprof", **run):
    name = {"pprof": "out.pb.gz", "folded": "out.folded", "record": "out.wprof"}[form]
    return Run(["-F", hz, "-o", name, *args, "--", *command], **run)


def wrap(command, *args, expect=0, stdin=None, keep=(), **run):
    return start_wrap(command, *args, **run).finish(expect=expect, stdin=stdin, keep=keep)


class TestCase(again.TestCase):
    """A test with targets that end with it."""

    def start(self, *argv, **target):
        target = Target([str(arg) for arg in argv], **target)
        self.addCleanup(target.end)
        return target

    def start_fixture(self, name, *args, **target):
        return self.start(fixture(name), *args, **target)

    def start_metronome(self):
        metronome = Metronome()
        self.addCleanup(metronome.end)
        return metronome

    def run_unpaused(self, start):
        """A run that start() begins, finished, and for how long the machine paused in it, at most:
        another one where that is long, a few times."""
        metronome = self.start_metronome()
        for _ in range(3):
            run = start().finish()
            late_s = metronome.late_s(run.start_s, run.end_s)
            if late_s < 0.05:
                break
        return run, late_s

    def _formatMessage(self, msg, standardMsg):
        """Figures come first, and a log of a hundred lines is to show them."""
        return without_threads(super()._formatMessage(msg, standardMsg))

    def directory(self, on_disk=False):
        """A new directory; on_disk: of a file system that is not kept in memory."""
        parent = find_disk(tempfile.gettempdir(), "/var/tmp", FIXTURES, ".") if on_disk else None
        if on_disk and not parent:
            self.skipTest("neither TMPDIR, /var/tmp, the build nor this directory is on a disk")
        path = tempfile.mkdtemp(prefix="profiler-test-", dir=parent)
        os.chmod(path, 0o755)
        self.addCleanup(shutil.rmtree, path, ignore_errors=True)
        return path

    def assert_stacks(self, counts, pattern, share=0.97):
        """At least that share of the samples match the pattern, a regular expression over the
        names joined by ";", root first. Not all of them: when a fixture says that it is ready, not
        all of its threads need be where they stay."""
        if isinstance(counts, Stacks):
            counts = counts.told()
        total = sum(counts.values())
        regex = re.compile(pattern)
        good = sum(n for stack, n in counts.items() if regex.fullmatch(";".join(stack)))
        self.assertGreater(total, 0, "no samples")
        others = [s for s in counts if not regex.fullmatch(";".join(s))]
        shown = "\n  ".join(shorten(f"{counts[s]} x {';'.join(s)}") for s in others[:5])
        self.assertGreaterEqual(
            good / total, share, f"{good} of {total} match {shorten(pattern)}; others:\n  {shown}"
        )

    def assert_message(self, run, pattern, status=STATUS_TARGET):
        """The run failed with that one message and wrote nothing."""
        self.assertEqual(run.status, status, run.stderr)
        self.assertEqual(len(run.summary.lines), 1, run.stderr)
        self.assertEqual(run.summary.others, [], run.stderr)
        self.assertRegex(run.summary.lines[0], pattern)
        self.assertIsNone(run.folded)
        self.assertIsNone(run.pprof)


def main():
    """Runs the tests of the calling module; exit status 77 where all of them were skipped."""
    if not os.access(PROFILER, os.X_OK):
        sys.exit(f"{PROFILER} is not there: set PROFILER")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # for the programs that are started
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    # A part of a test that is skipped (subTest) does not make the test skipped.
    skipped = [test for test, _ in result.skipped if not hasattr(test, "test_case")]
    if result.testsRun and len(skipped) == result.testsRun:
        sys.exit(SKIP_STATUS)
    sys.exit(0)
