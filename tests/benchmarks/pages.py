# SPDX-License-Identifier: MIT
"""Figure 10: one profile in a browser: the page beside speedscope, d3-flame-graph, flamegraph.pl and
async-profiler's page, all in the same Chromium: how large it is, how long until it is there, zooms
and finds.

    python3 tests/benchmarks/pages.py [NODES|STACKS.folded [TOOL...]]

The others come from npm, by name, into a directory that goes with the benchmark; PAGES_NPM names one
that has them already. FLAMEGRAPH names flamegraph.pl, and ASYNC_PROFILER the jar of its jfr-converter
(Maven has it); they are left out where they are not found.
An action's time is that until the second frame after it, so that none is below one frame's time,
17 ms. speedscope has no way to be asked for a zoom or a search from outside: it is only opened.
"""

import base64
import collections
import json
import os
import random
import shutil
import subprocess
import sys
import time

import bench
import browser

PROFILE = sys.argv[1] if len(sys.argv) > 1 else "100000"
TOOLS = sys.argv[2:]
PACKAGES = ("speedscope", "d3-flame-graph", "d3")
DEPTH, CHILDREN, NAMES, WANTED = 40, 3, 2000, "function_77$"

D3_PAGE = """<!doctype html><meta charset="utf-8"><style>{style}</style><div id="chart"></div>
<script>{d3}</script><script>{graph}</script><script>
const chart = (flamegraph.default ?? flamegraph)().width(1260).cellHeight(18).minFrameSize(1);
const data = {data};
d3.select('#chart').datum(data).call(chart);
const rootOf = () => d3.selectAll('g').data()[0];
window.isReady = true;
</script>"""
ACTION = """(async () => {{
const start = performance.now();
{action};
await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
return performance.now() - start;
}})()"""


def make_stacks(n_nodes):
    """{stack: count}: a tree of about as many nodes, deep and wide, the same each time."""
    chance, stacks = random.Random(1), collections.Counter()
    seen, children = 0, collections.defaultdict(list)
    while seen < n_nodes:
        path, here = [], ()
        for _ in range(chance.randrange(3, DEPTH)):
            known = children[here]
            if len(known) < CHILDREN and (not known or chance.random() < 0.3):
                known.append(f"function_{chance.randrange(NAMES)}")
                seen += 1
            path.append(chance.choice(known))
            here = tuple(path)
        stacks[";".join(path)] += chance.randrange(1, 20)
    return stacks


def make_tree(stacks):
    root = {"name": "all", "value": 0, "children": {}}
    for stack, count in stacks.items():
        here = root
        here["value"] += count
        for name in stack.split(";"):
            here = here["children"].setdefault(name, {"name": name, "value": 0, "children": {}})
            here["value"] += count

    def listed(node):
        return {**node, "children": [listed(child) for child in node["children"].values()]}

    return listed(root)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(name, text):
    path = os.path.join(bench.SCRATCH, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def packages():
    """Where npm put them; None: it could not."""
    place = os.environ.get("PAGES_NPM")
    if place:
        return os.path.join(place, "node_modules")
    if not shutil.which("npm"):
        return None
    place = os.path.join(bench.SCRATCH, "npm")
    os.mkdir(place)
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", *PACKAGES], cwd=place,
                          capture_output=True, check=False)  # fmt: skip
    return os.path.join(place, "node_modules") if done.returncode == 0 else None


def own(folded):
    environment = {**os.environ, "XDG_RUNTIME_DIR": bench.SCRATCH, "SSH_TTY": "x"}
    start = time.monotonic()
    done = subprocess.run([bench.harness.PROFILER, "view", "-q", folded], env=environment,
                          capture_output=True, text=True, check=True)  # fmt: skip
    made_s, path = time.monotonic() - start, done.stdout.strip()
    return {
        "url": "file://" + path, "size": os.path.getsize(path), "made_s": made_s, "ready": "window.profilerTest",
        "zoom": "profilerApp.go({zoom: profilerApp.graph.rows[3][0].node})",
        "reset": "profilerApp.go({zoom: 0})", "search": f"profilerApp.search('{WANTED}')",
    }  # fmt: skip


def d3(folded, modules, stacks):
    del folded
    graph = os.path.join(modules, "d3-flame-graph", "dist")
    parts = {
        "style": read(f"{graph}/d3-flamegraph.css"), "graph": read(f"{graph}/d3-flamegraph.umd.min.js"),
        "d3": read(f"{modules}/d3/dist/d3.min.js"), "data": json.dumps(make_tree(stacks)),
    }  # fmt: skip
    text = D3_PAGE
    for name, part in parts.items():
        text = text.replace("{%s}" % name, part)
    path = write("d3.html", text)
    return {
        "url": "file://" + path, "size": os.path.getsize(path), "ready": "window.isReady",
        "zoom": "chart.zoomTo(rootOf().children[0].children[0])", "reset": "chart.resetZoom()",
        "search": f"chart.search('{WANTED}')",
    }  # fmt: skip


def speedscope(folded, modules):
    release = os.path.join(modules, "speedscope", "dist", "release")
    data = base64.b64encode(read(folded).encode()).decode()
    script = write("profile.js", f"speedscope.loadFileFromBase64('x.folded', '{data}')")
    size = sum(os.path.getsize(os.path.join(release, name)) for name in os.listdir(release)
               if name.endswith((".js", ".wasm", ".html", ".css", ".woff2")))  # fmt: skip
    return {
        "url": f"file://{release}/index.html#localProfilePath={script}",
        "size": size + os.path.getsize(script), "ready": "document.title.includes('x.folded')",
    }  # fmt: skip


def flamegraph(folded):
    program = os.environ.get("FLAMEGRAPH") or shutil.which("flamegraph.pl")
    if not program:
        return None
    start = time.monotonic()
    done = subprocess.run(["perl", program, "--width=1260", folded], capture_output=True, text=True, check=True)
    made_s, path = time.monotonic() - start, write("graph.svg", done.stdout)
    return {
        "url": "file://" + path, "size": os.path.getsize(path), "made_s": made_s, "ready": "typeof search === 'function'",
        "zoom": "zoom(document.querySelectorAll('#frames > g')[2])", "reset": "unzoom()",
        "search": f"search('{WANTED}')",
    }  # fmt: skip


def async_profiler(folded):
    jar = os.environ.get("ASYNC_PROFILER")
    if not jar:
        return None
    path, start = os.path.join(bench.SCRATCH, "async.html"), time.monotonic()
    subprocess.run(["java", "-jar", jar, folded, path], capture_output=True, check=True)
    return {
        "url": "file://" + path, "size": os.path.getsize(path), "made_s": time.monotonic() - start,
        "ready": "root", "zoom": "render(levels[3][0])", "reset": "render()", "search": f"search('{WANTED}')",
    }  # fmt: skip


def read_stacks(path):
    stacks = collections.Counter()
    for line in read(path).splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[stack] += int(count)
    return stacks


def measure(window, tool):
    """Medians in ms: until it is there, a zoom, all again, a search; NULL: it cannot be asked."""
    times = collections.defaultdict(list)
    for _ in range(bench.ROUNDS):
        start = time.monotonic()
        window.open(tool["url"], ready=tool["ready"])
        times["ready"].append(1e3 * (time.monotonic() - start))
        for action in ("zoom", "reset", "search"):
            if action in tool:
                times[action].append(window.evaluate(ACTION.format(action=tool[action])))
    return {name: bench.median(found) for name, found in times.items()}


def make_tools():
    """{name: its page}, of those that there are."""
    stacks = make_stacks(int(PROFILE)) if PROFILE.isdigit() else read_stacks(PROFILE)
    folded = write("x.folded", "".join(f"{stack} {count}\n" for stack, count in stacks.items()))
    makers = {
        "profiler view": lambda: own(folded), "flamegraph.pl": lambda: flamegraph(folded),
        "async-profiler": lambda: async_profiler(folded),
        "d3-flame-graph": lambda: d3(folded, modules, stacks), "speedscope": lambda: speedscope(folded, modules),
    }  # fmt: skip
    wanted = {name: make for name, make in makers.items() if not TOOLS or name in TOOLS}
    modules = packages() if {"d3-flame-graph", "speedscope"} & wanted.keys() else None
    if not modules:
        for name in ("d3-flame-graph", "speedscope"):
            wanted.pop(name, None)
    return {name: make() for name, make in wanted.items()}


def main():
    tools = make_tools()
    table = bench.Table(
        f"One profile ({os.path.basename(PROFILE)}) in Chromium (medians of {bench.ROUNDS}, ms)",
        "figure", "tool", "size, KB", "made", "ready", "zoom", "all again", "search",
    )  # fmt: skip
    window = browser.Browser()
    try:
        for name, tool in tools.items():
            if not tool:
                continue
            times = measure(window, tool)
            cells = [f"{times[key]:.0f}" if key in times else "" for key in ("ready", "zoom", "reset", "search")]
            made = f"{1e3 * tool['made_s']:.0f}" if "made_s" in tool else ""
            table.row("10", name, f"{tool['size'] / 1e3:.0f}", made, *cells)
    finally:
        window.close()


if __name__ == "__main__":
    main()
