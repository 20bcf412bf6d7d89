# SPDX-License-Identifier: MIT
"""big_dwarf.py DIRECTORY MEGABYTES: makes DIRECTORY/big, a program with at least that many MB of
DWARF: many functions and types, compiled with -g -O0. One unit is compiled, and linked many times
under other names (objcopy --prefix-symbols), so that it takes seconds."""

import os
import re
import subprocess
import sys

FUNCTIONS = 6000


def unit_source():
    """Functions that call each other, each with a struct of its own; the last spins or sleeps."""
    lines = ["static volatile unsigned long sink;"]
    for i in range(FUNCTIONS):
        members = " ".join(f"int member_{i}_{j}; struct type_{i} *next_{i}_{j};" for j in range(8))
        lines.append(f"struct type_{i} {{ {members} }};")
    lines.append("static void pause_for_ever(void) {")
    lines.append("for (;;) { long nr = 34;")  # pause, by hand: externals would be renamed
    lines.append('__asm__ volatile("syscall" : "+a"(nr) :: "rcx", "r11"); }')
    lines.append("}")
    lines.append("static void spin(int n) { if (!n) { pause_for_ever(); } while (n) { sink++; } }")
    for i in reversed(range(FUNCTIONS)):
        deeper = f"function_{i + 60}(&local, n)" if i + 60 < FUNCTIONS else "spin(n)"
        lines.append(
            f"void function_{i}(void *argument, int n) {{ struct type_{i} local = {{n}}; "
            f"struct type_{i} *other = argument; int a = n, b = local.member_{i}_0; "
            f"{{ int inner = a + b; struct type_{i} copy = local; sink += inner + "
            f"copy.member_{i}_1; }} {deeper}; sink += other != 0; }}"
        )
    return "\n".join(lines) + "\n"


def debug_bytes(path, strings=True):
    text = subprocess.run(
        ["readelf", "-SW", path], capture_output=True, text=True, check=True
    ).stdout
    sections = re.findall(r"\] \.debug_(\S+) +\S+ +\S+ +\S+ +([0-9a-f]+)", text)
    return sum(int(size, 16) for name, size in sections if strings or "str" not in name)


def run(*argv):
    subprocess.run(argv, check=True, capture_output=True)


def make(directory, megabytes):
    source, unit = (os.path.join(directory, name) for name in ("unit.c", "unit.o"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(unit_source())
    run("gcc", "-g", "-O0", "-c", source, "-o", unit)
    # Equal strings are linked once.
    n = megabytes * 1000000 // debug_bytes(unit, strings=False) + 1
    objects = []
    for i in range(n):
        objects.append(os.path.join(directory, f"unit{i}.o"))
        run("objcopy", f"--prefix-symbols=u{i}_", unit, objects[-1])
    main = os.path.join(directory, "main.c")
    with open(main, "w", encoding="utf-8") as file:
        file.write("#include <pthread.h>\n#include <signal.h>\n#include <stdio.h>\n")
        file.write("#include <sys/prctl.h>\n")
        for i in range(n):
            file.write(f"void u{i}_function_{i}(void *, int);\n")
            file.write(
                f"static void *start_{i}(void *a) {{ u{i}_function_{i}(a, {int(i == 0)}); "
                "return a; }\n"
            )
        file.write("int main(void) { pthread_t t; prctl(PR_SET_PDEATHSIG, SIGKILL);\n")
        for i in range(n):
            file.write(f"pthread_create(&t, 0, start_{i}, 0);\n")
        file.write('puts("ready"); fflush(stdout); pthread_join(t, 0); return 0; }\n')
    path = os.path.join(directory, "big")
    run("gcc", "-g", "-O0", "-pthread", main, *objects, "-o", path)
    for name in objects:
        os.unlink(name)
    return path, debug_bytes(path)


if __name__ == "__main__":
    print(*make(sys.argv[1], int(sys.argv[2])))
