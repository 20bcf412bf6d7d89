# SPDX-License-Identifier: MIT
"""profiler top on a terminal: what it draws, what its keys do, and how it leaves the terminal."""

import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
import time

import harness
import page
import pprof
from harness import PROFILER, STATUS_TARGET
from terminal import Terminal
from test_top import HOSTILE, signalled, tracers


LONG_NAMES = """
import threading
def spin():
    while True:
        pass
for i in range(2):
    threading.Thread(target=spin, name=f"a_thread_whose_name_is_long-{i}").start()
print("ready", flush=True)
"""


class Screen(harness.TestCase):
    VIEWS = {"1": "THREAD", "2": "FUNCTION", "3": "CALLS", "4": "WAITS%", "5": "STACK"}

    def setUp(self):
        self.target = self.start_fixture("threads", 8, 2)

    def test_all_asleep(self):
        """A program that hangs: those that wait for locks are shown, or all, where nobody else is."""
        target = self.start_fixture("locks", "cycle", 3)
        terminal = Terminal(self, target.pid, "--interval=100ms")
        # A frame may be seen half drawn: all of it at some time.
        rows = "".join(rf"(?=.*^{name} +\d+ lock)" for name in ("dead0", "dead1", "dead2", "victim"))
        terminal.wait_for(rf"(?ms)\A{rows}(?=.*Not shown: 1 idle thread \(i)")
        terminal.type("4")
        terminal.wait_for(r'(?m) lock +mutex \S+ +"dead')
        program = "import time; print('ready', flush=True); time.sleep(1000)"
        terminal = Terminal(self, self.start(sys.executable, "-c", program).pid, "--interval=100ms")
        terminal.wait_for(r"(?m)^python\S* +\d+ timer")

    def test_views(self):
        terminal = Terminal(self, self.target.pid, "--interval=100ms", columns=140)
        terminal.wait_for(r"\[LIVE\].* overhead \d.*\n9 threads")
        terminal.wait_for(
            r"(?s)\A(?=.*\nworker-00 +\d+ (?:running|ready)[^\n]* [RQ]+ +spin_here)(?=.*Not shown: 5 idle threads \(i shows them\))"
        )
        terminal.type("i")
        terminal.wait_for(r"worker-0\d .* futex_here +")
        for key, title in self.VIEWS.items():
            terminal.type(key)
            terminal.wait_for(rf"(?m)^ ?{title}|{title}$")
        terminal.type("1")
        terminal.type("\\", "worker-01", "Enter")
        terminal.wait_for(r"(?s)\A(?!.*worker-00).*only rows with: worker-01")
        terminal.type("5")
        terminal.wait_for(r"STACK\nspin_here \(threads.c:\d+\)\nworker \(threads.c:\d+\)\n")
        terminal.type("Escape")
        terminal.wait_for(r"worker-00")
        terminal.type("?")
        terminal.wait_for("PgUp PgDn")
        terminal.type("x")
        terminal.wait_for("THREAD +TID")
        terminal.type("q")
        terminal.wait_for_end()
        self.assertEqual(tracers(self.target.pid), {"0"})

    def test_tree(self):
        """It opens with the program's own functions, + - and the arrows are for a row, * is for all, o for all frames."""
        terminal = Terminal(self, self.target.pid, "--interval=100ms", "--view=tree")
        terminal.wait_for(r"(?s)\A(?!.*(?:clone3|futex_here)).* - worker \(threads.c:\d+\)\n.* spin_here")
        terminal.wait_for(r"(?m)^Idle time \(\d+ %\) is not counted \(i\)\. Frames around your code are folded \(o\)\.$")
        for key, row in (("-", r"\+ worker"), ("+", "- worker"), ("Left", r"\+ worker"), ("Right", "- worker")):
            terminal.type("Home", key)
            terminal.wait_for(rf"(?s)CALLS\n +[\d.]+ +[\d.]+ {row}")
        terminal.type("i")
        terminal.wait_for(r"(?s)\A(?!.*Idle time).* futex_here \(")
        terminal.type("o")
        terminal.wait_for(r"(?m) - clone3 ")
        terminal.type("*")
        terminal.wait_for(r"(?s)- clone3.* spin_here")
        terminal.type("*")
        terminal.wait_for(r"(?s)\A(?!.*spin_here).*\+ clone3")
        terminal.type("q")
        terminal.wait_for_end()

    def test_narrow(self):
        """At 80x24 nothing that tells something is cut off: both ends of a name, the newest seconds, the keys."""
        target = self.start(sys.executable, "-c", LONG_NAMES)
        terminal = Terminal(self, target.pid, "--interval=100ms", columns=80, rows=24)
        rows = "".join(rf"(?=.*^a_thread_\w+…\w+-{i} +\d+ (?:running|ready|lock) )" for i in range(2))
        terminal.wait_for(rf"(?ms)\A{rows}.*LAST 10 s  WHERE$")
        titles = r"\x1b\[(?:\d+;)*7m +RUN%\x1b"  # inverse: the rows are sorted by it
        harness.wait_for(lambda: re.search(titles, terminal.screen("-e")), "the sorted column's title")
        terminal.wait_for(r"(?m)^1Threads 2Functions 3Tree 4Waits 5Stack F1Help F3Search F4Filter F6Sort F10Quit$")
        terminal.wait_for(r"(?m)^a_thread_\w+…\w+-0 .* s +\d.* [RQL]+ spin \(.*\)$")
        terminal.tmux("resize-window", "-x", 160, "-y", 24)
        terminal.wait_for(r"(?ms)\A(?=.*^a_thread_whose_name_is_long-1 +\d)(?=.*LAST 20 s .*WAITS FOR)")
        terminal.type("/", "q")
        terminal.wait_for(r"(?m)^Search: q_ ")
        terminal.type("Escape", "q")
        terminal.wait_for_end()

    def test_saved(self):
        """What is looked at goes to files: all stacks, the last minute as a page, the window as pprof."""
        terminal = Terminal(self, self.target.pid, "--interval=100ms", columns=200)
        terminal.wait_for(r"(?m)^worker-00 +\d+ (?:running|ready).* spin_here")
        files = []
        for key, suffix in (("d", "txt"), ("S", "html"), ("p", "pb.gz")):
            terminal.type(key)
            shown = terminal.wait_for(rf"written: profiler\.{self.target.pid}\.\w+\.{suffix}")
            name = re.search(r"written: (\S+)", shown)[1]
            with open(os.path.join(terminal.directory, name), "rb") as file:
                files.append(file.read())
            terminal.type("1")
        dump, html, profile = files
        self.assertEqual(len(set(re.findall(rb'"(worker-0\d)"', dump))), 8)
        self.assertRegex(dump, rb'"worker-0\d" \d+.*   (running|waiting for a CPU)\n    spin_here +threads.c:')
        self.assertEqual({t["name"] for t in page.Page(html).threads}, {"threads", *(f"worker-0{i}" for i in range(8))})
        self.assertEqual(len({sample.tid for sample in pprof.Profile(profile).samples}), 9)
        terminal.type("q")
        terminal.wait_for_end()

    def test_keys(self):
        terminal = Terminal(self, self.target.pid, "--interval=100ms", columns=220, rows=20)
        terminal.wait_for(r"(?m)^worker-00 +\d+ (?:running|ready).* spin_here")
        for key, pattern in (
            ("K", "READY% LOCK% COND% FILE%.* STOP% LAST"), ("2", "STOP% +SAMPLES FUNCTION"), ("K", "I/O% +SAMPLES"),
            ("F5", "TOTAL% SELF% CALLS"), ("1", "THREAD +TID"), ("R", r"\[LIVE\]"),
            ("s", r"\[LIVE\]"), ("I", r"\[LIVE\]"), ("+", r"\[LIVE\]"), ("-", r"\[LIVE\]"),
        ):  # fmt: skip
            terminal.type(key)
            terminal.wait_for(pattern)
        terminal.type("\\", "worker-00", "Enter")  # whatever row the cursor was on
        terminal.wait_for(r"(?m)^--- spin_here < worker")
        terminal.type("Enter")
        terminal.wait_for(r"STACK\nspin_here \(threads.c:\d+\)\n")
        terminal.type("q")
        terminal.wait_for_end()

    def test_sizes(self):
        for columns, rows in ((20, 5), (300, 100)):
            terminal = Terminal(self, self.target.pid, "--interval=100ms", columns=columns, rows=rows)
            terminal.wait_for(r"\[LIVE\] pid")
            for key in (*self.VIEWS, "1", "i", "End", "Home", "NPage", "PPage", "?", "x", "w"):
                terminal.type(key)
                shown = terminal.wait_for(r"\[LIVE\]")
                self.assertLessEqual(max(map(len, shown.splitlines())), columns)
            terminal.tmux("resize-window", "-x", 90, "-y", 12)
            terminal.type("1")
            terminal.wait_for(r"(?m)^THREAD +TID")
            terminal.tmux("resize-window", "-x", 1, "-y", 1)
            terminal.tmux("resize-window", "-x", columns, "-y", rows)
            terminal.type("q")
            terminal.wait_for_end()

    def test_target_ends(self):
        """The last state stays, and says so."""
        terminal = Terminal(self, self.target.pid, "--interval=100ms")
        terminal.wait_for("spin_her")
        self.target.process.kill()
        terminal.wait_for(r"(?s)\[ENDED\].*\nworker-0\d +\d+ ")
        # Nobody writes to them any more: each look would be told so at once, and take all of a CPU.
        links = f"/proc/{terminal.profiler()}/fd"
        harness.wait_for(
            lambda: not any(link.startswith("pipe:") for link in harness.read_links(links)), "the pipes' end"
        )
        terminal.type(",")
        terminal.wait_for(r"\[AT ")
        terminal.type("q")
        terminal.wait_for_end()

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGSEGV):
            terminal = Terminal(self, self.target.pid)
            terminal.wait_for(r"\[LIVE\]")
            os.kill(terminal.profiler(), number)
            if number != signal.SIGSEGV:
                terminal.wait_for_end()
                self.assertEqual(tracers(self.target.pid), {"0"})
                continue
            terminal.wait_for_end(128 + number)
            # Nobody is there to wait for the sampler: the kernel tells it of the end.
            harness.wait_for(lambda: tracers(self.target.pid) == {"0"}, "the sampler to let go")

    def test_first_frame(self):
        """At once, also where the interval is longer than the machine is up."""
        terminal = Terminal(self, self.target.pid, "--interval=200000h")
        terminal.wait_for(r"\[LIVE\](.*\n)+worker-0")
        terminal.type("q")
        terminal.wait_for_end()

    def test_resized_at_the_start(self):
        env = " ".join(f"{name}={value}" for name, value in signalled(signal.SIGWINCH).items())
        terminal = Terminal(self, self.target.pid, "--interval=100ms", env=env)
        terminal.wait_for(r"\[LIVE\](.*\n)+worker-0")
        terminal.type("q")
        terminal.wait_for_end()

    def test_left_command(self):
        """After q its end is waited for, until a signal ends that, too."""
        terminal = Terminal(self, "--interval=100ms", "--", "sleep", "1000")
        shown = terminal.wait_for(r"(?m)^sleep +\d+ timer")
        self.addCleanup(os.kill, int(re.search(r"(?m)^sleep +(\d+) ", shown)[1]), signal.SIGKILL)
        terminal.type("q")
        harness.wait_for(lambda: terminal.tmux("display", "-p", "#{alternate_on}") == "0\n", "the screen's end")
        pid = terminal.profiler()
        worker = harness.children(harness.children(pid)[0])[0]
        # It is past what one signal ends.
        harness.wait_for(
            lambda: "anon_inode:[signalfd]" not in harness.read_links(f"/proc/{worker}/fd"), "the end of sampling"
        )
        os.kill(pid, signal.SIGTERM)
        terminal.wait_for_end(128 + signal.SIGTERM)

    def test_command_outlives_the_duration(self):
        """The end of sampling is shown; after q the command's end is waited for, as without -d."""
        terminal = Terminal(self, "--interval=100ms", "-d", "300ms", "--", "sleep", "1000")
        shown = terminal.wait_for(r"(?ms)\[ENDED\].*^sleep +\d+ timer")
        pid = int(re.search(r"(?m)^sleep +(\d+) ", shown)[1])
        self.addCleanup(self.kill, pid)
        terminal.type("q")
        harness.wait_for(lambda: terminal.tmux("display", "-p", "#{alternate_on}") == "0\n", "the screen's end")
        time.sleep(0.3)
        self.assertTrue(harness.is_there(pid))
        self.assertNotIn("status", terminal.screen())
        self.kill(pid)
        terminal.wait_for_end(128 + signal.SIGKILL)

    def kill(self, pid):
        if harness.is_there(pid):
            os.kill(pid, signal.SIGKILL)

    def test_sampler_killed(self):
        terminal = Terminal(self, self.target.pid, "--interval=100ms")
        terminal.wait_for("spin_her")
        supervisor = next(iter(harness.children(terminal.profiler())))
        os.kill(next(iter(harness.children(supervisor))), signal.SIGKILL)
        terminal.wait_for(r"\[ENDED\]")
        terminal.type("q")
        terminal.wait_for(r"status [1-9]")
        self.assertEqual(tracers(self.target.pid), {"0"})

    def test_suspended(self):
        """Ctrl-Z: the shell has its terminal, sampling goes on, and all of it is there later."""
        terminal = Terminal(self, self.target.pid, "--interval=100ms", env="set -m;")
        terminal.wait_for(r"\[LIVE\]")
        pid = terminal.profiler()
        terminal.type("C-z")
        harness.wait_for(lambda: "T" in harness.read_status(pid)["State"], "the stop")
        terminal.wait_for("status")
        self.assertEqual(terminal.tmux("display", "-p", "#{alternate_on}"), "0\n")
        started = time.monotonic()
        time.sleep(1)
        os.kill(pid, signal.SIGCONT)
        seconds = time.monotonic() - started
        harness.wait_for(lambda: "T" not in harness.read_status(pid)["State"], "its going on")
        os.kill(pid, signal.SIGTERM)
        harness.wait_for(lambda: not harness.children(pid), "its end")
        self.assertGreaterEqual(seconds, 1)

    def test_names(self):
        target = self.start("python3", "-c", HOSTILE)
        terminal = Terminal(self, target.pid, "--interval=100ms")
        terminal.wait_for(r"(?m)^_\[2J\ufffd1m__X +\d+ ")
        terminal.type("q")
        terminal.wait_for_end()

    def test_command(self):
        """What it writes to the terminal is not for the screen."""
        terminal = Terminal(self, "--interval=100ms", "--", "sh", "-c", "while sleep .1; do echo LOUD; done")
        shown = terminal.wait_for(r"(?m)^sh +\d+ ")
        self.assertNotIn("LOUD", shown)
        os.kill(int(re.search(r"(?m)^sh +(\d+) ", shown)[1]), signal.SIGKILL)
        terminal.wait_for(r"\[ENDED\]")
        terminal.type("q")
        terminal.wait_for_end(128 + signal.SIGKILL)

    def start_unread(self):
        """On a terminal that takes nothing, as after Ctrl-S: its pid, and the terminal's other end."""
        pid, master = pty.fork()
        if pid == 0:
            try:
                os.environ["TERM"] = "xterm"
                args = [PROFILER, "top", str(self.target.pid), "--interval=100ms", "--sort=tid"]
                os.execv(PROFILER, args)
            finally:
                os._exit(99)
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 400, 0, 0))
        # By default they end it, and it awaits them only when the sampler has been started.
        harness.wait_for(
            lambda: "anon_inode:[signalfd]" in harness.read_links(f"/proc/{pid}/fd"), "its watch for signals"
        )
        time.sleep(1)  # more than the terminal's buffer holds is drawn
        return pid, master

    def check_end(self, pid):
        harness.wait_for(lambda: harness.read_status(pid)["State"][0] == "Z", "its end")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual(tracers(self.target.pid), {"0"})

    def test_unread(self):
        """Such a terminal keeps nobody from ending."""
        pid, master = self.start_unread()
        self.addCleanup(os.close, master)
        os.kill(pid, signal.SIGTERM)
        self.check_end(pid)

    def test_gone(self):
        """A terminal that is gone, with a frame only half written."""
        pid, master = self.start_unread()
        os.close(master)
        self.check_end(pid)

    def test_without_screen(self):
        """TERM=dumb, and errors: plain."""
        terminal = Terminal(self, self.target.pid, "-d", "0.3", env="TERM=dumb")
        terminal.wait_for_end()
        self.assertIn("THREAD", terminal.screen())
        terminal = Terminal(self, 999999999)
        terminal.wait_for_end(STATUS_TARGET)
        self.assertRegex(terminal.screen(), r"(?m)^profiler: no process has the pid 999999999: see ps -e$")


class ReplayScreen(harness.TestCase):
    def test_play(self):
        """The same keys show the same, and the times are those of the recording."""
        target = self.start_fixture("threads", 4, 1)
        run = harness.start_attach(target, "-d", "2.5", form="record").finish()
        path = os.path.join(self.directory(), "x.wprof")
        with open(path, "wb") as file:
            file.write(run.recording)
        terminals = [Terminal(self, path, columns=120) for _ in range(2)]
        for terminal in terminals:
            terminal.wait_for(r"\[AT \d of \d s\]")
            terminal.type(",", "i")
            terminal.wait_for(r"(?m)\[AT [12] of [23] s\](.*\n)+threads +\d+ timer")
        for key, title in (("1", "THREAD"), ("2", "FUNCTION"), ("3", "CALLS"), ("4", "WAITS%")):
            for terminal in terminals:
                terminal.type(key)
                terminal.wait_for(title)
            # A frame may be seen half drawn.
            a, b = terminals
            harness.wait_for(lambda a=a, b=b: a.screen() == b.screen(), "equal frames")
        for terminal in terminals:
            terminal.type("<")
            terminal.wait_for(r"\[AT [01] of \d s\]")
            terminal.type("Space")
            # A test that is slow sees no more than that it has come to the end.
            terminal.wait_for(r"\[PLAYS \d|\[AT (\d) of \1 s\]")
            terminal.wait_for(r"\[AT (\d) of \1 s\]")
            terminal.type("q")
            terminal.wait_for_end()


if __name__ == "__main__":
    harness.main()
