// SPDX-License-Identifier: MIT
// goroutine_table: the goroutines of one process that were seen, and what is counted for them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goroutines.h"
#include "hash.h"
#include "profile.h"

struct address_space;
struct go_program;

enum { GOROUTINE_NONE = UINT32_MAX };

// What all goroutines of one `go` statement have in common.
struct goroutine_kind {
	uint64_t start_pc, creator_pc;
	char *name;      // of the function that it begins with
	bool is_system;  // it is one of the runtime's own...
	bool calls_back; // ...but not while it calls finalizers or cleanups of the program
	bool is_wrapper; // the function only calls the one that the program names
	uint32_t *ended; // subjects in the profile whose goroutines are gone, to be used again
	size_t n_ended, ended_capacity;
	uint32_t creator; // the location of the `go` statement; GOROUTINE_NONE: not known
};

// A struct g, and the goroutine that lives in it.
struct goroutine_entry {
	struct goroutine seen; // as last read; its address is that of the struct g
	uint32_t kind;
	uint32_t thread; // in the profile; GOROUTINE_NONE: it is not shown
	uint32_t sample; // its last sample's id in the profile, if it was sampled
	uint32_t stack;  // if has_stack, before the first sample: the stack in which it is parked
	uint32_t wait;
	enum thread_state state;
	uint64_t tick;  // the tick up to which it is counted (goroutine_samples.h)
	uint64_t look;  // the look in which it was last listed
	int bound_tid;  // the thread that ran it last and has run no other since; 0: none
	bool is_active; // it was run, and was not seen parked since
	bool is_alive;
	bool is_sampled, has_stack;
	bool lacks_labels; // they could not be read with its stack
	bool holds;        // the stack is that of `seen`
};

struct goroutine_table {
	struct goroutine_entry *entries;
	size_t n_entries, entries_capacity;
	struct goroutine_kind *kinds;
	size_t n_kinds, kinds_capacity;
	struct hash_index entry_index, kind_index;
};

void goroutine_table_deinit(struct goroutine_table *table);

// Returns the entry of the struct g at the address, new or known.
struct goroutine_entry *goroutine_table_get(struct goroutine_table *table, uint64_t address);

// Returns the kind of the goroutine, new or known; interns the creator in the profile.
uint32_t goroutine_table_kind(struct goroutine_table *table, const struct goroutine *goroutine,
                              const struct go_program *program, struct address_space *space,
                              struct profile *profile);

// Gives a kind that has only a wrapper's name the name of the function that the wrapper calls,
// which the whole stack of such a goroutine shows.
void goroutine_table_name(struct goroutine_table *table, uint32_t kind,
                          const struct go_program *program, const struct profile *profile,
                          const uint32_t *location_ids, size_t n);
