# SPDX-License-Identifier: MIT
"""Figure 7: what a person waits for: from the start to the first sample, and from the end of
sampling to the profile.

The profiler runs for BENCHMARK_SECONDS at 99 Hz. Its first sample is taken to be there when a run
of a single tick ends its sampling, which its summary on stderr tells; that is a little late. The
end of sampling of a longer run is told by its summary as well, and the profile is there when the
process ends. The program with 200 MB of DWARF is made first.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import big_dwarf
import bench
import programs

MEGABYTES = int(os.environ.get("BENCHMARK_DWARF_MB", "200"))


def run(pid, seconds):
    """From the start to the summary, and from there to the end, in seconds; its CPU time after
    sampling, in seconds; its peak memory in MB."""
    directory = tempfile.mkdtemp(dir=bench.SCRATCH)
    start_s = time.monotonic()
    process = subprocess.Popen(
        [bench.harness.PROFILER, "-p", str(pid), "-F", "99", "-d", str(seconds),
         "-o", os.path.join(directory, "out.pb.gz")],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    worker = bench.find_worker(process.pid)
    select.select([process.stderr], [], [])
    told_s = time.monotonic()
    cpu_s = bench.process_cpu_s(worker)
    text = process.stderr.read().decode()
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    end_s = time.monotonic()
    process.returncode = os.waitstatus_to_exitcode(status)
    shutil.rmtree(directory)
    if process.returncode:
        raise RuntimeError(text)
    cpu_s = usage.ru_utime + usage.ru_stime - cpu_s
    return told_s - start_s, end_s - told_s, cpu_s, usage.ru_maxrss / 1024


def show(table, name, pid, first_ms=None, write_ms=None):
    first, write, cpu, peak = [], [], [], []
    for _ in range(bench.ROUNDS):
        first.append(1e3 * run(pid, 0.001)[0])
        _, write_s, cpu_s, peak_mb = run(pid, bench.SECONDS)
        write.append(1e3 * write_s)
        cpu.append(1e3 * cpu_s)
        peak.append(peak_mb)
    reached = [bench.median(first) <= (first_ms or 1e9), bench.median(write) <= (write_ms or 1e9)]
    target = f"<= {write_ms} ms" + (f", first <= {first_ms} ms" if first_ms else "")
    table.row(
        "7", name, f"{bench.median(first):.1f} ms", f"{bench.median(write):.0f} ms",
        bench.spread(write), target, bench.met(all(reached)),
        f"{bench.median(cpu):.0f} ms", f"{max(peak):.0f} MB",
    )  # fmt: skip


class Postgres:
    """A database server of our own; the backend that works on a long query is the target."""

    def __init__(self):
        self.server = None
        self.directory = tempfile.mkdtemp(dir="/tmp", prefix="profiler-benchmark-")
        shutil.chown(self.directory, "postgres")
        postgres = os.path.realpath(programs.need("postgres"))
        self.bin = os.path.dirname(postgres)
        initdb = [os.path.join(self.bin, "initdb"), "-D", self.directory, "-A", "trust"]
        self._as_user(subprocess.run, initdb, check=True)
        self.server = self._as_user(
            subprocess.Popen, [postgres, "-D", self.directory, "-k", self.directory, "-h", ""]
        )
        sql = "SELECT sum(sqrt(i) * length(md5(i::text))) FROM generate_series(1, 1000000000) i"
        psql = [os.path.join(self.bin, "psql"), "-h", self.directory, "postgres", "-c"]
        ready = [*psql, "SELECT 1"]
        bench.harness.wait_for(
            lambda: self._as_user(subprocess.run, ready).returncode == 0, "the server"
        )
        self.client = self._as_user(subprocess.Popen, [*psql, sql])
        self.pid = bench.harness.wait_for(self._backend, "the query")

    def _as_user(self, start, argv, **more):
        silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        return start(argv, user="postgres", cwd=self.directory, **silent, **more)

    def _backend(self):
        """The server's child that has taken CPU time."""
        path = f"/proc/{self.server.pid}/task/{self.server.pid}/children"
        with open(path, encoding="utf-8") as file:
            pids = [int(pid) for pid in file.read().split()]
        return next((pid for pid in pids if bench.harness.cpu_ticks(pid) > 20), None)

    def end(self):
        self.client.terminate()
        self.client.wait()
        self.server.send_signal(signal.SIGINT)  # at once, whatever its queries do
        self.server.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def start_postgres():
    try:
        return Postgres()
    except (OSError, LookupError, subprocess.SubprocessError, AssertionError) as error:
        print(f"postgres is left out: {error}", file=sys.stderr)
        return None


def main():
    table = bench.Table(
        f"Waiting ({bench.SECONDS:g} s of sampling, medians of {bench.ROUNDS})",
        "figure", "target", "start to first sample", "end to profile written",
        "quartiles of the latter", "target", "met", "CPU time after sampling", "peak memory",
    )  # fmt: skip
    for name, make, limits in (
        ("python3, 10 threads", lambda: programs.start("python3, 10 threads"), (20, 300)),
        ("postgres", start_postgres, (None, 300)),
        ("java, 40 threads", lambda: programs.start("java, 40 threads"), (None, 300)),
    ):
        target = make()
        if target:
            with bench.ending(target):
                show(table, name, target.pid, *limits)
    directory = bench.scratch()
    path, debug_bytes = big_dwarf.make(directory, MEGABYTES)
    with bench.ending(bench.harness.Target([path])) as target:
        show(table, f"{debug_bytes / 1e6:.0f} MB of DWARF", target.pid, None, 2000)


if __name__ == "__main__":
    sys.exit(main())
