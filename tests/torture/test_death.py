# SPDX-License-Identifier: MIT
"""Whatever happens to the profiler, the target runs on as if nothing had been.

The target moves data through pipes and sockets and checks all that arrives. A SIGKILL of the process
that was started does nothing to it; what one of its worker may do is told in man/profiler-promises.7.scd.
"""

import concurrent.futures
import contextlib
import errno
import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time

import rests
import torture
from torture import ALL_MODES, ALL_TICKS, LONG, MODES, describe, harness, rounds, tried

import pprof  # noqa: E402  (torture makes it found)

N_INSTANTS = 500 if LONG else 100
# Of the 16 streams of data, those that a SIGKILL of the worker may hit just when a call of theirs
# goes on with its rest (man/profiler-promises.7.scd): usually one or none.
MAX_DISTURBED = 6
INSTANTS_OF_A_TARGET = 20
STRIKES = [
    (("supervisor",), signal.SIGKILL),
    (("worker",), signal.SIGKILL),
    (("supervisor", "worker"), signal.SIGKILL),
    (("supervisor",), signal.SIGSTOP),
    (("worker",), signal.SIGSTOP),
    (("supervisor",), signal.SIGHUP),
]


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def find_worker(run):
    return harness.wait_for(run.worker_pid, "the worker")


def kill(run, pids):
    for pid in pids:
        send(pid, signal.SIGKILL)
    run.process.wait()
    run.process.stdout.close()
    run.process.stderr.close()


class Deaths(torture.TestCase):
    def test_at_random_instants(self):
        """On as many targets at a time as there are CPUs: most of it is waiting."""
        n = os.cpu_count() or 1
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            list(pool.map(self.strike_often, [range(i * N_INSTANTS // n, (i + 1) * N_INSTANTS // n) for i in range(n)]))

    def strike_often(self, instants):
        target = None
        for i in instants:
            if not target or i % INSTANTS_OF_A_TARGET == 0:  # none outlives its alarm
                if target:
                    target.end()
                target = self.start_program("calls-O2", "data", 3600)
            victims, number = STRIKES[i % len(STRIKES)]
            hz, more = ALL_MODES[1 if i % 5 else 3]
            try:
                self.strike(target, victims, number, hz, more)
            except AssertionError as error:
                raise AssertionError(f"{number.name} to {victims}, {describe(hz, more)}: {error}") from None

    def strike(self, target, victims, number, hz, more):
        run = harness.start_attach(target, ALL_TICKS, *more, hz=hz)
        pids = {"supervisor": run.process.pid}
        try:
            pids["worker"] = find_worker(run)
            torture.pause(random.uniform(0, 0.06))
            for victim in victims:
                send(pids[victim], number)
            if number == signal.SIGSTOP:
                torture.pause(0.01)
                self.assert_not_held(target.pid)
            else:
                self.assert_untouched(target.pid)
        finally:
            kill(run, pids.values())
        self.assert_untouched(target.pid)

    def assert_not_held(self, pid):
        """No thread stays stopped: a profiler that is stopped itself holds nobody."""
        for tid in harness.tids_of(pid):
            harness.wait_for(
                lambda t=tid: (harness.read_status(pid, t) or {"State": "S"})["State"][0]
                not in "tT",
                f"thread {tid} to run",
            )

    def kill_often(self, whom, n):
        """What the target says that moves data meanwhile, of those that were disturbed."""
        target = self.start_program("calls-O2", "data", 0.2 * n)
        for i in range(n):
            hz, more = ALL_MODES[i % 4]
            run = harness.start_attach(target, ALL_TICKS, *more, hz=hz)
            harness.wait_for(lambda r=run: r.worker_pid() or r.process.poll() is not None, "it")
            pids = {"supervisor": run.process.pid, "worker": run.worker_pid()}
            torture.pause(random.uniform(0.005, 0.06))
            kill(run, [pids[whom] or run.process.pid])  # the target has ended: too late
        told = torture.parse(target.rest())
        return [one for one in told.values() if one.faults]

    def test_supervisor_killed(self):
        """Whoever kills the profiler kills the process that was started."""
        self.assertEqual(self.kill_often("supervisor", rounds(12)), [])

    def test_worker_killed(self):
        disturbed = self.kill_often("worker", 12)
        self.assertLessEqual(len(disturbed), MAX_DISTURBED, disturbed)

    def test_worker_killed_at_a_signal(self):
        """In the very instant in which it has heard of a thread that stopped at a signal: the signal
        comes all the same."""
        preloaded = {
            **os.environ,
            "LD_PRELOAD": harness.fixture("die_at_signal.so"),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
        }
        n_killed = 0
        for _ in range(10):  # the profiler may begin so slowly that the target has ended
            target = self.start_program("signals", "queue", 2)
            while target.process.poll() is None:
                run = harness.start_attach(
                    target, ALL_TICKS, "--stop-all", "-d", "0.5", hz=1000, env=preloaded
                )
                run.communicate()
                n_killed += run.status == 128 + signal.SIGKILL
            self.assert_no_faults(torture.parse(target.rest()))
            if n_killed:
                break
        self.assertGreater(n_killed, 0)


class Profiles(torture.TestCase):
    """Whatever kills the process that samples: what it has sampled is written, in each format."""

    FORMS = [("-o", "out.pb.gz"), ("-o", "-"), ("-o", "out.html"), ("-f", "speedscope", "-o", "out.json")]

    @tried
    def test_worker_killed_at_random_instants(self):
        target = self.start_program("calls-O2", "data", 3600)
        missing_s = [self.kill_one(target, i) for i in range(rounds(16))]
        # A worker that gets no CPU tells nothing.
        told_s = sorted(one for one in missing_s if one is not None)
        self.assertLessEqual(told_s[len(told_s) // 2], 0.15, told_s)

    def kill_one(self, target, i):
        """For how long before its end nothing is in the profile; None: this format does not tell."""
        hz, more = ALL_MODES[i // 4 % 4]
        run = harness.Run(
            ["-p", target.pid, "-F", hz, *self.FORMS[i % 4], ALL_TICKS, *more], target_pid=target.pid
        )
        run.wait_attached()
        torture.pause(random.uniform(0, 0.3))
        killed_s = time.time()
        send(run.worker_pid(), signal.SIGKILL)
        if i % 4 < 2:
            run.finish(expect=128 + signal.SIGKILL)  # the books are balanced
        else:
            run.communicate()
            self.assertGreater(os.path.getsize(os.path.join(run.directory, self.FORMS[i % 4][-1])), 0)
        self.assert_untouched(target.pid)
        self.assertRegex(run.stderr, "killed by signal 9 .*\n(?s:.*)profiler: wrote ")
        self.assertGreater(harness.Summary(run.stderr).samples, 0, run.stderr)
        return run.pprof and killed_s - (run.pprof.time_ns + run.pprof.duration_ns) / 1e9

    def test_worker_of_windows_killed(self):
        """The window at hand is written, and all are what was sampled."""
        target = self.start_program("calls-O2", "data", 3600)
        for every in ("100ms", "1h"):
            where = self.directory()
            run = harness.Run(["-p", target.pid, f"--every={every}", "-o", where, ALL_TICKS], target_pid=target.pid)
            run.wait_attached()
            torture.pause(random.uniform(0, 0.5))
            send(run.worker_pid(), signal.SIGKILL)
            run.communicate()
            self.assert_untouched(target.pid)
            self.assertIn("the target keeps running", run.stderr)
            counts = []
            for name in os.listdir(where):
                with open(os.path.join(where, name), "rb") as file:
                    counts.append(sum(sample.count for sample in pprof.Profile(file.read()).samples))
            self.assertGreater(len(counts), 0)
            self.assertEqual(sum(counts), harness.Summary(run.stderr).samples)

    def test_worker_of_a_command_killed(self):
        """The command goes on by itself."""
        run = harness.start_wrap([harness.fixture("calls-static"), "spin"], stdin=subprocess.PIPE)
        run.wait_attached()
        command = run.command_pid()
        self.addCleanup(send, command, signal.SIGKILL)
        send(run.worker_pid(), signal.SIGKILL)
        harness.wait_for(lambda: os.path.exists(os.path.join(run.directory, "out.pb.gz")), "the profile")
        self.assert_untouched(command)
        send(command, signal.SIGKILL)
        run.finish(expect=128 + signal.SIGKILL)
        self.assertGreater(sum(run.stacks().values()), 0)

    def test_supervisor_killed(self):
        """Those that it leaves behind write the profile."""
        target = self.start_program("calls-O2", "data", 3600)
        run = harness.start_attach(target, ALL_TICKS)
        run.wait_attached()
        run.signal(signal.SIGKILL)
        run.communicate()
        self.assert_untouched(target.pid)
        self.assertGreater(os.path.getsize(os.path.join(run.directory, "out.pb.gz")), 0)


class GroupCase(torture.TestCase):
    """Has processes in a control group of their own, as a container's and a service's are."""

    def make_group(self):
        """A control group of its own, with a limit: the directory and the limit's file."""
        harness.need(os.geteuid() == 0, "needs root to make a control group")
        for base, name in (
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"),
        ):  # fmt: skip
            group = os.path.join(base, f"profiler-test-{os.getpid()}")
            try:
                os.mkdir(group)
            except OSError:
                continue
            self.addCleanup(self.remove_group, group)
            if os.path.exists(os.path.join(group, name)):
                return group, os.path.join(group, name)
        return harness.skip("no control groups for memory can be made here")

    def join(self, group):
        """What goes before a command that is to be in the group."""
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', group]

    def processes_in(self, group):
        with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as file:
            return [int(line) for line in file]

    def remove_group(self, group):
        """As soon as the last process in it has ended."""
        harness.wait_for(lambda: not self.processes_in(group), "the group to be empty")
        os.rmdir(group)


class Rests(rests.RestCase, GroupCase):
    """A call that a stop has cut goes on after the profile's end: the program is told what it has
    come to as a whole, whatever happens then."""

    def test_goes_on(self):
        pid = self.start_rest()
        self.assertTrue(self.is_traced())
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        self.assertEqual(self.written(), 64 << 20)
        self.assertEqual(self.n_read, 64 << 20)
        harness.wait_for(lambda: self.is_gone(pid), "the end of it")

    def end_it(self, number):
        """It is told to end, or is killed: what was written is what was read."""
        pid = self.start_rest()
        pids = [pid, *harness.children(pid)]
        send(pid, number)
        harness.wait_for(lambda: all(map(self.is_gone, pids)), "the end of it and its watcher")
        harness.wait_for(lambda: not self.is_traced(), "the target to be let go")
        self.assertEqual(self.written(), self.n_read)
        self.assertLess(self.n_read, 64 << 20)

    def workers(self, pid):
        """Those that sample, of a profiler that has processes between."""
        found = []
        for child in harness.children(pid):
            name = (harness.read_status(child) or {"Name": ""})["Name"]
            found += [child] if name == "profiler-worker" else self.workers(child)
        return found

    def go_on_after(self, *command, window=False):
        """A profiler of another kind. `window`: what it does ends before it does."""
        for _ in range(rests.CUT_TRIES):
            with subprocess.Popen(
                [harness.PROFILER, *command], cwd=self.directory(), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            ) as profiler:  # fmt: skip
                worker = harness.wait_for(lambda p=profiler: self.workers(p.pid), "it")[0]
                self.read_slowly()
                if not window:
                    profiler.send_signal(signal.SIGTERM)
                harness.wait_for(lambda w=worker: self.has_finished(w), "the profile")
                stays = self.is_traced()
                written = self.written()
                profiler.send_signal(signal.SIGTERM)
            self.assertEqual((written, self.n_read), (64 << 20, 64 << 20))
            if stays:
                return
            self.target = self.start_writer(self.target.process.args[0])
            command = (*command[:-1], str(self.target.pid)) if not window else command
        raise AssertionError("no call was cut")

    def has_finished(self, worker):
        """It has ended, or stays for the call alone."""
        return self.is_gone(worker) or harness.read_links(f"/proc/{worker}/fd") <= {"/dev/null"}

    def test_goes_on_after_windows(self):
        self.go_on_after("-F", "1000", ALL_TICKS, "--every=300ms", "-c", "-o", "windows/",
                         "-p", str(self.target.pid))  # fmt: skip

    def test_goes_on_after_top(self):
        self.go_on_after("top", "-F", "1000", ALL_TICKS, "--json", str(self.target.pid))

    def test_goes_on_after_a_window_of_the_agent(self):
        directory = self.directory()
        program = shutil.copy(torture.program("life"), os.path.join(directory, "writer"))
        self.target = self.start_writer(program)
        self.go_on_after(
            "agent", "-F", "1000", ALL_TICKS, "--push=http://127.0.0.1:9/", "--min-age=1ms",
            "--window=1s", "--period=2s", "--max-cpu=0", f"--off-file={directory}/off",
            "-o", f"{directory}/spool", f"exe={program}", window=True,
        )  # fmt: skip

    def end_container(self, program, *command):
        """With its first process ends a container or service: what is left there is killed."""
        group, _ = self.make_group()
        for _ in range(rests.CUT_TRIES):
            self.target = self.start_writer(program)
            with subprocess.Popen(
                [*self.join(group), harness.PROFILER, *(str(a or self.target.pid) for a in command)],
                cwd=self.directory(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True,
            ) as profiler:  # fmt: skip
                harness.wait_for(lambda p=profiler: self.workers(p.pid), "it")
                self.read_slowly()
                was_cut = self.is_traced()
                profiler.send_signal(signal.SIGTERM)
                profiler.wait()
                for pid in reversed(self.processes_in(group)):  # the watcher before the watched
                    send(pid, signal.SIGKILL)
                told = profiler.stderr.read()
            self.assert_untouched(self.target.pid)
            self.assertEqual(self.written(), self.n_read, told)
            self.target.end()
            if was_cut:
                return
        raise AssertionError("no call was cut")

    def test_end_of_the_agents_container(self):
        directory = self.directory()
        program = shutil.copy(torture.program("life"), os.path.join(directory, "writer"))
        self.end_container(
            program, "agent", "-F", "1000", ALL_TICKS, "--push=http://127.0.0.1:9/", "--min-age=1ms",
            "--window=3s", "--period=4s", "--max-cpu=0", f"--off-file={directory}/off",
            "-o", f"{directory}/spool", f"exe={program}",
        )  # fmt: skip

    def test_end_of_tops_container(self):
        self.end_container(torture.program("life"), "top", "-F", "1000", ALL_TICKS, "--json", None)

    def test_told_to_end(self):
        self.end_it(signal.SIGTERM)

    def test_killed(self):
        self.end_it(signal.SIGKILL)

    def run_into_messages(self):
        """The process that stays for a call that receives messages, and how many were sent."""
        for _ in range(rests.CUT_TRIES):
            sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            fd = receiver.fileno()
            self.addCleanup(sender.close)
            self.target = self.start(torture.program("life"), "receive", fd, pass_fds=[fd])
            receiver.close()
            run = harness.start_attach(self.target, ALL_TICKS, "-d", "600", hz=1000)
            run.wait_attached()
            n_sent = n_looks = 0
            while n_looks < 20 and n_sent < 1000:
                n_looks = n_looks + 1 if self.is_traced() else 0
                n_sent += n_looks == 0 and sender.send(b"m")
                torture.pause(0.002 if n_looks else 0)
            run.signal(signal.SIGTERM)
            run.finish()
            if run.stays:
                sender.send(b"m")  # the part that waits keeps an error only if it has one
                torture.pause(0.01)
                return run.stays, n_sent + 1
            self.target.end()
        raise AssertionError("no call was cut")

    def test_told_to_end_at_messages(self):
        """What a part has kept for the next call on the socket is taken back."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number):
                pid, n_sent = self.run_into_messages()
                send(pid, number)
                told = self.target.rest()[0].split()
                self.assertEqual(told, ["receive", str(n_sent), "0"])

    def test_stopped(self):
        """Whoever watches it lets it go on: a stop of it is a stop of the call's thread."""
        pid = self.start_rest()
        send(pid, signal.SIGSTOP)
        self.assertEqual((self.written(), self.n_read), (64 << 20, 64 << 20))
        harness.wait_for(lambda: self.is_gone(pid), "the end of it")

    def test_watcher_stopped(self):
        """It lets its watcher go on, too: nobody stays when the call has ended."""
        pid = self.start_rest()
        pids = [pid, *harness.children(pid)]
        self.assertEqual(len(pids), 2)
        send(pids[1], signal.SIGSTOP)
        self.assertEqual((self.written(), self.n_read), (64 << 20, 64 << 20))
        harness.wait_for(lambda: all(map(self.is_gone, pids)), "the end of both")

    def test_nobody_takes_the_message(self):
        """That it stays is said to a stderr that is full: it sees to the call all the same."""
        for _ in range(rests.CUT_TRIES):
            reader, stderr = os.pipe()
            os.set_blocking(stderr, False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(stderr, bytes(4096))
            os.set_blocking(stderr, True)
            with subprocess.Popen(
                [harness.PROFILER, "-q", "-F", "1000", ALL_TICKS, "-o", "/dev/null", "-p",
                 str(self.target.pid)], stderr=stderr,
            ) as profiler:  # fmt: skip
                os.close(stderr)
                harness.wait_for(lambda p=profiler: self.workers(p.pid), "it")
                self.read_slowly()
                profiler.send_signal(signal.SIGTERM)
                torture.pause(1.5)  # it waits for those that are to stop, and writes the profile
                was_cut = self.is_traced()
                self.assertEqual((self.written(), self.n_read), (64 << 20, 64 << 20))
                self.assertEqual(profiler.wait(), 0)
            os.close(reader)
            if was_cut:
                return
            self.target = self.start_writer(self.target.process.args[0])
        raise AssertionError("no call was cut")

    def test_exec_by_another_thread(self):
        """It ends the call's thread, of which no signal may tell: nobody stays for that for ever."""
        script = (
            "import os, sys, threading\n"
            "def execute(): sys.stdin.read(1); os.execv('/bin/true', ['true'])\n"
            "threading.Thread(target=execute).start()\n"
            "print('ready', flush=True)\n"
            "os.write(int(sys.argv[1]), bytes(64 << 20))\n"
        )
        stayed = []
        for _ in range(rounds(8)):
            self.reader, writer = os.pipe()
            self.n_read = 0
            self.target = self.start(sys.executable, "-c", script, writer, pass_fds=[writer],
                                     stdin=subprocess.PIPE)  # fmt: skip
            os.close(writer)
            run = self.run_into_rest()
            self.target.process.stdin.write(b"x")
            self.target.process.stdin.close()
            self.target.process.wait()
            os.close(self.reader)
            stayed += [run.stays] if run.stays else []
        self.assertTrue(stayed, "no call was cut")
        harness.wait_for(lambda: all(map(self.is_gone, stayed)), "the end of all that stayed")


class OutOfMemory(GroupCase):
    """The kernel ends the profiler, or part of it, where it needs more memory than there is."""

    def set_limit(self, path, n_bytes):
        """False while the group has more, as processes that were killed may have for a moment."""
        try:
            with open(path, "w", encoding="ascii") as file:
                file.write(str(n_bytes))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
        return True

    def test_killed_for_memory(self):
        group, limit = self.make_group()
        target = self.start_program("calls-O2", "data", 3600)
        n_killed = 0
        for i in range(rounds(8)):
            n_bytes = random.randrange(1 << 20, 4 << 20)
            harness.wait_for(lambda n=n_bytes: self.set_limit(limit, n), "memory to be given back")
            hz, more = ALL_MODES[i % 4]
            run = harness.start_attach(target, ALL_TICKS, *more, "-d", "0.3", hz=hz, prefix=self.join(group))
            run.communicate()
            n_killed += run.status in (-signal.SIGKILL, 128 + signal.SIGKILL)
            self.assert_untouched(target.pid)
        self.assertGreater(n_killed, 0)


class Terminals(torture.TestCase):
    def start_in_terminal(self, args, **run):
        """A run in a session of its own with a terminal, whose other end is returned as well."""
        master, slave = os.openpty()
        run = harness.Run(
            args, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **run,
        )  # fmt: skip
        os.close(slave)
        return run, master

    def test_closed(self):
        """The profile is written, and the target runs on."""
        target = self.start_program("calls-O2", "data", 3600)
        for hz, more in MODES:
            run, terminal = self.start_in_terminal(
                ["-p", target.pid, "-F", hz, "-o", "out.pb.gz", ALL_TICKS, *more],
                target_pid=target.pid,
            )
            run.wait_attached()
            os.close(terminal)
            run.finish()
            self.assertGreater(sum(run.stacks().values()), 0)
            self.assert_untouched(target.pid)

    def test_closed_for_a_command(self):
        """The command has the same end as alone; what was sampled until then is written."""
        run, terminal = self.start_in_terminal(
            ["-o", "out.pb.gz", "--", harness.fixture("calls-static"), "spin"]
        )
        run.wait_attached()
        said = b""
        while b"ready" not in said:  # who writes to a terminal that is closed is told so first
            said += os.read(terminal, 1000)
        os.close(terminal)
        run.finish(expect=128 + signal.SIGHUP)
        self.assertGreater(sum(run.stacks().values()), 0)


if __name__ == "__main__":
    torture.main()
