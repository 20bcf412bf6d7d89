// SPDX-License-Identifier: MIT
// expression: each operation on hand-made operands, and what a hostile table may ask for.
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "expression.h"
#include "memory.h"
#include "unit.h"

enum { MAX_OPS = 8 };

static const uint64_t MINUS_ONE = UINT64_MAX;

// Memory that holds the words 0x1122334455667788 at 0x1000, and nothing else.
static bool read_memory(const void *memory, uint64_t address, unsigned int size, uint64_t *ret)
{
	const uint64_t word = 0x1122334455667788;

	assert_ptr_equal(memory, &MINUS_ONE);
	if (address < 0x1000 || address + size > 0x1008)
		return false;
	*ret = 0;
	memcpy(ret, (const uint8_t *)&word + (address - 0x1000), size);
	return true;
}

static enum expression_result run(const struct expression_op *ops, size_t n,
                                  const uint64_t *initial, uint64_t *ret)
{
	struct registers registers = {0};
	_cleanup_free_ struct expression *expression =
	    memory_alloc_zeroed(1, sizeof(*expression) + n * sizeof(*ops));

	registers_set(&registers, 7, 0x2000);
	registers_set(&registers, 16, 0x40);
	expression->count = n;
	memcpy(expression->ops, ops, n * sizeof(*ops));
	return expression_evaluate(expression, &registers, initial, read_memory, &MINUS_ONE, ret);
}

// clang-format off
static const struct {
	struct expression_op ops[MAX_OPS];
	size_t n;
	uint64_t expected;
} valid[] = {
	{{{DW_OP_lit0, 0, 0, 0}}, 1, 0},
	{{{DW_OP_lit31, 0, 0, 0}}, 1, 31},
	{{{DW_OP_breg7, 0, 8, 0}}, 1, 0x2008},
	{{{DW_OP_breg7, 0, -8, 0}}, 1, 0x1ff8},
	{{{DW_OP_bregx, 0, 16, -1}}, 1, 0x3f},
	{{{DW_OP_addr, 0, 0x1234, 0}}, 1, 0x1234},
	{{{DW_OP_const1s, 0, -1, 0}}, 1, UINT64_MAX},
	{{{DW_OP_const8u, 0, INT64_MIN, 0}}, 1, UINT64_C(1) << 63},
	{{{DW_OP_constu, 0, 0x1000, 0}, {DW_OP_deref, 0, 0, 0}}, 2, 0x1122334455667788},
	{{{DW_OP_constu, 0, 0x1000, 0}, {DW_OP_deref_size, 0, 1, 0}}, 2, 0x88},
	{{{DW_OP_constu, 0, 0x1004, 0}, {DW_OP_deref_size, 0, 4, 0}}, 2, 0x11223344},
	{{{DW_OP_lit5, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0}, {DW_OP_minus, 0, 0, 0}}, 3, 2},
	{{{DW_OP_lit3, 0, 0, 0}, {DW_OP_lit5, 0, 0, 0}, {DW_OP_minus, 0, 0, 0}}, 3, UINT64_MAX - 1},
	{{{DW_OP_lit6, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0}, {DW_OP_and, 0, 0, 0}}, 3, 2},
	{{{DW_OP_lit6, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0}, {DW_OP_or, 0, 0, 0}}, 3, 7},
	{{{DW_OP_lit6, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0}, {DW_OP_xor, 0, 0, 0}}, 3, 5},
	{{{DW_OP_lit6, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0}, {DW_OP_mul, 0, 0, 0}}, 3, 18},
	{{{DW_OP_lit7, 0, 0, 0}, {DW_OP_const1s, 0, -2, 0}, {DW_OP_div, 0, 0, 0}}, 3, UINT64_MAX - 2},
	{{{DW_OP_const8s, 0, INT64_MIN, 0}, {DW_OP_const1s, 0, -1, 0}, {DW_OP_div, 0, 0, 0}}, 3,
	 UINT64_C(1) << 63},
	{{{DW_OP_lit7, 0, 0, 0}, {DW_OP_lit4, 0, 0, 0}, {DW_OP_mod, 0, 0, 0}}, 3, 3},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_const1u, 0, 63, 0}, {DW_OP_shl, 0, 0, 0}}, 3,
	 UINT64_C(1) << 63},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_const1u, 0, 64, 0}, {DW_OP_shl, 0, 0, 0}}, 3, 0},
	{{{DW_OP_const1s, 0, -1, 0}, {DW_OP_const1u, 0, 60, 0}, {DW_OP_shr, 0, 0, 0}}, 3, 15},
	{{{DW_OP_const1s, 0, -1, 0}, {DW_OP_const1u, 0, 200, 0}, {DW_OP_shr, 0, 0, 0}}, 3, 0},
	{{{DW_OP_const1s, 0, -8, 0}, {DW_OP_lit1, 0, 0, 0}, {DW_OP_shra, 0, 0, 0}}, 3,
	 UINT64_MAX - 3},
	{{{DW_OP_const1s, 0, -8, 0}, {DW_OP_const1u, 0, 99, 0}, {DW_OP_shra, 0, 0, 0}}, 3,
	 UINT64_MAX},
	// Comparisons are signed (DWARF 5, 2.5.1.5).
	{{{DW_OP_const1s, 0, -1, 0}, {DW_OP_lit1, 0, 0, 0}, {DW_OP_lt, 0, 0, 0}}, 3, 1},
	{{{DW_OP_const1s, 0, -1, 0}, {DW_OP_lit1, 0, 0, 0}, {DW_OP_ge, 0, 0, 0}}, 3, 0},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_lit1, 0, 0, 0}, {DW_OP_le, 0, 0, 0}}, 3, 1},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_lit1, 0, 0, 0}, {DW_OP_gt, 0, 0, 0}}, 3, 1},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_lit1, 0, 0, 0}, {DW_OP_eq, 0, 0, 0}}, 3, 0},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_lit1, 0, 0, 0}, {DW_OP_ne, 0, 0, 0}}, 3, 1},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_plus_uconst, 0, 40, 0}}, 2, 42},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_neg, 0, 0, 0}}, 2, UINT64_MAX - 1},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_not, 0, 0, 0}}, 2, UINT64_MAX - 2},
	{{{DW_OP_const1s, 0, -7, 0}, {DW_OP_abs, 0, 0, 0}}, 2, 7},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_dup, 0, 0, 0}, {DW_OP_plus, 0, 0, 0}}, 3, 4},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0}, {DW_OP_drop, 0, 0, 0}}, 3, 2},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0}, {DW_OP_over, 0, 0, 0}}, 3, 2},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0}, {DW_OP_pick, 0, 1, 0}}, 3, 2},
	{{{DW_OP_lit2, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0}, {DW_OP_swap, 0, 0, 0}}, 3, 2},
	// rot: the top goes to the third place, the second comes to the top.
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_lit2, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0}, {DW_OP_rot, 0, 0, 0}},
	 4, 2},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_nop, 0, 0, 0}}, 2, 1},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_skip, 3, 0, 0}, {DW_OP_drop, 0, 0, 0}}, 3, 1},
	{{{DW_OP_lit9, 0, 0, 0}, {DW_OP_lit1, 0, 0, 0}, {DW_OP_bra, 4, 0, 0}, {DW_OP_lit5, 0, 0, 0}},
	 4, 9},
	{{{DW_OP_lit9, 0, 0, 0}, {DW_OP_lit0, 0, 0, 0}, {DW_OP_bra, 4, 0, 0}, {DW_OP_lit5, 0, 0, 0}},
	 4, 5},
	// The PLT's: ((rip & 15) >= 11) * 8 + rsp + 8, here with rip 0x40.
	{{{DW_OP_breg7, 0, 8, 0}, {DW_OP_breg16, 0, 0, 0}, {DW_OP_lit15, 0, 0, 0},
	  {DW_OP_and, 0, 0, 0}, {DW_OP_lit11, 0, 0, 0}, {DW_OP_ge, 0, 0, 0}, {DW_OP_lit3, 0, 0, 0},
	  {DW_OP_shl, 0, 0, 0}}, 8, 0},
};

static const struct {
	struct expression_op ops[MAX_OPS];
	size_t n;
	enum expression_result expected;
} invalid[] = {
	{{{0}}, 0, EXPRESSION_INVALID},
	{{{0xff, 0, 0, 0}}, 1, EXPRESSION_INVALID},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_drop, 0, 0, 0}}, 2, EXPRESSION_INVALID},
	{{{DW_OP_drop, 0, 0, 0}}, 1, EXPRESSION_INVALID},
	{{{DW_OP_dup, 0, 0, 0}}, 1, EXPRESSION_INVALID},
	{{{DW_OP_neg, 0, 0, 0}}, 1, EXPRESSION_INVALID},
	{{{DW_OP_abs, 0, 0, 0}}, 1, EXPRESSION_INVALID},
	{{{DW_OP_plus_uconst, 0, 1, 0}}, 1, EXPRESSION_INVALID},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_over, 0, 0, 0}}, 2, EXPRESSION_INVALID},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_swap, 0, 0, 0}}, 2, EXPRESSION_INVALID},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_lit1, 0, 0, 0}, {DW_OP_rot, 0, 0, 0}}, 3, EXPRESSION_INVALID},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_plus, 0, 0, 0}}, 2, EXPRESSION_INVALID},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_pick, 0, 1, 0}}, 2, EXPRESSION_INVALID},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_pick, 0, -1, 0}}, 2, EXPRESSION_INVALID},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_lit0, 0, 0, 0}, {DW_OP_div, 0, 0, 0}}, 3, EXPRESSION_INVALID},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_lit0, 0, 0, 0}, {DW_OP_mod, 0, 0, 0}}, 3, EXPRESSION_INVALID},
	{{{DW_OP_bra, 0, 0, 0}}, 1, EXPRESSION_INVALID},
	{{{DW_OP_deref, 0, 0, 0}}, 1, EXPRESSION_INVALID},
	{{{DW_OP_constu, 0, 0x1000, 0}, {DW_OP_deref_size, 0, 3, 0}}, 2, EXPRESSION_INVALID},
	{{{DW_OP_constu, 0, 0x1000, 0}, {DW_OP_deref_size, 0, 16, 0}}, 2, EXPRESSION_INVALID},
	{{{DW_OP_constu, 0, 0x1001, 0}, {DW_OP_deref, 0, 0, 0}}, 2, EXPRESSION_UNREADABLE},
	{{{DW_OP_lit0, 0, 0, 0}, {DW_OP_deref, 0, 0, 0}}, 2, EXPRESSION_UNREADABLE},
	{{{DW_OP_breg3, 0, 0, 0}}, 1, EXPRESSION_UNKNOWN_REGISTER},
	{{{DW_OP_breg31, 0, 0, 0}}, 1, EXPRESSION_UNKNOWN_REGISTER},
	{{{DW_OP_bregx, 0, 1 << 20, 0}}, 1, EXPRESSION_UNKNOWN_REGISTER},
	{{{DW_OP_bregx, 0, -1, 0}}, 1, EXPRESSION_UNKNOWN_REGISTER},
	// For ever; and until the stack is full.
	{{{DW_OP_skip, 0, 0, 0}}, 1, EXPRESSION_INVALID},
	{{{DW_OP_lit1, 0, 0, 0}, {DW_OP_skip, 0, 0, 0}}, 2, EXPRESSION_INVALID},
};
// clang-format on

static void test_valid(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(valid); i++) {
		uint64_t value = 0xdead;

		if (run(valid[i].ops, valid[i].n, NULL, &value) != EXPRESSION_OK ||
		    value != valid[i].expected)
			fail_msg("case %zu: %#jx, not %#jx", i, (uintmax_t)value,
			         (uintmax_t)valid[i].expected);
	}
}

static void test_invalid(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(invalid); i++) {
		uint64_t value = 0xdead;
		const enum expression_result result =
		    run(invalid[i].ops, invalid[i].n, NULL, &value);
		// Where the memory is that it needs, the first operation tells.
		const uint64_t left =
		    result == EXPRESSION_UNREADABLE ? (uint64_t)invalid[i].ops[0].number : 0xdead;

		if (result != invalid[i].expected || value != left)
			fail_msg("case %zu: result %d, not %d", i, result, invalid[i].expected);
	}
}

static void test_initial(void **state)
{
	const struct expression_op ops[] = {{.atom = DW_OP_plus_uconst, .number = 16}};
	const uint64_t cfa = 0x7000;
	uint64_t value;

	(void)state;
	assert_int_equal(run(ops, 0, &cfa, &value), EXPRESSION_OK);
	assert_int_equal(value, 0x7000);
	assert_int_equal(run(ops, 1, &cfa, &value), EXPRESSION_OK);
	assert_int_equal(value, 0x7010);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_valid),
	    cmocka_unit_test(test_invalid),
	    cmocka_unit_test(test_initial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
