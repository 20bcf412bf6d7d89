# SPDX-License-Identifier: MIT
"""profiler dump: what all threads do now, since when, what for, and who holds it."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import harness
from harness import Run
from told import Summary

KINDS = {"running", "runnable", "lock", "condition", "file", "socket", "event", "timer", "pipe", "stopped"}
MAX_DESCRIPTORS = 1 << 18  # that are looked at (peer_end.h)
TEXT, NUMBER, BOOL, NONE = str, int, bool, type(None)

# The keys of each object and the types of their values; a list has one item: that of its own.
FRAME = {
    "name": TEXT, "file": TEXT, "line": NUMBER, "module": TEXT, "offset": TEXT, "address": TEXT,
    "inlined": BOOL,
}  # fmt: skip
OWNER = {"tid": (NUMBER, NONE), "pid": NUMBER, "name": TEXT}
SCHEMA = {
    "version": NUMBER, "pid": NUMBER, "command": TEXT, "host": TEXT, "time": TEXT,
    "threads": [{
        "tid": NUMBER, "pid": NUMBER, "name": TEXT, "state": TEXT, "kind": TEXT,
        "labels": dict,
        "blocked_ns": (NUMBER, NONE), "blocked_is": TEXT, "unmoved": BOOL,
        "syscall": (NONE, {"name": TEXT, "args": [TEXT], "text": (TEXT, NONE)}),
        "descriptor": (TEXT, NONE),
        "waits_for": (NONE, {
            "what": TEXT, "address": TEXT, "symbol": (TEXT, NONE), "owners": [OWNER],
            "readers": NUMBER, "certainty": (TEXT, NONE),
        }),
        "frames": [FRAME], "truncated": (TEXT, NONE),
    }],
    "deadlocks": [[NUMBER]],
    "roots": [{"tid": NUMBER, "pid": NUMBER, "waiters": NUMBER}],
    "not_looked_at": {"processes": NUMBER, "descriptors": NUMBER},
}  # fmt: skip


def check_schema(value, schema, where="dump"):
    if isinstance(schema, tuple):
        wanted = [s for s in schema if (s is NONE) == (value is None)]
        assert wanted, f"{where} is {value!r}"
        return check_schema(value, wanted[0], where)
    if isinstance(schema, dict):
        assert isinstance(value, dict) and value.keys() == schema.keys(), f"{where}: {value!r}"
        for key, inner in schema.items():
            check_schema(value[key], inner, f"{where}.{key}")
    elif schema is dict:
        assert isinstance(value, dict) and {str} >= {type(part) for part in value.values()}, f"{where}: {value!r}"
    elif isinstance(schema, list):
        assert isinstance(value, list), f"{where} is {value!r}"
        for item in value:
            check_schema(item, schema[0], f"{where}[]")
    else:
        assert type(value) is schema, f"{where} is {value!r}"
    return None


def dump_text(target, *args, expect=0):
    """The text of a dump; the target was let go."""
    pid = target if isinstance(target, int) else target.pid
    return Run(["dump", pid, *args], target_pid=pid).finish(expect=expect).stdout.decode()


def dump(target, *args, expect=0):
    """A dump as JSON, checked against the schema."""
    told = json.loads(dump_text(target, "--json", *args, expect=expect))
    check_schema(told, SCHEMA)
    for thread in told["threads"]:
        assert thread["kind"] in KINDS, thread
        assert (thread["blocked_ns"] is None) == (thread["blocked_is"] == "unknown"), thread
    return told


def by_name(told):
    return {thread["name"]: thread for thread in told["threads"]}


# System calls (x86-64) in which Python waits.
READ, POLL, RECVFROM, WAIT4, CLOCK_NANOSLEEP = 0, 7, 45, 61, 230


def calls_of(pid):
    """The numbers of the calls in which its threads wait, sorted; of one that runs, -1."""
    numbers = []
    for tid in harness.tids_of(pid):
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
            word = file.read().split()[0]
        numbers.append(-1 if word == "running" else int(word))
    return sorted(numbers)


def wait_for_calls(target, *numbers):
    """Waits until its threads wait in these calls, and not for Python's own lock."""
    harness.wait_for(lambda: calls_of(target.pid) == sorted(numbers), f"the calls {numbers}")


class Waits(harness.TestCase):
    def check_each_lock(self, target, nameless):
        """The dump of "locks all". Nothing tells what the waits in `nameless` are but their words."""
        told = dump(target)
        threads = by_name(told)
        lines = [line.split() for line in target.said if line.startswith("wait ")]
        self.assertEqual(len(lines), 15)
        for _, name, tid, kind, what, owner in lines:
            thread = threads[name]
            waits = thread["waits_for"]
            self.assertEqual((thread["tid"], thread["kind"]), (int(tid), kind), name)
            if name not in nameless or int(owner):
                self.assertEqual(waits["what"], what, name)
            owners = [o["tid"] for o in waits["owners"]]
            self.assertEqual(owners, [int(owner)] if int(owner) else [], name)
            certainty = "inferred" if name in nameless else "read"
            self.assertEqual(waits["certainty"], certainty if int(owner) else None, name)
            self.assertEqual(waits["readers"], 1 if name == "read-only" else 0, name)
            self.assertEqual(thread["syscall"]["name"], "futex", name)
            self.assertIsNone(thread["truncated"], name)
        return told

    def test_each_lock(self):
        """Kind, what it waits for, its holder, and that this was read, not inferred."""
        target = self.start_fixture("locks", "all")
        told = self.check_each_lock(target, nameless=())
        threads = by_name(told)
        self.assertEqual(threads["normal"]["waits_for"]["symbol"], "normal")
        self.assertEqual(told["deadlocks"], [])
        self.assertEqual([root["waiters"] for root in told["roots"]], [11])
        text = dump_text(target)
        self.assertRegex(text, r'! 11 threads wait, directly or not, for "holder" \d+, which is in')
        self.assertRegex(text, r"rwlock read_only held by 1 reader\n")
        self.assertNotIn("DEADLOCK", text)
        without = dump(target, "--no-locks")
        self.assertEqual({t["waits_for"] for t in without["threads"]}, {None})

    def test_without_an_owner(self):
        """A lock in which nobody's id stands: inferred from who has its address, and said so."""
        target = self.start_fixture("locks", "nameless")
        threads = by_name(dump(target))
        waits = threads["waiter"]["waits_for"]
        self.assertEqual((waits["what"], waits["certainty"]), ("lock", "inferred"))
        self.assertEqual([o["tid"] for o in waits["owners"]], [threads["holder"]["tid"]])
        self.assertRegex(dump_text(target), r'lock word perhaps held by "holder" \d+\n')

    def start_waiting(self, name):
        """The fixture, whose threads have all come to their waits."""
        target = self.start_fixture(name)
        harness.wait_for(
            lambda: all(
                harness.read_status(target.pid, int(tid))["State"][0] == "S"
                for tid in os.listdir(f"/proc/{target.pid}/task")
            ),
            "the threads' waits",
        )
        return target

    def test_cxx(self):
        """C++ locks are the C library's, but for a static variable's guard."""
        target = self.start_waiting("locks_cxx")
        told = dump(target)
        threads = by_name(told)
        holder = threads["holder"]["tid"]
        for name, what in (
            ("mutex", "mutex"), ("recursive", "mutex"), ("timed", "mutex"),
            ("written", "rwlock"), ("read-written", "rwlock"), ("join", "join"),
        ):  # fmt: skip
            waits = threads[name]["waits_for"]
            owners = [o["tid"] for o in waits["owners"]]
            self.assertEqual((waits["what"], owners, waits["certainty"]), (what, [holder], "read"), name)
            self.assertEqual(threads[name]["kind"], "condition" if what == "join" else "lock", name)
        guard = threads["guard"]
        self.assertEqual((guard["kind"], guard["waits_for"]["what"]), ("lock", "static initialization"))
        self.assertNotEqual(guard["waits_for"]["certainty"], "read")
        self.assertEqual(told["deadlocks"], [])

    def test_long_names(self):
        """Without their template arguments, unless all is asked for."""
        target = self.start_fixture("cxx-O0", "virtual")
        whole = [frame["name"] for thread in dump(target)["threads"] for frame in thread["frames"]]
        long_one = next(name for name in whole if "_M_invoke" in name)
        self.assertGreater(len(long_one), 44)
        self.assertIn("\n    std::_Function_handler::_M_invoke  ", dump_text(target))
        self.assertIn(f"\n    {long_one}  ", dump_text(target, "--all-frames"))

    def test_rust(self):
        """Rust's locks name nobody: holders are inferred, if at all, and no deadlock is claimed."""
        target = self.start_waiting("locks_rust")
        told = dump(target)
        threads = by_name(told)
        for name, holder in (
            ("mutex", "holder"), ("written", "holder"), ("read-written", "holder"),
            ("dead0", "dead1"), ("dead1", "dead0"),
        ):  # fmt: skip
            waits = threads[name]["waits_for"]
            self.assertEqual((threads[name]["kind"], waits["what"]), ("lock", "lock"), name)
            self.assertLessEqual({o["tid"] for o in waits["owners"]}, {threads[holder]["tid"]}, name)
            self.assertIn(waits["certainty"], ("inferred", None), name)
        self.assertEqual(told["deadlocks"], [])

    def test_without_libc_symbols(self):
        """As on most machines: what the C library does not export has no name there."""
        directory = self.directory()
        with open("/proc/self/maps", encoding="utf-8") as maps:
            (libc,) = {line.split()[-1] for line in maps if re.search(r"/libc[-.0-9]*\.so", line)}
        stripped = os.path.join(directory, "libc.so.6")
        # Its debug file is not to be found, either.
        sections = (f"-R{name}" for name in (".note.gnu.build-id", ".gnu_debuglink"))
        subprocess.run(["objcopy", "--strip-all", *sections, libc, stripped], check=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": directory}
        target = self.start_fixture("locks", "all", env=environment)
        with open(f"/proc/{target.pid}/maps", encoding="utf-8") as maps:
            self.assertIn(stripped, maps.read())
        nameless = ("robust", "timed", "condition", "semaphore", "barrier")
        self.check_each_lock(target, nameless)
        target = self.start_fixture("locks", "join", env=environment)
        told = dump(target)
        threads = by_name(told)
        tids = {threads[name]["tid"] for name in ("dead0", "dead1")}
        self.assertEqual([set(cycle) for cycle in told["deadlocks"]], [tids])

    def test_since_when(self):
        """How long a thread has slept, by its own clock, which is what it prints."""
        program = """
import threading, time
def sleep():
    time.sleep(1000)
def sleeps(thread):
    with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
        return file.read().startswith("230 ") # clock_nanosleep
for i in range(3):
    thread = threading.Thread(target=sleep, daemon=True)
    thread.start()
    while not sleeps(thread):
        time.sleep(0.01)
    time.sleep(0.3)
print("ready", flush=True)
time.sleep(1000)
"""
        begin = time.monotonic()
        target = self.start(sys.executable, "-c", program)
        wait_for_calls(target, *[CLOCK_NANOSLEEP] * 4)
        asleep = time.monotonic()
        time.sleep(0.2)
        before = time.monotonic()
        told = dump(target)
        after = time.monotonic()
        slept = sorted(t["blocked_ns"] / 1e9 for t in told["threads"])
        if None in slept or len(slept) != 4:
            self.fail(f"slept: {slept}")
        self.assertEqual({t["blocked_is"] for t in told["threads"]}, {"at_least"})
        # The first was born after begin; each 0.3 s later; main has slept when it was seen asleep. The
        # clocks of CPUs may differ by some milliseconds.
        self.assertLess(slept[-1], after - begin + 0.02)
        self.assertGreater(slept[0], before - asleep - 0.15)
        self.assertGreater(slept[-1] - slept[0], 0.6)

    def test_arguments_in_words(self):
        target = self.start_fixture("blocking")
        calls = {t["name"]: t["syscall"]["text"] for t in dump(target)["threads"]}
        for name, pattern in {
            "mutex": r"futex\(0x[0-9a-f]+, FUTEX_WAIT_PRIVATE, 2\)",
            "timed_cond": r"futex\(.*, FUTEX_WAIT_BITSET_PRIVATE, 0, 16 min \d+ s left\)",
            "clock_nanosleep": r"clock_nanosleep\(CLOCK_MONOTONIC, 16 min \d+ s left\)",
            "nanosleep": r"clock_nanosleep\(CLOCK_REALTIME, 1000 s\)",
            "pipe_read": r"read\(\d+ pipe:\[\d+\]\)",
            "poll": r"poll\(pipe:\[\d+\], -1\)",
            "ppoll": r"ppoll\(pipe:\[\d+\], 1000 s\)",
            "flock": r"flock\(\d+ /tmp/\S+ \(deleted\), LOCK_EX\)",
            "waitpid": r"wait4\(\d+\)",
            "accept": r"accept\(\d+ unix @\w+\)",
            "epoll_wait": r"epoll_wait\(\d+ epoll, -1\)", "pause": r"pause\(\)",
        }.items():
            self.assertRegex(calls[name], rf"\A{pattern}\Z", name)
        text = dump_text(target)
        self.assertRegex(text, r'"pipe_read" \d+   pipe, [\d.]+ s   read\(\d+ pipe')
        self.assertRegex(text, r"\n    in_mutex +blocking.c:\d+  blocking\n")
        self.assertRegex(text, r"\n    start_thread, clone3?\n")


class Peers(harness.TestCase):
    def test_other_ends(self):
        """Of a pipe and a unix socket: the processes that have them, by the way that counts."""
        program = """
import os, socket, threading, time
to_child, from_parent = socket.socketpair()
read_end, write_end = os.pipe()
child = os.fork()
if child == 0:
    os.close(read_end)
    to_child.close()
    time.sleep(1000)
os.close(write_end)
from_parent.close()
threading.Thread(target=lambda: os.read(read_end, 1), daemon=True).start()
threading.Thread(target=lambda: to_child.recv(1), daemon=True).start()
time.sleep(0.1)
print(child)
print("ready", flush=True)
os.waitpid(child, 0)
"""
        target = self.start(sys.executable, "-c", program)
        child = int(target.said[0])
        self.addCleanup(os.kill, child, signal.SIGKILL)
        wait_for_calls(target, READ, RECVFROM, WAIT4)
        waits = [t["waits_for"] for t in dump(target)["threads"]]
        found = {w["what"]: ([o["pid"] for o in w["owners"]], w["certainty"]) for w in waits}
        expected = ([child], "read")
        self.assertEqual(found, {"pipe": expected, "socket": expected, "child": expected})
        self.assertIn('the other end has process "', dump_text(target))


    def test_connection(self):
        """The other end of a connection within the machine, whichever family its sockets have."""
        program = """
import os, socket, threading, time
def connect(family, address, to):
    listener = socket.socket(family)
    listener.bind((address, 0))
    listener.listen()
    near = socket.create_connection((to, listener.getsockname()[1]))
    far = listener.accept()[0]
    listener.close()
    return near, far
pairs = [connect(socket.AF_INET, "127.0.0.1", "127.0.0.1"), connect(socket.AF_INET6, "::", "127.0.0.1")]
child = os.fork()
for near, far in pairs:
    (near if child == 0 else far).close()
if child == 0:
    time.sleep(1000)
for near, far in pairs:
    threading.Thread(target=lambda near=near: near.recv(1), daemon=True).start()
time.sleep(0.1)
print(child)
print("ready", flush=True)
os.waitpid(child, 0)
"""
        target = self.start(sys.executable, "-c", program)
        child = int(target.said[0])
        self.addCleanup(os.kill, child, signal.SIGKILL)
        wait_for_calls(target, RECVFROM, RECVFROM, WAIT4)
        waits = [t["waits_for"] for t in dump(target)["threads"]]
        found = [[o["pid"] for o in w["owners"]] for w in waits if w["what"] == "socket"]
        self.assertEqual(found, [[child], [child]])

    def test_many_ends(self):
        """One pipe with many who wait, and many who could write: the first few are named."""
        program = """
import os, threading, time
read_end, write_end = os.pipe()
ends = [os.dup(write_end) for _ in range(100)]
children = []
for _ in range(9):
    child = os.fork()
    if child == 0:
        time.sleep(1000)
    children.append(child)
os.close(write_end)
for end in ends:
    os.close(end)
for _ in range(20):
    threading.Thread(target=lambda: os.read(read_end, 1), daemon=True).start()
time.sleep(0.1)
print(*children)
print("ready", flush=True)
time.sleep(1000)
"""
        target = self.start(sys.executable, "-c", program)
        children = [int(pid) for pid in target.said[0].split()]
        for child in children:
            self.addCleanup(os.kill, child, signal.SIGKILL)
        wait_for_calls(target, *[READ] * 20, CLOCK_NANOSLEEP)
        waits = [t["waits_for"] for t in dump(target)["threads"]]
        found = [[o["pid"] for o in w["owners"]] for w in waits if w and w["what"] == "pipe"]
        self.assertEqual(found, [found[0]] * 20)
        self.assertEqual(len(found[0]), 8)
        self.assertLessEqual(set(found[0]), set(children))
        self.assertRegex(dump_text(target), r"the other end has process .* and 1 more\n")


    def test_too_many(self):
        """What is left out for its number is counted, and said: processes, and descriptors."""
        program = f"""
import os, resource, threading, time
children = [os.fork() or time.sleep(1000) for _ in range(40)]
for pid in children:
    threading.Thread(target=os.waitpid, args=(pid, 0), daemon=True).start()
read_end, write_end = os.pipe()
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, ({MAX_DESCRIPTORS + 1000},) * 2)
    for _ in range({MAX_DESCRIPTORS}):
        os.dup(write_end)
except (OSError, ValueError):
    print("few")
print(*children)
threading.Thread(target=os.read, args=(read_end, 1), daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""
        target = self.start(sys.executable, "-c", program)
        for child in map(int, target.said[-1].split()):
            self.addCleanup(os.kill, child, signal.SIGKILL)
        wait_for_calls(target, *[WAIT4] * 40, READ, CLOCK_NANOSLEEP)
        told = dump(target)
        # 32 processes are looked at, the target one of them.
        self.assertEqual(told["not_looked_at"]["processes"], 9)
        text = dump_text(target)
        self.assertIn("! 9 more processes hold something and were not checked", text)
        if target.said[0] != "few":
            self.assertGreater(told["not_looked_at"]["descriptors"], 0)
            self.assertRegex(text, rf"! \d+ descriptors were not checked, beyond the first {MAX_DESCRIPTORS}:")


class States(harness.TestCase):
    def dump_one(self, target):
        """Its only thread, which has no stack while it gets no CPU: then again, as attach() does."""
        for _ in range(5):
            (thread,) = dump(target)["threads"]
            if thread["frames"][0]["name"] != harness.NO_STACK[0]:
                break
        return thread

    def test_running_and_stopped(self):
        target = self.start_fixture("calls-O2", "spin")
        harness.wait_until_spinning(target)
        thread = self.dump_one(target)
        self.assertIn(thread["kind"], ("running", "runnable"))
        self.assertIsNone(thread["blocked_ns"])
        self.assertIn("leaf_spin", [frame["name"] for frame in thread["frames"]])
        os.kill(target.pid, signal.SIGSTOP)
        harness.wait_for(lambda: harness.read_status(target.pid)["State"][0] == "T", "the stop")
        thread = self.dump_one(target)
        self.assertEqual((thread["kind"], thread["state"]), ("stopped", "stopped"))
        self.assertIn("leaf_spin", [frame["name"] for frame in thread["frames"]])

    def test_traced(self):
        """Somebody else's tracee: what sleeps is shown all the same."""
        target = self.start_fixture("locks", "cycle", "2")
        tracer = self.start_fixture("tracer", target.pid)
        self.assertTrue(tracer.pid)
        told = dump(target)
        self.assertEqual(len(told["deadlocks"]), 1)

    def test_grouped_filtered_repeated(self):
        target = self.start_fixture("threads", 6, 1)
        text = dump_text(target)
        self.assertRegex(text, r": \d threads, same stack   timer")
        self.assertNotIn("same stack", dump_text(target, "--no-group"))
        told = [json.loads(line) for line in
                dump_text(target, "-n", 2, "--interval=10ms", "--json").splitlines()]  # fmt: skip
        self.assertEqual({t["unmoved"] for t in told[0]["threads"]}, {False})
        self.assertTrue(all(t["unmoved"] for t in told[1]["threads"] if t["kind"] == "timer"))
        name = told[0]["threads"][0]["name"]
        self.assertEqual(set(by_name(dump(target, f"--thread=^{re.escape(name)}$"))), {name})

    def test_check_of_blocked(self):
        target = self.start_fixture("blocking")
        time.sleep(0.1)
        told = dump_text(target, "--check", "--blocked=50ms", expect=11)
        self.assertRegex(told, r'(?m)^! "[^"]+" \d+ has waited for [\d.]+ m?s \(\w+\), longer than --blocked')
        self.assertNotIn("--blocked", dump_text(target, "--check", "--blocked=1h"))

    def test_mistakes(self):
        for args, message in (
            ([], "give a process"),
            (["1", "/x"], "give processes or one file: '/x' is one more"),
            (["--at=1s", "1"], "--at needs a recording"),
            ([__file__], "say when: --at=WHEN"),
            (["sleep"], "'sleep' is neither a process id nor a file; for the id of a process: pidof sleep"),
            (["./x.wprof"], "there is no file './x.wprof'"),
            (["--interval=1s", "1"], "--interval needs --count"),
            (["--blocked=1s", "1"], "--blocked needs --check"),
            (["--duration=1", "1"], "dump does not take --duration"),
        ):
            run = Run(["dump", *args]).finish(expect=harness.STATUS_USAGE)
            self.assertIn(message, run.stderr)
        Run(["dump", "999999999"]).finish(expect=harness.STATUS_TARGET)


class Past(harness.TestCase):
    def test_of_a_recording(self):
        """The stacks are those of a live dump; names, kinds and how long it has slept, too."""
        target = self.start_fixture("locks", "cycle", "2")
        path = os.path.join(self.directory(), "x.wprof")
        run = Run(["-p", target.pid, "-d", "0.5", "--locks", "-o", path], target_pid=target.pid)
        run.communicate()
        tick_ns = 0.5e9 / Summary(run.stderr).ticks  # of those that were not missed
        live = by_name(dump(target))
        told = json.loads(Run(["dump", path, "--at=0.3s", "--json"]).finish().stdout)
        check_schema(told, SCHEMA)
        past = by_name(told)
        self.assertEqual(past.keys(), live.keys())
        for name, thread in past.items():
            frames = [(f["name"], f["line"]) for f in live[name]["frames"]]
            self.assertEqual([(f["name"], f["line"]) for f in thread["frames"]], frames, name)
            self.assertEqual(thread["kind"], live[name]["kind"])
            self.assertEqual(thread["blocked_is"], "at_least")
            self.assertAlmostEqual(thread["blocked_ns"], 0.3e9, delta=2 * tick_ns)
        text = Run(["dump", path, "--at=0.3s"]).finish().stdout.decode()
        self.assertRegex(text, r'\n"dead0" \d+   lock, 0.\d\d s   futex\(...\)   mutex 0x\w+ held by "dead1" \d+\n')
        run = Run(["dump", path, "--at=9s"]).finish(expect=harness.STATUS_USAGE)
        self.assertIn("nothing was sampled then", run.stderr)
        run = Run(["dump", harness.PROFILER, "--at=9s"]).finish(expect=harness.STATUS_TARGET)
        self.assertIn("is not a recording", run.stderr)


if __name__ == "__main__":
    harness.main()
