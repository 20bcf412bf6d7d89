# SPDX-License-Identifier: MIT
"""Attach to C++, Rust and Go programs whose stacks are known."""

import collections
import os
import re
import subprocess

import harness
from harness import LIBRARY, MAIN, attach

BUILDS = ("cxx-O0", "cxx-O2")


# Functions by names of newer compilers, which the demangler does not know; and by two that differ
# behind the first 8,192 bytes. Each calls the next.
NAMES = """
#include <cstdio>
#include <unistd.h>
#define LONG "%s"
volatile int sink;
extern "C" void spin();
void charge(int n) asm("_Z6chargeITk6NumberiEvT_");
namespace shop { struct till {
	void pay(int n) asm("_ZN4shop4till3payITk6NumberiEEvT_");
}; }
void first(int n) asm("_Z5firstI" LONG "5firstEvv");
void second(int n) asm("_Z5firstI" LONG "6secondEvv");
__attribute__((noinline)) void spin() { pause(); sink++; }
__attribute__((noinline)) void charge(int n) { spin(); sink++; }
__attribute__((noinline)) void shop::till::pay(int n) { charge(n); sink++; }
__attribute__((noinline)) void first(int n) { shop::till().pay(n); sink++; }
__attribute__((noinline)) void second(int n) { first(n); sink++; }
int main() { puts("ready"); fflush(stdout); second(1); }
"""


class Names(harness.TestCase):
    """Names that no demangler knows."""

    def stack(self, *args):
        directory = self.directory()
        source, program = (os.path.join(directory, name) for name in ("names.cpp", "names"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(NAMES % ("15a_quite_long_one" * 500))
        subprocess.run([harness.find_tool("g++"), "-O1", *args, source, "-o", program], check=True)
        rename = "--redefine-sym=spin=$s4shop4spinyyF"
        subprocess.run([harness.find_tool("objcopy"), rename, program], check=True)
        run = attach(self.start(program), duration="0.2")
        frames = run.pprof.samples[0].frames
        at = [frame.name for frame in frames].index("main")
        return frames[at + 1 : at + 6]

    def test_with_debug_information(self):
        """They are the source's. What the linker calls them keeps functions apart."""
        frames = self.stack("-g")
        self.assertEqual(
            [frame.name for frame in frames],
            ["second", "first", "shop::till::pay", "charge", "spin"],
        )
        self.assertEqual(frames[2].system_name, "_ZN4shop4till3payITk6NumberiEEvT_")

    def test_without(self):
        """They are the linker's, which differ even where they are cut. Swift's begin with "$"."""
        names = [frame.name for frame in self.stack()]
        self.assertEqual(names[3:], ["_Z6chargeITk6NumberiEvT_", "$s4shop4spinyyF"])
        self.assertEqual([name[:20] for name in names[:2]], ["_Z5firstI15a_quite_l"] * 2)
        self.assertNotEqual(names[0], names[1])


# As Cython makes C of a function, which calls a generator, whose body calls a method.
CYTHON = """
#include <stdio.h>
#include <unistd.h>
#define FRAME __attribute__((noinline))
volatile int sink;
static inline void __pyx_pf_4shop_4till_4Till_pay(int n) { pause(); sink += n; }
FRAME static void __pyx_pw_4shop_4till_4Till_1pay(int n) { __pyx_pf_4shop_4till_4Till_pay(n); sink++; }
FRAME static void __pyx_gb_4shop_4till_5generator(int n) { __pyx_pw_4shop_4till_4Till_1pay(n); sink++; }
FRAME void __pyx_pw_4shop_4till_4lines(int n) { sink += n; }
FRAME static void __pyx_pw_4shop_4till_1serve(int n) { __pyx_gb_4shop_4till_5generator(n); sink++; }
int main(void) { puts("ready"); fflush(stdout); __pyx_pw_4shop_4till_4lines(1); __pyx_pw_4shop_4till_1serve(1); }
"""


class Cython(harness.TestCase):
    def test_names(self):
        """Functions have the names that they have in Python; a generator's body has that of its function."""
        for debug in ("-g", "-g0"):
            directory = self.directory()
            source, program = (os.path.join(directory, name) for name in ("till.c", "till"))
            with open(source, "w", encoding="utf-8") as file:
                file.write(CYTHON)
            subprocess.run([harness.find_tool("gcc"), "-O1", debug, source, "-o", program], check=True)
            frames = attach(self.start(program), duration="0.2").pprof.samples[0].frames
            names = [frame.name for frame in frames]
            self.assertEqual(
                names[names.index("main") :][:4],
                ["main", "shop.till.serve", "shop.till.lines", "shop.till.Till.pay"],
            )
            self.assertEqual(frames[names.index("shop.till.serve")].system_name, "__pyx_pw_4shop_4till_1serve")


class Perl(harness.TestCase):
    def test_advice(self):
        """The summary says that no function of the script is shown, while it runs and while it waits."""
        for code in ("sub spin { 1 while 1 } spin()", "sub read_all { <STDIN> } read_all()"):
            target = self.start(harness.find_tool("perl"), "-e", f"$| = 1; print qq(ready\\n); {code}")
            run = attach(target, duration="0.3")
            self.assertIn("profiler: Perl functions are not shown: Devel::NYTProf shows them", run.stderr)
            self.assertNotIn("no function names", run.stderr)


class Cxx(harness.TestCase):
    def check(self, mode, expected):
        """Returns the frames of each build."""
        frames = []
        for build in BUILDS:
            target = self.start_fixture(build, mode)
            run = attach(target)
            self.assert_stacks(run.stacks(), rf"{MAIN};{expected}")
            self.assertEqual(run.summary.truncated, 0, run.stderr)
            target.end()
            frames.append([frame for sample in run.pprof.samples for frame in sample.frames])
        return frames

    def test_inlines(self):
        """Each frame has the line of the call in its own function, inlined or not."""
        with open(harness.HERE + "/fixtures/cxx.cpp", encoding="utf-8") as file:
            source = file.read().splitlines()
        calls = {
            "run_inlines": "inlined_outer(n);",
            "inlined_outer": "inlined_inner(n + 1);",
            "inlined_inner": "spin();",
        }
        for frames in self.check(
            "inlines",
            r"(?:void )?shapes::run_inlines<int>\(int\)"
            r";(?:shapes::)?inlined_outer(?:\(int\))?;(?:shapes::)?inlined_inner(?:\(int\))?"
            r";spin\(\)",
        ):
            for name, call in calls.items():
                found = [f for f in frames if re.search(rf"\b{name}\b", f.name)]
                self.assertTrue(found, name)
                for frame in found:
                    self.assertTrue(frame.file.endswith("cxx.cpp"), frame)
                    self.assertEqual(source[frame.line - 1].strip(), call, frame)
                    self.assertEqual(frame.inlined, name != "run_inlines")
            outer = next(f for f in frames if "run_inlines" in f.name)
            self.assertTrue(outer.system_name.startswith("_ZN6shapes11run_inlines"), outer.system_name)

    def test_throws(self):
        """In all of the unwinder's instructions, some of which have no names."""
        for build in BUILDS:
            with self.subTest(build):
                run = attach(self.start_fixture(build, "throws"), duration="1", hz=999)
                self.assert_stacks(run.stacks(), rf"{MAIN};shapes::catcher\(\)(?:;[^;]+)*", share=1)
                self.assertEqual(run.summary.truncated, 0, run.stderr)

    def test_rethrows(self):
        """At -O1 the handler is just behind the call that throws anew."""
        for build in (*BUILDS, "cxx-O1"):
            with self.subTest(build):
                run = attach(self.start_fixture(build, "rethrows"), duration="1", hz=999)
                self.assert_stacks(
                    run.stacks(), rf"{MAIN};shapes::second_catcher\(\)(?:;[^;]+)*", share=1
                )
                self.assertEqual(run.summary.truncated, 0, run.stderr)

    def test_virtual(self):
        self.check(
            "virtual",
            r"shapes::run_virtual\(shapes::Shape&\);shapes::Circle::area\(double\) const;"
            r"(?:[^;]+;){0,8}[^;]*lambda[^;]*;spin\(\)",
        )

    def test_catch_clause(self):
        self.check("catch", r"shapes::catch_it\(\);spin\(\)")

    def test_destructor_while_an_exception_passes(self):
        self.check("destructor", r"shapes::unwound\(int\);shapes::Guard::~Guard\(\);spin\(\)")

    def test_terminate(self):
        self.check("terminate", rf"shapes::thrower\(int\);{LIBRARY}on_terminate\(\);spin\(\)")


class Rust(harness.TestCase):
    def check(self, build):
        target = self.start_fixture(build, "spin")
        run = attach(target)
        self.assertEqual(run.summary.truncated, 0, run.stderr)
        crate = build.replace("-", "_")
        below = (
            r"(?:\w+::)?outer;(?:\w+::)?middle(?:::)?(?:<u64>)?;(?:[^;]*closure[^;]*;)?"
            r"(?:[^;]*black_box[^;]*;)?<(?:\w+::)?Leaf as (?:\w+::)?Work>::work(?:;[^;]+){0,3}"
        )
        worker = run.stacks("rust-worker")
        self.assert_stacks(worker, rf"(?:[^;]+;)+{below}")
        main_thread = run.stacks(crate[:15]) or run.stacks(build[:15])
        self.assert_stacks(main_thread, rf"_start;(?:[^;]+;)+(?:\w+::)?main;{below}")
        names = {frame for stack in worker for frame in stack}
        self.assertFalse([n for n in names if re.search(r"^_ZN|^_R[A-Z]|17h[0-9a-f]{16}E", n)])

    def test_legacy_names(self):
        self.check("rust-legacy")

    def test_v0_names(self):
        self.check("rust-v0")

    def test_blocked(self):
        target = self.start_fixture("rust-v0", "sleep")
        run = attach(target)
        self.assertEqual(run.summary.truncated, 0, run.stderr)
        self.assert_stacks(
            run.stacks("rust-worker"),
            r"(?:[^;]+;)+(?:\w+::)?outer;(?:[^;]+;)+<(?:\w+::)?Leaf as (?:\w+::)?Work>::work;"
            r"(?:[^;]+;)*[^;]*nanosleep[^;]*(?:;[^;]+)*",
        )


ROOT = r"created by main\.main;runtime\.goexit(?:\.abi0)?"
SPIN = r"main\.main\.func1;main\.spinOuter;main\.spinMiddle;main\.spinLeaf"
READ = r"main\.main\.func2;main\.readOuter;main\.readLeaf;(?:[^;]+;)*syscall\.[^;]+(?:;[^;]+)*"


class Go(harness.TestCase):
    def split(self, counts):
        """The stacks of the two goroutines."""
        spin = {s: n for s, n in counts.items() if any("spin" in f for f in s)}
        read = {s: n for s, n in counts.items() if any("readOuter" in f for f in s)}
        return collections.Counter(spin), collections.Counter(read)

    def check_whole(self, name):
        target = self.start_fixture(name)
        run = attach(target)
        spin, read = self.split(run.stacks())
        # Go preempts by a signal what runs for long. Where its threads have to wait for a CPU, it may
        # meanwhile be on none.
        self.assert_stacks(spin, rf"{ROOT};{SPIN}(?:;runtime\..+)?")
        waited = sum(t.kernel_delay_s or 0 for t in run.summary.threads) * run.summary.hz
        self.assertGreaterEqual(sum(spin.values()), run.summary.ticks * 0.9 - waited)
        self.assert_stacks(read, rf"{ROOT};{READ}")
        self.assertGreaterEqual(sum(read.values()), run.summary.ticks * 0.9)
        # The runtime's own threads: whole stacks, too.
        self.assertLessEqual(run.summary.truncated, run.summary.samples * 0.02, run.stderr)
        return run

    def test_stripped(self):
        """No tables are left but the runtime's own, which has all: rules, names, lines, inlines."""
        run = self.check_whole("golang-stripped")
        self.assertNotIn("frame pointer, in code", run.stderr)
        with open(harness.HERE + "/fixtures/golang.go", encoding="utf-8") as file:
            source = file.read().splitlines()
        frames = [f for s in run.pprof.samples for f in s.frames]
        callers = [f for f in frames if f.name == "main.spinOuter"]
        self.assertTrue(callers)
        for frame in callers:
            self.assertTrue(frame.file.endswith("golang.go"), frame)
            self.assertIn("spinMiddle(", source[frame.line - 1])
        self.assertTrue([f for f in frames if f.inlined and f.name == "syscall.Read"])


if __name__ == "__main__":
    harness.main()
