# SPDX-License-Identifier: MIT
"""What sleeping threads wait in: the system call, its descriptor, kernel frames."""

import collections
import os
import re
import signal
import sys

import harness
from harness import attach
from test_fallbacks import without

# Of each kind of the fixture blocking: system calls, one of which it is, and the descriptor.
NOTHING, PIPE, UNIX = "", r"pipe:\[\d+\]", r"unix:\[\d+\]"
BLOCKING = {
    "nanosleep": ("clock_nanosleep nanosleep", NOTHING),
    "clock_nanosleep": ("clock_nanosleep", NOTHING),
    "mutex": ("futex", NOTHING),
    "cond": ("futex", NOTHING),
    "timed_cond": ("futex", NOTHING),
    "rwlock": ("futex", NOTHING),
    "barrier": ("futex", NOTHING),
    "sem_wait": ("futex", NOTHING),
    "pipe_read": ("read", PIPE),
    "pipe_write": ("write", PIPE),
    "recv": ("recvfrom", UNIX),
    "recvmsg": ("recvmsg", UNIX),
    "send": ("sendto", UNIX),
    "accept": ("accept", r"unix @[0-9a-f]+"),
    "poll": ("poll", PIPE),
    "ppoll": ("ppoll", PIPE),
    "select": ("select pselect6", PIPE),
    "epoll_wait": ("epoll_wait epoll_pwait", "epoll"),
    "eventfd": ("read", "eventfd"),
    "timerfd": ("read", "timerfd"),
    "signalfd": ("read", "signalfd"),
    "inotify": ("read", "inotify"),
    "waitpid": ("wait4", NOTHING),
    "sigwait": ("rt_sigtimedwait", NOTHING),
    "pause": ("pause rt_sigsuspend", NOTHING),
    "flock": ("flock", r"/tmp/profiler-fixture-\w+ \(deleted\)"),
    "msgrcv": ("msgrcv", NOTHING),
    "semop": ("semop semtimedop", NOTHING),
}

# And the kind of time that it is.
KINDS = {
    "lock": "mutex rwlock flock",
    "condition": "cond timed_cond barrier sem_wait",
    "socket": "recv recvmsg send accept",
    "event": "poll ppoll select epoll_wait signalfd inotify sigwait",
    "timer": "nanosleep clock_nanosleep timerfd pause",
    "pipe": "pipe_read pipe_write eventfd waitpid msgrcv semop",
}

# Sockets in threads that are named by what they wait for; says the addresses.
SOCKETS = """
import ctypes, socket, threading, time
def name(text):
    ctypes.CDLL(None).prctl(15, text.encode(), 0, 0, 0)
def show(address):
    return ("[%s]:%d" if ":" in address[0] else "%s:%d") % address[:2]
for number, (family, host) in enumerate(((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))):
    listener = socket.socket(family)
    listener.bind((host, 0))
    listener.listen()
    client = socket.socket(family)
    client.connect(listener.getsockname())
    server, _ = listener.accept()
    bound = socket.socket(family, socket.SOCK_DGRAM)
    bound.bind((host, 0))
    joined = socket.socket(family, socket.SOCK_DGRAM)
    joined.connect(bound.getsockname())
    for kind, wait, what in (
        ("listen", listener.accept, "tcp %s (listening)" % show(listener.getsockname())),
        ("client", lambda s=client: s.recv(1),
         "tcp %s -> %s" % (show(client.getsockname()), show(client.getpeername()))),
        ("server", lambda s=server: s.recv(1),
         "tcp %s -> %s" % (show(server.getsockname()), show(server.getpeername()))),
        ("bound", lambda s=bound: s.recv(1), "udp %s" % show(bound.getsockname())),
        ("joined", lambda s=joined: s.recv(1),
         "udp %s -> %s" % (show(joined.getsockname()), show(joined.getpeername()))),
    ):
        def run(kind=kind + str(number), wait=wait):
            name(kind)
            started.set()
            wait()
        started = threading.Event()
        threading.Thread(target=run, daemon=True).start()
        started.wait()
        print(kind + str(number), what, flush=True)
print("ready", flush=True)
time.sleep(1000)
"""


def waits_of(run, thread):
    """Counter of (system call, descriptor) of a thread's samples."""
    counts = collections.Counter()
    for sample in run.pprof.samples:
        if sample.thread == thread:
            counts[sample.syscall, sample.descriptor or ""] += sample.count
    return counts


class KernelWorker(harness.TestCase):
    def test_sleeps(self):
        """One of io_uring has no stack that a stop could show: it sleeps on."""
        target = self.start_fixture("kernel_worker")
        harness.need("none" not in target.said, "no io_uring here")
        harness.wait_until_settled(target.pid)
        run = attach(target, hz=499, duration="1")
        states = collections.Counter()
        for sample in run.pprof.samples:
            if sample.thread.startswith("iou-wrk"):
                states[sample.state] += sample.count
        self.assertGreater(states["sleeping"], 0)
        self.assertGreaterEqual(states["sleeping"], 0.95 * sum(states.values()), states)
        self.assertLess(run.summary.stopped, 10, run.stderr)


    def test_reads(self):
        """What it does for the program is not cut, as it is never stopped: its completion would say
        less than was asked for."""
        run = harness.start_wrap(
            [harness.fixture("kernel_worker"), "3"], "--max-overhead=0", hz=997
        ).finish()
        told = run.stdout.decode()
        harness.need("none" not in told, "no io_uring here")
        n, n_short = map(int, re.search(r"(\d+) reads, (\d+) short", told).groups())
        self.assertGreater(n, 10)
        self.assertEqual(n_short, 0, f"the target found faults: {told}")
        ran = sum(
            s.count for s in run.pprof.samples
            if s.thread.startswith("iou-wrk") and s.state == "running"
        )  # fmt: skip
        self.assertGreater(ran, 100)


class NapAndBurn(harness.TestCase):
    def test_of_one_moment(self):
        """A thread that sleeps where only a stop shows its callers, and has woken by the time that it
        stops, is counted with the stack in which it slept."""
        run = attach(self.start_fixture("nap_and_burn"), "--max-overhead=0", hz=499, duration="2")
        burns = collections.Counter()
        for sample in run.pprof.samples:
            if sample.state == "sleeping":
                self.assertTrue(sample.syscall, sample)
            if "burn" in sample.stack:
                burns[sample.state, sample.syscall] += sample.count
        self.assertGreater(burns["running", None] + burns["runnable", None], 50)
        # It may wait for a CPU, but code that only computes is never asleep.
        self.assertLessEqual(set(burns), {("running", None), ("runnable", None)}, burns)


class Labels(harness.TestCase):
    def check(self, run, kinds):
        for kind in kinds:
            calls, descriptor = BLOCKING[kind]
            waits = waits_of(run, kind)
            self.assertEqual(len(waits), 1, f"{kind}: {waits}")
            (call, found), _ = waits.popitem()
            self.assertIn(call, calls.split(), kind)
            self.assertRegex(found, rf"\A{descriptor}\Z", kind)

    def test_each_call(self):
        target = self.start_fixture("blocking")
        self.assertEqual(set(target.said), set(BLOCKING))
        self.check(attach(target), target.said)

    def test_kinds(self):
        """Of the fixture blocking each call's; and those that it has not."""
        target = self.start_fixture("blocking")
        expected = {name: kind for kind, names in KINDS.items() for name in names.split()}
        self.assertEqual(set(expected), set(BLOCKING))
        found = {s.thread: s.kind for s in attach(target).pprof.samples}
        self.assertEqual({name: found.get(name) for name in expected}, expected)

    def test_kinds_of_others(self):
        """A named pipe, a file being written, computing, a stopped process; in a recording, too."""
        directory = self.directory()
        path = os.path.join(directory, "fifo")
        os.mkfifo(path)
        reader = self.start(
            sys.executable,
            "-c",
            "import os, sys; f = os.open(sys.argv[1], os.O_RDWR); print('ready', flush=True); os.read(f, 1)",
            path,
        )
        harness.wait_until_in_calls(reader.pid)
        run = attach(reader)
        self.assertEqual({(s.kind, s.descriptor) for s in run.pprof.samples}, {("pipe", f"fifo {path}")})
        disk = self.start_fixture("disk", os.path.join(directory, "file"))
        for sample in attach(disk).pprof.samples:
            ready = sample.state in ("running", "runnable")
            self.assertEqual(sample.kind, sample.state if ready else "file")
        spinning = self.start_fixture("calls-O2")
        self.assertIn("running", {s.kind for s in attach(spinning).pprof.samples})
        os.kill(spinning.pid, signal.SIGSTOP)
        harness.wait_for(lambda: harness.read_status(spinning.pid)["State"][0] == "T", "the stop")
        self.assertEqual({s.kind for s in attach(spinning).pprof.samples}, {"stopped"})
        os.kill(spinning.pid, signal.SIGCONT)

    def test_sleepers_that_must_be_stopped(self):
        """Where /proc does not tell, the registers do; nobody knows the descriptor then."""
        target = self.start_fixture("threads", 6, 1)
        run = attach(target, env=without("syscall"))
        for sample in run.pprof.samples:
            if "sleep_here" in sample.stack and sample.state == "sleeping":
                self.assertIn(sample.syscall, ("clock_nanosleep", "restart_syscall"))
                self.assertIsNone(sample.descriptor)

    def test_many_descriptors(self):
        """poll and select tell of the first one, and of how many others."""
        wait = """
import os, select
ends = [os.pipe()[0] for _ in range(3)]
print("ready", flush=True)
if {poll}:
    p = select.poll()
    for end in ends: p.register(end)
    p.poll()
else:
    select.select(ends, [], [])
"""
        for poll in (0, 1):
            target = self.start(sys.executable, "-c", wait.format(poll=poll))
            harness.wait_until_in_calls(target.pid)
            first = os.readlink(f"/proc/{target.pid}/fd/3")
            run = attach(target)
            found = {s.descriptor for s in run.pprof.samples if s.syscall and s.descriptor}
            self.assertEqual(found, {f"{first} +2"})

    def test_no_descriptors(self):
        """poll and select without a descriptor are ways to sleep."""
        program = """
import ctypes
libc = ctypes.CDLL(None)
print("ready", flush=True)
while True: libc.{call}
"""
        # The descriptor of a poll is -1, which it ignores.
        calls = ("poll(0, 0, 100)", "select(0, 0, 0, 0, (ctypes.c_long * 2)(0, 100000))",
                 "select(3, bytes(128), bytes(128), 0, (ctypes.c_long * 2)(0, 100000))",
                 "ppoll(0, 0, (ctypes.c_long * 2)(0, 100000000), 0)",
                 "pselect(0, 0, 0, 0, (ctypes.c_long * 2)(0, 100000000), 0)", "poll(b'\\xff' * 8, 1, 100)")  # fmt: skip
        for call in calls:
            with self.subTest(call):
                target = self.start(sys.executable, "-c", program.format(call=call))
                harness.wait_until_in_calls(target.pid)
                run = attach(target)
                target.end()
                found = {(s.descriptor, s.kind) for s in run.pprof.samples if s.syscall and s.state == "sleeping"}
                self.assertEqual(found, {("no descriptor", "timer")})

    def test_descriptors_of_its_own(self):
        """A thread need not have the descriptors of its process (CLONE_FILES)."""
        program = """
import ctypes, os, threading
common, own = os.pipe(), os.pipe()
def thread():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    os.dup2(own[0], common[0])
    print(os.readlink("/proc/thread-self/fd/%d" % common[0]))
    print("ready", flush=True)
    os.read(common[0], 1)
threading.Thread(target=thread, daemon=True).start()
os.read(common[0], 1)
"""
        target = self.start(sys.executable, "-c", program)
        harness.wait_until_in_calls(target.pid)
        common = os.readlink(f"/proc/{target.pid}/fd/3")
        run = attach(target)
        for sample in run.pprof.samples:
            if sample.syscall == "read":
                expected = common if sample.tid == target.pid else target.said[0]
                self.assertEqual(sample.descriptor, expected)
        self.assertEqual(len({s.descriptor for s in run.pprof.samples if s.descriptor}), 2)

    def test_sockets(self):
        target = self.start(sys.executable, "-c", SOCKETS)
        said = [line.split(" ", 1) for line in target.said]
        self.assertEqual(len(said), 10)
        harness.wait_until_in_calls(target.pid)
        run = attach(target)
        for thread, what in said:
            waits = waits_of(run, thread)
            self.assertEqual({descriptor for _, descriptor in waits}, {what}, thread)

    def test_a_name_with_a_newline(self):
        """A descriptor's path is of the target's making."""
        path = os.path.join(self.directory(), "a\nb;c\x1b")
        os.mkfifo(path)
        target = self.start(
            sys.executable, "-c",
            "import sys; f = open(sys.argv[1], 'r+b', 0); print('ready', flush=True); f.read(1)",
            path,
        )  # fmt: skip
        harness.wait_until_in_calls(target.pid)
        shown = path.replace("\n", "_").replace("\x1b", "_")
        run = attach(target)
        self.assertIn(("read", f"fifo {shown}"), waits_of(run, run.pprof.samples[0].thread))
        run = attach(target, "--syscalls", form="folded")
        leaf = f"read fifo {shown.replace(';', ':')}_[k]"
        self.assertIn(leaf, {stack[-1] for stack in run.folded})

    def test_a_call_that_changes(self):
        """Each sleep has the descriptor of its own time, as the stack has."""
        program = """
import os, threading
ends = [os.pipe() for _ in range(2)]
def first(): os.read(ends[0][0], 1)
def second(): os.read(ends[1][0], 1)
def answer():
    while True:
        for end in ends: os.write(end[1], b"x"); import time; time.sleep(0.002)
threading.Thread(target=answer, daemon=True).start()
print(*[os.readlink("/proc/self/fd/%d" % end[0]) for end in ends], flush=True)
print("ready", flush=True)
while True: first(); second()
"""
        target = self.start(sys.executable, "-c", program)
        run = attach(target, hz=997, duration="1")
        main = [s for s in run.pprof.samples if s.tid == target.pid and s.syscall == "read"]
        told = sum(s.count for s in main if s.descriptor)
        self.assertGreater(told, 0.7 * sum(s.count for s in main))
        found = {s.descriptor for s in main if s.descriptor}
        self.assertEqual(found, set(target.said[0].split()))


class Locks(harness.TestCase):
    def test_holders(self):
        """--locks: which one is waited for, and who has it; without it nothing is read."""
        target = self.start_fixture("locks", "all")
        owners = {line.split()[1]: line.split()[5] for line in target.said if line.startswith("wait ")}
        told = {s.thread: s.descriptor for s in attach(target, "--locks").pprof.samples}
        for name, owner in owners.items():
            if name == "join":
                self.assertEqual(told[name], f'the end of "holder" {owner}')
            elif owner != "0":
                self.assertRegex(told[name], rf'^\w+ 0x[0-9a-f]+, held by "holder" {owner}$', name)
            else:
                self.assertFalse(told[name], name)
        self.assertEqual({s.descriptor for s in attach(target).pprof.samples if s.thread in owners}, {told["barrier"]})


class Frames(harness.TestCase):
    def test_syscalls(self):
        target = self.start_fixture("blocking")
        labels = attach(target)
        for form in ("folded", "pprof"):
            run = attach(target, "--syscalls", form=form)
            for kind in target.said:
                (call, descriptor), _ = waits_of(labels, kind).popitem()
                leaf = f"{call} {descriptor}".rstrip() + "_[k]"
                stacks = {s for s in run.stacks() if f"in_{kind}" in s}
                self.assertEqual({stack[-1] for stack in stacks}, {leaf})

    def test_kernel(self):
        """The kernel's frames are above the system call's; those of a pipe's reader are known."""
        target = self.start_fixture("blocking")
        run = attach(target, "-k", "--syscalls")
        harness.need("kernel frames are missing" not in run.stderr, "the kernel hides its frames")
        stacks = {";".join(s) for s in run.stacks("pipe_read")}
        self.assertEqual(len(stacks), 1, stacks)
        self.assertRegex(
            stacks.pop(),
            r"in_pipe_read;.*read pipe:\[\d+\]_\[k\];([^;]+_\[k\];)*(anon_)?pipe_read_\[k\]",
        )
        plain = attach(target, "--kernel", form="folded")
        for stack in plain.folded:
            kernel = [name for name in stack if name.endswith("_[k]")]
            self.assertTrue(kernel and stack[-len(kernel) :] == tuple(kernel), stack)
            self.assertFalse([name for name in kernel if re.search(r"[ :]", name)], stack)

    def test_kernel_hides_its_frames(self):
        target = self.start_fixture("threads", 6, 1)
        run = attach(target, "-k", env=without("stack"))
        self.assertEqual(run.stderr.count("kernel frames are missing"), 1, run.stderr)
        self.assertFalse([s for s in run.pprof.samples if s.stack[-1].endswith("_[k]")])

    def test_who_runs_waits_in_nothing(self):
        target = self.start_fixture("threads", 4, 4)
        run = attach(target, "-k", "--syscalls")
        for sample in run.pprof.samples:
            if sample.state == "running":
                self.assertFalse([n for n in sample.stack if n.endswith("_[k]")], sample.stack)


if __name__ == "__main__":
    harness.main()
