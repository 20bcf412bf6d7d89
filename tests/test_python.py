# SPDX-License-Identifier: MIT
"""Python's own frames among the machine's: what a program says of its stacks is what is shown."""

import collections
import glob
import json
import os
import re
import signal
import subprocess
import sys

import harness
from harness import attach

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
PROGRAM = os.path.join(harness.HERE, "fixtures", "python_stacks.py")

sys.path.insert(0, os.path.dirname(PROGRAM))
import python_stacks  # noqa: E402

# A program that sleeps in inner, below outer.
SLEEPS = """\
import time
def outer(): inner()
def inner():
    print('ready', flush=True)
    time.sleep(300)
outer()
"""

# Interpreters beside Debian's, of which each version has structures of its own: (program, environment).
OTHERS = {
    os.path.basename(os.path.dirname(os.path.dirname(program))): (
        program, {**os.environ, "LD_LIBRARY_PATH": os.path.join(program, "..", "..", "lib")}
    )
    for program in glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3.[0-9]*"))
    if os.access(program, os.X_OK) and program[-1].isdigit()
}  # fmt: skip


def sysconfig_of(python):
    """What an interpreter was built with."""
    script = "import json, sysconfig; print(json.dumps(sysconfig.get_config_vars()))"
    return json.loads(subprocess.run([python, "-c", script], stdout=-1, check=True).stdout)


def python_frames(sample):
    """(name, file, line) of each, root first."""
    return [
        (frame.name, frame.file, frame.line)
        for frame in sample.frames
        if frame.file.endswith(".py") or frame.file.startswith("<")
    ]


class Python(harness.TestCase):
    def start_program(self, *args, python=PYTHON, **popen):
        return self.start(python, PROGRAM, *args, **popen)

    def test_parked(self):
        """Sleeping threads, without a stop: every name, file and line."""
        path = os.path.join(self.directory(), "stacks.json")
        target = self.start_program("parked", path)
        self.check_parked(attach(target), path)

    def check_parked(self, run, path):
        with open(path, encoding="utf-8") as file:
            told = {int(tid): [tuple(frame) for frame in stack] for tid, stack in json.load(file).items()}
        self.assertEqual(len(told), len(python_stacks.KINDS))
        seen = {}
        for sample in run.pprof.samples:
            if sample.tid in told:
                self.assertEqual(python_frames(sample), told[sample.tid])
                self.assertNotIn("function_call", sample.stack)  # 3.6: it leads to functions alone
                seen[sample.tid] = sample
        self.assertEqual(seen.keys(), told.keys())
        self.assertIn("never paused the target", run.stderr)
        callback = next(
            sample.stack for tid, sample in seen.items() if "from_c" in sample.stack
        )
        # C between Python: who calls back stands between who called and what is called.
        self.assertLess(callback.index("from_c"), callback.index("qsort_r"))
        self.assertLess(callback.index("qsort_r"), callback.index("calls"))

    def test_other_interpreters(self):
        """Those that are installed, all at once: parked and running."""
        if not OTHERS:
            self.skipTest("pyenv has no other interpreters here")
        directory = self.directory()
        runs = {}
        for name, (python, env) in OTHERS.items():
            path = os.path.join(directory, name)
            parked = self.start_program("parked", path, python=python, env=env)
            running = self.start_program("running", python=python, env=env)
            runs[name] = [
                (target, harness.start_attach(target, "-d", "0.5", hz=199))
                for target in (parked, running)
            ]
        for name, started in runs.items():
            with self.subTest(interpreter=name):
                parked, running = [
                    attach(target, duration="1") if run.finish().starved else run
                    for target, run in started
                ]
                self.check_parked(parked, os.path.join(directory, name))
                self.assertIn("middle", {f for s in running.pprof.samples for f in s.stack})
                for sample in running.pprof.samples:
                    self.check_edges(sample)

    def test_no_work(self):
        """Workers with an empty queue, and the main thread that waits for them at its end, wait for no lock."""
        script = (
            "import queue, threading\n"
            "empty = queue.Queue()\n"
            "for i in range(2): threading.Thread(target=empty.get, name='idle').start()\n"
            "print('ready', flush=True)\n"
        )
        for name, (python, env) in harness.a_few({"Debian's": (PYTHON, None), **OTHERS}.items()):
            with self.subTest(name):
                target = self.start(python, "-c", script, env=env)
                told = {}
                while not {"get", "_shutdown"} <= told.keys():
                    for sample in attach(target, duration="0.2").pprof.samples:
                        told |= {function.rpartition(".")[2]: sample.kind for function in sample.stack}
                self.assertEqual((told["get"], told["_shutdown"]), ("condition", "condition"))

    def test_idle_pool(self):
        """A ThreadPoolExecutor without work, whose queue has no names of functions in Debian's Python."""
        script = (
            "import concurrent.futures, time\n"
            "pool = concurrent.futures.ThreadPoolExecutor(1)\n"
            "pool.submit(int).result()\n"
            "print('ready', flush=True)\n"
            "time.sleep(300)\n"
        )
        samples = attach(self.start(PYTHON, "-c", script), duration="0.5").pprof.samples
        kinds = {sample.kind for sample in samples if "_worker" in sample.stack and sample.state == "sleeping"}
        self.assertEqual(kinds, {"condition"})

    def test_deep(self):
        """A recursion of 5,000 and of 50,000 calls: the innermost functions, the outermost ones where a
        version has them at a known place, and the thread's name."""
        script = (
            "import sys, threading, time\n"
            "def outermost(): return deep(int(sys.argv[1]))\n"
            "def deep(n): return deep(n - 1) if n else wait()\n"
            "def wait():\n"
            "    print('ready', flush=True)\n"
            "    time.sleep(300)\n"
            "sys.setrecursionlimit(2000000)\n"
            "threading.stack_size(1000 << 20)\n"
            "threading.Thread(target=outermost, daemon=True, name='deep').start()\n"
            "time.sleep(300)\n"
        )
        for number, (name, (python, env)) in enumerate(harness.a_few({"Debian's": (PYTHON, None), **OTHERS}.items())):
            n = (50000, 5000)[number % 2]
            with self.subTest(name, n=n):
                target = self.start(python, "-c", script, n, env=env)
                # Up to 3.10 all frames would have to be read for the name.
                is_old = name != "Debian's" and int(name.split(".")[1]) <= 10
                self.check_deep(attach(target), n, None if is_old and n > 5000 else "deep")
                target.end()

    def check_deep(self, run, n, name):
        samples = [s for s in run.pprof.samples if "wait" in s.stack]
        self.assertTrue(samples)
        if name:
            self.assertEqual({s.thread for s in samples}, {name})
        for sample in samples:
            n_deep = sample.stack.count("deep")
            self.assertGreater(n_deep, min(n, 1000), sample.stack[:5])
            self.assertEqual(sample.stack[sample.stack.index("wait") - 1], "deep")
            self.assertNotIn("[python+0x0]", sample.stack)
            if n_deep < n:
                cut = "[more calls]" in sample.stack or sample.stack[0].startswith("[truncated")
                self.assertTrue(cut, sample.stack[:9])
            if "outermost" in sample.stack:
                at = sample.stack.index("outermost")
                self.assertIn(sample.stack[at + 1], "deep")

    def test_compiled(self):
        """A function that Nuitka has made C of has no instructions: it sets the line in its frame's object."""
        script = (
            "import ctypes, sys, time\n"
            "def wait():\n"
            "    frame = sys._getframe(1)\n"
            "    inner = ctypes.c_void_p.from_address(id(frame) + 24).value\n"
            "    ctypes.c_int.from_address(id(frame) + 40).value = 77\n"
            "    ctypes.c_void_p.from_address(inner + 56).value = id(frame.f_code)\n"
            "    print('ready', flush=True)\n"
            "    time.sleep(300)\n"
            "def compiled(): wait()\n"
            "compiled()\n"
        )
        found = {name: other for name, other in OTHERS.items() if int(name.split(".")[1]) in (11, 12, 13)}
        for name, (python, env) in {"Debian's": (PYTHON, None), **found}.items():
            with self.subTest(name):
                target = self.start(python, "-c", script, env=env)
                for sample in attach(target, duration="0.2").pprof.samples:
                    lines = [line for function, _, line in python_frames(sample) if function == "compiled"]
                    self.assertEqual(lines, [77])
                target.end()

    def test_replaced(self):
        """A library's own loop: pyston_lite's is known; of another one it is said that no function is shown."""
        code = (
            "#include <Python.h>\n"
            "#include <frameobject.h>\n"
            "#include <unistd.h>\n"
            "PyObject *NAME(PyThreadState *thread, PyFrameObject *frame, int flag)\n"
            "{\n"
            "    thread->frame = frame;\n"
            "#if PY_MINOR_VERSION >= 10\n"
            "    CFrame call = {.previous = thread->cframe};\n"
            "    thread->cframe = &call;\n"
            "#endif\n"
            "    PyEval_SaveThread();\n"
            "    if (write(1, \"ready\\n\", 6) == 6)\n"
            "        for (;;) pause();\n"
            "    return (PyObject *)frame;\n"
            "}\n"
            "void begin(void) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), NAME); }\n"
        )
        script = (
            "import _thread, ctypes, sys, time\n"
            "def hidden(): pass\n"
            "ctypes.PyDLL(sys.argv[1]).begin()\n"
            "_thread.start_new_thread(hidden, ())\n"
            "time.sleep(300)\n"
        )
        found = {name: other for name, other in OTHERS.items() if int(name.split(".")[1]) in (9, 10)}
        for name, (python, env) in found.items():
            for library, function in (("pyston_lite", "_PyEval_EvalFrame_AOT_Interpreter"), ("other", "evaluate")):
                with self.subTest(name, library=library):
                    path = os.path.join(self.directory(), library + ".so")
                    headers = "-I" + sysconfig_of(python)["INCLUDEPY"]
                    command = ["cc", "-O1", "-shared", "-fPIC", "-DNAME=" + function, headers, "-xc", "-", "-o", path]
                    subprocess.run(command, input=code, encoding="ascii", check=True)
                    target = self.start(python, "-c", script, path, env=env)
                    run = attach(target, duration="0.2")
                    stacks = [sample.stack for sample in run.pprof.samples if "pause" in sample.stack]
                    self.assertTrue(stacks)
                    for stack in stacks:
                        self.assertEqual("hidden" in stack, library == "pyston_lite", stack)
                        self.assertEqual(function in stack, library == "other", stack)
                    said = "the interpreter's own loop does not run them" in run.stderr
                    self.assertEqual(said, library == "other", run.stderr)
                    target.end()

    def test_second(self):
        """A library that has begun an interpreter of its own is named; one that lies idle is not."""
        code = (
            "unsigned long Py_Version = 0x030b00f0, PyCode_Type[64], PyUnicode_Type[64];\n"
            "unsigned long _PyRuntime[512] = {[5] = BEGUN};\n"
            "void _PyEval_EvalFrameDefault(void) {}\n"
        )
        for begun in (0, 4096):
            with self.subTest(begun=begun):
                library = os.path.join(self.directory(), "second.so")
                command = [harness.find_tool("gcc"), f"-DBEGUN={begun}", "-shared", "-fPIC", "-xc", "-", "-o", library]
                subprocess.run(command, input=code, encoding="ascii", check=True)
                script = (
                    f"import ctypes, time; library = ctypes.CDLL({library!r}); "
                    "print('ready', flush=True); time.sleep(300)"
                )
                run = attach(self.start(PYTHON, "-c", script), duration="0.2")
                said = "profiler: second.so has a Python of its own: its functions are not shown\n"
                self.assertEqual(said in run.stderr, begun > 0, run.stderr)
                self.assertIn("<module>", run.pprof.samples[0].stack)

    def test_trampolines(self):
        """With -X perf a piece of code stands between the calls of the loop, for perf: each function
        is shown once nevertheless."""
        found = {name: other for name, other in OTHERS.items() if int(name.split(".")[1]) >= 12}
        for name, (python, env) in found.items():
            for option in ("perf", "perf_jit"):
                if option == "perf_jit" and name.startswith("3.12"):
                    continue
                with self.subTest(name, option=option):
                    target = self.start(python, "-X", option, "-c", SLEEPS, env=env)
                    for sample in attach(target).pprof.samples:
                        at = sample.stack.index("<module>")
                        self.assertEqual(sample.stack[at : at + 3], ("<module>", "outer", "inner"))
                        made = [f for f in sample.stack if re.search(r"^py|anon|jit|:", f)]
                        self.assertEqual([f for f in made if "pysleep" not in f], [])
                    target.end()

    def start_linked_in(self, python, strip=False):
        """A program that an interpreter is a part of, which exports nothing; None: its library is not there."""
        config = sysconfig_of(python)
        library = os.path.join(config["LIBPL"], config["LIBRARY"])
        if not os.path.exists(library):
            return None
        program = os.path.join(self.directory(), "p")
        code = (
            "#include <Python.h>\n"
            "int main(int argc, char **argv)\n"
            "{\n"
            "    Py_InitializeEx(0);\n"
            "    return PyRun_SimpleString(argv[1]);\n"
            "}\n"
        )
        command = ["cc", "-no-pie", "-o", program, "-xc", "-", "-xnone", "-I" + config["INCLUDEPY"], library]
        libraries = (config["LIBS"] + " -lexpat -lz -lm").split()
        subprocess.run(command + libraries + strip * ["-s"], input=code, encoding="ascii", check=True)
        return self.start(program, SLEEPS)

    def test_linked_in(self):
        """An interpreter that is a part of the program, which exports nothing."""
        target = self.start_linked_in(PYTHON)
        if not target:
            self.skipTest("Debian's python3-dev is not there")
        for sample in attach(target).pprof.samples:
            at = sample.stack.index("<module>")
            self.assertEqual(sample.stack[at : at + 3], ("<module>", "outer", "inner"))

    def test_stripped(self):
        """Likewise, without a symbol table: from 3.10 on it is said that there is one."""
        for name, (python, _) in OTHERS.items():
            target = self.start_linked_in(python, strip=True) if int(name.split(".")[1]) >= 13 else None
            if target:
                said = "Python are not shown: the interpreter in the program has no symbols"
                self.assertIn(said, attach(target, duration="0.2").stderr)

    def test_found_early(self):
        """Since 3.13 the interpreter tells its version itself, by what it has not touched yet when its
        process has just executed it: it is looked for again."""
        found = [other for name, other in OTHERS.items() if int(name.split(".")[1]) >= 13]
        if not found:
            self.skipTest("pyenv has no such interpreter here")
        python, env = found[0]
        script = (
            "import os, sys, time\n"
            "def work():\n"
            "    until = time.monotonic() + 0.05\n"
            "    while time.monotonic() < until: sum(range(1000))\n"
            "work()\n"
            "left = int(sys.argv[2]) - 1\n"
            "left and os.execv(sys.executable, [sys.executable, '-c', sys.argv[1], sys.argv[1], str(left)])"
        )
        run = harness.wrap([python, "-c", script, script, 20], "--max-overhead=0", hz=997, env=env)
        self.assertNotIn("is not known to this profiler", run.stderr)
        self.assertGreater(sum(s.count for s in run.pprof.samples if "work" in s.stack), 0)
        lost = [
            sample.stack for sample in run.pprof.samples
            if {"Py_RunMain", "_PyEval_EvalFrameDefault"} <= set(sample.stack) and not python_frames(sample)
        ]  # fmt: skip
        counted = re.search(r"(\d+) stacks? without the frames of Python", run.stderr)
        self.assertLessEqual(len(lost), int(counted[1]) if counted else 0, lost)

    def test_never_told(self):
        """What tells the version never comes into memory: the stacks that show the loop alone are counted."""
        target = self.start_fixture("false_python", 0)
        run = attach(target, hz=199)
        found = re.search(r"(\d+) stacks? without .*: (\d+) of an interpreter whose version was not in", run.stderr)
        self.assertTrue(found, run.stderr)
        self.assertEqual(found[1], found[2])
        shown = [s.tid for s in run.pprof.samples if "_PyEval_EvalFrameDefault" in s.stack]
        self.assertEqual(len(set(shown)), 3)
        self.assertGreaterEqual(int(found[1]), len(shown))
        dump = harness.Run(["dump", target.pid], target_pid=target.pid).finish()
        self.assertRegex(dump.stderr, r"\d stacks? without the frames of Python: \d of an interpreter whose version")
        quiet = harness.Run(["dump", "-q", target.pid], target_pid=target.pid).finish()
        self.assertNotIn("stacks without", quiet.stderr)

    def check_edges(self, sample):
        edges = python_stacks.edges()
        frames = [frame for frame in python_frames(sample) if frame[1] == PROGRAM]
        for caller, callee in zip(frames, frames[1:]):
            if caller[0] in ("left", "right", "middle", "gathered") and callee[0] != "<genexpr>":
                self.assertEqual(edges.get(caller[2]), callee[0], f"{frames}")

    def test_running(self):
        """Stopped in the midst of anything: each function was called from the line of its caller."""
        target = self.start_program("running")
        names, n_running = set(), 0
        for _ in range(10):  # on a busy machine it may have a CPU seldom, and be seen at few places
            running = self.see_running(target)
            names |= {name for sample in running for name in sample.stack}
            n_running += len(running)
            if names >= {"run", "middle", "left", "right", "gathered", "leaf"} and n_running > 10:
                return
        self.fail(f"{n_running} stacks, of {names}")

    def see_running(self, target):
        run = attach(target, duration="1", hz=499)
        running = [s for s in run.pprof.samples if any("middle" == name for name in s.stack)]
        for sample in running:
            self.check_edges(sample)
        # A few are between two calls, where the frames do not fit; they are told.
        bare = [s for s in run.pprof.samples if "_PyEval_EvalFrameDefault" in s.stack and "run" not in s.stack]
        n_bare = sum(sample.count for sample in bare)
        waited = sum(self.waited_ticks(run, tid) for tid in {sample.tid for sample in bare})
        self.assertLess(10 * (n_bare - waited), run.summary.samples)
        if n_bare:
            self.assertIn("without the frames of Python", run.stderr)
        return running

    def waited_ticks(self, run, tid):
        """How many ticks a thread that ran had no CPU for, on a busy machine: what it is shown at then
        is where it goes on, again and again."""
        return sum(t.kernel_delay_s for t in run.summary.threads if t.tid == tid) * run.summary.hz

    def test_forked(self):
        """A child whose thread has the tid of another, as far as the interpreter knows."""
        target = self.start_program("forked")
        child = harness.wait_for(lambda: harness.children(target.pid), "a child")[0]
        run = attach(child, hz=499)
        self.assertIn("middle", {name for sample in run.pprof.samples for name in sample.stack})
        for sample in run.pprof.samples:
            self.check_edges(sample)

    def test_no_stale_names(self):
        """Functions that come and go at the same addresses."""
        target = self.start_program("churn")
        n_named = 0
        for _ in range(10):  # on a busy machine it may have a CPU seldom
            n_named += self.see_made(attach(target, duration="1", hz=499))
            if n_named > 10:
                return
        self.fail(f"{n_named} stacks with functions that are made")

    def see_made(self, run):
        n_named = 0
        for sample in run.pprof.samples:
            numbers = set()
            for name, file, line in python_frames(sample):
                match = re.fullmatch(r"([fg])_(\d+)", name)
                if match:
                    number = int(match[2])
                    self.assertEqual(file, f"<{number}>")
                    first = number % 50 + (1 if match[1] == "f" else 3)
                    self.assertIn(line, (first, first + 1))
                    numbers.add(number)
            self.assertLessEqual(len(numbers), 1, sample.stack)
            n_named += len(numbers)
        return n_named

    def test_new_threads(self):
        """One that sleeps as soon as it begins is shown as itself while it does."""
        target = self.start_program("naps")
        run = harness.start_attach(target, "--max-overhead=0", hz=99)
        run.wait_attached()
        n_threads = 2 + python_stacks.N_NAPS
        harness.wait_for(lambda: len(harness.tids_of(target.pid)) == n_threads, "all threads")
        run.wait_ticks(100)
        run.signal(signal.SIGINT)
        run.finish()
        known, unknown = collections.Counter(), collections.Counter()
        for sample in run.pprof.samples:
            if sample.tid != target.pid and "naps" not in sample.stack:
                (known if "nap" in sample.stack else unknown)[sample.tid] += sample.count
        self.assertGreater(len(known), 3)  # the first ones came before the profiler
        for tid in known:
            # Some ticks may pass before it is known; a sleep is longer than that.
            self.assertLess(unknown[tid], known[tid])

    def test_begins_threads(self):
        """A thread keeps its frames while it makes others, whose states say to be its own at first."""
        target = self.start_program("births")
        run = attach(target, duration="1", hz=499)
        tids = {sample.tid for sample in run.pprof.samples if "births" in sample.stack}
        self.assertEqual(len(tids), 1)
        # Where it waits, its frames fit the machine's. Before it came to its function it was in threading's.
        waits = [s for s in run.pprof.samples if s.tid in tids and s.syscall in ("futex", "clock_nanosleep")]
        self.assertTrue(waits)
        for sample in waits:
            if "_PyEval_EvalFrameDefault" in sample.stack:
                self.assertTrue(python_frames(sample), sample.stack)
        # Between two calls they may not fit, which is told.
        bare = [s for s in run.pprof.samples if s.tid in tids and not python_frames(s)]
        if any("_PyEval_EvalFrameDefault" in sample.stack for sample in bare):
            self.assertIn("without the frames of Python", run.stderr)

    def test_storm(self):
        """Threads that live for some milliseconds each, beside many others, have their frames from the start."""
        target = self.start_program("storm")
        harness.wait_for(
            lambda: len(harness.tids_of(target.pid)) > python_stacks.N_PARKED, "those that are parked"
        )
        short, bare = set(), set()
        for _ in range(20):  # on a busy machine it may have a CPU seldom
            more_short, more_bare = self.see_storm(target)
            short |= more_short
            bare |= more_bare
            if len(short) > 100:
                break
        self.assertGreater(len(short), 100)
        self.assertLess(20 * len(bare), len(short))

    def see_storm(self, target):
        """Those that were seen in their function, and those with the interpreter's loop alone."""
        samples = attach(target, "--max-overhead=0", duration="1", hz=499).pprof.samples
        parked = {s.tid for s in samples if "park" in s.stack}
        short = {s.tid for s in samples if "short_life" in s.stack}
        loop = [s for s in samples if "_PyEval_EvalFrameDefault" in s.stack and s.tid not in parked]
        return short, {s.tid for s in loop if not python_frames(s)}

    def test_gil(self):
        """Who waits for the interpreter's lock, who holds it, and what for."""
        target = self.start_program("gil")
        expected = {"gil=holding", "gil=waiting", "gc=collecting", "a holder", "a name", "collects"}
        if python_stacks._xxsubinterpreters:
            expected |= {"interpreter=0", "interpreter=1"}
        seen = set()
        # On a busy machine some threads may not have begun, or not have run, in a second.
        for _ in range(20):
            seen |= self.see_gil(target)
            if expected <= seen:
                break
        self.assertLessEqual(expected, seen)

    def see_gil(self, target):
        run = attach(target, duration="1", hz=499)
        tids = {int(tid) for tid in os.listdir(f"/proc/{target.pid}/task")}
        seen = set()
        for sample in run.pprof.samples:
            labels = sample.labels.items()
            seen |= {f"{key}={value}" for key, value in labels if key in ("gil", "gc", "interpreter")}
            if "gc" in sample.labels and "collects" in sample.stack:  # others do by allocating
                seen.add("collects")
            if not (sample.descriptor or "").startswith("GIL"):
                continue
            self.assertEqual((sample.syscall, sample.kind), ("futex", "lock"))
            match = re.fullmatch(r'GIL(?:, held by (?:"([^"]*)" (\d+)|another thread))?', sample.descriptor)
            self.assertTrue(match, sample.descriptor)
            if match[2]:
                self.assertIn(int(match[2]), tids)
                self.assertNotEqual(int(match[2]), sample.tid)
                seen.add("a holder")
            # By the name that Python has for it: the kernel's is the program's.
            if (match[1] or "").startswith("wörker-"):
                seen.add("a name")
        return seen

    def test_lies(self):
        """A program that poses as an interpreter, whose structures are damaged all the time."""
        for minor in (8, 11):
            with self.subTest(minor=minor):
                target = self.start_fixture("false_python", minor)
                run = attach(target, "-t", hz=499)
                self.assertIn("without the frames of Python", run.stderr)
                target.process.stdin.close()
                counts = [int(count) for count in target.rest()[0].split()]
                self.assertEqual(len(counts), 3)
                self.assertTrue(all(counts), counts)

    def test_none(self):
        target = self.start_program("running")
        run = attach(target, "--runtimes=none")
        names = {name for sample in run.pprof.samples for name in sample.stack}
        self.assertNotIn("middle", names)

    def test_frames(self):
        """With the interpreter's own, or with Python's alone."""
        target = self.start_program("running")
        stacks = {
            which: [s.stack for s in attach(target, f"--frames={which}").pprof.samples if "run" in s.stack]
            for which in ("auto", "all", "python", "native")
        }
        loop = "_PyEval_EvalFrameDefault"
        # A call that has no frame yet, or none any more, is the loop's in any case.
        self.assertLess(10 * sum(loop in stack for stack in stacks["auto"]), len(stacks["auto"]) + 10)
        self.assertTrue(all(loop in stack for stack in stacks["all"]))
        self.assertEqual({stack[0] for stack in stacks["python"]}, {"Thread._bootstrap"})
        self.assertNotEqual({stack[0] for stack in stacks["auto"]}, {"Thread._bootstrap"})
        self.assertEqual(stacks["native"], [])

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def test_names_are_in_a_recording_that_was_cut(self):
        """The names come with the frames: they are nowhere else once the process is gone."""
        path = os.path.join(self.directory(), "cut.wprof")
        target = self.start_program("running")
        run = harness.Run(["-q", "-p", target.pid, "-o", path])
        harness.wait_for(lambda: os.path.exists(path) and b"middle" in self.read(path), "the names")
        os.kill(run.worker_pid(), signal.SIGKILL)
        run.communicate()
        target.end()
        out = subprocess.run(
            [harness.PROFILER, "report", "-q", "--lines", path], capture_output=True, text=True, check=True
        ).stdout
        self.assertRegex(out, r";run \(python_stacks\.py:\d+\);middle \(python_stacks\.py:\d+\)")


if __name__ == "__main__":
    harness.main()
