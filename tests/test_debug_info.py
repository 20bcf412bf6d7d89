# SPDX-License-Identifier: MIT
"""Names, lines and inlined calls, wherever the debug information is."""

import http.server
import lzma
import os
import shutil
import struct
import subprocess
import threading

import harness
from harness import tried
import pprof
from test_record import Recorded, report

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static inline __attribute__((always_inline)) void inlined(void) {
	for (;;)
		if (pause() != -1)
			abort(); /* elsewhere, so that it has more than one range of addresses */
}
static __attribute__((noinline)) void hidden(void) {
	inlined();
	__asm__ volatile("");
}
int main(void) {
	puts("ready");
	fflush(stdout);
	hidden();
	return 0;
}
"""
LOOP_LINES, CALL_LINE = (6, 7), 11
PAUSE = 34  # the system call

# What can be known of the program's two functions.
DEBUG, SYMBOLS, NOTHING = "debug information", "names only", "nothing"


# Calls that were inlined from headers, and a type from one that has no code.
HEADERS = {
    "first.h": """static inline void first(void) {
	for (;;)
		if (pause() != -1)
			abort();
}
""",
    "second.h": """static inline void second(void) {
	first();
}
""",
    "types.h": "struct parcel { int weight; struct label { char text[8]; int zip; } l; };\n",
    "program.cpp": """#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "first.h"
#include "second.h"
#include "types.h"
parcel one;
__attribute__((noinline)) void ship(parcel p) { one = p;
	second();
}
int main() {
	puts("ready");
	fflush(stdout);
	ship(one);
}
""",
}
SHIPPED = [("ship", "program.cpp", 9), ("second", "second.h", 2), ("first", "first.h", (2, 3))]


class TestCase(harness.TestCase):
    def setUp(self):
        self.where = self.directory()

    def path(self, *names):
        path = os.path.join(self.where, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def run_tool(self, tool, *args):
        subprocess.run([harness.find_tool(tool), *args], cwd=self.where, check=True,
                       capture_output=True)  # fmt: skip

    def compile(self, *args, name="program", source="program.c"):
        path = self.path(source)
        with open(path, "w", encoding="utf-8") as file:
            file.write(SOURCE)
        self.run_tool("gcc", "-O2", "-g", source, "-o", name, *args)
        return self.path(name)

    def separate(self, program, debug):
        """Moves the debug information into a file of its own."""
        self.run_tool("objcopy", "--only-keep-debug", program, debug)
        self.run_tool("objcopy", "--strip-all", program)

    def build_id(self, program):
        text = subprocess.run([harness.find_tool("readelf"), "-n", program],
                              capture_output=True, text=True, check=True).stdout  # fmt: skip
        return text.split("Build ID: ")[1].split()[0]

    def profile(self, program, *args, **run):
        target = self.start(program)
        harness.wait_for(lambda: self.sleeps(target.pid), "its sleep")
        try:
            # It sleeps: one tick shows it all, and a second run would find what the first has fetched.
            return harness.start_attach(target, "-d", "0.1", *args, **run).finish()
        finally:
            target.end()

    def sleeps(self, pid):
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            return file.read().split()[0] == str(PAUSE)

    def known(self, run):
        """What is known, which all samples agree in."""
        (known,) = {self.known_of(sample) for sample in run.pprof.samples}
        return known

    def known_of(self, sample):
        own = [f for f in sample.frames if self.where in f.location["mapping"]["filename"]]
        caller, leaf = own[-2:]
        if leaf.name == "hidden":
            self.assertEqual((leaf.file, leaf.line), ("", 0))
            return SYMBOLS
        if leaf.name.startswith("[program"):
            return NOTHING
        self.assertEqual((caller.name, leaf.name), ("hidden", "inlined"))
        self.assertTrue(leaf.inlined)
        self.assertIn(leaf.line, LOOP_LINES)
        self.assertEqual(caller.line, CALL_LINE)
        self.assertTrue(leaf.file.endswith("program.c"), leaf.file)
        return DEBUG

    @tried
    def check(self, program, expected, *args, **run):
        run = self.profile(program, *args, **run)
        self.assertEqual(run.summary.truncated, 0, run.stderr)
        self.assertEqual(self.known(run), expected, run.stderr)
        return run


class InTheFile(TestCase):
    def test_versions(self):
        for version in harness.a_few(("2", "3", "4", "5")):
            self.check(self.compile(f"-gdwarf-{version}"), DEBUG)

    def test_compressed(self):
        for version, kind in (("5", "zlib"), ("4", "zlib-gnu"), ("5", "zstd")):
            program = self.compile(f"-gdwarf-{version}")
            self.run_tool("objcopy", f"--compress-debug-sections={kind}", program)
            self.check(program, DEBUG)

    def test_64_bit(self):
        self.check(self.compile("-gdwarf64"), DEBUG)

    def test_type_units(self):
        self.check(self.compile("-fdebug-types-section"), DEBUG)

    def test_stripped(self):
        program = self.compile()
        self.run_tool("objcopy", "--strip-debug", program)
        self.check(program, SYMBOLS)
        self.run_tool("objcopy", "--strip-all", program)
        self.check(program, NOTHING)

    def test_gnu_debugdata(self):
        """MiniDebugInfo: a symbol table, packed by xz."""
        program = self.compile()
        self.run_tool("objcopy", "--only-keep-debug", program, "mini")
        self.run_tool("objcopy", "--strip-debug", "mini")
        with open(self.path("mini"), "rb") as file:
            data = lzma.compress(file.read())
        with open(self.path("mini.xz"), "wb") as file:
            file.write(data)
        self.run_tool("objcopy", "--strip-all", program)
        self.run_tool("objcopy", "--add-section", ".gnu_debugdata=mini.xz", program)
        self.check(program, SYMBOLS)


class Separate(TestCase):
    def test_beside(self):
        """.gnu_debuglink, without a build ID: the CRC must be right."""
        for place in ("program.debug", ".debug/program.debug"):
            program = self.compile("-Wl,--build-id=none")
            self.separate(program, self.path("program.debug"))
            self.run_tool("objcopy", "--add-gnu-debuglink=program.debug", program)
            if place != "program.debug":
                os.rename(self.path("program.debug"), self.path(place))
            self.check(program, DEBUG)
            with open(self.path(place), "ab") as file:
                file.write(b"x")
            self.check(program, NOTHING)
            os.unlink(self.path(place))
            self.check(program, NOTHING)

    def test_beside_with_a_build_id(self):
        """Another build's file of that name is not taken, though its CRC is what is asked for."""
        program = self.compile()
        self.separate(program, self.path("program.debug"))
        self.run_tool("objcopy", "--add-gnu-debuglink=program.debug", program)
        self.check(program, DEBUG)
        other = self.compile("-Wl,--build-id=0x1234567890", name="other")
        self.separate(other, self.path("program.debug"))
        self.run_tool("objcopy", "--remove-section=.gnu_debuglink", program)
        self.run_tool("objcopy", "--add-gnu-debuglink=program.debug", program)
        self.check(program, NOTHING)

    def test_compressed(self):
        for kind in ("zlib", "zstd"):
            program = self.compile()
            self.separate(program, self.path("program.debug"))
            self.run_tool("objcopy", f"--compress-debug-sections={kind}", "program.debug")
            self.check(program, DEBUG)
            os.unlink(self.path("program.debug"))

    def test_frames(self):
        """Where the unwinding tables, too, stand in the debug file alone."""
        for kind in ("none", "zlib"):
            program = self.compile("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
            self.separate(program, self.path("program.debug"))
            self.run_tool("objcopy", f"--compress-debug-sections={kind}", "program.debug")
            run = self.check(program, DEBUG)
            self.assertNotIn("by following the code", run.stderr)
            os.unlink(self.path("program.debug"))

    def test_usr_lib_debug(self):
        """By build ID, and by path."""
        harness.need(os.access("/usr/lib", os.W_OK), "/usr/lib/debug cannot be written")
        program = self.compile()
        self.separate(program, self.path("x.debug"))
        build_id = self.build_id(program)
        by_path = "/usr/lib/debug" + os.path.dirname(os.path.realpath(program))
        for place in (
            f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug",
            f"{by_path}/program.debug",
        ):
            made = place
            while not os.path.exists(os.path.dirname(made)):
                made = os.path.dirname(made)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            try:
                shutil.copy(self.path("x.debug"), place)
                self.check(program, DEBUG)
            finally:
                shutil.rmtree(made) if os.path.isdir(made) else os.unlink(made)
            self.check(program, NOTHING)

    def test_debug_dir(self):
        program = self.compile()
        self.separate(program, self.path("x.debug"))
        build_id = self.build_id(program)
        places = (
            f"symbols/.build-id/{build_id[:2]}/{build_id[2:]}.debug",
            "symbols" + os.path.realpath(program) + ".debug",
            "symbols/program.debug",
        )
        for place in places:
            shutil.copy(self.path("x.debug"), self.path(place))
            self.check(program, NOTHING)
            self.check(program, DEBUG, "--debug-dir=/nowhere", "--debug-dir", self.path("symbols"))
            os.unlink(self.path(place))
        # The first one counts, if it is the right one.
        self.compile(name="other", source="other.c")
        for name in ("wrong", "right"):
            os.makedirs(self.path(name))
        self.run_tool("objcopy", "--only-keep-debug", "other", "wrong/program.debug")
        shutil.copy(self.path("x.debug"), self.path("right/program.debug"))
        for names in (("wrong", "right"), ("right", "wrong")):
            self.check(program, DEBUG, *(f"--debug-dir={self.path(name)}" for name in names))
        self.check(program, NOTHING, f"--debug-dir={self.path('wrong')}")
        told = "profiler: --debug-dir: cannot open /nowhere: No such file or directory\n"
        self.assertIn(told, self.profile(program, "--debug-dir=/nowhere").stderr)
        self.assertNotIn(told, self.profile(program, "--debug-dir=/nowhere", "-q").stderr)

    def test_debug_dir_for_a_report(self):
        """A recording without names gets them where the debug files are."""
        program = self.compile()
        self.separate(program, self.path("symbols/program.debug"))
        target = self.start(program)
        harness.wait_for(lambda: self.sleeps(target.pid), "its sleep")
        recorded = Recorded(target, "--no-symbols", duration="0.1").finish()
        for args, expected in (([], NOTHING), ([f"--debug-dir={self.path('symbols')}"], DEBUG)):
            out, _ = report(recorded.data, "-f", "pprof", "-o", "-", *args)
            (known,) = {self.known_of(sample) for sample in pprof.Profile(out).samples}
            self.assertEqual(known, expected)

    def test_dwz(self):
        """What two debug files share is in a third one (.gnu_debugaltlink)."""
        programs = [self.compile(f"-DN={n}", name=name) for n, name in enumerate(("program", "b"))]
        for program in programs:
            self.separate(program, program + ".debug")
        self.run_tool("dwz", "-m", "shared", "-M", self.path("shared"), "program.debug", "b.debug")
        self.run_tool("objcopy", "--add-gnu-debuglink=program.debug", programs[0])
        with open(self.path("program.debug"), "rb") as file:
            self.assertIn(b".gnu_debugaltlink", file.read())
        self.check(programs[0], DEBUG)
        os.makedirs(self.path("symbols/.dwz"))
        os.rename(self.path("shared"), self.path("symbols/.dwz/shared"))
        run = self.profile(programs[0])
        self.assertNotIn("inlined", {f.name for s in run.pprof.samples for f in s.frames})
        self.check(programs[0], DEBUG, f"--debug-dir={self.path('symbols')}")


class Split(TestCase):
    """DWARF in .dwo files (-gsplit-dwarf)."""

    def test_versions(self):
        for version in ("4", "5"):
            program = self.compile(f"-gdwarf-{version}", "-gsplit-dwarf")
            self.check(program, DEBUG)
            (dwo,) = [name for name in os.listdir(self.where) if name.endswith(".dwo")]
            os.rename(self.path(dwo), self.path("kept"))
            run = self.profile(program)
            self.assertNotIn("inlined", {f.name for s in run.pprof.samples for f in s.frames})
            self.assertIn("hidden", {f.name for s in run.pprof.samples for f in s.frames})
            where = f"{self.path('symbols')}-{version}"
            for directory in (where, where + "-tree" + self.where):
                os.makedirs(directory)
                shutil.copy(self.path("kept"), os.path.join(directory, dwo))
            self.check(program, DEBUG, f"--debug-dir={where}")
            self.check(program, DEBUG, f"--debug-dir={where}-tree")

    def check_headers(self, compiler, *args):
        for name, text in HEADERS.items():
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        self.run_tool(compiler, "-O2", "-g", "-gsplit-dwarf", *args, "program.cpp", "-o", "program")
        run = self.profile(self.path("program"))
        for sample in run.pprof.samples:
            own = [f for f in sample.frames if self.where in f.location["mapping"]["filename"]][-3:]
            for frame, (name, file, line) in zip(own, SHIPPED, strict=True):
                self.assertEqual(frame.name.split("(")[0], name, own)
                self.assertEqual(os.path.basename(frame.file), file, own)
                self.assertIn(frame.line, line if isinstance(line, tuple) else (line,), own)
        for name in os.listdir(self.where):
            if name.endswith(".dwo"):
                os.unlink(self.path(name))

    def test_headers(self):
        """The files of inlined calls stand in the program's line table; what a .dwo file has is for
        types alone (LLVM), which may have units of their own, in sections of their own (GCC)."""
        for compiler, version, *types in harness.a_few((
            ("g++", "4", "-fdebug-types-section"), ("g++", "5"), ("clang++", "4"), ("g++", "5", "-fdebug-types-section"),
            ("clang++", "5", "-fdebug-types-section"),
        )):  # fmt: skip
            with self.subTest(compiler=compiler, version=version, types=types):
                self.check_headers(compiler, f"-gdwarf-{version}", *types)

    def test_of_another_build_in_a_directory(self):
        """Its id is another one."""
        program = self.compile("-gsplit-dwarf")
        (dwo,) = [name for name in os.listdir(self.where) if name.endswith(".dwo")]
        os.unlink(self.path(dwo))
        self.compile("-gsplit-dwarf", "-Dinlined=renamed", "-Dhidden=other", name="other")
        (other,) = [name for name in os.listdir(self.where) if name.endswith(".dwo")]
        os.makedirs(self.path("symbols"))
        os.rename(self.path(other), self.path(f"symbols/{dwo}"))
        run = self.profile(program, f"--debug-dir={self.path('symbols')}")
        names = {f.name for s in run.pprof.samples for f in s.frames}
        self.assertNotIn("renamed", names)
        self.assertIn("hidden", names)

    # DW_SECT_*, 7.3.5.3
    SECTIONS = {1: "info", 3: "abbrev", 4: "line", 6: "str_offsets", 8: "rnglists"}

    def pack(self, version):
        """A program, and the file "package" of its .dwo file and another one before it."""
        made = []
        for name in ("other", "program"):
            source = {"other": "other.c", "program": "program.c"}[name]
            program = self.compile(f"-gdwarf-{version}", "-gsplit-dwarf", "-ffunction-sections",
                                   name=name, source=source)  # fmt: skip
            (dwo,) = [n for n in os.listdir(self.where) if n.endswith(".dwo") and n not in made]
            made.append(dwo)
        if version == "4":
            self.run_tool("dwp", *made, "-o", "package")
        else:
            self.pack_version_5(made)
        for dwo in made:
            os.unlink(self.path(dwo))
        return program

    def pack_version_5(self, files):
        """As llvm-dwp does, but that the strings are the last file's only; binutils' dwp has no
        version 5."""
        columns = list(self.SECTIONS)
        offsets, sizes, ids, whole = [], [], [], {number: b"" for number in columns}
        for dwo in files:
            for number, name in self.SECTIONS.items():
                part = self.path("part")
                with open(part, "wb"):
                    pass
                self.run_tool("objcopy", f"--dump-section=.debug_{name}.dwo={part}", dwo, "/dev/null")
                with open(part, "rb") as file:
                    data = file.read()
                offsets.append(len(whole[number]))
                sizes.append(len(data))
                whole[number] += data
                if name == "info":
                    ids.append(struct.unpack_from("<Q", data, 12)[0])
        slots = [0] * 8
        for row, number in enumerate(ids, 1):
            slot, step = number & 7, (number >> 32 & 7) | 1
            while slots[slot]:
                slot = (slot + step) & 7
            slots[slot] = row
        index = struct.pack("<HHIII", 5, 0, len(columns), len(files), len(slots))
        index += b"".join(struct.pack("<Q", ids[row - 1] if row else 0) for row in slots)
        for words in (slots, columns, offsets, sizes):
            index += struct.pack(f"<{len(words)}I", *words)
        args = []
        for name, data in (("cu_index", index), *((self.SECTIONS[n] + ".dwo", whole[n]) for n in whole if whole[n])):
            with open(self.path("part-" + name), "wb") as file:
                file.write(data)
            args.append(f"--{'add' if name == 'cu_index' else 'update'}-section")
            args.append(f".debug_{name}=part-{name}")
        self.run_tool("objcopy", *args, files[-1], "package")

    def test_packages(self):
        """.dwp: the units of all .dwo files in one."""
        for version in ("4", "5"):
            program = self.pack(version)
            names = {f.name for s in self.profile(program).pprof.samples for f in s.frames}
            self.assertNotIn("inlined", names)
            os.makedirs(self.path("symbols"), exist_ok=True)
            shutil.copy(self.path("package"), self.path("symbols/program.dwp"))
            self.check(program, DEBUG, f"--debug-dir={self.path('symbols')}")
            os.rename(self.path("package"), program + ".dwp")
            self.check(program, DEBUG)
            self.run_tool("objcopy", "--compress-debug-sections=zlib", program + ".dwp")
            self.check(program, DEBUG)
            os.unlink(program + ".dwp")

    def test_of_another_build(self):
        """A .dwo file with another id is not used."""
        program = self.compile("-gsplit-dwarf")
        (dwo,) = [name for name in os.listdir(self.where) if name.endswith(".dwo")]
        os.rename(self.path(dwo), self.path("kept"))
        self.compile("-gsplit-dwarf", "-Dinlined=renamed", "-Dhidden=other", name="other")
        (other,) = [name for name in os.listdir(self.where) if name.endswith(".dwo")]
        os.rename(self.path(other), self.path(dwo))
        run = self.profile(program)
        names = {f.name for s in run.pprof.samples for f in s.frames}
        self.assertNotIn("renamed", names)
        self.assertIn("hidden", names)
        os.rename(self.path("kept"), self.path(dwo))
        self.check(program, DEBUG)


class Server(http.server.ThreadingHTTPServer):
    """A debuginfod server of the files of a directory, by their build IDs."""

    def __init__(self, files):
        self.asked = []
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.files = files
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            path = self.server.files.get(self.path)
            if path is None:
                self.send_error(404)
                return
            with open(path, "rb") as file:
                data = file.read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Debuginfod(TestCase):
    def serve(self, files):
        server = Server(files)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.env = {
            **os.environ,
            "DEBUGINFOD_URLS": server.url(),
            "DEBUGINFOD_CACHE_PATH": self.path("cache"),
        }
        return server

    def test_only_if_asked(self):
        program = self.compile()
        self.separate(program, self.path("x.debug"))
        asks = f"/buildid/{self.build_id(program)}/debuginfo"
        server = self.serve({asks: self.path("x.debug")})
        self.check(program, NOTHING, env=self.env)
        self.assertEqual(server.asked, [])
        run = self.check(program, DEBUG, "--debuginfod", env=self.env)
        self.assertRegex(run.stderr, r"debuginfod: 1 debug file fetched, \d+ not\n")
        self.assertEqual(server.asked.count(asks), 1)
        # The next time it is here.
        run = self.check(program, DEBUG, "--debuginfod", env=self.env)
        self.assertEqual(server.asked.count(asks), 1)

    def test_not_what_is_here(self):
        program = self.compile()
        server = self.serve({})
        self.check(program, DEBUG, "--debuginfod", env=self.env)
        self.assertNotIn(self.build_id(program), "".join(server.asked))

    def test_shared_file(self):
        """What dwz moved into a shared file is asked for, too."""
        programs = [self.compile(f"-DN={n}", name=name) for n, name in enumerate(("program", "b"))]
        for program in programs:
            self.separate(program, program + ".x")
        self.run_tool("dwz", "-m", "shared", "-M", "/nowhere/shared", "program.x", "b.x")
        files = {
            f"/buildid/{self.build_id(path)}/debuginfo": path
            for path in (self.path("program.x"), self.path("shared"))
        }
        server = self.serve(files)
        self.check(programs[0], DEBUG, "--debuginfod", env=self.env)
        self.assertLessEqual(set(files), set(server.asked))

    def test_what_is_fetched_must_fit(self):
        """A server's answer of another build is not used."""
        program = self.compile()
        self.separate(program, self.path("x.debug"))
        other = self.compile("-DN=1", "-Wl,--build-id=0x1234567890", name="other")
        self.serve({f"/buildid/{self.build_id(program)}/debuginfo": other})
        self.check(program, NOTHING, "--debuginfod", env=self.env)

    def test_garbage(self):
        program = self.compile()
        self.separate(program, self.path("x.debug"))
        self.serve({f"/buildid/{self.build_id(program)}/debuginfo": self.path("program.c")})
        self.check(program, NOTHING, "--debuginfod", env=self.env)

    def test_no_server_there(self):
        program = self.compile()
        self.separate(program, self.path("x.debug"))
        server = self.serve({})
        server.shutdown()
        server.server_close()
        self.check(program, NOTHING, "--debuginfod", env=self.env)

    def test_no_server_known(self):
        env = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
        run = harness.Run(["--debuginfod", "-p", os.getpid()], env=env).finish(expect=None)
        self.assert_message(run, "--debuginfod needs a server", harness.STATUS_USAGE)

    def test_the_command_keeps_its_environment(self):
        self.serve({})
        run = harness.wrap(
            ["sh", "-c", "echo $DEBUGINFOD_URLS"], "--debuginfod", env=self.env
        )
        self.assertEqual(run.stdout.decode().strip(), self.env["DEBUGINFOD_URLS"])


if __name__ == "__main__":
    harness.main()
