# SPDX-License-Identifier: MIT
"""Control groups with a limit of CPU time, of version 1 or 2."""

import contextlib
import os

ROOT = "/sys/fs/cgroup"


@contextlib.contextmanager
def quota(percent):
    """Yields a prefix that starts a command in a new group with this quota of one CPU."""
    path = f"{ROOT}/{'cpu/' if os.path.isdir(f'{ROOT}/cpu') else ''}profiler-test-{os.getpid()}"
    os.mkdir(path)
    try:
        files = {"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": percent * 1000}
        if not os.path.exists(f"{path}/cpu.cfs_quota_us"):
            files = {"cpu.max": f"{percent * 1000} 100000"}
        for name, value in files.items():
            with open(f"{path}/{name}", "w", encoding="ascii") as file:
                file.write(str(value))
        yield ["sh", "-c", f'echo $$ >{path}/cgroup.procs && exec "$@"', "sh"]
    finally:
        os.rmdir(path)
