# SPDX-License-Identifier: MIT
"""Signals, job control and children of the target are as they would be alone."""

import torture
from torture import MODES, SECONDS, describe


class Signals(torture.TestCase):
    def check_all(self, what, **run):
        self.assert_no_faults(self.run_alone("signals", what, SECONDS))
        for hz, more in MODES:
            with self.subTest(describe(hz, more)):
                told, _ = self.run_profiled(hz, more, "signals", what, SECONDS, **run)
                self.assert_no_faults(told)

    def test_queue(self):
        """10,000 a second, each once, in order, with its value, on the alternate stack."""
        self.check_all("queue")

    def test_stops(self):
        """SIGSTOP, SIGTSTP, SIGCONT: each is reported once to the parent, and handled once."""
        self.check_all("stops", pid=lambda target: int(target.said[0]))

    def test_children(self):
        """SIGCHLD, wait4 and waitid of the target's own children."""
        self.check_all("children")


if __name__ == "__main__":
    torture.main()
