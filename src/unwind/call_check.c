// SPDX-License-Identifier: MIT
#include "call_check.h"

#include <stdlib.h>

#include "address_space.h"
#include "arch.h"
#include "function_range.h"
#include "hash.h"
#include "memory.h"
#include "module.h"

enum { MAX_CHECKS = 1 << 16 }; // a hostile target may show new pairs without end

struct call_check {
	uint64_t pc, return_address;
	bool allowed;
};

struct call_checks {
	struct call_check *items;
	size_t count, capacity;
	struct hash_index index;
};

struct call_checks *call_checks_create(void)
{
	return memory_alloc_zeroed(1, sizeof(struct call_checks));
}

void call_checks_destroy(struct call_checks *checks)
{
	if (!checks)
		return;
	hash_index_deinit(&checks->index);
	free(checks->items);
	free(checks);
}

void call_checks_clear(struct call_checks *checks)
{
	hash_index_clear(&checks->index);
	checks->count = 0;
}

static bool check_equal(const void *context, uint32_t id, const void *key)
{
	const struct call_check *check = &((const struct call_checks *)context)->items[id];
	const struct call_check *other = key;

	return check->pc == other->pc && check->return_address == other->return_address;
}

enum {
	ALIGNMENT = 16, // of functions
	LOOP_BYTES = 4096,
};

static bool is_loop(struct module *module, uint64_t head)
{
	uint8_t code[LOOP_BYTES];

	return ARCH_NATIVE->jumps_back(code, module_read_code(module, head, code, sizeof(code)));
}

// True if only padding lies between the address and where the next function would begin, and it
// does: what is padded inside of a function is the head of a loop, to which a jump behind leads
// back.
static bool is_padded(struct module *module, uint64_t address)
{
	const size_t n = -address % ALIGNMENT;
	uint8_t bytes[ALIGNMENT];

	return n > 0 && module_read_code(module, address, bytes, n) == n &&
	       ARCH_NATIVE->is_padding(bytes, n) && !is_loop(module, address + n);
}

static bool is_not_padded(void *context, uint64_t call, uint64_t next)
{
	(void)call;
	return !is_padded(context, next);
}

// True if the call that ends at the address, where a function may begin without padding before it,
// is of one that never returns.
static bool is_last_call(struct module *module, uint64_t address)
{
	const struct arch_code code = {
	    .read = module_read_code, .is_together = is_not_padded, .context = module};
	const size_t n = ARCH_NATIVE->direct_call_bytes;
	uint8_t bytes[ALIGNMENT];

	if (address % ALIGNMENT != 0 || module_read_code(module, address - n, bytes, n) != n)
		return false;
	const uint64_t target = ARCH_NATIVE->direct_call_target(bytes, address);
	return target != 0 && !ARCH_NATIVE->may_return(&code, target);
}

bool file_code_goes_on(struct module *module, uint64_t call, uint64_t next)
{
	const uint64_t of_call = function_range_find(module, call).symbol;
	const uint64_t of_next = function_range_find(module, next).symbol;

	if (of_call || of_next)
		return of_call == of_next;
	return !is_padded(module, next) && !is_last_call(module, next);
}

struct called_code {
	struct module *module;
	uint64_t address; // of the code
	uint64_t target;  // where the function begins that was called
	bool is_part;     // the result
};

static bool is_together(void *context, uint64_t a, uint64_t b)
{
	return file_code_goes_on(context, a, b);
}

static void find_if_part(void *context)
{
	struct called_code *code = context;
	const struct arch_code arch_code = {
	    .read = module_read_code,
	    .is_together = is_together,
	    .context = code->module,
	};
	const uint64_t start = function_range_find(code->module, code->address).function;

	code->is_part =
	    start == code->target ||
	    ARCH_NATIVE->may_lead_to(&arch_code, code->target, code->address, start != 0);
}

static bool is_possible(struct address_space *space, uint64_t code, uint64_t return_address)
{
	const struct code_address called = address_space_resolve(space, code);
	const struct code_address call = address_space_resolve(space, return_address - 1);
	const size_t n = ARCH_NATIVE->direct_call_bytes;
	const uint64_t end = call.address + 1;
	uint8_t bytes[16];

	if (call.module != called.module || call.module->kind != MODULE_FILE ||
	    module_read_code(call.module, end - n, bytes, n) != n)
		return true;
	struct called_code part = {
	    .module = called.module,
	    .address = called.address,
	    .target = ARCH_NATIVE->direct_call_target(bytes, end),
	};
	return part.target == 0 ||
	       !module_guard(call.module, find_if_part, &part, MODULE_FOR_RULES) || part.is_part;
}

bool call_checks_allow(struct call_checks *checks, struct address_space *space, uint64_t pc,
                       bool is_return, uint64_t return_address)
{
	struct call_check check = {.pc = pc - is_return, .return_address = return_address};
	const uint64_t hash = hash_mix(check.pc, return_address);
	const uint32_t id = hash_index_find(&checks->index, hash, check_equal, checks, &check);

	if (id != HASH_NONE)
		return checks->items[id].allowed;
	if (checks->count == MAX_CHECKS)
		return true;
	check.allowed = is_possible(space, check.pc, return_address);
	hash_index_insert(&checks->index, hash, (uint32_t)checks->count);
	*array_push(checks->items, checks->count, checks->capacity) = check;
	return check.allowed;
}
