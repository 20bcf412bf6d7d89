// SPDX-License-Identifier: MIT
#include "hotspot_language.h"

#include "hotspot_code.h"
#include "rule.h"

static bool hotspot_rule(const struct language_code *code, struct rule *ret)
{
	if (!code->is_jit || !code->is_call ||
	    !hotspot_code_is_return_barrier(code->code, code->address))
		return false;
	*ret = (struct rule){.kind = RULE_ELSEWHERE};
	return true;
}

static bool hotspot_rule_at_jump(const struct arch_code *code, uint64_t end, bool keeps_fp,
                                 struct rule *ret)
{
	if (!keeps_fp || !hotspot_code_is_dispatch(code, end))
		return false;
	hotspot_code_interpreter_rule(ret);
	return true;
}

const struct language hotspot_language = {
    .name = "hotspot",
    .rule = hotspot_rule,
    .find_start = hotspot_code_find_start,
    .rule_at_jump = hotspot_rule_at_jump,
};
