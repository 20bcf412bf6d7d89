# SPDX-License-Identifier: MIT
"""Job control: a shell sees of a wrapped command what it sees of the command alone."""

import os
import pty
import re
import select
import signal
import sys
import time

import harness
from harness import PROFILER

# What a shell does of job control: it starts a job in the terminal's foreground, says how it changes,
# and continues it when it stops: the whole group (fg), the process alone, or it kills the command.
SHELL = r"""
import os, signal, sys
resume, pid_file, *argv = sys.argv[1:]
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(argv[0], argv)
while True:
    _, status = os.waitpid(job, os.WUNTRACED | os.WCONTINUED)
    if os.WIFSTOPPED(status):
        print("<stopped by %d>" % os.WSTOPSIG(status), flush=True)
        if resume == "group":
            os.killpg(job, signal.SIGCONT)
        elif resume == "process":
            os.kill(job, signal.SIGCONT)
        else:
            os.kill(int(open(pid_file).read()), signal.SIGKILL)
    elif os.WIFCONTINUED(status):
        print("<continued>", flush=True)
    else:
        code = os.waitstatus_to_exitcode(status)
        print("<ended with %d>" % (code if code >= 0 else 128 - code), flush=True)
        break
"""
# Says that it is continued, and how often.
COUNTED = "trap 'echo got CONT' CONT; "


class Jobs(harness.TestCase):
    def events(self, prefix, script, resume="group", keys=b""):
        """What the shell said, in its order, and how often the command was continued."""
        pid_file = os.path.join(self.directory(), "pid")
        script = f"echo $$ > {pid_file}; {script}"
        pid, master = pty.fork()
        if pid == 0:
            os.execv(
                sys.executable,
                [sys.executable, "-c", SHELL, resume, pid_file, *prefix, "bash", "-c", script],
            )
        shown, deadline = b"", time.monotonic() + harness.RUN_TIMEOUT_S
        while time.monotonic() < deadline and b"<ended" not in shown:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    shown += os.read(master, 4096)
                except OSError:
                    break
            if keys and b"ready" in shown:
                os.write(master, keys)
                keys = b""
        os.kill(pid, signal.SIGKILL)
        os.close(master)
        os.waitpid(pid, 0)
        shown = shown.decode("utf-8", "replace")
        said = re.findall("<[^>]*>", shown)
        if resume == "kill":  # the profiler must be continued to end
            said = [event for event in said if event != "<continued>"]
        return said, shown.count("got CONT")

    def assert_as_alone(self, script, **how):
        alone = self.events((), script, **how)
        self.assertRegex(alone[0][-1], "ended")
        for options in harness.a_few(((), ("-F", "997", "--stop-all"), ("-d", "0.1"))):
            wrapped = self.events((PROFILER, "-q", *options, "-o", "/dev/null", "--"), script, **how)
            self.assertEqual(wrapped, alone, (script, options))

    def test_stops_itself(self):
        for number in ("STOP", "TSTP", "TTIN"):
            self.assert_as_alone(f"{COUNTED} sleep 0.2; kill -{number} $$; sleep 0.2; exit 3")

    def test_stops_itself_again(self):
        self.assert_as_alone(f"{COUNTED} for i in 1 2 3; do kill -STOP $$; sleep 0.2; done; exit 4")

    def test_continued_alone(self):
        """The shell's kill -CONT PID, which the command never sees, is passed on."""
        self.assert_as_alone(f"{COUNTED} kill -STOP $$; sleep 0.2; exit 5", resume="process")

    def test_killed_while_it_is_stopped(self):
        self.assert_as_alone("kill -STOP $$; exit 6", resume="kill")

    def test_ctrl_z(self):
        self.assert_as_alone(
            f"{COUNTED} echo ready; for i in {{1..12}}; do sleep 0.1; done; exit 7", keys=b"\x1a"
        )

    def test_ctrl_z_that_the_command_ignores(self):
        """It begins no other program then, which bash lets have the signal for a moment."""
        self.assert_as_alone(
            "trap '' TSTP; sleep 1.4 & sleep 0.2; echo ready; wait; exit 8", keys=b"\x1a"
        )


if __name__ == "__main__":
    harness.main()
