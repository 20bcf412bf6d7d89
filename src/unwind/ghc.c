// SPDX-License-Identifier: MIT
#include "ghc.h"

#include "arch.h"
#include "cfi.h"
#include "ghc_code.h"
#include "module.h"
#include "rule.h"

// Returns the address of StgReturn; 0: the module has none.
static uint64_t find_return(struct module *module)
{
	uint64_t start;
	size_t size;

	if (module->looked_for_ghc)
		return module->ghc_return;
	module->looked_for_ghc = true;
	if (!module_find_section(module, ".text", &start))
		return 0;
	const uint8_t *text = module_data(module, start, &size);
	const uint8_t *found = text ? ghc_code_find_return(text, size) : NULL;
	if (found)
		module->ghc_return = start + (uint64_t)(found - text);
	return module->ghc_return;
}

bool ghc_rule(struct module *module, const struct arch_code *code, uint64_t address,
              struct rule *ret)
{
	const uint64_t stg_return = find_return(module);
	struct rule row = {0};
	int64_t sp;

	if (stg_return == 0 || !cfi_find_rule(module, stg_return, &row))
		return false;
	if (row.kind == RULE_ROW && row.cfa_register == ARCH_NATIVE->sp && !row.cfa_expression &&
	    ghc_code_way_out(code, stg_return, address, &sp)) {
		row.kind = RULE_CODE;
		row.cfa_offset += sp;
		*ret = row;
		return true;
	}
	rule_deinit(&row);
	return false;
}
