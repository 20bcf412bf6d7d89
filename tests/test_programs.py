# SPDX-License-Identifier: MIT
"""Programs that people run: Python, and redis under load."""

import collections
import os
import re
import shutil
import subprocess
import sys
import threading

import harness
from harness import attach

# The other thread sleeps before the main one takes the interpreter's lock for itself.
PROGRAM = """
import os, sys, threading, time
def spin():
    n = 0
    while True:
        n += len(str(n))
def wait():
    time.sleep(1000)
threading.Thread(target=wait, daemon=True).start()
(other,) = set(map(int, os.listdir("/proc/self/task"))) - {os.getpid()}
call = "running"
while call in ("running", "-1", "202"):  # 202 is futex(2), where it waits for that lock
    time.sleep(0.001)
    call = open("/proc/self/task/%d/syscall" % other).read().split()[0]
print("ready", flush=True)
spin()
"""


class Python(harness.TestCase):
    def check(self, python):
        target = self.start(python, "-c", PROGRAM)
        # The interpreter's own frames, as of any program; test_python.py is about the others.
        run = attach(target, "--runtimes=none", duration="1")
        self.assertEqual(run.summary.n_threads, 2)
        main = run.stacks(tid=target.pid)
        (other,) = [run.stacks(tid=t.tid) for t in run.summary.threads if t.tid != target.pid]
        interpreter = r"(?:[^;]+;)*_?PyEval_\w+(?:;[^;]+)*"
        self.assert_stacks(main, rf"_start;(?:[^;]+;)*Py_(?:Bytes|Run)Main;{interpreter}")
        self.assert_stacks(other, rf"{interpreter};[^;]*(?:nanosleep|select|poll)[^;]*")
        self.assertLessEqual(run.summary.truncated, run.summary.samples * 0.01, run.stderr)
        states = {s.state for s in run.pprof.samples if s.tid != target.pid}
        self.assertEqual(states, {"sleeping"})

    def test_this_python(self):
        self.check(sys.executable)

    def test_system_python(self):
        harness.need(os.path.exists("/usr/bin/python3"), "there is no /usr/bin/python3")
        self.check("/usr/bin/python3")


class Redis(harness.TestCase):
    def setUp(self):
        server = shutil.which("redis-server")
        self.benchmark = shutil.which("redis-benchmark")
        harness.need(server and self.benchmark, "redis is not installed")
        self.socket = os.path.join(self.directory(), "redis.sock")
        self.target = self.start(
            server, "--port", "0", "--unixsocket", self.socket, "--save", "", "--daemonize", "no",
            ready=None, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        drain = threading.Thread(target=self.drain, daemon=True)
        drain.start()
        harness.wait_for(lambda: os.path.exists(self.socket), "redis")

    def drain(self):
        try:
            while os.read(self.target.process.stdout.fileno(), 4096):
                pass
        except (OSError, ValueError):
            pass

    def test_under_load(self):
        load = subprocess.Popen(
            [self.benchmark, "-s", self.socket, "-n", "100000000", "-c", "50", "-P", "32",
             "-t", "set,get", "-q"],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        harness.wait_for(lambda: harness.cpu_ticks(self.target.pid) > 10, "the load")
        run = attach(self.target, duration="2", hz=499)
        self.assertIsNone(load.poll())
        main = run.stacks(tid=self.target.pid)
        self.assert_stacks(main, r"_start;(?:[^;]+;)+main;aeMain;.*", share=0.95)
        names = collections.Counter()
        for stack, count in main.items():
            for name in set(stack):
                names[name] += count
        total = sum(main.values()) - main.starved
        # It may wait for the load, which may wait for a CPU.
        (thread,) = [t for t in run.summary.threads if t.tid == self.target.pid]
        share = thread.kernel_cpu_s / thread.watched_s
        for name in ("readQueryFromClient", "processCommand", "call"):
            self.assertGreater(names[name], total * min(0.02, 0.03 * share), names.most_common(20))
        running = sum(s.count for s in run.pprof.samples
                      if s.tid == self.target.pid and s.state == "running")  # fmt: skip
        self.assertGreater(running, total * min(0.3, 0.5 * share))
        # Its background threads wait all the time, each with a whole stack.
        self.assertGreaterEqual(run.summary.n_threads, 4)
        self.assertLessEqual(run.summary.truncated, run.summary.samples * 0.01, run.stderr)
        folded = attach(self.target, "-t", form="folded", duration="0.5")
        roots = {re.sub(r"_?#?\d+$", "", stack[0]) for stack in folded.folded}
        self.assertTrue(any("bio" in root for root in roots), roots)


if __name__ == "__main__":
    harness.main()
