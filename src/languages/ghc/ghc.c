// SPDX-License-Identifier: MIT
// ghc: unwinds Haskell code, as GHC compiles it, in programs that hold its runtime (GHC's default).
//
// Such code keeps its stack elsewhere, has no unwinding tables unless asked for, and never returns:
// each piece jumps to the next. The machine's stack pointer stays where StgRun left it, the
// runtime's function that entered Haskell code, except for what calls of C take. So the caller is
// that of StgRun, by the table's row for the place where Haskell code goes back to it
// (rts/StgCRun.c).
#include "languages.h"

#include "address_space.h"
#include "arch.h"
#include "cfi.h"
#include "ghc_code.h"
#include "memory.h"
#include "module.h"
#include "rule.h"

// What a file without tables of its own has.
struct ghc_file {
	uint64_t stg_return; // the address of StgReturn; 0: it has none
};

static uint64_t find_return(struct module *module)
{
	uint64_t start;
	size_t size;

	if (!module_find_section(module, ".text", &start))
		return 0;
	const uint8_t *text = module_data(module, start, &size);
	const uint8_t *found = text ? ghc_code_find_return(text, size) : NULL;
	return found ? start + (uint64_t)(found - text) : 0;
}

// Looks in the file when it is asked for first: not all programs have code without tables.
static uint64_t stg_return_of(struct module *module)
{
	void **found = &module->languages[language_position(&ghc_language)];

	if (!*found) {
		struct ghc_file *file = memory_alloc(sizeof(*file));
		*file = (struct ghc_file){0};
		*found = file;
		file->stg_return = find_return(module);
	}
	return ((const struct ghc_file *)*found)->stg_return;
}

static bool ghc_rule(const struct language_code *code, struct rule *ret)
{
	struct module *module = code->at->module;
	const uint64_t stg_return = code->is_jit ? 0 : stg_return_of(module);
	struct rule row = {0};
	int64_t sp;

	if (stg_return == 0 || !cfi_find_rule(module, stg_return, &row))
		return false;
	if (row.kind == RULE_ROW && row.cfa_register == ARCH_NATIVE->sp && !row.cfa_expression &&
	    ghc_code_way_out(code->code, stg_return, code->address, &sp)) {
		row.kind = RULE_CODE;
		row.cfa_offset += sp;
		*ret = row;
		return true;
	}
	rule_deinit(&row);
	return false;
}

const struct language ghc_language = {
    .name = "ghc",
    .rule = ghc_rule,
};
