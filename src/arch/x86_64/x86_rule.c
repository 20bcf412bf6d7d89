// SPDX-License-Identifier: MIT
#include "x86_rule.h"

#include <string.h>

#include "arch.h"
#include "expression.h"
#include "memory.h"
#include "rule.h"
#include "x86_instruction.h"
#include "x86_registers.h"
#include "x86_way.h"

enum {
	// DWARF 5, 7.7.1.
	OP_DEREF = 0x06,
	OP_PLUS_UCONST = 0x23,
	OP_BREG0 = 0x70,
};

const uint8_t x86_dwarf_number[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

bool x86_rule_holds_return(const struct way *way)
{
	return way->took_return && way->returns;
}

// Makes CFA = *(register + slot) + offset.
static struct expression *memory_cfa(uint8_t number, int64_t slot, int64_t offset)
{
	const struct expression_op ops[] = {
	    {.atom = OP_BREG0 + number, .number = slot},
	    {.atom = OP_DEREF},
	    {.atom = OP_PLUS_UCONST, .number = offset},
	};
	struct expression *expression = memory_alloc_zeroed(1, sizeof(*expression) + sizeof(ops));

	expression->count = array_size(ops);
	memcpy(expression->ops, ops, sizeof(ops));
	return expression;
}

static void add_register(struct rule *rule, uint8_t number, uint8_t kind, int64_t offset)
{
	rule->registers[rule->n_registers++] =
	    (struct register_rule){.number = number, .kind = kind, .offset = (int32_t)offset};
}

// The register is saved in memory at the value of register `by` + offset.
static void add_place(struct rule *rule, uint8_t number, uint8_t by, int64_t offset)
{
	struct expression *expression =
	    memory_alloc_zeroed(1, sizeof(*expression) + sizeof(*expression->ops));

	expression->count = 1;
	expression->ops[0] = (struct expression_op){.atom = OP_BREG0 + by, .number = offset};
	rule->registers[rule->n_registers++] = (struct register_rule){
	    .number = number, .kind = REGISTER_AT_EXPRESSION, .expression = expression};
}

void x86_rule_of_way_out(const struct way *way, int64_t popped, struct rule *ret)
{
	const uint32_t preserved = ARCH_NATIVE->preserved;
	const int64_t cfa = way->at + 8;

	*ret = (struct rule){.kind = RULE_CODE, .cfa_register = RSP, .cfa_offset = cfa};
	if (way->base == BASE_REGISTER)
		ret->cfa_register = x86_dwarf_number[way->number];
	else if (way->base == BASE_MEMORY)
		ret->cfa_expression = memory_cfa(x86_dwarf_number[way->slot_by], way->slot, cfa);
	else if (way->base == BASE_PROCESS)
		ret->cfa_expression = memory_cfa(BEAM_PROCESS, way->slot, cfa);
	for (uint8_t i = 0; i < array_size(x86_dwarf_number); i++) {
		const uint8_t number = x86_dwarf_number[i];
		if (i == MACHINE_SP || !(preserved >> number & 1) || !(way->written >> i & 1))
			continue;
		if (way->popped >> i & 1)
			add_register(ret, number, REGISTER_AT_CFA, way->places[i] - cfa);
		else if (way->base == BASE_MEMORY && way->loaded >> i & 1)
			add_place(ret, number, x86_dwarf_number[way->loaded_by[i]],
			          way->loaded_at[i]);
		else
			add_register(ret, number, REGISTER_UNDEFINED, 0);
	}
	ret->is_jump = way->is_jump;
	ret->jump = x86_dwarf_number[way->jump];
	if (popped)
		add_register(ret, RSP, REGISTER_IS_CFA, popped);
	add_register(ret, RIP, REGISTER_AT_CFA, -8);
}

// The way in has changed SP by an amount that the code computes: the CFA counts from a register, or
// from the address of the arguments that a realigned frame has saved.
static void find_lost_cfa(const struct way *way, struct rule *rule)
{
	if (way->copies >> MACHINE_BP & 1) {
		rule->cfa_register = RBP;
		rule->cfa_offset = 8 - way->copied_at[MACHINE_BP];
	} else if (way->has_arguments) {
		rule->cfa_expression = memory_cfa(RBP, way->arguments_slot, 8 - way->arguments_at);
	} else {
		rule->cfa_register = x86_dwarf_number[MACHINE_R10];
		rule->cfa_offset = 8 - way->copied_at[MACHINE_R10];
	}
}

void x86_rule_of_way_in(const struct way *way, struct rule *ret)
{
	const uint32_t preserved = ARCH_NATIVE->preserved;

	*ret = (struct rule){.kind = RULE_CODE, .cfa_register = RSP, .cfa_offset = 8 - way->at};
	if (way->is_lost)
		find_lost_cfa(way, ret);
	for (uint8_t i = 0; i < array_size(x86_dwarf_number); i++) {
		if (i == MACHINE_SP || !(preserved >> x86_dwarf_number[i] & 1) ||
		    !(way->written >> i & 1))
			continue;
		if (i == MACHINE_BP && way->has_frame)
			add_place(ret, RBP, RBP, 0);
		else if (way->kept >> i & 1 && (way->is_lost || way->keeps[i] >= way->at))
			add_register(ret, x86_dwarf_number[i], REGISTER_AT_CFA, way->keeps[i] - 8);
		else
			add_register(ret, x86_dwarf_number[i], REGISTER_UNDEFINED, 0);
	}
	if (x86_rule_holds_return(way))
		add_register(ret, RIP, REGISTER_COPY,
		             x86_dwarf_number[__builtin_ctz(way->returns)]);
	else
		add_register(ret, RIP, REGISTER_AT_CFA, -8);
}
