#!/usr/bin/env python3
"""Writes the rows of a table of system calls' names, as the compiler's headers have them.

    syscall_names.py OUTPUT COMPILER [ARGUMENT...]
"""

import re
import subprocess
import sys


def main():
    output, compiler = sys.argv[1], sys.argv[2:]
    run = subprocess.run(
        [*compiler, "-E", "-dM", "-x", "c", "-"],
        input="#include <asm/unistd.h>\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    calls = re.findall(r"^#define __NR_(\w+) (\d+)$", run.stdout, re.M)
    if len(calls) < 300:
        sys.exit(f"only {len(calls)} system calls found")
    with open(output, "w", encoding="utf-8") as file:
        for name, number in sorted(calls, key=lambda call: int(call[1])):
            file.write(f'[{number}] = "{name}",\n')


if __name__ == "__main__":
    main()
