# SPDX-License-Identifier: MIT
"""profiler dump: which threads and processes wait for each other, and what is proven of it."""

import json
import os
import signal
import sys

import harness
from harness import Run
from test_dump import CLOCK_NANOSLEEP, POLL, by_name, dump, dump_text, wait_for_calls


class Deadlocks(harness.TestCase):
    def start_asleep(self, *args):
        """Its main thread says that it is ready, and only then begins to wait."""
        target = self.start_fixture(*args)
        harness.wait_for(
            lambda: harness.read_status(target.pid)["State"][0] == "S", "the main thread's wait"
        )
        return target

    def test_three_in_a_circle(self):
        target = self.start_fixture("locks", "cycle", "3")
        told = dump(target, "--check", expect=10)
        threads = by_name(told)
        tids = {threads[f"dead{i}"]["tid"] for i in range(3)}
        self.assertEqual([set(cycle) for cycle in told["deadlocks"]], [tids])
        self.assertEqual(threads["victim"]["waits_for"]["owners"][0]["name"], "dead0")
        text = dump_text(target)
        lines = text.splitlines()
        self.assertEqual(lines[1], "! DEADLOCK: 3 threads wait for each other")
        for line in lines[2:5]:
            self.assertRegex(
                line,
                r'\A    "dead\d" \d+ waits for mutex chain(\+0x\d+)? held by "dead\d" \d+, '
                r"at 0x[0-9a-f]+, in lock_next locks.c:\d+\Z",
            )
        self.assertEqual(lines[5], "! 1 more thread waits for those, directly or not")

    def test_other_circles(self):
        """With itself, and through pthread_join."""
        for mode, names in (("self", {"dead0"}), ("join", {"dead0", "dead1"})):
            target = self.start_fixture("locks", mode)
            told = dump(target)
            tids = {t["tid"] for t in told["threads"] if t["name"] in names}
            self.assertEqual([set(cycle) for cycle in told["deadlocks"]], [tids], mode)

    def test_processes(self):
        """Through locks of files, of both kinds, mutexes, and the other's end: only one is named."""
        for mode, what in (
            ("files", "file_lock"), ("child", "child"), ("mutexes", "mutex"),
            ("pidfd-wait", "process"), ("pidfd-poll", "process"),
        ):  # fmt: skip
            target = self.start_asleep("locks", mode)
            child = int(target.said[0])
            told = dump(target)
            self.assertEqual([set(c) for c in told["deadlocks"]], [{target.pid, child}], mode)
            waits = told["threads"][0]["waits_for"]
            self.assertEqual(waits["what"], what)
            self.assertEqual([o["pid"] for o in waits["owners"]], [child])
            self.assertEqual(waits["certainty"], "read")
            held_by = '"locks"' if mode == "mutexes" else 'process "locks"'
            self.assertIn(f"held by {held_by} {target.pid}", dump_text(target, "-c"))
            harness.wait_for(lambda: os.path.exists(f"/proc/{child}"), "the child")

    def test_what_is_none(self):
        """A wait that ends by itself, an open file that a third process could unlock."""
        for args in (["timed"], ["shared"]):
            target = self.start_asleep("locks", *args)
            told = dump(target, "--check")
            self.assertEqual(told["deadlocks"], [], args)
            owners = [t["waits_for"]["owners"] for t in told["threads"] if t["waits_for"]]
            self.assertTrue(any(owners), args)

    def test_handlers(self):
        """What a signal handler can end is no proven deadlock; who holds what is told all the same.
        A mutex's wait goes on after a handler, and a blocked signal ends nothing."""
        for mode, what in (
            ("files", "file_lock"), ("child", "child"), ("pidfd-wait", "process"), ("pidfd-poll", "process"),
        ):  # fmt: skip
            target = self.start_asleep("locks", mode, "caught")
            told = dump(target, "--check")
            self.assertEqual(told["deadlocks"], [], mode)
            waits = told["threads"][0]["waits_for"]
            self.assertEqual(waits["what"], what)
            self.assertEqual([o["pid"] for o in waits["owners"]], [int(target.said[0])])
            self.assertEqual(waits["certainty"], "read")
            target = self.start_asleep("locks", mode, "blocked")
            self.assertEqual(len(dump(target)["deadlocks"]), 1, mode)
        target = self.start_asleep("locks", "mutexes", "caught")
        self.assertEqual(len(dump(target)["deadlocks"]), 1)

    def test_timeout_by_alarm(self):
        """Two processes lock two files crosswise, each with a timeout by alarm(2): both end."""
        program = """
import fcntl, os, signal, sys
class Timeout(Exception): pass
def on_alarm(*_): raise Timeout
def lock(first, second, told, ready):
    signal.signal(signal.SIGALRM, on_alarm)
    mine, other = (open(name, "w") for name in (first, second))
    fcntl.flock(mine, fcntl.LOCK_EX)
    os.write(told, b"x")
    os.read(ready, 1)
    signal.alarm(60)
    try: fcntl.flock(other, fcntl.LOCK_EX)
    except Timeout: os._exit(0)
    os._exit(1)
ready, told = os.pipe(), os.pipe()
pids = [os.fork() or lock(*names, told[1], ready[0]) for names in (sys.argv[1:], sys.argv[:0:-1])]
for _ in pids: os.read(told[0], 1)
os.write(ready[1], b"xx")
print(*pids, "\\nready", flush=True)
statuses = [os.waitpid(pid, 0)[1] for pid in pids]
print(*statuses, flush=True)
"""
        files = [os.path.join(self.directory(), name) for name in "ab"]
        target = self.start(sys.executable, "-c", program, *files)
        pids = [int(pid) for pid in target.said[0].split()]
        for pid in pids:
            harness.wait_for(lambda pid=pid: harness.read_status(pid)["State"][0] == "S", "the locks")
        for pid in pids:
            run = Run(["dump", "--check", pid])
            run.communicate()
            self.assertEqual(run.status, 0, run.stdout)
            self.assertIn(b"file lock held by", run.stdout)
            self.assertNotIn(b"DEADLOCK", run.stdout)
        # Stopped, both have their alarms before either gives up its lock.
        for number in (signal.SIGSTOP, signal.SIGALRM, signal.SIGCONT):
            for pid in pids:
                os.kill(pid, number)
        self.assertEqual(target.process.stdout.readline().split(), [b"0", b"0"])

    def test_stale_owner(self):
        """A process that does not have the mutex cannot hold it, whatever the mutex says."""
        target = self.start_asleep("locks", "stale")
        told = dump(target)
        self.assertEqual(told["deadlocks"], [])
        self.assertEqual(told["threads"][0]["waits_for"]["what"], "mutex")
        self.assertEqual(told["threads"][0]["waits_for"]["owners"], [])

    def test_begun_anew(self):
        """Calls that go on after a stop look like any call: what they are not is not told."""
        program = """
import select, threading, time
threading.Thread(target=select.poll().poll, args=[1000000], daemon=True).start()
time.sleep(0.1)
print("ready", flush=True)
time.sleep(1000)
"""
        target = self.start(sys.executable, "-c", program)
        wait_for_calls(target, POLL, CLOCK_NANOSLEEP)
        for sent, state in ((signal.SIGSTOP, "T"), (signal.SIGCONT, "S")):
            os.kill(target.pid, sent)
            harness.wait_for(
                lambda wanted=state: all(
                    harness.read_status(target.pid, tid)["State"][0] == wanted
                    for tid in map(int, os.listdir(f"/proc/{target.pid}/task"))
                ),
                "the stop and the wait",
            )
        threads = dump(target)["threads"]
        self.assertIn("restart_syscall", [t["syscall"]["name"] for t in threads])
        self.assertEqual([t["waits_for"] for t in threads], [None] * 2)

    def test_passed_on(self):
        """Locks that are passed on all the time: what is not so twice is not told."""
        target = self.start_fixture("locks", "pass", "6")
        n = 15
        text = dump_text(target, "--json", "-n", n, "--interval=1ms", "--check")
        told = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(len(told), n)
        self.assertEqual([t["deadlocks"] for t in told], [[]] * n)


if __name__ == "__main__":
    harness.main()
