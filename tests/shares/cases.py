# SPDX-License-Identifier: MIT
"""The cases of the suite of shares: programs that know their own shares, who profiles them, and where."""

import collections
import contextlib
import functools
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness  # noqa: E402
from cgroup import quota  # noqa: E402
from judge import Outcome, Truth  # noqa: E402

NOBODY = 65534
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

# command: the fixture, and its arguments after the seconds. options: the profiler's.
Program = collections.namedtuple("Program", "command options", defaults=((),))


def clocked(*args, **more):
    return Program(("clocked", *args), **more)


PROGRAMS = {
    "naps of 1 ms": clocked("naps", 1000, 1),
    "naps of 0.3 ms": clocked("naps", 300, 1),
    "naps of 5 ms": clocked("naps", 5000, 1),
    "4 threads nap 1 ms": clocked("naps", 1000, 4),
    "2 threads spin": clocked("spin", 0, 2),
    "8 threads spin": clocked("spin", 0, 8),
    "bursts": clocked("bursts", 0, 2),
    "pool": clocked("pool", 1000, 4),
    "hand-off each 1 ms": clocked("hand", 1000, 2),
    "hand-off each 0.1 ms": clocked("hand", 100, 2),
    "pipe each 0.2 ms": clocked("pipe", 200, 2),
    "convoy": clocked("convoy", 500, 8),
    "slowed by 1.2": clocked("slowed", 300, 1, 1.2),
    "slowed by 3": clocked("slowed", 300, 1, 3),
    "threads of 15 ms": clocked("short", 15000, 4),
    "threads of 2 ms": clocked("short", 2000, 2),
    "children of 20 ms": clocked("children", 20000, 4, options=("--children",)),
    "Python, 4 threads": Program(("clocked_gil.py", 4)),
    "Go, 4 goroutines": Program(("golang-clocked", 4)),
}


def slowed_by(program):
    """Returns how much slower compute_b is than compute_a, if the program was told so."""
    command = PROGRAMS[program].command
    return command[4] if command[1] == "slowed" else None


def _setpriv(*args):
    return [harness.find_tool("setpriv"), *args]


# Who profiles: a prefix for the profiler's command line.
WHO = {
    "root": lambda: [],
    "root without CAP_SYS_NICE": lambda: _setpriv("--bounding-set=-sys_nice", "--inh-caps=-sys_nice"),
    "user": lambda: _setpriv(f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    "container": lambda: _setpriv("--bounding-set=-all,+sys_ptrace", "--inh-caps=-all"),
}


def may_be_realtime():
    """Does this cgroup let root use SCHED_FIFO?"""
    return not subprocess.run(
        ["chrt", "-f", "1", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode


@contextlib.contextmanager
def _nothing(*_):
    yield []


@contextlib.contextmanager
def _other_program(prefix):
    """Runs another program on those CPUs. It computes half of the time."""
    command = [harness.fixture("clocked"), "1000", "naps", "3000", "1"]
    process = subprocess.Popen([*prefix, *command], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


# How the program is treated. around: returns a prefix for the program alone. beside: runs something else
# meanwhile. group: yields a prefix for the program and the profiler.
How = collections.namedtuple("How", "around beside group", defaults=(lambda _: [], _nothing, _nothing))
HOW = {
    "": How(),
    "nice 10 beside another program": How(lambda _: ["nice", "-n", "10"], _other_program),
    "SCHED_IDLE beside another program": How(lambda _: ["chrt", "-i", "0"], _other_program),
    "one CPU of its own": How(lambda _: on_cpus(1)),
    "a quota of 40 % of a CPU": How(group=functools.partial(quota, 40)),
}


def command_of(program, seconds):
    name, *args = program.command
    if name.endswith(".py"):
        start = [PYTHON, os.path.join(harness.HERE, "fixtures", name)]
    else:
        start = [harness.fixture(name)]
    return [str(word) for word in (*start, seconds, *args)]


def on_cpus(n_cpus):
    """Returns a prefix that starts a command on the last n_cpus CPUs."""
    cpus = sorted(os.sched_getaffinity(0))[-n_cpus:]
    harness.need(len(cpus) == n_cpus, f"needs {n_cpus} CPUs")
    return [harness.find_tool("taskset"), "-c", ",".join(map(str, cpus))]


def profile(name, who, n_cpus, hz, seconds, how=None, seed=None, options=()):
    """Profiles the program; returns an Outcome and the finished run."""
    program, how = PROGRAMS[name], how or HOW[""]
    cpus = on_cpus(n_cpus)
    with how.beside(cpus), how.group() as join:
        run = harness.start_wrap(
            [*how.around(cpus), *command_of(program, seconds)], "--no-inlines", *program.options,
            *options, *([f"--seed={seed}"] if seed is not None else []), hz=hz,
            prefix=[*join, *cpus, *WHO[who]()],
        ).finish()  # fmt: skip
    truth = Truth(run.stdout.decode())
    return Outcome(truth, run.pprof.samples, run.summary.missed), run
