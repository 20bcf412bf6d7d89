# SPDX-License-Identifier: MIT
"""What /proc shows of a process, and waiting until it shows what it should."""

import glob
import os
import select
import subprocess
import time

# On a busy machine all takes its time.
WAIT_TIMEOUT_S = 120
SYS_FUTEX = "202"  # x86-64's


def read_status(pid, tid=None):
    """/proc/PID/task/TID/status as a dict; None where the thread is gone."""
    path = f"/proc/{pid}/task/{tid}/status" if tid else f"/proc/{pid}/status"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def tids_of(pid):
    try:
        return sorted(int(tid) for tid in os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_there(pid):
    """False for one that has ended, whether its parent has waited for it or not."""
    status = read_status(pid)
    return bool(status) and status["State"][0] not in "ZX"


def schedule_of(pid, tid=None):
    """For how long a thread has run, and for how long it was ready and others had the CPUs: in
    seconds, by the kernel's own account."""
    with open(f"/proc/{pid}/task/{tid or pid}/schedstat", encoding="ascii") as file:
        ran_ns, waited_ns, _ = file.read().split()
    return int(ran_ns) / 1e9, int(waited_ns) / 1e9


def wait_until_settled(pid):
    """Waits until a program that has just said that it is ready is where it stays: asleep, or
    spinning for a while."""

    def has_settled():
        status = read_status(pid)
        return not status or status["State"][0] != "R" or schedule_of(pid)[0] > start_s + 0.001

    try:
        start_s, _ = schedule_of(pid)
        wait_for(has_settled, f"process {pid} to go on")
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended


def children(pid):
    """The children of a process, in the order of their birth, in which pids begin anew some time."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="utf-8") as file:
                found += [int(child) for child in file.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
    return found


def describe_descendants(pid, indent=""):
    """What each thread below a process is at: a line each."""
    lines = []
    for child in children(pid):
        for tid in tids_of(child):
            status = read_status(child, tid)
            if status:
                texts = []
                for name in "wchan", "syscall", "schedstat":
                    try:
                        with open(f"/proc/{child}/task/{tid}/{name}", encoding="ascii") as file:
                            texts.append(file.read().strip())
                    except (FileNotFoundError, ProcessLookupError, PermissionError):
                        pass
                lines.append(
                    f"{indent}{child}/{tid} {status['Name']}: {status['State']}, tracer "
                    f"{status['TracerPid']}, pending {status['SigPnd']} {status['ShdPnd']}, "
                    f"{', '.join(texts)}"
                )
        lines += describe_descendants(child, indent + "  ")
    return lines


def wait_for(condition, what, timeout_s=WAIT_TIMEOUT_S):
    """Waits until the condition holds and returns its value."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            there_is = "\n".join(describe_descendants(os.getpid()))
            raise AssertionError(f"waited in vain for {what}; there is:\n{there_is}")
        time.sleep(0.005)


def wait_until_untraced(pid):
    """Waits for what stays of a profiler until a call has come to its end."""
    def is_untraced():
        statuses = [read_status(pid, tid) for tid in tids_of(pid)]
        return all(not status or status["TracerPid"] == "0" for status in statuses)

    wait_for(is_untraced, "the end of the tracer")


def read_until(file, line, timeout_s=WAIT_TIMEOUT_S):
    """Reads lines of an unbuffered binary pipe up to `line`; returns those before it."""
    before, buffer = [], b""
    deadline = time.monotonic() + timeout_s
    while True:
        readable, _, _ = select.select([file], [], [], max(0, deadline - time.monotonic()))
        if not readable:
            raise AssertionError(f"waited in vain for {line!r}; came: {before} {buffer!r}")
        byte = os.read(file.fileno(), 1)
        if not byte:
            raise AssertionError(f"ended before {line!r}; came: {before} {buffer!r}")
        if byte != b"\n":
            buffer += byte
            continue
        text, buffer = buffer.decode(), b""
        if text == line:
            return before
        before.append(text)


def find_disk(*directories):
    """The first of them that is not kept in memory, where fsync(2) takes no time; None if all are."""
    for directory in directories:
        command = ["stat", "--file-system", "--format=%T", directory]
        kind = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.strip()
        if kind and kind not in ("tmpfs", "ramfs"):
            return directory
    return None


def uncounted_s():
    """What no thread is charged for, of all CPUs' time since the boot: interrupts, and what a
    hypervisor took (proc_stat(5)). The scheduler's clock stands still then (update_rq_clock_task)."""
    with open("/proc/stat", encoding="ascii") as file:
        irq, softirq, steal = file.readline().split()[6:9]
    return (int(irq) + int(softirq) + int(steal)) / os.sysconf("SC_CLK_TCK")


def cpu_ticks(pid):
    """The user CPU time of a process, in clock ticks of 10 ms."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[11])


def wait_until_spinning(target):
    """Waits until a target that says "ready" and then spins does so."""
    start = cpu_ticks(target.pid)
    wait_for(lambda: cpu_ticks(target.pid) >= start + 2, "its CPU time to grow")


def n_pauses_of(worker):
    """How often the process that samples has slept."""
    status = read_status(worker) if worker else None
    return int(status.get("voluntary_ctxt_switches", 0)) if status else 0


def wait_for_work(pid, n_ticks=5):
    """Waits until the process has had a CPU for some time more, in ticks of 10 ms."""
    before = cpu_ticks(pid)
    wait_for(lambda: cpu_ticks(pid) >= before + n_ticks, f"process {pid} to work")


def wait_until_in_calls(pid):
    """Waits until each thread sleeps in a system call: not in a futex(2), where a thread of Python's
    waits for the interpreter's lock, on its way to where it stays."""

    def are_in_calls():
        for tid in tids_of(pid):
            with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
                number = file.read().split()[0]
            if number in ("running", "-1", SYS_FUTEX):
                return False
        return True

    wait_for(are_in_calls, f"the threads of {pid} to wait")


def read_links(directory):
    """Where the links in it lead that are there all the while; nowhere, if the process ends."""
    found = set()
    try:
        for name in os.listdir(directory):
            try:
                found.add(os.readlink(os.path.join(directory, name)))
            except (FileNotFoundError, PermissionError):  # the latter where the process has just ended
                pass
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found
