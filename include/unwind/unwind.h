// SPDX-License-Identifier: MIT
// unwind: turns a snapshot into a list of locations. Touches no process.
//
// A frame is a pc and whether it is a return address; a return address is looked up one byte
// lower, within the call (DWARF 5, 6.4.4), except where a signal trampoline begins at it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "language.h"
#include "profile.h"

struct registers;
struct rule;
struct unwinder;

struct address_space;
struct call_checks;
struct code_blocks;
struct rule_cache;
struct snapshot;

struct unwinder_entry;

// The unwinder of one process.
struct unwinder {
	struct address_space *space; // these three are borrowed
	struct profile *profile;
	struct rule_cache *rules;
	uint32_t max_frames;
	uint32_t huge_frames; // kept of a stack that is far deeper (snapshot_is_huge); max_frames
	                      // at first
	uint32_t *frames;     // of the last stack
	uint64_t *sps;        // SP of each frame, when it was the innermost one
	uint64_t *pcs; // as they are on the stack, max_frames; NULL: not wanted (tests/oracle)

	// pc -> location and rule, for one generation of the address space.
	struct unwinder_entry *entries;
	size_t n_entries, entries_capacity;
	struct hash_index index;
	struct code_blocks *code_blocks; // of JIT code; NULL: none was looked at again
	struct unwinder_entry *recent;   // copies of those that were asked for last, by hash
	struct call_checks *call_checks; // NULL: none was made
	uint32_t generation;
	uint32_t jit_code_generation; // that of the address space, when the entries were made
	uint64_t tls;                 // the thread pointer, of the last stack; 0: unknown
	uint32_t stepped;             // by position: languages that took a step of the last walk
	language_word words[LANGUAGES_MAX][LANGUAGE_WORDS]; // of those; for others without meaning
	bool has_guessed;               // a frame of the last stack was found by the frame pointer
	uint64_t n_frames;              // all frames found
	uint64_t n_frame_pointer_steps; // those found without CFI
	uint64_t n_code_steps;          // those found by their code alone
};

struct unwound {
	const uint32_t *locations; // leaf first; owned by the unwinder until the next stack
	const uint64_t *sps;       // of each; likewise
	size_t n;
	enum stack_end end;
	uint64_t last_sp;    // where the last of these frames ends
	uint64_t reached_sp; // how far the walk went: beyond, if not all frames were kept
	uint64_t base; // STACK_COMPLETE: the CFA of the outermost frame's callee, the stack's base
	uint64_t missing; // what the copy lacked, with STACK_UNREADABLE or STACK_NOT_COPIED; 0: it
	                  // is not known
	uint8_t guessed;  // GUESSED_*: some frame was found without CFI
	uint32_t labels;  // of the sample, by a runtime (labels.h)
};

void unwinder_init(struct unwinder *unwinder, struct address_space *space, struct profile *profile,
                   struct rule_cache *rules, uint32_t max_frames);
void unwinder_deinit(struct unwinder *unwinder);

// Unwinds the snapshot. Always yields at least the leaf. If the stack ends before its root,
// ret->end says why.
void unwinder_unwind(struct unwinder *unwinder, const struct snapshot *snapshot,
                     struct unwound *ret);

// What a language's step (language.h) may use of the walk.

// Steps by the rule's kind, as without a language.
struct move unwind_step_plain(struct language_step *step);

// Returns how much higher the frame's code lies in the process than its module says.
uint64_t unwind_step_bias(const struct language_step *step);

// Returns the rule for a pc, until the next one is asked for.
const struct rule *unwind_rule_at(struct unwinder *unwinder, uint64_t pc);

// True if the caller's pc lies in code.
bool unwind_is_code(const struct unwinder *unwinder, const struct registers *caller);

// True if a call returns to the caller's pc.
bool unwind_is_called_from(struct unwinder *unwinder, const struct registers *caller);

// Goes on after what rule_step, or the like, has done.
static inline struct move unwind_go_on_or_end(enum stack_end end)
{
	return end == STACK_COMPLETE ? move_go_on() : move_end_with(end);
}
