#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual and README.md say what the command says of itself.

    check_docs.py PROFILER ROOT

--help-all is made of the tables of options. Each option has its row in a page of the manual, with the same
letter and the same name of its value; a verb's page names the options that have their rows elsewhere. profiler(1) has all exit statuses. Every profiler command line in README.md
and in the manual uses options that exist. Each promise names tests that exist. And the words of
profiles: each reason for a truncated stack and each format is in profiler-formats(5), each kind of wait in
profiler-samples(7), on the page and in top; each format in --help-all and in the completions.
"""

import os
import re
import shlex
import subprocess
import sys

VERB_ROW = re.compile(r"^  ([a-z]+) [A-Z].{3,}", re.M)
HELP_ROW = re.compile(r"^  (?:-(\w), |    )--([\w-]+)(?:=(\S+))?")
MAN_ROW = re.compile(r"^(?:\*-(\w)\*(?: _\S+_)?, )?\*--([\w-]+)\*(?:=_(\S+)_)?$")
EVERYWHERE = {"help", "help-all", "version", "quiet"}  # for all verbs: profiler(1) has them
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
    """The faults of a verb's options in --help-all against the rows of the manual."""
    say = f"{verb} " if verb else ""
    faults = [f"manual: {say}--{name} of the help is missing" for name in sorted(helped.keys() - manned.keys())]
    for name in sorted(helped.keys() & manned.keys()):
        if helped[name] != manned[name]:
            faults.append(f"manual: {say}--{name}: {manned[name]}, but in the help {helped[name]}")
    return faults


def check_verbs(verbs, pages):
    """{verb: options of its --help-all} against the pages, {verb: text}."""
    shared = {n: row for text in pages.values() for n, row in rows(section(text, "OPTIONS"), MAN_ROW).items()}
    faults = []
    for verb, options in verbs.items():
        text = section(pages[verb], "OPTIONS")
        own = rows(text, MAN_ROW)
        faults += compare_options(verb, options, {**shared, **own})
        faults += [f"manual: {verb} --{n} is not in its help" for n in sorted(own.keys() - options.keys()) if verb]
        faults += [
            f"manual: OPTIONS of {verb or 'profiler'} do not name --{n}"
            for n in sorted(options.keys() - own.keys())
            if n not in EVERYWHERE and f"*--{n}*" not in text
        ]
    every = {name for options in verbs.values() for name in options}
    return faults + [f"manual: --{n} is not in any help" for n in sorted(shared.keys() - every)]


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
    code += re.findall(r"^  (profiler .*)$", text, re.M)  # examples of --help
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
    for line, words in commands(text):
        if any("[OPTION" in word for word in words):
            continue
        faults += [f"{name}: `{line}`: {fault}" for fault in check_command(words, verbs)]
    # In prose an option of ours stands alone in its backquotes.
    every = {option: row for options in verbs.values() for option, row in options.items()}
    for code in re.findall(r"`(-[^`\n]*)`", text):
        faults += [f"{name}: `{code}`: {f}" for f in check_command([code.split()[0], "x"], {"": every})]
    return faults


def check_statuses(text, statuses):
    return [
        f"profiler(1): exit status {status} is missing"
        for status in statuses
        if not re.search(rf"^\*{status}\*", section(text, "EXIT STATUS"), re.M)
    ]


def check_promised_test(root, test):
    """A test that a promise names, such as "calls: woken, cut", is there: classes or test functions of a file."""
    name, _, parts = test.strip().partition(": ")
    path = name if "/" in name else f"tests/torture/test_{name}.py"
    if not os.path.exists(os.path.join(root, path)):
        return [f"profiler-promises(7): there is no {path}"]
    text = read(root, path) if path.endswith(".py") else ""
    return [
        f"profiler-promises(7): {path} has no test {part!r}"
        for part in filter(None, parts.split(", "))
        if not re.search(rf"^class {part}\(|^    def test_{part.replace(' ', '_')}\(", text, re.M)
    ]


def check_promises(root, text):
    """Each promise is followed by a comment that names its tests: "; tests: calls: woken, cut; life"."""
    named = re.findall(r"^; tests: (.*)$", text, re.M)
    promised = re.findall(r"^- \*", text, re.M)
    faults = [fault for line in named for test in line.split("; ") for fault in check_promised_test(root, test)]
    if not promised or len(named) != len(promised):
        faults.append(f"profiler-promises(7): {len(promised)} promises, {len(named)} lines of tests")
    return faults


def self_test():
    helped = "  -p, --pid=PID     x\n      --lines       y\n  -t, --threads     z\n"
    manned = "*-p* _PID_, *--pid*=_PID_\n\ttext\n*--lines*\n"
    options = rows(helped, HELP_ROW)
    assert options == {"pid": ("p", "PID"), "lines": ("", ""), "threads": ("t", "")}
    assert rows(manned, MAN_ROW) == {"pid": ("p", "PID"), "lines": ("", "")}
    assert compare_options("", options, rows(manned, MAN_ROW))
    assert not compare_options("", options, {**options, "more": ("", "")})
    shared = f"# OPTIONS\n{manned}*-t*, *--threads*\n"
    assert check_verbs({"": options}, {"": f"{shared}*--more*\n"})
    assert not check_verbs({"": options}, {"": shared})
    dump = {"": options, "dump": {"json": ("", ""), "pid": ("p", "PID")}}
    assert check_verbs(dump, {"": shared, "dump": "# OPTIONS\n*--json*\n"})
    assert check_verbs(dump, {"": shared, "dump": "# OPTIONS\n*--json*\n*--lines*\n*--pid* too\n"})
    assert not check_verbs(dump, {"": shared, "dump": "# OPTIONS\n*--json*\n\nIt takes *--pid*, too.\n"})
    assert check_promises("/", "- *No* harm\n") and check_promises("/", "- *No* harm\n; tests: nothing\n")
    verbs = {"": options, "dump": dump["dump"]}
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


def help_of(profiler, *verb, option="--help-all"):
    run = subprocess.run([profiler, *verb, option], capture_output=True, text=True, check=True)
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


def check_words(root, pages, helped):
    """The words that the sources have for what a profile shows."""
    ends = STACK_END.findall(read(root, "src", "profile", "profile.c"))
    kinds = WAIT_KIND.findall(read(root, "src", "profile", "wait_kind.c"))
    looks = read(root, "src", "write", "page", "draw.js").partition("const LOOKS")[2].partition("};")[0]
    screen = read(root, "src", "top", "top_draw.c")
    letters = read(root, "src", "top", "top_model.c")
    formats = read(root, "include", "write", "writer.h").partition("#define WRITER_NAMES ")[2].partition("\n")[0]
    writers = set(re.findall(r"\w+", formats)) - {"or"}
    told = section(pages["profiler-formats.5"], "FORMATS") + section(pages["profiler-formats.5"], "TRUNCATED STACKS")
    waits = section(pages["profiler-samples.7"], "WAITS")
    if not ends or not kinds or not writers:
        return ["no ends of stacks, kinds of waits or formats found"]
    return [
        *(f"profiler-formats(5): no '{end}'" for end in ends if end not in told),
        *(f"profiler-samples(7): WAITS has no '{kind}'" for kind in kinds if kind not in waits),
        *(f"draw.js: LOOKS has no {kind}" for kind in kinds if f"\t{kind}:" not in looks),
        *(f"top_model.c: no letter for {kind}" for kind in kinds if f"[WAIT_KIND_{kind.upper()}]" not in letters),
        *(f"top_draw.c: no colour for {kind}" for kind in kinds if f"[WAIT_KIND_{kind.upper()}]" not in screen),
        *(f"top_draw.c: help has no {kind}" for kind in kinds if not re.search(rf"[ \"][A-Z] {kind}\b", screen)),
        *(f"profiler-top(1): no letter for {kind}" for kind in kinds
          if not re.search(rf"\b[A-Z]\s+{kind}\b", pages["profiler-top.1"])),
        *(f"profiler-formats(5): no {name}" for name in sorted(writers) if f"*{name}*" not in told),
        *(f"--help: --format has no {name}" for name in sorted(writers) if name not in helped_formats(helped)),
        *check_completions(root, writers),
    ]


def manual(root):
    """{page's name, as profiler.1: its text}."""
    folder = os.path.join(root, "man")
    return {name.removesuffix(".scd"): read(folder, name) for name in os.listdir(folder) if name.endswith(".scd")}


def check_references(pages, readme):
    """The pages that the manual and README.md name are there."""
    named = re.findall(r"\*(profiler[-\w]*)\*\((\d)\)", "\n".join(pages.values()))
    named += re.findall(r"man/(profiler[-\w]*)\.(\d)\.scd", readme)
    return [f"manual: there is no {name}({number})" for name, number in sorted(set(named)) if f"{name}.{number}" not in pages]


def check_synopses(helps, pages):
    faults = []
    for verb, text in helps.items():
        if max(map(len, text.splitlines())) > 80:
            faults.append(f"{verb or 'profiler'} --help-all is wider than 80 columns")
        for page in ("profiler.1", f"profiler-{verb}.1") if verb else ():
            if f"*profiler* *{verb}*" not in section(pages.get(page, ""), "SYNOPSIS"):
                faults.append(f"{page}: SYNOPSIS has no {verb}")
    return faults


def main():
    profiler, root = sys.argv[1:3]
    self_test()
    helps = {"": help_of(profiler)}
    helps.update({verb: help_of(profiler, verb) for verb in VERB_ROW.findall(helps[""])})
    verbs = {verb: rows(text, HELP_ROW) for verb, text in helps.items()}
    pages = manual(root)
    statuses = STATUS.findall(read(root, "include", "base", "error.h"))

    faults = check_synopses(helps, pages)
    faults += check_verbs(verbs, {verb: pages.get(f"profiler-{verb}.1" if verb else "profiler.1", "") for verb in verbs})
    shorts = {f"profiler {verb} --help": help_of(profiler, *filter(None, [verb]), option="--help") for verb in verbs}
    for name, text in {"README.md": read(root, "README.md"), **pages, **shorts}.items():
        faults += check_text(name, text, verbs)
    faults += check_references(pages, read(root, "README.md"))
    faults += check_promises(root, pages["profiler-promises.7"])
    faults += check_words(root, pages, helps[""])
    faults += check_statuses(pages["profiler.1"], statuses)
    for fault in faults:
        print(fault)
    if len(verbs) < 2 or not all(verbs.values()) or not statuses:
        print("no options, verbs or exit statuses found")
        return 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
