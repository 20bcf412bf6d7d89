# SPDX-License-Identifier: MIT
"""Figure 9: one dump of all threads: profiler dump beside eu-stack and gdb, and beside py-spy dump and
jstack on the programs that those know: wall time, CPU time, and whether names and lines are there.

jstack stops at safepoints and shows Java's frames; py-spy dump shows Python's and stops the process.
"""

import shutil
import time

import bench
import programs

TARGET_S = 0.5


def dump(pid):
    return [bench.harness.PROFILER, "dump", str(pid)]


def measure(argv):
    """Medians of wall and CPU time."""
    runs = [bench.run_cpu_s(argv) for _ in range(bench.ROUNDS)]
    return bench.median([r[1] for r in runs]), bench.median([r[0] for r in runs])


def tools(name, pid):
    yield "profiler dump", dump(pid)
    yield "profiler dump --no-locks", [*dump(pid), "--no-locks"]
    if shutil.which("eu-stack"):
        yield "eu-stack", bench.eu_stack(pid)
    if shutil.which("gdb"):
        yield "gdb", bench.gdb(pid)
    if name.startswith("python3"):
        py_spy = bench.find_py_spy()
        if py_spy:
            yield "py-spy dump", [py_spy, "dump", "-p", str(pid)]
    if name.startswith("java") and shutil.which("jstack"):
        yield "jstack", ["jstack", str(pid)]


def targets():
    yield "C, 1,000 that sleep and 2 that run", bench.Crowd(1000, 2)
    for name in ("python3, 10 threads", "java, 40 threads"):
        target = programs.start(name)
        if target:
            yield name, target


def main():
    table = bench.Table(
        f"One dump of all threads (medians of {bench.ROUNDS})",
        "figure", "program", "threads", "tool", "wall", "CPU", "target", "met",
    )  # fmt: skip
    for name, target in targets():
        with bench.ending(target):
            time.sleep(1)
            threads = len(bench.harness.tids_of(target.pid))
            for tool, argv in tools(name, target.pid):
                wall_s, cpu_s = measure(argv)
                goal = tool == "profiler dump" and threads >= 1000
                table.row(
                    "9", name, threads, tool, f"{1e3 * wall_s:.0f} ms", f"{1e3 * cpu_s:.0f} ms",
                    f"<= {TARGET_S} s" if goal else "", bench.met(wall_s <= TARGET_S) if goal else "",
                )  # fmt: skip


if __name__ == "__main__":
    main()
