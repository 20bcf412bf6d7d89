// SPDX-License-Identifier: MIT
// top_own: remembers of each function whether it is of the program's own code (own_code.h), and
// whether it only leads to such code or from it to the kernel.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct modules;
struct profile;
struct symbols;
struct top_input;

struct top_owned {
	uint32_t module; // its position in the table
	uint8_t bits;    // private; 0: not looked at
};

struct top_own {
	struct top_owned *functions; // by the position in the symbols
	size_t n_functions, functions_capacity;
	struct top_owned *locations; // those without a name, by the position in the profile
	size_t n_locations, locations_capacity;
};

// Looks at what is new in the symbols.
void top_own_update(struct top_own *own, const struct profile *profile,
                    const struct modules *modules, const struct symbols *symbols);
void top_own_deinit(struct top_own *own);

// True if the frame (id as for top_function_full_name) is of the program's own code.
bool top_is_own(const struct top_input *input, uint32_t id);

// Returns the position of the function's module; TOP_NONE: not known.
uint32_t top_module_of(const struct top_input *input, uint32_t id);

// Returns the position of the innermost frame of the program's own code among `n`, leaf first; n:
// there is none.
size_t top_own_frame(const struct top_input *input, const uint32_t *ids, size_t n);

// Leaves out of a stack's frames, leaf first, with their lines, those that say nothing of the
// program: of what is not its own, all but the functions that its own ones called. Where nothing is
// its own, what starts a thread, and what the C library's locks are made of. There is room for one
// more than `n`. Returns how many are left: 1 or more, if n is.
size_t top_fold(const struct top_input *input, uint32_t *ids, uint32_t *lines, size_t n);
