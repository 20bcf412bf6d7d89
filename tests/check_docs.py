#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The man page and the README say what the command says of itself.

    check_docs.py PROFILER ROOT

--help is made of the table of options, each verb's own. Here: the man page's OPTIONS, and the section
of a verb that has one (DUMP), are the same options with the same values' names; the exit statuses of error.h are in the man page and the README; every profiler
command line in the README and in the man page uses options that exist, rightly; every option that
the README's prose names is there, and so is every test that it names for a promise; the man page has
the same promises. And the words of profiles: why a stack is truncated is in the man page; each kind of wait
has its place there, a colour on the page, and a letter and a colour in top; each format is in FORMATS, in --help and in the completions.
"""

import os
import re
import shlex
import subprocess
import sys

VERB_ROW = re.compile(r"^  ([a-z]+) [A-Z].{3,}", re.M)
HELP_ROW = re.compile(r"^  (?:-(\w), |    )--([\w-]+)(?:=(\S+))?")
MAN_ROW = re.compile(r"^(?:\*-(\w)\*(?: _\S+_)?, )?\*--([\w-]+)\*(?:=_(\S+)_)?$")
STACK_END = re.compile(r'\[STACK_(?!COMPLETE)\w+\] = "([^"]+)"')
WAIT_KIND = re.compile(r'\[WAIT_KIND_\w+\] = "(\w+)"')
STATUS = re.compile(r"\bEXIT_STATUS_\w+ = (\d+)")


def rows(text, pattern):
    """{long name: (letter or "", value's name or "")} of an options list."""
    found = {}
    for line in text.splitlines():
        match = pattern.match(line)
        if match:
            found[match[2]] = (match[1] or "", match[3] or "")
    return found


def section(text, title, mark="#"):
    match = re.search(rf"^{mark} {title}\n(.*?)(?=^{mark} |\Z)", text, re.M | re.S)
    return match[1] if match else ""


def compare_options(verb, helped, manned):
    """A verb's options of --help are those of the man page; None: of all verbs."""
    say = f"{verb} " if verb else ""
    faults = [f"man page: {say}--{name} of --help is missing" for name in sorted(helped.keys() - manned.keys())]
    if not verb:
        faults += [f"man page: --{name} is not in --help" for name in sorted(manned.keys() - helped.keys())]
    for name in sorted(helped.keys() & manned.keys()):
        if helped[name] != manned[name]:
            faults.append(f"man page: {say}--{name}: {manned[name]}, but in --help {helped[name]}")
    return faults


def check_verbs(verbs, man):
    """{verb: options of its --help} against the man page."""
    shared = rows(section(man, "OPTIONS"), MAN_ROW)
    faults = []
    for verb, options in verbs.items():
        own = rows(section(man, verb.upper()), MAN_ROW) if verb else {}
        faults += compare_options(verb or "profiler", options, {**shared, **own})
        faults += [f"man page: {verb} --{n} is not in its --help" for n in sorted(own.keys() - options.keys())]
    every = {name: row for options in verbs.values() for name, row in options.items()}
    return faults + [f"man page: --{n} is not in --help" for n in sorted(shared.keys() - every.keys())]


def check_command(words, verbs):
    """The faults of a profiler command line, its name taken off."""
    options = verbs[""]
    if words and words[0] in verbs:
        # Its options may stand before and after its other words.
        options, words = verbs[words[0]], sorted(words[1:], key=lambda word: word[0] != "-")
    letters = {letter: name for name, (letter, _) in options.items() if letter}
    words = list(words)
    while words and words[0].startswith("-") and words[0] not in ("-", "--"):
        word = words.pop(0)
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            if name not in options:
                return [f"no option --{name}"]
            if options[name][1] and not value and not words:
                return [f"--{name} without a value"]
            if options[name][1] and "=" not in word:
                words.pop(0)
            continue
        for i, letter in enumerate(word[1:], 2):
            if letter not in letters:
                return [f"no option -{letter}"]
            if options[letters[letter]][1]:
                if i == len(word):
                    if not words:
                        return [f"-{letter} without a value"]
                    words.pop(0)
                break
    return []


def commands(text):
    """The words after each `profiler` in command position in the text's code."""
    code = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    code += re.findall(r"^\t(?:# )?((?:\w+=\S+ )?profiler .*)$", text, re.M)
    code += re.findall(r"`((?:\./build/)?profiler [^`\n]*)`", text)
    for block in code:
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"\|+|&&|&|;", re.sub(r"\$\(.*?\)", "VALUE", line)):
                try:
                    words = shlex.split(part.replace("\\*", "*"), comments=True)
                except ValueError:  # a quoted word that goes on in the next line
                    words = part.split()
                while words and re.match(r"^(sudo|\w+=.*|[$#>])$", words[0]):
                    words.pop(0)
                if words and os.path.basename(words[0]) == "profiler":
                    yield part.strip(), words[1:]


def check_text(name, text, verbs):
    faults = []
    n_commands = 0
    for line, words in commands(text):
        n_commands += 1
        if any("[OPTION" in word for word in words):
            continue
        faults += [f"{name}: `{line}`: {fault}" for fault in check_command(words, verbs)]
    if not n_commands:
        faults.append(f"{name}: shows no command")
    # In prose an option of ours stands alone in its backquotes.
    every = {option: row for options in verbs.values() for option, row in options.items()}
    for code in re.findall(r"`(-[^`\n]*)`", text):
        faults += [f"{name}: `{code}`: {f}" for f in check_command([code.split()[0], "x"], {"": every})]
    return faults


def check_statuses(name, text, statuses):
    return [
        f"{name}: exit status {status} is missing"
        for status in statuses
        if not re.search(rf"(^|\|)\s*[*`]*{status}[*`]*\b", text, re.M)
    ]


def check_promise(root, row, n_exceptions):
    """Each promise's tests are there: classes or test functions of a file of tests."""
    faults = []
    _, promise, tests, exceptions, _ = row.split("|")
    for test in tests.split(";"):
        name, _, parts = test.strip().partition(": ")
        path = name if "/" in name else f"tests/torture/test_{name}.py"
        if not os.path.exists(os.path.join(root, path)):
            faults.append(f"README.md: {promise.strip()}: there is no {path}")
            continue
        text = read(root, path) if path.endswith(".py") else ""
        for part in filter(None, parts.split(", ")):
            pattern = rf"^class {part}\(|^    def test_{part.replace(' ', '_')}\("
            if not re.search(pattern, text, re.M):
                faults.append(f"README.md: {promise.strip()}: {path} has no test {part!r}")
    numbers = [int(number) for number in exceptions.split(",") if number.strip()]
    faults += [f"README.md: no exception {n}" for n in numbers if not 0 < n <= n_exceptions]
    return faults


def bare(text):
    """Its words, without any markup."""
    return " ".join(re.findall(r"[A-Za-z0-9]+", text))


def check_promises(root, readme, man):
    table = section(readme, "What it promises", "##")
    rows_ = [line for line in table.splitlines() if line.startswith("| ")][1:]
    n_exceptions = len(re.findall(r"^\d+\. ", table, re.M))
    faults = [fault for row in rows_ for fault in check_promise(root, row, n_exceptions)]
    exceptions = re.split(r"^\d+\. ", table, flags=re.M)[1:]
    manned = bare(section(man, "PROMISES"))
    faults += [f"man page: not the README's: {t}" for t in rows_ + exceptions if bare(t) not in manned]
    return faults if rows_ else ["README.md: promises nothing"]


def self_test():
    helped = "  -p, --pid=PID     x\n      --lines       y\n  -t, --threads     z\n"
    manned = "*-p* _PID_, *--pid*=_PID_\n\ttext\n*--lines*\n"
    options = rows(helped, HELP_ROW)
    assert options == {"pid": ("p", "PID"), "lines": ("", ""), "threads": ("t", "")}
    assert rows(manned, MAN_ROW) == {"pid": ("p", "PID"), "lines": ("", "")}
    verbs = {"": options, "dump": {"json": ("", ""), "pid": ("p", "PID")}}
    assert compare_options("", options, rows(manned, MAN_ROW))
    assert compare_options("", options, {**options, "more": ("", "")})
    assert compare_options("dump", verbs["dump"], options)
    assert not compare_options("dump", {"pid": ("p", "PID")}, options)
    assert check_verbs(verbs, f"# OPTIONS\n{manned}*-t*, *--threads*\n")
    assert not check_verbs(verbs, f"# OPTIONS\n{manned}*-t*, *--threads*\n# DUMP\n*--json*\n# END\n")
    assert check_verbs(verbs, f"# OPTIONS\n{manned}*-t*, *--threads*\n# DUMP\n*--json*\n*--lines*\n# END\n")
    assert VERB_ROW.findall("Usage: x\n  dump PID         all stacks\n  -p, --pid=PID     x\n") == ["dump"]
    assert check_text("t", "```sh\nprofiler -p 1 --nonsense | x\n```\n", verbs)
    assert check_text("t", "```sh\nx; ./build/profiler -tZ ls\n```\n", verbs)
    assert check_text("t", "```sh\nprofiler ls\n```\nand `--off` is\n", verbs)
    assert check_text("t", "```sh\nprofiler dump 1 --lines\n```\n", verbs)
    assert not check_text("t", "```sh\nprofiler dump 1 --json\n```\n", verbs)
    assert not check_text("t", "```sh\nsudo profiler -tp 1 --lines ls --any\n```\n`-p`\n", verbs)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def help_of(profiler, *verb):
    run = subprocess.run([profiler, *verb, "--help"], capture_output=True, text=True, check=True)
    return run.stdout


def helped_formats(helped):
    return helped.partition("--format=FORMAT")[2].partition("default:")[0]


def check_completions(root, formats):
    """The shells' completions list the formats; they do not read them from --help."""
    return [
        f"{name}: no format {form}"
        for name in ("_profiler", "profiler.bash", "profiler.fish")
        for form in sorted(formats)
        if not re.search(rf"\b{form}\b", read(root, "src", "completions", name))
    ]


def check_words(root, man, helped):
    """The words that the sources have for what a profile shows."""
    ends = STACK_END.findall(read(root, "src", "profile", "profile.c"))
    kinds = WAIT_KIND.findall(read(root, "src", "profile", "wait_kind.c"))
    looks = read(root, "src", "write", "page", "draw.js").partition("const LOOKS")[2].partition("};")[0]
    screen = read(root, "src", "top", "top_ui.c")
    letters = read(root, "src", "top", "top_model.c")
    formats = read(root, "include", "write", "writer.h").partition("#define WRITER_NAMES ")[2].partition("\n")[0]
    writers = set(re.findall(r"\w+", formats)) - {"or"}
    if not ends or not kinds or not writers:
        return ["no ends of stacks, kinds of waits or formats found"]
    return [
        *(f"man page: FORMATS has no '{end}'" for end in ends if end not in section(man, "FORMATS")),
        *(f"man page: WAITS has no '{kind}'" for kind in kinds if kind not in section(man, "WAITS")),
        *(f"draw.js: LOOKS has no {kind}" for kind in kinds if f"\t{kind}:" not in looks),
        *(f"top_model.c: no letter for {kind}" for kind in kinds if f"[WAIT_KIND_{kind.upper()}]" not in letters),
        *(f"top_ui.c: no colour for {kind}" for kind in kinds if f"[WAIT_KIND_{kind.upper()}]" not in screen),
        *(f"top_ui.c: help has no {kind}" for kind in kinds if not re.search(rf"[ \"][A-Z] {kind}\b", screen)),
        *(f"man page: TOP has no letter for {kind}" for kind in kinds
          if not re.search(rf"\b[A-Z] {kind}\b", section(man, "TOP"))),
        *(f"man page: FORMATS has no {name}" for name in sorted(writers) if f"*{name}*" not in section(man, "FORMATS")),
        *(f"--help: --format has no {name}" for name in sorted(writers) if name not in helped_formats(helped)),
        *check_completions(root, writers),
    ]


def main():
    profiler, root = sys.argv[1:3]
    self_test()
    helps = {"": help_of(profiler)}
    helps.update({verb: help_of(profiler, verb) for verb in VERB_ROW.findall(helps[""])})
    verbs = {verb: rows(text, HELP_ROW) for verb, text in helps.items()}
    man = read(root, "man", "profiler.1.scd")
    readme = read(root, "README.md")
    statuses = STATUS.findall(read(root, "include", "base", "error.h"))

    faults = check_verbs(verbs, man)
    for verb, text in helps.items():
        if max(map(len, text.splitlines())) > 80:
            faults.append(f"{verb or 'profiler'} --help is wider than 80 columns")
        if verb and f"*profiler* *{verb}*" not in section(man, "SYNOPSIS"):
            faults.append(f"man page: SYNOPSIS has no {verb}")
    faults += check_text("README.md", readme, verbs)
    faults += check_text("man page", man, verbs)
    faults += check_promises(root, readme, man)
    faults += check_words(root, man, helps[""])
    faults += check_statuses("man page", section(man, "EXIT STATUS"), statuses)
    faults += check_statuses("README.md", readme, statuses)
    for fault in faults:
        print(fault)
    if len(verbs) < 2 or not all(verbs.values()) or not statuses:
        print("no options, verbs or exit statuses found")
        return 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
