// SPDX-License-Identifier: MIT
#include "call_check.h"

#include <stdlib.h>

#include "address_space.h"
#include "arch.h"
#include "file_code.h"
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

struct called_code {
	struct module *module;
	uint64_t address; // of the code
	uint64_t target;  // where the function begins that was called
	bool is_part;     // the result
};

static size_t read_code(void *context, uint64_t address, void *buffer, size_t size)
{
	return module_read_code(context, address, buffer, size);
}

static bool is_together(void *context, uint64_t a, uint64_t b)
{
	return file_code_goes_on(context, a, b);
}

static void find_if_part(void *context)
{
	struct called_code *code = context;
	const struct arch_code arch_code = {
	    .read = read_code,
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
