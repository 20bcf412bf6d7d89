// SPDX-License-Identifier: MIT
// function_range: where functions begin and end, by the symbols of a module's own file, for the
// sampling path: nothing is sorted, and no name is read but one. A large table is looked through
// once for each function that is asked for, in a few milliseconds.
#pragma once

#include <stdint.h>

struct function_ranges; // of a module: what was found
struct module;

// The addresses around one that have the same symbol.
struct function_range {
	uint64_t start, end;
	uint64_t symbol;   // where the symbol begins; 0: no symbol names these addresses
	uint64_t function; // the same, if it is certainly a function's; else 0
};

// Finds the range of the address in the file. Without a symbol, or when looking has taken too long
// in all, symbol is 0. Call it in guarded work.
struct function_range function_range_find(struct module *module, uint64_t address);

// NULL is accepted.
void function_ranges_destroy(struct function_ranges *ranges);
