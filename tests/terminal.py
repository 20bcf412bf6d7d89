# SPDX-License-Identifier: MIT
"""Terminals in which the profiler runs, for what it draws and how it leaves them."""

import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import time

import harness
from harness import PROFILER


class Terminal:
    """A terminal (tmux) in which a shell runs the profiler, and says how that ended."""

    def __init__(self, test, *args, columns=100, rows=30, env=""):
        if not shutil.which("tmux"):
            harness.skip("no tmux")
        self.name = f"profiler-{os.getpid()}-{id(self)}"
        self.directory = test.directory()
        command = shlex.join([PROFILER, "top", *map(str, args)])
        script = f"stty -a >before; {env} {command}; echo status $?; stty -a >after; sleep 1000"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, script)
        test.addCleanup(self.tmux, "kill-server", check=False)

    def tmux(self, *args, check=True):
        return subprocess.run(
            ["tmux", "-L", self.name, "-u", *map(str, args)], cwd=self.directory, check=check,
            capture_output=True, text=True, timeout=harness.RUN_TIMEOUT_S,
        ).stdout  # fmt: skip

    def screen(self, *args):
        return self.tmux("capture-pane", "-p", *args)

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def wait_for(self, pattern):
        """The screen, once it matches."""
        shown = []

        def matches():
            shown[:] = [self.screen()]
            return re.search(pattern, shown[0])

        try:
            harness.wait_for(matches, pattern)
        except AssertionError:
            raise AssertionError(f"{pattern!r} is not on the screen:\n{shown[0]}") from None
        return shown[0]

    def profiler(self):
        """The process that draws."""
        (shell,) = map(int, self.tmux("list-panes", "-F", "#{pane_pid}").split())
        for _ in range(3):
            if "profiler" in harness.read_status(shell)["Name"]:
                return shell
            shell = next(iter(harness.children(shell)))
        raise AssertionError("the profiler does not run")

    def wait_for_end(self, status=0):
        """The profiler has ended, and the terminal is as it was."""
        shown = self.wait_for(r"status \d+")
        assert f"status {status}\n" in shown, shown
        after = f"{self.directory}/after"
        harness.wait_for(lambda: os.path.exists(after) and os.path.getsize(after), "stty's end")
        lines = []
        for path in (f"{self.directory}/before", after):
            with open(path, encoding="utf-8") as file:
                lines.append(re.sub(r"rows \d+; columns \d+", "", file.read()))  # resized
        assert lines[0] == lines[1], lines
        assert self.tmux("display", "-p", "#{alternate_on} #{cursor_flag}") == "0 1\n"


def run_in_terminal(args, directory, keys=b"", when="", n_ticks=0):
    """Runs the profiler with a terminal as stdin, stdout and stderr, and types `keys` when the text
    `when` was shown, and then some ticks have passed. Returns its exit status and all that was shown."""
    pid, master = pty.fork()
    if pid == 0:
        try:
            os.chdir(directory)
            os.execv(PROFILER, [PROFILER, *map(str, args)])
        finally:
            os._exit(99)
    shown = b""
    deadline = time.monotonic() + harness.RUN_TIMEOUT_S
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 0.1)[0]:
            continue
        try:
            part = os.read(master, 4096)
        except OSError:  # EIO: nobody has the terminal open any more
            part = b""
        if not part:
            break
        shown += part
        if keys and when.encode() in shown:
            worker = next(iter(harness.children(pid)))
            n_pauses = harness.n_pauses_of(worker) + n_ticks
            harness.wait_for(lambda w=worker, n=n_pauses: harness.n_pauses_of(w) >= n, "ticks")
            os.write(master, keys)
            keys = b""
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(master)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode("utf-8", "replace")
