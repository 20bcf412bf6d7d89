"""The page (-f html): that its data say what pprof says, and what a browser makes of it."""

import collections
import re

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


if __name__ == "__main__":
    harness.main()
