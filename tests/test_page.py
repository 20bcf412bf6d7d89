"""The page (-f html): that its data say what pprof says, and what a browser makes of it."""

import collections
import os
import re
import shutil
import stat
import subprocess
import tempfile

import harness
import page
import pprof
from test_record import Recorded, report

UNIT_NS = 10_000


class Data(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.target = harness.Target([harness.fixture("threads"), "6", "2", "2"])
        cls.data = Recorded(cls.target, duration="1").finish().data

    @classmethod
    def tearDownClass(cls):
        cls.target.end()

    def sums(self, html):
        """{(tid, leaf, kind): ns}, and how many runs each has."""
        sums, counts = collections.Counter(), collections.Counter()
        for thread, start, end, stack, kind, _ in page.Page(html).runs:
            sums[thread["tid"], stack[-1], kind] += end - start
            counts[thread["tid"], stack[-1], kind] += 1
        return sums, counts

    def check(self, *args, edges_ns=0):
        sums, counts = self.sums(report(self.data, "-f", "html", *args)[0])
        expected = collections.Counter()
        for sample in pprof.Profile(report(self.data, "-f", "pprof", *args)[0]).samples:
            expected[sample.tid, sample.stack[-1], sample.labels["kind"]] += sample.wall_ns
        self.assertEqual(set(sums), {key for key, ns in expected.items() if ns >= UNIT_NS})
        for key, ns in sums.items():
            # Each bound of a run is rounded.
            self.assertLessEqual(abs(ns - expected[key]), UNIT_NS * counts[key] + edges_ns, key)

    def test_sums(self):
        self.check()
        # pprof has whole ticks, the page cuts what they stand for: at each edge a period at most.
        self.check("--from=0.3", "--to=0.7", edges_ns=2 * 1_000_000_000 // 99)
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

    def tids(self):
        return {s.tid for s in pprof.Profile(report(self.data, "-f", "pprof")[0]).samples}

    def test_file(self):
        """It reaches for nothing, and says something without its script."""
        html = report(self.data, "-f", "html")[0].decode()
        self.assertIn("default-src 'none'", html)
        self.assertFalse(re.findall(r"""(?:src|href)\s*=|https?:|@import|url\(""", html))
        without = re.search(r"<noscript>(.*)</noscript>", html, re.S)[1]
        self.assertRegex(without, r"<td>\d+\.\d{3}<td>\d+\.\d{3}<td>spin_here")
        self.assertRegex(without, r"<td>worker-00 \d+")
        self.assertEqual(report(self.data, "-f", "html")[0].decode(), html)

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

    def test_folded(self):
        """Any profiler's stacks: their counts are there, and names are text."""
        stacks = {"main;work;deep": 12, "main;</script>;x y": 5, "main;" + "f" * 100000: 1, "main": 7}
        lines = "".join(f"{stack} {n}\n" for stack, n in stacks.items())
        path = self.write("x.folded", lines.encode() + b"no stack\nmain;\xff\xfe 3\n")
        shown, told = self.view(None, path)
        self.assertEqual(os.path.dirname(shown), self.directory)
        self.assertEqual(stat.S_IMODE(os.stat(shown).st_mode), 0o600)
        self.assertIn("1 lines are no folded stacks", told)
        harness.wait_for(lambda: os.path.exists(self.noted), "the browser")
        with open(self.noted, encoding="utf-8") as file:
            self.assertEqual(file.read(), shown)
        with open(shown, "rb") as file:
            html = file.read()
        read = page.Page(html)
        scale = read.meta["count_ns"]
        counts = {";".join(stack): (end - start) / scale for _, start, end, stack, _, _ in read.runs}
        self.assertEqual(counts, {**stacks, "main;\ufffd\ufffd": 3})
        self.assertEqual(html.count(b"</script>"), 2)

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
        self.assertIn("no browser here", told)
        self.assertFalse(os.path.exists(self.noted))
        self.assertEqual(stat.S_IMODE(os.stat(shown).st_mode), 0o600)
        with open(shown, "rb") as file:
            self.assertEqual(len(page.Page(file.read()).threads), 3)
        # What is a page already stays where it is.
        self.assertEqual(self.view(None, shown, "-q", BROWSER="")[0], shown)

    def test_refused(self):
        for data, why in ((b"nothing\n", "is no profile"), (b"\x1f\x8b\x08", "is compressed"), (b"", "is no profile")):
            shown, told = self.view(data, "-", status=harness.STATUS_TARGET)
            self.assertEqual(shown, "")
            self.assertIn(why, told)
        self.assertIn("No such file", self.view(None, self.directory + "/none", status=1)[1])
        self.assertIn("makes its own file", self.view(None, "-o", "x", "y", status=harness.STATUS_USAGE)[1])
        self.assertEqual(sorted(os.listdir(self.directory)), ["browser"])  # nothing is left


if __name__ == "__main__":
    harness.main()
