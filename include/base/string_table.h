// SPDX-License-Identifier: MIT
// string_table: each distinct string once, numbered from 0 in the order of its first use.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hash.h"

struct string_table {
	char **items; // owned
	size_t count, capacity;
	struct hash_index index;
};

// A zeroed struct string_table is an empty table.
void string_table_deinit(struct string_table *table);

// Returns the number of the string, which is copied if it is new.
uint32_t string_table_intern(struct string_table *table, const char *string);

// The same for a string from outside, which is cleaned first (text_clean).
uint32_t string_table_intern_clean(struct string_table *table, const char *string);

// A string that is looked for.
struct string_key {
	const char *bytes; // borrowed; any bytes, not terminated
	size_t length;
};

enum { STRING_TABLE_MAX_KEYS = 32 };

// Looks up `n` strings, STRING_TABLE_MAX_KEYS at most. Their cache misses overlap, which makes it
// faster than one look-up after the other. Sets ret[i] to the number of keys[i]; HASH_NONE: it is
// not there.
void string_table_find(const struct string_table *table, const struct string_key *keys, size_t n,
                       uint32_t *ret);
