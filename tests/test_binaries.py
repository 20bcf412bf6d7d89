# SPDX-License-Identifier: MIT
"""Whatever file or memory code runs from, its names are right, or none."""

import atexit
import collections
import os
import re
import shutil
import subprocess
import sys

import harness
from harness import LEAVES, LIBRARY, MAIN, THREAD, attach, name_of, read_symbols
from test_record import Recorded, report

CALLS = f"many_arguments;through_qsort;{LIBRARY}compare;dynamic_frame;big_frame"
SLEEP = rf"{MAIN};{CALLS};leaf_sleep{LEAVES}"
NOBODY = 65534
LINKERS = ("bfd", "gold", "lld", "mold")


class TestCase(harness.TestCase):
    def as_nobody(self):
        """A directory of another user's, and how to become that user."""
        harness.need(os.geteuid() == 0, "needs root to become somebody else")
        directory = self.directory()
        os.chown(directory, NOBODY, NOBODY)
        return directory, [
            harness.find_tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}",
            "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs",
        ]  # fmt: skip

    def by_nobody(self, directory, setpriv):
        """How to run the profiler as that user."""
        profiler = shutil.copy(harness.PROFILER, os.path.join(directory, "profiler"))
        return {"profiler": profiler, "prefix": setpriv}


# A function without a symbol and without tables, behind one whose symbol has no size and which ends
# before it: as GHC's behind crtbegin.o's frame_dummy.
NAMELESS = """
	.text
	.globl main
	.type main, @function
main:
	.cfi_startproc
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	leaq text(%rip), %rdi
	call puts@PLT
	xorl %edi, %edi
	call fflush@PLT
	call ended
	call .Lnameless
	.cfi_endproc
	.size main, .-main
	.p2align 4
	.type ended, @function
ended:
	movl $1, %eax
	ret
	.p2align 4
.Lnameless:
	incq %rax
	jmp .Lnameless
	.section .rodata
text: .string "ready"
	.section .note.GNU-stack, "", @progbits
"""


class Unsized(TestCase):
    def test_nameless_function(self):
        """It is not stripped, and yet the function has no name."""
        source, program = (os.path.join(self.directory(), name) for name in ("a.s", "program"))
        with open(source, "w", encoding="ascii") as file:
            file.write(NAMELESS)
        subprocess.run([harness.find_tool("gcc"), source, "-o", program], check=True)
        _, stacks = harness.attach_until(
            lambda stacks: any(stack[-1].startswith("[program+") for stack in stacks),
            self.start(program),
        )
        self.assertNotIn("ended", {name for stack in stacks for name in stack})

    def test_next_function(self):
        """A symbol without a size does not name what comes after its function."""
        self.check("unsized")

    def test_next_function_without_tables(self):
        self.check("unsized_bare")

    def check(self, fixture):
        leaves = r"in_assembly", harness.UNNAMED

        def count(stacks, leaf):
            return sum(n for s, n in stacks.items() if re.fullmatch(leaf, s[-1]))

        # A busy machine gives a program that computes few ticks, and all in the same function.
        _, stacks = harness.attach_until(
            lambda stacks: all(count(stacks, leaf) > 10 for leaf in leaves),
            self.start_fixture(fixture),
        )
        self.assert_stacks(stacks, rf"{MAIN};run;(?:in_assembly|{harness.UNNAMED})")
        for leaf in leaves:
            self.assertGreater(count(stacks, leaf), 10, stacks)


# A C library whose calls that block go through functions of its own, as those of newer glibc do; and
# a program that waits in one of them, or computes in one.
C_LIBRARY = """
#include <unistd.h>
#include <sys/syscall.h>
#define INNER __attribute__((noinline)) static
INNER long __syscall_cancel_arch(long number)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "0"(number) : "rcx", "r11", "memory");
	return result;
}
INNER long __internal_syscall_cancel(long n) { long r = __syscall_cancel_arch(n); return r * 3; }
INNER long __syscall_cancel(long n) { long r = __internal_syscall_cancel(n); return r * 5; }
INNER long count(long n) { volatile long sum = 0; for (;;) sum += n; }
long wait_long(void) { long r = __syscall_cancel(SYS_pause); return r * 7; }
long compute_long(void) { long r = count(1); return r * 7; }
"""
CALLER = """
#include <stdio.h>
long wait_long(void), compute_long(void);
int main(int argc, char **argv) { (void)argv; puts("ready"); fflush(stdout);
	return (argc > 1 ? compute_long() : wait_long()) != 11; }
"""


class BlockedLeaf(TestCase):
    """A blocked thread ends in the call that it made, whether the functions inside have names."""

    def setUp(self):
        self.where = self.directory()

    def build(self, *args):
        gcc = harness.find_tool("gcc")
        for name, text in (("library.c", C_LIBRARY), ("caller.c", CALLER)):
            with open(os.path.join(self.where, name), "w", encoding="ascii") as file:
                file.write(text)
        for command in (
            [gcc, "-O1", "-fPIC", "-shared", *args, "library.c", "-o", "libpthread-x.so"],
            [gcc, "-O1", "caller.c", "./libpthread-x.so", "-o", "caller"],
        ):
            subprocess.run(command, cwd=self.where, check=True)

    def leaves(self, *args, **run):
        target = self.start(os.path.join(self.where, "caller"), *args, cwd=self.where)
        run = attach(target, duration="0.3", **run)
        target.end()
        return run, {stack[-1] for stack in run.stacks() if "main" in stack}

    def test_blocked(self):
        for build in (["-s"], ["-g"]):
            self.build(*build)
            self.assertEqual(self.leaves()[1], {"wait_long"}, build)

    def test_in_a_recording(self):
        self.build("-s")
        target = self.start(os.path.join(self.where, "caller"), cwd=self.where)
        text, _ = report(Recorded(target, duration="0.3").finish().data, "--format=folded")
        self.assertEqual({line.rsplit(b" ", 1)[0].split(b";")[-1] for line in text.splitlines()},
                         {b"wait_long"})  # fmt: skip

    def test_computing(self):
        """That is no call that blocks: it is shown as it is."""
        self.build("-s")
        target = self.start(os.path.join(self.where, "caller"), "compute", cwd=self.where)
        _, stacks = harness.attach_until(
            lambda stacks: any("compute_long" in stack for stack in stacks), target
        )
        leaves = {stack[-1] for stack in stacks if "compute_long" in stack}
        self.assertFalse([leaf for leaf in leaves if not leaf.startswith("[libpthread-x")], leaves)


# Functions with symbols, beside a program that has no tables.
MANY_SYMBOLS = """
	.text
	.macro function
	.type company_product_component_does_something_\\@, @function
company_product_component_does_something_\\@:
	ret
	.size company_product_component_does_something_\\@, 1
	.endm
	.rept 600000
	function
	.endr
	.section .note.GNU-stack, "", @progbits
"""
WITHOUT_TABLES = """
#include <stdio.h>
volatile unsigned long sink;
__attribute__((noinline)) void inner(int n) { for (;;) for (int i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void outer(int n) { char room[100]; room[n % 100] = n; inner(n); sink += room[3]; }
int main(void) { puts("ready"); fflush(stdout); outer(1000); }
"""


class Tableless(TestCase):
    """Where only the code tells, each stack is the program's, or marked."""

    BUILDS = (("tableless-O2", ""), ("tableless-O3", "-stripped"), ("tableless-O2", "-stripped"))

    def test_many_symbols(self):
        """Sampling does not stand still while a table of all names is made, which takes 0.3 s here."""
        directory = self.directory()
        for name, text in (("many.s", MANY_SYMBOLS), ("program.c", WITHOUT_TABLES)):
            with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                file.write(text)
        subprocess.run(
            [harness.find_tool("gcc"), "-O1", "-fno-asynchronous-unwind-tables", "-fuse-ld=lld",
             "program.c", "many.s", "-o", "program"], cwd=directory, check=True,
        )  # fmt: skip
        run = attach(self.start(os.path.join(directory, "program")), duration="0.5")
        self.assert_stacks(run.stacks(), r"_start;.*;main;outer;inner", share=0.9)
        (cpu_ms,) = re.findall(r"engine: .*; ([\d.]+) ms of CPU while sampling", run.stderr)
        self.assertLess(float(cpu_ms), 1000 if harness.is_sanitized() else 150)

    def check(self, mode, way, all_marked=False):
        for build, stripped in harness.a_few(self.BUILDS):
            with self.subTest(build + stripped):
                target = self.start_fixture(build + stripped, mode)
                run = attach(target, hz=997, duration=1, form="folded")
                names = read_symbols(harness.fixture(build))
                named, n_marked = collections.Counter(), 0
                for stack, count in run.stacks().told().items():
                    if stack[0].startswith("[truncated"):
                        n_marked += count
                        continue
                    named[tuple(name_of(names, frame) if build in frame else frame
                                for frame in stack)] += count  # fmt: skip
                if all_marked:
                    self.assertGreater(n_marked, 0.9 * run.summary.samples, run.stderr)
                else:
                    self.assertLessEqual(n_marked, 2 + 0.02 * run.summary.samples, run.stderr)
                if named:
                    self.assert_stacks(named, rf"{MAIN}{way}", share=1)
                target.end()

    def test_fails(self):
        """What follows on a call that never returns is another function's; and a frame pointer is not
        taken for the one of a function that has none."""
        spins = r"(?:;checked(?:;spin)?)?"
        self.check("fails", rf"(?:;holder(?:;middle(?:;inner{spins})?)?)?")

    def test_realigned(self):
        inside = r"(?:;(?:fill|[^;]*memset[^;]*))?"
        self.check("realigned", rf"(?:;shift(?:;outer(?:;realigned{inside})?)?)?")

    def test_rewritten(self):
        """Code that is not what its file says."""
        self.check("rewritten", r"(?:(?:;descend)+|;call(?:;rewritten(?:;spin_long)?)?)?", all_marked=True)


class Upgraded(TestCase):
    """Another file stands where the program was, with other functions at its addresses."""

    def check(self, run):
        self.assert_stacks(run.stacks(), SLEEP)
        self.assertEqual(run.pprof.mappings[0]["filename"].split("/")[-1], "program")

    def test_by_root(self):
        path = os.path.join(self.directory(), "program")
        shutil.copy(harness.fixture("calls-O2"), path)
        target = self.start(path, "sleep")
        shutil.copy(harness.fixture("calls-O3"), path + ".new")
        os.rename(path + ".new", path)
        self.check(attach(target))

    def test_by_its_user(self):
        """Without privileges the program itself can still be opened."""
        directory, setpriv = self.as_nobody()
        path = shutil.copy(harness.fixture("calls-O2"), os.path.join(directory, "program"))
        target = self.start(*setpriv, path, "sleep")
        shutil.copy(harness.fixture("calls-O3"), path + ".new")
        os.rename(path + ".new", path)
        self.check(attach(target.pid, **self.by_nobody(directory, setpriv)))

    def test_same_inode(self):
        """A file system mounted over the directory has a file of the same name and inode."""
        directory, setpriv = self.as_nobody()
        where = self.directory()
        plugin, other = (harness.fixture(name + ".so") for name in ("plugin_a", "plugin_b"))
        # The first files of new file systems have the same number.
        program = (
            "import ctypes, os, subprocess, sys, time\n"
            "where, plugin, other = sys.argv[1:4]\n"
            "def mount(what):\n"
            "    subprocess.run(['mount', '-t', 'tmpfs', 'none', where], check=True)\n"
            "    subprocess.run(['cp', what, where + '/lib.so'], check=True)\n"
            "    os.chmod(where, 0o755)\n"
            "    print(os.stat(where + '/lib.so').st_ino, flush=True)\n"
            "mount(plugin)\n"
            "work = ctypes.CDLL(where + '/lib.so').plugin_a_work\n"
            "mount(other)\n"
            f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
            "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"  # PR_SET_DUMPABLE
            "print('ready', flush=True)\n"
            "work(ctypes.byref(ctypes.c_int(0)))\n"
        )
        target = self.start(*harness.unshare("-m"), sys.executable, "-c", program,
                            where, plugin, other)  # fmt: skip
        self.assertEqual(target.said[0], target.said[1], "the inodes differ")
        # It spins, and may get no CPU in a whole run.
        run, stacks = harness.attach_until(
            lambda stacks: set(stacks) - {harness.NO_STACK},
            target.pid, **self.by_nobody(directory, setpriv)
        )  # fmt: skip
        names = {name for stack in stacks for name in stack}
        self.assertFalse([name for name in names if "plugin_b" in name], names)
        self.assertTrue([name for name in names if name.startswith("[lib.so+")], f"{names}; {run.brief}")
        # Root can open the very file.
        names = {name for stack in attach(target).stacks() for name in stack}
        self.assertIn("plugin_a_inner", names)


class WrittenOver(TestCase):
    """A library that is not another file, but holds something else than before: cp new.so old.so."""

    def run_over(self, writes):
        """Attaches while the library is at work, and perhaps written to; with what it holds already,
        as the program would crash."""
        path = shutil.copy(harness.fixture("plugin_a.so"), os.path.join(self.directory(), "lib.so"))
        program = (
            "import ctypes, sys, threading, time\n"
            "path, writes = sys.argv[1:3]\n"
            "work = ctypes.CDLL(path).plugin_a_work\n"
            "over = ctypes.byref(ctypes.c_int(0))\n"
            "threading.Thread(target=work, args=(over,), daemon=True).start()\n"
            "print('ready', flush=True)\n"
            "while True:\n"
            "    if writes == 'yes':\n"
            "        with open(path, 'r+b') as file:\n"
            "            start = file.read(16)\n"
            "            file.seek(0)\n"
            "            file.write(start)\n"
            "    time.sleep(0.02)\n"
        )
        run = attach(self.start(sys.executable, "-c", program, path, writes))
        self.assertIn("plugin_a_inner", {name for stack in run.stacks() for name in stack})
        return f"profiler: {path} was changed while it was sampled" in run.stderr

    def test_is_told(self):
        self.assertTrue(self.run_over("yes"))
        self.assertFalse(self.run_over("no"))


class Elsewhere(TestCase):
    def test_overlay(self):
        """As in a container: an overlay file system, a mount and a pid namespace."""
        harness.need(os.geteuid() == 0, "needs root for a mount namespace")
        directory = self.directory()
        script = """
            mount -t tmpfs none "$1" && cd "$1" && mkdir lower upper work merged &&
            cp "$2" lower/program &&
            mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work merged ||
            { echo cannot; echo ready; exit; }
            exec merged/program sleep
        """
        outer = self.start(
            *harness.unshare("--mount", "--pid", "--fork", "--kill-child"), "sh", "-c",
            script, "sh", directory, harness.fixture("calls-O2"),
        )  # fmt: skip
        harness.need("cannot" not in outer.said, "there is no overlay file system here")
        (pid,) = harness.children(outer.pid)
        self.assertFalse(os.listdir(directory))
        self.assert_stacks(attach(pid).stacks(), SLEEP)

    def test_memfd(self):
        """A program and a library without a file."""
        code = """
import os, sys
fd = os.memfd_create("nameless")
with open(sys.argv[1], "rb") as file: os.write(fd, file.read())
os.execve(fd, ["x", "sleep"], os.environ)
"""
        target = self.start(sys.executable, "-c", code, harness.fixture("calls-O2"))
        self.assert_stacks(attach(target).stacks(), SLEEP)
        code = """
import ctypes, os, sys
fd = os.memfd_create("nameless")
with open(sys.argv[1], "rb") as file: os.write(fd, file.read())
work = ctypes.CDLL(f"/proc/self/fd/{fd}").plugin_a_work
print("ready", flush=True)
work(ctypes.byref(ctypes.c_int(0)))
"""
        target = self.start(sys.executable, "-c", code, harness.fixture("plugin_a.so"))
        self.assertTrue(
            [s for s in attach(target).stacks() if s[-2:] == ("plugin_a_work", "plugin_a_inner")]
        )

    def test_dlmopen(self):
        """One library at two places at once."""
        target = self.start_fixture("dlmopen", harness.fixture("plugin_a.so"))
        run = attach(target)
        for name in ("in_first", "in_second"):
            stacks = {s: n for s, n in run.stacks().items() if name in s}
            self.assert_stacks(stacks, rf"{THREAD}{name};plugin_a_work;plugin_a_inner", share=0.9)


def need_huge_pages(count):
    """Reserves them for this test's process, if the machine has no free ones."""
    try:
        with open("/proc/meminfo", encoding="utf-8") as file:
            free = int(re.search(r"(?m)^HugePages_Free: +(\d+)$", file.read())[1])
        with open("/proc/sys/vm/nr_hugepages", encoding="utf-8") as file:
            reserved = int(file.read())
        if free < count:
            atexit.register(set_huge_pages, reserved)
            free += set_huge_pages(reserved + count - free) - reserved
    except (OSError, TypeError):
        free = 0
    harness.need(free >= count, "no huge pages are to be had")


def set_huge_pages(count):
    """Asks for so many; how many there are then."""
    with open("/proc/sys/vm/nr_hugepages", "r+", encoding="utf-8") as file:
        file.write(str(count))
    with open("/proc/sys/vm/nr_hugepages", encoding="utf-8") as file:
        return int(file.read())


class Moved(TestCase):
    """Code that a program has moved into memory without a file."""

    def test_moved(self):
        for part in ("whole", "middle"):
            target = self.start_fixture("moved_text", part)
            with open(f"/proc/{target.pid}/maps", encoding="utf-8") as file:
                self.assertRegex(file.read(), r"(?m)^\S+ r-xp 00000000 00:00 0 *$")
            run = attach(target)
            self.assert_stacks(run.stacks(), rf"{MAIN};outer;wait_here{LEAVES}")
            self.assertEqual(run.summary.truncated, 0, run.stderr)
            target.end()

    def test_huge_pages(self):
        """MAP_HUGETLB, whose mappings look like a file's."""
        need_huge_pages(2)
        target = self.start_fixture("moved_text_huge", "huge")
        with open(f"/proc/{target.pid}/maps", encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^\S+ r-xp \S+ \S+ \d+ +/anon_hugepage \(deleted\)$")
        run = attach(target)
        self.assert_stacks(run.stacks(), rf"{MAIN};outer;wait_here{LEAVES}")
        self.assertEqual(run.summary.truncated, 0, run.stderr)

    def test_changed(self):
        """It is not what the file has: it has no names of the file's."""
        target = self.start_fixture("moved_text", "changed")
        names = {name for stack in attach(target).stacks() for name in stack}
        self.assertFalse(names & {"main", "outer", "wait_here"}, names)


class Layouts(TestCase):
    """Where linkers put code."""

    def link(self, *args, fixture="calls"):
        path = os.path.join(self.directory(), "program")
        subprocess.run(
            [harness.find_tool("gcc", "cc"), "-w", "-g", "-O2", "-D_GNU_SOURCE",
             "-fomit-frame-pointer", *args, os.path.join(harness.HERE, "fixtures", fixture + ".c"),
             "-o", path], check=True, capture_output=True,
        )  # fmt: skip
        return path

    def check_linked(self, fixture, mode, expected, linkers=LINKERS):
        """With lld and mold, segments share a page of the file, and have it at different distances
        from their addresses; gold's executable segment is the first."""
        for linker in harness.a_few(linkers):
            with self.subTest(fixture=fixture, mode=mode, linker=linker):
                target = self.start(self.link(f"-fuse-ld={linker}", fixture=fixture), mode)
                run = attach(target, duration="0.3")
                self.assert_stacks(run.stacks(), expected, share=0.9)
                self.assertEqual(run.summary.truncated, 0, run.stderr)
                target.end()

    def test_linkers(self):
        self.check_linked("calls", "sleep", rf"_start;.*main;{CALLS};leaf_sleep{LEAVES}")

    def test_moved_text(self):
        self.check_linked("moved_text", "middle", rf"_start;.*main;outer;wait_here{LEAVES}")

    def test_jit_image(self):
        code = "run_code;first_code;from_code(?:;[^;]+){0,2}"
        self.check_linked("jit_image", "named", rf"_start;.*main;{code}", ("bfd", "mold"))

    def test_layouts(self):
        for args in harness.a_few((
            ["-Wl,-z,noseparate-code"],
            ["-Wl,-z,max-page-size=0x200000"],
            ["-Wl,-z,max-page-size=0x200000,-z,noseparate-code", "-no-pie"],
            ["-no-pie", "-Wl,-Ttext-segment=0x40000000"],
            ["-no-pie", "-Wl,-Ttext=0x50001230"],
            ["-Wl,-Ttext=0x7654320"],
            ["-Wl,--section-start=.init=0x12340"],
            ["-fuse-ld=gold", "-Wl,--rosegment"],
            ["-fuse-ld=lld", "-Wl,-z,separate-code"],
            ["-fuse-ld=lld", "-no-pie", "-Wl,-z,separate-loadable-segments"],
            ["-fuse-ld=mold", "-static-pie"],
            ["-static-pie", "-Wl,-z,noseparate-code"],
        )):  # fmt: skip
            with self.subTest(args=args):
                target = self.start(self.link(*args), "sleep")
                run = attach(target, duration="0.2")
                self.assert_stacks(run.stacks(), rf"_start;.*main;{CALLS};leaf_sleep{LEAVES}", share=0.9)
                self.assertEqual(run.summary.truncated, 0, run.stderr)
                target.end()

    def test_prelinked(self):
        """A library with addresses of its own, as prelink(8) leaves it, loaded elsewhere."""
        library = os.path.join(self.directory(), "plugin.so")
        subprocess.run(
            [harness.find_tool("gcc", "cc"), "-w", "-g", "-O2", "-D_GNU_SOURCE", "-fPIC", "-shared",
             "-DNAME=plugin_a", "-fomit-frame-pointer", "-Wl,-Ttext-segment=0x3410000000",
             os.path.join(harness.HERE, "fixtures", "plugin.c"), "-o", library],
            check=True, capture_output=True,
        )  # fmt: skip
        target = self.start_fixture("dlmopen", library)
        run = attach(target, duration="0.3")
        self.assertEqual(run.summary.truncated, 0, run.stderr)
        for name in ("in_first", "in_second"):
            stacks = {s: n for s, n in run.stacks().items() if name in s}
            self.assert_stacks(stacks, rf"{THREAD}{name};plugin_a_work;plugin_a_inner", share=0.9)


if __name__ == "__main__":
    harness.main()
