// SPDX-License-Identifier: MIT
// expression: keeps and evaluates DWARF expressions in unwind rules (DWARF 5, 2.5).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct registers;

struct expression_op {
	uint8_t atom;    // DW_OP_*
	uint32_t target; // of a branch: position of an op
	int64_t number, number2;
};

struct expression {
	size_t count;
	struct expression_op ops[];
};

enum expression_result {
	EXPRESSION_OK,
	EXPRESSION_UNREADABLE,       // it needs memory that is not at hand
	EXPRESSION_UNKNOWN_REGISTER, // it needs a register that is not known
	EXPRESSION_INVALID,          // an unknown operation, an empty stack, too many steps
};

// True if some operation reads memory.
bool expression_reads_memory(const struct expression *expression);

// Reads a word of `size` (1, 2, 4 or 8) bytes. False if it is not at hand.
typedef bool expression_read_fn(const void *memory, uint64_t address, unsigned int size,
                                uint64_t *ret);

// Evaluates the expression, with `initial` on the stack unless it is NULL (the CFA, for register
// rules). Steps and depth are bounded whatever the expression says. With EXPRESSION_UNREADABLE,
// *ret is the address of the memory.
enum expression_result expression_evaluate(const struct expression *expression,
                                           const struct registers *registers,
                                           const uint64_t *initial, expression_read_fn *read,
                                           const void *memory, uint64_t *ret);
