# SPDX-License-Identifier: MIT
"""profiler explain: of programs with one fault each, it names the fault first, and where it is."""

import contextlib
import glob
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import harness
from harness import Run, start_wrap
from test_record import report

SECONDS = "1.5"
PYTHONS = [
    sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3.{minor}")))[-1]
    for minor in range(6, 16)
    if glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3.{minor}"))
]

# Python programs, each with one fault, and a healthy one. PYTHON alone is no finding of theirs.
FSYNC = """
import os, tempfile, time
file = tempfile.TemporaryFile(dir=".")
def save():
    file.write(b"x" * 4096); file.flush(); os.fsync(file.fileno())
    sum(range(2000))
print("ready", flush=True)
while True: save()
"""
PEER = """
import os, socket, threading, time
a, b = socket.socketpair()
def answer():
    while True:
        b.recv(1); time.sleep(0.02); b.send(b"x")
threading.Thread(target=answer, daemon=True).start()
def ask():
    a.send(b"x"); a.recv(1)
def handle():
    ask(); sum(range(60000))
print("ready", flush=True)
while True: handle()
"""
SLEEP = """
import time
def retry():
    sum(range(200000)); time.sleep(0.05)
print("ready", flush=True)
while True: retry()
"""
POOL = """
import threading, time
free = threading.Semaphore(1)
def query():
    with free: time.sleep(0.02)
def borrow():
    while True: query()
for _ in range(6): threading.Thread(target=borrow, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""
RECURSION = """
def descend(depth):
    return depth and descend(depth - 1) + sum(range(300))
print("ready", flush=True)
while True: descend(40)
"""
GIL = """
import threading
def count():
    while True: sum(range(1000))
for _ in range(3): threading.Thread(target=count, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""
# The garbage is handle's. With an argument it keeps many objects, which are looked at in each collection; with two it is
# nearly idle.
GARBAGE_GO = """
package main
import ("crypto/sha256"; "fmt"; "os"; "runtime"; "time")
type node struct { left, right *node; value [2]int }
func build(depth int) *node {
	if depth == 0 { return &node{} }
	return &node{left: build(depth - 1), right: build(depth - 1)}
}
var kept []*node
var sum [32]byte
//go:noinline
func handle() {
	rows := []*node{}
	for i := 0; i < 2000; i++ { rows = append(rows, &node{}) }
	if len(kept) > 0 { rows[0].left = kept[0]; return }
	text := make([]byte, 1 << 20)
	for i := range rows { text[i] = byte(i) }
	sum = sha256.Sum256(text)
}
func main() {
	for i := 0; i < 8 && len(os.Args) > 1; i++ { kept = append(kept, build(15)) }
	fmt.Println("ready")
	for {
		handle()
		if len(os.Args) > 2 { time.Sleep(time.Second / 2); runtime.GC() }
	}
}
"""
# Nearly all of its memory is in use.
GARBAGE_JAVA = """
import java.util.ArrayDeque;
public class Main {
    static ArrayDeque<byte[][]> kept = new ArrayDeque<>();
    static void handle() {
        kept.add(new byte[50][100]);
        if (kept.size() > 5000) kept.remove();
    }
    public static void main(String[] args) {
        for (int i = 0; i < 5000; i++) handle();
        System.out.println("ready");
        for (;;) handle();
    }
}
"""
# A batch that allocates much, and keeps little of it.
BATCH_JAVA = """
import java.util.ArrayList;
public class Main {
    static long sum;
    static void parse() {
        ArrayList<String> fields = new ArrayList<>();
        for (int i = 0; i < 100000; i++)
            for (String field : ("row-" + i + "," + i * 31 + ",x").split(",")) fields.add(field);
        for (String field : fields) sum += field.hashCode();
    }
    public static void main(String[] args) {
        System.out.println("ready");
        for (;;) parse();
    }
}
"""
GARBAGE_PYTHON = """
class Node: pass
kept = [Node() for _ in range(100000)]
def handle():
    for _ in range(2000):
        a, b = Node(), Node()
        a.other, b.other = b, a
        rows.append(a)
rows = []
print("ready", flush=True)
while True:
    handle()
    if len(rows) > 50000: rows.clear()
"""
# With an argument it waits for its child; without, only Java's own thread does.
CHILD_JAVA = """
public class Main {
    static void rest() throws Exception { for (;;) Thread.sleep(300); }
    public static void main(String[] args) throws Exception {
        Process child = new ProcessBuilder("sleep", "60").start();
        System.out.println("ready");
        if (args.length > 0) child.waitFor(); else rest();
    }
}
"""
TICKER = """
import threading, time
def tick():
    while True: time.sleep(0.5)
print("ready", flush=True)
threading.Thread(target=tick).start()
"""
CHILD_NODE = """
const child = require("child_process");
function convert() { child.execFileSync("sleep", ["0.3"]); }
console.log("ready");
setInterval(convert, 5);
"""
# A build waits for whichever job ends first, which is its work.
BUILD = """
import os, time
def start():
    if os.fork() == 0:
        time.sleep(0.05); os._exit(0)
print("ready", flush=True)
start()
while True:
    start(); os.wait()
"""
# A thread for each of two connections; the answer takes a millisecond.
SERVER = """
import socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
socket.setdefaulttimeout({limit})
def serve(client):
    while client.recv(1):
        end = time.thread_time() + 0.001
        while time.thread_time() < end: pass
        client.send(b"x")
def use():
    server = socket.create_connection(listener.getsockname())
    while True:
        server.send(b"x"); server.recv(1); time.sleep(0.01)
clients = [threading.Thread(target=use, daemon=True) for _ in "ab"]
for client in clients: client.start()
handlers = [threading.Thread(target=serve, args=(listener.accept()[0],)) for _ in "ab"]
for handler in handlers: handler.start()
print("ready", flush=True)
"""
CLIENT = """
import socket
server = socket.create_connection(("127.0.0.1", {port}), timeout={limit})
def ask():
    server.send(b"x"); server.recv(1)
def handle():
    ask(); sum(range(60000))
print("ready", flush=True)
while True: handle()
"""
# All of these in one program, for every Python: a pool, a full queue, a child. Before 3.11 methods have no class, and
# time.sleep() is select().
PATTERNS = """
import queue, subprocess, threading, time
free = threading.BoundedSemaphore(1)
full = queue.Queue(1)
def query():
    with free: time.sleep(0.02)
def submit(): full.put(1)
def store():
    full.get(); time.sleep(0.02)
def convert(): subprocess.Popen(["sleep", "0.3"]).wait(timeout=10)
def repeat(what):
    while True: what()
for what, n in (query, 5), (submit, 5), (store, 1), (convert, 6):
    for _ in range(n): threading.Thread(target=repeat, args=(what,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""
# The same calls, without a fault: workers without work, a thread that starts again and again.
PATTERNS_IDLE = """
import concurrent.futures, queue, threading, time
work = queue.Queue()
pool = concurrent.futures.ThreadPoolExecutor(4)
list(pool.map(time.sleep, [0.1] * 4))
signal = threading.Semaphore(0)
def work_off():
    while True: work.get()
def wait():
    while True: signal.acquire()
def poll():
    while True:
        try: work.get(timeout=0.2)
        except queue.Empty: pass
for target in work_off, work_off, work_off, wait, poll:
    threading.Thread(target=target, daemon=True).start()
print("ready", flush=True)
while True:
    time.sleep(0.2); work.put(1); signal.release()
"""
IDLE = """
import threading
print("ready", flush=True)
threading.Event().wait()
"""


class Explain(harness.TestCase):
    def explain(self, target, *args):
        run = Run(["explain", "-d", SECONDS, "--json", *args, target.pid]).finish()
        # That children compute is told there, and no finding of this process.
        self.assertRegex(run.stderr, r"^(profiler: its \d+ child process.*\n)?$")
        return json.loads(run.stdout)["findings"]

    def first(self, target, *args):
        findings = self.explain(target, *args)
        self.assertTrue(findings)
        # A busy machine is no fault of the program's.
        return next(finding for finding in findings if finding["rule"] != "cpu")

    def python(self, program):
        return self.start(sys.executable, "-c", program)

    def start_blame(self, mode):
        return self.start(harness.fixture("blame"), "60", mode, ready=None)

    def test_lock(self):
        found = self.first(self.start_blame("chain"))
        self.assertEqual((found["rule"], found["function"], found["fault"]), ("lock", "handle", True))
        self.assertRegex(found["text"], r'^handle \(blame\.c:\d+\), called by work, waits for a lock held by "gc" \d+$')
        causes = " ".join(cause["text"] for cause in found["causes"])
        self.assertRegex(causes, r"write_journal \(blame\.c:\d+\), which waits for (nap|flush_journal) \(blame\.c")
        self.assertIn("--blame --focus=handle", found["command"])

    def test_deadlock(self):
        found = self.first(self.start_blame("circle"))
        self.assertEqual((found["rule"], found["function"]), ("deadlock", "lock_both"))

    def test_child(self):
        found = self.first(self.start_blame("child"))
        self.assertEqual((found["rule"], found["function"]), ("child", "child"))
        self.assertRegex(found["text"], r'waits for a child process "blame" \d+$')

    def test_hot(self):
        found = self.first(self.start_fixture("threads", "2", "2"))
        self.assertEqual(found["rule"], "hot")
        self.assertEqual(found["function"], "spin_here")

    def test_pool(self):
        """A wait for a semaphore is one for a place that others have, not for work."""
        found = self.first(self.python(POOL))
        self.assertEqual((found["rule"], found["function"]), ("pool", "query"))

    def test_every_python(self):
        """What is known by a method of the library is known in each version."""
        harness.need(PYTHONS, "pyenv has no interpreters here")
        for python in PYTHONS:
            with self.subTest(python):
                target = self.start(python, "-c", PATTERNS)
                found = {(finding["rule"], finding.get("function")) for finding in self.explain(target)}
                target.end()
                self.assertLessEqual({("pool", "query"), ("channel", "submit"), ("child", "convert")}, found)
                target = self.start(python, "-c", SLEEP)
                told = [finding for finding in self.explain(target) if finding["rule"] == "sleep"]
                target.end()
                self.assertEqual([finding["function"] for finding in told], ["retry"])
                target = self.start(python, "-c", PATTERNS_IDLE)
                rules = {finding["rule"] for finding in self.explain(target)}
                target.end()
                self.assertLessEqual(rules, {"sleep", "cpu"})

    def test_gil(self):
        found = self.first(self.python(GIL))
        self.assertEqual((found["rule"], found["function"], found["fault"]), ("gil", "count", True))

    def test_recursion(self):
        """A function that calls itself counts once, however deep it is."""
        found = self.first(self.python(RECURSION))
        self.assertEqual((found["rule"], found["function"]), ("hot", "descend"))
        self.assertGreater(found["share"], 0.8)

    def test_channel(self):
        fixture = harness.fixture("golang")
        harness.need(os.path.exists(fixture), "needs Go")
        found = self.first(self.start_fixture("golang", "channel"))
        self.assertEqual((found["rule"], found["function"], found["fault"]), ("channel", "main.submit", True))

    def start_go(self, *args, garbage=100):
        """`garbage`: percent of what it keeps, GOGC."""
        harness.need(shutil.which("go"), "needs Go")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source = pathlib.Path(folder.name, "main.go")
        source.write_text(GARBAGE_GO, encoding="utf-8")
        subprocess.run(["go", "build", "-o", folder.name + "/main", source], check=True)
        return self.start("env", f"GOGC={garbage}", folder.name + "/main", *args)

    def check_gc(self, target, function, how="allocates the most"):
        run = Run(["explain", "-d", "4", "--json", target.pid]).finish()
        told = json.loads(run.stdout)
        found = next((finding for finding in told["findings"] if finding["rule"] != "cpu"), {"rule": None})
        if found["rule"] != "gc" and "machine" in told and told["active_s"] < 0.4 * 4:
            return  # a busy machine: little time is left to collect in
        self.assertEqual((found["rule"], found["function"], found["fault"]), ("gc", function, True))
        self.assertRegex(found["text"], rf"^garbage collection; {re.escape(function)} \(.*\)(, called by .*,)? {how}$")
        self.assertGreaterEqual(found["share"], 0.25)

    def test_gc(self):
        """Threads of the runtime's own collect, and it is told for whom."""
        # With GOGC=100, a CPU that is free does most of the collecting: that is no fault.
        self.check_gc(self.start_go("keep", garbage=25), "main.handle")

    def test_gc_is_idle(self):
        """Of the little that a program computes that is nearly idle, half may be collecting."""
        self.assertNotIn("gc", {found["rule"] for found in self.explain(self.start_go("keep", "idle"))})

    def test_gc_java(self):
        harness.need(shutil.which("java"), "needs Java")
        for collector in "UseSerialGC", "UseG1GC":
            with self.subTest(collector), tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder, "Main.java")
                source.write_text(GARBAGE_JAVA, encoding="utf-8")
                target = self.start("java", "-Xmx48m", f"-XX:+{collector}", source)
                self.check_gc(target, "Main.handle")
                target.end()

    def test_gc_java_is_healthy(self):
        """Copying what is new takes half of the CPU time of a batch: that is told, but it is no fault."""
        harness.need(shutil.which("java"), "needs Java")
        for collector in "UseSerialGC", "UseG1GC":
            with self.subTest(collector), tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder, "Main.java")
                source.write_text(BATCH_JAVA, encoding="utf-8")
                target = self.start("java", "-Xms1g", "-Xmx1g", f"-XX:+{collector}", source)
                findings = self.explain(target)
                target.end()
                self.assertEqual([found for found in findings if found["rule"] == "gc" and found["fault"]], [])

    def test_child_java(self):
        """Who waits for a child is told, but not the thread of Java's that waits for each."""
        harness.need(shutil.which("java"), "needs Java")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "Main.java")
            source.write_text(CHILD_JAVA, encoding="utf-8")
            for args, told in ((), ("sleep", "Main.rest")), (("wait",), ("child", "Main.main")):
                with self.subTest(told[0]):
                    found = self.first(self.start("java", source, *args))
                    self.assertEqual((found["rule"], found["function"]), told)

    def test_gc_python(self):
        self.check_gc(self.python(GARBAGE_PYTHON), "handle", "has it done the most")

    def test_gc_is_healthy(self):
        """A program that computes with what it allocates is told to compute."""
        found = self.first(self.start_go())
        self.assertEqual((found["rule"], found["function"], found["fault"]), ("hot", "main.handle", False))

    def test_every_rule(self):
        """A rule without a test fails here: in this file test_NAME, or a case in unit/test_explain.c."""
        root = pathlib.Path(__file__).parent
        rules = re.findall(r'\[RULE_\w+\] = {"([\w-]+)"', (root / "../src/write/explain.c").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(set(rules)), 13)
        cases = set(re.findall(r'"!?([\w-]+)"},', (root / "unit/test_explain.c").read_text(encoding="utf-8")))
        self.assertEqual([rule for rule in rules if rule not in cases and not hasattr(self, f"test_{rule}")], [])

    def test_cpu(self):
        cpu = str(max(os.sched_getaffinity(0)))
        target = self.start(harness.find_tool("taskset"), "-c", cpu, harness.fixture("clocked"), "60", "spin", "0", "8",
                            ready=None)  # fmt: skip
        found = self.explain(target)[0]
        self.assertEqual(found["rule"], "cpu")
        self.assertRegex(found["text"], r"^the program waited [\d.]+ s for a CPU")

    def test_peer(self):
        found = self.first(self.python(PEER))
        self.assertIn(found["rule"], ("peer", "sleep"))
        self.assertIn(found["function"], ("ask", "answer"))

    def test_file(self):
        harness.need(os.statvfs(".").f_flag is not None, "needs a disk")
        found = self.explain(self.python(FSYNC))
        is_busy = found and found[0]["rule"] == "cpu" and found[0]["share"] > 0.8  # the machine: no time is left
        self.assertTrue(is_busy or "save" in {finding.get("function") for finding in found}, found)

    def test_sleep(self):
        """Sleeping is idle time, as in the tables: it is told as a time, not as a share of the busy time."""
        text = Run(["explain", "-d", SECONDS, self.python(SLEEP).pid]).finish().stdout.decode()
        if "the program waited" in text:
            return  # a busy machine: little time is left to sleep in
        self.assertRegex(text, r"(?m)^1\. retry \(.*\), called by <module>, (sleeps between other work|mostly sleeps), for [\d.]+ s\.$")
        self.assertIn("\n\nNothing stands out as a fault. What it does most:\n\n1. ", text)

    def test_idle(self):
        run = Run(["explain", "-d", SECONDS, self.python(IDLE).pid]).finish()
        self.assertIn("wait for work nearly all of the time", run.stdout.decode())

    def test_idle_sleeper(self):
        """What only sleeps is told, but it is idle."""
        text = Run(["explain", "-d", SECONDS, self.python(TICKER).pid]).finish().stdout.decode()
        self.assertRegex(text, r"(?m)^It is idle: .* What sleeps most:\n\n1\. tick \(")

    def test_build(self):
        self.assertNotIn("child", {finding["rule"] for finding in self.explain(self.python(BUILD))})

    def test_server(self):
        """A connection that it has accepted is waited for without work, also with a time limit."""
        for limit in "None", "30":
            with self.subTest(limit):
                target = self.python(SERVER.format(limit=limit))
                findings = self.explain(target)
                target.end()
                self.assertNotIn("serve", {found.get("function") for found in findings if found["rule"] != "hot"})

    def test_client(self):
        """One that it has made is waited for until there is an answer: with a time limit, in poll."""
        backend = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(backend.close)

        def answer():
            with contextlib.suppress(OSError):
                with backend.accept()[0] as connection:
                    while connection.recv(1):
                        time.sleep(0.03)
                        connection.send(b"x")

        for limit in "None", "30":
            with self.subTest(limit):
                thread = threading.Thread(target=answer)
                thread.start()
                target = self.python(CLIENT.format(port=backend.getsockname()[1], limit=limit))
                found = self.first(target)
                target.end()
                thread.join()
                self.assertEqual((found["rule"], found["function"]), ("peer", "ask"))

    def test_recording(self):
        """A recording is told like the process, as text and as Markdown; its command names the file."""
        run = start_wrap([harness.fixture("blame"), SECONDS, "chain"], "--locks", form="record").finish(keep=(0,))
        text = report(run.data, verb="explain")[0].decode()
        self.assertRegex(text, r"\n1\. \d+ % handle \(blame\.c:\d+\), called by work, waits for a lock held by")
        self.assertRegex(text, r"\n   For \d+ % of that it is in ")
        self.assertIn("\n   See: profiler report FILE.wprof --blame --focus=handle -o look.html\n", text)
        self.assertIn(b"\n1. **", report(run.data, "--markdown", verb="explain")[0])

    def test_functions_that_are_not_shown(self):
        """What would show them is said, as after any run: a finding may be the interpreter's."""
        perl = harness.find_tool("perl")
        target = self.start(perl, "-e", '$|=1; print "ready\\n"; while (1) { $n++ }')
        run = Run(["explain", "-d", "0.5", target.pid]).finish()
        self.assertIn("profiler: Perl functions are not shown: ", run.stderr)
        self.assertEqual(Run(["explain", "-d", "0.5", "-q", target.pid]).finish().stderr, "")

    def test_child_node(self):
        """Node waits for a child in a loop of events."""
        found = self.first(self.start(harness.find_tool("node"), "-e", CHILD_NODE))
        self.assertEqual((found["rule"], found["text"]), ("child", "convert ([eval]:3) waits for a child process"))

    def test_functions_without_names(self):
        """That it computes in code of a compiler in the program is said, if nothing names that code."""
        program = "let n = 0; setInterval(() => { for (let i = 0; i < 1e7; i++) n += i % 7 }, 1)"
        node = [harness.find_tool("timeout"), SECONDS, harness.find_tool("node"), "-e", program]
        run = start_wrap(node, "-c", "--runtimes=none", form="record").finish(expect=None)
        text = report(run.data, verb="explain")[0].decode()
        self.assertRegex(text, r"\n1\. \d+ % .* computes in functions compiled at run time, which have no names\.\n")

    def test_usage(self):
        run = Run(["explain"]).finish(expect=harness.STATUS_USAGE)
        self.assertIn("explain: give a process: profiler explain PID", run.stderr)


if __name__ == "__main__":
    harness.main()
