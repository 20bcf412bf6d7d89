#!/usr/bin/env python3
"""A short run of a fuzzer: run_fuzz.py FUZZER NEW REGRESSIONS SEEDS SECONDS

First all regressions, then fuzzing from them and the seeds for that long. NEW is where inputs that
reach new code go, and beside it what fails.
"""

import os
import sys


def main():
    fuzzer, new, regressions, seeds, seconds = sys.argv[1:]
    os.makedirs(new, exist_ok=True)
    corpora = [path for path in (new, regressions, seeds) if os.path.isdir(path)]
    env = dict(os.environ)
    # libdw's own leaks, and what guarded work leaves behind, are no findings.
    env["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1:handle_abort=2"
    os.execve(
        fuzzer,
        [fuzzer, f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=3000", "-seed=1",
         "-print_final_stats=1", f"-artifact_prefix={new}.", *corpora],
        env,
    )  # fmt: skip


if __name__ == "__main__":
    main()
