// SPDX-License-Identifier: MIT
// unwind_entry: what an unwinder knows of each code address of its process: the location that
// stands for it, and the rule that leads on. It holds for one generation of the address space.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "address_space.h"
#include "unwind.h"

struct rule;

struct unwinder_entry {
	uint64_t key; // pc * 2 + is_return_address; in `recent`, UNWIND_ENTRY_NO_KEY: empty
	uint32_t location;
	bool may_return;              // a call may have its return address there
	bool is_entered;              // a signal or a stack begins there, without a call before it
	bool is_jit;                  // no file holds the code
	uint32_t jit_code_generation; // the address space's, for which it holds if it is JIT code
	int64_t seen_ns;              // JIT code: at that update of the address space it held
	const struct rule *rule;
};

enum { UNWIND_ENTRIES_RECENT = 1024 }; // a power of two: most programs show as many pcs again

#define UNWIND_ENTRY_NO_KEY UINT64_MAX // there is no code

// Begins without entries.
void unwind_entries_init(struct unwinder *unwinder);
void unwind_entries_deinit(struct unwinder *unwinder);

// Forgets the entries that do not hold any more, as the address space says. To be called before
// each walk.
void unwind_entries_refresh(struct unwinder *unwinder);

// Looks the entry up in the table of all, and makes it if it is not there, or if its code is JIT
// code that has become other code by this update of the address space.
const struct unwinder_entry *unwind_entry_look_up(struct unwinder *unwinder, uint64_t pc,
                                                  bool is_return);

// Returns the place whose rule holds for a pc, or for a return address: that lies one byte lower,
// but not where a signal's trampoline or a stack begins.
struct code_address unwind_entry_resolve(struct unwinder *unwinder, uint64_t pc, bool is_return);

// Returns the pc's entry, until the next one is asked for. Looks in a direct-mapped cache before
// the table: nearly every frame is found there at once.
static inline const struct unwinder_entry *unwind_entry_find(struct unwinder *unwinder, uint64_t pc,
                                                             bool is_return)
{
	const uint64_t key = pc * 2 + is_return;
	struct unwinder_entry *entry =
	    &unwinder->recent[key * 0x9e3779b97f4a7c15u >> 32 & (UNWIND_ENTRIES_RECENT - 1)];

	if (entry->key != key || key == UNWIND_ENTRY_NO_KEY ||
	    (entry->is_jit && entry->seen_ns != unwinder->space->updated_ns))
		*entry = *unwind_entry_look_up(unwinder, pc, is_return);
	return entry;
}
