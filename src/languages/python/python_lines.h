// SPDX-License-Identifier: MIT
// python_lines: finds an instruction's line by its code object's line table.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Returns the line of the instruction `at` bytes behind the first one; 0: it has none. The table is
// co_lnotab up to 3.9, that of PEP 626 in 3.10, and from 3.11 on the location table that CPython
// describes in Objects/locations.md (later InternalDocs).
uint32_t python_lines_find(int minor, const uint8_t *table, size_t size, uint32_t first_line,
                           int64_t at);
