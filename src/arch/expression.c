// SPDX-License-Identifier: MIT
#include "expression.h"

#include <dwarf.h>

#include "arch.h"

enum { MAX_STACK = 64, MAX_STEPS = 1000 };

struct machine {
	uint64_t stack[MAX_STACK];
	size_t depth;
	const struct registers *registers;
	expression_read_fn *read;
	const void *memory;
};

static bool push(struct machine *m, uint64_t value)
{
	if (m->depth == MAX_STACK)
		return false;
	m->stack[m->depth++] = value;
	return true;
}

static enum expression_result push_register(struct machine *m, uint64_t number, int64_t offset)
{
	if (number >= ARCH_MAX_REGISTERS || !registers_know(m->registers, number))
		return EXPRESSION_UNKNOWN_REGISTER;
	return push(m, m->registers->value[number] + offset) ? EXPRESSION_OK : EXPRESSION_INVALID;
}

static enum expression_result load(struct machine *m, unsigned int size)
{
	if (m->depth < 1 || (size != 1 && size != 2 && size != 4 && size != 8))
		return EXPRESSION_INVALID;
	uint64_t *top = &m->stack[m->depth - 1];
	return m->read(m->memory, *top, size, top) ? EXPRESSION_OK : EXPRESSION_UNREADABLE;
}

// Each of these does a kind of operation that takes two values and leaves one. False if `atom` is
// not of that kind, or has no result.
static bool arithmetic(uint8_t atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	switch (atom) {
	case DW_OP_and:
		*ret = a & b;
		return true;
	case DW_OP_or:
		*ret = a | b;
		return true;
	case DW_OP_xor:
		*ret = a ^ b;
		return true;
	case DW_OP_plus:
		*ret = a + b;
		return true;
	case DW_OP_minus:
		*ret = a - b;
		return true;
	case DW_OP_mul:
		*ret = a * b;
		return true;
	default:
		return false;
	}
}

static bool divide(uint8_t atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	if (b == 0)
		return false;
	switch (atom) {
	case DW_OP_div: // signed: INT64_MIN / -1 would trap
		*ret = b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b);
		return true;
	case DW_OP_mod: // unsigned
		*ret = a % b;
		return true;
	default:
		return false;
	}
}

static bool shift(uint8_t atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	switch (atom) {
	case DW_OP_shl:
		*ret = b < 64 ? a << b : 0;
		return true;
	case DW_OP_shr:
		*ret = b < 64 ? a >> b : 0;
		return true;
	case DW_OP_shra:
		*ret = (int64_t)a >> (b < 63 ? b : 63);
		return true;
	default:
		return false;
	}
}

static bool compare(uint8_t atom, int64_t a, int64_t b, uint64_t *ret)
{
	switch (atom) {
	case DW_OP_eq:
		*ret = a == b;
		return true;
	case DW_OP_ne:
		*ret = a != b;
		return true;
	case DW_OP_lt:
		*ret = a < b;
		return true;
	case DW_OP_le:
		*ret = a <= b;
		return true;
	case DW_OP_gt:
		*ret = a > b;
		return true;
	case DW_OP_ge:
		*ret = a >= b;
		return true;
	default:
		return false;
	}
}

static bool binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	return arithmetic(atom, a, b, ret) || divide(atom, a, b, ret) || shift(atom, a, b, ret) ||
	       compare(atom, (int64_t)a, (int64_t)b, ret);
}

// Does operations on the top of the stack alone, and on its order. False if it is not one of those,
// or there are too few values.
static bool shuffle(struct machine *m, const struct expression_op *op)
{
	uint64_t *top = m->depth ? &m->stack[m->depth - 1] : m->stack; // if depth is 1 or more
	uint64_t swap;

	switch (op->atom) {
	case DW_OP_nop:
		return true;
	case DW_OP_dup:
		return m->depth >= 1 && push(m, *top);
	case DW_OP_drop:
		return m->depth >= 1 && (m->depth--, true);
	case DW_OP_over:
		return m->depth >= 2 && push(m, top[-1]);
	case DW_OP_pick:
		return (uint64_t)op->number < m->depth && push(m, top[-op->number]);
	case DW_OP_swap:
		if (m->depth < 2)
			return false;
		swap = top[0], top[0] = top[-1], top[-1] = swap;
		return true;
	case DW_OP_rot:
		if (m->depth < 3)
			return false;
		swap = top[0], top[0] = top[-1], top[-1] = top[-2], top[-2] = swap;
		return true;
	case DW_OP_plus_uconst:
		return m->depth >= 1 && (*top += op->number, true);
	case DW_OP_neg:
		return m->depth >= 1 && (*top = -*top, true);
	case DW_OP_not:
		return m->depth >= 1 && (*top = ~*top, true);
	case DW_OP_abs:
		return m->depth >= 1 && ((int64_t)*top < 0 ? (*top = -*top) : 0, true);
	default:
		return false;
	}
}

static enum expression_result step(struct machine *m, const struct expression_op *op)
{
	const uint8_t atom = op->atom;
	uint64_t result;

	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return push(m, atom - DW_OP_lit0) ? EXPRESSION_OK : EXPRESSION_INVALID;
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_register(m, atom - DW_OP_breg0, op->number);
	if (atom == DW_OP_bregx)
		return push_register(m, op->number, op->number2);
	if (atom == DW_OP_deref)
		return load(m, 8);
	if (atom == DW_OP_deref_size)
		return load(m, op->number);
	if (atom == DW_OP_addr || (atom >= DW_OP_const1u && atom <= DW_OP_consts))
		return push(m, op->number) ? EXPRESSION_OK : EXPRESSION_INVALID;
	if (m->depth >= 2 &&
	    binary(atom, m->stack[m->depth - 2], m->stack[m->depth - 1], &result)) {
		m->stack[--m->depth - 1] = result;
		return EXPRESSION_OK;
	}
	return shuffle(m, op) ? EXPRESSION_OK : EXPRESSION_INVALID;
}

bool expression_reads_memory(const struct expression *expression)
{
	for (size_t i = 0; i < expression->count; i++)
		if (expression->ops[i].atom == DW_OP_deref ||
		    expression->ops[i].atom == DW_OP_deref_size)
			return true;
	return false;
}

enum expression_result expression_evaluate(const struct expression *expression,
                                           const struct registers *registers,
                                           const uint64_t *initial, expression_read_fn *read,
                                           const void *memory, uint64_t *ret)
{
	struct machine m = {.registers = registers, .read = read, .memory = memory};

	if (initial)
		push(&m, *initial);
	size_t at = 0;
	for (int steps = 0; at < expression->count; steps++) {
		const struct expression_op *op = &expression->ops[at++];
		if (steps == MAX_STEPS)
			return EXPRESSION_INVALID;
		if (op->atom == DW_OP_skip || op->atom == DW_OP_bra) {
			if (op->atom == DW_OP_bra && m.depth < 1)
				return EXPRESSION_INVALID;
			if (op->atom == DW_OP_skip || m.stack[--m.depth] != 0)
				at = op->target;
			continue;
		}
		const enum expression_result result = step(&m, op);
		if (result == EXPRESSION_UNREADABLE)
			*ret = m.stack[m.depth - 1];
		if (result != EXPRESSION_OK)
			return result;
	}
	if (m.depth < 1)
		return EXPRESSION_INVALID;
	*ret = m.stack[m.depth - 1];
	return EXPRESSION_OK;
}
