// SPDX-License-Identifier: MIT
#include "php.h"

#include <elf.h>

#include "arch.h"
#include "cfi.h"
#include "module.h"
#include "php_code.h"
#include "rule.h"
#include "symbol_table.h"

enum { MAX_ENTRY_BYTES = 256 }; // of execute_ex, up to its first dispatch

uint64_t php_find_dispatch(struct module *module)
{
	uint8_t bytes[MAX_ENTRY_BYTES];
	uint64_t start;

	if (!symbol_table_find_named(module_dwfl(module), "execute_ex", STT_FUNC, &start))
		return 0;
	const size_t n = module_read_code(module, start, bytes, sizeof(bytes));
	const uint8_t *found = php_code_find_dispatch(bytes, n);
	return found ? start + (uint64_t)(found - bytes) : 0;
}

struct row {
	struct module *php;
	struct rule *rule;
};

static void read_row(void *context)
{
	const struct row *row = context;

	if (!cfi_find_rule(row->php, row->php->php_dispatch, row->rule))
		row->rule->kind = RULE_NONE;
}

bool php_rule(struct module *php, const struct arch_code *code, uint64_t address, struct rule *ret)
{
	struct rule rule = {.kind = RULE_NONE};
	struct row row = {php, &rule};
	int64_t sp;

	if (!php_code_way_to_handler(code, address, &sp))
		return false;
	if (!module_guard(php, read_row, &row, MODULE_FOR_RULES) || rule.kind != RULE_ROW ||
	    rule.cfa_expression || rule.cfa_register != ARCH_NATIVE->sp) {
		rule_deinit(&rule);
		return false;
	}
	rule.kind = RULE_CODE;
	rule.cfa_offset += sp;
	*ret = rule;
	return true;
}
