// SPDX-License-Identifier: MIT
#include "unwind_entry.h"

#include <stdlib.h>

#include "address_space.h"
#include "arch.h"
#include "call_check.h"
#include "code_bytes.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "resident.h"
#include "rule.h"
#include "rule_cache.h"

enum { MAX_ENTRIES = 1 << 20 }; // a hostile target may show new pcs without end

static void forget_recent(struct unwinder *unwinder)
{
	for (size_t i = 0; i < UNWIND_ENTRIES_RECENT; i++)
		unwinder->recent[i].key = UNWIND_ENTRY_NO_KEY;
}

void unwind_entries_init(struct unwinder *unwinder)
{
	unwinder->recent = memory_alloc(UNWIND_ENTRIES_RECENT * sizeof(struct unwinder_entry));
	forget_recent(unwinder);
}

void unwind_entries_deinit(struct unwinder *unwinder)
{
	free(unwinder->entries);
	free(unwinder->recent);
	code_blocks_destroy(unwinder->code_blocks);
	hash_index_deinit(&unwinder->index);
}

static bool entry_equal(const void *context, uint32_t id, const void *key)
{
	const struct unwinder *unwinder = context;

	return unwinder->entries[id].key == *(const uint64_t *)key;
}

// True if a call ends at the pc. Any JIT code may be returned to: it may jump with a return address
// of its own, as HotSpot's interpreter does.
static bool may_return_to(struct unwinder *unwinder, uint64_t pc)
{
	const struct arch *arch = ARCH_NATIVE;
	const struct code_address code = address_space_resolve(unwinder->space, pc - 1);
	uint8_t bytes[16];

	if (module_is_jit(code.module))
		return true;
	const uint64_t start = code.address + 1 - arch->max_call_bytes;
	size_t n = module_read_code(code.module, start, bytes, arch->max_call_bytes);
	if (n == 0) // the file cannot be read
		n = address_space_read_code(unwinder->space, pc - arch->max_call_bytes, bytes,
		                            arch->max_call_bytes);
	return n == arch->max_call_bytes && arch->is_after_call(bytes, n);
}

// True if a handler, or a stack's first function, "returns" there: to the start of some code, with
// no call before it.
static bool is_entered(const struct code_address *exact)
{
	const struct arch *arch = ARCH_NATIVE;
	uint8_t code[16];
	struct rule rule;

	const size_t n = module_read_code(exact->module, exact->address, code, sizeof(code));
	return arch->signal_rule(code, n, &rule) || arch->is_stack_start(code, n);
}

// Finds the code that the pc belongs to: at a return address, the call's, which ends before it.
// *entered is true if the pc is a return address that nothing called from.
static struct code_address resolve(struct unwinder *unwinder, uint64_t pc, bool is_return,
                                   bool *entered)
{
	const struct code_address exact = address_space_resolve(unwinder->space, pc);

	*entered = is_return && is_entered(&exact);
	return is_return && !*entered ? address_space_resolve(unwinder->space, pc - 1) : exact;
}

struct code_address unwind_entry_resolve(struct unwinder *unwinder, uint64_t pc, bool is_return)
{
	bool entered;

	return resolve(unwinder, pc, is_return, &entered);
}

// True if the process has other code right behind the pc than its file: it has written it since, or
// makes code where the file has data. Debuggers' breakpoints do not count.
static bool is_rewritten(const struct address_space *space, const struct code_address *code,
                         uint64_t pc)
{
	enum { INT3 = 0xcc };
	uint8_t in_file[32], in_memory[32];

	const size_t n = module_read_code(code->module, code->address, in_file, sizeof(in_file));
	if (n == 0 || !resident_read(space->resident, space->tid, pc, in_memory, n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (in_memory[i] != in_file[i] && in_memory[i] != INT3)
			return true;
	return false;
}

// Returns the rule of the code at the pc, or of the call before it.
static const struct rule *find_rule(struct unwinder *unwinder, const struct code_address *code,
                                    uint32_t location, uint64_t pc, bool is_return)
{
	static const struct rule none = {.kind = RULE_NONE};
	const struct rule *rule = rule_cache_get(unwinder->rules, location, code, is_return);

	return rule->kind == RULE_CODE && code->module->kind == MODULE_FILE &&
	               is_rewritten(unwinder->space, code, pc)
	           ? &none
	           : rule;
}

static struct unwinder_entry make_entry(struct unwinder *unwinder, uint64_t pc, bool is_return)
{
	bool entered;
	const struct code_address code = resolve(unwinder, pc, is_return, &entered);
	const uint64_t exact = pc - (is_return && !entered);
	const uint32_t location =
	    profile_intern_code(unwinder->profile, code.module->index, code.address, code.code);

	return (struct unwinder_entry){
	    .key = pc * 2 + is_return,
	    .location = location,
	    .is_jit = module_is_jit(code.module),
	    .jit_code_generation = unwinder->jit_code_generation,
	    .seen_ns = unwinder->space->updated_ns,
	    .is_entered = entered,
	    .may_return = is_return && may_return_to(unwinder, pc),
	    .rule = find_rule(unwinder, &code, location, exact, is_return),
	};
}

// True if what is known of the address, whose code may be JIT code, holds at this update of the
// address space.
static bool holds(struct unwinder *unwinder, struct unwinder_entry *entry)
{
	const int64_t now_ns = unwinder->space->updated_ns;

	if (!entry->is_jit || (entry->seen_ns == now_ns &&
	                       entry->jit_code_generation == unwinder->jit_code_generation))
		return true;
	if (!unwinder->code_blocks)
		unwinder->code_blocks = code_blocks_create();
	// New names may hold from now on: make a new location.
	if (entry->jit_code_generation != unwinder->jit_code_generation ||
	    !rule_cache_is_valid(unwinder->rules, entry->location, unwinder->code_blocks,
	                         unwinder->space))
		return false;
	entry->seen_ns = now_ns;
	return true;
}

const struct unwinder_entry *unwind_entry_look_up(struct unwinder *unwinder, uint64_t pc,
                                                  bool is_return)
{
	const uint64_t key = pc * 2 + is_return;
	const uint64_t hash = hash_mix(key, 0);
	uint32_t id = hash_index_find(&unwinder->index, hash, entry_equal, unwinder, &key);

	if (id != HASH_NONE) {
		if (!holds(unwinder, &unwinder->entries[id])) {
			const struct unwinder_entry entry = make_entry(unwinder, pc, is_return);
			unwinder->entries[id] = entry;
		}
		return &unwinder->entries[id];
	}
	if (unwinder->n_entries == MAX_ENTRIES) {
		hash_index_clear(&unwinder->index);
		unwinder->n_entries = 0;
	}
	const struct unwinder_entry entry = make_entry(unwinder, pc, is_return);
	id = unwinder->n_entries;
	*array_push(unwinder->entries, unwinder->n_entries, unwinder->entries_capacity) = entry;
	hash_index_insert(&unwinder->index, hash, id);
	return &unwinder->entries[id];
}

void unwind_entries_refresh(struct unwinder *unwinder)
{
	if (unwinder->jit_code_generation != unwinder->space->jit_code_generation)
		forget_recent(unwinder);
	unwinder->jit_code_generation = unwinder->space->jit_code_generation;
	if (unwinder->generation == unwinder->space->generation)
		return; // entries of JIT code are made again when they are asked for
	hash_index_clear(&unwinder->index);
	unwinder->n_entries = 0;
	forget_recent(unwinder);
	if (unwinder->call_checks)
		call_checks_clear(unwinder->call_checks);
	unwinder->generation = unwinder->space->generation;
}
