# SPDX-License-Identifier: MIT
"""A program that measures where its threads' time goes; the profile must say the same, to within
the statistical error for its number of samples."""

import collections
import ctypes
import math
import os
import tempfile

import harness

SECONDS = 8
HZ = 499
SIGMAS = 4
SLICE_S = 0.004  # of a CPU, until another one's turn comes (a scheduler's tick at the least)
BURNS = {"burn_a", "burn_b", "burn_c"}


class GroundTruth(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        """One long run, on which all tests look."""
        directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="profiler-test-"))
        metronome = harness.Metronome()
        cls.addClassCleanup(metronome.end)
        before, uncounted_s = os.getloadavg()[0], harness.uncounted_s()
        run = harness.start_wrap(
            [harness.fixture("shares"), str(SECONDS), os.path.join(directory, "disk")],
            "--max-overhead=0", hz=HZ
        ).finish()
        cls.load = before, os.getloadavg()[0]
        cls.uncounted_s = harness.uncounted_s() - uncounted_s
        cls.run_ = run
        cls.late_s = metronome.late_s(run.start_s, run.end_s)
        cls.truth = collections.defaultdict(dict)  # thread -> function -> seconds
        cls.waited = collections.defaultdict(dict)  # of these, ready and waiting for a CPU
        for line in run.stdout.decode().splitlines():
            if line != "ready":
                thread, function, seconds, waited_s = line.split()
                cls.truth[thread][function] = float(seconds)
                cls.waited[thread][function] = float(waited_s)
        cls.samples = collections.defaultdict(list)
        for sample in run.pprof.samples:
            cls.samples[sample.thread].append(sample)

    def function_of(self, thread, sample):
        for name in self.truth[thread]:
            if name in sample.stack:
                return name
        return None

    def found(self, thread, value):
        totals = collections.Counter()
        for sample in self.samples[thread]:
            totals[self.function_of(thread, sample)] += value(sample)
        return totals

    def test_the_truth_is_whole(self):
        self.assertEqual(set(self.truth), {"cpu", "sleep", "futex", "pipe", "disk"})
        for thread, functions in self.truth.items():
            whole_s = sum(functions.values())
            self.assertGreater(whole_s, SECONDS - 1 - self.late_s, thread)
            # The last of them may take its time: a disk above all.
            self.assertLess(whole_s, self.run_.elapsed_s, thread)

    def test_shares_of_counts(self):
        """A count is a draw with the share's probability: sqrt(n p (1 - p)). What the thread did at
        the ticks that the profiler missed, as it got no CPU itself, nobody knows."""
        for thread, functions in self.truth.items():
            counts = self.found(thread, lambda s: s.count)
            n, total_s = sum(counts.values()), sum(functions.values())
            self.assertGreater(n, SECONDS * HZ * 0.5, f"{thread}: {self.run_.stderr}")
            for function, seconds in functions.items():
                share = seconds / total_s
                sigma = math.sqrt(n * share * (1 - share))
                self.assertLessEqual(
                    abs(counts[function] - n * share), SIGMAS * sigma + 1 + self.run_.summary.missed,
                    f"{thread} {function}: {counts[function]} of {n}, expected {n * share:.1f} "
                    f"+- {sigma:.1f}; {self.run_.stderr}",
                )  # fmt: skip

    def test_wall_times(self):
        """The wall nanoseconds are the seconds that the thread measured itself. The time of missed
        ticks goes to what was seen beside them."""
        for thread, functions in self.truth.items():
            walls = self.found(thread, lambda s: s.wall_ns / 1e9)
            n, total_s = sum(s.count for s in self.samples[thread]), sum(functions.values())
            for function, seconds in functions.items():
                share = seconds / total_s
                # What one sample weighs, times how many may be off.
                sigma_s = total_s / n * math.sqrt(n * share * (1 - share))
                self.assertLessEqual(
                    abs(walls[function] - seconds),
                    SIGMAS * sigma_s + (2 + self.run_.summary.missed) / HZ,
                    f"{thread} {function}: {walls[function]:.3f} s, expected {seconds:.3f} "
                    f"+- {sigma_s:.3f} s; {self.run_.stderr}",
                )  # fmt: skip

    def test_states(self):
        """Running where it burns; waiting, or on its way there or back, where it does not."""
        for thread in self.truth:
            states = collections.Counter()
            for sample in self.samples[thread]:
                function = self.function_of(thread, sample)
                states[(function in BURNS, function, sample.state)] += sample.count
            for (burns, function, _), _ in list(states.items()):
                if function in (None, "in_disk"):  # a disk that is memory does not wait
                    continue
                total = sum(n for key, n in states.items() if key[1] == function)
                expected = states[(burns, function, "running" if burns else "sleeping")]
                # On a busy machine it waits for a CPU, there as here.
                waited = self.waited[thread][function] / self.truth[thread][function]
                sigma = math.sqrt(total * waited * (1 - waited))
                self.assertGreaterEqual(
                    expected, (0.97 if burns else 0.8) * total * (1 - waited) - SIGMAS * sigma,
                    f"{thread}: {waited} of the time waited for a CPU; {states}",
                )  # fmt: skip

    def test_cpu_against_the_kernel(self):
        """Sampled time running is what the kernel counted as running, and not more than with waiting for a CPU."""
        for thread in self.run_.summary.threads:
            if thread.name not in self.truth or thread.kernel_cpu_s is None:
                continue
            if thread.kernel_delay_s is None:
                continue
            # The scheduler's clock leaves out interrupts and what a hypervisor took, from whoever
            # ran then: that is more that is seen. With a disk in between, a thread is seen runnable
            # far longer than it counts, by anybody.
            if thread.name == "disk":
                continue
            share = (thread.kernel_cpu_s + thread.kernel_delay_s) / thread.watched_s
            share = min(max(share, 0), 1)
            n = thread.samples
            sigma_s = thread.watched_s / n * math.sqrt(n * share * (1 - share) + 1)
            # The kernel counts many short waits that a sample sees as the sleep around them, and
            # the stops themselves. What is due while the machine pauses, wakes at its end: it is
            # seen ready then, for all of the pause, and the kernel has not counted that. Nor has it a
            # wait that lasts still at the end, while each of the others gets its slice.
            slice_s = SLICE_S * max(self.load) / os.cpu_count()
            slack_s = 0.03 * thread.watched_s + 2 / HZ + self.late_s + slice_s
            more_s = thread.cpu_s - share * thread.watched_s
            told = f"{thread}; paused for {self.late_s:.3f} s, uncounted {self.uncounted_s:.3f} s"
            # Who waited for a CPU since before the tick is runnable.
            less_s = thread.kernel_cpu_s - thread.cpu_s
            self.assertLessEqual(less_s, SIGMAS * sigma_s + slack_s, told)
            self.assertLessEqual(more_s, SIGMAS * sigma_s + slack_s + self.uncounted_s, told)

    def test_each_thread_once_a_tick(self):
        main = [t for t in self.run_.summary.threads if t.name == "shares"]
        # The last ticks may find it gone, while others of its threads still end.
        self.assertAlmostEqual(main[0].samples, self.run_.summary.ticks, delta=2)


def go_first():
    """Before most others, where that is permitted: it hardly ever waits for a CPU then."""
    try:
        os.setsid()
        os.nice(-20)
        with open("/proc/self/autogroup", "w") as file:  # sched(7)
            file.write("-20")
    except OSError:
        pass


class Relay(harness.TestCase):
    """Threads that are born as others end, so that there are always as many, are all seen from their
    first tick on, and none in the tick of the one in whose place it is."""

    def run_relay(self, *how):
        metronome = harness.Metronome()
        self.addCleanup(metronome.end)
        run = harness.start_wrap(
            [harness.fixture("relay"), "3", *how], "--max-overhead=0", "--no-inlines", hz=HZ
        ).finish()
        return run, metronome.late_s(run.start_s, run.end_s)

    def check(self, *how):
        run, late_s = self.run_relay(*how)
        truth = [line.split() for line in run.stdout.decode().splitlines() if line != "ready"]
        for name, seconds in truth:
            seen_s = sum(s.wall_ns / 1e9 for s in run.pprof.samples if name in s.stack)
            self.assertAlmostEqual(
                seen_s, float(seconds), delta=0.1 * float(seconds) + run.summary.missed / HZ + late_s,
                msg=f"{name}; {run.brief}",
            )  # fmt: skip

    def test_sleepers(self):
        self.check("50", "sleep")

    def test_runners(self):
        self.check("10", "spin")

    def test_many_short_ones(self):
        """While a tick lasts, some of them end and others are born: both would be too many."""
        run, late_s = self.run_relay("2", "sleep", "16")
        truth, found = truth_and_found(run)
        alive = sum(truth.values()) / run.summary.duration_s
        seen = sum(found.values()) / run.summary.ticks
        missed = run.summary.missed / (run.summary.missed + run.summary.ticks)
        self.assertLess(seen, (1.05 + missed) * alive, run.stderr)
        # One that ends between the listing and its look is not seen. Few are, where CPUs are free.
        self.assertGreater(seen, 0.7 * alive * (1 - late_s / run.summary.duration_s), run.stderr)


class InStep(harness.TestCase):
    """Programs whose rate is that of the ticks, or a multiple or a part of it, are seen at all
    places of their periods alike."""

    RATES = {
        99: [99, 99, 99, 198, 198, 49.5, 33, 90, 297],
        100: [100, 100, 100, 200, 50, 300],
        1000: [500, 500, 333.333333, 250, 100],
    }

    @classmethod
    def setUpClass(cls):
        """All at the same time: they hardly need a CPU."""
        cls.runs = {
            hz: harness.start_wrap(
                [harness.fixture("in_step"), "4", *(str(rate) for rate in rates)],
                "--max-overhead=0", "--seed=7", hz=hz, preexec_fn=go_first
            )
            for hz, rates in cls.RATES.items()
        }  # fmt: skip

    def check(self, hz):
        run, rates = self.runs[hz].finish(), self.RATES[hz]
        truth = [line.split() for line in run.stdout.decode().splitlines() if line != "ready"]
        self.assertEqual(len(truth), len(rates))
        # Ticks that were missed are not at random places: the machine was busy just then.
        missed = run.summary.missed / (run.summary.missed + run.summary.ticks)
        for name, *seconds in truth:
            a_s, b_s, late_s = map(float, seconds)
            share = a_s / (a_s + b_s)
            # When the machine lets nobody go on, the profiler is late, too: its tick then comes
            # after the wait in which it was due. So the program's late time, and no more than that,
            # may be counted elsewhere.
            late = late_s / (a_s + b_s)
            samples = [s for s in run.pprof.samples if s.thread == name]
            for what in lambda s: s.count, lambda s: s.wall_ns:
                found, all_ = (
                    sum(what(s) for s in samples if set(s.stack) & functions)
                    for functions in ({"wait_a"}, {"wait_a", "wait_b"})
                )
                n = sum(s.count for s in samples)
                sigma = math.sqrt(share * (1 - share) / n)
                self.assertLessEqual(
                    abs(found / all_ - share), 4.5 * sigma + missed + late,
                    f"{name} Hz at {hz} Hz: {found / all_:.3f} of {n}, not {share:.3f} +- "
                    f"{sigma:.3f}, missed {missed:.3f}, late {late:.3f}; {run.stderr}",
                )  # fmt: skip

    def test_99_hz(self):
        self.check(99)

    def test_100_hz(self):
        self.check(100)

    def test_1000_hz(self):
        self.check(1000)


def truth_and_found(run):
    """What the target said of itself, name -> seconds, and the samples that have each name."""
    lines = [line.split() for line in run.stdout.decode().splitlines() if line != "ready"]
    truth = {name: float(seconds) for name, seconds in lines}
    found = collections.Counter()
    for sample in run.pprof.samples:
        found.update({name: sample.count for name in truth if name in sample.stack})
    return truth, found


def share_a_cpu():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class LateLook(harness.TestCase):
    """Who wakes while the profiler has the CPU, and so waits for it, is not seen running."""

    def test_second_after_deep(self):
        target = self.start_fixture("deep_nap", preexec_fn=share_a_cpu)
        run = harness.attach(target, "--max-overhead=0", duration="4", hz=400, preexec_fn=share_a_cpu)
        running = {t.name: t.cpu_s * run.summary.hz for t in run.summary.threads}
        first, second = running["first"], running["second"]
        # They do the same. Seen after the first one's copy was unwound, it was 1.6 to 2.6 times as much.
        self.assertLessEqual(second, first + 4 * math.sqrt(first + second), run.stderr)


class ShortNaps(harness.TestCase):
    """No more is seen asleep, or in any function, than the program itself says, at any rate."""

    def check(self, hz, n_idle=0):
        # Each of the two has a CPU of its own.
        harness.need(len(os.sched_getaffinity(0)) >= 2, "needs two CPUs")
        run = harness.start_wrap(
            [harness.fixture("short_naps"), "2.5", str(n_idle)], "--max-overhead=0", "--seed=7",
            hz=hz, preexec_fn=go_first
        ).finish()  # fmt: skip
        truth, found = truth_and_found(run)
        n, missed = sum(found.values()), run.summary.missed / run.summary.ticks
        thread = max(run.summary.threads, key=lambda t: t.cpu_s)
        # Where it has to wait for a CPU, each tick makes the scheduler choose anew: then the time
        # after ticks is not like that before them.
        waited = (thread.kernel_delay_s or 0) / thread.watched_s
        for name, seconds in truth.items():
            share = seconds / sum(truth.values())
            sigma = math.sqrt(share * (1 - share) / n)
            self.assertLessEqual(
                abs(found[name] / n - share), SIGMAS * sigma + missed + 0.05 * waited,
                f"{name}: {found[name] / n:.3f} of {n}, not {share:.3f} +- {sigma:.3f}, waited "
                f"{waited:.3f}; {run.stderr}",
            )  # fmt: skip

    def test_99_hz(self):
        self.check(99)

    def test_997_hz(self):
        self.check(997)

    def test_among_idle_threads(self):
        """It takes time to look at them: not between a look at a thread that runs and its stop."""
        self.check(997, 100)


class TooOften(harness.TestCase):
    """At a rate that costs more than --max-overhead allows: most ticks are left out."""

    def test_shares(self):
        """What is sampled stands for all of the time, to the end."""
        run = harness.start_wrap(
            [harness.fixture("short_naps"), "4", "0"], "--seed=7", hz=10000, preexec_fn=go_first
        ).finish()
        self.assertGreater(run.summary.thinned, run.summary.ticks, run.stderr)
        # The last tick's stretch may end after the program, and is cut there.
        self.assertGreater(run.summary.duration_s, 0.95 * 4, run.stderr)
        truth, _ = truth_and_found(run)
        found = collections.Counter()
        for sample in run.pprof.samples:
            found.update({name: sample.wall_ns for name in truth if name in sample.stack})
        missed = run.summary.missed / (run.summary.missed + run.summary.ticks)
        for name, seconds in truth.items():
            share = seconds / sum(truth.values())
            # In effect the samples are fewer, as they weigh more or less.
            sigma = math.sqrt(share * (1 - share) / (run.summary.ticks / 8))
            self.assertAlmostEqual(
                found[name] / sum(found.values()), share, delta=SIGMAS * sigma + missed / 2,
                msg=f"{name}; {run.stderr}",
            )  # fmt: skip


class WokenSleeper(harness.TestCase):
    def test_shares(self):
        """What a thread waits for may come in the moment of its stop: it then goes on, and sleeps
        elsewhere, without having been scheduled more often than the stop takes."""
        run = harness.start_wrap(
            [harness.fixture("woken_sleeper"), "7"], "--max-overhead=0", hz=997
        ).finish()  # fmt: skip
        truth, found = truth_and_found(run)
        share = truth["sleep_shortly"] / sum(truth.values())
        n, lost = sum(found.values()), run.summary.missed / run.summary.ticks
        self.assertLessEqual(found["sleep_shortly"] / n, 1.5 * share + lost, f"{found}, {truth}")


def without_sums():
    """No sums of all threads' figures from the kernel: they are for CAP_NET_ADMIN."""
    PR_CAPBSET_DROP, CAP_NET_ADMIN = 24, 12
    if ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_NET_ADMIN, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_CAPBSET_DROP")


class Bursts(harness.TestCase):
    """A thread that has begun to run is not taken for the sleeper that it was."""

    def check(self, *args, **how):
        # Whoever is to wake while the machine pauses is seen at work at the end of that, for all of it.
        run, late_s = self.run_unpaused(
            lambda: harness.start_wrap(
                [harness.fixture("bursts"), *args], "--max-overhead=0", hz=HZ, **how
            )
        )
        truth = dict(line.split() for line in run.stdout.decode().splitlines()[1:])
        burst_s, rest_s = float(truth["burst"]), float(truth["rest"])
        samples = [s for s in run.pprof.samples if {"burst", "rest"} & set(s.stack)]
        found_s = sum(s.wall_ns for s in samples if "burst" in s.stack) / 1e9
        share, n = burst_s / (burst_s + rest_s), sum(s.count for s in samples)
        # What is seen behind a gap of missed ticks stands for all of it.
        squares = n + (1 + run.summary.missed) ** 2
        delta_s = SIGMAS * math.sqrt(squares * share * (1 - share)) / HZ
        if len(args) > 1 and burst_s > 1.2 * float(truth["work"]):
            # A busy machine: few of the bursts are most of the time, and ticks are missed.
            delta_s = 0.5 * burst_s
        delta_s += late_s * (int(args[1]) if len(args) > 1 else 1)  # of each thread
        self.assertGreater(n * share, 5 * SIGMAS, "too short a run")
        self.assertAlmostEqual(
            found_s, burst_s, delta=delta_s,
            msg=f"{n} samples, {run.summary.missed} ticks missed, the machine paused for {late_s:.3f} s",
        )  # fmt: skip

    def test_one_thread(self):
        self.check("3")

    def test_many_threads(self):
        """Most of them have slept for long."""
        self.check("3", "60", "600000")

    def test_many_threads_without_sums(self):
        harness.need(os.geteuid() == 0, "needs root to give up a capability")
        self.check("3", "60", "600000", preexec_fn=without_sums)


if __name__ == "__main__":
    harness.main()
