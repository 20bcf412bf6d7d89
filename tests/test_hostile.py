# SPDX-License-Identifier: MIT
"""Targets that mean ill, or seem to: an honest profile or a clear refusal, within bounds of time
and memory; never a crash, a hang, or a file that nobody asked for."""

import collections
import json
import os
import random
import re
import signal
import struct
import subprocess
import threading
import time
import zlib

import elf_maker
import harness
from elf_maker import CODE, SHF_ALLOC, SHF_COMPRESSED, SHT_PROGBITS, STT_FUNC_GLOBAL
from harness import Run, tried
from test_dump import SCHEMA, by_name, check_schema, dump, dump_text

NO_LEAKS = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # what is given up is leaked

SANITIZED = harness.is_sanitized()
MAX_RSS_MB = 1500 if SANITIZED else 400
HEADER_BYTES = 16  # of a recording, and of each of its blocks
MAX_END_S = 15  # from the end of sampling to that of the run

CANNOT_READ = re.compile(r"cannot read (.+): (.+); names and callers may be missing")


class Watch(threading.Thread):
    """The most memory that any of a run's processes takes, and how long they waited for a CPU."""

    def __init__(self, run):
        super().__init__(daemon=True)
        self.run_, self.peak_mb, self.waits_s = run, 0, {}
        self.start()

    @property
    def waited_s(self):
        return sum(self.waits_s.values())

    def run(self):
        while self.run_.process.poll() is None:
            for pid in harness.children(self.run_.process.pid):
                self.look(pid)
            time.sleep(0.02)

    def look(self, pid):
        try:
            status = harness.read_status(pid)
            self.waits_s[pid] = harness.schedule_of(pid)[1]
        except (FileNotFoundError, ProcessLookupError):
            return  # ended meanwhile
        if status and "VmHWM" in status:
            self.peak_mb = max(self.peak_mb, int(status["VmHWM"].split()[0]) >> 10)


class TestCase(harness.TestCase):
    @tried
    def profile(self, target, *args, seconds=0.4, max_mb=MAX_RSS_MB, during=None, **run):
        """A finished run on a target, whose bounds are kept. `during` is called amidst: once the
        target has run while it was sampled, however long that takes."""
        run.setdefault("env", NO_LEAKS)
        duration = [] if during else ["-d", str(seconds)]
        run = harness.start_attach(target, *duration, *args, **run)
        watch = Watch(run)
        if during:
            run.wait_attached()
            self.wait_for_work(target)
            n_before = run.n_pauses()
            during()
            self.wait_for_work(target)
            run.wait_ticks(n_before)
            run.signal(signal.SIGINT)
            seconds = time.monotonic() - run.start_s
        run.finish()
        watch.join()
        self.assertLess(watch.peak_mb, max_mb, "MB resident")
        self.assertLess(run.elapsed_s - watch.waited_s, seconds + MAX_END_S)
        self.assertGreater(run.summary.samples, 0)
        told = map(CANNOT_READ.fullmatch, run.summary.lines)
        run.unreadable = dict(match.groups() for match in told if match)
        return run

    def wait_for_work(self, target):
        """Until it has had a CPU for some time."""
        n_ticks = harness.cpu_ticks(target.pid)
        harness.wait_for(lambda: harness.cpu_ticks(target.pid) >= n_ticks + 5, "its CPU time")

    def start_hostile(self, *args, **target):
        return self.start_fixture("hostile", *args, **target)

    def write(self, name, data, directory=None):
        path = os.path.join(directory or self.directory(), name)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o755)
        return path

    def run_file(self, data, *args, name="code", directory=None, **profile):
        """A run on a process that spins in the file; again, if that got no CPU in all of it."""
        path = self.write(name, data, directory)
        target = self.start_hostile("run", path)
        for _ in range(10):
            run = self.profile(target, *args, **profile)
            if run.recording or self.leaves(run):
                break
        target.end()
        return run

    def leaves(self, run):
        """Where it spins: not where it came by at its start, nor the thread that waits, or is about to
        begin (on a busy machine for long)."""
        counts = collections.Counter()
        for stack, count in run.stacks().items():
            waits = "run_new_file" in stack and "run_code" not in stack
            waits |= stack == harness.NO_STACK and run.starved.total() > 0
            if not waits and stack[-1] != "clone3":
                counts[stack[-1]] += count
        return {leaf for leaf, count in counts.items() if count > 0.2 * counts.total()}


class Stacks(TestCase):
    """Unwinding ends, says why, and keeps what was found."""

    def test_odd_rules(self):
        for mode, reason in (
            ("stuck", "no return address"), ("huge", "unreadable memory"),
            ("down", "page not in memory|unreadable memory|did not advance"), ("wild", "unreadable memory"),
            ("endless", "no unwinding rule"), ("deep", "no unwinding rule"),
            ("signal_frames", "no return address"),
        ):  # fmt: skip
            with self.subTest(mode):
                target = self.start_hostile(mode)
                run = self.profile(target)
                target.end()
                self.assert_stacks(run.stacks(), rf"\[truncated: ({reason})\];(.*;)?{mode}")

    def test_remembered_states(self):
        run = self.profile(self.start_hostile("remember"))
        self.assert_stacks(run.stacks(), r"_start;.*main;remember")

    def test_no_stack(self):
        for mode in ("no_stack", "high_stack"):
            run = self.profile(self.start_hostile(mode))
            self.assert_stacks(run.stacks(), rf"\[truncated: [^;]*\](;{mode})?")

    def test_ladder(self):
        """A million frames."""
        run = self.profile(self.start_hostile("ladder"), hz=99)
        pattern = r"\[truncated: deeper than --max-depth\](;remember)+.*"
        self.assert_stacks(run.stacks(), pattern, 0.9)
        run = self.profile(self.start_hostile("ladder"), "--max-depth=65536", hz=50)
        self.assertEqual(run.status, 0)

    def test_any_code(self):
        run = self.profile(self.start_hostile("any_code"))
        self.assertLessEqual(self.leaves(run), {"on_stack", "any_code"})


def random_files(seed):
    """Programs that run, with spoiled sections that running does not need: (what, bytes)."""
    rng = random.Random(seed)
    with open(harness.fixture("calls-no-pie"), "rb") as file:
        whole = file.read()
    for name in (".eh_frame", ".eh_frame_hdr", ".symtab", ".strtab", ".shstrtab", ".debug_info",
                 ".debug_abbrev", ".debug_line", ".debug_str"):  # fmt: skip
        for share in (0.002, 0.3):
            elf = elf_maker.Elf(whole)
            elf.spoil(rng, name, share)
            yield f"{name} {share}", elf.data
    elf = elf_maker.Elf(whole)
    for _ in range(20):
        elf.data[rng.randrange(elf.offset, len(elf.data))] = rng.randrange(256)
    yield "headers", elf.data


class Files(TestCase):
    """Programs and other code in files that are no good."""

    def test_spoiled_programs(self):
        for what, data in random_files(1):
            with self.subTest(what):
                target = self.start(self.write("calls", data), "spin")
                run = self.profile(target, seconds=0.15)
                target.end()
                self.assertTrue(all(len(stack) >= 1 for stack in run.stacks()))

    def test_spoiled_headers(self):
        with open(harness.fixture("calls-no-pie"), "rb") as file:
            whole = file.read()
        huge = 1 << 62
        spoilers = {
            "table beyond the end": lambda e: struct.pack_into("<Q", e.data, 40, huge),
            "table at the end": lambda e: struct.pack_into("<Q", e.data, 40, len(e.data) - 8),
            "many sections": lambda e: struct.pack_into("<H", e.data, 60, 0xFEFF),
            "no names": lambda e: struct.pack_into("<H", e.data, 62, 0xFFFF),
            "names in symbols": lambda e: struct.pack_into("<H", e.data, 62, e.find(".symtab")),
            "huge symbols": lambda e: e.change(".symtab", size=huge),
            "tiny entries": lambda e: e.change(".symtab", entsize=1),
            "symbols of themselves": lambda e: e.change(".symtab", link=e.find(".symtab")),
            "huge frames": lambda e: e.change(".eh_frame", size=huge),
            "frames beyond the end": lambda e: e.change(".eh_frame", offset=huge),
            "frames elsewhere": lambda e: e.change(".eh_frame", addr=0x1234567),
            "no abbreviations": lambda e: e.change(".debug_abbrev", size=1),
            "lines in text": lambda e: e.change(".debug_line", offset=e.header(e.find(".text"))[4]),
            "said to be compressed": lambda e: e.change(".debug_info", flags=SHF_COMPRESSED),
            "all code": lambda e: e.change(".debug_str", flags=7, addr=0, size=huge),
        }
        for what, spoil in spoilers.items():
            with self.subTest(what):
                elf = elf_maker.Elf(whole)
                spoil(elf)
                target = self.start(self.write("calls", elf.data), "spin")
                run = self.profile(target, seconds=0.15)
                target.end()
                self.assertTrue(all(len(stack) >= 1 for stack in run.stacks()))

    def test_no_elf(self):
        code = b"\xeb\xfe".rjust(CODE + 2, b"\0") + bytes(4000)
        magics = (b"\x7fELF", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"!<arch>\n", b"#!/bin/sh")
        for magic in magics:
            run = self.run_file(magic + code[len(magic) :], name="no elf")
            self.assertTrue(any("no elf" in leaf for leaf in self.leaves(run)), run.stacks())

    def test_32_bit_file(self):
        data = bytearray(elf_maker.make())
        data[4] = 1
        self.run_file(bytes(data))

    def test_bombs(self):
        """Little that stands for much: 16 GB of debug information in 16 MB."""
        bomb = elf_maker.compressed_zeros(1 << 29 if SANITIZED else 16 << 30)
        for name in (".debug_info", ".debug_frame", ".debug_line"):
            sections = [(name, SHT_PROGBITS, SHF_COMPRESSED, bomb, "")]
            if name != ".debug_info":
                sections.append((".debug_info", SHT_PROGBITS, 0, bytes(64), ""))
            data = elf_maker.make(sections, [(b"hello", STT_FUNC_GLOBAL, CODE, 64)])
            limit = [] if SANITIZED else ["prlimit", f"--as={6 << 30}"]
            run = self.run_file(data, prefix=limit)
            self.assertIn(self.leaves(run), ({"hello"}, {f"[code+0x{CODE:x}]"}))

    def test_not_unpacked(self):
        """Code without a rule: that debug information has none is seen without unpacking it."""
        much = elf_maker.compressed_zeros(256 << 20)
        data = elf_maker.make(
            [
                (".debug_str", SHT_PROGBITS, SHF_COMPRESSED, much, ""),
                (".debug_info", SHT_PROGBITS, 0, bytes(64), ""),
            ],
            [(b"hello", STT_FUNC_GLOBAL, CODE, 64)],
        )
        self.run_file(data, "--no-symbols", form="record", max_mb=MAX_RSS_MB / 3)

    def test_many_sections(self):
        sections = [(f".s{i}", SHT_PROGBITS, SHF_ALLOC, b"", "") for i in range(60000)]
        run = self.run_file(elf_maker.make(sections, [(b"hello", STT_FUNC_GLOBAL, CODE, 64)]))
        self.assertEqual(self.leaves(run), {"hello"})

    def test_many_symbols(self):
        """Two million of them, all with the same name of a megabyte, at the same place."""
        n = 100_000 if SANITIZED else 2_000_000
        data = bytearray(elf_maker.make(symbols=[(b"x" * (1 << 20), STT_FUNC_GLOBAL, CODE, 64)]))
        elf = elf_maker.Elf(data)
        one = bytes(elf.data[elf.content(".symtab")])[24:48]
        elf.replace(".symtab", bytes(24) + one * n)
        run = self.run_file(bytes(elf.data), max_mb=3 * MAX_RSS_MB)
        (leaf,) = self.leaves(run)
        self.assertRegex(leaf, r"^x+(\.\.\.(#[0-9a-f]+)?)?$")
        self.assertLessEqual(len(leaf), 16384)

    def test_truncated_while_profiled(self):
        """Names are looked up in a file that has lost its end since it was opened."""
        filler = (".filler", SHT_PROGBITS, 0, bytes(1 << 20), "")
        for keep in (2 * CODE, CODE + 0x800):
            elf = elf_maker.Elf(elf_maker.make([filler], [(b"hello", STT_FUNC_GLOBAL, CODE, 64)]))
            for name in (".symtab", ".strtab"):  # behind what is kept
                elf.replace(name, bytes(elf.data[elf.content(name)]))
            path = self.write("code", bytes(elf.data))
            target = self.start_hostile("run", path)
            run = self.profile(target, during=lambda p=path, k=keep: os.truncate(p, k))
            self.assertRegex(run.unreadable.get(path, ""), "cut short", run.stderr)
            self.assertEqual(self.leaves(run), {f"[code+0x{CODE:x}]"})

    def test_replaced_while_profiled(self):
        """Each mapping keeps the names of its own file."""
        directory = self.directory()
        first = elf_maker.make(symbols=[(b"first", STT_FUNC_GLOBAL, CODE, 64)])
        second = elf_maker.make(symbols=[(b"second", STT_FUNC_GLOBAL, CODE, 64)])
        path = self.write("code", first, directory)
        target = self.start_hostile("run", path)

        def replace():
            os.rename(self.write("new", second, directory), path)
            target.process.stdin.write(b"x")
            target.read_until("ready")

        run = self.profile(target, seconds=1, during=replace)
        self.assertEqual(self.leaves(run) & {"first", "second"}, {"first", "second"})

    def test_deleted_while_profiled(self):
        path = self.write("code", elf_maker.make(symbols=[(b"hello", STT_FUNC_GLOBAL, CODE, 64)]))
        target = self.start_hostile("run", path)
        run = self.profile(target, during=lambda: os.unlink(path))
        self.assertEqual(self.leaves(run), {"hello"})

    def test_deleted_before(self):
        """Found by way of map_files, as root."""
        harness.need(os.geteuid() == 0, "needs root to open deleted files")
        path = self.write("code", elf_maker.make(symbols=[(b"hello", STT_FUNC_GLOBAL, CODE, 64)]))
        target = self.start_hostile("run", path)
        os.unlink(path)
        os.mkfifo(path)
        run = self.profile(target)
        self.assertEqual(self.leaves(run), {"hello"})

    def test_device(self):
        run = self.profile(self.start_hostile("device"))
        self.assertEqual(self.leaves(run), {"[zero+0x0]"})
        self.assertFalse(run.unreadable)


class DebugFiles(TestCase):
    """Where a file says that its debug information is, stands something else."""

    def check(self, data, trap, directory):
        os.mkfifo(trap)
        run = self.run_file(data, directory=directory)
        self.assertEqual(self.leaves(run), {"hello"})

    def test_debuglink_to_a_pipe(self):
        symbols = [(b"hello", STT_FUNC_GLOBAL, CODE, 64)]
        for crc in (0, 0x12345678):
            directory = self.directory()
            link = b"trap\0\0\0\0" + struct.pack("<I", crc)
            data = elf_maker.make([(".gnu_debuglink", SHT_PROGBITS, 0, link, "")], symbols)
            self.check(data, os.path.join(directory, "trap"), directory)

    def test_debuglink_out_of_the_directory(self):
        directory = self.directory()
        outer = self.directory()
        link = f"../{os.path.basename(outer)}/trap\0".encode()
        link += bytes(-len(link) % 4) + bytes(4)
        data = elf_maker.make(
            [(".gnu_debuglink", SHT_PROGBITS, 0, link, "")], [(b"hello", STT_FUNC_GLOBAL, CODE, 64)]
        )
        self.check(data, os.path.join(outer, "trap"), directory)

    def test_debugaltlink_to_a_pipe(self):
        """All names are said to stand in a file that other debug files share."""
        directory = self.directory()
        trap = os.path.join(directory, "trap")
        with open(harness.fixture("calls-no-pie"), "rb") as file:
            elf = elf_maker.Elf(file.read())
        elf.replace(".comment", trap.encode() + b"\0" + bytes(range(20)))
        elf.rename(".comment", ".gnu_debugaltlink")
        abbreviations = elf.content(".debug_abbrev")
        name_strp, name_strp_sup = b"\x03\x0e", b"\x03\x1d"  # DW_AT_name, DW_FORM_*
        changed = bytes(elf.data[abbreviations]).replace(name_strp, name_strp_sup)
        self.assertNotEqual(elf.data[abbreviations], changed)
        elf.data[abbreviations] = changed
        os.mkfifo(trap)
        target = self.start(self.write("calls", elf.data, directory), "spin")
        run = self.profile(target)
        self.assertFalse(run.unreadable)
        self.assert_stacks(run.stacks(), r"_start;.*main;many_arguments;.*leaf_spin")

    def test_split_dwarf_in_a_pipe(self):
        compiler = harness.find_tool("gcc", "cc")
        directory = self.directory()
        code = b'int main(void) { puts("ready"); fflush(0); for (;;); }'
        source = self.write("code.c", code, directory)
        subprocess.run(
            [compiler, "-w", "-g", "-gsplit-dwarf", "-include", "stdio.h", source, "-o", "code"],
            cwd=directory, check=True,
        )  # fmt: skip
        (split,) = [name for name in os.listdir(directory) if name.endswith(".dwo")]
        os.unlink(os.path.join(directory, split))
        os.mkfifo(os.path.join(directory, split))
        run = self.profile(self.start(os.path.join(directory, "code")))
        self.assert_stacks(run.stacks(), r"_start;.*main", share=0.9)


STRANGE = [
    b"semi;colon", b"two  spaces", b"ends in 12", b"\xff\xfe\x80", b"new\nline\r", b"quote\"<&>'\\",
    b"\x1b]0;title\x07\x1b[2J\x1b[31mred", b"\xe2\x80\xa8separators\xc2\x85", b"%s%n%d",
    b"$(touch x)",
    b"[truncated: lie]", b"x" * 300,
]  # fmt: skip


class Names(TestCase):
    """Names of any bytes are shown, and do nothing else."""

    def assert_clean(self, run):
        for stack in run.stacks():
            for name in stack:
                self.assertFalse(re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", name), ascii(name))
        self.assertFalse(re.search(r"[^\n\x20-\x7e\x80-\U0010ffff]", run.stderr), ascii(run.stderr))

    def test_symbols(self):
        for number, name in enumerate(STRANGE):
            data = elf_maker.make(symbols=[(name, STT_FUNC_GLOBAL, CODE, 64)])
            run = self.run_file(data, form=("folded", "pprof")[number % 2], seconds=0.15)
            self.assert_clean(run)
            self.assertEqual(len(self.leaves(run)), 1, number)

    def test_megabytes(self):
        data = elf_maker.make(symbols=[(b"_Z" + b"9" * (4 << 20), STT_FUNC_GLOBAL, CODE, 64)])
        run = self.run_file(data)
        self.assertLessEqual(max(map(len, self.leaves(run))), 16384)

    def test_mangled_bombs(self):
        bomb = b"_Z1f" + b"1X" + b"I" * 500 + b"S_" * 1500 + b"E" * 500
        nested = b"_ZN" + b"1a" * 2000 + b"E"
        for name in (bomb, nested, b"_Z" + b"P" * 4000 + b"v", b"_RNv" + b"B_" * 2000):
            data = elf_maker.make(symbols=[(name, STT_FUNC_GLOBAL, CODE, 64)])
            run = self.run_file(data, seconds=0.15)
            self.assertLess(run.cpu_s, 10 if SANITIZED else 5)

    def test_debug_strings(self):
        """The names in DWARF."""
        with open(harness.fixture("calls-no-pie"), "rb") as file:
            elf = elf_maker.Elf(file.read())
        strings = elf.content(".debug_str")
        elf.data[strings] = bytes(elf.data[strings]).replace(b"leaf_spin", b"l\x1b[31m\nn;")
        run = self.profile(self.start(self.write("calls", elf.data), "spin"), form="folded")
        self.assert_clean(run)
        self.assertTrue(any(leaf.startswith("l_[31m_n") for leaf in self.leaves(run)), run.stacks())

    def test_files(self):
        data = elf_maker.make()
        for number, name in enumerate(name for name in STRANGE if len(name) <= 255):
            path = os.path.join(os.fsencode(self.directory()), name)
            with open(path, "wb") as file:
                file.write(data)
            target = harness.Target([harness.fixture("hostile"), "run", path])
            self.addCleanup(target.end)
            form = ("pprof", "folded")[number % 2]
            self.assert_clean(self.profile(target, form=form, seconds=0.15))
            target.end()

    def test_files_with_symbols(self):
        """Whatever the name, the file is found, by any user."""
        data = elf_maker.make(symbols=[(b"hello", STT_FUNC_GLOBAL, CODE, 64)])
        for name in (b"new\nline", b"\\012", b"x (deleted)", b" ", b"\xff"):
            path = os.path.join(os.fsencode(self.directory()), name)
            with open(path, "wb") as file:
                file.write(data)
            target = harness.Target([harness.fixture("hostile"), "run", path])
            self.addCleanup(target.end)
            self.assertEqual(self.leaves(self.profile(target, seconds=0.15)), {"hello"}, name)

    def test_threads(self):
        target = self.start_fixture("strange_names")
        for form in ("folded", "pprof"):
            self.assert_clean(self.profile(target, "--threads", form=form))

    def test_name_that_changes(self):
        target = self.start_hostile("rename")
        for form in ("folded", "pprof"):
            run = self.profile(target, "--threads", form=form, seconds=1, hz=999)
            self.assert_clean(run)

    def test_hostile_symbol(self):
        """The name of a variable, which may be of any bytes, does nothing to a terminal or to JSON."""
        program = os.path.join(self.directory(), "locks")
        name = b"\x1b[2J\xff" + b"x" * 5000
        subprocess.run([harness.find_tool("objcopy"), b"--redefine-sym=chain=" + name,
                        harness.fixture("locks"), program], check=True)  # fmt: skip
        target = self.start(program, "cycle", 2)
        text = dump_text(target)
        self.assertRegex(text, r"mutex _\[2J\ufffdx{900,1024}\.\.\.")
        self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertRegex(by_name(dump(target))["dead0"]["waits_for"]["symbol"], r"^_\[2J\ufffdx+\.\.\.")

    def replaced(self, recording, old, new):
        """The recording with other bytes, as many, in its blocks."""
        data, at = bytearray(recording), HEADER_BYTES
        while at < len(data):
            size = struct.unpack_from("<I", data, at + 4)[0]
            start, end = at + HEADER_BYTES, at + HEADER_BYTES + size
            data[start:end] = data[start:end].replace(old, new)
            struct.pack_into("<I", data, at + 8, zlib.crc32(data[at + 12 : end]))
            at = end
        return data

    def test_hostile_recording(self):
        """The kernel's functions are those that it names, and may be of any bytes."""
        harness.need(os.geteuid() == 0, "needs root to see the kernel's stacks")
        target = self.start_fixture("locks", "cycle", "2")
        with open(f"/proc/{target.pid}/stack", encoding="ascii") as file:
            kernel = re.search(r"\] (\w{6,})\+", file.read())
        harness.need(kernel, "no kernel stacks here")
        name = kernel[1].encode()
        path = os.path.join(self.directory(), "x.wprof")
        Run(["-p", target.pid, "-d", "0.5", "-k", "-o", path], target_pid=target.pid).communicate()
        with open(path, "rb") as file:
            data = file.read()
        self.assertIn(name, data)
        with open(path, "wb") as file:
            file.write(self.replaced(data, name, b"\x1b[2J\xff".ljust(len(name), b"x")))
        text = Run(["dump", path, "--at=0.3s"]).finish().stdout.decode()
        self.assertRegex(text, r" _\[2J\ufffdx*_\[k\]")
        self.assertNotIn("\x1b", text)
        check_schema(json.loads(Run(["dump", path, "--at=0.3s", "--json"]).finish().stdout), SCHEMA)


if __name__ == "__main__":
    harness.main()
