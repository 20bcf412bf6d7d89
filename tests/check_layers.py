#!/usr/bin/env python3
"""The rules of the source tree that a compiler does not check.

    check_layers.py ROOT

ptrace is known to five files of the layer trace, libdw to the files that read ELF files, and
registers, instructions and system calls' numbers to the layer arch; languages are named in the layer
languages alone. Each folder of src and include
is a layer of src/meson.build, whose include directories keep the direction between layers: so no
#include goes round them by a path. src/README.md has the same layers in the same order. The top
level holds what it is meant to hold. What a header declares is used by more than one file.
"""

import os
import re
import shutil
import subprocess
import sys

# tracee_stop has only the numbers of stops from there.
PTRACE_FILES = {"tracee", "tracee_registers", "tracee_rescue", "tracee_rest", "tracee_stop"}
# cfi with its expressions, symbolize with its tables, and what reads modules for them.
LIBDW_FILES = {
    "module",
    "debug_file",
    "cfi",
    "expression",
    "symbolize",
    "symbol_table",
    "function_range",
    "data_symbol",
    "plt",
    "dwarf_index",
    "split_package",
    "go_offsets",
    "v8_layout",
}

TOP_LEVEL = re.compile(
    r"^(\..*|meson\.build|meson_options\.txt|src|include|man|tests|README\.md|LICENSE)$"
)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)
PTRACE_HEADER = re.compile(r"^(sys|linux|asm)/ptrace\.h$")
LIBDW_HEADER = re.compile(r"^(elfutils/.*|dwarf\.h|libdw\.h|libdwfl\.h)$")


# What x86 alone has: registers, instructions, and names of it in the C library's and ELF's headers.
MACHINE_NAME = re.compile(
    r"""\b(?:
        [re]?[abcd]x | [re][sd]i | [re][sb]p | rip | eflags | orig_rax | [fg]s_base | # lower case
        REG_R[A-Z0-9]+ | REG_E[A-Z]{2} | R_X86_64_\w+ | EM_(?:X86_64|386|AARCH64) | SHT_X86_64_\w+ |
        AUDIT_ARCH_\w+ | user_regs_struct | gregs | __NR_\w+ | __x86_64__ | __aarch64__ |
        \w*(?:x86|i386|amd64)\w*
    )\b | \\x0f\\x05 | 0x0f,\s*0x05 | 0xcd,\s*0x80 | \\x4[89c]\\x8[9b]""",
    re.X,
)
PROTOTYPE = re.compile(r"^(?!static|typedef)[a-z][\w\s*]*\b(\w+)\(", re.M)
WORD = re.compile(r"[a-z]\w*")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def check_machine(path, text):
    """Outside of the layer arch no code names what one processor has. Comments may, as evidence."""
    if path.split(os.sep)[1] == "arch" or not path.endswith((".c", ".h")):
        return []
    faults = []
    for line, code in enumerate(blank_comments(text).split("\n"), 1):
        found = MACHINE_NAME.search(code)
        if found:
            faults.append(f"{path}:{line}: {found.group()} belongs to the layer arch")
    return faults


# What belongs to a folder of src/languages. Names of the machine's own (C, C++, Rust) do not count.
LANGUAGE_NAME = re.compile(
    r"""java|hotspot|jvm|python|(?<!c)pypy|goroutine|goid|golang|pclntab|php|erlang|luajit|haskell|nodejs|
        ruby|(?<![a-z])(?:beam|ghc|v8|perl)(?![a-z])""",
    re.X | re.I,
)
# A processor's part of a language is arch's: its machine code.
LANGUAGE_LAYERS = {"languages", "arch"}
# What users type and read in the help: options' names, values and examples. And a format of symbols.
LANGUAGE_FILES = {"option_rows", "verb", "agent_command", "agent_rules", "gopclntab"}
# A format of symbols and rules in files, as DWARF is one; by name to those who ask for it.
SYMBOL_FORMATS = re.compile(r"\w*gopclntab\w*")
SYMBOL_LAYERS = {"symbols", "unwind"}


def check_languages(path, text):
    """Outside of the layer languages no code names a language. Comments may, as examples."""
    layer = path.split(os.sep)[1]
    if layer in LANGUAGE_LAYERS or file_name(path) in LANGUAGE_FILES or not path.endswith((".c", ".h")):
        return []
    faults = []
    for line, code in enumerate(blank_comments(text).split("\n"), 1):
        code = SYMBOL_FORMATS.sub("", code) if layer in SYMBOL_LAYERS else code
        found = LANGUAGE_NAME.search(code)
        if found:
            faults.append(f"{path}:{line}: {found.group()} belongs to the layer languages")
    return faults


def blank_comments(text):
    return COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)


def file_name(path):
    return os.path.splitext(os.path.basename(path))[0]


def check_includes(path, text):
    """The faults of one file, as lines to print."""
    here = file_name(path)
    faults = []
    for kind, header in INCLUDE.findall(text):
        if PTRACE_HEADER.match(header) and here not in PTRACE_FILES:
            faults.append(f"{path}: <{header}> belongs to {', '.join(sorted(PTRACE_FILES))} alone")
        if LIBDW_HEADER.match(header) and here not in LIBDW_FILES:
            faults.append(f"{path}: <{header}> belongs to {', '.join(sorted(LIBDW_FILES))} alone")
        if kind == '"' and "/" in header:
            faults.append(f'{path}: "{header}" is a path: by name alone it is found only where allowed')
    return faults


def check_layers(build, readme, folders):
    """src/meson.build, src/README.md and the folders have the same layers. folders: paths of files."""
    built = re.findall(r"^  '(\w+)': \[", build.partition("layers = {")[2].partition("\n}")[0], re.M)
    table = readme.partition("| layer |")[2].partition("\n\n")[0]
    told = re.findall(r"^\| `(\w+)` \|", table, re.M)
    faults = []
    if told != built[::-1]:
        faults.append(f"src/README.md: the layers are {told}, in src/meson.build from the top {built[::-1]}")
    for path in folders:
        parts = path.split(os.sep)
        if parts[1] not in built:
            faults.append(f"{path}: lies in no layer")
    return faults


def check_license(path, text):
    mark = "// SPDX-License-Identifier: MIT\n"
    return [] if text.startswith(mark) else [f"{path}: does not begin with {mark.strip()}"]


def check_public(texts):
    """What a header declares is used elsewhere too, if only by a test: else it is static. texts: of
    all files of C, by path."""
    users = {}
    for path, text in texts.items():
        for word in set(WORD.findall(COMMENT.sub("", text))):
            users.setdefault(word, set()).add(file_name(path))
    return [
        f"{path}: {name} is used in {file_name(path)}.c alone: make it static, or remove it"
        for path, text in texts.items()
        if path.endswith(".h") and path.split(os.sep)[0] in ("src", "include")
        for name in PROTOTYPE.findall(COMMENT.sub("", text))
        if len(users[name]) == 1 and WORD.findall(COMMENT.sub("", text)).count(name) == 1
    ]


def self_test():
    """A check that cannot fail checks nothing."""
    bad = [
        ("src/sample/sampler.c", "#include <sys/ptrace.h>\n"),
        ("src/command/main.c", "#include <elfutils/libdwfl.h>\n"),
        ("src/unwind/unwind.c", "# include  <dwarf.h>\n"),
        ("src/write/writer.c", '#include "../trace/tracee.h"\n'),
    ]
    good = [
        ("src/trace/tracee.c", '#include <sys/ptrace.h>\n#include "target.h"\n'),
        ("src/symbols/module.c", "#include <elfutils/libdwfl.h>\n"),
    ]
    for path, text in bad:
        assert check_includes(path, text), path
    for path, text in good:
        assert not check_includes(path, text), path
    for code in ("x = user->orig_rax;", 'f("\\x0f\\x05")', "struct user_regs_struct r;", "REG_RIP"):
        assert check_machine("src/trace/x.c", code) and not check_machine("src/arch/x.c", code), code
    assert not check_machine("src/trace/x.c", "a = 1; // rax\n/* rsp */ const char *sip;")
    for code in ('f("[java]");', "bool is_goroutine;", "x->goid = 1;", "PYTHON_LOCK"):
        assert check_languages("src/sample/x.c", code), code
        assert not check_languages("src/languages/go/x.c", code), code
    assert not check_languages("src/sample/x.c", "a = 1; // as in Java")
    assert not check_languages("src/symbols/x.c", "module->gopclntab = 0;")
    assert check_languages("src/write/x.c", "module->gopclntab = 0;")
    build = "layers = {\n  'base': [],\n  'top': ['base'],\n}\n"
    readme = "| layer | holds |\n|---|---|\n| `top` | x |\n| `base` | y |\n\n"
    assert not check_layers(build, readme, ["src/base/x.c"])
    assert check_layers(build, readme, ["src/x.c"])
    assert check_layers(build, readme.replace("`top`", "`other`"), [])
    assert check_license("x.c", "// x\n")
    texts = {"src/x.h": "struct x *\nx_do(void);\n", "src/x.c": "struct x *x_do(void) {}\n"}
    assert check_public(texts)
    assert not check_public({**texts, "tests/unit/test_x.c": "x_do();"})


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
    faults = []
    files = list(source_files(root, "src", "include"))
    readme = read(os.path.join(root, "src", "README.md"))
    for path in files:
        text = read(os.path.join(root, path))
        faults += check_includes(path, text) + check_machine(path, text)
        faults += check_languages(path, text)
        if path.endswith((".c", ".h")):
            faults += check_license(path, text)
    tests = source_files(root, os.path.join("tests", "unit"), os.path.join("tests", "fuzz"))
    faults += check_public(
        {path: read(os.path.join(root, path)) for path in [*files, *tests] if path.endswith((".c", ".h"))}
    )
    faults += check_layers(read(os.path.join(root, "src", "meson.build")), readme, files)
    faults += [
        f"{name}: not meant to be at the top level"
        for name in sorted(top_level_names(root))
        if not TOP_LEVEL.match(name)
    ]
    for fault in faults:
        print(fault)
    if not files:
        print("no source files found")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
