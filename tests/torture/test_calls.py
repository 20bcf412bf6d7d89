# SPDX-License-Identifier: MIT
"""No system call of the target ends otherwise than it would alone.

How long they take is the matter of test_times.py.
"""

import torture
from torture import ALL_TICKS, harness, rounds


class Calls(torture.CallsCase):
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

    def test_wait_for_one(self):
        """recvmmsg(2) with MSG_WAITFORONE takes what there is after the first message: it was not cut."""
        for build in torture.BUILDS:
            told, run = self.run_profiled(1000, [], build, "sockets", torture.SECONDS, "recvmmsg_one")
            self.assert_no_faults(told)
            self.assertNotIn("ended early because of a pause", run.stderr)

    def test_sockets_while_continued(self):
        """Somebody sends SIGCONT to the target, which runs, again and again."""
        self.check_all("sockets", "continued")

    def test_data_while_continued(self):
        self.check_all("data", "continued")

    def test_cut_while_continued(self):
        self.check_all("cut", "continued")

    def test_sockets_under_seccomp(self):
        self.check_all("sockets", "seccomp")

    def test_sockets_without_main_thread(self):
        """It has ended, and with it the descriptors that are found by the process's number."""
        self.check_all("sockets", "alone")

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


if __name__ == "__main__":
    torture.main()
