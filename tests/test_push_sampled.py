# SPDX-License-Identifier: MIT
"""--push: windows on their way to a server while sampling goes on."""

import contextlib
import json
import os
import re
import shutil
import signal

import harness
from harness import STATUS_OUTPUT, STATUS_USAGE
from push_case import Push, Told, window


def setUpModule():
    """As for test_push: clients may go at any time."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


class Sampled(Push):
    """--push: the sampler beside the uploader."""

    def sample(self, *args, target=None, left=None, **more):
        """`left`: a window that an earlier run has left."""
        self.where = os.path.join(self.directory(), "spool")
        if left:
            os.mkdir(self.where, 0o700)
            with open(os.path.join(self.where, "host.1.000007.sent-0+.pb.gz"), "wb") as file:
                file.write(left)
        self.metrics_file = os.path.join(self.directory(), "metrics")
        target = target or self.start_fixture("threads", 4, 1, 1)
        run = harness.Run(["-p", target.pid, "-F", 199, "-v", "-o", self.where, "--every=200ms",
                           f"--metrics={self.metrics_file}", *args], target_pid=target.pid, **more)  # fmt: skip
        self.addCleanup(shutil.rmtree, run.directory, ignore_errors=True)
        return run

    def finish(self, run, expect=0):
        """Its --metrics, and in these what became of the samples."""
        run.communicate()
        with open(self.metrics_file, encoding="utf-8") as file:
            metrics = json.load(file)
        self.assertEqual(run.status, expect, run.stderr)
        self.assertGreater(metrics["push"]["sent_samples"], 0)
        run._check_no_sanitizer()
        run._check_let_go()
        self.assertEqual(metrics["samples"], harness.Summary(run.stderr).samples)
        return metrics, metrics["push"]

    def uploader(self, run):
        """The uploader's process: not the sampler's own session."""
        def find():
            for pid in harness.children(run.writer_pid()):
                with contextlib.suppress(ProcessLookupError):  # one that wrote a window has ended
                    if os.getsid(pid) == pid:
                        return pid
            return None

        return harness.wait_for(find, "the uploader")

    def maps(self, pid):
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            return file.read()

    def test_adds_up(self):
        """All that was sampled arrives, and what an earlier run left; the sampler itself never loads what
        sends it."""
        server = self.serve()
        target = self.start_fixture("threads", 4, 1, 1, env={**os.environ, "OTEL_SERVICE_NAME": "shöp"})
        run = self.sample(f"--push={server.url}", "--label=region=eu", target=target, left=window(5))
        run.wait_attached()
        self.await_requests(server, 4)
        self.assertNotIn("libcurl", "".join(map(self.maps, (run.process.pid, run.worker_pid(), run.writer_pid()))))
        self.assertIn("libcurl", self.maps(self.uploader(run)))
        run.signal(signal.SIGINT)
        metrics, push = self.finish(run)
        n_sent = metrics["samples"] + 10
        self.assertEqual(sum(series.n_samples for series in server.taken), n_sent)
        self.assertEqual((push["sent_samples"], push["sent_windows"]), (n_sent, len(server.taken)))
        self.assertEqual(push["maybe_twice_samples"], 10)  # as its name said
        for series in server.taken[1:]:
            self.assertLessEqual({
                "__name__": "wall", "service_name": "shöp", "region": "eu", "host": os.uname().nodename,
                "exe": "threads"}.items(), series.labels.items())  # fmt: skip
            self.assertLessEqual(series.labels.keys(), {
                "__name__", "service_name", "region", "host", "exe", "unit", "container_id", "pod_uid"})  # fmt: skip
        self.assertEqual(os.listdir(self.where), [])

    def test_uploader_is_killed(self):
        """The windows stay, and another one sends them."""
        server = self.serve()
        run = self.sample(f"--push={server.url}")
        self.await_requests(server, 1)
        self.assertEqual(os.stat(self.where).st_mode & 0o777, 0o700)
        os.kill(self.uploader(run), signal.SIGKILL)
        self.await_requests(server, len(server.requests) + 3)
        run.signal(signal.SIGINT)
        metrics, push = self.finish(run)
        self.assertEqual(push["waiting_windows"], 0)
        taken = {series.uuid: series.n_samples for series in server.taken}
        self.assertEqual(sum(taken.values()), metrics["samples"])
        self.assertLessEqual(len(server.taken) - len(taken), 1)  # the one at hand when it was killed

    def test_nobody_reads(self):
        """What is said of windows waits, and those that say it; none counts as lost."""
        server = self.serve()
        run = self.sample(f"--push={server.url}")
        run.wait_attached()
        self.fill(run.process.stderr)
        self.await_requests(server, 3)
        run.signal(signal.SIGINT)
        metrics, push = self.finish(run)
        self.assertEqual(sum(series.n_samples for series in server.taken), metrics["samples"])
        self.assertEqual((push["sent_windows"], metrics["lost_windows"]), (len(server.taken), 0))

    def fill(self, pipe):
        """Until nothing can be written to it any more."""
        with open(f"/proc/self/fd/{pipe.fileno()}", "wb", buffering=0, opener=lambda path, flags: os.open(
                path, flags | os.O_NONBLOCK)) as file:  # fmt: skip
            for size in (4096, 1):
                while file.write(b"\n" * size):
                    pass

    def test_sampler_is_killed(self):
        """What is in the spool is sent, and then nobody is left."""
        server = self.serve()
        run = self.sample(f"--push={server.url}")
        self.await_requests(server, 1)
        uploader = self.uploader(run)
        os.kill(run.worker_pid(), signal.SIGKILL)
        run.communicate()
        harness.wait_for(lambda: not os.path.exists(f"/proc/{uploader}"), "the uploader's end")
        told = Told(run.stderr)
        self.assertEqual((told.windows, told.dropped), (len(server.taken), 0))
        for name in os.listdir(self.where):  # that was only just written
            self.assertTrue(name.endswith(".pb.gz") or name.startswith("."), name)

    def test_spool_is_away(self):
        """A window that cannot be written is part of the next; what is lost at the end is counted."""
        server = self.serve()
        run = self.sample(f"--push={server.url}")
        self.await_requests(server, 1)
        self.remove_spool()
        failed = re.compile(rb"cannot write .*: there is no such directory")
        for _ in range(3):
            harness.wait_for(lambda: failed.search(run.process.stderr.readline()), "a window that fails")
        os.mkdir(self.where, 0o700)
        seen = len(server.taken)
        harness.wait_for(lambda: len(server.taken) > seen + 1, "windows")
        self.remove_spool()
        run.signal(signal.SIGINT)
        metrics, push = self.finish(run, STATUS_OUTPUT)
        self.assertEqual(metrics["lost_windows"], 1)
        self.assertEqual(push["sent_samples"] + metrics["lost_samples"], metrics["samples"])
        self.assertEqual(sum(series.n_samples for series in server.taken), push["sent_samples"])

    def remove_spool(self):
        def is_removed():
            try:
                os.rmdir(self.where)
            except OSError:
                return False  # a window is on its way
            return True

        harness.wait_for(is_removed, "an empty spool")

    def test_options(self):
        """What does not go together; and a spool that others may write to."""
        directory = self.directory()
        os.chmod(directory, 0o777)
        for args, pattern in (
            (["--label=a=b"], "need --push"),
            (["--push=http://h", "--keep=3"], "instead of --keep"),
            (["--push=http://h", "-f", "folded"], "--push sends pprof"),
            (["--push=http://h", "-o", "-"], "name a directory"),
            (["--push=http://h:1", "-o", directory], "other users may write there"),
        ):
            run = harness.Run(["-p", os.getpid(), *args]).finish(expect=STATUS_USAGE)
            self.assert_message(run, pattern, STATUS_USAGE)


if __name__ == "__main__":
    harness.main()
