# SPDX-License-Identifier: MIT
"""view, diff and push of any file take at most 256 MB beyond twice its size, and say what is too large."""

import os
import re
import subprocess
import tempfile
import zlib

import harness
from harness import PROFILER, STATUS_OUTPUT, STATUS_TARGET

ALLOWED_BYTES = 256 << 20
SLACK_BYTES = 16 << 20  # the program itself
TYPE, EMPTY_STRING = b"\x0a\x00", b"\x32\x00"
SAMPLES, STRINGS, MEGABYTE = b"\x12\x00" * (1 << 19), b"\x32\x00" * (1 << 19), bytes(1 << 20)
TOO_LARGE = r"is too large: it (needs more than 256 MB and twice its size of memory|has too many \S+)"


def pack(*pieces):
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join(map(packer.compress, pieces)) + packer.flush()


def varint(value):
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


class LargeInputs(harness.TestCase):
    def write(self, name, *pieces):
        self.path = os.path.join(self.directory(), name)
        with open(self.path, "wb") as file:
            for piece in pieces:
                file.write(piece)
        return self.path

    def run_within(self, *args, n_files=1, status=0):
        """What it tells; the memory that it took is bounded. What it writes is read by nobody."""
        directory = self.directory()
        env = {**os.environ, "XDG_RUNTIME_DIR": directory, "BROWSER": "true"}
        with tempfile.TemporaryFile() as told:
            process = subprocess.Popen([PROFILER, *args], env=env, stdout=subprocess.DEVNULL, stderr=told)
            _, found, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(found)
            told.seek(0)
            text = told.read().decode()
        self.assertEqual(process.returncode, status, text)
        bound = ALLOWED_BYTES + SLACK_BYTES + 2 * n_files * os.path.getsize(self.path)
        self.assertLessEqual(usage.ru_maxrss << 10, bound, args)
        if status:
            self.assertEqual(os.listdir(directory), [])
        return text

    def test_pprof(self):
        """Of few bytes that become many: packed, or each a sample, a string, a line or a location."""
        lines = EMPTY_STRING + b"\x22" + varint(2 + (4 << 20)) + b"\x08\x01"
        locations = b"\x12" + varint(5 + (24 << 20)) + b"\x0a" + varint(24 << 20)
        for name, *pieces in (
            ("zeros.pb.gz", pack(*[MEGABYTE] * 600)),
            ("samples.pb", TYPE, EMPTY_STRING, *[SAMPLES] * 20),
            ("samples.pb.gz", pack(TYPE, EMPTY_STRING, *[SAMPLES] * 20)),
            ("strings.pb.gz", pack(TYPE, *[STRINGS] * 20)),
            ("lines.pb", TYPE, lines, *[b"\x22\x00" * (1 << 20)] * 2),
            ("lines.pb.gz", pack(TYPE, EMPTY_STRING, b"\x22" + varint(2 + (10 << 20)) + b"\x08\x01",
                                 *[b"\x22\x00" * (1 << 20)] * 5)),
            ("locations.pb.gz", pack(TYPE, EMPTY_STRING, locations, *[MEGABYTE] * 24)),
        ):  # fmt: skip
            with self.subTest(name):
                path = self.write(name, *pieces)
                view = self.run_within("view", path, status=STATUS_TARGET)
                push = self.run_within("push", "--dry-run", "http://127.0.0.1:9", path, status=STATUS_OUTPUT)
                if name != "lines.pb":  # cut off
                    self.assertRegex(view, rf"\Aprofiler: {re.escape(path)} {TOO_LARGE}[^\n]*\n\Z")
                    self.assertRegex(push, "too large")

    def test_folded(self):
        """One stack many times is nothing; as many stacks are too much for a page."""
        self.write("one.folded", *[b"main;work 1\n" * 100000] * 60)
        self.run_within("view", self.path)
        self.run_within("diff", self.path, self.path, n_files=2)
        self.write("many.folded", *[b"".join(b"m;w%x 1\n" % (i * 100000 + j) for j in range(100000)) for i in range(20)])
        text = self.run_within("view", self.path, status=STATUS_TARGET)
        self.assertRegex(text, rf"\Aprofiler: {re.escape(self.path)} {TOO_LARGE}[^\n]*\n\Z")
        self.run_within("diff", self.path, self.path, n_files=2)
        self.write("short.folded", *[b"".join(b"%x 1\n" % (i * 100000 + j) for j in range(100000)) for i in range(70)])
        text = self.run_within("diff", self.path, self.path, n_files=2, status=STATUS_TARGET)
        self.assertRegex(text, rf"\Aprofiler: {re.escape(self.path)} {TOO_LARGE}[^\n]*\n\Z")


if __name__ == "__main__":
    harness.main()
