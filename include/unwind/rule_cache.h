// SPDX-License-Identifier: MIT
// rule_cache: makes the unwind rule of each location once, and keeps it.
//
// A rule depends only on the place in the module's file, so it outlives unmapping, and serves all
// processes that map the file. For code that no file holds, the rule is made again at each call.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_space;
struct code_address;
struct code_bytes;
struct code_blocks;
struct rule;

struct rule_cache {
	struct rule **rules; // by location id; NULL: not asked for yet
	size_t count, capacity;
	struct code_bytes *
	    *made_from; // by location id, for code that no file holds; NULL: for other
	size_t n_made_from, made_from_capacity;
	struct rule **by_sp; // by location id, from the stack pointer; RULE_NONE: there is none
	size_t n_by_sp, by_sp_capacity;
	uint64_t n_made; // rules made, for --verbose
};

// A zeroed struct rule_cache is an empty cache.
void rule_cache_deinit(struct rule_cache *cache);

// Returns the rule of location `id`, which stands for `code`; `is_call`: it was a return address,
// so it lies in the middle of a call. Never NULL. Owned by the cache, valid until it is deinited.
const struct rule *rule_cache_get(struct rule_cache *cache, uint32_t id,
                                  const struct code_address *code, bool is_call);

// True unless the process has written other code since where the rule of location `id` was made
// from code that no file holds (code_bytes.h).
bool rule_cache_is_valid(const struct rule_cache *cache, uint32_t id, struct code_blocks *blocks,
                         const struct address_space *space);

// Returns the rule that rule_cache_get gave for location `id`, but from the stack pointer instead
// of the frame pointer; RULE_NONE: the distance between the two is not constant there
// (frame_rule.h). Never NULL, and owned by the cache.
const struct rule *rule_cache_get_by_sp(struct rule_cache *cache, uint32_t id,
                                        const struct code_address *code, bool is_call);

// Returns the same, if it was asked for before; otherwise NULL.
const struct rule *rule_cache_find_by_sp(const struct rule_cache *cache, uint32_t id);
