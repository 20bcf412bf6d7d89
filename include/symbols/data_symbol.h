// SPDX-License-Identifier: MIT
// data_symbol: the names of global variables, by their addresses in a process.
#pragma once

#include <stdint.h>

struct modules;

// "name", or "name+0x18" within it, of the variable that holds the address; NULL: none that is
// known. A new string, owned by the caller. Reads symbol tables anew each time: for a few
// addresses.
char *data_symbol_name(const struct modules *modules, uint64_t address);
