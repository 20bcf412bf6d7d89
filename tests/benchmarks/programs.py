# SPDX-License-Identifier: MIT
"""Programs of the system as targets: deep, busy, and long enough for a benchmark. Those that are
not installed are left out, and said on stderr."""

import os
import re
import shutil
import subprocess
import sys

import bench

TARGETS = os.path.join(bench.HERE, "targets")
SQL = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
    "SELECT count(*), sum(length(printf('%d', x))) FROM (SELECT x FROM c LIMIT 1000000000)"
)
PERL = (
    "sub f { my $n = shift; return $n < 2 ? 1 : f($n - 1) + f($n - 2) } "
    "while (1) { my @a = sort { f(8); $a <=> $b } 1 .. 100; join(',', @a) =~ /(\\d+,)*/ }"
)


def cxx_source():
    """A file that keeps a compiler busy for a minute or so."""
    path = os.path.join(bench.SCRATCH, "large.cc")
    if os.path.exists(path):
        return path
    with open(path, "w", encoding="utf-8") as file:
        for header in ("algorithm", "functional", "map", "string", "vector"):
            file.write(f"#include <{header}>\n")
        for i in range(2000):
            file.write(
                f"struct K{i} {{ int a, b; bool operator<(const K{i} &o) const "
                "{ return a < o.a; } };\n"
                f"int f{i}(int n) {{ std::map<K{i}, std::vector<std::string>> m; "
                f"for (int i = 0; i < n; i++) m[K{i}{{i, n}}].push_back(std::to_string(i)); "
                f"std::vector<K{i}> v; for (auto &p : m) v.push_back(p.first); "
                "std::sort(v.begin(), v.end()); "
                f"std::function<int(K{i})> g = [&](K{i} k) {{ return k.a + (int)m.size(); }}; "
                "return g(v[0]); }\n"
            )
    return path


def compiler(driver, pattern):
    """The command line of the compiler proper that the driver would start."""
    argv = [driver, "-###", "-O2", "-S", cxx_source(), "-o", os.devnull]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stderr
    line = next(line for line in text.splitlines() if re.search(pattern, line))
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]


def command(name):
    """The argv of that program, or None."""
    makers = {
        "through qsort": lambda: [bench.harness.fixture("through_qsort")],
        "python3": lambda: [bench.PYTHON, os.path.join(TARGETS, "deep.py"), "1"],
        "python3, 10 threads": lambda: [bench.PYTHON, os.path.join(TARGETS, "deep.py"), "10"],
        "sqlite3": lambda: [need("sqlite3"), ":memory:", SQL],
        "perl": lambda: [need("perl"), "-e", PERL],
        "cc1plus": lambda: compiler(need("g++"), "cc1plus "),
        "clang": lambda: compiler(need("clang++", "clang"), '"-cc1"'),
        "java, 40 threads": lambda: [need("java"), os.path.join(TARGETS, "Crowd.java"), "20"],
    }
    try:
        return makers[name]()
    except (FileNotFoundError, StopIteration, subprocess.CalledProcessError) as error:
        print(f"{name} is left out: {error}", file=sys.stderr)
        return None


def need(*names):
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    raise FileNotFoundError(f"{names[0]} is not installed")


def start(name):
    """The running target, or None."""
    argv = command(name)
    settle_s = {"java": 5, "cc1plus": 3, "clang": 3}.get(name.split(",")[0], 1)
    return argv and bench.Command(argv, settle_s=settle_s)
