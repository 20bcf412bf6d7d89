# SPDX-License-Identifier: MIT
"""What the benchmarks share: targets, measured runs of the profiler and of its peers, tables.

The machine may be busy with other things: runs are taken in turns, medians are reported, and CPU
time and counts stand where wall time would tell more of the neighbours than of the profiler.
BENCHMARK_ROUNDS and BENCHMARK_SECONDS make a run shorter or longer. PY_SPY names a py-spy;
without one it is installed into a virtual environment that lasts as long as the benchmark.
"""

import atexit
import contextlib
import mmap
import os
import platform
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness  # noqa: E402

ROUNDS = int(os.environ.get("BENCHMARK_ROUNDS", "5"))
SECONDS = float(os.environ.get("BENCHMARK_SECONDS", "2"))
CPUS = os.cpu_count()
HERE = os.path.dirname(os.path.abspath(__file__))
# The system's own: the one that runs the tests may be another, in an unusual place.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
UNITS_US = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}

ENGINE = re.compile(
    r"engine: (\d+) threads stopped \(median (\S+) (\S+), p99 (\S+) (\S+), max (\S+) (\S+)\), "
    r"(\d+) copied asleep, (\d+) asleep still"
)
WORK = re.compile(r"engine: (\d+) frames unwound by (\d+) rules; ([\d.]+) ms of CPU .*, scheduled by (\w+)")
TICKS = re.compile(r"(\d+) ticks at (\S+) Hz in ([\d.]+) s, (\d+) missed; (\d+) samples")
THINNED = re.compile(r"(\d+) of \d+ ticks were skipped")


def scratch():
    """A directory that goes with the benchmark."""
    path = tempfile.mkdtemp(prefix="profiler-benchmark-")
    os.chmod(path, 0o755)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


SCRATCH = scratch()


def machine():
    """One line about the machine, and how busy it is."""
    model = "an unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    return f"{CPUS} CPUs ({model}), Linux {platform.release()}, load {load}"


class Table:
    """Rows of (figure, measured, target, met), printed as Markdown."""

    def __init__(self, title, *columns):
        print(f"\n### {title}\n\n{machine()}\n")
        print("| " + " | ".join(columns) + " |")
        print("|" + "---|" * len(columns), flush=True)

    def row(self, *cells):
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def met(reached):
    return "yes" if reached else "**no**"


def process_cpu_s(pid):
    """CPU time of a process so far, all threads (clock_getcpuclockid(3))."""
    return time.clock_gettime(~pid << 3 | 2)


def machine_busy_s():
    """CPU time of everything on this machine so far, and what a hypervisor took away."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def context_switches(pid):
    """(voluntary, involuntary) of all threads of the process."""
    sums = [0, 0]
    for tid in harness.tids_of(pid):
        status = harness.read_status(pid, tid)
        if status:
            sums[0] += int(status["voluntary_ctxt_switches"])
            sums[1] += int(status["nonvoluntary_ctxt_switches"])
    return tuple(sums)


def memory_kb(pid):
    """RssAnon, RssFile and VmHWM; None where the process is gone."""
    status = harness.read_status(pid)
    if not status or "RssAnon" not in status:
        return None
    return [int(status[key].split()[0]) for key in ("RssAnon", "RssFile", "VmHWM")]


class Command:
    """A target that is a program of the system, killed at the end."""

    def __init__(self, argv, settle_s=1.0, **popen):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, **popen
        )
        self.pid = self.process.pid
        time.sleep(settle_s)
        if self.process.poll() is not None:
            self.log.seek(0)
            raise RuntimeError(f"{argv[0]} ended: {self.log.read()[-400:]!r}")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Crowd:
    """The fixture crowd, in C or in Python, whose workers count in memory that is shared."""

    def __init__(self, sleepers, workers, work_us=0, rest_us=0, python=False):
        self.path = tempfile.mktemp(dir=SCRATCH)
        with open(self.path, "wb") as file:
            file.truncate(64 * max(workers, 64))
        program = [harness.fixture("crowd")]
        if python:
            program = [PYTHON, os.path.join(HERE, "targets", "crowd.py")]
        args = [self.path, sleepers, workers, work_us, rest_us]
        self.target = harness.Target([*program, *map(str, args)])
        self.pid = self.target.pid
        self.workers = workers
        with open(self.path, "rb") as file:
            self.memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def count(self):
        return sum(struct.unpack_from("Q", self.memory, 64 * i)[0] for i in range(self.workers))

    def end(self):
        self.target.end()
        os.unlink(self.path)


def find_worker(pid):
    """The profiler's process that samples, a child of the one that was started."""
    path = f"/proc/{pid}/task/{pid}/children"

    def child():
        with open(path, encoding="utf-8") as file:
            return file.read().split()

    return int(harness.wait_for(child, "the profiler's worker")[0])


class Profiling:
    """A run of the profiler beside a target; finish() gives its figures."""

    def __init__(self, pid, *args, hz=99, form="pprof"):
        self.directory = tempfile.mkdtemp(dir=SCRATCH)
        self.output = os.path.join(self.directory, "out.pb.gz")
        self.stderr = open(os.path.join(self.directory, "stderr"), "w+b")
        self.start_s = time.monotonic()
        self.process = subprocess.Popen(
            [harness.PROFILER, "-p", str(pid), "-F", str(hz), "-v", "--format=" + form,
             "-o", self.output, *map(str, args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.stderr,
        )  # fmt: skip
        self.pid = self.process.pid
        self.worker = find_worker(self.pid)

    def cpu_s(self):
        return process_cpu_s(self.worker)

    def stop(self):
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
        return self.finish()

    def finish(self):
        _, status, usage = os.wait4(self.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.stderr.seek(0)
        text = self.stderr.read().decode("utf-8", "replace")
        self.stderr.close()
        shutil.rmtree(self.directory)
        if self.process.returncode:
            raise RuntimeError(f"the profiler failed: {text}")
        return read_figures(text, usage)


def read_figures(text, usage):
    """A run's figures, from what it said and what the kernel counted."""
    ticks, work = TICKS.search(text), WORK.search(text)
    engine, thinned = ENGINE.search(text), THINNED.search(text)
    figures = {
        "text": text,
        "ticks": int(ticks[1]),
        "duration_s": float(ticks[3]),
        "missed": int(ticks[4]),
        "samples": int(ticks[5]),
        "frames": int(work[1]),
        "rules": int(work[2]),
        "sampling_cpu_s": float(work[3]) / 1e3,
        "priority": work[4],
        "stops": int(engine[1]),
        "thinned": int(thinned[1]) if thinned else 0,
        "total_cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
        "held_percent": 0.0,
    }
    figures["hold_us"] = [float(engine[i]) * UNITS_US[engine[i + 1]] for i in (2, 4, 6)]
    held = re.search(r"paused the target (-?[\d.]+) %", text)
    if held:
        figures["held_percent"] = float(held[1])
    return figures


def start_silent(argv):
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def wait_cpu_s(process):
    """Waits for its end; the CPU time that it took in all."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode < 0:
        raise RuntimeError(f"{process.args[0]} died of signal {-process.returncode}")
    return usage.ru_utime + usage.ru_stime


def run_cpu_s(argv):
    """Runs a command; its CPU time and its wall time."""
    start_s = time.monotonic()
    cpu_s = wait_cpu_s(start_silent(argv))
    return cpu_s, time.monotonic() - start_s


def eu_stack(pid):
    return ["eu-stack", "-p", str(pid)]


def gdb(pid):
    return ["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all bt"]


class Loop:
    """A peer that takes one dump after the other, as fast as it can."""

    def __init__(self, argv):
        self.argv = argv
        self.runs = 0
        self.spent_s = 0.0  # by those that have ended
        self.process = None
        self.ending = False
        self.start_s = time.monotonic()
        self.thread = threading.Thread(target=self._go)
        self.thread.start()

    def _go(self):
        while not self.ending:
            self.process = start_silent(self.argv)
            spent_s = wait_cpu_s(self.process)
            self.process = None
            self.spent_s += spent_s
            self.runs += 1

    def cpu_s(self):
        process, spent_s = self.process, self.spent_s
        try:
            return spent_s + (process_cpu_s(process.pid) if process else 0)
        except OSError:  # it has just ended
            return self.spent_s

    def stop(self):
        self.ending = True
        self.thread.join()
        return {"runs": self.runs, "rate": self.runs / (time.monotonic() - self.start_s)}


class Peer:
    """A command that samples until it is interrupted."""

    def __init__(self, argv):
        self.process = start_silent(argv)

    def cpu_s(self):
        return process_cpu_s(self.process.pid)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        return {}


def floor(hz, pid=None):
    """What a sampler cannot do without (floor.c)."""
    return Peer([os.environ["FLOOR"], str(hz), *([str(pid)] if pid else [])])


def py_spy(program, pid, hz=99):
    """py-spy record, which knows Python programs alone."""
    output = tempfile.mktemp(dir=SCRATCH)
    return Peer([program, "record", "-p", str(pid), "-r", str(hz), "-d", "3600", "-f", "raw",
                 "-o", output])  # fmt: skip


def find_py_spy():
    """The path of py-spy, or None, said why on stderr."""
    path = os.environ.get("PY_SPY") or shutil.which("py-spy")
    if path:
        return path
    venv = os.path.join(SCRATCH, "venv")
    try:
        quiet = {"capture_output": True, "check": True, "timeout": 180}
        subprocess.run([sys.executable, "-m", "venv", venv], **quiet)
        subprocess.run([os.path.join(venv, "bin", "pip"), "install", "-q", "py-spy"], **quiet)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"py-spy cannot be had: {error}", file=sys.stderr)
        return None
    return os.path.join(venv, "bin", "py-spy")


@contextlib.contextmanager
def ending(target):
    try:
        yield target
    finally:
        target.end()


def median(values):
    return statistics.median(values)


def spread(values):
    """The quartiles as text."""
    if len(values) < 4:
        return f"{min(values):.3g} to {max(values):.3g}"
    low, _, high = statistics.quantiles(values, n=4)
    return f"{low:.4g} to {high:.4g}"
