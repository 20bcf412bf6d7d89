# SPDX-License-Identifier: MIT
"""Code that no file holds: its names in /tmp/perf-PID.map, and what a hostile one may do."""

import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
import time

import harness
from harness import MAIN, attach, start_attach

FIRST = r"first_code with spaces file\.js:1"
BETWEEN = rf"{MAIN};run_code;(%s);from_code(?:;[^;]+){{0,2}}"
UNNAMED_CODE = r"\[(?:anon|jit)\+0x[0-9a-f]+\]"


def map_path(pid):
    return f"/tmp/perf-{pid}.map"


def change(target):
    """A run before and after a change that the target is asked for."""
    run = start_attach(target, "--max-overhead=0")
    run.wait_attached()
    see_at_work(run, target)
    stdin = target.process.stdin.fileno()
    os.write(stdin, b"x")
    harness.wait_for(lambda: not unread(stdin), "the target to take the byte")
    see_at_work(run, target)
    run.signal(signal.SIGINT)
    return run.finish()


def see_at_work(run, target):
    """Waits for many samples of what it does from now on, which it may get a CPU for much later."""
    harness.wait_for_work(target.pid)
    run.wait_ticks(150)
    harness.wait_for_work(target.pid)


def unread(fd):
    """How many bytes are in the pipe."""
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]


def remove(path):
    if os.path.lexists(path):
        os.unlink(path)


class Names(harness.TestCase):
    def start_map(self, mode):
        target = self.start_fixture("jit_map", mode)
        self.addCleanup(remove, map_path(target.pid))
        return target

    def test_named(self):
        run = attach(self.start_map("named"))
        self.assert_stacks(run.stacks(), BETWEEN % FIRST)
        self.assertEqual(run.summary.truncated, 0, run.stderr)
        # How its caller was found is told.
        for sample in run.pprof.samples:
            through = any("first_code" in name for name in sample.stack)
            self.assertEqual(sample.labels.get("unwound"), "frame-pointer" if through else None)
        self.assertRegex(run.stderr, r"[1-9]\d* of \d+ frames found by frame pointer")
        self.assertRegex(run.pprof.comments[0], r"[1-9]\d* of \d+ frames found by frame pointer")
        places = [f.location for s in run.pprof.samples for f in s.frames if "first_code" in f.name]
        self.assertEqual({place["mapping"]["filename"] for place in places}, {"[jit]"})

    def test_addresses_used_again(self):
        """Each sample has the name that its code had when it was taken."""
        target = self.start_map("reused")
        run = change(target)
        self.assert_stacks(run.stacks(), BETWEEN % rf"{FIRST}|second_code", share=0.95)
        first, second = (
            sum(n for s, n in run.stacks().items() if any(name in f for f in s))
            for name in ("first_code", "second_code")
        )
        self.assertGreater(first, 40, run.stacks())
        self.assertGreater(second, 40, run.stacks())

    def test_written_while_it_runs(self):
        target = self.start_map("none")
        run = start_attach(target)
        run.wait_attached()
        with open(f"/proc/{target.pid}/maps", encoding="utf-8") as file:
            start = next(line.split("-")[0] for line in file if "rwxp" in line)
        with open(map_path(target.pid), "w", encoding="utf-8") as file:
            file.write(f"0x{start} 0x10 made late\n")
        files = f"/proc/{run.worker_pid()}/fd"
        harness.wait_for(lambda: map_path(target.pid) in harness.read_links(files), "it to be seen")
        run.signal(signal.SIGINT)
        run.finish()
        self.assert_stacks(run.stacks(), BETWEEN % "made late")

    def test_other_namespaces(self):
        harness.need(os.geteuid() == 0, "needs root to make namespaces")
        script = f"mount -t tmpfs none /tmp && exec {harness.fixture('jit_map')} named"
        if harness.FIXTURES.startswith("/tmp/"):
            script = script.replace("mount", f"cd {harness.FIXTURES} && mount").replace(
                harness.fixture("jit_map"), "./jit_map"
            )
        unshare = self.start(
            *harness.unshare("--pid", "--mount", "--fork", "--kill-child"),
            "sh", "-c", script,
        )  # fmt: skip
        target = harness.children(unshare.pid)[0]
        self.assertEqual(harness.read_status(target)["NSpid"].split()[-1], "1")
        harness.wait_for_work(target)
        run = attach(target)
        self.assert_stacks(run.stacks(), BETWEEN % FIRST)


class Shapes(harness.TestCase):
    """Code of which no name and no table is known, of shapes that runtimes are known for."""

    def check(self, between, fixture, *more):
        run = attach(self.start_fixture(fixture, *more))
        self.assert_stacks(run.stacks(), rf"{MAIN};run_code;{between}")
        self.assertEqual(run.summary.truncated, 0, run.stderr)
        return run

    def test_java_loop_without_return(self):
        run = self.check(rf"{UNNAMED_CODE}(?:;from_code)?", "jit_java", "osr")
        self.assertRegex(run.stderr, r"[1-9]\d* of \d+ frames found by following the code")

    def test_java_interpreter(self):
        self.check(rf"{UNNAMED_CODE};{UNNAMED_CODE}(?:;from_code)?", "jit_java", "interpreted")

    def test_java_virtual_thread(self):
        """A caller that is not on the stack is not passed over."""
        run = attach(self.start_fixture("jit_java", "virtual"))
        end = r"\[truncated: continues on another stack\]"
        self.assert_stacks(run.stacks(), rf"{end};{UNNAMED_CODE};{UNNAMED_CODE}(?:;from_code)?")

    def test_lua_trace(self):
        target = self.start_fixture("jit_lua")
        run = attach(target)
        leaves = rf"{UNNAMED_CODE}(?:;leave(?:;leaf)?)?|(?:vm|exit_handler|enter)(?:;\w+)?"
        whole = rf"{MAIN};run_code;{UNNAMED_CODE};leave;nest;(?:{leaves})"
        # Where the VM keeps its frames is known after the first one: however long that takes.
        counts = run.stacks()
        early = [s for s in counts if s[0] == "[truncated: continues on another stack]"]
        for stack in early:
            del counts[stack]
        self.assert_stacks(counts, whole)
        for _ in range(9):  # it may seldom have a CPU
            missing = [
                leaf for leaf in ("leaf", "subroutine", "trace_exit", UNNAMED_CODE)
                if sum(n for s, n in counts.items() if re.search(whole, ";".join(s)) and
                       re.fullmatch(leaf, s[-1])) <= 5
            ]  # fmt: skip
            if not missing:
                break
            counts.update(attach(target).stacks())
        self.assertEqual(missing, [], counts)

    def test_php(self):
        """In the frame of the virtual machine, of which the file has the table."""
        self.check_leaves(rf"{UNNAMED_CODE}(?:;leaf)?", ("leaf", UNNAMED_CODE), "jit_php")

    def check_leaves(self, between, leaves, fixture):
        def are_there(counts):
            return all(sum(n for s, n in counts.items() if re.fullmatch(leaf, s[-1])) > 5 for leaf in leaves)

        run, counts = harness.attach_until(are_there, self.start_fixture(fixture))
        self.assert_stacks(counts, rf"{MAIN};run_code;{between}")
        self.assertEqual(run.summary.truncated, 0, run.stderr)
        self.assertTrue(are_there(counts), counts)

    def test_haskell(self):
        self.check_leaves(r"piece(?:;leaf)?", ("piece", "leaf"), "haskell")


class Replaced(harness.TestCase):
    def test_in_its_place(self):
        """Each caller is found by the code that was there at that moment."""
        run = attach(self.start_fixture("jit", "replaced"), "--max-overhead=0", duration="2")
        # The code is read after the stop, when the program may have replaced it: that is seen, and marked.
        marked = r"\[truncated: no unwinding rule\]"
        whole = rf"{MAIN};(?:replace_code;)?run_code"
        between = rf"(?:%s);{UNNAMED_CODE};(?:from_small|from_large)(?:;[^;]+){{0,4}}"
        self.assert_stacks(run.stacks(), between % whole, share=0.75)
        self.assert_stacks(run.stacks(), between % rf"{whole}|{marked}", share=0.99)
        for name in "from_small", "from_large":
            self.assertGreater(
                sum(n for s, n in run.stacks().items() if name in s), 20, run.stacks()
            )


class Hostile(harness.TestCase):
    """A map that is none: its code stays without names, and nothing else happens."""

    def check_refused(self, make):
        target = self.start_fixture("jit_map", "none")
        path = map_path(target.pid)
        with open(f"/proc/{target.pid}/maps", encoding="utf-8") as file:
            start = next(line.split("-")[0] for line in file if "rwxp" in line)
        line = f"{start} 10 wrong_name\n"
        make(path, line)
        self.addCleanup(remove, path)
        run = attach(target)
        self.assert_stacks(run.stacks(), BETWEEN % UNNAMED_CODE)
        target.end()
        return run

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_fifo(self):
        self.check_refused(lambda path, line: os.mkfifo(path))

    def test_link(self):
        real = os.path.join(self.directory(), "real")

        def make(path, line):
            self.write(real, line)
            os.symlink(real, path)

        self.check_refused(make)

    def test_device(self):
        harness.need(os.geteuid() == 0, "needs root to make a device")
        self.check_refused(lambda path, line: os.mknod(path, 0o20666, os.makedev(1, 5)))

    def test_of_another_user(self):
        harness.need(os.geteuid() == 0, "needs root to give a file away")

        def make(path, line):
            self.write(path, line)
            os.chown(path, 4711, 4711)

        self.check_refused(make)

    def test_of_an_earlier_process(self):
        def make(path, line):
            self.write(path, line)
            os.utime(path, (time.time() - 3600,) * 2)

        self.check_refused(make)

    def test_garbage(self):
        """A line of 4 GB, and lines that are none."""

        def make(path, line):
            address = line.split()[0]
            self.write(path, f"{address}\n{address} 10\n{address} 0 empty\n-1 10 minus\n"
                             f"{address} -1 minus\nffffffffffffff00 200 around\n x\n\n")  # fmt: skip
            os.truncate(path, 4 << 30)

        run = self.check_refused(make)
        self.assertLess(run.elapsed_s, 30)

    def test_many_lines(self):
        """More entries than are kept."""

        def make(path, line):
            self.write(path, "1 1 a\n" * 3_000_000)

        run = self.check_refused(make)
        self.assertIn("it has too many entries", run.stderr)


class Images(harness.TestCase):
    """Code of which the process itself has an ELF image for debuggers."""

    def check(self, mode, between, *more):
        target = self.start_fixture("jit_image", mode)
        run = attach(target, *more)
        self.assert_stacks(run.stacks(), BETWEEN % between)
        self.assertEqual(run.summary.truncated, 0, run.stderr)
        return run

    def check_refused(self, mode, name=UNNAMED_CODE):
        """Without a way to the code's caller, the stack ends there, and says so: also if glibc has
        left return addresses below its frame, as it does to tell malloc of this."""
        target = self.start_fixture("jit_image", mode, env={**os.environ, "MALLOC_PERTURB_": "77"})
        run = attach(target)
        self.assert_stacks(
            run.stacks(), rf"\[truncated: [^;]+\];{name};from_code(?:;[^;]+){{0,2}}"
        )

    def test_named(self):
        run = self.check("named", "first_code")
        self.assertEqual({s.labels.get("unwound") for s in run.pprof.samples}, {None})
        places = [f.location for s in run.pprof.samples for f in s.frames if "first_code" in f.name]
        self.assertEqual({place["mapping"]["filename"] for place in places}, {"[jit]"})

    def test_object(self):
        self.check("object", "first_code")

    def test_sections_alone(self):
        run = self.check("sections", "first_code")
        self.assertNotIn("damaged", run.stderr)

    def test_relative_to_the_code(self):
        self.check("textrel", "first_code")

    def test_perf_map_names_it(self):
        """Its names are the program's own choice for profilers; its callers are the image's."""
        target = self.start_fixture("jit_image", "named")
        with open(f"/proc/{target.pid}/maps", encoding="utf-8") as file:
            start = next(line.split("-")[0] for line in file if "rwxp" in line)
        self.addCleanup(remove, map_path(target.pid))
        with open(map_path(target.pid), "w", encoding="utf-8") as file:
            file.write(f"{start} 20 better_name\n")
        self.assert_stacks(attach(target).stacks(), BETWEEN % "better_name")

    def check_changes(self, mode, before, after):
        target = self.start_fixture("jit_image", mode)
        run = change(target)
        self.assert_stacks(
            run.stacks(),
            rf"(?:{MAIN};run_code|\[truncated[^;]*\]);(?:{before}|second_code);from_code(?:;[^;]+){{0,2}}",
            share=0.95,
        )
        first, second = (
            sum(n for s, n in run.stacks().items() if any(re.fullmatch(name, f) for f in s))
            for name in (before, after)
        )
        self.assertGreater(first, 20, run.stacks())
        self.assertGreater(second, 20, run.stacks())

    def test_replaced(self):
        self.check_changes("reused", "first_code", "second_code")

    def test_registered_while_it_runs(self):
        self.check_changes("late", UNNAMED_CODE, "second_code")

    def test_circle(self):
        self.check("circle", "first_code")

    def test_lie(self):
        self.check_refused("lie", "first_code")

    def test_none(self):
        for mode in "huge", "garbage", "nowhere", "none":
            with self.subTest(mode):
                self.check_refused(mode)

    def test_recording(self):
        run = attach(self.start_fixture("jit_image", "named"), form="record")
        report = subprocess.run(
            [harness.PROFILER, "report", "-"], input=run.recording, stdout=subprocess.PIPE, check=True
        )  # fmt: skip
        self.assertIn(b"run_code;first_code;from_code", report.stdout)


if __name__ == "__main__":
    harness.main()
