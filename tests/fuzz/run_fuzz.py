#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A short run of a fuzzer, the same each time: run_fuzz.py FUZZER REGRESSIONS SEEDS RUNS

From the regressions and the seeds, with a fixed seed of its own, for so many inputs.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile

ADDR_NO_RANDOMIZE = 0x0040000  # personality(2)

# libdw's own leaks, and what guarded work leaves behind, are no findings; nor is what libdw hands to
# the C library.
ASAN_OPTIONS = "detect_leaks=0:allocator_may_return_null=1:handle_abort=2"
SUPPRESSIONS = "\n".join(f"interceptor_via_lib:{name}" for name in ("libdw", "libelf", "liblzma"))


def fix_addresses():
    """What is compared with an address is among what the fuzzer learns. Best effort."""
    ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)


def main():
    fuzzer, regressions, seeds, runs = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="profiler-fuzz-") as directory:
        found = os.path.join(directory, "found")
        suppressions = os.path.join(directory, "suppressions")
        os.mkdir(found)
        with open(suppressions, "w", encoding="ascii") as file:
            file.write(SUPPRESSIONS)
        # Nothing else: it stands on the stack, and moves it.
        env = {"ASAN_OPTIONS": f"{ASAN_OPTIONS}:suppressions={suppressions}"}
        corpora = [path for path in (found, regressions, seeds) if os.path.isdir(path)]
        # What fails is left beside the fuzzer.
        result = subprocess.run(
            [fuzzer, f"-runs={runs}", "-seed=1", "-timeout=60", "-rss_limit_mb=3000",
             "-print_final_stats=1", f"-artifact_prefix={fuzzer}.", *corpora],
            env=env, preexec_fn=fix_addresses, check=False,
        )  # fmt: skip
    sys.exit(result.returncode if result.returncode >= 0 else 128 + signal.SIGABRT)


if __name__ == "__main__":
    main()
