# SPDX-License-Identifier: MIT
"""Erlang's virtual machine, BEAM: its processes' stacks, and what they call of C."""

import os
import re
import shutil
import subprocess

import harness
from harness import attach

BELOW = ["loop", "outer", "middle", "leaf"]
IN_C = {"binary_to_list_1", "term_to_binary_1", "beam_jit_call_bif"}
MIN_WHOLE = 0.85  # the first samples of a scheduler do not have the process's stack yet


class Erlang(harness.TestCase):
    def start_beam(self, *args):
        erlc = shutil.which("erlc")
        harness.need(erlc and shutil.which("erl"), "erlang is not installed")
        where = self.directory()
        source = os.path.join(harness.HERE, "fixtures", "erlang_fixture.erl")
        subprocess.run([erlc, "-o", where, source], check=True)
        one = ["+S", "1:1", "+SDcpu", "1:1", "+SDio", "1"]
        return self.start("erl", "-noshell", *one, *args, "-pa", where, "-s", "erlang_fixture", "main")

    def profile(self, *args):
        """The stacks of the scheduler, those that are whole, and those with C in them."""
        run = attach(self.start_beam(*args), duration="1", hz=499)
        counts = run.stacks("1_scheduler")
        whole = {s: n for s, n in counts.items() if not s[0].startswith("[truncated")}
        self.assertGreater(sum(whole.values()), MIN_WHOLE * sum(counts.values()), run.stderr)
        self.assertEqual({s[0] for s in whole} - {"clone3", "clone"}, set())
        in_c = [s for s in whole if IN_C & set(s)]
        self.assertNotEqual(in_c, [])
        return whole, in_c

    def test_without_names(self):
        _, in_c = self.profile()
        for stack in in_c:
            at = min(i for i, name in enumerate(stack) if name in IN_C)
            called = [n for n in stack[:at] if re.fullmatch(r"\[(anon|jit)\+0x[0-9a-f]+\]", n)]
            self.assertGreaterEqual(len(called), len(BELOW), stack)

    def test_with_names(self):
        """And with a frame pointer, which is kept where the process's stack pointer is."""
        whole, in_c = self.profile("+JPperf", "true")
        calls = [f"$erlang_fixture:{name}/1" for name in BELOW]
        for stack in whole:
            ours = [name for name in stack if name in calls]
            self.assertEqual(ours, calls[: len(ours)], stack)
        for stack in in_c:
            self.assertLessEqual(set(calls), set(stack))


if __name__ == "__main__":
    harness.main()
