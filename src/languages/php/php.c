// SPDX-License-Identifier: MIT
// php: unwinds the code that PHP's JIT makes (opcache.jit), for a virtual machine as GCC compiles
// it.
//
// Such code has no tables, unless opcache.jit_debug asks for them. It runs in the frame of
// execute_ex, which keeps the next operation in a register, and leaves by a jump to that
// operation's handler, also in execute_ex. So the caller is execute_ex's, by its table's row where
// it does the same (Zend/zend_vm_execute.skl, ZEND_VM_KIND_HYBRID;
// ext/opcache/jit/zend_jit_x86.dasc).
#include "languages.h"

#include <elf.h>
#include <stdlib.h>

#include "arch.h"
#include "cfi.h"
#include "memory.h"
#include "module.h"
#include "php_code.h"
#include "rule.h"
#include "symbol_table.h"

enum { MAX_ENTRY_BYTES = 256 }; // of execute_ex, up to its first dispatch

// The file with the virtual machine, and where execute_ex jumps to a handler in it.
struct php {
	struct module *module;
	uint64_t dispatch;
};

static void *php_look_in_file(struct module *module)
{
	uint8_t bytes[MAX_ENTRY_BYTES];
	uint64_t start;

	if (!symbol_table_find_named(module_dwfl(module), "execute_ex", STT_FUNC, &start))
		return NULL;
	const size_t n = module_read_code(module, start, bytes, sizeof(bytes));
	const uint8_t *found = php_code_find_dispatch(bytes, n);
	if (!found)
		return NULL;
	struct php *php = memory_alloc(sizeof(*php));
	*php = (struct php){module, start + (uint64_t)(found - bytes)};
	return php;
}

static void *php_claim(struct address_space *space, struct module *module, const void *found,
                       uint64_t bias)
{
	struct php *php = memory_alloc(sizeof(*php));

	(void)space, (void)module, (void)bias;
	*php = *(const struct php *)found;
	return php;
}

struct row {
	const struct php *php;
	struct rule *rule;
};

static void read_row(void *context)
{
	const struct row *row = context;

	if (!cfi_find_rule(row->php->module, row->php->dispatch, row->rule))
		row->rule->kind = RULE_NONE;
}

static bool php_rule(const struct language_code *code, struct rule *ret)
{
	const struct php *php = code->process;
	struct rule rule = {.kind = RULE_NONE};
	struct row row = {php, &rule};
	int64_t sp;

	if (!php || !code->is_jit || !php_code_way_to_handler(code->code, code->address, &sp))
		return false;
	if (!module_guard(php->module, read_row, &row, MODULE_FOR_RULES) || rule.kind != RULE_ROW ||
	    rule.cfa_expression || rule.cfa_register != ARCH_NATIVE->sp) {
		rule_deinit(&rule);
		return false;
	}
	rule.kind = RULE_CODE;
	rule.cfa_offset += sp;
	*ret = rule;
	return true;
}

const struct language php_language = {
    .name = "php",
    .look_in_file = php_look_in_file,
    .claim = php_claim,
    .destroy = free,
    .rule = php_rule,
};

static const char *const files[] = {"php", "php[0-9]*", "php-fpm*", "php-cgi*", "libphp*", NULL};

const struct language_text php_text = {.files = files};
