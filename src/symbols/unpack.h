// SPDX-License-Identifier: MIT
// unpack: unpacks sections of ELF files that zstd has compressed (gABI, ELFCOMPRESS_ZSTD), which
// elfutils before 0.190 does not read. Those that zlib has compressed are left to elfutils.
#pragma once

// Takes fd over and returns it, or instead a memory file with the same contents and those sections
// unpacked; fd itself for files that are damaged, or would grow beyond all measure.
int unpack_sections(int fd);
