# SPDX-License-Identifier: MIT
"""Files that a process or a recording names: none is opened but a regular one that its user could
open, and none can hold the profiler."""

import contextlib
import ctypes
import functools
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

import elf_maker
import harness
from elf_maker import CODE, SHT_PROGBITS, STT_FUNC_GLOBAL
from test_hostile import NO_LEAKS, TestCase
from test_record import Recorded, report

NOBODY = 65534
IN_OPEN, IN_NONBLOCK = 0x20, 0o4000
# To the end of a run that waits for a server: a second for each, and the machine may be busy.
MAX_LATE_S = 60
SHORT_WAIT_S = 0.3  # no fork of a small process takes as long
DEAD = r"its file server does not answer"


class Opens:
    """Whether a file was opened since, by inotify(7). Finding it (O_PATH) does not count."""

    def __init__(self, path):
        libc = ctypes.CDLL(None)
        self.fd = libc.inotify_init1(IN_NONBLOCK)
        assert libc.inotify_add_watch(self.fd, os.fsencode(path), IN_OPEN) >= 0

    def any(self):
        try:
            return bool(os.read(self.fd, 4096))
        except BlockingIOError:
            return False
        finally:
            os.close(self.fd)


def link_to(name):
    """A .gnu_debuglink section with a CRC that no file has."""
    link = name.encode() + b"\0"
    link += bytes(-len(link) % 4) + struct.pack("<I", 0x12345678)
    return elf_maker.make(
        [(".gnu_debuglink", SHT_PROGBITS, 0, link, "")], [(b"hello", STT_FUNC_GLOBAL, CODE, 64)]
    )


class Links(TestCase):
    """A program names a debug file, at whose place its user has left a link."""

    def opened_by_root(self, aim, user=NOBODY):
        """Was what the link leads to opened?"""
        harness.need(os.geteuid() == 0, "needs root to become somebody else")
        directory = self.directory()
        hostile = shutil.copy(harness.fixture("hostile"), directory)
        os.symlink(aim, os.path.join(directory, "x.debug"))
        code = self.write("code", link_to("x.debug"), directory)
        os.chmod(directory, 0o755)
        prefix = [harness.find_tool("setpriv"), f"--reuid={user}", f"--regid={user}",
                  "--clear-groups"]  # fmt: skip
        target = harness.Target([*prefix, hostile, "run", code])
        self.addCleanup(target.end)
        opens = Opens(aim)
        run = self.profile(target)
        target.end()
        self.assertIn("hello", {frame for stack in run.stacks() for frame in stack})
        return opens.any()

    def test_file_of_roots(self):
        for user, opened in ((NOBODY, False), (0, True)):
            secret = self.write("secret", b"\x7fELF that is nobody else's")
            os.chmod(secret, 0o600)
            os.chmod(os.path.dirname(secret), 0o755)
            self.assertEqual(self.opened_by_root(secret, user), opened)

    def test_directory_of_roots(self):
        """A file that all may read, where nobody else can come."""
        secret = self.write("secret", b"\x7fELF")
        os.chmod(os.path.dirname(secret), 0o700)
        self.assertFalse(self.opened_by_root(secret))

    def test_made_up_by_the_kernel(self):
        """One that no other process of the machine reads meanwhile."""
        self.assertFalse(self.opened_by_root("/proc/execdomains"))
        self.assertFalse(self.opened_by_root("/proc/execdomains", 0))

    def test_device(self):
        master, slave = os.openpty()
        os.fchmod(slave, 0o666)
        self.assertFalse(self.opened_by_root(os.ttyname(slave)))
        os.close(slave)
        os.close(master)


class Recordings(harness.TestCase):
    """What a recording names, and somebody else may have put there."""

    def record(self):
        """A recording without names, and the path of the program in it, which is gone."""
        path = os.path.join(self.directory(), "program")
        shutil.copy(harness.fixture("calls-O2"), path)
        target = self.start(path, "sleep")
        data = Recorded(target, "--no-symbols", duration="0.2").finish().data
        target.end()
        os.unlink(path)
        return data, path

    def assert_unnamed(self, out):
        self.assertIn(b"[program+0x", out)
        self.assertNotIn(b"leaf_sleep", out)

    def test_pipe_with_a_writer(self):
        """Its writer goes on to wait."""
        data, path = self.record()
        os.mkfifo(path)
        done = threading.Event()

        def write():
            os.close(os.open(path, os.O_WRONLY))
            done.set()

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        self.assert_unnamed(report(data)[0])
        self.assertFalse(done.wait(0.2))
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        writer.join()

    def test_device(self):
        data, path = self.record()
        master, slave = os.openpty()
        os.symlink(os.ttyname(slave), path)
        opens = Opens(path)
        self.assert_unnamed(report(data)[0])
        self.assertFalse(opens.any())
        os.close(slave)
        os.close(master)

    def test_what_there_is_is_not_told(self):
        data, path = self.record()
        told = [report(data)[1]]
        for content in (b"", b"text", link_to("x")):
            with open(path, "wb") as file:
                file.write(content)
            told.append(report(data)[1])
        os.unlink(path)
        os.mkdir(path)
        told.append(report(data)[1])
        self.assertEqual(set(told), {told[0]})


class Servers(harness.TestCase):
    """A file server that does not answer any more."""

    def setUp(self):
        super().setUp()
        if not self.has_fuse():
            print("no FUSE on this machine: servers that do not answer are not tested", file=sys.stderr)
            self.skipTest("no FUSE on this machine")  # a container, most likely
        self.start_server()

    def start_server(self, *user):
        self.mount_point, self.stall = self.directory(), os.path.join(self.directory(), "stall")
        server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuse_server.py")
        self.server = harness.Target(
            [sys.executable, server, self.mount_point, harness.fixture("calls-O2"), self.stall, *user]
        )
        self.addCleanup(self.end_server)
        self.program = os.path.join(self.mount_point, "prog")

    def has_fuse(self):
        try:
            os.close(os.open("/dev/fuse", os.O_RDWR))
        except OSError:
            return False
        effective = harness.read_status(os.getpid())["CapEff"]
        return os.geteuid() == 0 and bool(int(effective, 16) >> 21 & 1)  # CAP_SYS_ADMIN

    def end_server(self):
        self.server.process.kill()
        self.server.end()
        subprocess.run(["umount", "-lq", self.mount_point], check=False, stderr=subprocess.DEVNULL)

    def stop_answering(self):
        with open(self.stall, "wb"):
            pass

    def assert_told(self, run, path):
        self.assertRegex(run.stderr, rf"cannot read {re.escape(path)}: .*{DEAD}")
        self.assertEqual(len(re.findall(DEAD, run.stderr)), 1)
        self.assertRegex(";".join(next(iter(run.stacks()))), r"\[prog\+0x[0-9a-f]+\]")

    def test_that_answers(self):
        target = self.start(self.program, "spin")
        run = harness.attach(target, duration="0.3")
        self.assert_stacks(run.stacks(), r"_start;.*main;many_arguments;.*leaf_spin")

    def start_users(self):
        """A program on a file system that is an ordinary user's alone, as an AppImage's is."""
        self.end_server()
        self.start_server(str(NOBODY))
        self.assertRaises(PermissionError, os.stat, self.program)
        setpriv = harness.find_tool("setpriv")
        return self.start(setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                          self.program, "spin")  # fmt: skip

    def test_of_a_user(self):
        """Root may not even look at the file; the helper that opens it becomes the user."""
        run = harness.attach(self.start_users(), duration="0.3")
        self.assert_stacks(run.stacks(), r"_start;.*main;many_arguments;.*leaf_spin")

    def test_of_a_user_who_cannot_be_taken_for(self):
        """The reason is told."""
        target = self.start_users()
        bounds = [harness.find_tool("setpriv"), "--bounding-set=-setuid,-setgid", "--inh-caps=-all"]
        run = harness.attach(target, duration="0.3", prefix=bounds)
        self.assertIn(f"cannot read {self.program}: no permission to read it", run.stderr)

    def test_duration_is_kept(self):
        target = self.start(self.program, "sleep")
        self.stop_answering()
        run = harness.start_attach(target, "-d", "1")
        run.finish()
        self.assertLess(run.elapsed_s, 1 + MAX_LATE_S)
        self.assert_told(run, self.program)

    def test_signals_are_kept(self):
        target = self.start(self.program, "spin")
        self.stop_answering()
        for number in (signal.SIGINT, signal.SIGTERM):
            run = harness.start_attach(target, "-d", "200")
            self.assertTrue(select.select([run._ready], [], [], harness.WAIT_TIMEOUT_S)[0])
            run.signal(number)
            run.finish()
            self.assertLess(run.elapsed_s, MAX_LATE_S)

    def start_locker(self, *script):
        target = self.start_fixture("locked_memory", self.program, self.stall, *script)
        self.addCleanup(self.end_server)  # comes first: else the target could not end
        return target

    def count(self, target):
        """How far the target has counted. With the first question it asks the server, which falls
        silent, and is locked from then on."""
        target.process.stdin.write(b"\n")
        return int(target.process.stdout.readline())

    def check_kept(self, run, target):
        """It has ended in time, with what it had seen until the memory was locked."""
        run.finish()
        self.assertLess(run.end_s - self.due_s, MAX_LATE_S, run.stderr)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertRegex(run.stderr, "sampling process has been stuck in the kernel .* sampling ends here")
        seen = sum(n for stack, n in run.stacks().items() if {"spin", "main"} & set(stack))
        self.assertGreater(seen, 0, run.stacks())
        before = self.count(target)
        harness.wait_for(lambda: self.count(target) > before, "the target to count on")

    def check_end(self, number=None, script=()):
        target = self.start_locker(*script)
        self.check_kept(self.start_stuck(target, number), target)

    def start_stuck(self, target, number):
        duration_s = 200 if number else 3
        run = harness.start_attach(target, "-d", str(duration_s))
        self.due_s = time.monotonic() + duration_s
        run.wait_attached()
        time.sleep(0.5)
        self.count(target)
        if number:
            time.sleep(0.5)
            run.signal(number)
            self.due_s = time.monotonic()
        return run

    def test_duration_is_kept_by_locked_memory(self):
        self.check_end()

    def test_sigint_is_kept_by_locked_memory(self):
        self.check_end(signal.SIGINT)

    def test_sigterm_is_kept_by_locked_memory(self):
        self.check_end(signal.SIGTERM)

    def test_exec_from_it(self):
        """The interpreter of a script lies there: who traces a thread of that process waits."""
        script = os.path.join(self.directory(), "script")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!{self.program}\n")
        os.chmod(script, 0o755)
        self.check_end(signal.SIGINT, [script])

    def test_memory_is_locked_before(self):
        target = self.start_locker()
        self.count(target)
        harness.wait_for(lambda: os.path.exists(self.stall), "the server to fall silent")
        time.sleep(0.2)
        run = harness.start_attach(target, "-d", "1")
        run.communicate()
        self.assertEqual(run.status, 1, run.stderr)
        self.assertIn("sampling ended before its first sample", run.stderr)
        self.assertLess(run.elapsed_s, 1 + MAX_LATE_S)

    def test_that_locks_the_memory(self):
        """Its client's mmap_lock is taken meanwhile: nobody can read that process's memory, and
        nobody is held for that."""
        target = self.start_locker()
        count = functools.partial(self.count, target)
        run = harness.start_attach(target, "-d", "200")
        run.wait_attached()
        seen = [count()]
        for _ in range(20):
            harness.wait_for(lambda: count() > seen[-1], "the target to count on")
            seen.append(count())
            time.sleep(0.02)
        run.signal(signal.SIGINT)
        self.end_server()
        run.process.wait()
        self.assertIn(run.process.returncode, (0, 128 + signal.SIGKILL))

    def wait_until_stuck(self, run):
        """For the memory to be locked, and the worker to wait for that, not for something short; the
        worker."""
        worker, waits = run.worker_pid(), []
        harness.wait_for(lambda: os.path.exists(self.stall), "the server to fall silent")

        def is_stuck():
            """Nor has it run since it was seen in a wait some time ago."""
            time.sleep(SHORT_WAIT_S)
            with open(f"/proc/{worker}/schedstat", encoding="ascii") as file:
                waits.append((harness.read_status(worker)["State"][0], file.read().split()[2]))
            return waits[-1][0] == "D" and waits[-2:-1] == waits[-1:]

        harness.wait_for(is_stuck, "a wait")
        return worker

    def test_the_supervisor_is_killed_meanwhile(self):
        """The worker, which no other signal reaches, is not left behind with a thread that it holds."""
        target = self.start_locker()
        run = harness.start_attach(target, "-d", "200")
        run.wait_attached()
        self.count(target)
        worker = self.wait_until_stuck(run)
        run.signal(signal.SIGKILL)
        harness.wait_for(lambda: not harness.is_there(worker), "the worker's end", 30)
        run.communicate()
        for tid in harness.tids_of(target.pid):
            status = harness.read_status(target.pid, tid)
            self.assertEqual((status["TracerPid"], status["State"][0] in "RSD"), ("0", True))

    def test_the_worker_is_killed_after_a_wait(self):
        """It was anywhere, malloc(3) included: nobody goes on there, and the end is told."""
        target = self.start_locker()
        run = harness.start_attach(target, "-d", "200")
        run.wait_attached()
        self.count(target)
        worker = self.wait_until_stuck(run)
        time.sleep(2)  # the supervisor has seen that wait more than once
        self.end_server()
        run.wait_ticks(10)
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        run.communicate()
        if "sampling ends here" in run.stderr:
            self.skipTest("a thread was held meanwhile")  # the machine is very busy
        self.assertEqual(run.status, 128 + signal.SIGKILL, run.stderr)
        self.assertIn("the sampling process was killed by signal 9", run.stderr)

    def test_that_locks_the_memory_of_a_listed_one(self):
        """Nor does the agent wait for it, whose list has all processes."""
        target = self.start_fixture("locked_memory", self.program, self.stall)
        target.process.stdin.write(b"\n")
        harness.wait_for(lambda: self.is_locked(target.pid), "the lock")
        listed = subprocess.run(
            [harness.PROFILER, "agent", "--list", "--min-age=1ms", f"exe={harness.fixture('locked_memory')}"],
            capture_output=True, text=True, check=True, timeout=harness.RUN_TIMEOUT_S,
        ).stdout  # fmt: skip
        self.assertRegex(listed, rf"(?m)^no +{target.pid} .* its environment could not be read within a second$")

    def is_locked(self, pid):
        """Does who reads that process's memory wait?"""
        reader = subprocess.Popen(["cat", f"/proc/{pid}/cmdline"], stdout=subprocess.DEVNULL)
        self.addCleanup(reader.wait)
        self.addCleanup(self.end_server)
        try:
            return reader.wait(timeout=0.5) is None
        except subprocess.TimeoutExpired:
            return True

    def test_debug_file(self):
        """Only that lies there, behind a link."""
        directory = self.directory()
        hostile = shutil.copy(harness.fixture("hostile"), directory)
        os.symlink(self.program, os.path.join(directory, "x.debug"))
        code = os.path.join(directory, "code")
        with open(code, "wb") as file:
            file.write(link_to("x.debug"))
        target = self.start(hostile, "run", code)
        self.stop_answering()
        run = harness.start_attach(target, "-d", "0.3", env=NO_LEAKS)
        run.finish()
        self.assertLess(run.elapsed_s, 0.3 + MAX_LATE_S)
        self.assertIn("hello", {frame for stack in run.stacks() for frame in stack})


if __name__ == "__main__":
    harness.main()
