# SPDX-License-Identifier: MIT
"""Attach to C programs whose stacks are known: every frame of every stack, from the root on."""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import time

import harness
import pprof
from harness import (
    LEAVES, LIBRARY, MAIN, NO_STACK, THREAD, UNNAMED, attach, name_of, read_symbols,
)  # fmt: skip
from page import Page
from test_record import Recorded, report

CALLS = rf"many_arguments;through_qsort;{LIBRARY}compare;dynamic_frame;big_frame"


class Builds(harness.TestCase):
    """One program, built in every way."""

    # tests/oracle looks at each instruction of these builds and of others.
    BUILDS = ("calls-O0", "calls-O2", "calls-debug-frame", "calls-clang", "calls-static", "calls-static-pie",
              "calls-no-pie", "calls-debuglink")  # fmt: skip

    def test_whole(self):
        for number, name in enumerate(harness.a_few(self.BUILDS)):
            for mode, leaf in (("spin", "leaf_spin"), ("sleep", rf"leaf_sleep;sleep_ms(?:_\[i\])?{LEAVES}")):
                with self.subTest(name, mode=mode):
                    target = self.start_fixture(name, mode)
                    run = attach(target, form=("folded", "pprof")[number % 2])
                    self.assert_stacks(run.stacks(), rf"{MAIN};{CALLS};{leaf}")
                    self.assertEqual(run.summary.truncated, 0, run.stderr)
                    target.end()

    def test_known_names(self):
        """libc's functions, by the names that people know, whatever its tables call them."""
        target = self.start_fixture("calls-O2", "sleep")
        names = {frame for stack in attach(target).stacks() for frame in stack}
        self.assertLessEqual({"qsort_r", "clock_nanosleep"}, names)
        self.assertFalse([name for name in names if name.startswith("__GI_")])

    def test_stripped_keeps_exported_names(self):
        target = self.start_fixture("calls-exporting-stripped", "spin")
        run = attach(target)
        self.assert_stacks(run.stacks(), rf"(?:_start|{UNNAMED});{LIBRARY}main;{CALLS};leaf_spin")
        self.assertEqual(run.summary.truncated, 0, run.stderr)

    def test_stripped_static_has_addresses(self):
        """No name is left; the unstripped twin has the same addresses, and their names."""
        target = self.start_fixture("calls-static-stripped", "spin")
        run = attach(target, form="folded")
        self.assert_stacks(run.stacks(), rf"{UNNAMED}(?:;{UNNAMED})+")
        self.assertEqual(run.summary.truncated, 0, run.stderr)
        names = read_symbols(harness.fixture("calls-static"))
        named = collections.Counter()
        for stack, count in run.stacks().told().items():
            named[tuple(name_of(names, frame) for frame in stack)] += count
        self.assert_stacks(named, rf"{MAIN};{CALLS};leaf_spin")
        self.assertRegex(run.stderr, r"\d+ % of the samples have no function names, mostly in calls-static-stripped: install its debug symbols")


class Followed(harness.TestCase):
    def wait_sampled(self, run, target, n):
        """Waits for so many ticks, and until the target, which spins, has had a CPU since: what was
        due while it had none has its stack then."""
        run.wait_ticks(n)
        harness.wait_until_spinning(target)


class Shapes(Followed):
    """Stacks that are hard to unwind."""

    def test_recursion(self):
        for depth in (1, 100):
            target = self.start_fixture("recursion", depth)
            run = attach(target)
            # The first call is always of descend_even.
            turns = ";".join("descend_even" if i % 2 == 0 else "descend_odd" for i in range(depth))
            self.assert_stacks(run.stacks(), rf"{MAIN};{turns};bottom{LEAVES}")

    def test_deep_recursion(self):
        """More than 4,000 frames, running and blocked, each of them there."""
        depth = 4500
        for mode in ([], ["spin"]):
            target = self.start_fixture("recursion", depth, *mode)
            run = attach(target, hz=99)
            self.assertEqual(run.summary.truncated, 0, run.stderr)
            turns = "(?:descend_even;descend_odd;){%d}" % (depth // 2)
            self.assert_stacks(run.stacks(), rf"{MAIN};{turns}bottom{LEAVES}")
            target.end()

    def test_rooms(self):
        """Large buffers of which little is used, so that there are many gaps in the stack's memory."""
        for mode in "sleep", "spin":
            with self.subTest(mode=mode):
                target = self.start_fixture("rooms", 40, mode)
                run = attach(target, hz=99)
                self.assert_stacks(run.stacks(), rf"{MAIN};(?:enter;){{40}}bottom{LEAVES}")
                self.assertEqual(run.summary.truncated, 0, run.stderr)
                target.end()

    def test_max_depth_marks_truncated(self):
        """The leaf's side is kept, and the cut is seen, never silent."""
        target = self.start_fixture("recursion", 9000)
        for args, depth in (([], 8192), (["--max-depth=64"], 64), (["--max-depth=1"], 1)):
            run = attach(target, "--no-inlines", *args)
            self.assertEqual(run.summary.truncated, run.n_sampled, run.stderr)
            for stack in run.stacks().told():
                self.assertRegex(stack[0], r"^\[truncated: .+\]$")
                self.assertEqual(len(stack), depth + 1)
            if depth > 10:
                self.assert_stacks(
                    run.stacks(), rf"\[truncated: [^;]+\];(?:descend_\w+;)+bottom{LEAVES}"
                )
            self.assertEqual(list(run.summary.truncated_by.values()), [run.n_sampled])

    def test_far_deeper(self):
        """Of a stack that is far deeper than is shown by default less is copied, in each sample;
        but what was asked for is kept."""
        for mode in ([], ["spin"]):
            target = self.start_fixture("recursion", 100000, *mode)
            for args, depth in (([], 1024), (["--max-depth=8192"], 8192)):
                run = attach(target, "--no-inlines", *args, duration="0.5", hz=99)
                self.assertEqual(run.summary.truncated, run.n_sampled, run.stderr)
                self.assertEqual({len(stack) - 1 for stack in run.stacks().told()}, {depth})
            target.end()

    def test_not_as_deep_any_more(self):
        """That a stack was far deeper does not keep the next one from being shown whole: not if its
        frames are larger; and not for long if only those are which are not looked at."""
        for n_wide, n in ((500, 1), (300, 1500)):
            with self.subTest((n_wide, n)):
                for seconds in (4, 8, 16, 32):  # longer, where few of them could be looked at
                    stacks = self.deep_and_then_wide(n_wide, n, seconds)
                    wide = rf"{MAIN}(?:;descend_widely){{{n_wide}}}(?:;descend_\w+){{{n}}};bottom.*"
                    whole = self.matching(stacks, wide)
                    if whole > 0.4 * sum(stacks.values()):
                        break
                self.assertGreater(whole, 0.4 * sum(stacks.values()))

    def test_large_frame_at_the_base(self):
        """One frame of megabytes is not taken for thousands of frames."""
        target = self.start_fixture("large_base")
        for seconds in (4, 8, 16):  # longer, where it hardly had a CPU
            stacks = attach(target, "--no-inlines", "--max-overhead=0", duration=str(seconds), hz=299).stacks()
            shown = self.matching(stacks, r";not_too_deep\b")
            whole = self.matching(stacks, rf"^{MAIN};in_large(?:;descend){{7000}};not_too_deep\b")
            if whole > 0.6 * shown > 60:
                break
        self.assertGreater(whole, 0.6 * shown)

    def deep_and_then_wide(self, n_wide, n, seconds):
        target = self.start_fixture("recursion", 300000, "then", n_wide, n, stdin=subprocess.PIPE)
        run = harness.start_attach(
            target, "--no-inlines", "--max-overhead=0", "-d", str(seconds), hz=299
        )
        run.wait_attached()
        run.wait_ticks(150)
        os.write(target.process.stdin.fileno(), b"\n")
        stacks = run.finish().stacks()
        target.end()
        self.assertGreater(sum(n for stack, n in stacks.items() if len(stack) == 1025), 20)
        return stacks

    def test_signal_handlers(self):
        """Through the signal frame into the function that was interrupted."""
        for mode in ("handler", "altstack"):
            target = self.start_fixture("signals", mode)
            run = attach(target)
            self.assert_stacks(
                run.stacks(), rf"{MAIN};interrupted;[^;]+;handler;handler_work"
            )
            self.assertEqual(run.summary.truncated, 0, run.stderr)

    def test_signal_stack_below_a_deep_one(self):
        """That one was as deep as is shown does not keep the stack hidden that a signal
        interrupted: one or two stops are spent to learn of it. (A stop stands for several samples
        where the thread waits for a CPU, but for one entry of a timeline.)"""
        target = self.start_fixture("signal_stacks")
        for seconds in (4, 8, 16):  # longer, where it hardly had a CPU and was not seen in both
            recorded = Recorded(target, "--max-depth=64", duration=str(seconds), hz=99).finish()
            stacks = collections.Counter()
            for sample in pprof.Profile(report(recorded.data, "-f", "pprof")[0]).samples:
                stacks[sample.stack] += sample.count
            dived = self.matching(stacks, r"truncated.*dive;")
            handled = self.matching(stacks, r"handle;")
            if dived and handled > 100:
                break
        spent = self.matching(stacks, r"truncated.*handle;")
        told = recorded.run.stderr
        self.assertGreater(dived, 0, told)
        self.assertGreater(handled, 100, told)
        self.assertLessEqual(self.n_entries(recorded.data, r"truncated.*handle;"), 2, told)
        self.assertEqual(
            self.matching(stacks, r"run_small;interrupted;.*;handle;"), handled - spent, told
        )

    def n_entries(self, data, pattern):
        """How many entries of the timelines have such a stack."""
        file = json.loads(report(data, "-f", "speedscope")[0])
        names = [frame["name"] for frame in file["shared"]["frames"]]
        stacks = (
            ";".join(names[frame] for frame in sample)
            for profile in file["profiles"] for sample in profile["samples"]
        )  # fmt: skip
        return sum(bool(re.search(pattern, stack)) for stack in stacks)

    def matching(self, stacks, pattern):
        return sum(n for stack, n in stacks.items() if re.search(pattern, ";".join(stack)))

    def test_signal_at_first_instruction(self):
        """The pc of an interrupted function is exact: it is not a return address."""
        target = self.start_fixture("signals", "fault")
        run = attach(target)
        self.assert_stacks(
            run.stacks(), rf"{MAIN};faults_at_once;[^;]+;handler;handler_work"
        )

    def test_vdso(self):
        target = self.start_fixture("vdso")
        run = attach(target, hz=997)
        self.assert_stacks(run.stacks(), rf"{MAIN};read_clock{LEAVES}")
        self.assertEqual(run.summary.truncated, 0, run.stderr)
        in_vdso = sum(
            n for stack, n in run.stacks().items()
            if re.search(r"vdso|^__?kernel_|clock_gettime", stack[-1])
        )  # fmt: skip
        # While it gets no CPU it stays at one place: all samples of that time are one look.
        if run.summary.stopped > 0.5 * run.summary.ticks:
            self.assertGreater(in_vdso, run.n_sampled * 0.3, run.stacks())

    def test_dlopen(self):
        """Libraries that come and go are not mixed up, even at the same addresses."""
        target = self.start_fixture(
            "dlopen", harness.fixture("plugin_a.so"), harness.fixture("plugin_b.so")
        )
        run = harness.start_attach(target)
        run.wait_attached()
        self.wait_sampled(run, target, 150)
        target.process.stdin.write(b"x")
        target.read_until("ready")
        self.wait_sampled(run, target, 150)
        run.signal(signal.SIGINT)
        run.finish()
        main_thread = run.stacks(tid=target.pid)
        ours = "run_plugin;(?:plugin_a_work;plugin_a_inner|plugin_b_work;plugin_b_inner)"
        path = rf"{MAIN};(?:{ours}|dl(?:open|close|sym);.*)"
        self.assert_stacks(main_thread, path)
        for name in ("plugin_a_inner", "plugin_b_inner"):
            share = sum(n for s, n in main_thread.items() if s[-1] == name)
            self.assertGreater(share, 20, f"{name}: {main_thread}")
        files = {os.path.basename(m["filename"]) for m in run.pprof.mappings}
        self.assertLessEqual({"plugin_a.so", "plugin_b.so"}, files)

    def test_code_without_cfi(self):
        """Code that no file holds, with a frame pointer: whole stacks."""
        target = self.start_fixture("jit", "frame")
        run = attach(target)
        self.assert_stacks(run.stacks(), rf"{MAIN};run_code;[^;]+;from_code")

    def test_code_that_tells_its_return(self):
        """Without a frame pointer: what it takes off the stack until it returns is looked at."""
        target = self.start_fixture("jit", "none")
        run = attach(target)
        self.assert_stacks(run.stacks(), rf"{MAIN};run_code;[^;]+;from_code")
        self.assertRegex(run.stderr, r"[1-9]\d* of \d+ frames found by following the code")
        self.assertEqual({sample.labels.get("unwound") for sample in run.pprof.samples
                          if sample.stack != NO_STACK or not run.starved}, {"code"})  # fmt: skip

    def test_assembly_without_tables(self):
        for name in harness.a_few(("forever", "aligned", "kept", "jump", "realigned", "unframed", "endless")):
            with self.subTest(name):
                run = attach(self.start_fixture("no_tables", name))
                self.assert_stacks(run.stacks(), rf"{MAIN};call_it(?:;(?:{name}(?:;inner)?|leaf))?")
                self.assertEqual(run.summary.truncated, 0, run.stderr)

    def test_return_by_a_jump(self):
        """The caller's frame is not left out, though the frame pointer is the caller's."""
        for name in harness.a_few(("popped", "moved", "pushed")):
            with self.subTest(name):
                run = attach(self.start_fixture("no_tables", name))
                self.assert_stacks(run.stacks(), rf"{MAIN};call_framed;framed;{name}")
                self.assertEqual(run.summary.truncated, 0, run.stderr)

    def test_roots(self):
        """Whole is what ends at a thread's root; what ends by chance is marked."""
        for mode, root in {
            "top": "outermost",
            "page": "outermost",
            "midst": r"\[truncated: no return address\];outermost",
            "thread": "enter_thread;outermost",
            "chance": r"\[truncated: no unwinding rule\];without_tables;outermost",
            "boundary": r"\[truncated: no unwinding rule\];without_tables;outermost",
            "boundary-2": r"\[truncated: no unwinding rule\];without_tables;outermost",
            "null": r"\[truncated: no return address\];replace_return_address",
        }.items():
            with self.subTest(mode):
                run = attach(self.start_fixture("roots", mode))
                counts = collections.Counter(
                    {stack: n for stack, n in run.stacks().items() if "base" in stack}
                )
                self.assert_stacks(counts, rf"{root};base")

    def test_stacks_elsewhere(self):
        """Callers on another stack: the first look at it shows where that is."""
        for mode, callers in {"elsewhere": "call_elsewhere", "lisp": "call_lisp;lisp"}.items():
            with self.subTest(mode):
                run = attach(self.start_fixture("roots", mode))
                marked = "[truncated: unreadable memory]"
                counts = run.stacks()
                for stack in [stack for stack in counts if stack[0] == marked]:
                    del counts[stack]
                self.assert_stacks(counts, rf"{MAIN};{callers};outermost;base")
                # Ticks at which it waits for a CPU count for what is seen when it has one.
                waited = run.summary.ticks - run.summary.stopped
                self.assertLessEqual(run.summary.truncated, 2 + waited, run.stderr)

    def test_code_that_cannot_be_unwound(self):
        """A circle of frame pointers: the stack ends, and says so."""
        target = self.start_fixture("jit", "jump")
        run = attach(target)
        self.assert_stacks(run.stacks(), r"\[truncated: [^;]+\];(?:[^;]+;)*from_code")
        self.assertEqual(run.summary.truncated, run.n_sampled)

    def test_frame_pointer_that_is_none(self):
        """It points to a function's address, but that is no return address."""
        run = attach(self.start_fixture("jit", "pointer"))
        self.assert_stacks(run.stacks(), r"\[truncated: no unwinding rule\];\[anon[^;]+;from_code")


class Threads(harness.TestCase):
    def test_32_threads(self):
        target = self.start_fixture("threads", 32, 6)
        run = attach(target)
        leaves = ("futex_here", "pipe_here", "sleep_here")
        self.assertEqual(run.summary.n_threads, 33)
        for i in range(32):
            leaf = "spin_here" if i < 6 else leaves[i % 3] + LEAVES
            counts = run.stacks(f"worker-{i:02}")
            self.assertEqual(sum(counts.values()), run.summary.ticks, f"worker-{i:02}")
            self.assert_stacks(counts, rf"{THREAD}worker;{leaf}")
        states = collections.Counter()
        for sample in run.pprof.samples:
            if sample.stack != NO_STACK or not run.starved[sample.tid]:
                states[(sample.stack[-1] == "spin_here", sample.state)] += sample.count
        # One may wait for a CPU, or be on its way back to where a stop has found it asleep.
        self.assertLessEqual({state for spins, state in states if spins}, {"running", "runnable"})
        waiting = sum(n for (spins, _), n in states.items() if not spins)
        self.assertGreater(states[False, "sleeping"], 0.9 * waiting)

    def test_churning_threads(self):
        target = self.start_fixture("churn", 200, 2000)
        run = harness.start_attach(target, "--max-overhead=0", hz=499)
        run.wait_attached()
        run.wait_ticks(500)  # a tick takes up to nine pauses
        target.process.stdin.write(b"x")
        run.finish()
        self.assertGreater(run.summary.n_threads, 20)
        brief = {s: n for s, n in run.stacks().items() if "brief" in s}
        self.assertGreater(sum(brief.values()), 50)
        whole = rf"{THREAD}brief(?:;brief_work{LEAVES}|;.*)?"
        self.assert_stacks(brief, whole, share=0.95)
        said = target.rest()
        self.assertGreaterEqual(int(said[-1].split()[0]), 2000)

    def test_a_tid_means_its_process(self):
        target = self.start_fixture("threads", 3)
        tid = max(harness.tids_of(target.pid))
        run = harness.Run(["-p", tid, "-d", "0.2", "-v"], target_pid=target.pid).finish()
        self.assertEqual(run.summary.n_threads, 4)

    def test_main_thread_has_ended(self):
        target = self.start_fixture("leader_exit")
        run = attach(target)
        self.assert_stacks(run.stacks("survivor"), rf"{THREAD}survive;survive_inner")
        self.assertGreaterEqual(sum(run.stacks("survivor").values()), run.summary.ticks - 1)

    def test_strange_names(self):
        target = self.start_fixture("strange_names")
        for form in ("pprof", "folded"):
            run = attach(target, "-t", form=form, duration="0.2")
            self.assertEqual(run.summary.n_threads, 9)
        names = {stack[0] for stack in run.folded}
        self.assertIn("two__spaces", names)
        self.assertIn("semi:colon", names)
        self.assertIn("\u00e9t\u00e9", names)


class Several(harness.TestCase):
    """Several processes in one run, as -p $(pidof nginx) has them."""

    def setUp(self):
        self.spins, self.sleeps = (self.start_fixture("calls-O2", mode) for mode in ("spin", "sleep"))

    def pids(self):
        return [str(self.spins.pid), str(self.sleeps.pid)]

    def test_together(self):
        """Each is a root, once; one that is not there is left out."""
        run = harness.Run(["-p", ",".join([*self.pids(), "999999999", self.pids()[0]]), "-d", "0.5",
                           "-o", "out.pb.gz"], target_pid=self.spins.pid).finish()  # fmt: skip
        counts = collections.Counter()
        for sample in run.pprof.samples:
            counts[str(sample.pid)] += sample.count
        self.assertEqual(set(counts), set(self.pids()))
        self.assertEqual(len(set(counts.values())), 1, counts)
        self.assertIn("left out: no process has the pid 999999999", run.stderr)
        leaves = {sample.stack[-1] for sample in run.pprof.samples if sample.pid == self.spins.pid}
        self.assertIn("leaf_spin", leaves)

    def test_one_ends(self):
        """The others are sampled on, also after the first."""
        run = harness.Run(["-p", *self.pids(), "-o", "out.wprof"])
        run.wait_attached()
        self.spins.end()
        n = run.n_pauses()
        harness.wait_for(lambda: run.n_pauses() > n + 30, "further ticks")
        self.sleeps.end()
        run.finish()
        self.assertGreater(run.summary.ticks, 30)

    def ask(self, *words):
        return subprocess.run([harness.PROFILER, *words], capture_output=True, text=True, check=True).stdout

    def test_dump(self):
        text = self.ask("dump", *self.pids())
        for pid in self.pids():
            self.assertIn(f" {pid} (of {pid})", text)

    def test_top(self):
        rows = json.loads(self.ask("top", *self.pids(), "-n", "1", "--json", "--idle"))["threads"]
        self.assertEqual({str(row["pid"]) for row in rows}, set(self.pids()))


class Titles(harness.TestCase):
    """Processes of one program are known by what they write over their command lines, as nginx and postgres do."""

    CODE = "$| = 1; $0 = shift; print qq(ready\\n); $work = shift; while (1) { sleep 1000 if $work eq 'sleep' }"

    def start_titled(self, title, work):
        return self.start(harness.find_tool("perl"), "-e", self.CODE, os.fsdecode(title), work)

    def test_named(self):
        """One that runs, one that sleeps all the time, and one whose title is not for a screen."""
        titles = {
            self.start_titled("shop: worker process 1", "run").pid: "shop: worker process 1",
            self.start_titled("shop: worker process 2", "sleep").pid: "shop: worker process 2",
            self.start_titled(b"shop: \x1b[31m\n\xff" + b";" * 200, "run").pid: "shop: _[31m_\ufffd" + ";" * 110 + "...",
        }  # fmt: skip
        pids = ",".join(map(str, titles))
        path = os.path.join(self.directory(), "out.html")
        subprocess.run([harness.PROFILER, "-q", "-p", pids, "-d", "0.5", "-o", path], check=True)
        with open(path, "rb") as file:
            page = Page(file.read())
        self.assertEqual({thread["pid"]: thread["name"] for thread in page.threads}, titles)
        self.assertEqual({int(pid): name for pid, name in page.meta["processes"].items()}, titles)
        told = [harness.PROFILER, "top", pids, "-n", "1", "--json", "--idle"]
        rows = json.loads(subprocess.run(told, capture_output=True, check=True).stdout)["threads"]
        self.assertEqual({row["pid"]: row["name"] for row in rows}, titles)


class Blocked(harness.TestCase):
    """Threads in every kind of blocking call, with whole stacks; torture looks whether they are disturbed."""

    def test_blocking_calls(self):
        target = self.start_fixture("blocking")
        self.assertGreater(len(target.said), 25)
        run = attach(target)
        self.assertIsNone(target.process.poll(), "a call came back")
        for name in target.said:
            with self.subTest(name):
                counts = run.stacks(name)
                self.assert_stacks(counts, rf"{THREAD}block;in_{name}(?:;[^;]+){{1,4}}", share=1)
                states = {s.state for s in run.pprof.samples if s.thread == name}
                self.assertEqual(states, {"sleeping"})
        self.assertEqual(run.summary.truncated, 0, run.stderr)

    def test_disk(self):
        directory = self.directory(on_disk=True)
        target = self.start_fixture("disk", os.path.join(directory, "file"))
        run = attach(target, duration="1", hz=499)
        self.assert_stacks(
            run.stacks(), rf"{MAIN};write_disk(?:;(?:write_block|sync_block){LEAVES})?"
        )
        self.assertGreater(sum(n for s, n in run.stacks().items() if "sync_block" in s), 10)

    def test_stopped_target_stays_stopped(self):
        target = self.start_fixture("calls-O2", "spin")
        harness.wait_until_spinning(target)
        os.kill(target.pid, signal.SIGSTOP)
        harness.wait_for(lambda: harness.read_status(target.pid)["State"][0] == "T", "the stop")
        run = attach(target)
        self.assertEqual(harness.read_status(target.pid)["State"][0], "T")
        self.check_stopped(target)
        self.assertEqual({s.state for s in run.pprof.samples}, {"stopped"})
        self.assertNotIn("sleeping threads", run.stderr)
        self.assert_stacks(run.stacks(), rf"{MAIN};{CALLS};leaf_spin")
        os.kill(target.pid, signal.SIGCONT)
        harness.wait_for(lambda: harness.read_status(target.pid)["State"][0] == "R", "the end")

    def check_stopped(self, target):
        """Stopped, and getting nothing done. A sample wakes it for a moment, which takes it some CPU
        time, and for longer where others have the CPUs: a look may find it on its way to the next
        stop."""
        before, start_s = harness.cpu_ticks(target.pid), time.monotonic()
        time.sleep(0.1)
        harness.wait_for(lambda: harness.read_status(target.pid)["State"][0] == "T", "its stop")
        spent_s = (harness.cpu_ticks(target.pid) - before) / 100
        self.assertLessEqual(spent_s, 0.01 + 0.1 * (time.monotonic() - start_s))

    def test_stop_and_continue_meanwhile(self):
        target = self.start_fixture("calls-O2", "spin")
        run = harness.start_attach(target)
        run.wait_attached()
        os.kill(target.pid, signal.SIGSTOP)
        self.check_stopped(target)  # it stops when it has got a CPU
        run.wait_ticks(100)
        self.check_stopped(target)
        os.kill(target.pid, signal.SIGCONT)
        run.wait_ticks(100)
        run.signal(signal.SIGINT)
        run.finish()
        states = collections.Counter()
        for sample in run.pprof.samples:
            states[sample.state] += sample.count
        self.assertGreater(states["stopped"], 20, states)
        self.assertGreater(states["running"] + states["runnable"], 20, states)


class Files(Followed):
    """The file that runs is read, whatever stands under its name now."""

    def copy(self, name):
        path = os.path.join(self.directory(), "program")
        shutil.copy(harness.fixture(name), path)
        return path

    def test_deleted(self):
        path = self.copy("calls-O2")
        target = self.start(path, "spin")
        os.unlink(path)
        self.assert_stacks(attach(target).stacks(), rf"{MAIN};{CALLS};leaf_spin")

    def test_replaced(self):
        path = self.copy("calls-O2")
        target = self.start(path, "spin")
        os.unlink(path)
        shutil.copy(harness.fixture("threads"), path)
        self.assert_stacks(attach(target).stacks(), rf"{MAIN};{CALLS};leaf_spin")

    def test_other_mount_namespace(self):
        harness.need(os.geteuid() == 0, "needs root for a mount namespace")
        directory = self.directory()
        script = 'mount -t tmpfs none "$1" && cp "$2" "$1/program" && exec "$1/program" spin'
        target = self.start(
            *harness.unshare("-m"), "sh", "-c", script, "sh",
            directory, harness.fixture("calls-O2"),
        )  # fmt: skip
        self.assertFalse(os.path.exists(os.path.join(directory, "program")))
        self.assert_stacks(attach(target).stacks(), rf"{MAIN};{CALLS};leaf_spin")

    def test_exec(self):
        """A program that becomes another one while it is watched, from any of its threads."""
        for who in ("leader", "thread"):
            target = self.start_fixture("exec", who, harness.fixture("calls-O2"), "spin")
            run = harness.start_attach(target)
            run.wait_attached()
            harness.wait_until_spinning(target)
            target.process.stdin.write(b"x")
            target.read_until("ready")
            self.wait_sampled(run, target, 100)
            run.signal(signal.SIGINT)
            run.finish()
            before = sum(n for s, n in run.stacks().items() if "before_exec" in s)
            after = {s: n for s, n in run.stacks().items() if "leaf_spin" in s}
            self.assertGreater(before, 5, f"{who}: {run.stacks()}")
            self.assertGreater(sum(after.values()), 20, f"{who}: {run.stacks()}")
            self.assert_stacks(after, rf"{MAIN};{CALLS};leaf_spin", share=1)
            target.end()


if __name__ == "__main__":
    harness.main()
