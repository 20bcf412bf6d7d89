# SPDX-License-Identifier: MIT
"""What fails is tried again, where the machine may be at fault: a fault that a test looks for is there each
time.

`tried` is for what is asserted of a time, or of a share of a short one, which others on a busy machine may
spoil. And any test runs again that failed while the whole machine paused (metronome.py), or of a sanitized
profiler, which is slow, and runs for what the sanitizers say. Neither that nor a harmed target is ever excused.
"""

import functools
import re
import time
import unittest

from metronome import Metronome

TRIES = 3
BEAT_S = 0.05
LONG_S = 0.2  # of a pause: shorter ones tests bear
HARM = re.compile(r"Sanitizer|runtime error:|died of signal|thread \d+ is left|found faults")

_metronome = None
_tries_all = False


def tried(test):
    """Runs a test, or a check within one, up to TRIES times; it fails as its last run does."""
    if test.__name__.startswith("test_"):
        test.is_tried = True  # run() sees to it, and hears of parts that fail (subTest), too
        return test

    @functools.wraps(test)
    def run(*args, **more):
        for left in reversed(range(TRIES)):
            try:
                return test(*args, **more)
            except AssertionError as error:
                if not left or HARM.search(str(error)):
                    raise
                print(f"{test.__qualname__}: once more, as {error}", flush=True)

    return run


def listen():
    """For pauses, from now on until this process ends."""
    global _metronome
    _metronome = Metronome(BEAT_S)


def stop_listening():
    _metronome.end()


def longest_pause_s():
    """The longest one since the tests of this process began: a class may have recorded long ago what its
    tests look at."""
    pauses = _metronome.pauses(0, time.monotonic()) if _metronome else []
    return max((end - start - BEAT_S for start, end in pauses), default=0)


class TestCase(unittest.TestCase):
    def run(self, result):
        for left in reversed(range(TRIES)):
            n_failures, n_errors = len(result.failures), len(result.errors)
            super().run(result)
            told = [text for _, text in result.failures[n_failures:] + result.errors[n_errors:]]
            is_tried = _tries_all or getattr(getattr(self, self._testMethodName), "is_tried", False)
            may = is_tried or longest_pause_s() > LONG_S
            if not told or not left or not may or any(map(HARM.search, told)):
                break
            print(f"{self.id()}: once more; the machine paused for {longest_pause_s():.1f} s", *told, flush=True)
            del result.failures[n_failures:], result.errors[n_errors:]
            self._set_up_class_again()
        return result

    def _set_up_class_again(self):
        self.tearDownClass()
        self.doClassCleanups()
        self.setUpClass()


def main(tries_all):
    """Runs the tests of the main module; what unittest tells of them. `tries_all`: each is tried."""
    global _tries_all
    _tries_all = tries_all
    listen()
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    stop_listening()
    return result
