// SPDX-License-Identifier: MIT
// plt: makes names such as "puts@plt" for the entries of a module's procedure linkage tables, which
// have no symbols of their own. Empty for programs of other processors.
#pragma once

#include <stdint.h>

typedef struct Dwfl_Module Dwfl_Module; // <elfutils/libdwfl.h>

struct plt;

// Returns the name of the function at the address in the file, borrowed from the context; or NULL.
typedef const char *plt_name_of(const void *context, uint64_t address);

// Reads the entries of the module's .plt, .plt.sec and .plt.got; owned by the caller, never NULL.
struct plt *plt_create(Dwfl_Module *module, plt_name_of *name_of, const void *context);

// NULL is accepted.
void plt_destroy(struct plt *plt);

// Returns the name of the entry that holds the address in the file, owned by plt; NULL: none does.
const char *plt_find(const struct plt *plt, uint64_t address);
