#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seeds for the fuzzers: make_corpus.py OUTPUT PROGRAM...

For each harness a directory with what its parser reads in earnest: the programs whole, their
sections in the form that fuzz_sections.c reads, and files of /proc. OUTPUT is written last.
"""

import gzip
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import pprof_maker  # noqa: E402

SECTIONS = [
    ".eh_frame", ".eh_frame_hdr", ".debug_frame", ".debug_info", ".debug_abbrev", ".debug_line",
    ".debug_str", ".debug_line_str", ".debug_ranges", ".debug_rnglists", ".debug_addr",
    ".debug_str_offsets", ".debug_types", ".strtab", ".symtab", ".dynstr", ".dynsym",
    ".rela.plt", ".plt", ".gnu_debugdata", ".gnu_debuglink", ".gnu_debugaltlink", ".gopclntab",
]  # fmt: skip
MAX_BYTES = 1 << 18
MAX_ADDRESSES = 24
SHT_NOBITS, SHT_SYMTAB, STT_FUNC = 8, 2, 2

STATUS = """Name:\tcat
Umask:\t0022
State:\tS (sleeping)
Tgid:\t42
Pid:\t42
PPid:\t1
TracerPid:\t7
Uid:\t1000\t1001\t1002\t1003
SigPnd:\t0000000000000000
SigBlk:\t0000000000010000
Seccomp:\t2
"""
STAT = (
    "42 (a) b) S 1 42 42 0 -1 4194304 101 0 0 0 1 2 3 4 20 0 3 0 12345 4096000 200 "
    "18446744073709551615 1 1 140737488347136 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
)
MAPS = """\
55d0c0000000-55d0c0002000 r--p 00000000 fe:00 131155                     /usr/bin/cat
55d0c0002000-55d0c0007000 r-xp 00002000 fe:00 131155                     /usr/bin/cat
55d0c0f00000-55d0c0f21000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 r-xp 00000000 00:01 4711                       /memfd:x\\012y (deleted)
7f0000001000-7f0000002000 rwxs 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
"""
SOCKETS = [
    "\0   0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 1 1 0 100 0 0 10 0\n",
    "\1   0: 00000000000000000000000001000000:0016 B80D0120000000000000000001000000:C001 01 0:0 "
    "00:0 0 0 0 4711 1\n",
    "\4 0: 00000002 00000000 00010000 0001 01 4711 /run/a b.sock\n1: 3 0 0 1 3 1\n",
]
NAMES = [
    "_ZNSt6vectorIiSaIiEE9push_backEOi", "_Z1fILi1EEvT_.constprop.0",
    "_ZN4core3fmt5write17h0123456789abcdefE",
    "_RNvNtCs1234_7mycrate3foo3bar", "_D3std5stdio__T7writelnTAyaZQoFQhZv", "memcpy@@GLIBC_2.14",
    "_ZGVZ1fvE1x", "_Dmain", "\x1b[31mred\x1b[0m", "a;b\nc\u2028d\u0085e", "\ufffe\ud7ff",
    "_ZN" + "1a" * 500 + "E", "_Z" + "P" * 900 + "v",
]  # fmt: skip
OPTIONS = [
    "-p\n42\n-d\n1.5s", "-F\n99\n-o\nx.pb.gz\n--\ntrue", "--help", "push\n-o\nx\n--\nhttp://h\na", "--max-depth=7\n--on-cpu\n-p\n1",
    "--thread=^a.*(b|c)$\n--format=folded\n--pid=1\n-qv\n--stop-all\n--max-overhead=2.5\n-c",
]  # fmt: skip


def sections(elf):
    """name -> (address, bytes) of a 64-bit file."""
    offset, = struct.unpack_from("<Q", elf, 40)  # fmt: skip
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size) for i in range(count)]
    strings = headers[names][4]
    found = {}
    for name, kind, _, address, at, length, *_ in headers:
        end = elf.index(b"\0", strings + name)
        text = elf[strings + name : end].decode()
        found[text] = (address, b"" if kind == SHT_NOBITS else elf[at : at + length])
    return found


def functions(found):
    """Addresses of functions, and some in them."""
    _, table = found.get(".symtab", (0, b""))
    addresses = []
    for _, info, _, _, address, size in struct.iter_unpack("<IBBHQQ", table):
        if info & 15 == STT_FUNC and size:
            addresses += [address, address + size // 2]
    return addresses


def packed(elf):
    """The form of fuzz_sections.c."""
    found = sections(elf)
    addresses = functions(found)
    step = max(1, len(addresses) // MAX_ADDRESSES)
    addresses = addresses[::step][:MAX_ADDRESSES]
    for name in (".plt", ".plt.sec"):  # with an expression in its unwinding rules
        if name in found:
            addresses += [found[name][0] + 0x16, found[name][0] + 0x1B]
    data = bytes([len(addresses)])
    data += b"".join(struct.pack("<I", a & 0xFFFFFFFF) for a in addresses)
    for number, name in enumerate(SECTIONS):
        if name in found:
            address, content = found[name]
            data += struct.pack("<BII", number, address & 0xFFFFFFFF, len(content)) + content
    return data


def stack(frames):
    """A stack of return addresses into code, and frame pointers, for fuzz_unwind.c."""
    code, pointer = 0x45444F43 << 32, 0x4B435453 << 32
    data = struct.pack("<I", 0x1FFFF)
    for register in range(17):
        word = {6: pointer | 16, 7: pointer, 16: code | 0x1000}.get(register, 0)
        data += struct.pack("<Q", word)
    for i in range(frames):
        data += struct.pack("<QQ", pointer | (16 * i + 32), code | (i % 3) << 28 | 0x1357 * i)
    return data


def go_thread():
    """A thread of Go on its own stack, below it a goroutine's, in the form of fuzz_go.c."""

    def memory(word):
        return 0x594D454D << 32 | word * 8

    words = [0] * 256
    g, m, own = 8, 24, 64  # a goroutine's struct g, and where the others are
    for at, low in ((g, 96), (own, 160)):
        words[at : at + 10] = [memory(low), memory(low + 32), 0, 0, 0, 0, memory(m), memory(low + 9), 7, memory(at)]
    words[0], words[m], words[m + 23] = memory(own), memory(own), memory(g)
    words[164:166] = [64, memory(g)]  # asmcgocall's
    registers = [memory(164)] * 17
    return struct.pack("<IIQQI18Q", 2**32 - 8, 23 * 8, 0, memory(1), 0x1FFFF, *registers, 0x8765) + struct.pack(
        "<256Q", *words
    )


def expression():
    """DW_OP_breg7 8; deref; lit8; plus; bra, in the form of fuzz_expression.c."""
    data = struct.pack("<IQ", 0x1FFFF, 0x1000)
    for atom, number in ((0x77, 8), (0x06, 0), (0x38, 0), (0x22, 0), (0x28, 1), (0x12, 0)):
        data += struct.pack("<BBbbB", atom, 0, number, 0, 5)
    return data


def varint(number):
    """Seven bits a byte, the lowest first."""
    data = b""
    while number >= 128:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def recording():
    """Two small blocks with a record of each type; fuzz_record.c puts the checksums right."""

    def block(number, *records):
        body = b""
        for kind, *fields in records:
            data = b"".join(
                varint(len(f)) + f if isinstance(f, bytes) else varint(f) for f in fields
            )
            body += varint(kind) + varint(len(data)) + data
        return b"WBLK" + struct.pack("<III", len(body), 0, number) + body

    first = block(
        0,
        (1, 1700000000 * 10**9, 10101010, 42, 1, b"host", b"profiler"),
        (2, 0, 0, 1, 8, 77, b"abcdefgh", b"/bin/program"),
        (3, 0, 0x1000, 0x2000, 0, 0x500),
        (4, 0, 0, 0x800, 1, 5, 64),
        (5, 0, 0, 0, 2, 0, 1, 2, 1, 1, 1),
        (6, 0, 42, 42, 0, b"main"),
        (6, 1, 42, 43, 0, b"worker"),
        (15, 0, 1, b"", b"", b""),
        (15, 1, 2, b"socket:[5]", b"tcp", b"schedule\n"),
        (8, 0, 0, 0, 0, 1, 0x41, 1, 1),
        (8, 10101010, 0, 0x10, 1, 3),
        (7, 42, b"program"),
        (10, 30303030, 4, 1, 0, 500),
    )
    second = block(
        1,
        (8, 40404040, 0, 0x0F, 5, 10, 1, 0x2A, 4, 1000, 0, 7),
        (9, 1, 40404040),
        (10, 50505050, 2, 0, 0, 0),
        (12, 0, b"leaf", b"_Z4leafv", b"/a.c", 7),
        (13, 0, 1, 0, 9),
        (11, 1, 100, 2),
        (14, 50505050, 12, b"comment"),
    )
    return b"\x89WPROF\r\n" + struct.pack("<II", 1, 0) + first + second


def pprof():
    samples = [([f"f{i}", "main"], i + 1, {"state": state, "thread": f"w-{i}"})
               for i, state in enumerate(("running", "sleeping"))]  # fmt: skip
    deep = [f"[m+0x{i:x}]" for i in range(9)]
    made = pprof_maker.make([*samples, (deep, 3, {})], comments=["label host=h"], at_ns=10**18)
    return gzip.decompress(made)


def textrel_image():
    """An object file whose .eh_frame is relative to its code, as PHP's JIT makes them."""
    names = b"\0.text\0.eh_frame\0"
    cie = struct.pack("<II16s", 20, 0, b"\1zR\0\1\x78\x10\1\x23\x0c\7\x08\x90\1")
    fde = struct.pack("<IIII8s", 20, 28, 16, 64, b"\0\x0e\x20")
    frames = cie + fde + bytes(4)
    sections = b"".join(struct.pack("<IIQQQQIIQQ", *section, 0, 0, 1, 0) for section in (
        (0, 0, 0, 0, 0, 0), (1, 8, 6, 1 << 40, 0, 128),
        (7, 1, 2, 0, 64 + 4 * 64, len(frames)), (0, 3, 0, 0, 64 + 4 * 64 + len(frames), len(names)),
    ))  # fmt: skip
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 1, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, 4, 3)
    return header + sections + frames + names


def main():
    output, programs = sys.argv[1], sys.argv[2:]
    seeds = {
        "maps": [MAPS.encode()],
        "proc": [STATUS.encode(), STAT.encode(), b"0 0x0 0x1 0x2 0x3 0x4 0x5 0x7ffc 0x7f00\n",
                 b"-1 0x7ffc 0x7f00\n", b"running\n"],
        "x86_code": [bytes.fromhex("5553e80000000089c74883c4285b5dc3"), bytes.fromhex("c9c3")],
        "perf_map": [b"1000 10 first\n0x1008 0x20 second, with spaces\n0 0 none\nx\n"],
        "sockets": [text.encode() for text in SOCKETS],
        "text": [name.encode("utf-8", "surrogatepass") for name in NAMES],
        "options": [text.encode() for text in OPTIONS],
        "expression": [expression()],
        "pprof": [pprof()],
        "go": [go_thread()],
        "record": [recording()],
        "keys": [b"\x1e\x3f123\x1b[A\x1b[6~\x1bOP?/a\r\\b\rKlRsrwh 5\x1b[<64;1;1M,.<>+-dSp\tq"],
        "top": [recording()],
        "report": [bytes([way]) + recording() for way in (0, 0xFF)],
        "diff": [b"main;a 12\nmain;b c 3\n\0main;b c 4\n# x\nmain;d 99999999999999999999\n"],
        "unwind": [stack(n) for n in (1, 10, 100)],
        "elf": [], "sections": [], "jit_object": [textrel_image()],
    }  # fmt: skip
    for program in programs:
        with open(program, "rb") as file:
            elf = file.read()
        if len(elf) <= MAX_BYTES:
            seeds["elf"].append(elf)
            seeds["sections"].append(packed(elf))
            seeds["jit_object"].append(elf[:16] + struct.pack("<H", 1) + elf[18:])  # ET_REL
    temporary = output + ".part"
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.rmtree(output, ignore_errors=True)
    for harness, files in seeds.items():
        os.makedirs(os.path.join(temporary, harness))
        for number, data in enumerate(files):
            with open(os.path.join(temporary, harness, f"seed-{number}"), "wb") as file:
                file.write(data)
    os.rename(temporary, output)


if __name__ == "__main__":
    main()
