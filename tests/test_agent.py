# SPDX-License-Identifier: MIT
"""The agent: which processes it chooses, what it makes of them, and how it ends.

Its rules name the path of a program that no other process has.
"""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time

import harness
from harness import PROFILER, STATUS_USAGE, children, find_tool, is_there, need, read_status, wait_for
from push_server import Server

SUMMED_UP = re.compile(r"agent: (\d+) windows, (\d+) of them failed; (\d+) were left out")
QUICK = ("--min-age=100ms", "--window=300ms", "--period=1s", "--max-cpu=0", "-F", 99)
NOBODY = 65534


def setUpModule():
    """The servers run in this process, and their clients may go at any time."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def leads_session(pid):
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False  # a sampler that has ended


def descendants(pid):
    """Its children, theirs, and so on."""
    found = list(children(pid))
    for child in found:
        found += children(child)
    return found


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().rstrip("\n")


class Agent(harness.TestCase):
    def setUp(self):
        self.where = self.directory()
        self.off_file = os.path.join(self.where, "off")
        self.program = self.copy("shop")

    def copy(self, name, fixture="threads"):
        path = os.path.join(self.where, name)
        shutil.copy(harness.fixture(fixture), path)
        return path

    def spool(self):
        path = os.path.join(self.where, "spool")
        return [name for name in os.listdir(path) if name.endswith(".pb.gz")] if os.path.exists(path) else []

    def metrics(self):
        with open(os.path.join(self.where, "metrics"), encoding="utf-8") as file:
            return json.load(file)

    def begin(self, *args, prefix=()):
        process = subprocess.Popen(
            [*prefix, PROFILER, "agent", *map(str, QUICK), f"--off-file={self.off_file}",
             "-o", os.path.join(self.where, "spool"), f"--metrics={self.where}/metrics", *map(str, args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
        watchdog = threading.Timer(harness.RUN_TIMEOUT_S, process.kill)  # for who waits for what it says
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end(self, process):
        """The counts of its last line: windows, failed, left out."""
        process.send_signal(signal.SIGTERM)
        _, self.stderr = process.communicate(timeout=harness.RUN_TIMEOUT_S)
        self.assertEqual(process.returncode, 0, self.stderr)
        for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
            self.assertNotIn(word, self.stderr)
        match = SUMMED_UP.search(self.stderr)
        self.assertTrue(match, self.stderr)
        return tuple(map(int, match.groups()))

    def assert_let_go(self, *targets):
        for target in targets:
            for tid in harness.tids_of(target.pid):
                status = read_status(target.pid, tid)
                self.assertEqual(status["TracerPid"], "0")
                self.assertNotIn(status["State"][0], "tT")

    def list(self, *args, prefix=()):
        """{pid: (is it chosen?, why)}"""
        run = subprocess.run([*prefix, PROFILER, "agent", "--list", *args], capture_output=True, text=True,
                             check=True, timeout=harness.RUN_TIMEOUT_S)  # fmt: skip
        rows = [re.match(r"(yes|no) +(\d+)  .{15}  \S+ +(.*)", line) for line in run.stdout.splitlines()]
        return {int(row[2]): (row[1] == "yes", row[3]) for row in rows if row}

    def test_windows(self):
        """All that is sampled arrives, under its labels; what no rule chooses is left alone."""
        server = Server((200,))
        self.addCleanup(server.close)
        shop = self.start(self.program, 3, 1, 1)
        named = self.start(self.program, 2, 0, 1, env={**os.environ, "OTEL_SERVICE_NAME": "billing"})
        other = self.start(self.copy("other"), 2, 0, 1)
        rules = os.path.join(self.where, "rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(f"# those of the shop\nexclude exe={self.where}/other\n"
                       f"exe={self.program} label.team=web\n")  # fmt: skip
        agent = self.begin(f"--push={server.url}", f"--rules={rules}", f"exe={self.where}/.*")

        def services():
            return [series.labels.get("service_name") for series in server.taken]

        wait_for(lambda: min(map(services().count, ("shop", "billing"))) >= 2, "windows of both")
        (uploader,) = filter(leads_session, children(agent.pid))
        n_windows, n_failed, _ = self.end(agent)
        self.assertFalse(os.path.exists(f"/proc/{uploader}"))
        self.assertEqual(n_failed, 0, self.stderr)
        n_samples = sum(series.n_samples for series in server.taken)
        metrics = self.metrics()
        push = metrics["push"]
        self.assertEqual((metrics["ended"], metrics["off"], metrics["sampled_processes"]), (True, False, 0))
        self.assertEqual((metrics["windows"], metrics["failed_windows"]), (n_windows, 0))
        self.assertEqual((metrics["samples"], push["sent_samples"]), (n_samples, n_samples))
        self.assertEqual((push["waiting_windows"], metrics["lost_samples"]), (0, 0))
        self.assertEqual(set(push["dropped_samples"].values()), {0})
        self.assertGreater(metrics["ticks"], 0)
        self.assertGreater(metrics["profiler_cpu_ns"], metrics["uploader_cpu_ns"])
        # Of each process one may have been ended before its first sample.
        self.assertIn(n_windows - len(server.taken), range(3))
        self.assertEqual(set(services()), {"shop", "billing"})
        for series in server.taken:
            self.assertLessEqual({"team": "web", "exe": "shop", "host": os.uname().nodename}.items(),
                                 series.labels.items())  # fmt: skip
            self.assertNotIn("pid", series.labels)
            self.assertTrue(any("main" in sample.stack for sample in series.profile.samples))
        self.assertEqual(self.spool(), [], self.stderr)
        self.assert_let_go(shop, named, other)

    def test_list(self):
        """Why, and why not."""
        mine = self.start(self.program, 1, 0, 0, env={**os.environ, "OTEL_SERVICE_NAME": "billing"})
        other = self.start(self.copy("other"), 1, 0, 0)
        traced = self.start(self.program, 1, 0, 0)
        path = self.copy("headless", "leader_exit")
        headless = self.start(path, env={**os.environ, "OTEL_SERVICE_NAME": "body"})
        tracer = self.start(find_tool("strace"), "-qq", "-f", "-o", "/dev/null", "-p", traced.pid, ready=None)
        wait_for(lambda: read_status(traced.pid)["TracerPid"] != "0", "the tracer")
        profiler = subprocess.Popen([PROFILER, "-q", "-p", str(mine.pid)], stdout=subprocess.DEVNULL)
        self.addCleanup(profiler.wait)
        self.addCleanup(profiler.terminate)
        rule = f"exe={self.where}/.*|{PROFILER}"
        found = self.list("--min-age=1ms", rule, f"--exclude=exe={self.where}/other")
        self.assertEqual(found[mine.pid][0], True)
        self.assertRegex(found[mine.pid][1], f"^'{re.escape(rule)}': service_name=billing host=")
        for pid, why in (
            (other.pid, f"excluded by 'exe={self.where}/other'"),
            (traced.pid, f"'{rule}', but it is traced by process {tracer.pid} (strace)"),
            (profiler.pid, "a profiler, or started by one"),
            (os.getpid(), "no rule matches"),
        ):
            self.assertEqual(found[pid], (False, why))
        # Of a process whose main thread has ended, too; the rule asks for all that /proc tells.
        whole = f"exe={path} cmd={path} comm=headless"
        is_chosen, why = self.list("--min-age=1ms", whole)[headless.pid]
        self.assertTrue(is_chosen, why)
        self.assertRegex(why, f"^'{re.escape(whole)}': service_name=body host=.* exe=headless")
        os.unlink(self.program)  # as when a package is upgraded
        self.assertEqual(self.list("--min-age=1ms", rule)[mine.pid], found[mine.pid])
        self.assertRegex(self.list("--min-age=24h", rule)[mine.pid][1], r"but it is only [\d.]+ s old")

    def test_large_environment(self):
        """What the environment says counts if all of it was read."""
        value = "x" * 87000
        room = (256 << 10) - 3 * len("A=" + value + "\0") - len("Z=\0" "OTEL_SERVICE_NAME=bill")
        environment = {"A": value, "B": value, "C": value, "Z": "x" * room, "OTEL_SERVICE_NAME": "billing"}
        cut = self.start(self.program, 1, 0, 0, env=environment)
        environment["Z"] = environment["Z"][len("ing\0") :]
        whole = self.start(self.program, 1, 0, 0, env=environment)
        found = self.list("--min-age=1ms", f"exe={self.program}")
        self.assertIn("service_name=shop ", found[cut.pid][1])
        self.assertIn("service_name=billing ", found[whole.pid][1])

    def hide_environment(self):
        """Starts a process whose environment nobody can read. Its program; None: it is not permitted here."""
        program = self.copy("hidden", "missing_pages")
        target = self.start(program, "environ", "sleep", ready=None, env={**os.environ, "LARGE": "x" * 30000})
        return program if target.process.stdout.readline() == b"ready\n" else None

    def test_kept_waiting(self):
        """Neither a server of users that does not answer nor a process that shows no environment holds up the
        agent, or what needs neither."""
        need(os.geteuid() == 0, "not root")
        self.start(self.copy("other"), 1, 0, 0)
        target = self.start(self.program, 2, 0, 1)
        os.mkfifo(os.path.join(self.where, "users"))
        script = 'mount --bind "$0" /etc/passwd && exec "$@"'
        hidden = self.hide_environment()
        agent = self.begin(f"exe={self.program}", f"exe={hidden}", f"--exclude=exe={self.where}/other user=nobody",
                           prefix=(*harness.unshare("-m"), "sh", "-c", script,
                                   os.path.join(self.where, "users")))  # fmt: skip
        wait_for(lambda: len(self.spool()) >= 3, "windows")
        wait_for(lambda: self.metrics()["silent"] == (2 if hidden else 1), "the time-outs")
        _, n_failed, _ = self.end(agent)
        self.assertEqual(n_failed, 0, self.stderr)
        self.assertRegex(self.stderr, r"process \d+ is not sampled: its command line, environment or user name could not be read")
        self.assertEqual(len({name.split(".")[-5] for name in self.spool()}), 1)
        self.assert_let_go(target)

    def test_deployed(self):
        """The command lines of what is installed are such as the agent takes."""
        where = os.path.join(harness.HERE, "..", "src", "deploy")
        commands = [["profiler", "agent", f"--rules={where}/agent.rules"]]
        for name in ("kubernetes-daemonset.yaml", "kubernetes-sidecar.yaml"):
            with open(os.path.join(where, name), encoding="utf-8") as file:
                items = re.search(r"^( *)command:\n((?:\1  - .*\n)+)", file.read(), re.M)[2]
            commands.append([re.sub(" #.*", "", line.strip()[2:]) for line in items.splitlines()])
        with open(os.path.join(where, "ecs-sidecar.json"), encoding="utf-8") as file:
            # The image's entry point is the program.
            commands.append(["profiler", *json.load(file)["containerDefinitions"][1]["command"]])
        for command in commands:
            self.assertEqual(command[:2], ["profiler", "agent"])
            self.list(*command[2:])
        if shutil.which("systemd-analyze"):
            unit = os.path.join(self.where, "profiler-agent.service")
            with open(f"{where}/profiler-agent.service.in", encoding="utf-8") as file, open(unit, "w") as out:
                out.write(file.read().replace("@bindir@/profiler", "/bin/true"))
            run = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_rules_again(self):
        """SIGHUP: from then on the file's rules count, unless there is a mistake in them."""
        shop = self.start(self.program, 1, 0, 0)
        other = self.start(self.copy("other"), 1, 0, 0)
        rules = os.path.join(self.where, "rules")

        def write(text):
            with open(rules, "w", encoding="utf-8") as file:
                file.write(text)

        def numbers(target):
            return [int(name.split(".")[-4]) for name in self.spool() if name.split(".")[-5] == str(target.pid)]

        write(f"exe={self.program}\n")
        agent = self.begin("--window=100ms", "--period=100ms", f"--rules={rules}")
        wait_for(lambda: numbers(shop), "a window", 60)
        second = self.begin(f"exe={self.program}")  # into the same directory
        self.assertIn("agent: another agent uses the directory", second.communicate()[1])
        self.assertEqual(second.returncode, 3)
        for text, mistake in (
            (f"exe={self.where}/other\nexe=(\n", f"{rules}:2: 'exe=(' is not a regular expression"),
            (f"exclude exe={self.where}/other\n", "agent: give a rule such as"),
            ("exe=/\0", f"--rules: the file '{rules}' is not a text"),
        ):
            write(text)
            agent.send_signal(signal.SIGHUP)
            self.assertIn(f"agent: the old rules are kept: {mistake}", agent.stderr.readline())
        n = len(numbers(shop))
        wait_for(lambda: len(numbers(shop)) > n, "windows as before", 60)
        write(f"exe={self.where}/other\n")
        agent.send_signal(signal.SIGHUP)
        self.assertRegex(agent.stderr.readline(), "agent: the rules were read again$")
        wait_for(lambda: numbers(other), "a window of the other", 60)
        _, n_failed, _ = self.end(agent)
        self.assertEqual(n_failed, 0, self.stderr)
        self.assertLess(max(numbers(shop)), min(numbers(other)))  # in the order in which they began
        self.assert_let_go(shop, other)

    def test_no_directory(self):
        run = harness.Run(["agent", f"exe={self.program}", "-o", "-"]).finish(expect=STATUS_USAGE)
        self.assert_message(run, "name a directory", STATUS_USAGE)

    def test_off_file(self):
        """While it is there nothing is sampled; those at work end."""
        target = self.start(self.program, 2, 1, 0)
        with open(self.off_file, "wb"):
            pass
        agent = self.begin("--window=1h", "--period=1h", f"exe={self.program}")
        self.assertRegex(agent.stderr.readline(), "off is there: nothing is sampled")
        self.assertEqual(children(agent.pid), [])
        os.unlink(self.off_file)
        agent.send_signal(signal.SIGTERM)
        agent.communicate()
        # Its window may come at any time of the period: so many of them that one comes.
        agent = self.begin("--window=100ms", "--period=100ms", f"exe={self.program}")
        wait_for(self.spool, "a window")
        with open(self.off_file, "wb"):
            pass
        self.assertRegex(agent.stderr.readline(), "off is there")
        wait_for(lambda: not children(agent.pid), "the samplers' end")
        n = len(self.spool())
        os.unlink(self.off_file)
        wait_for(lambda: len(self.spool()) > n, "windows again")
        n_windows, n_failed, _ = self.end(agent)
        self.assertEqual(n_failed, 0, self.stderr)
        self.assertIn(n_windows - len(self.spool()), range(3))  # it was ended twice
        self.assert_let_go(target)

    def strike(self, agent, name, number, age=0):
        """Each once, at that age in seconds, until the agent says that it leaves a process alone.
        What it has said by then."""
        said, struck, seen = [], set(), {}

        def strike_all():
            for pid in {*descendants(agent.pid)} - struck:
                try:
                    fd = os.pidfd_open(pid)
                    with open(fd, "rb"):
                        is_whole = number == signal.SIGKILL or "profiler-writer" in map(name_of, children(pid))
                        if not is_whole or name_of(pid) != name:
                            continue
                        if time.monotonic() >= seen.setdefault(pid, time.monotonic()) + age:
                            signal.pidfd_send_signal(fd, number)
                            struck.add(pid)
                except OSError:
                    pass  # it has ended
            if select.select([agent.stderr], [], [], 0)[0]:
                said.append(os.read(agent.stderr.fileno(), 4096).decode())
            return "the process is not sampled" in "".join(said)

        wait_for(strike_all, f"a {name} struck")
        return "".join(said)

    def test_given_up(self):
        """What a sampler has not written by then is lost; who is sampled runs on."""
        target = self.start(self.program, 3, 1, 1)
        agent = self.begin("--window=1s", "--period=1s", f"exe={self.program}")
        wait_for(self.spool, "a window")
        said = self.strike(agent, "profiler", signal.SIGUSR2, age=0.5)  # it has samples
        self.assertIn(f"the sampler of process {target.pid} was killed", said)
        self.assertIn("the writing process was killed", said)
        _, n_failed, _ = self.end(agent)
        self.assertGreaterEqual(n_failed, 1)
        metrics = self.metrics()
        self.assertGreaterEqual(metrics["killed_windows"], 1)
        self.assertGreaterEqual(metrics["lost_windows"], 1)
        self.assertGreaterEqual(metrics["lost_samples"], metrics["lost_windows"])
        self.assertEqual(metrics["over_limit_windows"], 0)
        self.assert_let_go(target)

    def test_killed(self):
        """Whoever is sampled runs on, and nobody of the agent's is left."""
        targets = [self.start(self.program, 3, 1, 1), self.start(self.program, 2, 0, 1)]
        agent = self.begin("--window=100ms", "--period=100ms", f"exe={self.program}")
        wait_for(lambda: len(self.spool()) >= 2, "windows")
        said = self.strike(agent, "profiler-worker", signal.SIGKILL)  # as when no memory is left
        self.assertRegex(said, r"the sampler of process \d+ was killed, perhaps by the kernel")
        agent.send_signal(signal.SIGSTOP)  # so that it starts nobody any more
        wait_for(lambda: read_status(agent.pid)["State"][0] == "T", "the stop")
        left = children(agent.pid)
        wait_for(lambda: all(children(pid) or not is_there(pid) for pid in left), "the samplers' workers")
        left += [worker for pid in left for worker in children(pid)]
        agent.kill()
        agent.communicate()
        wait_for(lambda: not any(map(is_there, left)), "the samplers' end")
        self.assert_let_go(*targets)

    def start_named(self, name, n_bytes):
        """A program whose map of made code has names of so many bytes, all of which a sampler reads."""
        target = self.start(self.copy(name, "jit_map"), "named")
        path = f"/tmp/perf-{target.pid}.map"
        self.addCleanup(os.unlink, path)
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(f"{i << 12:x} 10 {'x' * 190}\n" for i in range(1, n_bytes // 190))
        return target

    def test_memory(self):
        """
        A sampler that alone takes more than all may fails; of those that do together the largest ends, also if somebody
        has stopped it.
        """
        if harness.is_sanitized():
            return  # it takes more than the limit by itself

        def read_line(pattern):
            while not (match := re.search(pattern, line := agent.stderr.readline())):
                self.assertTrue(line, "the agent has ended")
            return match

        alone = self.start_named("alone", 40 << 20)
        agent = self.begin("-F", 999, "--window=2s", "--period=2s", "--max-memory=32M", f"exe={self.where}/.*")
        self.assertEqual(read_line("out of memory|used too much memory")[0], "out of memory")
        alone.end()
        together = [self.start_named(f"one{i}", 8 << 20) for i in range(5)]
        agent.send_signal(signal.SIGHUP)
        said = self.strike(agent, "profiler", signal.SIGSTOP)
        pid = re.search(r"the sampler of process (\d+) used too much memory", said)[1]
        self.assertIn(int(pid), [target.pid for target in together])
        _, n_failed, _ = self.end(agent)
        metrics = self.metrics()
        self.assertGreaterEqual(n_failed - metrics["over_limit_windows"], 1)
        self.assertEqual(metrics["killed_windows"], 0)
        self.assertGreaterEqual(metrics["over_limit_windows"], 1)
        self.assertGreater(metrics["peak_memory_bytes"], 32 << 20)
        self.assert_let_go(*together)

    def test_users(self):
        """As an ordinary user, its own processes alone; with CAP_SYS_PTRACE, all."""
        need(os.geteuid() == 0, "not root")
        user = [find_tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        need(subprocess.run([*user, PROFILER, "--version"], check=False).returncode == 0,
             "the profiler lies where others cannot look")  # fmt: skip
        roots = self.start(self.program, 1, 0, 0)
        own = self.start(*user, self.program, 1, 0, 0)
        rule = f"cmd={self.program}.*"
        found = self.list("--min-age=1ms", rule, prefix=user)
        self.assertTrue(found[own.pid][0], found[own.pid])
        # Where /proc hides others' processes (hidepid), not even that is told.
        self.assertRegex(found.get(roots.pid, (False, "belongs to root"))[1], "belongs to root")
        user += ["--inh-caps=+sys_ptrace", "--ambient-caps=+sys_ptrace"]
        os.chown(self.where, NOBODY, NOBODY)
        agent = self.begin(f"exe={self.program}", prefix=user)
        wait_for(lambda: {int(name.split(".")[-5]) for name in self.spool()} >= {roots.pid, own.pid},
                 "windows of both")  # fmt: skip
        self.end(agent)
        self.assert_let_go(roots, own)


if __name__ == "__main__":
    harness.main()
