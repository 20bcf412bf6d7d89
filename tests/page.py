# SPDX-License-Identifier: MIT
"""Reads the data of a page (-f html), as include/page_sections.h describes it."""

import base64
import gzip
import json
import re

DATA = re.compile(rb'<script id="profile" type="application/octet-stream">([A-Za-z0-9+/=]*)</script>')
PROGRAM = re.compile(rb'<script id="program" type="application/octet-stream">([A-Za-z0-9+/=]*)</script>')


def program(html):
    """The page's script, as start.js unpacks it."""
    (packed,) = PROGRAM.findall(html)
    return gzip.decompress(base64.b64decode(packed, validate=True))


class Columns:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def table(self, n_columns):
        n = self.number()
        return list(zip(*([self.number() for _ in range(n)] for _ in range(n_columns))))


def sections(html):
    (text,) = DATA.findall(html)
    data, found, at = gzip.decompress(base64.b64decode(text, validate=True)), {}, 0
    while at < len(data):
        number, length = (int.from_bytes(data[at + i : at + i + 4], "little") for i in (0, 4))
        found[number] = data[at + 8 : at + 8 + length]
        at += 8 + length
    assert at == len(data), "a section is cut"
    return found


def strings(data):
    assert data.endswith(b"\0") or not data
    return data.decode().split("\0")[:-1]


class Page:
    """meta, threads, and runs: (thread, start, end, stack from the root, kind, wait), times in ns;
    and labels, of each run in turn. A unit of a thread's time counts thread["weigh"][kind];
    unseen: (thread, ns, stack, kind) of time that is in no run."""

    def __init__(self, html):
        found = sections(html)
        self.meta = json.loads(found[1])
        names = strings(found[2])
        frames = [names[name] for name, *_ in Columns(found[5]).table(5)]
        stacks, path = [], []
        for up, frame in Columns(found[6]).table(2):
            path = [*path[: len(path) - up], frames[frame]]
            stacks.append(path)
        thread_names, texts = strings(found[10]), strings(found[11])
        keys = ("tid", "pid", "birth", "death", "name", "runs", "flags")
        self.threads = [dict(zip(keys, row)) for row in Columns(found[7]).table(7)]
        for thread in self.threads:
            thread["name"] = thread_names[thread["name"]]
        rows = Columns(found[8]).table(3)
        waits = [" ".join(filter(None, (texts[a], texts[b]))) for a, b, _ in rows]
        labels = [texts[row[2]] for row in rows]
        rows, unit = iter(Columns(found[9]).table(4)), self.meta["unit_ns"]
        self.runs, self.labels = [], []
        for thread in self.threads:
            at = 0
            for _ in range(thread["runs"]):
                gap, length, node, kind_and_wait = next(rows)
                start = at + gap
                at = start + length
                kind, wait = self.meta["kinds"][kind_and_wait % 16], waits[kind_and_wait // 16]
                # The root stands for all.
                self.runs.append((thread, start * unit, at * unit, stacks[node][1:], kind, wait))
                self.labels.append(labels[kind_and_wait // 16])
        assert next(rows, None) is None, "runs that no thread has"
        self.unseen = []
        self._read_weights(Columns(found[12]).table(8), stacks)

    def _read_weights(self, rows, stacks):
        kinds = self.meta["kinds"]
        for thread in self.threads:
            thread["weigh"] = dict.fromkeys(kinds, 1)
        for number, *figures, node in rows:
            thread, (running, runnable, others) = self.threads[number], (n / 1e6 for n in figures[:3])
            thread["weigh"] = {k: {"running": running, "runnable": runnable}.get(k, others) for k in kinds}
            for kind, units in zip(("running", "runnable", "event"), figures[3:]):
                if units:
                    self.unseen.append((thread, units * self.meta["unit_ns"], stacks[node][1:], kind))
