#!/usr/bin/env python3
"""The house's rules that a compiler does not check.

    check_walls.py ROOT

Walls over the #include lines: ptrace is known to tracee alone; libdw to the rooms that read ELF
files; and nothing that unwinds, counts, names or writes knows tracee or target, by itself or
through a header. Files stay within 600 lines, and the top level holds what it is meant to hold.
"""

import os
import re
import shutil
import subprocess
import sys

MAX_LINES = 600

# tracee_stop has but the numbers of stops from there.
PTRACE_ROOMS = {"tracee", "tracee_stop"}
# cfi with its expressions, symbolize with its tables, and what reads modules for them.
LIBDW_ROOMS = {
    "module",
    "debug_file",
    "cfi",
    "debug_frame",
    "expression",
    "unwind_libdw",
    "symbolize",
    "symbol_table",
    "plt",
    "dwarf_unit",
    "dwarf_index",
    "split_dwarf",
    "split_package",
}
BASE_ROOMS = {"error", "log", "memory", "guard", "clock", "hash", "text", "syscall_name", "syscall_names"}
# Rooms that work on plain values, when the target may long be gone.
AWAY_FROM_TARGET = re.compile(
    r"^(advice|profile|selection|slice|ring|condition|dumper|flight|windows|metrics|profile_collect|record.*|local_files|report_command|diff_.*|profile_merge|publish|module|debug_file|debug_frame|debug_server|debug_sources|unpack|guard|cfi|expression|rule.*|unwind.*|gopclntab|go_runtime|go_switch|arch.*|symbol.*|plt|dwarf_.*|split_.*"
    r"|demangle|frame_name|syscall_name|gzip|string_table|interval_map|perf_map|writer|write_.*|protobuf|json|output)$"
)
TARGET_HEADERS = {"tracee.h", "target.h"}

TOP_LEVEL = re.compile(
    r"^(\..*|meson\.build|meson_options\.txt|src|include|man|tests|README\.md|LICENSE)$"
)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)
PTRACE_HEADER = re.compile(r"^(sys|linux|asm)/ptrace\.h$")
LIBDW_HEADER = re.compile(r"^(elfutils/.*|dwarf\.h|libdw\.h|libdwfl\.h)$")


def room(path):
    return os.path.splitext(os.path.basename(path))[0]


def includes(text):
    """The headers that the text includes: (those in <>, those in "")."""
    found = INCLUDE.findall(text)
    return ({h for kind, h in found if kind == "<"}, {h for kind, h in found if kind == '"'})


def reachable(start, headers):
    """Our headers that `start` (a set of names) leads to. headers: name -> text."""
    seen, todo = set(), list(start)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        todo.extend(includes(headers.get(name, ""))[1])
    return seen


def check_file(path, text, headers):
    """The faults of one file, as lines to print."""
    here = room(path)
    system, ours = includes(text)
    faults = []
    for header in sorted(system | ours):
        if PTRACE_HEADER.match(header) and here not in PTRACE_ROOMS:
            faults.append(f"{path}: <{header}> belongs to {', '.join(sorted(PTRACE_ROOMS))} alone")
        if LIBDW_HEADER.match(header) and here not in LIBDW_ROOMS:
            faults.append(f"{path}: <{header}> belongs to {', '.join(sorted(LIBDW_ROOMS))} alone")
    if AWAY_FROM_TARGET.match(here):
        for header in sorted(reachable(ours, headers) & TARGET_HEADERS):
            faults.append(f"{path}: leads to {header}, but works on plain values")
    if here in BASE_ROOMS:
        for header in sorted(h for h in ours if room(h) not in BASE_ROOMS):
            faults.append(f"{path}: base includes {header} of a floor above")
    return faults


def check_length(path, text):
    lines = text.count("\n")
    return [f"{path}: {lines} lines, more than {MAX_LINES}"] if lines > MAX_LINES else []


def self_test():
    """A check that cannot fail checks nothing."""
    headers = {"a.h": '#include "b.h"\n', "b.h": '#include "target.h"\n'}
    bad = [
        ("src/unwind.c", '#include "a.h"\n'),
        ("src/write_pprof.c", '#include "tracee.h"\n'),
        ("src/profile.c", '# include  "target.h"\n'),
        ("src/sampler.c", "#include <sys/ptrace.h>\n"),
        ("src/main.c", "#include <elfutils/libdwfl.h>\n"),
        ("src/unwind.c", "#include <dwarf.h>\n"),
        ("include/error.h", '#include "profile.h"\n'),
    ]
    good = [
        ("src/tracee.c", '#include <sys/ptrace.h>\n#include "target.h"\n'),
        ("src/module.c", "#include <elfutils/libdwfl.h>\n"),
        ("src/sampler.c", '#include "a.h"\n'),
        ("include/hash.h", '#include "memory.h"\n'),
    ]
    for path, text in bad:
        assert check_file(path, text, headers), path
    for path, text in good:
        assert not check_file(path, text, headers), path
    assert check_length("x.c", "\n" * (MAX_LINES + 1)) and not check_length("x.c", "\n" * MAX_LINES)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def source_files(root, *tops):
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cc", ".cpp", ".py", ".sh", ".go", ".rs")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def top_level_names(root):
    """What is committed at the top level; without git, nothing to say."""
    if not shutil.which("git"):
        return set()
    git = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True)
    return {path.split("/")[0] for path in git.stdout.splitlines()} if git.returncode == 0 else set()


def main():
    root = sys.argv[1]
    self_test()
    headers = {
        os.path.basename(p): read(os.path.join(root, p)) for p in source_files(root, "include")
    }
    faults = []
    n_files = 0
    for path in source_files(root, "src", "include"):
        faults += check_file(path, read(os.path.join(root, path)), headers)
        n_files += 1
    for path in source_files(root, "src", "include", "tests"):
        faults += check_length(path, read(os.path.join(root, path)))
    faults += [
        f"{name}: not meant to be at the top level"
        for name in sorted(top_level_names(root))
        if not TOP_LEVEL.match(name)
    ]
    for fault in faults:
        print(fault)
    if not n_files:
        print("no source files found")
    return 1 if faults or not n_files else 0


if __name__ == "__main__":
    sys.exit(main())
