# SPDX-License-Identifier: MIT
"""Goroutines as subjects of samples: their stacks, what they wait for, who created them, their time.

The oracle is the program's own word: what the runtime prints at SIGQUIT with GOTRACEBACK=system.
"""

import collections
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import harness
import page
from harness import attach, fixture
from test_record import Recorded, report

HEAD = re.compile(r"goroutine (\d+) (?:gp=\S+ m=\S+ (?:mp=\S+ )?)?\[([^\],]*)([^\]]*)\]:")
CREATED = "created by "
N_CHURN = 200


# With 24 MiB of variables besides.
MANY_VARIABLES = """package main
import ("fmt"; "time")
var table [3 << 20]uint64
func put(i int) []byte { return make([]byte, 1, 16+i%2) }
func main() {
	for i := range table {
		table[i] = uint64(i)
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
}
"""


# Linked by what the C compiler asks for.
WITH_C = """package main
// static int twice(int n) { return 2 * n; }
import "C"
import ("fmt"; "time")
func nap() { time.Sleep(time.Hour) }
func main() {
	go nap()
	fmt.Println("ready"); C.twice(2)
	nap()
}
"""


LABELLED = """package main
import ("context"; "fmt"; "runtime/pprof"; "time")
func one(wg chan int) { wg <- 1; <-make(chan int) }
func all(wg chan int) { wg <- 1; <-make(chan int) }
func main() {
	wg := make(chan int)
	for i := 1; i <= 3; i++ {
		labels := pprof.Labels("request", fmt.Sprint("r-", i))
		go pprof.Do(context.Background(), labels, func(context.Context) { one(wg) })
		<-wg
	}
	for i := 1; i <= 2; i++ {
		go pprof.Do(context.Background(), pprof.Labels("request", "all"), func(context.Context) { all(wg) })
		<-wg
	}
	time.Sleep(200 * time.Millisecond)
	fmt.Println("ready")
	time.Sleep(time.Hour)
}
"""


# A thread that waits in Go, for ever.
WAITS_IN_GO = """
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])
def inner():
    print("ready", flush=True)
    library.waitBelowC(2)
def outer():
    inner()
thread = threading.Thread(target=outer, name="request")
thread.start()
thread.join()
"""


def build_go(directory, text, *args):
    """The path of the program of that text."""
    go = harness.find_tool("go", "/usr/local/go/bin/go")
    source, program = (os.path.join(directory, name) for name in ("main.go", "main"))
    with open(source, "w", encoding="ascii") as file:
        file.write(text)
    environment = {**os.environ, "GOFLAGS": "", "CGO_ENABLED": "0"}
    subprocess.run([go, "build", *args, "-o", program, source], check=True, env=environment)
    return program


def bare(name):
    """Without the types of a generic function, and the assembly's calling convention."""
    name = re.sub(r"\[.*\]", "[...]", name).removesuffix(".abi0")
    return "panic" if name == "runtime.gopanic" else name  # as the runtime prints it


class Told:
    """A goroutine as the runtime tells it: state, frames from the leaf on, the creator."""

    def __init__(self, state, is_locked):
        self.state, self.frames, self.creator, self.elided_at = state, [], None, None
        self.is_locked = is_locked


def line_number(place):
    return int(re.search(r":(\d+)(?: |$)", place)[1])


def read_dump(text):
    told, current, lines = {}, None, iter(text.splitlines())
    for line in lines:
        head = HEAD.match(line)
        if head:
            current = told[int(head[1])] = Told(head[2], "locked to thread" in head[3])
        elif not line.strip():
            current = None
        elif current and "frames elided" in line:
            current.elided_at = len(current.frames)
        elif current and line.startswith(CREATED):
            name = line[len(CREATED) :].split(" in goroutine")[0]
            current.creator = (bare(name), line_number(next(lines)))
        elif current and not line.startswith("\t") and "(" in line:
            name = bare(line[: line.rindex("(")])
            current.frames.append((name, line_number(next(lines))))
    return told


def of_profile(sample):
    """The same of a sample: frames from the leaf on, the creator."""
    frames = [(bare(frame.name), frame.line) for frame in reversed(sample.frames)]
    if not frames[-1][0].startswith(CREATED):
        return frames, None
    name, line = frames.pop()
    return frames, (name[len(CREATED) :], line)


def without_c(frames):
    """Go's frames alone, without those by which it and C call each other."""
    between = ("runtime.asmcgocall", "runtime.systemstack_switch", "runtime.goexit")
    return [frame for frame in frames if "." in frame[0] and frame[0] not in between]


class ZooTestCase(harness.TestCase):
    def dump(self, target):
        target.process.send_signal(signal.SIGQUIT)
        return read_dump(target.process.stderr.read().decode())

    def start_zoo(self, name, *args):
        env = {**os.environ, "GOTRACEBACK": "system"}
        target = self.start_fixture(name, *args, env=env, stderr=subprocess.PIPE)
        self.addCleanup(target.process.stderr.close)
        # One that has said that it is there may be on its way into C still.
        harness.wait_for(lambda: self.all_sleep(target.pid), "a zoo that sleeps")
        return target

    def all_sleep(self, pid):
        states = [harness.read_status(pid, tid) for tid in harness.tids_of(pid)]
        return all(status and status["State"][0] == "S" for status in states)


class Goroutines(ZooTestCase):
    def check_one(self, sample, told):
        frames, creator = of_profile(sample)
        self.assertEqual(creator, told.creator)
        self.assertEqual(sample.labels.get("locked"), "yes" if told.is_locked else None)
        if told.state == "syscall":
            # The runtime's own word ends where the call began, and ours in it.
            n = len(told.frames) - 1
            self.assertEqual(frames[-n:], told.frames[1:])
            return
        if any(name == "crosscall2" for name, _ in frames):
            frames, told.frames = without_c(frames), without_c(told.frames)
        self.assertEqual(sample.wait, told.state, (sample.labels, sample.stack))
        self.assertEqual(sample.state, "sleeping")
        n = len(told.frames) if told.elided_at is None else told.elided_at
        self.assertEqual(frames[:n], told.frames[:n])
        rest = len(told.frames) - n
        self.assertEqual(frames[len(frames) - rest :], told.frames[n:])
        if told.elided_at is None:
            self.assertEqual(len(frames), n)

    def check_things(self, run, samples):
        """What they wait for is what the program says that it is."""
        things = {}
        for of_goid in samples.values():
            things.setdefault(of_goid[0].thread, set()).add(of_goid[0].descriptor)
        # Before 1.20 the runtime has one reason for all locks; before 1.24, for groups.
        lock = "mutex" if "sync.Mutex.Lock" in {s[0].wait for s in samples.values()} else None
        for name, thing in (
            ("main.deep", "chan"),
            ("main.deferred", "chan"),
            ("main.lockMutex", lock),
            ("main.lockRead", lock and "rwmutex"),
        ):
            if thing:
                self.assertEqual(things[name], {f"{thing} {run.things[thing]}"})
            else:
                self.assertRegex(things[name].pop(), "^sema 0x[0-9a-f]+$")
        # A writer who comes second waits for the first one's mutex, at the structure's start.
        if lock:
            self.assertEqual(things["main.lockWrite"], {f"mutex {run.things['rwmutex']}"})
        # The group's semaphore is in it.
        group = re.fullmatch("(waitgroup|sema) (0x[0-9a-f]+)", things["main.waitGroup"].pop())
        self.assertLess(int(group[2], 16) - int(run.things["waitgroup"], 16), 16)
        self.assertRegex(things["main.zoo.func5"].pop(), r"^chan 0x[0-9a-f]+ \+1$")  # select
        (conn,) = (name for name in things if name.startswith("net."))  # TCPConn, up to 1.22
        self.assertRegex(things[conn].pop(), f"^tcp .* -> {run.things['tcp']}$")
        self.assertRegex(things["os.(*File).Read"].pop(), r"^pipe:\[\d+\]")

    def check_labels(self, samples):
        """The program's own, where it waits and in a system call; ours keep their names."""
        tenants = {}
        for of_goid in samples.values():
            labels = of_goid[0].labels
            tenants.setdefault(labels.get("tenant"), []).append(labels)
        self.assertEqual(set(tenants), {None, "red", "blue", "black"})
        (red,), (blue,), (black,) = tenants["red"], tenants["blue"], tenants["black"]
        self.assertEqual({f"key{i}": f"value{i}" for i in range(10)}, {k: v for k, v in red.items() if "key" in k})
        self.assertEqual((red["go.thread"], red["thread"]), ("mine", "runtime/pprof.Do"))
        self.assertEqual(blue["syscall"], "read")
        lacking = [labels["labels"] for labels in tenants[None] if "labels" in labels]
        self.assertEqual(lacking, ["unreadable, or more than 64"])
        # Hostile ones: cut ones say so, and so does the set where keys are alike once they are clean.
        expected = {
            "long": "x" * 253 + "...",
            "nul_one": "a_b",
            "nul__": "",
            "\ufffd__": "\ufffd__",
            "go.labels": "go",
            "labels": "alike or empty keys",
        }
        self.assertLessEqual(expected.items(), black.items())

    def check_told(self, run):
        """The summary counts the samples whose labels are not all there."""
        n = sum(s.count for s in run.pprof.samples if "labels" in s.labels)
        (told,) = re.findall(r"(?m)^profiler: (\d+) of (\d+) samples lack labels;", run.stderr)
        self.assertEqual((int(told[0]), int(told[1])), (n, run.summary.samples))

    def check_each_tick(self, run, function):
        """One sample a tick has the function, the thread's or the goroutine's; or is said to be cut."""
        n = sum(s.count for s in run.pprof.samples if function in s.stack)
        self.assertLessEqual(n, run.summary.ticks)
        self.assertGreaterEqual(n, run.summary.ticks - run.summary.truncated)

    def check_zoo(self, name, *args, options=(), n_least=25):
        target = self.start_zoo(name, *args)
        run = attach(target, "--goroutine-ids", *options)
        run.things = dict(line.split() for line in target.said if " " in line)
        samples = collections.defaultdict(list)
        for sample in run.pprof.samples:
            if sample.goid:
                samples[sample.goid].append(sample)
        told = self.dump(target)
        for goid, of_goid in samples.items():
            with self.subTest(goid=goid):
                # It may have run still when it had said that it is ready; the collections have the
                # scavenger run, too.
                if goid == 1 or any("runtime.bgscavenge" in s.stack for s in of_goid):
                    continue
                # In C it is a thread's until that has been stopped once, by which it runs.
                if "main.sleepInC" in of_goid[0].stack:
                    of_goid.sort(key=lambda sample: -sample.count)
                    self.assertGreater(of_goid[0].count, run.summary.ticks / 2)
                    self.check_each_tick(run, "main.sleepInC")
                    self.assertEqual((of_goid[0].state, of_goid[0].labels["syscall"]), ("sleeping", "pause"))
                else:
                    self.assertEqual(len(of_goid), 1, [s.labels for s in of_goid])
                    self.assertEqual(of_goid[0].count, run.summary.ticks, of_goid[0].stack)
                self.check_one(of_goid[0], told[goid])
        users = {
            goid
            for goid, one in told.items()
            if goid and one.state != "running" and not one.frames[-2][0].startswith("runtime.") or goid == 1
        }
        self.assertLessEqual(users, set(samples))
        self.assertGreaterEqual(len(samples), n_least)
        return run, samples, told

    def test_zoo(self):
        run, samples, _ = self.check_zoo("golang-zoo")
        waits = {of_goid[0].wait for of_goid in samples.values()}
        for reason in ("chan receive", "chan send", "select", "select (no cases)", "sleep", "IO wait"):
            self.assertIn(reason, waits)
        if any("main.pullOne" in of_goid[0].stack for of_goid in samples.values()):
            self.assertIn("coroutine", waits)
        # The finalizers' goroutine, which is in one of the program's.
        (finalizing,) = (s[0] for s in samples.values() if "main.finalize.func1" in s[0].stack)
        self.assertRegex(finalizing.thread, r"^runtime\.(runfinq|runFinalizers)$")
        self.check_things(run, samples)
        self.check_labels(samples)
        self.check_told(run)
        names = collections.Counter(of_goid[0].thread for of_goid in samples.values())
        self.assertEqual(names["main.deep"], 7, names)  # not the compiler's main.zoo.gowrap1

    def test_stripped(self):
        self.check_zoo("golang-zoo-stripped")

    def newer(self, name):
        """A copy of the program that says that it is of a version that nobody knows yet."""
        with open(fixture(name), "rb") as file:
            program = file.read()
        (version,) = set(re.findall(rb"go1\.\d\d\.\d+", program))
        path = os.path.join(self.directory(), name)
        with open(path, "wb") as file:
            file.write(program.replace(version, b"go1.99." + b"9" * (len(version) - 7)))
        os.chmod(path, 0o755)
        return path

    def test_of_newer_version(self):
        """It has no debug information: what the newest known version has is tried, and fits."""
        path = self.newer("golang-zoo-stripped")
        run, _, _ = self.check_zoo(path)
        self.assertRegex(run.stderr, r"goroutines \(go1\.99\.9+\): .*; Go 1\.\d\d, the newest known version, keeps")

    def test_refused(self):
        """A version that is not known and keeps its goroutines otherwise: -p, dump and top say why they
        are not shown."""
        with open(self.newer("golang-zoo-stripped"), "rb") as file:
            program = bytearray(file.read())
        # A reason to wait has no word: none of the parked ones fits.
        program = program.replace(b"GC assist marking", b"GC assist markinG")
        path = os.path.join(self.directory(), "refused")
        with open(path, "wb") as file:
            file.write(program)
        os.chmod(path, 0o755)
        target = self.start_zoo(path)
        pid = str(target.pid)
        said = r"(?m)^profiler: Go \(go1\.99\.9+\): its version is not known, so threads are shown instead of goroutines$"
        self.assertRegex(attach(target).stderr, said)
        for args in (["dump", "-p", pid], ["top", "-p", pid, "-n", "1"], ["top", "-p", pid, "--json", "-n", "1"]):
            run = subprocess.run([harness.PROFILER, *args], capture_output=True, check=True, text=True)
            self.assertEqual(len(re.findall(said, run.stderr)), 1, (args, run.stderr))
        run = subprocess.run(
            [harness.PROFILER, "top", "-q", "-p", pid, "-n", "1"], capture_output=True, check=True, text=True
        )
        self.assertEqual(run.stderr, "")

    def test_stripped_with_many_variables(self):
        """The list is found among the program's variables, in a time that hardly depends on how many
        slices and how many bytes they are."""
        text = MANY_VARIABLES + "".join(f"var s{i} = put({i})\n" for i in range(3000))
        program = build_go(self.directory(), text, "-ldflags=-s -w")
        run = attach(self.start(program), duration="1", hz=99)
        self.assertRegex(run.stderr, r"goroutines \(go[^)]*\): \d+ at the end")
        (cpu_ms,) = re.findall(r"engine: .*; ([\d.]+) ms of CPU while sampling", run.stderr)
        self.assertLess(float(cpu_ms), 1000)

    def test_linkers(self):
        """Where the file's segments share pages, their variables are found, too."""
        go = harness.find_tool("go", "/usr/local/go/bin/go")
        source, program = (os.path.join(self.directory(), name) for name in ("c.go", "program"))
        with open(source, "w", encoding="ascii") as file:
            file.write(WITH_C)
        for linker in ("lld", "mold"):
            flags = f"-ldflags=-linkmode=external -extldflags=-fuse-ld={linker}"
            subprocess.run(
                [go, "build", flags, "-o", program, source], check=True,
                env={**os.environ, "GOFLAGS": "", "CGO_ENABLED": "1"},
            )  # fmt: skip
            target = self.start(program)
            run = attach(target, duration="0.3", hz=99)
            stacks = [stack for stack in run.stacks() if "main.nap" in stack]
            self.assertTrue(stacks, run.stderr)
            target.end()

    def check_through_c(self, samples):
        """What waits below C, and C below Go: each stack whole, C's frames and Go's."""
        stacks = [of_goid[0].stack for of_goid in samples.values()]
        for calls in (
            ("main.sleepInC", "cSleep"),
            ("main.throughC", "cCallBack", "main.waitBelowC", "main.descend"),
            ("cThread", "main.waitBelowC", "main.descend"),
        ):
            (found,) = (stack for stack in stacks if calls[0] in stack)
            places = [found.index(name) for name in calls]
            self.assertEqual(places, sorted(places), found)

    def test_cgo(self):
        """Go that calls C, C that calls Go, and C's thread that does."""
        _, samples, _ = self.check_zoo("golang-zoo-cgo")
        self.check_through_c(samples)

    def test_in_library(self):
        """The same in a library of a C program, whose own threads are C's."""
        _, samples, _ = self.check_zoo("golang_load", "zoo", n_least=3)
        self.check_through_c(samples)

    def test_parked_in_library(self):
        """A library none of whose goroutines runs: only the runtime's idle threads lead there."""
        target = self.start_zoo("golang_load", "parked")
        argv = [harness.PROFILER, "dump", "-p", str(target.pid)]

        def is_seen():
            text = subprocess.run(argv, capture_output=True, check=True, text=True).stdout
            return re.search(r'"main\.park" goroutine \d+, \d+, \d+: 3 goroutines, same stack', text)

        # Until its threads rest, they lead there by themselves.
        harness.wait_for(lambda: not self.has_run(target.pid), "a library that rests")
        self.assertTrue(is_seen())
        names = [s.thread for s in attach(target, "--goroutine-ids").pprof.samples if s.goid]
        self.assertEqual(names, ["main.park"] * 3)

    def has_run(self, pid):
        """Does one of its threads run in the next tenth of a second?"""

        def runs():
            return [harness.schedule_of(pid, tid) for tid in harness.tids_of(pid)]

        before = runs()
        time.sleep(0.1)
        return runs() != before

    def test_python_that_waits_in_go(self):
        """The goroutine that runs for a thread of Python's has its functions, and its name."""
        target = self.start(sys.executable, "-c", WAITS_IN_GO, fixture("golang-shared.so"))
        argv = [harness.PROFILER, "dump", "--json", "-p", str(target.pid)]

        def names():
            threads = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)["threads"]
            return [
                [frame["name"] for frame in t["frames"]]
                for t in threads
                if t["name"] == "request" and "goid" in t
            ]

        harness.wait_for(lambda: any("runtime.gopark" in one for one in names()), "a thread that waits in Go")
        (found,) = names()
        expected = ["main.descend", "main.waitBelowC", "crosscall2", "inner", "outer", "Thread.run"]
        self.assertEqual([name for name in found if name in expected], expected[:1] * 2 + expected, found)
        self.assertNotIn("_PyEval_EvalFrameDefault", found)
        run = attach(target, "--goroutine-ids")
        (stack,) = (s.stack for s in run.pprof.samples if s.goid and s.thread == "request")
        self.assertEqual([name for name in stack if name in expected], [*expected[:1] * 2, *expected][::-1])

    def test_two_runtimes(self):
        """C that loads two libraries, each with a Go of its own: one's goroutines are shown, the other is named."""
        directory = self.directory()
        for name, copy in (
            ("golang_load", "golang_load"),
            ("golang-shared.so", "golang-shared.so"),
            ("golang-shared.so", "golang-other.so"),
        ):
            shutil.copy(fixture(name), os.path.join(directory, copy))
        target = self.start(os.path.join(directory, "golang_load"), "two")
        run = attach(target, "--goroutine-ids")
        names = {s.thread for s in run.pprof.samples if s.goid}
        self.assertTrue(names)
        argv = [harness.PROFILER, "dump", "-p", str(target.pid)]
        dump = subprocess.run(argv, capture_output=True, check=True, text=True)
        for said in run.stderr, dump.stderr:
            self.assertRegex(said, r"(?m)^profiler: golang-\w+\.so has a Go runtime of its own: its goroutines are not shown$")

    def test_system_goroutines(self):
        run, samples, told = self.check_zoo("golang-zoo", options=["--system-goroutines"])
        self.assertEqual(set(samples), set(told) - {0})

    def test_as_threads(self):
        """--runtimes=none: the system's threads, and nothing else."""
        target = self.start_zoo("golang-zoo")
        before = set(harness.tids_of(target.pid))
        run = attach(target, "--runtimes=none")
        found = {sample.tid for sample in run.pprof.samples}
        self.assertEqual({sample.goid for sample in run.pprof.samples}, {None})
        # The runtime may start one more at any time.
        self.assertLessEqual(before, found)
        self.assertLessEqual(found, set(harness.tids_of(target.pid)))
        self.assertNotIn(CREATED, "".join(name for s in run.pprof.samples for name in s.stack))

    def test_dump(self):
        """profiler dump: the same goroutines, and those that wait below the same stack together."""
        target = self.start_zoo("golang-zoo")
        argv = [harness.PROFILER, "dump", "-p", str(target.pid)]
        found = json.loads(subprocess.run([*argv, "--json"], capture_output=True, check=True).stdout)
        text = subprocess.run(argv, capture_output=True, check=True, text=True).stdout
        told = self.dump(target)
        waits = {t["goid"]: t.get("wait") for t in found["threads"] if "goid" in t}
        self.assertGreaterEqual(len(waits), 25)
        for goid, wait in waits.items():
            if goid != 1 and told[goid].state != "syscall":
                self.assertEqual(wait, told[goid].state)
        self.assertRegex(text.splitlines()[0], rf"{len(waits)} goroutines, \d+ threads")
        self.assertRegex(text, r'"main\.zoo\.func2" goroutine \d+ .* chan receive \(nil chan\)')
        things = dict(line.split() for line in target.said if " " in line)
        since = r", the oldest for [\d.]+ s or more"
        self.assertRegex(text, f"(?m)^! 2 goroutines wait for (mutex {things['mutex']}|sema 0x[0-9a-f]+){since}$")
        self.assertRegex(text, f"(?m)^16 goroutines wait for chan {things['chan']}{since}$")
        # By the runtime's word: since the collection that the program has made, or longer.
        waits = [t for t in found["threads"] if t["name"] == "main.deep"]
        self.assertEqual({t["blocked_is"] for t in waits}, {"at_least"})
        self.assertEqual({t["waits_on"] for t in waits}, {f"chan {things['chan']}"})
        for t in waits:
            self.assertGreater(t["blocked_ns"], 0)

    def test_folded(self):
        """What the same `go` statement has created is one; without creators, too."""
        target = self.start_zoo("golang-zoo")
        run = attach(target, form="folded", duration="0.3")
        self.assertTrue(any(stack[0].startswith(CREATED) for stack in run.stacks()))
        run = attach(target, "--no-creators", duration="0.3")
        self.assertFalse(any(stack[0].startswith(CREATED) for stack in run.stacks()))
        # Those that are alike are one sample, and have no id.
        self.assertEqual({sample.goid for sample in run.pprof.samples}, {None})
        locks = [s for s in run.pprof.samples if s.thread == "main.lockMutex"]
        self.assertEqual([s.count for s in locks], [2 * run.summary.ticks])

    def tracks(self, target, *args):
        """The names of a timeline's rows, and what the run says."""
        path = os.path.join(self.directory(), "out.trace.json")
        argv = [harness.PROFILER, "-p", str(target.pid), "-d", "0.3", "-o", path, *args]
        run = subprocess.run(argv, capture_output=True, check=True, text=True)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        return {e["args"]["name"] for e in events if e["name"] == "thread_name"}, run.stderr

    def check_chrome(self, data):
        """Its leaf says what it waits for, and its labels."""
        (wait,) = (
            event["args"]
            for event in json.loads(report(data, "-f", "chrome")[0])["traceEvents"]
            if event["ph"] == "X" and event.get("args", {}).get("labels", {}).get("tenant") == "red"
        )
        self.assertEqual((wait["wait"], wait["labels"]["go.thread"]), ("chan receive", "mine"))
        self.assertRegex(wait["descriptor"], "^chan 0x[0-9a-f]+$")

    def check_firefox(self, data):
        """One marker for the wait and one for the labels, as long as both lasted."""
        file = json.loads(report(data, "-f", "firefox")[0])
        (markers,) = (
            thread["markers"]
            for thread in file["threads"]
            if any("tenant=red" in one.get("labels", "") for one in thread["markers"]["data"])
        )
        names = [file["shared"]["stringArray"][name] for name in markers["name"]]
        self.assertEqual(collections.Counter(names)["chan receive"], 1)
        self.assertEqual(collections.Counter(names)["labels"], 1)
        wait, labels = names.index("chan receive"), names.index("labels")
        self.assertRegex(markers["data"][wait]["descriptor"], "^chan 0x[0-9a-f]+$")
        for column in ("startTime", "endTime"):
            self.assertEqual(markers[column][wait], markers[column][labels])

    def check_page(self, data):
        shown = page.Page(report(data, "-f", "html")[0])
        ((_, _, _, stack, _, wait),) = (
            run for run, labels in zip(shown.runs, shown.labels) if "tenant=red" in labels
        )
        self.assertRegex(wait, "^chan receive chan 0x[0-9a-f]+$")
        self.assertEqual(stack[-1], "runtime.gopark")

    def test_in_time(self):
        """What one waits for, and its labels, in timelines and on the page."""
        target = self.start_zoo("golang-zoo")
        data = Recorded(target, duration="0.3").finish().data
        self.check_chrome(data)
        self.check_firefox(data)
        self.check_page(data)

    def test_timelines(self):
        """Each goroutine has a row with its id in its name; of very many, one for each origin."""
        target = self.start(fixture("golang-zoo"), "crowd")
        names, _ = self.tracks(target, "--thread=main.few")
        self.assertEqual(len(names), 5)
        for name in names:
            self.assertRegex(name, r"^main\.few g\d+$")
        names, said = self.tracks(target)
        crowds = {name for name in names if "goroutines" in name}
        self.assertEqual(crowds, {"main.few (5 goroutines)", "main.many (600 goroutines)"})
        self.assertIn("605 goroutines are shown as 2, one for each place that creates them", said)


class Labels(ZooTestCase):
    """The labels that the program has given its goroutines, where one looks first."""

    TENANTS = {"red", "blue", "black"}

    def run_profiler(self, *args):
        return subprocess.run([harness.PROFILER, *args], capture_output=True, check=True, text=True)

    def setUp(self):
        self.target = self.start_zoo("golang-zoo")
        self.pid = str(self.target.pid)

    def tenants(self, text):
        """The sets of tenants of each line of folded stacks, or of a table."""
        return {tuple(re.findall(r"\btenant=(\w+)", line)) for line in text.splitlines()}

    def test_dump(self):
        text = self.run_profiler("dump", self.pid).stdout
        self.assertEqual({part for one in self.tenants(text) for part in one}, self.TENANTS)
        self.assertRegex(text, r"(?m)^\"[^\"]+\" goroutine .*\d \{[^}]*tenant=red, go\.thread=mine\}")
        self.assertRegex(text, r'(?m)^"runtime/pprof\.Do" goroutine \d+ \{tenant=blue\}   pipe')
        threads = json.loads(self.run_profiler("dump", "--json", self.pid).stdout)["threads"]
        told = [t["labels"]["tenant"] for t in threads if "tenant" in t["labels"]]
        self.assertEqual((len(told), set(told)), (3, self.TENANTS))
        self.assertIn({}, [t["labels"] for t in threads])

    def test_dump_of_some(self):
        threads = json.loads(
            self.run_profiler("dump", "--json", "--label-filter=tenant=^bl", self.pid).stdout
        )["threads"]
        self.assertEqual({t["labels"]["tenant"] for t in threads}, {"blue", "black"})

    def test_same_stack(self):
        """Those below the same stack are together: each with its labels, or all with the same ones."""
        target = self.start(build_go(self.directory(), LABELLED))
        text = self.run_profiler("dump", str(target.pid)).stdout
        (line,) = re.findall(r"(?m)^.*: 3 goroutines, same stack.*$", text)
        requests = re.findall(r" (\d+) \{request=(r-\d)\}", line)
        self.assertEqual({request for _, request in requests}, {"r-1", "r-2", "r-3"})
        (line,) = re.findall(r"(?m)^.*: 2 goroutines, same stack.*$", text)
        self.assertRegex(line, r" goroutine \d+, \d+: 2 goroutines, same stack \{request=all\}   condition")

    def test_top(self):
        told = json.loads(self.run_profiler("top", "--json", "-n", "1", self.pid).stdout)
        found = {t.get("labels", {}).get("tenant") for t in told["threads"]}
        self.assertEqual(found - {None}, self.TENANTS)
        args = ("top", "-n", "1", "--label-filter=tenant=red", self.pid)
        self.assertEqual(self.tenants(self.run_profiler(*args).stdout), {(), ("red",)})

    def test_frames_and_filters(self):
        recording = os.path.join(self.directory(), "a.wprof")
        self.run_profiler("-q", "-p", self.pid, "-d", "0.5", "-o", recording)

        def roots(text):
            """How often each line's roots that are labels occur."""
            found = collections.Counter()
            for line in text.splitlines():
                stack, count = line.rsplit(" ", 1)
                found[tuple(f for f in stack.split(";")[:3] if "=" in f)] += int(count)
            return found

        whole = roots(self.run_profiler("report", "-q", "--label-frame=tenant", recording).stdout)
        self.assertEqual(set(whole), {(), *((f"tenant={t}",) for t in self.TENANTS)})
        without = roots(self.run_profiler("report", "-q", recording).stdout)
        self.assertEqual(without, {(): sum(whole.values())})
        args = ("--label-frame=go.thread", "--label-frame=tenant", "--label-filter=tenant=^(red|blue)$")
        some = roots(self.run_profiler("report", "-q", *args, recording).stdout)
        red, blue = ("go.thread=mine", "tenant=red"), ("tenant=blue",)
        self.assertEqual(some, {red: whole["tenant=red",], blue: whole[blue]})
        self.assertEqual(roots(self.run_profiler("report", "-q", "-t", *args, recording).stdout), some)
        args = ("--label-filter=tenant=red", "--label-filter=go.thread=y")
        self.assertEqual(self.run_profiler("report", "-q", *args, recording).stdout, "")
        run = attach(self.target, "--label-frame=tenant", "--label-filter=tenant=.")
        told = [(s.labels["tenant"], s.stack[0]) for s in run.pprof.samples]
        self.assertEqual(set(told), {(t, f"tenant={t}") for t in self.TENANTS})
        for form in ("speedscope", "firefox", "chrome"):
            done = self.run_profiler("report", "-q", "-f", form, "--label-frame=tenant", recording)
            self.assertIn("tenant=red", done.stdout)

    def test_mistakes(self):
        for arg, said in (
            ("--label-filter=x", "'x' is not KEY=REGEX"),
            ("--label-filter=x=(", "'(' is not a regular expression"),
            ("--label-filter==x", "the label's key is empty"),
            ("--label-frame=", "the label's key is empty"),
            ("--label-frame=state", "'state' has options of its own: give --state"),
            ("--label-filter=thread=x", "'thread' has options of its own: give --threads or --thread"),
        ):
            argv = [harness.PROFILER, "-p", self.pid, arg]
            run = subprocess.run(argv, capture_output=True, check=False, text=True)
            self.assertEqual(run.returncode, harness.STATUS_USAGE)
            self.assertIn(said, run.stderr)


class Hostile(ZooTestCase):
    def write(self, target, name, value):
        """Sets a variable of the program's."""
        argv = [harness.find_tool("nm"), fixture("golang-zoo")]
        symbols = subprocess.run(argv, capture_output=True, check=True, text=True).stdout
        address = int(re.search(rf"^([0-9a-f]+) \w {re.escape(name)}$", symbols, re.M)[1], 16)
        with open(f"/proc/{target.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(address)
            old = memory.read(8)
            memory.seek(address)
            memory.write(struct.pack("<Q", value))
        return struct.unpack("<Q", old)[0]

    def check_refused(self, name, value):
        target = self.start_zoo("golang-zoo")
        before = self.write(target, name, value)
        run = attach(target)
        self.write(target, name, before)
        self.assertEqual({s.goid for s in run.pprof.samples}, {None})
        self.assertIn("its list of goroutines was not found, so threads are shown", run.stderr)

    def test_length(self):
        """It says that it has 2^40 goroutines: its threads are shown, and why."""
        self.check_refused("runtime.allglen", 1 << 40)

    def test_nowhere(self):
        """Its list lies nowhere."""
        self.check_refused("runtime.allgptr", 0xDEAD << 32)


class Churn(harness.TestCase):
    def check_path(self, stack):
        """The number that the path of calls spells."""
        bits = [name for name in stack if name in ("main.zero", "main.one")]
        self.assertEqual(len(bits), 16, stack)
        number = sum((name == "main.one") << i for i, name in enumerate(bits))
        index = number & 0xFFF
        self.assertEqual(number >> 12, (index * 7 + (index >> 4) + 3) & 15, stack)
        self.assertLess(index, N_CHURN)
        return index

    def check_whole(self, sample):
        """Down to where each goroutine begins, also while the scheduler takes it on or puts it aside."""
        self.assertNotIn("[truncated", sample.stack[0], (sample.labels, sample.stack, sample.count))
        frames, _ = of_profile(sample)
        self.assertEqual(frames[-1][0], "runtime.goexit", (sample.labels, sample.stack, sample.count))

    def test_pairs(self):
        """Goroutines that wake each other, under births, deaths and collections: no stack is another
        one's, none is cut, and the wall time of each is the time for which it was watched (harness)."""
        target = self.start(fixture("golang-zoo"), "churn")
        run = attach(target, "--goroutine-ids", duration="1.5", hz=499)
        index_of, counts, n_lacking = {}, collections.Counter(), 0
        for sample in run.pprof.samples:
            if sample.goid:
                self.check_whole(sample)
            if "main.walk" not in sample.stack:
                continue
            self.assertNotIn("[truncated", sample.stack[0], (sample.labels, sample.stack, sample.count))
            index = self.check_path(sample.stack)
            if not sample.goid:  # two threads ran it in one tick: one is shown as the thread that it is
                continue
            # A page that was moved just when it was read, since the goroutine was first seen.
            lacks = sample.labels.get("labels") == "unreadable, or more than 64"
            if not lacks:
                self.assertEqual(sample.labels.get("number"), str(index), sample.labels)
            n_lacking += lacks
            self.assertEqual(index_of.setdefault(sample.goid, index), index)
            counts[sample.goid] += sample.count
        self.assertEqual(sorted(index_of.values()), list(range(N_CHURN)))
        self.assertLess(n_lacking, N_CHURN / 20)
        # Each is alive at all ticks.
        for goid, count in counts.items():
            self.assertLessEqual(count, run.summary.ticks, goid)

    def test_rejected(self):
        """Samples of a goroutine that ran whenever it was read are counted: at most 1 % of all. They are
        few: perhaps there are some in a later run."""
        target = self.start(fixture("golang-zoo"), "churn")
        for _ in range(8):
            run = attach(target, duration="0.5", hz=997)
            told = re.search(r"; (\d+) of (\d+) samples \(\S+ %\) were rejected and taken later", run.stderr)
            if told:
                n_rejected, n_samples = int(told[1]), int(told[2])
                self.assertEqual(n_samples, run.summary.samples)
                self.assertLessEqual(n_rejected, n_samples * 0.01)
                return
        self.fail("no goroutine ran whenever it was read")


if __name__ == "__main__":
    harness.main()
