#!/usr/bin/env python3
"""Joins the page's parts into the texts that write_html.c writes around a profile.

    page.py OUTPUT PAGE.html PAGE.css START.js SCRIPT.js...

OUTPUT becomes a header with the texts before the title, the data, the tables and the end. START.js
unpacks the other scripts, which are packed. The page's policy allows these scripts and this style
alone, by their hashes.
"""

import base64
import gzip
import hashlib
import re
import sys

# Where write_html.c puts in what it knows.
MARKS = ("@TITLE@", "@DATA@", "@TABLES@")
NAMES = ("page_head", "page_body", "page_program", "page_tail")

STRICT = "'use strict';\n"
SHOWN_AS = "//# sourceURL=profiler.js\n"  # in the browser's debugger


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def pack(text):
    """As start.js unpacks it. Without a time, so that the same sources give the same bytes."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def policy_hash(text):
    digest = hashlib.sha256(text.encode()).digest()
    return "'sha256-" + base64.b64encode(digest).decode() + "'"


def join(html, style, start, script):
    """The page, with the marks still in it. The script is packed, comments and all."""
    if re.search("</script|<!--", start, re.I) or re.search("</style", style, re.I):
        sys.exit("the script or the style would end its own element")
    for mark, text in (
        ("@START_HASH@", policy_hash(start)), ("@SCRIPT_HASH@", policy_hash(script)),
        ("@STYLE_HASH@", policy_hash(style)), ("@STYLE@", style), ("@SCRIPT@", pack(script)), ("@START@", start),
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
    output, html, style, start, *scripts = sys.argv[1:]
    script = STRICT + "".join(read(path) for path in scripts) + SHOWN_AS
    parts = split(join(read(html), read(style), STRICT + read(start), script))
    with open(output, "w", encoding="utf-8") as file:
        for name, part in zip(NAMES, parts):
            file.write(f"static const char {name}[] =\n{c_string(part)};\n")


if __name__ == "__main__":
    main()
