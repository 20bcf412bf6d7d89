// SPDX-License-Identifier: MIT
#include "frame_rule.h"

#include "address_space.h"
#include "arch.h"
#include "cfi.h"
#include "fde.h"
#include "module.h"
#include "rule.h"

static bool find_sp(void *context, uint64_t address, int64_t *ret)
{
	struct rule rule;

	if (!cfi_find_rule(context, address, &rule))
		return false;
	const bool is_told = !rule.cfa_expression && rule.cfa_register == ARCH_NATIVE->sp;
	if (is_told)
		*ret = -rule.cfa_offset;
	rule_deinit(&rule);
	return is_told;
}

static bool find_function(void *context, uint64_t address, struct arch_function *ret)
{
	const int64_t at_entry = -(int64_t)sizeof(uint64_t); // the return address is on top there
	int64_t sp;

	if (!fde_find(context, address, &ret->start, &ret->end))
		return false;
	ret->is_entry = find_sp(context, ret->start, &sp) && sp == at_entry;
	return true;
}

void frame_rule_functions(struct module *module, struct arch_functions *ret)
{
	*ret = (struct arch_functions){module_read_code, find_function, find_sp, module};
}

struct order {
	const struct code_address *code;
	bool is_call;
	bool found;
	struct arch_frame frame;
};

static void find_frame(void *context)
{
	struct order *order = context;
	struct arch_functions functions;

	frame_rule_functions(order->code->module, &functions);
	order->found = ARCH_NATIVE->find_frame(&functions, order->code->address, order->is_call,
	                                       &order->frame);
}

bool frame_rule_by_sp(const struct code_address *code, bool is_call, const struct rule *rule,
                      struct rule *ret)
{
	const struct arch *arch = ARCH_NATIVE;
	struct order order = {.code = code, .is_call = is_call};

	if (rule->kind != RULE_ROW || rule->signal_frame || rule->cfa_expression ||
	    rule->cfa_register != arch->fp || code->module->kind != MODULE_FILE)
		return false;
	// An expression would have two owners.
	for (size_t i = 0; i < rule->n_registers; i++)
		if (rule->registers[i].expression)
			return false;
	if (!module_guard(code->module, find_frame, &order, MODULE_FOR_RULES) || !order.found)
		return false;
	// The code and the rules must agree about the frame pointer.
	if (!order.frame.has_fp || order.frame.fp_to_cfa != rule->cfa_offset)
		return false;
	*ret = *rule;
	ret->cfa_register = arch->sp;
	ret->cfa_offset = order.frame.sp_to_cfa;
	return true;
}
