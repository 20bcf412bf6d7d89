# SPDX-License-Identifier: MIT
"""The page (-f html) in a real browser, headless, one for all: Chromium; Firefox where PAGE_BROWSER=firefox."""

import collections
import http.server
import os
import shutil
import subprocess
import tempfile
import threading
import unittest
import zlib

import browser
import firefox
import harness
import page
import pprof
import test_page
from harness import start_wrap
from test_record import Recorded, report

HOSTILE_NAMES = (
    "</script><img src=x onerror=window.caught=1>",
    "</section><script>window.caught=2</script>",
    "\u202eturned\u2066 around",
)
# Where things are at 1280x800: the lanes begin below the bars, the graph is at the bottom.
EVERYTHING = "off=&all=1"  # idle time and all frames, too
LANES, GRAPH = "lane-canvas", "graph-canvas"
BROWSERS = {"chromium": ("chromium", browser.Browser), "firefox": ("firefox-esr", firefox.Firefox)}


class Shared:
    """One browser and one recording for all tests."""

    browser = directory = data = html = path = None


def setUpModule():
    program, Wanted = BROWSERS[os.environ.get("PAGE_BROWSER", "chromium")]
    harness.need(shutil.which(program), f"no {program}")
    Shared.directory = tempfile.mkdtemp(prefix="page-")
    unittest.addModuleCleanup(shutil.rmtree, Shared.directory)
    Shared.browser = Wanted()
    unittest.addModuleCleanup(Shared.browser.close)
    Shared.browser.resize(1280, 800)
    target = harness.Target([harness.fixture("threads"), "6", "2", "2"])
    Shared.data = Recorded(target, duration="1").finish().data
    target.end()
    Shared.html = report(Shared.data, "-f", "html")[0]
    Shared.path = write("page.html", Shared.html)


def write(name, data):
    path = os.path.join(Shared.directory, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def colours(path):
    """How many there are in the picture (PNG, 8 bits, RGB or RGBA, unfiltered or not)."""
    with open(path, "rb") as file:
        data = file.read()
    at, pixels, width, size = 8, b"", 0, 3
    while at < len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, size = int.from_bytes(body[:4], "big"), {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            pixels += body
        at += length + 12
    pixels, stride, last, found = zlib.decompress(pixels), width * size, b"", set()
    for row in range(0, len(pixels), stride + 1):
        line = unfilter(pixels[row], pixels[row + 1 : row + 1 + stride], last, size)
        if line != last:
            found.update(line[i : i + 3] for i in range(0, stride, size))
        last = line
    return len(found)


def unfilter(kind, line, last, size):
    if kind == 0:
        return bytes(line)
    line, last = bytearray(line), last or bytes(len(line))
    for i, value in enumerate(line):
        left, corner = (line[i - size], last[i - size]) if i >= size else (0, 0)
        if kind == 4:
            guess = left + last[i] - corner
            line[i] = (value + min((left, last[i], corner), key=lambda x: abs(x - guess))) & 255
        else:
            line[i] = (value + (0, left, last[i], (left + last[i]) // 2)[kind]) & 255
    return bytes(line)


class InBrowser(harness.TestCase):
    def setUp(self):
        self.browser, self.data, self.html = Shared.browser, Shared.data, Shared.html

    def open(self, hash_="", path=None):
        self.browser.open("file://" + (path or Shared.path) + ("#" + hash_ if hash_ else ""))

    def tearDown(self):
        # Whatever a test did: the page asked for nothing, and nothing failed in it.
        files = {url.partition("#")[0] for url in self.browser.requests}
        self.assertLessEqual({url for url in files if not url.startswith("blob:")}, {f"file://{self.shown()}", "about:blank"})
        self.assertEqual(self.browser.errors, [])

    def shown(self):
        return self.browser.evaluate("location.pathname")

    def told(self, choice=""):
        return self.browser.evaluate(f"profilerTest({choice})")

    def state(self):
        return self.told()["state"]

    def text(self, element):
        return self.browser.evaluate(f"document.getElementById('{element}').textContent")

    def place(self, element, x, y):
        """The point of the window at these shares of the element."""
        box = self.browser.evaluate(
            f"(({{x, y, width, height}}) => [x, y, width, height])(document.getElementById('{element}').getBoundingClientRect())"
        )
        return box[0] + box[2] * x, box[1] + (box[3] * y if y <= 1 else y)

    def drawn_texts(self, canvas):
        """[text, its left and right end] as the canvas is drawn next, and the canvas's width."""
        return self.browser.evaluate(f"""(async () => {{
            const drawn = [], draw = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {{
                if (this.canvas.id === '{canvas}')
                    drawn.push([text, x, x + this.measureText(text).width]);
                return draw.call(this, text, x, ...rest);
            }};
            profilerApp.drawNow();
            CanvasRenderingContext2D.prototype.fillText = draw;
            return [drawn, document.getElementById('{canvas}').clientWidth];
        }})()""")


class Sums(InBrowser):
    def assert_sums(self, told, expected, slack_ns=0):
        """{function: [self, total]}, to a thousandth of all."""
        slack_ns += 0.001 * told["time"]
        found = {name: (one["self"], one["total"]) for name, one in told["functions"].items()}
        for name in found.keys() | expected.keys():
            for a, b in zip(found.get(name, (0, 0)), expected.get(name, (0, 0))):
                self.assertLessEqual(abs(a - b), slack_ns, name)

    def test_all(self):
        self.open(EVERYTHING)
        sums, kinds = collections.defaultdict(lambda: [0, 0]), collections.Counter()
        for sample in pprof.Profile(report(self.data, "-f", "pprof")[0]).samples:
            kinds[sample.kind] += sample.wall_ns
            sums[sample.stack[-1]][0] += sample.wall_ns
            for name in set(sample.stack):
                sums[name][1] += sample.wall_ns
        told = self.told("{asleep: true}")
        self.assert_sums(told, sums)
        self.assertGreater(len(sums), 10)
        for kind, ns in told["kinds"].items():
            self.assertLessEqual(abs(ns - kinds[kind]), 0.001 * told["time"], kind)

    def test_ranges(self):
        """What is chosen in the page is what --from and --to choose, by the weights of the whole."""
        self.open(EVERYTHING)
        weights = {thread["tid"]: thread["weigh"] for thread in page.Page(self.html).threads}
        for start, end in ((0, 0.25), (0.1, 0.14), (0.333, 0.667), (0.5, 0.9), (0.95, 1)):
            html = report(self.data, "-f", "html", f"--from={start:.3f}" if start else "-t", f"--to={end:.3f}")[0]
            sums = collections.defaultdict(lambda: [0, 0])
            for thread, a, b, stack, kind, _ in page.Page(html).runs:
                stack = stack if start else stack[1:]  # -t: the thread's name is its root
                ns = (b - a) * weights[thread["tid"]][kind]
                sums[stack[-1]][0] += ns
                for name in set(stack):
                    sums[name][1] += ns
            told = self.told(f"{{asleep: true, from_ns: {start * 1e9}, to_ns: {end * 1e9}}}")
            self.assertGreater(told["time"], 0)
            self.assert_sums(told, sums, slack_ns=50_000)  # bounds are rounded

    def test_threads(self):
        self.open()
        slept = {t["tid"] for t in self.told()["threads"] if t["slept"]}
        expected = {t["tid"] for t in page.Page(self.html).threads if t["flags"] & 1}
        self.assertEqual(slept, expected)
        self.assertIn("all active threads", self.text("views"))
        self.open(EVERYTHING)
        awake = set(self.told()["functions"])
        self.assertNotIn("pause", awake)
        self.assertIn("pipe_here", awake)  # it waits for another's word
        self.assertIn("pause", self.told("{asleep: true}")["functions"])

    def test_search(self):
        """Its share is that of --focus, nothing twice."""
        for pattern in ("_here$", "^(worker|sleep_ms)$", "spin"):
            focused = pprof.Profile(report(self.data, "-f", "pprof", f"--focus={pattern}")[0])
            self.open(EVERYTHING + "&asleep=1&q=" + pattern.replace("^", "%5E").replace("|", "%7C"))
            told = self.told()
            expected = sum(sample.wall_ns for sample in focused.samples)
            self.assertGreater(expected, 0)
            self.assertLessEqual(abs(told["matched"] - expected), 0.001 * told["time"], pattern)
            self.assertIn("matched", self.text("matched"))


class Findings(InBrowser):
    def test_findings(self):
        """What explain says first is above the graph; a click searches the function."""
        run = start_wrap([harness.fixture("blame"), "1.5", "circle"], "--locks", form="record").finish(keep=(0,))
        self.open(path=write("findings.html", report(run.data, "-f", "html", "--blame")[0]))
        shown = "document.querySelector('#findings button')"
        self.assertRegex(self.browser.evaluate(f"{shown}.textContent"), r"^\d+ % lock_both \(blame\.c:\d+\).*a deadlock\.$")
        self.browser.evaluate(f"{shown}.click()")
        self.assertEqual(self.browser.evaluate("document.getElementById('search').value"), "^lock_both$")
        self.assertRegex(self.text("matched"), r"^matched \d")


class Blame(InBrowser):
    @classmethod
    def setUpClass(cls):
        run = start_wrap([harness.fixture("blame"), "3", "chain"], "--locks", form="record").finish(keep=(0,))
        cls.blamed = report(run.data, "-f", "html", "--blame")[0]
        cls.path = write("blame.html", cls.blamed)
        cls.plain = write("plain.html", report(run.data, "-f", "html")[0])

    def rows(self):
        """The tree's rows: [level, share in percent, name]."""
        return self.browser.evaluate("""[...document.querySelectorAll('#table tbody tr')].map(row =>
            [row.ariaLevel, parseFloat(row.cells[1].textContent), row.cells[5].innerText.replace(/^[^\\w-]+/, '')])""")

    def test_tree(self):
        """Below a function that waits is what it waits for, and below that what the holder does, in all its time."""
        self.open(path=self.path)
        self.browser.key("7")
        self.assertEqual(self.state(), "view=blame")
        rows = self.rows()
        self.assertRegex(rows[1][2], r"^handle blame\.c:\d+$")
        self.assertRegex(rows[2][2], r'^futex mutex 0x[0-9a-f]+, held by "gc" \d+$')
        self.assertRegex(rows[3][2], r"^collect blame\.c")
        self.assertEqual([level for level, _, _ in rows[:4]], ["1", "2", "3", "4"])
        own = [name for level, _, name in rows if level == "5"]
        self.assertTrue({"sweep", "write_journal"} & {name.split()[0] for name in own}, rows)
        told, data = self.told(), page.Page(self.blamed)
        total = sum((end - start) * thread["weigh"][kind] for thread, start, end, stack, kind, _ in data.runs
                    if kind == "lock" and "handle" in stack)  # fmt: skip
        self.assertAlmostEqual(rows[1][1], 100 * total / told["time"], delta=0.2)
        # It can be closed, and follows the choice of kinds.
        self.browser.evaluate("document.querySelectorAll('#table tbody tr')[1].click()")
        self.browser.settle()
        self.assertEqual([row[0] for row in self.rows()[:2]], ["1", "2"])
        self.assertNotIn("3", {row[0] for row in self.rows()[1:2]})
        self.browser.evaluate("profilerApp.switchKind(profilerApp.profile.kinds.indexOf('lock'), false)")
        self.browser.settle()
        self.assertNotIn("handle", " ".join(name for _, _, name in self.rows()))

    def test_flame_graph(self):
        """What the other does begins with its own code, below the frame "--"."""
        self.open(path=self.path)
        above = self.browser.evaluate("""(({nodes, frames, names}) => Array.from(nodes.frame, frame => names[frames.name[frame]])
            .flatMap((name, i, all) => name === 'collect' ? [all[nodes.parent[i]]] : []))(profilerApp.profile)""")
        self.assertLessEqual(set(above), {"all", "gc", "--"})
        self.assertIn("--", above)

    def test_holder(self):
        """From a thread that waits, the menu leads to the one that it waits for."""
        self.open(path=self.path)
        x, y = self.browser.evaluate("""(({lanes, profile}) => {
            const kind = profile.kinds.indexOf('lock'), {runs} = profile;
            const row = lanes.rows().findIndex(one => one.thread?.name === 'worker'), {first, end} = lanes.rows()[row].thread;
            let longest = -1;
            for (let i = first; i < end; i++)
                if (runs.kind[i] === kind && (longest < 0 || runs.end[i] - runs.start[i] > runs.end[longest] - runs.start[longest]))
                    longest = i;
            return [lanes.x((runs.start[longest] + runs.end[longest]) / 2), row * LANE_HEIGHT - lanes.scroll.scrollTop + 9];
        })(profilerApp)""")
        left, top = self.place(LANES, 0, 0)
        self.browser.click(left + x, top + y, button="right")
        item = "document.querySelector('#menu button')"
        self.assertRegex(self.browser.evaluate(f"{item}.textContent"), r"^Show gc \d+, which it waits for$")
        self.browser.evaluate(f"{item}.click()")
        self.browser.settle()
        (gc,) = [thread["tid"] for thread in self.told()["threads"] if thread["name"] == "gc"]
        self.assertEqual(self.state(), f"threads={gc}")

    def test_without(self):
        """A profile made without --blame has no such view."""
        self.open(path=self.plain)
        self.assertIsNone(self.browser.evaluate("document.querySelector('[data-view=blame]')"))
        self.browser.key("7")
        self.assertEqual(self.state(), "")


class OwnCode(InBrowser):
    """The page begins with the program's own code."""

    def view(self, data):
        environment = {**os.environ, "XDG_RUNTIME_DIR": Shared.directory, "SSH_CONNECTION": "1", "BROWSER": ""}
        run = subprocess.run(
            [harness.PROFILER, "view", "-q", "-"], input=data, capture_output=True, check=True,
            timeout=harness.RUN_TIMEOUT_S, env=environment,
        )  # fmt: skip
        self.open(path=run.stdout.decode().rstrip("\n"))

    def is_pressed(self, selector):
        return self.browser.evaluate(f"document.querySelector('{selector}').ariaPressed") == "true"

    def test_idle(self):
        """Kinds that usually wait for work are hidden, and their share is said."""
        self.open()
        told = self.told()
        idle = sum(told["kinds"][kind] for kind in ("condition", "event", "timer", "client"))
        self.assertGreater(idle, 0)
        self.assertAlmostEqual(told["time"], sum(told["kinds"].values()) - idle, delta=10)
        self.assertEqual(self.text("idle"), f"idle {100 * idle / sum(told['kinds'].values()):.1f} %")
        self.assertFalse(self.is_pressed("#idle"))
        self.browser.evaluate("document.getElementById('idle').click()")
        self.browser.settle()
        self.assertEqual(self.state(), "off=")
        self.assertTrue(self.is_pressed("#idle"))
        self.assertAlmostEqual(self.told()["time"], sum(told["kinds"].values()), delta=10)
        self.browser.key("k")
        self.browser.key("i")
        self.assertEqual(self.state(), "")
        # Nothing but idle time is shown as it is.
        html = report(self.data, "-f", "html", "--syscall=^clock_nanosleep$", "--state=sleeping")[0]
        self.open(path=write("idle.html", html))
        self.assertGreater(self.told()["time"], 0)
        self.assertTrue(self.is_pressed("#idle"))

    def test_folded_frames(self):
        """The start of the program and of its threads, and the insides of locks."""
        stacks = {
            "_start;__libc_start_main;main;work;pthread_mutex_lock;__lll_lock_wait": 3,
            "clone3;start_thread;work;pthread_mutex_lock;__GI___lll_lock_wait;futex_wait": 2,
            "clone3;start_thread;work": 4, "clone3;start_thread": 1, "tool;main;x;_start;deep": 5,
        }  # fmt: skip
        self.view("".join(f"{stack} {n}\n" for stack, n in stacks.items()).encode())

        def functions():
            unit = self.browser.evaluate("profilerApp.profile.meta.count_ns")
            return {name: (one["self"] / unit, one["total"] / unit) for name, one in self.told()["functions"].items()}

        self.assertEqual(functions(), {
            "main": (0, 8), "work": (4, 9), "pthread_mutex_lock": (5, 5), "tool": (0, 5), "x": (0, 5), "_start": (0, 5),
            "deep": (5, 5),
        })  # fmt: skip
        self.assertEqual(self.browser.evaluate("profilerApp.sums.time * profilerApp.profile.unit"), 15)
        self.browser.key("a")
        self.assertEqual(self.state(), "all=1")
        everything = functions()
        self.assertEqual(everything["clone3"], (0, 7))
        self.assertEqual(everything["start_thread"], (1, 7))
        self.assertEqual(everything["pthread_mutex_lock"], (0, 5))
        # The trees are sound: each node lies behind its parent and before the parent's end.
        self.assertTrue(self.browser.evaluate("""[profilerApp.whole, profilerApp.folded].every(({nodes}) =>
            nodes.parent.every((up, i) => i === 0 || up < i && nodes.next[i] <= nodes.next[up] &&
                nodes.depth[i] === nodes.depth[up] + 1))"""))
        self.browser.key("a")
        self.assertEqual(self.state(), "")
        self.browser.evaluate("profilerApp.search('futex_wait')")
        self.browser.settle()
        self.assertEqual(self.text("matched"), "only in folded frames (a shows them)")
        self.browser.key("a")
        self.assertIn("matched 13.3 %", self.text("matched"))

    def rows(self):
        """The table's functions: [name, self time in percent]."""
        return self.browser.evaluate("""[...document.querySelectorAll('#table tbody tr')].map(row =>
            [row.querySelector('.name').textContent, parseFloat(row.cells[1].textContent)])""")

    def test_own_self_time(self):
        """Self time is that of the nearest function of the program's own; raw, it is the library's."""
        self.open("off=&view=functions")
        own = dict(self.rows())
        self.assertEqual(own["clock_nanosleep"], 0)
        self.browser.key("m")
        self.assertEqual(self.state(), "off=&raw=1&view=functions")
        raw = dict(self.rows())
        self.assertLess(raw["sleep_ms"], 0.5 * own["sleep_ms"])
        self.assertGreater(raw["clock_nanosleep"], 0.5 * own["sleep_ms"])
        self.assertTrue(self.is_pressed("[data-toggle=raw]"))

    def test_names(self):
        """Without parameters and the like; where it says much, with file and line; in full in the tooltip."""
        full = b"void shop::Cache<int, std::less<int> >::put<long>(long) const"
        strings = (b"", b"samples", b"count", full, b"match", b"/usr/lib/python3.11/re/__init__.py", b"cache.cc")
        location = test_page.message
        data = location(
            (1, location((1, 1), (2, 2))), (2, location((1, 2), (1, 1), (2, 9))),
            (4, location((1, 1), (4, location((1, 1))))), (4, location((1, 2), (4, location((1, 2))))),
            (5, location((1, 1), (2, 3), (4, 6), (5, 7))), (5, location((1, 2), (2, 4), (4, 5), (5, 166))),
            *((6, string) for string in strings),
        )  # fmt: skip
        self.view(data)
        drawn = self.drawn_texts("graph-canvas")[0]
        self.assertEqual([text for text, _, _ in drawn], ["all", "shop::Cache::put", "match", "re/__init__.py:166"])
        self.browser.key("3")
        rows = self.browser.evaluate("[...document.querySelectorAll('#table td:last-child')].map(cell => cell.textContent)")
        self.assertEqual(sorted(rows), ["match re/__init__.py:166", "shop::Cache::put cache.cc:7"])
        own = self.browser.evaluate("[...document.querySelectorAll('#table .own')].map(name => name.textContent)")
        self.assertEqual(own, ["shop::Cache::put"])  # by the files that the profile names
        self.browser.evaluate("profilerApp.search('shop::Cache::put')")  # as it is shown
        self.browser.settle()
        self.assertIn("matched 100.0 %", self.text("matched"))
        title = "[...document.querySelectorAll('.name')].find(name => name.textContent.includes('put')).title"
        self.assertIn(full.decode(), self.browser.evaluate(title))


class Use(InBrowser):
    def test_keys(self):
        """Each does something, and what it does is in the address."""
        self.open()
        for key, state in (
            ("2", "view=callers"), ("3", "view=functions"), ("4", "view=tree"), ("5", "view=time"),
            ("i", "flip=1&view=time"), ("i", "view=time"), ("1", ""), ("w", "asleep=1&open=1"), ("w", ""),
        ):  # fmt: skip
            self.browser.key(key)
            self.assertEqual(self.state(), state, key)
        for letter in "rn":  # it may wait for a CPU
            self.browser.key("k")
            self.browser.key(letter)
        self.assertEqual(self.state(), "off=running%2Crunnable%2Ccondition%2Cevent%2Ctimer%2Cclient")
        self.assertNotIn("spin_here", self.told()["functions"])
        self.browser.key("0")
        self.assertEqual(self.state(), "")
        self.browser.key("]")
        self.assertRegex(self.state(), r"^threads=\d+$")
        self.browser.key("Escape")
        for key in ("?", "d"):
            self.browser.key(key)
            self.assertTrue(self.browser.evaluate("document.getElementById('dialog').open"))
            self.browser.evaluate("document.getElementById('dialog').close()")
        self.assertRegex(self.text("dialog-text"), r'"worker-00" \d+.*(?:running|waiting for a CPU)(?s:.*)spin_here')
        theme = self.browser.evaluate("document.documentElement.dataset.theme")
        self.browser.key("t")
        self.assertNotEqual(self.browser.evaluate("document.documentElement.dataset.theme"), theme)

    def test_other_keys(self):
        """Those that no other test presses."""
        kinds = ("running", "runnable", "lock", "condition", "file", "socket", "event", "timer", "pipe", "stopped", "client")
        idle = ("condition", "event", "timer", "client")
        self.open()
        for letter, kind in zip("rnlcfsetpxq", kinds):
            off = [one for one in kinds if (one in idle) != (one == kind)]
            for state in ("off=" + "%2C".join(off), ""):
                self.browser.key("k")
                self.browser.key(letter)
                self.assertEqual(self.state(), state)
        self.browser.key("6")
        self.assertEqual(self.state(), "view=heat")
        self.browser.key("1")
        threads = []
        for key in ("]", "]", "["):
            self.browser.key(key)
            threads.append(self.state())
        self.assertEqual(threads[0], threads[2])
        self.assertNotEqual(threads[0], threads[1])
        self.browser.key("0")
        ranges = []
        for key, modifiers in (("+", 0), ("+", 0), ("ArrowLeft", browser.SHIFT), ("ArrowRight", browser.SHIFT), ("-", 0)):
            self.browser.key(key, modifiers)
            ranges.append(self.browser.evaluate("profilerApp.lanes.window"))
        (a, b), (c, d), (e, f), (g, h), (i, j) = ranges
        self.assertTrue(a <= c < d <= b and d - c < b - a, ranges)
        self.assertTrue(e < c and f < d and g > e and h > f, ranges)
        self.assertGreater(j - i, h - g)
        self.open("q=here")
        matches = []
        for key in ("n", "n", "N"):
            self.browser.key(key)
            matches.append(self.text("focus-text"))
        self.assertEqual(matches[0], matches[2])
        self.assertNotEqual(matches[0], matches[1])
        for key in ("c", "s"):
            self.browser.key(key)

    def test_arrows(self):
        """The graph is walked, read aloud and zoomed by keys alone."""
        self.open(EVERYTHING)
        self.browser.evaluate("document.getElementById('graph-scroll').focus()")
        seen = []
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"):
            self.browser.key(key)
            seen.append(self.text("focus-text").split(".")[0])
        self.assertEqual(len(set(seen)), len(seen), seen)
        self.browser.key("Enter", text="\r")
        self.assertRegex(self.state(), r"&zoom=\d+$")
        self.browser.key("Backspace")
        self.assertNotIn("zoom=0", self.state())
        # The tree, too.
        self.browser.key("4")
        self.browser.evaluate("document.querySelector('[role=row][data-id]').focus()")
        counts = [self.browser.evaluate("document.querySelectorAll('[role=row]').length")]
        for key in ("ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"):
            self.browser.key(key)
            counts.append(self.browser.evaluate("document.querySelectorAll('[role=row]').length"))
        self.assertGreater(counts[0], 4)  # the hot paths are open
        self.assertEqual(counts, [counts[0]] * 3 + [1, counts[0]])

    def test_search_keys(self):
        self.open()
        self.browser.key("/", text="")
        for letter in "spin_here":
            self.browser.key(letter)
        self.browser.key("Enter", text="\r")
        self.assertEqual(self.state(), "q=spin_here")
        self.assertIn("spin_here", self.text("focus-text"))
        self.browser.key("n")
        self.browser.key("Escape")
        self.assertEqual(self.state(), "")

    def test_mouse(self):
        self.open()
        self.browser.drag(*self.place(LANES, 0.4, 0.3), *self.place(LANES, 0.7, 0.3))
        self.assertRegex(self.state(), r"^from=0\.\d+&to=0\.\d+$")
        part = self.told()["time"]
        self.browser.click(*self.place(LANES, 0.05, 9))
        self.assertRegex(self.state(), r"&threads=\d+$")
        self.assertLess(self.told()["time"], part)
        self.browser.key("0")
        self.browser.click(*self.place(GRAPH, 0.3, 50))
        self.assertRegex(self.state(), r"^zoom=\d+$")
        hidden = "document.getElementById('tip').hidden"
        self.assertTrue(self.browser.evaluate(hidden))  # it would cover what is now shown
        self.browser.mouse("mouseMoved", *self.place(GRAPH, 0.31, 50))
        self.assertFalse(self.browser.evaluate(hidden))
        self.assertRegex(self.text("tip"), r"of the selection.*(?:running|timer) \d")
        self.browser.click(*self.place(GRAPH, 0.3, 50), button="right")
        self.browser.evaluate("document.querySelectorAll('#menu button')[1].click()")
        self.browser.settle()
        self.assertRegex(self.state(), r"view=sandwich&zoom=\d+&fn=\d+")

    def test_heat_map(self):
        """A column of it is a range of time."""
        self.open("view=heat")
        self.assertRegex(self.browser.evaluate(f"document.getElementById('{GRAPH}').ariaLabel"), r"10 columns of 100 ms; at most [1-9]")
        self.browser.click(*self.place(GRAPH, 0.35, 0.5))
        self.assertEqual(self.state(), "from=0.3&to=0.4&view=heat")

    def test_heat_legend(self):
        """The map says what a column is, which colour is how many threads, and has both axes."""
        self.open("view=heat")
        texts = [text for text, _, _ in self.drawn_texts(GRAPH)[0]]
        self.assertIn("Each column is 100 ms, from top to bottom.", texts)
        self.assertRegex("\n".join(texts), r"(?m)^[\d.]+ threads that run$")
        self.assertLessEqual({"+0 s", "+20 ms", "+80 ms", "0 s", "900 ms"}, set(texts))

    def test_order(self):
        """Threads are sorted by activity, name or number."""
        self.open("asleep=1&open=1")
        names = "profilerApp.lanes.rows().filter(row => row.thread && !row.thread.slept).map(row => row.thread.{})"
        self.browser.evaluate("document.getElementById('order').click()")
        self.browser.settle()
        self.assertIn("order=name", self.state())
        found = self.browser.evaluate(names.format("name"))
        self.assertEqual(found, sorted(found))
        self.assertEqual(self.text("order"), "by name \u25be")
        self.browser.key("o")
        found = self.browser.evaluate(names.format("tid"))
        self.assertEqual(found, sorted(found))
        self.browser.key("o")
        self.assertNotIn("order", self.state())

    def test_help(self):
        """What is new to a user is said: once by a hint, on each button, and in the help."""
        self.open()
        self.browser.evaluate("localStorage.clear()")
        self.open()
        hidden = "document.getElementById('hint').hidden"
        self.assertFalse(self.browser.evaluate(hidden))
        self.browser.evaluate("document.getElementById('hint-close').click()")
        self.assertTrue(self.browser.evaluate(hidden))
        self.open()
        self.assertTrue(self.browser.evaluate(hidden))
        buttons = "[...document.querySelectorAll('header button, #strip button, #views button, #order')]"
        self.assertEqual(self.browser.evaluate(buttons + ".filter(one => !one.title).map(one => one.textContent)"), [])
        self.browser.key("?")
        keys = self.browser.evaluate("[...document.querySelectorAll('#dialog kbd')].map(one => one.textContent)")
        self.assertEqual(len(keys), len(set(keys)))
        self.assertLessEqual(set("amiwohuHdbxcst/"), set(keys))
        self.assertIn("waiting for a CPU", self.text("dialog-text"))
        # Nothing is cut: what does not fit can be scrolled to.
        self.assertTrue(self.browser.evaluate("""(dialog => dialog.scrollWidth <= dialog.clientWidth &&
            document.getElementById('dialog-close').getBoundingClientRect().bottom < innerHeight)(document.getElementById('dialog-text'))"""))

    def test_room(self):
        """At 800x600 the graph has most of the height, and no bar wraps."""
        try:
            self.browser.resize(800, 600)
            self.open()
            self.open()  # without the hint
            self.assertGreater(self.browser.evaluate("document.getElementById('view').clientHeight"), 300)
            for element in ("bar", "views"):
                self.assertLess(self.browser.evaluate(f"document.getElementById('{element}').clientHeight"), 50, element)
        finally:
            self.browser.resize(1280, 800)

    def test_put_away(self):
        """A function's stacks left out, or what it calls folded into it: the rest stays as it was."""
        self.open(EVERYTHING)
        whole = self.told()
        # Those in whose stack the function is, by the page's data.
        read = page.Page(self.html)
        awake = {t["tid"] for t in read.threads if not t["flags"] & 1}
        runs = [((b - a) * t["weigh"][kind], stack) for t, a, b, stack, kind, _ in read.runs if t["tid"] in awake]
        name = "sleep_ms"
        within = sum(length for length, stack in runs if name in stack)
        self.assertGreater(within, 0)
        self.browser.evaluate(f"profilerApp.search('^{name}$')")
        self.browser.settle()
        self.browser.key("n")
        self.browser.key("h")
        self.assertRegex(self.state(), r"&q=.*&hide=\d+$")
        told = self.told()
        self.assertNotIn(name, told["functions"])
        self.assertAlmostEqual(told["time"], whole["time"] - within, delta=1)
        self.assertIn("hidden stacks (H shows them): " + name, self.text("views"))
        self.open(told["state"])
        self.assertEqual(self.told(), told)
        self.browser.key("H")
        self.browser.key("n")
        self.browser.key("u")
        told = self.told()
        self.assertRegex(told["state"], r"&fold=\d+$")
        self.assertAlmostEqual(told["time"], whole["time"], delta=1)
        self.assertAlmostEqual(told["functions"][name]["self"], within, delta=1)
        self.assertAlmostEqual(told["functions"][name]["total"], within, delta=1)
        self.browser.key("2")  # callers: each leaf's own time, by kind
        self.assertGreater(self.told()["boxes"], 1)
        self.browser.key("H")
        self.assertEqual(self.told()["functions"], whole["functions"])

    def test_two_ranges(self):
        """One range is kept, and compared with another one: each has its own sums."""
        sums = {}
        for part in ("from=0.1&to=0.4", "from=0.5&to=0.9"):
            self.open(part)
            sums[part] = self.told()["time"]
        first, second = sums
        self.open(first)
        self.browser.key("b")
        self.assertEqual(self.state(), first + "&a=0.1-0.4")
        self.browser.evaluate("profilerApp.go({from: 50000, to: 90000})")
        self.browser.settle()
        told = self.told()
        self.assertEqual(told["state"], second + "&a=0.1-0.4")
        self.assertEqual((told["time"], told["base"]), (sums[second], sums[first]))
        self.assertIn("A is 100 ms to 400 ms", self.text("views"))
        self.browser.mouse("mouseMoved", *self.place(GRAPH, 0.3, 30))
        self.assertRegex(self.text("tip"), r"A [\d.]+ %, B [\d.]+ %: [+\u2212][\d.]+ points")
        self.open(told["state"])
        self.browser.key("x")
        self.assertEqual(self.told()["base"], sums[second])
        self.browser.key("2")
        self.assertGreater(self.told()["boxes"], 1)
        self.browser.key("b")
        self.assertEqual(self.told()["base"], 0)

    def test_address(self):
        """The same address shows the same; Back goes back."""
        self.open()
        self.browser.drag(*self.place(LANES, 0.4, 0.3), *self.place(LANES, 0.7, 0.3))
        self.browser.key("2")
        self.browser.key("k")
        self.browser.key("t")
        told = self.told()
        self.assertEqual(self.browser.evaluate("location.hash.slice(1)"), told["state"])
        self.open(told["state"])
        self.assertEqual(self.told(), told)
        self.browser.evaluate("location.hash = 'view=tree'")
        self.browser.wait("profilerTest().state === 'view=tree'")
        self.browser.evaluate("history.back()")
        self.browser.wait(f"profilerTest().state === {told['state']!r}")
        # What is nonsense is as nothing.
        self.open("from=9&to=-3&zoom=1e99&view=x&threads=a,1&fn=-1&path=7.x&off=,%00")
        self.assertEqual(self.state(), "off=&path=7")

    def test_sizes(self):
        picture = os.path.join(Shared.directory, "shot.png")
        self.open()
        try:
            for width, height, ratio in ((320, 640, 1), (3840, 2160, 2), (1280, 800, 1)):
                width = max(width, self.browser.min_width)
                self.browser.resize(width, height, ratio)
                self.assertLessEqual(self.browser.evaluate("document.scrollingElement.scrollWidth"), width)
                self.assertGreater(self.told()["boxes"], 5)
        finally:
            self.browser.resize(1280, 800)
        self.browser.screenshot(picture)
        self.assertGreater(colours(picture), 6)

    def test_axis(self):
        """Its last label is there, and not cut at the edge."""
        try:
            for width in (1280, 800):
                self.browser.resize(width, 600)
                self.open()
                drawn, room = self.drawn_texts("overview")
                last = max(right for text, _, right in drawn if text.endswith("s") and "thread" not in text)
                self.assertGreater(last, 0.8 * room)
                for text, _, right in drawn:
                    self.assertLessEqual(right, room, text)
        finally:
            self.browser.resize(1280, 800)

    def test_long_names(self):
        """Names of threads are cut in the middle: their ends tell them apart."""
        self.open()
        for text, n, expected in (
            ("ThreadPoolExecutor-0_2", 11, "Threa\u2026r-0_2"), ("worker-00", 9, "worker-00"), ("worker-00", 2, ""),
        ):  # fmt: skip
            self.assertEqual(self.browser.evaluate(f"cutMiddle('{text}', {n})"), expected)

    def test_colours(self):
        """Text can be read on every shade in both themes, and in the dark one idle time shines least."""
        self.open()

        def luminance(colour):
            parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
            linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
            return sum(a * b for a, b in zip(linear, (0.2126, 0.7152, 0.0722)))

        for theme in ("light", "dark"):
            self.browser.evaluate(f"profilerApp.turnTo('{theme}')")
            ink = luminance(self.browser.evaluate("themeColours()['on-kind']"))
            looks = self.browser.evaluate(
                f"looksOf([...Object.keys(LOOKS), 'samples'], '{theme}', profilerApp.profile.meta.idle).map(look => [look.idle, look.colour, ...shadesOf(look)])"
            )
            for idle, *shades in looks:
                for light in map(luminance, shades):
                    self.assertGreaterEqual((max(ink, light) + 0.05) / (min(ink, light) + 0.05), 4.5, (theme, shades))
            if theme == "dark":
                brightest = max(luminance(shades[0]) for idle, *shades in looks if idle)
                self.assertLess(brightest, min(luminance(shades[0]) for idle, *shades in looks[:2]))

    def test_found(self):
        """What a search finds stands out: the rest is dim."""
        pixel = """(() => {
            const {graph} = profilerApp, ratio = window.devicePixelRatio, seen = {};
            for (const box of graph.rows.flat())
                if (box.width > 40)
                    seen[profilerApp.frameName(box.frame)] ??= [...graph.canvas.getContext('2d').getImageData(
                        (box.x + box.width - 8) * ratio, (graph.y(box.row) + 3) * ratio, 1, 1).data].slice(0, 3);
            return seen;
        })()"""
        self.open("all=1&off=")
        before = self.browser.evaluate(pixel)
        self.open("all=1&off=&q=^sleep_ms$")
        after = self.browser.evaluate(pixel)
        self.assertIn("sleep_ms", after)
        self.assertEqual(after["sleep_ms"], before["sleep_ms"])
        for name in set(after) - {"sleep_ms"}:
            for a, b in zip(after[name], before[name]):  # towards the paper, which is white
                self.assertLessEqual(255 - a, 0.3 * (255 - b) + 1, name)

    def test_damaged(self):
        """A page whose profile or script is cut says so, and its tables stand."""
        for name in (b"profile", b"program"):
            at = self.html.index(b'<script id="%s"' % name) + 400
            path = write("cut.html", self.html[:at] + self.html[self.html.index(b"</script>", at) :])
            self.browser.open(path, ready="document.querySelector('[role=alert]')")
            self.assertIn("spin_here", self.browser.evaluate("document.querySelector('main').textContent"))
            self.assertEqual(len(self.browser.errors), int(self.browser.reads_console))
            self.browser.errors.clear()

    def test_saved(self):
        """A browser saves the page as it stands, whatever was done in it: opened again it is the same, and
        so is what is saved of that."""
        self.open()
        first = self.told("{asleep: true}")
        buttons = "document.querySelectorAll('#kinds button, #views button').length"
        n_buttons = self.browser.evaluate(buttons)
        for keys in (("3",), ("?",), ("2", "ArrowDown", "d", "?")):
            for key in keys:
                self.browser.key(key)
            html = "<!DOCTYPE html>" + self.browser.evaluate("document.documentElement.outerHTML")
            self.open(path=write("saved.html", html.encode()))
            # What the script styles itself is set anew; the policy refuses it from the file.
            self.browser.errors[:] = [e for e in self.browser.errors if "inline style" not in e]
            again = self.told("{asleep: true}")
            self.assertEqual((again["functions"], again["time"]), (first["functions"], first["time"]))
            self.assertEqual(self.browser.evaluate(buttons), n_buttons)
            self.assertFalse(self.browser.evaluate("document.getElementById('dialog').open"))
            self.assertEqual(self.browser.evaluate("document.querySelectorAll('main :is(#still, [role=alert])').length"), 0)

    POLICIES = ("default-src 'self'", "script-src 'none'", "sandbox; default-src 'none'; img-src 'self'")

    def test_policies(self):
        """Where a server allows no script, the tables are what is seen, without buttons that do nothing."""
        harness.need(isinstance(self.browser, browser.Browser), "only Chromium is led to where no script runs")
        html = self.html

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Security-Policy", policy)
                self.end_headers()
                self.wfile.write(html)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        for policy in self.POLICIES:
            self.browser.ask("Page.navigate", url=f"http://127.0.0.1:{server.server_address[1]}/")
            self.browser.wait("document.readyState === 'complete' && !!document.getElementById('still')")
            seen = self.browser.evaluate("document.body.innerText")
            self.assertRegex(seen, r"\d\.\d{3}\s+\d\.\d{3}\s+spin_here", policy)
            self.assertNotIn("theme", seen)
        self.open()


class Hostile(InBrowser):
    def test_names(self):
        """Names of the target's own making are text, whatever they are."""
        threads = harness.Target([harness.fixture("strange_names")])
        html = report(Recorded(threads, duration="0.3").finish().data, "-f", "html")[0]
        threads.end()
        self.open(path=write("threads.html", html))
        self.assertIn("quote\"<&>'", {t["name"] for t in self.told()["threads"]})
        for i, name in enumerate(HOSTILE_NAMES):
            target = harness.Target([harness.fixture("jit_map"), "none"])
            with open(f"/tmp/perf-{target.pid}.map", "w", encoding="utf-8") as file:
                file.write(f"1000 7fffffff0000 {name}\n")
            for _ in range(10):  # it may get no CPU for as long
                recorded = Recorded(target, duration="0.2").finish()
                if recorded.summary.truncated < recorded.summary.samples:
                    break
            html = report(recorded.data, "-f", "html", "-t")[0]
            target.end()
            os.remove(f"/tmp/perf-{target.pid}.map")
            self.open(path=write(f"hostile-{i}.html", html))
            shown = name.replace("\u202e", "_").replace("\u2066", "_")
            self.assertIn(shown, self.told("{asleep: true}")["functions"])
            for key in ("2", "3", "4", "5", "1", "ArrowDown", "ArrowDown", "d"):
                self.browser.key(key)
                self.assertEqual(self.browser.evaluate("document.querySelectorAll('main :is(img, script)').length"), 0)
            self.assertIsNone(self.browser.evaluate("window.caught"))


del InBrowser  # its tests are those of the classes above

if __name__ == "__main__":
    harness.main()
