// SPDX-License-Identifier: MIT
#include "file_code.h"

#include "arch.h"
#include "function_range.h"
#include "module.h"

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

static size_t read_code(void *context, uint64_t address, void *buffer, size_t size)
{
	return module_read_code(context, address, buffer, size);
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
	    .read = read_code, .is_together = is_not_padded, .context = module};
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
