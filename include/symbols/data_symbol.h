// SPDX-License-Identifier: MIT
// data_symbol: finds the names of global variables by their addresses in a process.
#pragma once

#include <stdint.h>

struct modules;

// Returns "name", or "name+0x18" for an address within it, of the variable that holds the address;
// NULL: none is known. A new string, owned by the caller. Reads symbol tables again each time: use
// it for a few addresses.
char *data_symbol_name(const struct modules *modules, uint64_t address);
