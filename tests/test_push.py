# SPDX-License-Identifier: MIT
"""Pushing: what servers get, and what becomes of windows when they do not take them.

Nothing is sampled here but where it says so: the windows are made, so that their sums are known.
"""

import concurrent.futures
import itertools
import os
import signal
import subprocess
import sys

import harness
import pprof_maker
from harness import PROFILER, STATUS_OUTPUT, STATUS_USAGE, find_tool
from push_case import RUNNING, SLEEPING, Push, Told, window
from push_server import ANNOUNCE, CLOSE, CUT, DRIP, ENDLESS, FLOOD, HANG, TRICKLE, Otlp, reserve_port


def setUpModule():
    """The servers run in this process, and their clients may go at any time; what is started has
    the signal as usual (subprocess)."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


class Formats(Push):
    def test_pyroscope(self):
        """One series of a window, with few labels, and all of its samples."""
        server = self.serve()
        data = window(70, comments=["label service_name=shop", "label host=h1", "about it"])
        told = self.push(server.url, self.spool(data), "--label=region=eu=1", "--label=host=h2")
        (request,) = server.requests
        self.assertEqual(request.path, "/push.v1.PusherService/Push")
        self.assertNotIn("Expect", request.headers)
        (series,) = request.series
        self.assertEqual(series.labels, {
            "__name__": "wall", "service_name": "shop", "host": "h2", "region": "eu=1"})  # fmt: skip
        self.assertEqual((told.windows, told.samples, series.n_samples), (1, 140, 140))
        self.assertEqual(series.wall_ns, 140 * 10**7)
        self.assertEqual({tuple(sample.labels.items()) for sample in series.profile.samples},
                         {(("state", "running"),), (("state", "sleeping"),)})  # fmt: skip
        self.assertRegex(series.uuid, r"^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        self.assertEqual({sample.stack for sample in series.profile.samples},
                         {("main", "leaf"), ("main", "[made+0x1f]")})  # fmt: skip

    def test_parca(self):
        """A series for each state, and functions without a name left to the server."""
        server = self.serve()
        told = self.push("parca+" + server.url, self.spool(window(70)), "--service=s")
        by_state = {series.labels.pop("state"): series for series in server.taken}
        self.assertEqual(set(by_state), {"running", "sleeping"})
        for series in by_state.values():
            self.assertEqual(series.labels, {"__name__": "wall", "service_name": "s"})
            self.assertEqual(series.n_samples, 70)
            self.assertEqual([sample.labels for sample in series.profile.samples], [{}])
        (sample,) = by_state["sleeping"].profile.samples
        self.assertEqual(sample.locations[-1]["line"], [])
        self.assertEqual(sample.locations[-1]["mapping"]["build_id"], "ab12")
        self.assertEqual({r.path for r in server.requests}, {"/api/profiles/writeraw"})
        self.assertEqual(told.samples, 140)

    def test_otlp(self):
        """OpenTelemetry's protocol, in the layout of 1.10: the three types as profiles of their own."""
        server = self.serve()
        self.push("otlp+" + server.url, self.spool(window(70, comments=["label host=h1"])), "--service=s")
        (request,) = server.requests
        self.assertEqual((request.path, request.headers["Content-Type"]),
                         ("/v1development/profiles", "application/x-protobuf"))  # fmt: skip
        self.assertLess(request.size, len(request.body))  # it is compressed
        otlp = Otlp(request.body)
        self.assertEqual(otlp.resource, {"service.name": "s", "host.name": "h1"})
        running, sleeping = [("state", "running")], [("state", "sleeping")]
        ran, slept = ("main", "leaf"), ("main", "[made+0x1f]")
        self.assertEqual(otlp.profiles, {
            "samples": {ran: (70, running), slept: (70, sleeping)},
            "cpu": {ran: (70 * 10**7, running), slept: (0, sleeping)},
            "wall": {ran: (70 * 10**7, running), slept: (70 * 10**7, sleeping)},
        })  # fmt: skip
        try:
            from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as official
        except ImportError:
            return  # what it says was compared by hand, too
        official.ExportProfilesServiceRequest().ParseFromString(request.body)

    def test_raw(self):
        server = self.serve((204, {}, b""))
        data = window(3)
        self.push("pprof+" + server.url + "/some/where?x=1", self.spool(data))
        self.assertEqual([(r.path, r.body) for r in server.requests], [("/some/where?x=1", data)])

    def test_labels_of_samples(self):
        """A pool's threads are one; descriptors never go."""
        server = self.serve()
        self.push(server.url, self.spool(window(5)), "--push-labels=thread,syscall")
        self.assertEqual(sorted(sorted(s.labels.items()) for s in server.taken[0].profile.samples),
                         [[("syscall", "read"), ("thread", "w-#")], [("thread", "w-#")]])  # fmt: skip

    def test_split(self):
        """What is more than the server takes goes in several requests, which add up exactly."""
        server = self.serve()
        samples = [([f"leaf{i}", "main"], i % 7 + 1, RUNNING) for i in range(17000)]
        deep = [f"f{i}" for i in range(1500)]
        self.push(server.url, self.spool(pprof_maker.make([*samples, (deep, 11, RUNNING)])))
        parts = server.taken
        self.assertGreaterEqual(len(parts), 2)
        self.assertEqual(sum(p.n_samples for p in parts), sum(n for _, n, _ in samples) + 11)
        self.assertEqual(len({p.uuid for p in parts}), len(parts))
        for part in parts:
            self.assertLessEqual(len(part.profile.samples), 15000)
            self.assertLessEqual(len(part.raw), 1000000)
        (cut,) = [s for p in parts for s in p.profile.samples if s.count == 11]
        self.assertEqual(len(cut.stack), 1000)
        self.assertEqual(cut.stack[:0:-1], tuple(deep[:999]))
        self.assertRegex(cut.stack[0], r"^\[truncated: ")

    def test_split_by_size(self):
        """Bytes are counted before compression, as the server does; in OpenTelemetry's profiles they
        are there for each type. What fits into no request alone is dropped, counted and told."""
        big = [([f"{i}" + "x" * 3000, "main"], i + 1, RUNNING) for i in range(700)]
        alone = ([f"{'y' * 1200}{i}" for i in range(999)], 1000, SLEEPING)
        never = ([f"{'z' * 2100}{i}" for i in range(999)], 5000, SLEEPING)
        n_sent = 700 * 701 // 2
        for scheme, n_types, sent, dropped in (("", 1, n_sent + 1000, 5000), ("otlp+", 3, n_sent, 6000)):
            server = self.serve()
            told = self.push(scheme + server.url, self.spool(pprof_maker.make([*big, alone, never])),
                             expect=STATUS_OUTPUT)  # fmt: skip
            self.assertEqual((told.samples, told.dropped_samples), (sent, dropped))
            self.assertIn(f"{dropped} of its samples are larger than what the server takes", self.stderr)
            self.assertGreaterEqual(len(server.requests), 3)
            n_arrived = 0
            for request in server.requests:
                if n_types == 1:
                    (series,) = request.series
                    self.assertLessEqual(len(series.raw), 2000000)
                    n_arrived += series.n_samples
                else:
                    self.assertLessEqual(len(request.body), 1500000)
                    n_arrived += sum(count for count, _ in Otlp(request.body).profiles["samples"].values())
            self.assertEqual(n_arrived, sent)

    def test_many_labels(self):
        """No more, and no longer ones, than a server takes: 30, of 2,048 bytes."""
        server = self.serve()
        comments = [f"label file{i}={i}" for i in range(40)]
        data = pprof_maker.make([(["f"], 1, {**RUNNING, "thread": "t" * 3000})], comments=comments)
        self.push(server.url, self.spool(data), "--service=s", "--push-labels=state,kind,thread",
                  *[f"--label=given{i}={'v' * 3000}" for i in range(15)])  # fmt: skip
        (series,) = server.taken
        (sample,) = series.profile.samples
        self.assertLessEqual(len(series.labels) + len(sample.labels), 30)
        self.assertLessEqual(max(map(len, [*series.labels.values(), *sample.labels.values()])), 2048)
        self.assertLessEqual({f"given{i}" for i in range(15)} | {"file0", "service_name"}, set(series.labels))

    def test_dry_run(self):
        told = self.end(self.begin("http://127.0.0.1:9", "--dry-run", self.spool(window(3))))
        self.assertEqual(told, "")
        self.assertRegex(self.stdout, r"000000\.pb\.gz: 6 samples\n\tPOST http://127\.0\.0\.1:9/push\.v1\."
                         r"PusherService/Push: \d+ bytes \(\d+ before compression\), 6 samples \{__name__=wall, service_name=made\}")  # fmt: skip

    def test_fleet(self):
        """tests/fleet.py adds up what a server really gets."""
        server = self.serve()
        spool = self.spool(window(70), window(50))
        paths = [os.path.join(spool, name) for name in os.listdir(spool)]
        fleet = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fleet.py")
        for scheme in ("", "parca+"):
            url, seen = scheme + server.url, len(server.requests)
            self.push(url, spool)
            requests = server.requests[seen:]
            size, raw = (sum(sizes) / 2 for sizes in ([r.size for r in requests],
                                                      [len(r.series[0].raw) for r in requests]))  # fmt: skip
            kinds = {(frozenset([*series.labels.items(), *sample.labels.items()]), scheme or kind)
                     for request in requests for series in request.series for sample in series.profile.samples
                     for kind in ("count", "cpu_ns", "wall_ns") if getattr(sample, kind)}  # fmt: skip
            told = subprocess.run([sys.executable, fleet, PROFILER, url, "15", "10", "2", *paths],
                                  check=True, capture_output=True, text=True).stdout  # fmt: skip
            self.assertIn(f"a window: {size:.0f} bytes ({raw:.0f} before compression) in {len(requests) / 2:.1f} "
                          f"requests, {size / 15:.0f} bytes a second; {len(kinds)} series\n", told)  # fmt: skip
            self.assertIn(f" {20 * len(kinds)} series", told)

    def test_recording(self):
        path = os.path.join(self.directory(), "r.wprof")
        target = self.start_fixture("threads", 2, 1)
        run = harness.Run(["-p", target.pid, "-v", "-d", "0.3", "-F", 199, "-o", path], target_pid=target.pid)
        run.communicate()
        self.assertEqual(run.status, 0, run.stderr)
        n_samples = harness.Summary(run.stderr).samples
        server = self.serve()
        told = self.push(server.url, path)
        self.assertEqual((told.samples, sum(s.n_samples for s in server.taken)), (n_samples, n_samples))
        self.assertTrue(os.path.exists(path))

    def test_refused(self):
        path = self.spool()
        for args, pattern in (
            (["push", path], "give a server and files"),
            (["push", "http://h"], "give a file or a directory"),
            (["push", "ftp://h", path], "not an address to push to"),
            (["push", "http://user:secret@h/", path], "holds a password"),
            (["push", "http://h", path, "--label=state=x"], "--label: give up to"),
            (["push", "http://h", path, "--label=__name__=x"], "--label: give up to"),
            (["push", "http://h", path, "--push-labels=descriptor"], "is not a list of labels"),
        ):
            run = harness.Run(args).finish(expect=STATUS_USAGE)
            self.assert_message(run, pattern, STATUS_USAGE)
            self.assertNotIn("secret", run.stderr)


class Failures(Push):
    """Each row of the manual's table, with what is delivered and dropped adding up.

    Those that wait for the most part, slow_..., wait at the same time, beside the other tests.
    """

    @classmethod
    def setUpClass(cls):
        names = [name for name in dir(cls) if name.startswith("slow_")]
        pool = concurrent.futures.ThreadPoolExecutor(len(names))
        cls.running = {name: pool.submit(cls(name.replace("slow", "test")).run_slow, name) for name in names}

    def run_slow(self, name):
        try:
            getattr(self, name)()
        finally:
            self.doCleanups()

    def assert_sums(self, told, windows):
        """Those, and as many samples as they have, are sent, dropped or left."""
        self.assertEqual(told.windows + told.dropped + told.left, windows)

    def slow_tried_again(self):
        """503 and 429, or a closed connection: the same window, with the same UUID."""
        server = self.serve(503, (429, {"Retry-After": "1"}, b"slowly"), 200)
        told = self.push(server.url, self.spool(window(5)), "--remove")
        self.assertEqual((told.windows, told.samples, told.dropped, told.left), (1, 10, 0, 0))
        self.assertEqual(len(server.requests), 3)
        self.assertEqual(len({r.series[0].uuid for r in server.requests}), 1)
        at = [request.at_s for request in server.requests]
        self.assertGreaterEqual(at[1] - at[0], 0.8)  # a second, less a fifth
        self.assertGreaterEqual(at[2] - at[1], 1)  # as it was asked to

    def test_dropped(self):
        """400, 413 and 422 are the window's own fault."""
        message = b"bad \x1b[31mthing\r\n\x07" + b"y" * 5000
        server = self.serve((400, {}, message), (413, {}, b""), (422, {}, b""), 200)
        spool = self.spool(*[window(n) for n in (1, 2, 3, 4)])
        told = self.push(server.url, spool, "--remove", expect=STATUS_OUTPUT)
        self.assertEqual((told.windows, told.samples, told.dropped, told.dropped_samples, told.left),
                         (1, 8, 3, 12, 0))  # fmt: skip
        self.assertEqual(os.listdir(spool), [])
        self.assertEqual(len(server.requests), 4)
        self.assertIn("it answers 400: bad _[31mthing___yyy", self.stderr)
        self.assertNotRegex(self.stderr, r"[\x00-\x09\x0b-\x1f\x7f]|y{1100}")

    def test_configuration(self):
        """What is not the window's fault: told, and all is kept; a redirection is not followed."""
        for status in (401, 403, 404, 405, 415, 301):
            away = self.serve()
            server = self.serve((status, {"Location": away.url + "/x"}, b""))
            spool = self.spool(window(1), window(2))
            told = self.push(server.url, spool, "--remove", expect=STATUS_OUTPUT)
            self.assertEqual((told.windows, told.dropped, told.left), (0, 0, 2))
            self.assertEqual(len(os.listdir(spool)), 2)
            self.assertEqual((len(server.requests), away.requests), (1, []))
            led = f", a redirection to {away.url}/x" if status == 301 else ""
            self.assertIn(f"it answers {status}{led}: nothing is sent until this is fixed", self.stderr)

    def slow_answered_but_cut(self):
        """A success is one, whether the rest of the answer comes or not; no answer is none."""
        server = self.serve(CLOSE, CUT)
        told = self.push(server.url, self.spool(window(5)))
        self.assertEqual((told.windows, len(server.requests)), (1, 2))

    def slow_announced_or_endless(self):
        """What only announces an answer is none; of one without end no more is read than is borne."""
        server = self.serve(ANNOUNCE, ENDLESS)
        told = self.push(server.url, self.spool(window(5)))
        self.assertEqual((told.windows, len(server.requests)), (1, 2))
        self.assertLess(server.requests[1].answered, 32 << 20)  # most of it in sockets' buffers

    def slow_trickle(self):
        """A byte of the answer a second is no answer."""
        server = self.serve(TRICKLE, 200)
        told = self.push(server.url, self.spool(window(5)))
        self.assertEqual((told.windows, told.dropped, len(server.requests)), (1, 0, 2))
        self.assertIn("10 samples may be there twice", self.stderr)

    def slow_drip(self):
        """A byte of the body a second: the server has taken it."""
        server = self.serve(DRIP)
        told = self.push(server.url, self.spool(window(5)))
        self.assertEqual((told.windows, len(server.requests)), (1, 1))

    def test_flood(self):
        """Of an answer that does not end no more is read than is needed."""
        server = self.serve(FLOOD)
        told = self.push(server.url, self.spool(window(5)))
        self.assertEqual((told.windows, len(server.requests)), (1, 1))
        self.assertLess(server.requests[0].answered, 32 << 20)  # most of it in sockets' buffers

    def slow_parts_one_by_one(self):
        """A server that takes a part, and then none for a moment, does not make the next ones wait longer
        and longer; what it took is not sent again."""
        answers = [200, 429, 200, 429, 200, 429, 200]
        server = self.serve(*answers)
        big = [([f"{i}" + "x" * 3000], 1, RUNNING) for i in range(1000)]
        told = self.push(server.url, self.spool(pprof_maker.make(big)), "--remove")
        self.assertEqual((told.windows, told.samples, told.dropped), (1, 1000, 0))
        self.assertEqual(sum(series.n_samples for series in server.taken), 1000)
        self.assertEqual(len(server.taken), len({series.uuid for series in server.taken}))

    def test_unreadable(self):
        """Dropped without asking."""
        server = self.serve()
        spool = self.spool(b"\x1f\x8bgarbage", b"", window(6))
        told = self.push(server.url, spool, "--remove", expect=STATUS_OUTPUT)
        self.assertEqual((told.windows, told.samples, told.dropped, told.dropped_samples, told.left),
                         (1, 12, 2, 0, 0))  # fmt: skip
        self.assertEqual(len(server.requests), 1)

    def test_barred(self):
        """What cannot be opened, or is no regular file, is told, counted and left where it is."""
        server = self.serve()
        fifo = os.path.join(self.directory(), "x.pb.gz")
        os.mkfifo(fifo)
        for path, options in itertools.product((fifo, "/dev/null"), ([], ["--remove"])):
            spool = self.spool(window(5))
            told = self.push(server.url, spool, path, *options, expect=STATUS_OUTPUT)
            self.assertEqual((told.windows, told.dropped, told.left), (1, 1, 0))
            self.assertIn(f"{path}: it cannot be opened: not a regular file: left out\n", self.stderr)
            self.assertTrue(os.path.exists(path))

    def url_of_nobody(self):
        self.reserved = reserve_port()
        self.addCleanup(self.reserved.close)
        return f"http://127.0.0.1:{self.reserved.getsockname()[1]}"

    def slow_spool_is_full(self):
        """The oldest go, and are counted; what stays is below the cap."""
        noise = [os.urandom(300000).hex() for _ in range(4)]
        spool = self.spool(*[pprof_maker.make([(["f"], n + 1, RUNNING)], comments=[noise[n]]) for n in range(4)])
        process = self.begin(self.url_of_nobody(), spool, "--follow", "--spool-size=1M")
        harness.wait_for(lambda: len(os.listdir(spool)) < 4, "an eviction")
        process.send_signal(signal.SIGTERM)
        told = Told(self.end(process, STATUS_OUTPUT))
        left = [os.path.getsize(os.path.join(spool, name)) for name in os.listdir(spool)]
        self.assertLessEqual(sum(left), 1 << 20)
        self.assertEqual((told.windows, told.dropped, told.left), (0, 4 - len(left), len(left)))
        self.assertEqual(told.dropped_samples, sum(range(1, told.dropped + 1)))
        self.assertNotIn("host.1.000000.pb.gz", os.listdir(spool))

    def slow_server_comes_late(self):
        """What was refused waits in its files, and goes when the server is there."""
        spool = self.spool(window(1), window(2), window(3))
        process = self.begin(self.url_of_nobody(), spool, "--follow")
        line = process.stderr.readline()
        self.assertIn("it will be tried again", line)
        server = self.serve(reserved=self.reserved)
        harness.wait_for(lambda: not os.listdir(spool), "the windows to go")
        process.send_signal(signal.SIGTERM)
        told = Told(self.end(process))
        self.assertEqual((told.windows, told.samples, told.dropped), (3, 12, 0))
        self.assertNotIn("may be there twice", self.stderr)
        self.assertEqual(sum(s.n_samples for s in server.taken), 12)

    def slow_poison(self):
        """A window that the server fails at again and again, while it takes others."""

        def answer(request):
            return 500 if request.series[0].n_samples == 100 else 200

        server = self.serve(answer)
        spool = self.spool(pprof_maker.make([(["bad"], 100, RUNNING)]))
        process = self.begin(server.url, spool, "--follow")
        for n in range(1, 40):
            self.await_requests(server, n)
            if not any(name.startswith("host.1.000000.") for name in os.listdir(spool)):
                break
            with open(os.path.join(spool, f".new.{n}"), "wb") as file:
                file.write(window(1))
            os.rename(os.path.join(spool, f".new.{n}"), os.path.join(spool, f"n{n}.pb.gz"))
        harness.wait_for(lambda: not os.listdir(spool), "all to go")
        process.send_signal(signal.SIGTERM)
        told = Told(self.end(process, STATUS_OUTPUT))
        failures = sum(request.status == 500 for request in server.requests)
        self.assertEqual((told.dropped, told.dropped_samples, failures), (1, 100, 5))
        self.assertEqual(told.windows, len(server.taken))
        self.assertIn("dropped, as it takes others", self.stderr)

    def slow_silence(self):
        """A server that says nothing: the request and the end have their bounds."""
        server, spool = self.serve(HANG), self.spool(window(1))
        process = self.begin(server.url, spool, "--follow")
        self.await_requests(server, 1)
        process.send_signal(signal.SIGTERM)
        told = Told(self.end(process, STATUS_OUTPUT))
        self.assertEqual((told.windows, told.dropped, told.left), (0, 0, 1))
        self.assertEqual(len(os.listdir(spool)), 1)
        self.assertRegex(self.stderr, "it does not answer (within 10 s|in time): it will be tried again")

    def slow_line(self):
        """Over a slow line a request takes longer than its answer may: once is enough."""
        server = self.serve(is_slow=True)
        rows = [([os.urandom(900).hex()], 1, RUNNING) for _ in range(100)]
        told = self.push(server.url, self.spool(pprof_maker.make(rows)))
        self.assertEqual((told.windows, told.samples, len(server.requests)), (1, 100, 1))
        self.assertGreater(server.requests[0].size, 100000)

    def test_killed(self):
        """At any instant: whatever was not taken is still there for the next one."""
        silent, spool = self.serve(HANG), self.spool(window(1), window(2))
        process = self.begin(silent.url, spool, "--follow")
        self.await_requests(silent, 1)
        process.kill()
        process.wait()
        self.assertEqual(sorted(os.listdir(spool)), ["host.1.000000.sent-0+.pb.gz", "host.1.000001.pb.gz"])
        self.push(self.serve().url, spool, "--remove")
        self.assertIn("2 samples may be there twice", self.stderr)
        server = self.serve()
        windows = [window(n + 1) for n in range(60)]
        spool = self.spool(*windows)
        kills = 0
        for n in range(12):
            process = self.begin(server.url, spool, "--follow")
            self.await_requests(server, 1 + 4 * n)
            process.kill()
            process.wait()
            kills += 1
        told = self.push(server.url, spool, "--remove")
        self.assertEqual((told.dropped, told.left, os.listdir(spool)), (0, 0, []))
        sums = [s.n_samples for s in server.taken]
        self.assertEqual(set(sums), {2 * (n + 1) for n in range(60)})
        # Twice only what was killed between the answer and the removal.
        self.assertLessEqual(len(sums), 60 + kills)


def result_of(name):
    return lambda self: self.running[name].result()


for slow in [name for name in dir(Failures) if name.startswith("slow_")]:
    setattr(Failures, slow.replace("slow", "test"), result_of(slow))


class Secrets(Push):
    def certificate(self, name):
        """A certificate that signs itself, for 127.0.0.1, with its key."""
        path = os.path.join(self.directory(), f"{name}.pem")
        subprocess.run(
            [find_tool("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path + ".key",
             "-out", path], check=True, capture_output=True)  # fmt: skip
        with open(path, "ab") as file, open(path + ".key", "rb") as key:
            file.write(key.read())
        return path

    def test_tls(self):
        """Only who shows a certificate that is trusted gets the profile and the credentials."""
        good, bad = self.certificate("good"), self.certificate("bad")
        server = self.serve(certificate=good)
        spool = self.spool(window(5))
        for args in ([], [f"--push-ca={bad}"]):
            process = self.begin(server.url, spool, "--follow", *args)
            for line in process.stderr:  # on a busy machine some attempts may take too long
                if "timeout" not in line:
                    break
            self.assertRegex(line, r"certificate|SSL.*tried again")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(server.requests, [])
            process.kill()
            process.wait()
        told = self.push(server.url, spool, f"--push-ca={good}")
        self.assertEqual((told.windows, len(server.requests)), (1, 1))

    def test_credentials(self):
        """They reach the server, and nobody else; from a file that is theirs alone."""
        path = os.path.join(self.directory(), "headers")
        with open(path, "w", encoding="ascii") as file:
            file.write("# of the gateway\nAuthorization: Bearer s3cr3t\nX-Scope-OrgID: team\n")
        server = self.serve(HANG)
        os.chmod(path, 0o640)
        spool = self.spool(window(5))
        option = f"--push-header-file={path}"
        run = harness.Run(["push", server.url, spool, option]).finish(expect=STATUS_USAGE)
        self.assert_message(run, "others than its owner may read or write it", STATUS_USAGE)
        os.chmod(path, 0o600)
        process = self.begin(server.url, spool, "--follow", option)
        self.await_requests(server, 1)
        for name in ("cmdline", "environ"):
            with open(f"/proc/{process.pid}/{name}", "rb") as file:
                self.assertNotIn(b"s3cr3t", file.read())
        with open(f"/proc/{process.pid}/limits", encoding="ascii") as file:
            self.assertRegex(file.read(), r"Max core file size +[01] +[01] ")  # no core
        process.kill()
        self.assertNotIn("s3cr3t", "".join(process.communicate()))
        headers = server.requests[0].headers
        self.assertEqual((headers["Authorization"], headers["X-Scope-OrgID"]), ("Bearer s3cr3t", "team"))
        talks = self.serve((400, {}, b"who is Bearer s3cr3t? " + b"." * 998 + b"s3cr3t"))
        self.push(talks.url, spool, option, expect=STATUS_OUTPUT)
        self.assertIn("it answers 400: who is ****** ******? ....", self.stderr)
        self.assertNotIn("s3cr", self.stderr)
        self.end(self.begin(server.url + "/x?key=s3cr3t", spool, "--dry-run", option))
        self.assertNotIn("s3cr3t", self.stdout + self.stderr)
        proxy = self.serve()
        way = f"http://user:s3cr3t@127.0.0.1:{proxy.port}"
        process = self.begin("https://there.invalid", spool, option, "--follow", env={**os.environ, "https_proxy": way})
        self.assertRegex(process.stderr.readline(), "it will be tried again|until this is fixed")
        process.kill()
        self.assertNotIn("s3cr3t", "".join(process.communicate()))
        self.assertNotIn("s3cr3t", str(proxy.requests[0].headers))
        with open(path, "w", encoding="ascii") as file:
            file.write("s3cr3t\n")
        run = harness.Run(["push", server.url, spool, option]).finish(expect=STATUS_USAGE)
        self.assertNotIn("s3cr3t", run.stderr)


if __name__ == "__main__":
    harness.main()
