# SPDX-License-Identifier: MIT
"""profiler diff: what has changed from one profile to another."""

import collections
import gzip
import os
import re
import shutil
import subprocess

import harness
import pprof
from harness import PROFILER, STATUS_TARGET, STATUS_USAGE, Run
from told import read_folded

FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"


def profiler(*args, status=0):
    """What it writes to stdout, and tells."""
    run = subprocess.run(
        [PROFILER, *args], capture_output=True, check=False, timeout=harness.RUN_TIMEOUT_S
    )
    told = run.stderr.decode()
    assert run.returncode == status, f"{args}: status {run.returncode}: {told}"
    for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
        assert word not in told, told
    return run.stdout, told


def columns(data):
    """{stack: (count of a, count of b)}, and that the lines are sorted."""
    found = {}
    for line in data.decode().splitlines():
        match = re.fullmatch(r"(.+) (\d+) (\d+)", line)
        assert match and match[1] not in found, line
        found[match[1]] = (int(match[2]), int(match[3]))
    stacks = [stack.encode() for stack in found]
    assert stacks == sorted(stacks)
    return found


def differs_in(found):
    """How much the two columns differ, in all."""
    return sum(a - b for a, b in found.values())


class Diff(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = harness.tempfile.mkdtemp(prefix="profiler-test-")
        cls.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)
        cls.paths = []
        for name, args, seconds in (("a", (6, 1, 1), "1"), ("b", (6, 4, 0), "2")):
            target = harness.Target([harness.fixture("threads"), *map(str, args)])
            try:
                run = harness.attach(target, form="record", duration=seconds)
            finally:
                target.end()
            path = os.path.join(cls.kept, name + ".wprof")
            with open(path, "wb") as file:
                file.write(run.recording)
            cls.paths.append(path)

    def folded(self, path, *args):
        """The recording's folded profile: a file, and its counts by line."""
        out, _ = profiler("report", path, *args)
        return {";".join(stack): count for stack, count in read_folded(out).items()}

    def test_columns(self):
        """Each side's counts, those of a stack of one side alone beside a zero."""
        for args in ([], ["-t"], ["--off-cpu"], ["--to=0.3s"]):
            a, b = (self.folded(path, *args) for path in self.paths)
            found = columns(profiler("diff", *self.paths, *args)[0])
            self.assertEqual(set(found), set(a) | set(b))
            for stack, (in_a, in_b) in found.items():
                self.assertEqual((in_a, in_b), (a.get(stack, 0), b.get(stack, 0)), stack)
        self.assertTrue(any(0 in pair for pair in found.values()))

    def test_normalized(self):
        found = columns(profiler("diff", "--normalize", *self.paths)[0])
        a, b = (sum(column) for column in zip(*found.values()))
        self.assertGreater(b, 0)
        self.assertLessEqual(abs(a - b), len(found))  # each rounded down
        self.assertLessEqual(a, b)

    def test_flamegraph(self):
        """flamegraph.pl colours by it."""
        path = shutil.which("flamegraph.pl") or FLAMEGRAPH
        harness.need(os.path.exists(path), "flamegraph.pl is not installed")
        out, _ = profiler("diff", *self.paths)
        run = subprocess.run(
            [harness.find_tool("perl"), path], input=out, capture_output=True, check=True
        )
        self.assertEqual(run.stderr, b"")
        self.assertIn(b"spin_here", run.stdout)
        self.assertRegex(run.stdout, rb"; [+-]\d+\.\d+%")  # how much more or less

    def test_folded_files(self):
        """The same from folded profiles, of whoever's making."""
        files = []
        for path in self.paths:
            files.append(os.path.join(self.directory(), "x.folded"))
            profiler("report", path, "-o", files[-1])
        self.assertEqual(profiler("diff", *files)[0], profiler("diff", *self.paths)[0])
        self.assertEqual(profiler("diff", files[0], self.paths[1])[0],
                         profiler("diff", *self.paths)[0])  # fmt: skip
        self.assertEqual(profiler("diff", "--", *self.paths)[0], profiler("diff", *self.paths)[0])
        with open(files[0], "w", encoding="utf-8") as file:
            file.write("# b\nmain;b 2\nnonsense\nmain;a 1\nmain;b 3\n")
        with open(files[1], "w", encoding="utf-8") as file:
            file.write("main;c d 7")
        out, told = profiler("diff", *files)
        self.assertEqual(out, b"main;a 1 0\nmain;b 5 0\nmain;c d 0 7\n")
        self.assertIn("left out 2 lines that are not folded stacks", told)

    def test_page(self):
        """A page has stacks, but none that can be compared: not lines of HTML either."""
        page = os.path.join(self.directory(), "x.html")
        profiler("report", self.paths[0], "-o", page)
        _, told = profiler("diff", page, self.paths[1], status=1)
        self.assertEqual(told, f"profiler: {page} is a page: give the recording or other profile that it was made of\n")

    def test_folded_of_others(self):
        """Other line ends, a byte order mark, tabs: as page and view read them. What has no folded stack
        is no profile; an empty one has no samples."""
        plain, other = (os.path.join(self.directory(), name) for name in ("plain", "other"))

        def write(path, data):
            with open(path, "wb") as file:
                file.write(data)

        write(plain, b"main;a 3\nmain;b 4\n")
        for data in (b"main;a 3\r\nmain;b 4\r\n", b"\xef\xbb\xbfmain;a 3\nmain;b 4", b"main;a\t3\nmain;b\t4\n",
                     b"main;b 1\r\n\r\n\nmain;a 3\r\r\nmain;b 3\n"):  # fmt: skip
            write(other, data)
            for pair in ((plain, other), (other, plain)):
                self.assertEqual(profiler("diff", *pair)[0], b"main;a 3 3\nmain;b 4 4\n", data)
        for data in (b"root:x:0:0::/:/bin/sh\n", b"<svg>\n</svg>", b"main;a 3.5\n", b"# main;a 1\n", b"\0" * 99,
                     b"1\n2\n", b"{}"):  # fmt: skip
            write(other, data)
            for pair in ((plain, other), (other, plain), (other, self.paths[0])):
                out, told = profiler("diff", *pair, status=STATUS_TARGET)
                self.assertEqual((out, told), (b"", f"profiler: {other} is not a profile: none of its lines is "
                                               "a folded stack, as in main;work 12\n"))  # fmt: skip
        for data in (b"", b"\n\n"):
            write(other, data)
            self.assertEqual(profiler("diff", plain, other)[0], b"main;a 3 0\nmain;b 4 0\n")

    def sums(self, *args):
        """By function, of the leaves: samples and wall time."""
        counts, walls = collections.Counter(), collections.Counter()
        profile = pprof.Profile(profiler(*args, "-f", "pprof")[0], differences=True)
        for sample in profile.samples:
            counts[sample.stack] += sample.count
            walls[sample.stack] += sample.wall_ns
        return counts, walls

    def test_pprof(self):
        """Second less first, sample for sample."""
        sides = [self.sums("report", path) for path in self.paths]
        counts, walls = self.sums("diff", *self.paths)
        for found, (a, b) in ((counts, (sides[0][0], sides[1][0])),
                              (walls, (sides[0][1], sides[1][1]))):  # fmt: skip
            for stack in set(a) | set(b):
                self.assertEqual(found[stack], b[stack] - a[stack], stack)
        self.assertTrue(any(value < 0 for value in counts.values()))
        profile = pprof.Profile(profiler("diff", *self.paths, "-f", "pprof")[0], differences=True)
        for sample in profile.samples:  # as of go tool pprof -diff_base
            self.assertEqual(sample.labels.get("pprof::base"), "true" if min(sample.count, sample.wall_ns) < 0 else None)
        counts, walls = self.sums("diff", self.paths[0], self.paths[0])
        self.assertEqual(set(walls.values()) | set(counts.values()), {0})
        _, walls = self.sums("diff", "--normalize", *self.paths)
        self.assertLess(abs(sum(walls.values())), 1e5)

    def table(self, *args, status=0):
        """{function: (verdict, milliseconds a second before, and after)}, and what is said besides."""
        out, told = profiler("diff", "--table", *args, status=status)
        rows = re.findall(r"(?m)^  (\S+) +(\S.*?)  +[\d.]+ -> +[\d.]+ %  +(\d+) -> +(\d+) ms/s$", out.decode())
        return {name: (verdict, int(before), int(after)) for name, verdict, before, after in rows}, out.decode() + told

    def test_table(self):
        """One thread spins before, four do after: nothing else is certain. Two halves of a recording are alike."""
        rows, text = self.table(*self.paths)
        verdict, before, after = rows["spin_here"]
        self.assertRegex(verdict, r"slower by [23]\d\d % ± ")
        self.assertTrue(900 < before <= 1010 and 3800 < after <= 4010, text)
        self.assertRegex(text, r"\d s before, \d s after; ")
        b = self.paths[1]
        rows, text = self.table(b + "@..1s", b + "@1s..")
        self.assertTrue(text.startswith("No function has changed for certain."), text)
        self.assertRegex(rows["spin_here"][0], "not changed")
        rows, text = self.table("--before", b + "@0s..0.3s", b + "@0.3s..0.5s", "--after", b + "@0.5s..0.8s")
        self.assertTrue(text.startswith("No function has changed for certain."), text)
        text = self.table(os.path.devnull, b)[1]
        self.assertIn("Folded and pprof profiles hold no times", text)

    def test_check(self):
        a, b = self.paths
        _, text = self.table(a, b, "--check=50%", status=10)
        self.assertRegex(text, r"profiler: \d+ functions? (is|are) slower by more than 50 %, such as spin_here: slower")
        self.table(b, a, "--check=50%", "--focus=spin_here")  # faster
        self.table(b + "@..1s", b + "@1s..", "--check=50", "--thread=worker", "--on-cpu", "--focus=no_such")
        _, text = self.table(b + "@0s..0.1s", b + "@0.1s..1s", "--check=0.001%", status=11)
        self.assertIn("too short to tell", text)
        folded = os.path.join(self.directory(), "a.folded")
        profiler("report", a, "-o", folded)
        _, told = profiler("diff", folded, b, "--check=1%", status=STATUS_USAGE)
        self.assertIn("is no recording and has no times, which --check needs", told)

    def test_several(self):
        """Recordings of a side add up, in folded stacks as in pprof profiles."""
        a, b = self.paths
        found = columns(profiler("diff", "--before", a, b, "--after", b, a, b)[0])
        once = columns(profiler("diff", a, b)[0])
        for stack, (in_a, in_b) in once.items():
            self.assertEqual(found[stack], (in_a + in_b, in_a + 2 * in_b))
        _, walls = self.sums("diff", "--before", a, b, "--after", b, a)
        self.assertEqual(set(walls.values()), {0})

    def test_changed_only(self):
        found = columns(profiler("diff", "--changed-only", *self.paths)[0])
        differs = {stack.split(";")[-1] for stack, (a, b) in found.items() if a != b}
        self.assertIn("spin_here", differs)
        self.assertEqual({b for _, b in found.values()},
                         {b for _, b in columns(profiler("diff", *self.paths)[0]).values()})  # fmt: skip
        b = self.paths[1]
        found = columns(profiler("diff", "--changed-only", b + "@..1s", b + "@1s..")[0])
        self.assertEqual({a - b for a, b in found.values()}, {0})

    def test_changed_only_names(self):
        """A frame's line, and that it is inlined, are no part of the function's name that has changed."""
        lines = columns(profiler("diff", "--changed-only", "--lines", *self.paths)[0])
        differs = {stack.split(";")[-1] for stack, (a, b) in lines.items() if a != b}
        self.assertTrue([frame for frame in differs if re.match(r"spin_here \(threads\.c:\d+\)", frame)], differs)
        plain = columns(profiler("diff", "--changed-only", *self.paths)[0])
        self.assertEqual(differs_in(lines), differs_in(plain))

    def test_pprof_files(self):
        """A pprof profile, compressed or not, is compared by its counts, like the same recording as folded stacks."""
        packed, plain, folded = (os.path.join(self.directory(), name) for name in ("x.pb.gz", "x.pb", "x.folded"))
        profiler("report", self.paths[0], "-o", packed)
        profiler("report", self.paths[0], "-o", folded)
        with gzip.open(packed) as file, open(plain, "wb") as copy:
            copy.write(file.read())
        same = columns(profiler("diff", folded, self.paths[1])[0])
        for path in (packed, plain):
            self.assertEqual(columns(profiler("diff", path, self.paths[1])[0]), same)
        text = self.table(packed, self.paths[1])[1]
        self.assertRegex(text, r"(?m)^  spin_here .* [\d.]+ -> +[\d.]+ %")
        self.assertIn("Folded and pprof profiles hold no times", text)
        _, told = profiler("diff", packed, self.paths[1], "--check=1%", status=STATUS_USAGE)
        self.assertIn("is no recording and has no times, which --check needs", told)
        with open(plain, "rb") as file, open(packed, "wb") as cut:
            cut.write(file.read()[:-9])
        profiler("diff", packed, self.paths[1], status=STATUS_TARGET)

    def test_refused(self):
        _, told = profiler("diff", "/dev/null", self.paths[1], "-f", "pprof", status=STATUS_USAGE)
        self.assertIn("/dev/null is no recording", told)
        _, told = profiler("diff", "nowhere", self.paths[1], status=STATUS_TARGET)
        self.assertIn("cannot read nowhere: No such file", told)
        for args, pattern in (
            (["diff"], "give two files to compare"),
            (["diff", "a", "b", "c"], "give only two files, 'c' is one more, or several a side with --before"),
            (["diff", "--before", "a", "b"], "give two files to compare"),
            (["diff", "a", "b", "--check=much"], "--check: 'much' is not a percentage, such as 2%"),
            (["diff", "a", "b", "--changed-only", "-f", "pprof"], "--changed-only needs -f folded"),
            (["diff", "--before", "a", "b", "--after", "c", "-f", "html"], "a page compares two recordings"),
            (["diff", "a@9..x", "b"], "'a@9..x': no time is 9..x: give FILE@FROM..TO"),
            (["report", "a", "--normalize"], "--normalize is for profiler diff"),
            (["diff", "a", "b", "-d", "1"], "--duration only works while sampling"),
        ):
            run = Run(args).finish(expect=STATUS_USAGE)
            self.assert_message(run, pattern, STATUS_USAGE)


if __name__ == "__main__":
    harness.main()
