# SPDX-License-Identifier: MIT
"""What cannot be profiled, or not written, is refused with its own message; nothing hangs."""

import collections
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

import harness
from harness import STATUS_OUTPUT, STATUS_TARGET, STATUS_USAGE, Run
from terminal import run_in_terminal

NOBODY = 65534


def run_on(pid, *args, **run):
    """A run on a target that may be refused."""
    return Run(["-p", pid, "-d", "0.2", *args], target_pid=pid, **run)


def ignore_interrupt():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Targets(harness.TestCase):
    def refused(self, pid, pattern, **run):
        run = run_on(pid, **run).finish(expect=STATUS_TARGET)
        self.assert_message(run, pattern)
        self.assertFalse(run.stdout)
        return run

    def test_no_such_process(self):
        process = subprocess.Popen(["true"])
        process.wait()
        self.refused(process.pid, rf"(?i)no .*process.*\b{process.pid}\b")
        self.refused(2**31 - 1, r"(?i)no .*process")

    def test_hidden(self):
        """One that is there, but that /proc shows to root alone (hidepid)."""
        harness.need(os.geteuid() == 0, "needs root")
        mount = "mount -t proc -o hidepid=2 proc /proc || exit 77; exec setpriv --reuid 65534 --regid 65534 --clear-groups"
        program = os.path.join(self.directory(), "profiler")
        shutil.copy(harness.PROFILER, program)
        for args in (["dump", "1"], ["-p", "1"], ["top", "-p", "1", "--json"]):
            run = subprocess.run(
                [harness.find_tool("unshare"), "-m", "sh", "-c", f'{mount} "$@"', "sh", program, *args],
                text=True, capture_output=True, check=False)  # fmt: skip
            harness.need(run.returncode != 77, "/proc cannot be mounted here")
            self.assertEqual(run.returncode, STATUS_TARGET, run.stderr)
            self.assertIn("process 1 belongs to another user, and this /proc hides it (hidepid)", run.stderr)

    def test_no_proc(self):
        harness.need(os.geteuid() == 0, "needs root")
        unshare = harness.unshare("-m")
        script = 'umount -l /proc && exec "$0" -p 1'
        run = subprocess.run(
            [*unshare, "sh", "-c", script, harness.PROFILER], text=True, stderr=subprocess.PIPE
        )
        self.assertEqual(run.returncode, STATUS_TARGET, run.stderr)
        self.assertIn("profiler: /proc is not mounted here", run.stderr)

    def test_proc_of_another_namespace(self):
        """Its numbers are other processes, of which nothing may pass for the one that is meant: in a
        namespace below that of /proc, and in one above."""
        harness.need(os.geteuid() == 0, "needs root")
        unshare, program = harness.unshare("--pid", "--fork"), harness.fixture("calls-O2")
        attach = [harness.PROFILER, "-q", "-d", "0.1", "-o", "/dev/null", "-p"]
        script = '"$0" spin & "$@" $!; status=$?; kill $!; exit $status'
        self.refused_other_proc(*unshare, "sh", "-c", script, program, *attach)
        inner = self.start(*harness.unshare("--pid", "--fork", "--kill-child", "--mount-proc"), program, "spin")
        target = harness.children(inner.pid)[0]
        enter = [harness.find_tool("nsenter"), f"--mount=/proc/{target}/ns/mnt",
                 f"--root=/proc/{target}/root"]  # fmt: skip
        self.refused_other_proc(*enter, *attach, "1")

    def refused_other_proc(self, *command):
        run = subprocess.run(command, text=True, capture_output=True, check=False)
        self.assertIn("profiler: /proc shows another PID namespace", run.stderr)
        self.assertEqual(run.returncode, STATUS_TARGET, run.stderr)

    def test_kernel_thread(self):
        try:
            with open("/proc/2/comm", encoding="utf-8") as file:
                harness.need(file.read() == "kthreadd\n", "no kernel threads to be seen here")
        except FileNotFoundError:
            harness.skip("no kernel threads to be seen here")
        self.refused(2, r"2 \(kthreadd\) is a kernel thread")

    def test_zombie(self):
        process = subprocess.Popen(["true"])
        self.addCleanup(process.wait)
        harness.wait_for(
            lambda: harness.read_status(process.pid)["State"][0] == "Z", "the zombie"
        )
        self.refused(process.pid, rf"{process.pid} \(true\) is a zombie.*\b{os.getpid()}\b")

    def test_already_traced(self):
        target = self.start_fixture("calls-O2", "spin")
        tracer = self.start_fixture("tracer", target.pid)
        run = harness.attach(target)
        self.assertRegex(
            run.stderr,
            rf"{target.pid} \(calls-O2\) is traced by process {tracer.pid} \(tracer\).*; "
            r"to sample them always, end that one first\n",
        )
        self.assertRegex(
            run.stderr,
            r"\d+ samples? without a stack: the kernel denied the stop of a thread: "
            rf"process {tracer.pid} \(tracer\) traces it; end that one first\n",
        )
        self.assertEqual(run.summary.truncated, run.summary.samples)
        self.assertIn("never paused the target\n", run.stderr)

    def test_already_traced_and_asleep(self):
        target = self.start_fixture("threads", 4, 0)
        tracer = self.start_fixture("tracer", target.pid)
        run = harness.attach(target)
        self.assertRegex(run.stderr, rf"is traced by process {tracer.pid}")
        self.assertEqual((run.summary.truncated, run.summary.n_threads), (0, 5))

    def test_held_by_a_debugger(self):
        """At a breakpoint, say: it stands still, and is seen there."""
        target = self.start_fixture("threads", 3, 0)
        harness.wait_for(lambda: harness.read_status(target.pid)["State"][0] == "S", "its sleep")
        tracer = self.start_fixture("tracer", target.pid, "hold")
        run = harness.attach(target)
        self.assertRegex(run.stderr, rf"is traced by process {tracer.pid}")
        states = {(s.tid == target.pid, s.state) for s in run.pprof.samples}
        self.assertEqual(states, {(True, "stopped"), (False, "sleeping")})
        main_thread = run.stacks(run.summary.threads[0].name)
        self.assert_stacks(main_thread, rf"{harness.MAIN};wait_for_end.*", share=1)
        self.assertEqual(harness.read_status(target.pid)["TracerPid"], str(tracer.pid))

    def test_the_profiler_itself(self):
        run = Run(["-c", 'exec "$0" -p $$ -d 1', harness.PROFILER], profiler="sh")
        run.finish(expect=STATUS_TARGET)
        self.assertRegex(run.stderr, "^profiler: .*itself")

    def test_ends_at_any_moment(self):
        """The target ends before the first tick or in the middle of any step."""
        for i in range(30):
            target = subprocess.Popen(["sleep", str(i * 0.002)])
            run = run_on(target.pid, "-F", "5000", "-d", "1000")  # it would be taken for hung
            target.wait()
            run.finish(expect=None)
            if run.status == STATUS_TARGET:
                self.assertRegex(run.stderr, r"(?i)no .*process|has ended|zombie")
            else:
                self.assertEqual(run.status, 0, run.stderr)
                self.assertTrue(run.summary.has_totals)

    def test_threads_end_at_any_moment(self):
        for _ in range(3):
            target = self.start_fixture("churn", 200, 100)
            run = harness.start_attach(target, "-d", "1000", hz=5000)
            run.wait_attached()
            target.process.stdin.write(b"x")
            run.finish()
            self.assertGreater(run.summary.samples, 5)

    def test_killed_meanwhile(self):
        target = self.start_fixture("threads", 16, 4)
        run = harness.start_attach(target, "-d", "1000")
        run.wait_attached()
        run.wait_ticks(200)
        target.process.kill()
        run.finish()
        self.assertEqual(run.summary.n_threads, 17)
        # A tick takes a pause, and up to two for each of the four that spin.
        self.assertGreater(run.summary.samples, 17 * 200 / 10)


class Permissions(harness.TestCase):
    """EPERM is explained: by whom, and what to change."""

    # LeakSanitizer traces the process itself, which these surroundings forbid.
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}

    def setUp(self):
        harness.need(os.geteuid() == 0, "needs root to become somebody else")
        # Where everybody can run it.
        self.profiler = os.path.join(self.directory(), "profiler")
        shutil.copy(harness.PROFILER, self.profiler)
        os.chmod(self.profiler, 0o755)
        self.as_nobody = [
            harness.find_tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}",
            "--clear-groups", "--inh-caps=-all",
        ]  # fmt: skip

    def refused(self, pid, pattern, prefix):
        run = run_on(pid, profiler=self.profiler, prefix=prefix, env=self.env)
        run.finish(expect=STATUS_TARGET)
        self.assert_message(run, pattern)

    def test_other_user(self):
        target = self.start_fixture("calls-O2", "spin")
        self.refused(
            target.pid, rf"{target.pid} \(calls-O2\) belongs to root: run profiler as root \(sudo\)$",
            self.as_nobody,
        )  # fmt: skip

    def test_own_process_of_a_user(self):
        """No root is needed for a process of one's own."""
        program = os.path.join(self.directory(), "calls")
        shutil.copy(harness.fixture("calls-O2"), program)
        target = self.start(*self.as_nobody, program, "spin")
        run = harness.attach(target, profiler=self.profiler, prefix=self.as_nobody)
        self.assert_stacks(run.stacks(), r"_start;.*;main;many_arguments;.*;leaf_spin")

    def test_own_process_with_privileges(self):
        """Not dumpable: its file may not be read by the one who runs it."""
        program = os.path.join(self.directory(), "calls")
        shutil.copy(harness.fixture("calls-O2"), program)
        os.chmod(program, 0o711)
        target = self.start(program, "spin", user=NOBODY, group=NOBODY, extra_groups=[])
        self.refused(target.pid, r"\(calls\).*(?:dumpable|privileges).*root", self.as_nobody)

    def yama(self, scope, target, *prefix):
        """Surroundings where Yama seems to be at work."""
        script = (
            "mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && "
            f"echo {scope} > /proc/sys/kernel/yama/ptrace_scope && " + 'exec "$@"'
        )
        return [
            *harness.unshare("-m"), "sh", "-c", script, "sh",
            harness.fixture("no_ptrace"), str(target.pid), *prefix,
        ]  # fmt: skip

    def test_yama(self):
        target = self.start_fixture("calls-O2", "spin")
        for scope, pattern in (
            (1, r"Yama.*ptrace_scope.*sysctl.*kernel\.yama\.ptrace_scope=0"),
            (2, r"Yama.*ptrace_scope.*root"),
            (3, r"Yama.*boot.*ptrace_scope"),
        ):
            self.refused(target.pid, pattern, self.yama(scope, target))

    def test_container(self):
        target = self.start_fixture("calls-O2", "spin")
        self.refused(
            target.pid, r"(?i)seccomp.*--cap-add=SYS_PTRACE", [harness.fixture("no_ptrace"), "all"]
        )

    def test_container_wrapped(self):
        """The command is not half started where it cannot be traced."""
        directory = self.directory()
        mark = os.path.join(directory, "mark")
        run = Run(
            ["--", "touch", mark], profiler=self.profiler, env=self.env,
            prefix=[harness.fixture("no_ptrace"), "all"],
        ).finish(expect=STATUS_TARGET)  # fmt: skip
        self.assert_message(run, r"(?i)seccomp.*--cap-add=SYS_PTRACE")
        self.assertFalse(os.path.exists(mark))


class Outputs(harness.TestCase):
    """Unwritable output: said, before the target is touched where that can be known."""

    def setUp(self):
        self.target = self.start_fixture("calls-O2", "sleep")  # seen in the shortest of runs

    def refused(self, output, pattern, duration="0.2", **run):
        run = run_on(self.target.pid, "-o", output, "-d", duration, **run)
        run.finish(expect=STATUS_OUTPUT)
        self.assertEqual(len(run.summary.lines), 1, run.stderr)
        self.assertRegex(run.summary.lines[0], pattern)
        self.assertIn(output if output != "-" else "stdout", run.summary.lines[0])
        return run

    def test_directory(self):
        path = self.directory()
        self.refused(path, "directory", duration="1000")
        self.refused(path + "/", "directory")
        self.assertEqual(os.listdir(path), [])

    def test_missing_directory(self):
        self.refused("/no/such/directory/out.folded", "no such directory")
        self.refused("/dev/null/out.folded", "no such directory")

    def test_where_nothing_can_be_created(self):
        self.refused("/proc/out.folded", "no files can be created in /proc")

    def test_directory_made_anew(self):
        """By the command that is sampled, as a build does."""
        directory = os.path.join(self.directory(), "out")
        os.mkdir(directory)
        try:
            os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY))
        except OSError:
            harness.skip("no files without a name here: it goes with the directory")
        path = os.path.join(directory, "out.folded")
        Run(["-o", path, "--", "sh", "-c", f"rm -r {directory} && mkdir {directory}"]).finish()
        with open(path, encoding="utf-8") as file:
            self.assertRegex(file.read(), r" \d+\n")

    def test_refused_before_the_command_starts(self):
        mark = os.path.join(self.directory(), "mark")
        run = Run(["-o", "/no/such/directory/x", "--", "touch", mark])
        run.finish(expect=STATUS_OUTPUT)
        self.assertFalse(os.path.exists(mark))

    def failed(self, output, pattern, *args, **run):
        """The profile was taken, but could not be written; said last, and no file is left."""
        run = run_on(self.target.pid, "-o", output, *args, **run).finish(expect=STATUS_OUTPUT)
        self.assertRegex(run.summary.lines[-1], pattern)
        self.assertFalse([line for line in run.summary.lines if line.startswith("wrote")])
        return run

    def test_full_disk(self):
        for args in ([], ["-f", "pprof"]):
            self.failed("/dev/full", "/dev/full: .*space", *args)

    def test_full_disk_of_a_command(self):
        run = Run(["-o", "/dev/full", "--", "true"]).finish(expect=STATUS_OUTPUT)
        self.assertRegex(run.summary.lines[-1], "/dev/full: .*space")

    def test_full_file_system(self):
        harness.need(os.geteuid() == 0, "needs root to mount a small file system")
        directory = self.directory()
        script = 'mount -t tmpfs -o size=4k none "$1" && echo > "$1/fill" && shift && exec "$@"'
        prefix = [*harness.unshare("-m"), "sh", "-c", script, "sh", directory]
        self.failed(os.path.join(directory, "out.folded"), "space", prefix=prefix)

    def test_closed_pipe(self):
        for form in ("folded", "pprof"):
            reader, writer = os.pipe()
            os.close(reader)
            self.failed("-", "(?i)stdout: .*pipe", "-f", form, stdout=writer)
            os.close(writer)

    def test_closed_stdout(self):
        run = run_on(self.target.pid, prefix=["sh", "-c", 'exec "$@" >&-', "sh"])
        run.finish(expect=STATUS_OUTPUT)
        self.assertRegex(run.summary.lines[-1], "stdout: ")

    def test_file_size_limit(self):
        """SIGXFSZ does not kill it, and no half file is left."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

        for name in ("out.folded", "out.pb.gz"):
            self.failed(name, "(?i)too large|limit", preexec_fn=limit)

    def test_old_file_is_kept_until_the_end(self):
        """Never a half file under the name: the old one stands until the new one is whole."""
        directory = self.directory()
        path = os.path.join(directory, "out.folded")
        with open(path, "w", encoding="utf-8") as file:
            file.write("old\n")
        run = run_on(self.target.pid, "-o", path, "-d", "1000")
        run.wait_attached()
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old\n")
        for child in harness.children(run.process.pid):  # whoever samples, and whoever writes
            os.kill(child, signal.SIGKILL)
        run.process.communicate()
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old\n")
        run = run_on(self.target.pid, "-o", path).finish()
        with open(path, encoding="utf-8") as file:
            self.assertIn("leaf_sleep", file.read())

    def test_unwritable_directory(self):
        harness.need(os.geteuid() == 0, "needs root to become somebody else")
        profiler = os.path.join(self.directory(), "profiler")
        shutil.copy(harness.PROFILER, profiler)
        closed = self.directory()
        run = run_on(
            self.target.pid, "-o", os.path.join(closed, "out.folded"), profiler=profiler,
            prefix=[harness.find_tool("setpriv"), f"--reuid={NOBODY}", "--clear-groups"],
        ).finish(expect=STATUS_OUTPUT)  # fmt: skip
        self.assertRegex(run.summary.lines[-1], "permission")

    def test_named_pipe(self):
        """A pipe is written to as it is."""
        path = os.path.join(self.directory(), "pipe")
        os.mkfifo(path)
        reader = subprocess.Popen(["cat", path], stdout=subprocess.PIPE)
        run_on(self.target.pid, "-o", path).finish()
        data, _ = reader.communicate(timeout=harness.RUN_TIMEOUT_S)
        self.assertIn("leaf_sleep", str(harness.read_folded(data)))

    def assert_refuses_to_wait(self, run):
        """It ends by the signal that it has got."""
        run.communicate(timeout_s=harness.WAIT_TIMEOUT_S)
        self.assertEqual(run.status, STATUS_OUTPUT, run.stderr)
        self.assertRegex(run.stderr, "cannot (?:continue writing|write) .*: nobody read from it")

    def test_named_pipe_without_a_reader(self):
        path = os.path.join(self.directory(), "pipe")
        os.mkfifo(path)
        os.symlink(path, path + "-link")
        for name in (path, path + "-link"):
            self.check_pipe(name, signal.SIGTERM)
        # In the background of a script that is ignored; it ends sampling all the same.
        self.check_pipe(path, signal.SIGINT, preexec_fn=ignore_interrupt)

    def check_pipe(self, name, number, **how):
        run = run_on(self.target.pid, "-o", name, **how)
        harness.wait_for(run.worker_pid, "the worker")
        time.sleep(0.3)
        run.signal(number)
        self.assert_refuses_to_wait(run)

    def start_stalled(self, form):
        """A run whose reader has read nothing for long."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.set_blocking(writer, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(writer, bytes(4096))
        os.set_blocking(writer, True)
        run = run_on(self.target.pid, "-d", "1000", "-f", form, stdout=writer)
        os.close(writer)
        run.wait_attached()
        return run

    def test_reader_that_stalls(self):
        """The first signal ends the sampling, a later one the writing."""
        run = self.start_stalled("folded")
        worker, writer = harness.children(run.process.pid)
        run.signal(signal.SIGINT)
        harness.wait_for(lambda: worker not in harness.children(run.process.pid), "the end of sampling")
        # While it is pending, another one would be as one with it.
        harness.wait_for(
            lambda: not int(harness.read_status(writer)["ShdPnd"], 16) & 1 << signal.SIGINT - 1, "its writing"
        )
        run.signal(signal.SIGTERM)
        self.assert_refuses_to_wait(run)

    def test_reader_that_stalls_a_recording(self):
        """It is written all the time."""
        run = self.start_stalled("record")
        run.signal(signal.SIGINT)
        self.assert_refuses_to_wait(run)

    def test_terminal_gets_no_pprof(self):
        directory = self.directory()
        status, shown = run_in_terminal(
            ["-p", self.target.pid, "-d", "0.2", "-f", "pprof"], directory
        )
        self.assertEqual(status, STATUS_OUTPUT, shown)
        self.assertRegex(shown, "profiler: .*terminal")


class CommandLine(harness.TestCase):
    """A mistake gets one specific line."""

    def refused(self, pattern, *args):
        run = Run(list(args)).finish(expect=STATUS_USAGE)
        self.assert_message(run, pattern, status=STATUS_USAGE)
        self.assertFalse(run.stdout)

    def test_target(self):
        self.refused("nothing to profile.*-p PID.*command")
        self.refused("nothing to profile", "-d", "1")
        self.refused("-p 1 .*'true'.*", "-p", "1", "true")
        self.refused("-p 1 .*'true'.*", "--pid=1", "--", "true")

    # What else is refused: tests/unit/test_options.c.
    def test_values(self):
        self.refused("--pid: '12x'", "-p", "12x")
        self.refused("--format: 'svg'.*folded.*pprof", "-f", "svg", "-p", "1")
        self.refused("--thread: '\\('", "--thread=(", "-p", "1")
        for value in ("Running", "running,", ",running"):
            self.refused(f"--state: '{value}'", f"--state={value}", "-p", "1")
        self.refused("--state and --on-cpu", "--state=disk", "--on-cpu", "-p", "1")
        self.refused("--on-cpu and --off-cpu", "--on-cpu", "--off-cpu", "-p", "1")

    def test_unknown_options(self):
        self.refused("unknown option '-Z'", "-Z", "-p", "1")
        self.refused("--duration needs a value", "-p", "1", "-d")


class Mode32(harness.TestCase):
    """Programs for the processor's 32-bit mode run as they would, and their samples are counted."""

    def setUp(self):
        self.program = harness.fixture("mode32")
        status = subprocess.run([self.program], check=False).returncode
        harness.need(status == 7, "no 32-bit programs run here")

    def check(self, stacks, n_told):
        marked = stacks.pop(("[truncated: 32-bit program]",), 0)
        self.assertEqual(marked, n_told)
        # Until its exec it was a shell: where that and the dynamic linker begin may have no name.
        path = os.path.realpath(harness.find_tool("sh"))
        with open(path, "rb") as file:
            entry = struct.unpack_from("<Q", file.read(64), 24)[0]  # e_entry, elf(5)
        start = rf"_start|\[ld-linux[^;]+\]|\[{re.escape(os.path.basename(path))}\+{entry:#x}\]"
        shell = rf"(?:{start})(?:;.*)?|(?:[^;]+;){{1,2}}__libc_start_main;.*"
        self.assert_stacks(stacks, rf"{shell}|\[truncated: stack not available\]", share=1)

    def test_wrapped(self):
        """It runs unprofiled, and its exit status is its own."""
        run = Run(["-o", "out.folded", "--", self.program]).finish(expect=7)
        self.assert_message(run, r"\(mode32\) is a 32-bit program.*: it runs unprofiled$", status=7)
        self.assertEqual(os.path.exists(run.path), False)

    def test_attached(self):
        process = subprocess.Popen([self.program, "forever"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        run = run_on(process.pid).finish(expect=STATUS_TARGET)
        self.assert_message(run, r"\(mode32\) is a 32-bit program: only .* can be profiled$")
        self.assertIsNone(process.poll())

    def test_executed(self):
        """The target becomes one."""
        run = harness.wrap(["sh", "-c", f"exec {self.program}"], expect=7)
        # Its second has 251 ticks, however long the shell takes; its clock shows hundredths.
        n_lost = run.summary.missed + run.summary.thinned
        self.assertGreater(run.summary.truncated_by["32-bit program"], 0.98 * 251 - 2 - n_lost)
        self.check(run.stacks(), run.summary.truncated_by["32-bit program"])

    def test_not_stopped(self):
        """A stop would show nothing, and cut its calls short."""
        command = ["sh", "-c", f"exec {self.program} sends"]
        run = harness.wrap(command, "-F", "997", "--max-overhead=0", expect=7)
        self.assertGreater(run.summary.truncated_by["32-bit program"], 0)

    def test_executes_another(self):
        """That one is for the processor's usual mode, and sampled again."""
        loop = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; exit 5"
        script = f"exec {self.program} executes /bin/sh -c '{loop}'"
        run = harness.wrap(["sh", "-c", script], expect=5)
        self.assertGreater(run.summary.truncated_by["32-bit program"], 0)
        self.assertGreater(run.summary.samples - run.summary.truncated, 20)

    def test_children(self):
        """Found before their exec, or refused."""
        script = f"{self.program} & {self.program} & wait; exit 3"
        run = harness.wrap(["sh", "-c", script], "--children", expect=3)
        refused = re.search(r"(\d+) child process(?:es)? could not be sampled: each is a 32-bit", run.stderr)
        self.assertLessEqual(int(refused[1]) if refused else 0, 2)
        told = run.summary.truncated_by.get("32-bit program", 0)
        self.assertTrue(told or refused, run.stderr)
        counts = collections.Counter()
        for sample in run.pprof.samples:
            counts[sample.stack[1:]] += sample.count  # below the process
        self.check(counts, told)


if __name__ == "__main__":
    harness.main()
