// SPDX-License-Identifier: MIT
// unpack: ELF files with sections that zstd has compressed (gABI, ELFCOMPRESS_ZSTD), which elfutils
// before 0.190 does not read. Those that zlib has compressed are left to it.
#pragma once

// Takes fd over and returns it, or instead a memory file with the same contents and those sections
// unpacked; of files that are damaged, or would grow beyond all measure, fd itself.
int unpack_sections(int fd);
