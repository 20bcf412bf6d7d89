// SPDX-License-Identifier: MIT
#include "file_code.h"

#include "arch.h"
#include "module.h"
#include "symbol_table.h"

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

bool file_code_goes_on(struct module *module, uint64_t call, uint64_t next)
{
	const struct symbol_table *symbols = module_symbols(module);
	const char *of_call = symbols ? symbol_table_find(symbols, call) : NULL;
	const char *of_next = symbols ? symbol_table_find(symbols, next) : NULL;

	return of_call || of_next ? of_call == of_next : !is_padded(module, next);
}
