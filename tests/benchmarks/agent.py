# SPDX-License-Identifier: MIT
"""What the agent costs beside a hundred processes of ten threads, at its defaults but without a
limit of CPU time: in its first minute, when names have to be found, and in the next.

CPU time of the agent itself, of its samplers (all of a window: start, samples, names, file) and of
the uploader; the largest sum of PSS; what the processes' workers did meanwhile, beside what they
did without the agent. After that what one window consists of, from windows of two lengths: a fixed
part, for its start and its end, and a part for each second of sampling. System calls are counted
where strace is there; a loop of Python's says how fast this machine was.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import bench

sys.path.insert(0, bench.harness.HERE)

from push_server import Server  # noqa: E402

N_PROCESSES = int(os.environ.get("BENCHMARK_PROCESSES", "100"))
PERIOD_S = float(os.environ.get("BENCHMARK_PERIOD", "60"))
WINDOW_S = PERIOD_S / 6
ALONE_S = PERIOD_S / 4
PART_S = 5
HZ = 19
TICKS_S = os.sysconf("SC_CLK_TCK")
LOOP = 1000000


def cpu_times(pid):
    """User and system time of the process, and those of its children that have ended."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return [int(field) / TICKS_S for field in fields[11:15]]


def pss_mb(pid):
    """Of the process and all that it started."""
    pids, total = [pid], 0
    for one in pids:
        try:
            pids += bench.harness.children(one)
            with open(f"/proc/{one}/smaps_rollup", encoding="utf-8") as file:
                total += int(re.search(r"^Pss: +(\d+)", file.read(), re.M)[1])
        except (OSError, TypeError):
            pass  # it has just ended
    return total / 1024


def loop_ms():
    """CPU time of a loop that is always the same."""
    start_s = time.process_time()
    for _ in range(LOOP):
        pass
    return 1e3 * (time.process_time() - start_s)


class Agent:
    def __init__(self, *args, prefix=()):
        self.where = tempfile.mkdtemp(dir=bench.SCRATCH)
        self.metrics_path = os.path.join(self.where, "metrics")
        argv = [*prefix, bench.harness.PROFILER, "agent", f"exe={bench.harness.fixture('crowd')}", "-q",
                "-F", HZ, "--max-cpu=0", "--min-age=1ms", f"--metrics={self.metrics_path}",
                "-o", os.path.join(self.where, "spool"), *args]  # fmt: skip
        self.process = subprocess.Popen([*map(str, argv)])
        self.pid = self.process.pid

    def metrics(self):
        with open(self.metrics_path, encoding="utf-8") as file:
            return json.load(file)

    def end(self):
        """Its last metrics, and the user and system time of all of it."""
        self.process.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(self.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode:
            raise RuntimeError("the agent failed")
        metrics = self.metrics()
        shutil.rmtree(self.where)
        return metrics, usage.ru_utime, usage.ru_stime


class Meter:
    """What is used between two looks, in percent of a CPU."""

    def __init__(self, agent, crowds):
        self.agent, self.crowds = agent, crowds
        (self.uploader,) = [pid for pid in bench.harness.children(agent.pid) if os.getsid(pid) == pid]
        self.start = self.look()

    def look(self):
        counts = sum(crowd.count() for crowd in self.crowds)
        uploader = cpu_times(self.uploader)[:2]
        return [time.monotonic(), counts, *cpu_times(self.agent.pid), *uploader]

    def used(self):
        now = self.look()
        wall_s, counts, *cpu_s = [after - before for before, after in zip(self.start, now)]
        self.start = now
        return counts / wall_s, [100 * used_s / wall_s for used_s in cpu_s]


class PeakMemory:
    """Looks each second, in a thread of its own."""

    def __init__(self, pid):
        self.pid, self.peak_mb, self.over = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.over.wait(1):
            self.peak_mb = max(self.peak_mb, pss_mb(self.pid))

    def end(self):
        self.over.set()
        self.thread.join()
        return self.peak_mb


def rate_alone(crowds):
    start_s, counts = time.monotonic(), sum(crowd.count() for crowd in crowds)
    time.sleep(ALONE_S)
    return (sum(crowd.count() for crowd in crowds) - counts) / (time.monotonic() - start_s)


def show_period(table, what, rates, used, peak_mb):
    rate, (own_user, own_system, user, system, up_user, up_system) = used
    alone = bench.median(rates)
    percent = sum(used[1])
    share = 100 * rate / alone
    table.row(
        what, f"{percent:.2f} %", bench.met(percent <= 5), f"{own_user:.2f} + {own_system:.2f}",
        f"{user:.2f} + {system:.2f}", f"{up_user:.2f} + {up_system:.2f}",
        f"{peak_mb:.0f} MB", bench.met(peak_mb <= 150), f"{share:.2f} %", bench.met(share >= 99.5),
        f"{loop_ms():.1f} ms",
    )  # fmt: skip


def show_many(crowds):
    table = bench.Table(
        f"The agent beside {len(crowds)} processes of 10 threads, {WINDOW_S:g} s of every {PERIOD_S:g} s at {HZ} Hz",
        "", "of one CPU", "<= 5 %", "agent (user + system)", "samplers", "uploader",
        "PSS at most", "<= 150 MB", "throughput", ">= 99.5 %", f"loop of {LOOP}",
    )  # fmt: skip
    server = Server((200,))
    rates = [rate_alone(crowds)]
    agent = Agent(f"--window={WINDOW_S}s", f"--period={PERIOD_S}s", f"--push={server.url}")
    bench.harness.wait_for(lambda: bench.harness.children(agent.pid), "the uploader")
    meter, memory, used = Meter(agent, crowds), PeakMemory(agent.pid), []
    for _ in range(2):
        time.sleep(PERIOD_S)
        used.append(meter.used())
    peak_mb = memory.end()
    metrics, _, _ = agent.end()
    rates.append(rate_alone(crowds))
    server.close()
    for what, one in zip(("first period", "second period"), used):
        show_period(table, what, rates, one, peak_mb)
    print(f"\n{metrics['windows']} windows, {metrics['failed_windows']} failed; "
          f"{metrics['samples']} samples; without the agent {rates[0]:.0f} and {rates[1]:.0f} chunks a second")  # fmt: skip


def calls_of(path):
    with open(path, encoding="utf-8") as file:
        return sum(int(n) for n in re.findall(r"^ *(\d+) (?!total)\w+$", file.read(), re.M))


def window_of(window_s, counts_calls):
    """CPU milliseconds (user, system) of a window of that length, or its system calls."""
    args = (f"--window={window_s}s", f"--period={window_s}s", "--max-processes=1")
    log = os.path.join(bench.SCRATCH, "strace")
    strace = ("strace", "-f", "-c", "-U", "calls,name", "-o", log)
    if counts_calls and not shutil.which("strace"):
        return None
    agent = Agent(*args, prefix=strace if counts_calls else ())
    time.sleep(PART_S)
    if counts_calls:
        (agent_pid,) = bench.harness.children(agent.pid)
        os.kill(agent_pid, signal.SIGTERM)
        agent.process.wait()
        return calls_of(log) / agent.metrics()["windows"]
    _, _, user_s, system_s = cpu_times(agent.pid)
    metrics, _, _ = agent.end()
    return [1e3 * cpu_s / metrics["windows"] for cpu_s in (user_s, system_s)]


def show_one():
    table = bench.Table(
        f"One window of 10 threads at {HZ} Hz ({PART_S} s of windows)",
        "", "CPU (user + system)", "system calls, the agent's included",
    )  # fmt: skip
    short_s, long_s = 0.1, 1
    with bench.ending(bench.Crowd(8, 1, 20, 5000)):
        short, long = (window_of(one_s, False) for one_s in (short_s, long_s))
        calls = [window_of(one_s, True) for one_s in (short_s, long_s)]
    each_s = [(b - a) / (long_s - short_s) for a, b in zip(short, long)]
    fixed = [a - short_s * one_s for a, one_s in zip(short, each_s)]
    calls_s = None if None in calls else (calls[1] - calls[0]) / (long_s - short_s)
    for what, ms, n in (
        ("start and end", fixed, calls_s and calls[0] - short_s * calls_s),
        ("a second of sampling", each_s, calls_s),
    ):
        table.row(what, f"{ms[0]:.1f} + {ms[1]:.1f} ms", "" if n is None else f"{n:.0f}")


def main():
    crowds = [bench.Crowd(8, 1, 20, 5000) for _ in range(N_PROCESSES)]
    try:
        show_many(crowds)
    finally:
        for crowd in crowds:
            crowd.end()
    show_one()


if __name__ == "__main__":
    sys.exit(main())
