// SPDX-License-Identifier: MIT
// plt: makes names such as "puts@plt" for the entries of a module's procedure linkage tables, which
// have no symbols of their own. Empty for programs of other processors.
#pragma once

#include <stdint.h>

typedef struct Dwfl_Module Dwfl_Module; // <elfutils/libdwfl.h>

struct plt;

// Reads the entries of the module's .plt, .plt.sec and .plt.got; owned by the caller, never NULL.
struct plt *plt_create(Dwfl_Module *module);

// NULL is accepted.
void plt_destroy(struct plt *plt);

// Returns the name of the entry that holds the address in the file, owned by plt; NULL: none does.
const char *plt_find(const struct plt *plt, uint64_t address);
