#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a fleet sends, added up from windows that were measured.

    fleet.py PROFILER URL SECONDS HOSTS PROCESSES FILE...

Asks `profiler push --dry-run` what it would send of the FILEs, windows of SECONDS each of one
process, to a server such as URL, and prints that for HOSTS with as many such PROCESSES on each:
bytes and requests a second, and series (Pyroscope: one for each type of values that is not 0 in a
state; Parca: one for each state). Pyroscope's limit for a tenant is on bytes before compression,
of each type of values where they are OpenTelemetry's.
"""

import re
import subprocess
import sys

import pprof

POST = re.compile(r"^\tPOST \S+: (\d+) bytes \((\d+) before compression\)", re.M)
TENANT_BYTES_S = 4 << 20  # Pyroscope's default


def series_of(paths, is_parca):
    """How many series the windows of one process are, by what is in them."""
    found = set()
    for path in paths:
        with open(path, "rb") as file:
            for sample in pprof.Profile(file.read(), pushed=True).samples:
                values = dict(samples=sample.count, cpu=sample.cpu_ns, wall=sample.wall_ns)
                found |= {(sample.state, is_parca or kind) for kind, value in values.items() if value}
    return len(found)


def main():
    profiler, url, seconds, hosts, processes = sys.argv[1:6]
    paths = sys.argv[6:]
    run = subprocess.run([profiler, "push", url, "--dry-run", *paths], capture_output=True, text=True, check=True)
    posts = POST.findall(run.stdout)
    size, raw_size = (sum(int(post[i]) for post in posts) / len(paths) for i in (0, 1))
    n = int(hosts) * int(processes)
    per_s = size / float(seconds)
    raw_s = raw_size / float(seconds) * (3 if url.startswith("otlp+") else 1)
    requests_s = len(posts) / len(paths) / float(seconds)
    series = series_of(paths, url.startswith("parca+"))
    print(f"a window: {size:.0f} bytes ({raw_size:.0f} before compression) in {len(posts) / len(paths):.1f} "
          f"requests, {per_s:.0f} bytes a second; {series} series")  # fmt: skip
    print(f"{n} processes: {n * per_s / 1e6:.1f} MB a second, {n * requests_s:.0f} requests a second, "
          f"{n * series} series; {n * per_s * 86400 / 1e12:.2f} TB a day")  # fmt: skip
    if not url.startswith(("parca+", "pprof+")):
        print(f"a tenant of Pyroscope takes {TENANT_BYTES_S / raw_s:.0f} such processes by default")


if __name__ == "__main__":
    main()
