# SPDX-License-Identifier: MIT
"""No system call of the target ends otherwise than it would alone.

For code without and with frame pointers: each in half of the modes where time is short, else in
all.
"""

import torture
from torture import ALL_TICKS, LONG, MODES, SECONDS, TRIES, describe, harness, rounds

BUILDS = {"calls-O2": MODES[::3], "calls-O0": MODES[1:3]}

# Timed calls may be later than alone by as much, in the median: the machine is busy with others, and
# calls of the kernel that count in jiffies are only so exact.
MAX_LATER_MS = 1.5
JIFFIES = {"recv", "read", "recv_waitall", "send", "accept", "connect"}
MAX_JIFFIES_LATER_MS = 6

# A thread that runs may be in such a call when it is asked to stop, though it does not sleep there
# yet: for so long in each, in two threads that are woken for each piece longer. A sanitized profiler
# takes its time from the look to the stop. Were sleepers not spared, it would be most calls.
EXPOSED_S = 60e-6 if torture.harness.is_sanitized() else 20e-6
EXPOSED_LONGER = {"print_whole": 4}


class Calls(torture.TestCase):
    def check_all(self, group, *more_args):
        for build, modes in BUILDS.items():
            self.assert_no_faults(self.run_alone(build, group, SECONDS, *more_args))
            for hz, more in MODES if LONG else modes:
                with self.subTest(f"{build}, {describe(hz, more)}"):
                    self.check(hz, more, build, group, SECONDS, *more_args)

    def check(self, hz, more, *command):
        # What does not happen again is the machine's lateness, which is busy with others.
        for _ in range(TRIES):
            told, _ = self.run_profiled(hz, more, *command)
            self.assert_no_faults(told)
            if not any(one.median_ms for one in told.values()):
                return
            late = self.find_late(told, self.run_alone(*command))
            if not late:
                return
        self.fail(late)

    def find_late(self, told, alone):
        return [
            f"{one}, alone {alone[name]}"
            for name, one in told.items()
            if one.median_ms - alone[name].median_ms
            > (MAX_JIFFIES_LATER_MS if name in JIFFIES else MAX_LATER_MS)
        ]

    def test_timed(self):
        """Calls with a timeout end with it, neither early nor late."""
        self.check_all("timed")

    def test_timed_under_seccomp(self):
        """So they do under a filter that kills for restart_syscall."""
        self.check_all("timed", "seccomp")

    def test_woken(self):
        """Calls that wait end only when what they wait for comes."""
        self.check_all("woken")

    def test_woken_while_ignoring(self):
        """The target ignores signals that are sent to its threads meanwhile."""
        self.check_all("woken", "ignored")

    def test_data(self):
        """Blocking calls that move data move all of it, rightly; who moves less alone still does."""
        self.check_all("data")

    def test_data_while_ignoring(self):
        self.check_all("data", "ignored")

    def test_cut(self):
        """Calls that end at any signal, on files and devices, and waits for more than one thing."""
        self.check_all("cut")

    def test_sockets(self):
        """The same on sockets; no descriptor is lost, and no signal or completion added."""
        self.check_all("sockets")

    def test_sockets_under_seccomp(self):
        self.check_all("sockets", "seccomp")

    def test_strict_seccomp(self):
        """No call is continued by another one, for which the kernel would kill the program."""
        target = self.start_program("life", "strict", rounds(400))
        run = harness.start_attach(target, ALL_TICKS, "-d", "600", hz=1000)
        run.wait_attached()
        target.process.stdin.write(b"\n")
        self.assert_no_faults(torture.parse(target.rest()))
        self.assertEqual(target.process.returncode, 0)
        run.finish()

    def test_served(self):
        """Calls that another program answers: a file system's, and what a supervisor waits for."""
        self.check_all("served")

    def test_interrupted(self):
        """A signal with a handler interrupts what it would."""
        self.check_all("interrupted")

    def test_spared(self):
        """Calls that do not bear a stop in their sleep have none then."""
        for build in BUILDS:
            self.assert_no_faults(self.run_alone(build, "spared", SECONDS))
            for hz, more in MODES:
                told, _ = self.run_profiled(hz, more, build, "spared", SECONDS)
                for one in told.values():
                    mean = one.calls * hz * EXPOSED_S * EXPOSED_LONGER.get(one.name, 1)
                    self.assertLessEqual(one.faults, 1 + mean + 4 * mean**0.5, one)


if __name__ == "__main__":
    torture.main()
