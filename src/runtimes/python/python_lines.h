// SPDX-License-Identifier: MIT
// python_lines: from an instruction of a code object to its line, by the object's line table.
#pragma once

#include <stddef.h>
#include <stdint.h>

// `at`: of the instruction, in bytes from the first one. 3.8 and 3.9: co_lnotab; 3.10: PEP 626;
// 3.11 on: the location table of Objects/locations.md (CPython's InternalDocs). 0: it has no line.
uint32_t python_lines_find(int minor, const uint8_t *table, size_t size, uint32_t first_line,
                           int64_t at);
