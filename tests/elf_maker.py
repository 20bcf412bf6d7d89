# SPDX-License-Identifier: MIT
"""ELF files made or spoiled for tests: 64-bit, little-endian, x86-64."""

import struct
import zlib

SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_NOBITS = 1, 2, 3, 8
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
STT_FUNC_GLOBAL = 0x12
CODE = 0x1000  # where make() puts the code: "jmp ." and what looks like a function around it
CODE_BYTES = 64
SECTION_HEADER = "<IIQQQQIIQQ"


def make(sections=(), symbols=(), build_id=b""):
    """A file whose code, at 4096 of the file and of its addresses, jumps to itself.

    sections: (name, type, flags, bytes, link's name or ""); symbols: (name, info, address, size),
    their names as bytes."""
    strings, table = b"\0", bytes(24)
    for name, info, address, size in symbols:
        table += struct.pack("<IBBHQQ", len(strings), info, 0, 1, address, size)
        strings += name + b"\0"
    every = [(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, b"", "")]
    if symbols:
        every += [
            (".strtab", SHT_STRTAB, 0, strings, ""),
            (".symtab", SHT_SYMTAB, 0, table, ".strtab"),
        ]
    if build_id:
        note = struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id
        every.append((".note.gnu.build-id", 7, SHF_ALLOC, note, ""))
    every += sections
    names = [name for name, *_ in every] + [".shstrtab"]
    data = bytearray(CODE) + b"\xeb\xfe".ljust(CODE_BYTES, b"\x90")
    headers = [bytes(64)]
    name_table = b"\0"
    for name, kind, flags, content, link in every:
        offset = CODE if name == ".text" else len(data)
        size = CODE_BYTES if name == ".text" else len(content)
        address = offset if flags & SHF_ALLOC else 0
        entry = 24 if kind == SHT_SYMTAB else 0
        headers.append(
            struct.pack(
                SECTION_HEADER, len(name_table), kind, flags, address, offset, size,
                names.index(link) + 1 if link else 0, 0, 8, entry,
            )
        )  # fmt: skip
        name_table += name.encode() + b"\0"
        data += content + bytes(-len(content) % 8)
    headers.append(
        struct.pack(
            SECTION_HEADER, len(name_table), SHT_STRTAB, 0, 0, len(data),
            len(name_table) + len(".shstrtab") + 1, 0, 0, 1, 0,
        )
    )  # fmt: skip
    name_table += b".shstrtab\0"
    data += name_table + bytes(-len(name_table) % 8)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, CODE, 64, len(data), 0, 64, 56, 1, 64, len(headers),
        len(headers) - 1,
    )  # fmt: skip
    header += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, len(data), len(data), 4096)
    data[: len(header)] = header
    return bytes(data) + b"".join(headers)


class Elf:
    """A file to be spoiled."""

    def __init__(self, data):
        self.data = bytearray(data)
        self.offset = struct.unpack_from("<Q", data, 40)[0]
        self.count, self.names = struct.unpack_from("<HH", data, 60)

    def header(self, number):
        return list(struct.unpack_from(SECTION_HEADER, self.data, self.offset + 64 * number))

    def find(self, name):
        """The number of the section of that name."""
        strings = self.header(self.names)[4]
        for number in range(self.count):
            start = strings + self.header(number)[0]
            if self.data[start : self.data.index(b"\0", start)] == name.encode():
                return number
        raise KeyError(name)

    def content(self, name):
        """The place of a section's bytes: a slice."""
        header = self.header(self.find(name))
        return slice(header[4], header[4] + header[5])

    def change(self, name, **fields):
        """Changes fields of a section's header: type, flags, addr, offset, size, link, entsize."""
        number = self.find(name)
        header = self.header(number)
        order = "name type flags addr offset size link info align entsize".split()
        for field, value in fields.items():
            header[order.index(field)] = value
        struct.pack_into(SECTION_HEADER, self.data, self.offset + 64 * number, *header)

    def rename(self, name, other):
        number = self.find(name)
        strings = self.content(".shstrtab")
        self.replace(".shstrtab", bytes(self.data[strings]) + other.encode() + b"\0")
        struct.pack_into("<I", self.data, self.offset + 64 * number, strings.stop - strings.start)

    def replace(self, name, content):
        """The section's bytes are others from now on, at the file's end."""
        self.change(name, offset=len(self.data), size=len(content))
        self.data += content

    def spoil(self, random, name, share):
        """Changes that share of a section's bytes."""
        place = self.content(name)
        for _ in range(max(1, int((place.stop - place.start) * share))):
            self.data[random.randrange(place.start, place.stop)] = random.choice(
                (0, 0xFF, 0x7F, 0x80, random.randrange(256))
            )


def compressed_zeros(size):
    """An ELF section's compressed form of so many zeros (a multiple of 1 MB), made in no time."""
    chunk = bytes(1 << 20)
    packer = zlib.compressobj(9)
    stream = packer.compress(chunk) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(chunk) + packer.flush(zlib.Z_FULL_FLUSH)
    stream += again * ((size >> 20) - 1)
    stream += b"\x03\x00" + struct.pack(">I", (size % 65521) << 16 | 1)  # the end, and the sum
    return struct.pack("<IIQQ", 1, 0, size, 1) + stream
