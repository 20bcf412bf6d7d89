#!/usr/bin/env python3
"""Joins the page's parts into the texts that write_html.c writes around a profile.

    page.py OUTPUT PAGE.html PAGE.css SCRIPT.js...

OUTPUT becomes a header with the texts before the title, the tables, the data and the end. The
page's policy allows this script and this style alone, by their hashes.
"""

import base64
import hashlib
import re
import sys

# Where write_html.c puts in what it knows.
MARKS = ("@TITLE@", "@TABLES@", "@DATA@")
NAMES = ("page_head", "page_body", "page_data", "page_tail")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def shrink(text):
    """The script or style without its comments, indentation and empty lines; what stands between
    backticks over several lines is kept as it is."""
    lines, kept = [], False
    for line in text.split("\n"):
        if not kept:
            line = re.sub(r"(?<=[;,{}]) // [^'\"`]*$", "", line.lstrip("\t"))
            if line.startswith("//") or not line:
                continue
        lines.append(line)
        kept ^= line.count("`") % 2 == 1
    return "\n".join(lines) + "\n"


def policy_hash(text):
    digest = hashlib.sha256(text.encode()).digest()
    return "'sha256-" + base64.b64encode(digest).decode() + "'"


def join(html, style, script):
    """The page, with the marks still in it."""
    if re.search("</script|<!--", script, re.I) or re.search("</style", style, re.I):
        sys.exit("the script or the style would end its own element")
    for mark, text in (
        ("@SCRIPT_HASH@", policy_hash(script)), ("@STYLE_HASH@", policy_hash(style)),
        ("@STYLE@", style), ("@SCRIPT@", script),
    ):  # fmt: skip
        if html.count(mark) != 1:
            sys.exit(f"{mark} is not there once")
        html = html.replace(mark, text)
    return html


def split(page):
    parts = []
    for mark in MARKS:
        before, found, page = page.partition(mark)
        if not found:
            sys.exit(f"{mark} is not there, or not in its place")
        parts.append(before)
    return [*parts, page]


def c_string(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return "\n".join(f'\t"{line}\\n"' for line in escaped.split("\n"))[: -len('\\n"')] + '"'


def main():
    output, html, style, *scripts = sys.argv[1:]
    script = "'use strict';\n" + "".join(shrink(read(path)) for path in scripts)
    parts = split(join(read(html), shrink(read(style)), script))
    with open(output, "w", encoding="utf-8") as file:
        for name, part in zip(NAMES, parts):
            file.write(f"static const char {name}[] =\n{c_string(part)};\n")


if __name__ == "__main__":
    main()
