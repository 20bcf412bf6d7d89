// SPDX-License-Identifier: MIT
// name_cache: names of code that were looked up before, in memory that processes share: those that
// are forked off after it was made find what any of them has added.
//
// The agent needs it: without it, windows of 2 s and of 10 s of five programs (Python, Go, redis,
// Java, node) took 1.3 to 1.5 times the CPU time, 30 to 100 ms a window more.
//
// What is in it is never changed or taken out. A process may be killed at any instant: an entry is
// there when all of it is. A cache that is full takes no more; who made it makes another one.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What is named: an address of a file. The file is known by device and inode, which nobody can
// forge, as a build ID can be.
struct name_key {
	uint64_t device, inode;
	uint64_t build; // a hash of the build ID: the file is the same still
	uint64_t address;
	uint64_t code; // struct location's
};

// A function at the address, innermost first. The strings are borrowed; those found are the
// cache's.
struct cached_line {
	const char *system_name, *file;
	const char *source_name; // shown if the other cannot be demangled; "": unknown
	uint32_t start_line, line;
	bool is_plain; // never demangled
};

struct name_cache;

enum { NAME_CACHE_MAX_LINES = 256 };

// NULL: there is no memory for it.
struct name_cache *name_cache_create(void);
void name_cache_destroy(struct name_cache *cache); // for this process; NULL is accepted
bool name_cache_is_full(const struct name_cache *cache);

// The number of lines, which may be 0: it has no name; -1: not known.
int name_cache_find(const struct name_cache *cache, const struct name_key *key,
                    struct cached_line ret[NAME_CACHE_MAX_LINES]);
void name_cache_add(struct name_cache *cache, const struct name_key *key,
                    const struct cached_line *lines, size_t n);
