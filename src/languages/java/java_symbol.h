// SPDX-License-Identifier: MIT
// java_symbol: HotSpot's names (Symbol), in modified UTF-8.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "java_layout.h"
#include "java_memory.h"

enum { JAVA_SYMBOL_SIZE = 1025 }; // with the NUL; what is longer is cut off

// Reads a Symbol as a string; false if it cannot be read, or is none.
bool java_symbol_read(const struct java_layout *layout, const struct java_memory *memory,
                      uint64_t symbol, char ret[JAVA_SYMBOL_SIZE]);

// Reads a name that is among a class's constants; false if it cannot be read, or is none.
bool java_symbol_constant(const struct java_layout *layout, const struct java_memory *memory,
                          uint64_t pool, uint16_t index, char ret[JAVA_SYMBOL_SIZE]);
