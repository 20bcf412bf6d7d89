# SPDX-License-Identifier: MIT
"""What the profiler may do, and leaves behind: as root, as an ordinary user, across namespaces."""

import contextlib
import glob
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time

import elf_maker
import harness
from elf_maker import CODE, STT_FUNC_GLOBAL
from harness import Run
from test_hostile import NO_LEAKS, TestCase

NOBODY = 65534


class Output(TestCase):
    """No file but the one that was asked for."""

    def test_killed(self):
        directory = self.directory()
        harness.need(self.has_nameless_files(directory), "no files without a name here")
        target = self.start_fixture("calls-O2", "spin")
        for i in range(8):
            run = harness.start_attach(target, "-d", "0.3", form="folded", cwd=directory)
            run.wait_attached()
            time.sleep(i * 0.05)
            worker = run.worker_pid()
            if worker:
                with contextlib.suppress(ProcessLookupError):  # it may end by itself meanwhile
                    os.kill(worker, signal.SIGKILL)
            run.process.kill()
            run.process.communicate()
            self.assertLessEqual(set(os.listdir(directory)), {"out.folded"})

    def has_nameless_files(self, directory):
        try:
            os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY))
        except OSError:
            return False
        return True

    def test_umask(self):
        for mask, form in ((0o077, "folded"), (0o027, "pprof"), (0, "folded")):
            directory = self.directory()
            target = self.start_fixture("calls-O2", "spin")
            run = harness.start_attach(
                target, "-d", "0.1", form=form, cwd=directory, preexec_fn=lambda m=mask: os.umask(m)
            )
            run.communicate()
            self.assertEqual(run.status, 0, run.stderr)
            (name,) = os.listdir(directory)
            mode = os.stat(os.path.join(directory, name)).st_mode
            self.assertEqual(mode & 0o777, 0o666 & ~mask)
            target.end()

    def test_link_in_a_shared_directory(self):
        """Neither for the file nor on the way to it."""
        harness.need(os.geteuid() == 0, "needs root to leave a link of somebody else's")
        shared, own = self.directory(), self.directory()
        os.chmod(shared, 0o1777)
        precious = self.write("precious", b"old", own)
        for name, aim in (("file", precious), ("way", own)):
            os.symlink(aim, os.path.join(shared, name))
            os.chown(os.path.join(shared, name), NOBODY, NOBODY, follow_symlinks=False)
        target = self.start_fixture("calls-O2", "spin")
        for path in ("file", "way/precious", "way/new"):
            run = Run(["-p", target.pid, "-d", "0.1", "-o", os.path.join(shared, path)])
            run.communicate()
            self.assertEqual(run.status, harness.STATUS_OUTPUT, run.stderr)
            self.assertRegex(run.stderr, "link that another user left")
        with open(precious, "rb") as file:
            self.assertEqual(file.read(), b"old")
        self.assertEqual(os.listdir(own), ["precious"])


    def test_link_to_a_spool(self):
        """Nothing is sent, or removed, by way of another user's link."""
        harness.need(os.geteuid() == 0, "needs root to leave a link of somebody else's")
        shared, own = self.directory(), self.directory()
        os.chmod(shared, 0o1777)
        self.write("own.pb.gz", b"no profile, which would be dropped", own)
        link = os.path.join(shared, "spool")
        os.symlink(own, link)
        os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
        target = self.start_fixture("calls-O2", "spin")
        push = "--push=http://127.0.0.1:9"
        for args in (["-p", target.pid, push], ["-p", target.pid, "--every=1s"], ["agent", push, "comm=none"]):
            run = Run([*args, "-o", link])
            run.communicate()
            self.assertEqual(run.status, harness.STATUS_OUTPUT, run.stderr)
            self.assertRegex(run.stderr, "link that another user left")
        self.assertEqual(os.listdir(own), ["own.pb.gz"])


class Surroundings(TestCase):
    def test_other_namespaces(self):
        """Another root, other pids, another user: the files are the target's own."""
        harness.need(os.geteuid() == 0, "needs root to make namespaces")
        root = self.directory()
        static = harness.fixture("calls-static")
        shutil.copy(static, os.path.join(root, "program"))
        # A trap: the same path outside is another file.
        os.makedirs(os.path.join(root, "tmp"))
        unshare = harness.unshare("--user", "--map-root-user", "--pid", "--mount", "--fork", "--kill-child")
        target = harness.Target([*unshare, f"--root={root}", "/program", "spin"])
        self.addCleanup(target.end)
        (pid,) = harness.wait_for(lambda: harness.children(target.pid), "the program")
        harness.wait_for_work(pid)
        run = self.profile(pid)
        self.assert_stacks(run.stacks(), r"_start;.*main;many_arguments;.*leaf_spin")

    def start_unshared(self, program, prefix=()):
        """On a file system, in a process table and as a root that are its own."""
        unshare = harness.unshare("--user", "--map-root-user", "--pid", "--mount", "--mount-proc", "--fork",
                                  "--kill-child")  # fmt: skip
        script = 'mount -t tmpfs none "$0" && cp "$1" "$0/program" && exec "$0/program" spin'
        target = harness.Target(
            [*prefix, *unshare, "sh", "-c", script, "/mnt", program],
        )  # fmt: skip
        self.addCleanup(target.end)
        (pid,) = harness.wait_for(lambda: harness.children(target.pid), "the program")
        harness.wait_for_work(pid)
        return pid

    def test_file_of_another_namespace(self):
        """That nobody else can see: it is read nonetheless."""
        harness.need(os.geteuid() == 0, "needs root to make namespaces")
        pid = self.start_unshared(harness.fixture("calls-O2"))
        self.assertFalse(os.path.exists("/mnt/program"))
        run = self.profile(pid)
        self.assert_stacks(run.stacks(), r"_start;.*main;many_arguments;.*leaf_spin")
        self.assertFalse(run.unreadable)

    def test_own_namespace(self):
        """Of an ordinary user's making."""
        directory, setpriv = self.as_nobody()
        program = shutil.copy(harness.fixture("calls-O2"), directory)
        try:
            pid = self.start_unshared(program, setpriv)
        except AssertionError:
            harness.skip("ordinary users may make no namespaces here")
        run = self.profile(pid, profiler=os.path.join(directory, "profiler"), prefix=setpriv)
        self.assert_stacks(run.stacks(), r"_start;.*main;many_arguments;.*leaf_spin")

    def as_nobody(self):
        harness.need(os.geteuid() == 0, "needs root to become somebody else")
        directory = self.directory()
        os.chown(directory, NOBODY, NOBODY)
        for source in (harness.PROFILER, harness.fixture("hostile")):
            copy = shutil.copy(source, directory)
            os.chmod(copy, 0o755)
        setpriv = [
            harness.find_tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}",
            "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs",
        ]  # fmt: skip
        return directory, setpriv

    def test_ordinary_user(self):
        """All of it without privileges: attached, wrapped, with children, with odd files."""
        directory, setpriv = self.as_nobody()
        hostile = os.path.join(directory, "hostile")
        more = {"profiler": os.path.join(directory, "profiler"), "prefix": setpriv}
        for name in (b"new\nline", b"plain"):
            path = os.path.join(os.fsencode(directory), name)
            with open(path, "wb") as file:
                file.write(elf_maker.make(symbols=[(b"hello", STT_FUNC_GLOBAL, CODE, 64)]))
            target = harness.Target([*setpriv, hostile, "run", path])
            self.addCleanup(target.end)
            self.assertEqual(self.leaves(self.profile(target, **more)), {"hello"}, name)
        # The very file is gone: what is left is said to be.
        os.unlink(path)
        run = self.profile(target, **more)
        self.assertEqual(self.leaves(run), {f"[plain+0x{CODE:x}]"})
        self.assertRegex(str(run.unreadable), "plain.*deleted.*only root")
        command = ["sh", "-c", f"{hostile} stuck >&2 & read end; kill $!"]
        run = harness.start_wrap(
            command, "--children", env=NO_LEAKS, stdin=subprocess.PIPE, **more
        )  # fmt: skip
        run.wait_attached()
        shell = run.command_pid()
        (child,) = harness.wait_for(lambda: harness.children(shell), "the child")
        harness.wait_for_work(child)
        run.wait_ticks(100)
        run.finish(stdin=b"\n")
        self.assertIn("stuck", self.leaves(run))

    def start_dumps(self, target, *args):
        """A run of several dumps, the first of which has been read."""
        process = subprocess.Popen([harness.PROFILER, "dump", str(target.pid), "--json", *args],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.assertEqual(json.loads(process.stdout.readline())["pid"], target.pid)
        return process

    def test_ends_with_its_reader_and_its_target(self):
        """Nobody is looked at for nobody, nor is what comes after the end waited for."""
        target = self.start_fixture("threads", 2, 1)
        process = self.start_dumps(target, "-n", "10000", "--interval=50ms")
        process.stdout.close()
        self.assertEqual(process.wait(harness.RUN_TIMEOUT_S), harness.STATUS_UNREAD)
        process = self.start_dumps(target, "-n", "2", "--interval=1h")
        target.end()
        self.assertEqual(process.wait(harness.RUN_TIMEOUT_S), 0)

    def test_dumped_before_a_refusal(self):
        """Of several dumps those stay that were made before the process closed itself to its user."""
        directory, setpriv = self.as_nobody()
        program = (
            "import ctypes, sys, time\nprint('ready', flush=True)\nsys.stdin.readline()\n"
            "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\ntime.sleep(1000)"  # PR_SET_DUMPABLE
        )
        target = self.start(*setpriv, sys.executable, "-c", program)
        path = os.path.join(directory, "dumps")
        args = ["dump", target.pid, "-n", "10000", "--interval=50ms", "--json", "-o", path]
        run = Run(args, profiler=os.path.join(directory, "profiler"), prefix=setpriv)

        def has_written():
            """The file has no name before it is whole."""
            for link in glob.glob(f"/proc/{run.worker_pid()}/fd/*"):
                status = os.stat(link)  # of the directory's descriptor, too
                if directory in os.readlink(link) and stat.S_ISREG(status.st_mode):
                    return status.st_size > 0
            return False

        harness.wait_for(has_written, "the first dump")
        target.process.stdin.write(b"\n")
        run.finish(expect=harness.STATUS_TARGET)
        with open(path, encoding="utf-8") as file:
            for line in file:
                self.assertEqual(json.loads(line)["pid"], target.pid)

    def test_unreadable_program(self):
        """One may run what one may not read; then the kernel lets nobody look."""
        directory, setpriv = self.as_nobody()
        os.chmod(os.path.join(directory, "hostile"), 0o711)
        run = Run(
            ["-d", "0.3", "--", os.path.join(directory, "hostile"), "no such mode"],
            profiler=os.path.join(directory, "profiler"), prefix=setpriv, env=NO_LEAKS,
            cwd=directory,
        )  # fmt: skip
        run.finish(expect=None)
        self.assertIn(run.status, (harness.STATUS_TARGET, 99), run.stderr)
        if run.status == harness.STATUS_TARGET:
            self.assertRegex(run.stderr, "privileges|dumpable")


class Privileges(TestCase):
    """A set-user-ID program of root's, executed by an ordinary user, is root's all the same."""

    def programs(self, mode):
        """The directory, a program with the mode's bits, an ordinary one, and the user."""
        harness.need(os.geteuid() == 0, "needs root to make set-user-ID programs")
        directory = self.directory()
        os.chown(directory, NOBODY, NOBODY)
        plain = shutil.copy(harness.fixture("privileged"), directory)
        special = shutil.copy(plain, os.path.join(directory, "special"))
        os.chown(special, 0, 0)
        os.chmod(special, mode)
        profiler = shutil.copy(harness.PROFILER, directory)
        setpriv = [
            harness.find_tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}",
            "--clear-groups", "--inh-caps=-all",
        ]  # fmt: skip
        alone = subprocess.run([*setpriv, special], check=False)
        harness.need(alone.returncode == 0, "this directory's file system gives no privileges")
        return directory, special, plain, {"profiler": profiler, "prefix": setpriv}

    def test_wrapped(self):
        for mode in (0o4755, 0o4711, 0o6755):
            directory, special, _, user = self.programs(mode)
            run = Run(["-d", "0.3", "--", special], env=NO_LEAKS, cwd=directory, **user)
            run.communicate()
            self.assertEqual(run.status, 0, run.stderr)
            self.assertRegex(run.stderr, "set-user-ID.*runs unprofiled.*as root")
            self.assertEqual([name for name in os.listdir(directory) if "pb.gz" in name], [])

    def test_only_executable(self):
        """Only root may trace a program that its user may not read: it runs, and a line says why."""
        directory, _, _, user = self.programs(0o4755)
        program = shutil.copy(harness.find_tool("sh"), os.path.join(directory, "unreadable"))
        os.chmod(program, 0o711)
        command = ["--", program, "-c", "exit 7"]
        run = Run(["-o", "out.folded", *command], env=NO_LEAKS, cwd=directory, **user)
        run.communicate()
        self.assertEqual(run.status, 7, run.stderr)
        self.assertRegex(run.stderr, "its file may not be read.*runs unprofiled")

    def test_attached_to_only_executable(self):
        """Refused, with a line that says why; not if it was executed while its file could be read."""
        directory, _, _, user = self.programs(0o4755)
        program = shutil.copy(harness.fixture("calls-O2"), os.path.join(directory, "unreadable"))
        without = ("sh", "-c", 'exec "$0" spin', program)  # setpriv itself has rights until its exec
        readable = self.start_for_user(user, *without)
        os.chmod(program, 0o711)
        closed = self.start_for_user(user, *without)
        run = Run(["-p", closed.pid, "-d", "0.3", "-o", "closed.folded"], env=NO_LEAKS, cwd=directory, **user)
        run.communicate()
        self.assertEqual(run.status, harness.STATUS_TARGET, run.stderr)
        self.assertRegex(run.stderr, "does not allow tracing by its own user.*its file may not be read.*as root")
        run = self.profile(readable, **user)
        self.assertEqual(run.unreadable, {program: "no permission to read it"})
        for leaf in self.leaves(run):
            self.assertRegex(leaf, r"^\[unreadable\+0x[0-9a-f]+\]$")

    def start_for_user(self, user, *command):
        target = harness.Target([*user["prefix"], *command])
        self.addCleanup(target.end)
        return target

    def test_wrapped_found_along_the_path(self):
        directory, special, _, user = self.programs(0o4755)
        env = {**NO_LEAKS, "PATH": f"/nowhere:{directory}:{os.environ['PATH']}"}
        run = Run(["--", os.path.basename(special)], env=env, **user)
        run.communicate()
        self.assertEqual(run.status, 0, run.stderr)

    def make_script(self, special, directory):
        """A script whose interpreter is a script's, whose interpreter is the program."""
        for name, interpreter in (("inner", special + " check"), ("script", directory + "/inner")):
            os.chmod(self.write(name, f"#! {interpreter}\n".encode(), directory), 0o755)
        return os.path.join(directory, "script")

    def test_executed_while_sampled(self):
        """In the moment of a stop, too: the child computes, so that it is stopped, and executes."""
        directory, special, plain, user = self.programs(0o4755)
        script = self.make_script(special, directory)
        for program, n, *how in (
            (special, 600), (script, 600), (special, 400, "descriptor"),
        ):  # fmt: skip
            with self.subTest(f"{program} {how}"):
                run = Run(
                    ["-c", "-F", "5000", "--max-overhead=0", "-o", "out.folded", "--",
                     plain, program, n, "60000", *how],
                    env=NO_LEAKS, cwd=directory, **user,
                )  # fmt: skip
                run.communicate()
                self.assertEqual(run.status, 0, (run.stdout, run.stderr))
                self.assertNotRegex(run.stderr, "lost")

    def test_wrapped_script(self):
        directory, special, _, user = self.programs(0o4755)
        script = self.make_script(special, directory)
        run = Run(["-o", "out.folded", "--", script, "check", "a", "b"], env=NO_LEAKS, **user)
        run.communicate()
        self.assertEqual(run.status, 0, run.stderr)
        self.assertRegex(run.stderr, "runs unprofiled")

    def test_script_is_an_ordinary_command(self):
        directory, _, _, user = self.programs(0o4755)
        script = self.write("script", b"#!/bin/sh\nsleep 0.3\n", directory)
        os.chmod(script, 0o755)
        run = Run(["-o", "out.folded", "--", script], env=NO_LEAKS, cwd=directory, **user)
        run.communicate()
        self.assertEqual(run.status, 0, run.stderr)
        self.assertIn("out.folded", os.listdir(directory))


if __name__ == "__main__":
    harness.main()
