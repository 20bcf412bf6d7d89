# SPDX-License-Identifier: MIT
"""The page (-f html): that its data say what pprof says, and what a browser makes of it."""

import base64
import collections
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile

import harness
import page
import pprof
import pprof_maker
from harness import STATUS_TARGET
from test_record import Recorded, report

UNIT_NS = 10_000


class Data(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.target = harness.Target([harness.fixture("threads"), "6", "2", "2"])
        recorded = harness.record_without_gaps(cls.target, "1")
        cls.data = recorded.recording
        # What one sample stands for, at most: its own tick and those that were missed before it.
        cls.most_ns = (1 + recorded.summary.missed) * 1e9 / recorded.summary.hz

    @classmethod
    def tearDownClass(cls):
        cls.target.end()

    def sums(self, html):
        """{(tid, leaf, kind): ns}, and how many runs each has."""
        sums, counts, told = collections.Counter(), collections.Counter(), page.Page(html)
        for thread, start, end, stack, kind, _ in told.runs:
            weight = thread["weigh"][kind]
            sums[thread["tid"], stack[-1], kind] += (end - start) * weight
            counts[thread["tid"], stack[-1], kind] += max(weight, 1)
        for thread, ns, stack, kind in told.unseen:
            sums[thread["tid"], stack[-1], kind] += ns
        return sums, counts

    def check(self, *args, edges_ns=0):
        sums, counts = self.sums(report(self.data, "-f", "html", *args)[0])
        expected = collections.Counter()
        for sample in pprof.Profile(report(self.data, "-f", "pprof", *args)[0]).samples:
            expected[sample.tid, sample.stack[-1], sample.labels["kind"]] += sample.wall_ns
        for key in sums | expected:
            # Each bound of a run is rounded, and so is a weight.
            off_ns = abs(sums[key] - expected[key]) - 1e-6 * expected[key]
            self.assertLessEqual(off_ns, UNIT_NS * max(counts[key], 1) + edges_ns, key)

    def test_sums(self):
        self.check()
        # pprof has whole ticks, the page cuts what they stand for.
        self.check("--from=0.3", "--to=0.7", edges_ns=2 * self.most_ns)
        self.check("--off-cpu", "--thread=^worker")

    def test_threads(self):
        """All are there with their names, and who never woke is marked."""
        told = page.Page(report(self.data, "-f", "html")[0])
        self.assertEqual({t["tid"] for t in told.threads}, self.tids())
        slept = {t["tid"] for t in told.threads if t["flags"] & 1}
        ran = {t["tid"] for t, _, _, _, kind, _ in told.runs if kind == "running"}
        self.assertFalse(slept & ran)
        self.assertTrue(slept and ran)
        self.assertIn("worker-00", {t["name"] for t in told.threads})
        waits = {wait for *_, wait in told.runs}
        self.assertLessEqual({"pause", "clock_nanosleep"}, waits)

    def test_hang(self):
        """A thread that waits for a lock all the time is not idle, one that pauses is."""
        target = self.start_fixture("locks", "cycle", "3")
        recorded = Recorded(target, duration="0.3").finish().data
        target.end()
        threads = page.Page(report(recorded, "-f", "html")[0]).threads
        self.assertEqual({t["name"]: t["flags"] & 1 for t in threads if t["name"].startswith("dead")}, dict.fromkeys(("dead0", "dead1", "dead2"), 0))
        self.assertEqual([t["flags"] & 1 for t in threads if t["name"] == "locks"], [1])

    PEERS = """
import ctypes, socket, threading
def run(name, wait):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
    started.release()
    wait()
for port in range(20000, 32000):
    try:
        listener = socket.create_server(("127.0.0.1", port))
        break
    except OSError:
        pass
client = socket.create_connection(("127.0.0.1", port))
server, _ = listener.accept()
started = threading.Semaphore(0)
for name, wait in (
    ("asks", lambda: client.recv(1)), ("serves", lambda: server.recv(1)),
    ("accepts", listener.accept), ("works", threading.Event().wait),
):
    threading.Thread(target=run, args=(name, wait), daemon=True).start()
    started.acquire()
print("ready", flush=True)
input()
"""

    def test_peers(self):
        """A thread that waits for an answer all the time hangs, one that waits for a client does not."""
        target = self.start(sys.executable, "-c", self.PEERS)
        harness.wait_for(lambda: self.calls(target.pid) == self.WAITS, "threads that wait")
        data = Recorded(target, duration="0.4").finish().data
        self.check_dumps(target.pid)
        target.end()
        told = page.Page(report(data, "-f", "html")[0])
        idle = {t["name"]: bool(t["flags"] & 1) for t in told.threads if t["tid"] != target.pid}
        self.assertEqual(idle, {"asks": False, "serves": True, "accepts": True, "works": True})
        kinds = {thread["name"]: kind for thread, *_, kind, _ in told.runs if thread["tid"] != target.pid}
        self.assertEqual(kinds, {"asks": "socket", "serves": "client", "accepts": "client", "works": "condition"})
        self.assertEqual(set(told.meta["idle"]), {"condition", "event", "timer", "client"})
        rows = report(data, verb="top")[0].decode()
        self.assertRegex(rows, r"(?m)^asks ")
        self.assertNotRegex(rows, r"(?m)^(?:serves|accepts|works) ")
        # Of four threads and the main one, which reads a pipe, two have work: the rest is not counted.
        for options, sockets in (((), 1), (("--idle",), 3)):
            rows = report(data, "--view=waits", *options, verb="top")[0].decode()
            self.assertEqual(len(re.findall(r"(?m)^.*\btcp ", rows)), sockets, rows)

    def check_dumps(self, pid):
        """Idle threads come last, and a check for blocked ones leaves them out."""
        run = lambda *args: subprocess.run(  # noqa: E731
            [harness.PROFILER, "dump", "-q", str(pid), *args], stdout=subprocess.PIPE, timeout=harness.RUN_TIMEOUT_S
        )
        names = [thread["name"] for thread in json.loads(run("--json").stdout)["threads"]]
        self.assertEqual(set(names[2:]), {"serves", "accepts", "works"})
        for name, status in (("asks", 11), ("serves", 0), ("accepts", 0), ("works", 0)):
            self.assertEqual(run("--check", "--blocked=1ms", f"--thread=^{name}$").returncode, status, name)

    # recvfrom, accept4, futex, and the main thread's read.
    WAITS = {"45": 2, "288": 1, "202": 1, "0": 1}

    def calls(self, pid):
        counts = collections.Counter()
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
                counts[file.read().split()[0]] += 1
        return counts

    def tids(self):
        return {s.tid for s in pprof.Profile(report(self.data, "-f", "pprof")[0]).samples}

    def test_script(self):
        """It reaches for nothing, the policy allows what is there alone, and all of it is small."""
        html = report(self.data, "-f", "html")[0]
        (policy,) = re.findall(rb"""http-equiv="Content-Security-Policy" content="([^"]*)""", html)
        (start,) = re.findall(rb"<script>(.*?)</script>", html, re.S)
        (style,) = re.findall(rb"<style>(.*?)</style>", html, re.S)
        script = page.program(html)
        hashes = [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in (start, script, style)]
        self.assertRegex(policy.decode(), r"^default-src 'none'; script-src '\S+' '\S+'; style-src '\S+'; ")
        self.assertEqual(re.findall(r"'sha256-(\S+)'", policy.decode()), hashes)
        self.assertFalse(re.findall(rb"""(?:src|href)\s*=|https?:|@import|url\(""", html + script))
        without_data = page.DATA.sub(b"", re.sub(rb'<section id="still">.*?</section>', b"", html, flags=re.S))
        self.assertLess(len(without_data), 64_000)

    def test_file(self):
        """It says something without its script."""
        html = report(self.data, "-f", "html")[0].decode()
        without = re.search(r'<section id="still">(.*?)</section>', html, re.S)[1]
        self.assertRegex(without, r"<td>\d+\.\d{3}<td>\d+\.\d{3}<td>spin_here")
        self.assertRegex(without, r"<td>worker-00 \d+")
        self.assertEqual(report(self.data, "-f", "html")[0].decode(), html)
        titled = report(self.data, "-f", "html", "--title=A <b> of\x1bmine")[0]
        self.assertIn(b"<title>A &lt;b&gt; of", titled)
        self.assertIn("A <b> of", page.Page(titled).meta["title"])
        self.assertNotIn(b"\x1b", titled)

    def test_diff(self):
        """A page of two has both, told apart, in one tree."""
        with tempfile.NamedTemporaryFile(suffix=".wprof") as file:
            file.write(self.data)
            file.flush()
            run = subprocess.run(
                [harness.PROFILER, "diff", "-f", "html", file.name, file.name],
                capture_output=True, check=True, timeout=harness.RUN_TIMEOUT_S,
            )  # fmt: skip
        both = page.Page(run.stdout)
        sides = collections.Counter(bool(thread["flags"] & 2) for thread in both.threads)
        self.assertEqual(sides, {False: 7, True: 7})
        sums = collections.defaultdict(collections.Counter)
        for thread, start, end, stack, kind, _ in both.runs:
            sums[thread["flags"] & 2][thread["tid"], tuple(stack), kind] += end - start
        self.assertEqual(sums[0], sums[2])


def varint(value):
    value &= (1 << 64) - 1
    text = b""
    while value > 127:
        text, value = text + bytes([value & 127 | 128]), value >> 7
    return text + bytes([value])


def message(*fields):
    """Of protobuf's: (number, value), a number, or bytes."""
    return b"".join(
        varint(n << 3) + varint(value) if isinstance(value, int) else varint(n << 3 | 2) + varint(len(value)) + value
        for n, value in fields
    )


class View(harness.TestCase):
    """profiler view, with a browser that only notes what it is given."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="view-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.browser = os.path.join(self.directory, "browser")
        self.noted = os.path.join(self.directory, "noted")
        with open(self.browser, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nprintf %s "$1" > {self.noted}.new && mv {self.noted}.new {self.noted}\n')
        os.chmod(self.browser, 0o700)

    def view(self, data, *args, status=0, **environment):
        """What it printed and told."""
        clean = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY")}
        run = subprocess.run(
            [harness.PROFILER, "view", *args], input=data, capture_output=True, text=False,
            check=False, timeout=harness.RUN_TIMEOUT_S,
            env={**clean, "XDG_RUNTIME_DIR": self.directory, "BROWSER": self.browser, **environment},
        )  # fmt: skip
        self.assertEqual(run.returncode, status, run.stderr)
        return run.stdout.decode().rstrip("\n"), run.stderr.decode()

    def write(self, name, data):
        path = os.path.join(self.directory, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_title(self):
        """Of any kind of file; what is said of a file names the file."""
        target = self.start_fixture("threads", 2, 1)
        recorded = os.path.join(self.directory, "r.wprof")
        with open(recorded, "wb") as file:
            file.write(Recorded(target, duration="0.3").finish().data)
        packed = os.path.join(self.directory, "p.pb.gz")
        with open(packed, "wb") as file:
            file.write(pprof_maker.make([(["f"], 1, {})]))
        for path in (recorded, packed, self.write("x.folded", b"main 1\n")):
            shown, _ = self.view(None, path, "--title=A <b> of\x1bmine")
            with open(shown, "rb") as file:
                self.assertIn(b"<title>A &lt;b&gt; of_mine</title>", file.read())
        _, told = self.view(None, self.write("no.folded", b"no\n"), "--title=A", status=STATUS_TARGET)
        self.assertIn("no.folded is not a profile", told)

    def test_folded(self):
        """Any profiler's stacks: their counts are there, and names are text."""
        # The next line may begin as the last one did, or nearly so.
        stacks = {
            "main;work;deep": 12, "main;</script>;x y": 5, "main;" + "f" * 600_000: 1, "main": 7, "main;wor": 3,
            "main;work": 2, "main;work;deep;down": 1, "main;work;dee": 4, "main;works;deep": 6, "mai;work": 1,
        }  # fmt: skip
        # More than is read at once: lines lie across the pieces, and one is longer than two of them.
        stacks |= {"main;" + "g" * i: i for i in range(1, 800)}
        lines = "".join(f"{stack} {n}\n" for stack, n in stacks.items())
        path = self.write("x.folded", lines.encode() + b"no stack\nmain;\xff\xfe 3\n")
        shown, told = self.view(None, path, BROWSER=f"/no/such/browser:{self.browser}")
        self.assertEqual(os.path.dirname(shown), self.directory)
        self.assertEqual(stat.S_IMODE(os.stat(shown).st_mode), 0o600)
        self.assertIn("left out 1 lines that are not folded stacks", told)
        harness.wait_for(lambda: os.path.exists(self.noted), "the browser")
        with open(self.noted, encoding="utf-8") as file:
            self.assertEqual(file.read(), shown)
        with open(shown, "rb") as file:
            html = file.read()
        read = page.Page(html)
        scale = read.meta["count_ns"]
        counts = {";".join(stack): (end - start) / scale for _, start, end, stack, _, _ in read.runs}
        self.assertEqual(counts, {**stacks, "main;\ufffd\ufffd": 3})
        self.assertEqual(html.count(b"</script>"), 3)

    def shown(self, data, *args):
        """The page of it, and {stack: what it counts, in the page's own unit}."""
        path, told = self.view(data, "-", *args, SSH_CONNECTION="1")
        with open(path, "rb") as file:
            read = page.Page(file.read())
        counts = collections.Counter()
        for _, start, end, stack, _, _ in read.runs:
            counts[tuple(stack)] += (end - start) / read.meta["count_ns"]
        return read, counts, told

    def test_odd_folded(self):
        """What is in a name stays in it; what is too deep is said to be cut."""
        deep, _ = self.view(b";".join([b"f"] * 100_001) + b" 3\n", "-", SSH_CONNECTION="1")
        with open(deep, "rb") as file:
            found = page.sections(file.read())
        self.assertEqual(page.strings(found[2]), ["all", "f", "[truncated: more than 100000 frames]"])
        self.assertEqual(page.Columns(found[6]).number(), 1 + 100_000 + 1)
        _, counts, _ = self.shown(b"a\0b;c 1\n\xe2\x80\xa8;\xc0\xaf;x 2\nonly 0\nlast;cut 4")
        self.assertEqual(counts, {("a_b", "c"): 1, ("_", "\ufffd\ufffd", "x"): 2, ("last", "cut"): 4})

    def test_own_pprof(self):
        """What this profiler wrote for pprof, compressed or not."""
        target = harness.Target([harness.fixture("threads"), "4", "1", "1"])
        data = report(Recorded(target, duration="0.5").finish().data, "-f", "pprof")[0]
        target.end()
        expected = collections.Counter()
        for sample in pprof.Profile(data).samples:
            expected[sample.stack] += sample.wall_ns / 1e9
        for form in (data, gzip.decompress(data)):
            read, counts, _ = self.shown(form)
            self.assertEqual(read.meta["counts"], "seconds")
            self.assertEqual(set(counts), set(expected))
            for stack, seconds in counts.items():
                self.assertAlmostEqual(seconds, expected[stack], delta=UNIT_NS / 1e9)

    def test_any_pprof(self):
        """Samples before what they name, ids in no order, numbers not packed, lines inlined."""
        strings = [b"", b"alloc", b"bytes", b"main", b"</script>", b"inner", b"a.c", b"/lib/x.so", b"objects", b"count"]
        parts = [
            *((2, message((1, 900), (1, 7), (2, 1), (2, 4096))), (2, message((1, varint(900)), (2, varint(2) + varint(10))))),
            (2, message((1, 900), (2, 3), (2, -5))),
            (2, message((1, 7), (2, 1), (2, 1))),
            (1, message((1, 8), (2, 9))), (1, message((1, 1), (2, 2))),
            (4, message((1, 900), (4, message((1, 30), (2, 1))), (4, message((1, 20))))),
            (4, message((1, 7), (2, 1), (3, 0x1234))),
            (5, message((1, 30), (2, 5), (4, 6), (5, 3))), (5, message((1, 20), (2, 4))),
            (3, message((1, 1), (5, 7))),
            *((6, string) for string in strings),
        ]  # fmt: skip
        read, counts, told = self.shown(message(*parts))
        self.assertEqual(read.meta["counts"], "bytes")
        self.assertEqual(counts, {
            ("[x.so+0x1234]", "</script>", "inner"): 4096, ("</script>", "inner"): 10, ("[x.so+0x1234]",): 1,
        })  # fmt: skip
        self.assertIn("1 samples count less than nothing", told)
        read, counts, _ = self.shown(gzip.compress(message(*parts, (14, 8))))
        self.assertEqual((read.meta["counts"], counts["</script>", "inner"]), ("objects", 5))

    def test_large_counts(self):
        """Nanoseconds of days, and more than fits."""
        for n in (10**15, 9 * 10**17):
            shown, _ = self.view(f"a;b {n}\na;c {n}\n".encode(), "-", SSH_CONNECTION="1")
            with open(shown, "rb") as file:
                read = page.Page(file.read())
            for _, start, end, _, _, _ in read.runs:
                self.assertAlmostEqual((end - start) / read.meta["count_ns"] / n, 1, places=3)

    def test_recording(self):
        target = harness.Target([harness.fixture("threads"), "2", "1", "1"])
        path = self.write("x.wprof", Recorded(target, duration="0.3").finish().data)
        target.end()
        shown, told = self.view(None, path, SSH_CONNECTION="1")
        self.assertEqual(told, "profiler: no browser here: open that file in one, or add --serve=8080 to see it over ssh\n")
        self.assertFalse(os.path.exists(self.noted))
        self.assertEqual(stat.S_IMODE(os.stat(shown).st_mode), 0o600)
        with open(shown, "rb") as file:
            self.assertEqual(len(page.Page(file.read()).threads), 3)
        with open(path, "rb") as file:  # from a pipe, too
            piped, _ = self.view(file.read(), "-", SSH_CONNECTION="1")
        with open(piped, "rb") as file:
            self.assertEqual(len(page.Page(file.read()).threads), 3)
        # What is a page already stays where it is.
        self.assertEqual(self.view(None, shown, "-q", BROWSER="")[0], shown)
        # What is missing of a recording is said by all that show one, but for -q.
        os.truncate(path, os.path.getsize(path) - 1)
        self.assertIn("has no end", self.view(None, path, SSH_CONNECTION="1")[1])
        self.assertEqual(self.view(None, path, "-q", SSH_CONNECTION="1")[1], "")
        for args in (["top", path], ["dump", path, "--at=100ms"]):
            self.assertIn("has no end", harness.Run(args).finish().stderr)

    def serve(self, path):
        """The server and its page's address, once it listens."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SSH_")}
        process = subprocess.Popen(
            [harness.PROFILER, "view", "--serve=0", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**clean, "XDG_RUNTIME_DIR": self.directory, "BROWSER": self.browser}, text=True,
        )  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[0-9a-f]{32})\n", process.stdout.readline())
        return process, int(match[1]), match[2]

    def ask(self, port, request):
        """The status and body of the answer to these bytes."""
        with socket.create_connection(("127.0.0.1", port), timeout=harness.RUN_TIMEOUT_S) as connection:
            connection.sendall(request)
            head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
        return int(head.split()[1]), body

    def test_served(self):
        """To whom the address was told, and to nobody else."""
        file = self.write("x.folded", b"main;work 3\n")
        process, port, path = self.serve(file)
        self.assertEqual(sorted(os.listdir(self.directory)), ["browser", "x.folded"])  # no page is left
        with socket.create_connection(("127.0.0.1", port)):  # who says nothing keeps nobody waiting
            for host in ("localhost", "127.0.0.1:9", "[::1]:80", "LOCALHOST:8080"):
                status, body = self.ask(port, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                self.assertEqual(status, 200)
                self.assertEqual([stack for _, _, _, stack, _, _ in page.Page(body).runs], [["main", "work"]])
            for status, line, *headers in (
                (403, f"GET {path} HTTP/1.1", "Host: evil.example"),
                (403, f"GET {path} HTTP/1.1", "Host: localhost.evil.example"),
                (403, f"GET {path} HTTP/1.1", "Host: localhost", "Host: localhost"),
                (403, f"GET {path} HTTP/1.1"),
                (404, f"GET {path[:-1]} HTTP/1.1", "Host: localhost"),
                (404, f"GET {path}0 HTTP/1.1", "Host: localhost"),
                (404, "GET / HTTP/1.1", "Host: localhost"),
                (404, "GET ", "Host: localhost"),
                (405, f"POST {path} HTTP/1.1", "Host: localhost"),
                (405, f"HEAD {path} HTTP/1.1", "Host: localhost"),
                (405, "nonsense"),
            ):
                request = "\r\n".join((line, *headers, "", "")).encode()
                self.assertEqual(self.ask(port, request), (status, b""), request)
            self.assertEqual(self.ask(port, b"GET / HTTP/1.1\r\nA: \0\r\n\r\n"), (400, b""))
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", port))
        self.assertIn("cannot listen", self.view(None, file, f"--serve={port}", status=harness.STATUS_OUTPUT)[1])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(harness.RUN_TIMEOUT_S), 0)
        # No browser was given it: whoever lists processes sees their arguments.
        self.assertFalse(os.path.exists(self.noted))

    def test_served_to_many(self):
        """More connections than are answered at once wait; each gets its answer at last."""
        process, port, path = self.serve(self.write("x.folded", b"main;work 3\n"))
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for connection in idle[:16]:
            connection.close()
        self.assertEqual(self.ask(port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())[0], 200)
        for connection in idle[16:]:
            connection.close()
        process.terminate()
        self.assertEqual(process.wait(harness.RUN_TIMEOUT_S), 0)

    def test_interrupted(self):
        """What is not finished is not left behind."""
        process = subprocess.Popen([harness.PROFILER, "view", "-"], stdin=subprocess.PIPE,
                                   env={**os.environ, "XDG_RUNTIME_DIR": self.directory})  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        process.stdin.write(b"main;work 1\n" * 100_000)  # more than is read before the page is begun
        process.stdin.flush()
        fds = f"/proc/{process.pid}/fd"
        harness.wait_for(lambda: any(self.directory in link for link in harness.read_links(fds)), "the page")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(harness.RUN_TIMEOUT_S), -signal.SIGINT)
        self.assertEqual(os.listdir(self.directory), ["browser"])

    def test_refused(self):
        for data, why in (
            (b"nothing\n", "is not a profile"), (b"\x1f\x8b\x08", "damaged or cut"), (b"", "is not a profile"),
            (gzip.compress(b"main;work 1\n"), "not a pprof profile: unpack any other profile first (gunzip)"),
            (gzip.compress(message((1, b""), (6, b"")))[:-9], "damaged or cut"),
            (gzip.compress(message((1, b""), (6, b""))), "has no samples"),
            (message((1, b""), (6, b""), (2, message((1, 55), (2, 1)))), "not a pprof profile"),
            (message((1, b""), (6, b""), (2, b"\x0a\x7f")), "not a pprof profile"),
        ):  # fmt: skip
            shown, told = self.view(data, "-", status=harness.STATUS_TARGET)
            self.assertEqual(shown, "")
            self.assertIn(why, told)
        self.assertIn("No such file", self.view(None, self.directory + "/none", status=1)[1])
        self.assertIn("makes its own file", self.view(None, "-o", "x", "y", status=harness.STATUS_USAGE)[1])
        self.assertEqual(sorted(os.listdir(self.directory)), ["browser"])  # nothing is left


if __name__ == "__main__":
    harness.main()
