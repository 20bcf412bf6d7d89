# SPDX-License-Identifier: MIT
"""What fails is tried again, up to three times: nearly every test here looks at what a scheduler did, and on
a busy or paused machine a few in a thousand see what they did not ask for. A fault that a test looks for is
there each time. A harmed target and what a sanitizer says are never excused. Each further try is printed with
what failed, and .ci/run names those tests at its end, so that one that needs it often is seen."""

import functools
import re
import sys
import unittest

TRIES = 3
AGAIN = "once more, as"  # .ci/run looks for it
HARM = re.compile(r"Sanitizer|runtime error:|died of signal|thread \d+ is left|found faults")


def _tell(name, why):
    """In one line first what an exception says last: why the check failed."""
    why = str(why).strip()
    print(f"{name}: {AGAIN} {why.splitlines()[-1] if why else why}\n{why}", file=sys.stderr, flush=True)


def tried(check):
    """A part of a test, or what sets up its class, that is tried again by itself."""

    @functools.wraps(check)
    def run(*args, **more):
        for left in reversed(range(TRIES)):
            try:
                return check(*args, **more)
            except AssertionError as error:
                if not left or HARM.search(str(error)):
                    raise
                _tell(check.__qualname__, error)

    return run


class TestCase(unittest.TestCase):
    def __init_subclass__(cls):
        super().__init_subclass__()
        if "setUpClass" in vars(cls):
            cls.setUpClass = classmethod(tried(vars(cls)["setUpClass"].__func__))

    def run(self, result):
        for left in reversed(range(TRIES)):
            n_failures, n_errors = len(result.failures), len(result.errors)
            super().run(result)
            told = [text for _, text in result.failures[n_failures:] + result.errors[n_errors:]]
            if not told or not left or any(map(HARM.search, told)):
                break
            _tell(self.id(), "\n".join(told))
            del result.failures[n_failures:], result.errors[n_errors:]
            self._set_up_class_again()
        return result

    def _set_up_class_again(self):
        """It may have recorded what its tests look at."""
        self.tearDownClass()
        self.doClassCleanups()
        self.setUpClass()
