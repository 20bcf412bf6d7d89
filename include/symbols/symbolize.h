// SPDX-License-Identifier: MIT
// symbolize: finds names for the locations of a finished profile, and looks each up once.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct modules;
struct name_cache;
struct profile;
struct symbolizer;

struct function {
	char *name;          // demangled; valid UTF-8, no control characters
	char *system_name;   // as in the symbol table; likewise
	char *file;          // the path of the source, or ""; likewise
	uint32_t start_line; // 0: unknown
};

struct line {
	uint32_t function; // position in symbols.functions
	uint32_t line;     // 0: unknown
};

// The lines of one location: innermost inlined call first, the function that stands in the
// machine code last.
struct location_lines {
	uint32_t first; // position in symbols.lines
	uint32_t count; // 0: the location has no name
};

struct symbols {
	struct function *functions;
	size_t n_functions, functions_capacity;
	struct line *lines;
	size_t n_lines, lines_capacity;
	struct location_lines *locations; // one for each location of the profile
	size_t n_locations, locations_capacity;
	uint64_t n_unnamed; // locations without a name
};

struct symbolize_options {
	bool inlines;             // look up inlined calls
	struct name_cache *cache; // of names by files with a build ID, for the same `inlines`;
	                          // borrowed; NULL: none
};

// Looks up all locations of the profile in their modules. A location without a name keeps count 0,
// which is not an error. Nothing that a module holds can make it fail or run without bound. Stacks
// of blocked threads end in the call that they made (blocked_leaf.h).
void symbolize(struct profile *profile, struct modules *modules,
               const struct symbolize_options *options, struct symbols *ret);

// Does the same little by little, while the profile grows. What is looked up goes to *ret, which
// must not be moved, and which the caller deinits after the symbolizer.
struct symbolizer *symbolizer_create(const struct symbolize_options *options, struct symbols *ret);
void symbolizer_destroy(struct symbolizer *symbolizer); // NULL is accepted

// Looks up these locations, and sorts their ids.
void symbolizer_look_up(struct symbolizer *symbolizer, const struct profile *profile,
                        struct modules *modules, uint32_t *ids, size_t n);

// Makes room for so many locations; new ones have no name.
void symbols_fit(struct symbols *symbols, size_t n_locations);

// Gives the location that name, in place of what it has. The profile has n_locations.
void symbols_add_name(struct symbols *symbols, size_t n_locations, uint32_t location,
                      const char *name);

void symbols_deinit(struct symbols *symbols);
