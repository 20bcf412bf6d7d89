"""Whatever happens to the profiler, the target runs on as if nothing had been.

The target moves data through pipes and sockets and checks all that arrives. A SIGKILL of the process
that was started does nothing to it; what one of its worker may do is told in README.md.
"""

import os
import random
import signal

import torture
from torture import ALL_TICKS, MODES, SECONDS, harness, rounds

N_INSTANTS = 500 if SECONDS > 5 else rounds(24)
# Of all streams of data, those that a SIGKILL of the worker hit at such an instant.
MAX_DISTURBED = 1


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Deaths(torture.TestCase):
    def test_at_random_instants(self):
        target = self.start_program("calls-O2", "data", 10 + 2 * N_INSTANTS)
        for i in range(N_INSTANTS):
            victims, number = [
                (("supervisor",), signal.SIGKILL),
                (("worker",), signal.SIGKILL),
                (("supervisor", "worker"), signal.SIGKILL),
                (("supervisor",), signal.SIGSTOP),
                (("worker",), signal.SIGSTOP),
                (("supervisor",), signal.SIGHUP),
            ][i % 6]
            with self.subTest(f"{number.name} to {victims}"):
                self.strike(target, victims, number, *MODES[1 if i % 5 else 3])
        os.kill(target.pid, signal.SIGTERM)

    def strike(self, target, victims, number, hz, more):
        run = harness.start_attach(target, ALL_TICKS, *more, hz=hz)
        pids = {"supervisor": run.process.pid, "worker": self.find_worker(run)}
        try:
            torture.pause(random.uniform(0.005, 0.06))
            for victim in victims:
                send(pids[victim], number)
            if number == signal.SIGSTOP:
                torture.pause(0.01)
                self.assert_not_held(target.pid)
            else:
                self.assert_untouched(target.pid)
        finally:
            self.end(run, pids.values())
        self.assert_untouched(target.pid)

    def find_worker(self, run):
        return harness.wait_for(run.worker_pid, "the worker")

    def end(self, run, pids):
        for pid in pids:
            send(pid, signal.SIGKILL)
        run.process.wait()
        run.process.stdout.close()
        run.process.stderr.close()

    def assert_not_held(self, pid):
        """No thread stays stopped: a profiler that is stopped itself holds nobody."""
        for tid in harness.tids_of(pid):
            harness.wait_for(
                lambda t=tid: (harness.read_status(pid, t) or {"State": "S"})["State"][0]
                not in "tT",
                f"thread {tid} to run",
                timeout_s=3,
            )

    def test_data_are_right(self):
        """The same, with an eye on what the target counts."""
        target = self.start_program("calls-O2", "data", 0.25 * rounds(24))
        for i in range(rounds(24)):
            run = harness.start_attach(target, ALL_TICKS, *MODES[i % 4][1], hz=MODES[i % 4][0])
            worker = self.find_worker(run)
            torture.pause(random.uniform(0.005, 0.06))
            self.end(run, [(worker, run.process.pid)[i % 2]])
        told = torture.parse(target.rest())
        disturbed = [one for one in told.values() if one.faults]
        self.assertLessEqual(len(disturbed), MAX_DISTURBED, disturbed)


if __name__ == "__main__":
    torture.main()
