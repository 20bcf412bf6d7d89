// SPDX-License-Identifier: MIT
// rule: says how to get from one frame to its caller: a row of DWARF's unwind table (DWARF 5,
// 6.4.1), for one address.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch.h"

struct expression; // expression.h

enum rule_kind {
	RULE_NONE,          // no way to go on is known
	RULE_ROOT,          // the outermost frame: its return address is undefined
	RULE_ROW,           // CFA and saved registers, as below
	RULE_FRAME_POINTER, // like a row, but guessed: code without CFI
	RULE_CODE,          // like a row, but from the code itself, to be checked: code without CFI
	RULE_IMAGE,         // like a row, but from tables that the target has made, to be checked
	RULE_LANGUAGE,      // as its language's step has it, which may use CFA and saved registers
	RULE_ELSEWHERE,     // the caller's frame is not on a stack: it is put back there on return
};

enum register_rule_kind {
	REGISTER_UNDEFINED,
	REGISTER_AT_CFA,        // in memory at CFA + offset
	REGISTER_IS_CFA,        // CFA + offset is its value
	REGISTER_AT_EXPRESSION, // in memory at the expression's result
	REGISTER_IS_EXPRESSION, // the expression's result
	REGISTER_COPY,          // the value of register `offset`
};

enum { RULE_WORDS = 4 };

// A word that may hold a part of a struct of a language's own.
typedef uint64_t language_word __attribute__((__may_alias__));

struct register_rule {
	uint8_t number;
	uint8_t kind; // enum register_rule_kind
	int32_t offset;
	const struct expression *expression; // owned by the rule
};

// Registers that no rule names keep their value if the psABI says that calls preserve them;
// otherwise they are unknown. After a signal frame all of them keep it. The stack pointer becomes
// the CFA unless a rule names it.
struct rule {
	uint8_t kind;      // enum rule_kind
	bool signal_frame; // the caller's pc is exact, not a return address: it was interrupted
	bool begins;       // a return address of 0 says that a thread begins here
	bool is_elsewhere; // the caller is on another stack
	bool raises;  // the frame may become that of an exception's handler (exception_frame.h)
	bool is_jump; // RULE_CODE: the function returns by a jump to the address in register `jump`
	uint8_t jump;
	uint8_t language;    // whose step takes the rule (language.h), from 1 on; 0: none
	uint32_t left_alone; // RULE_CODE: registers that the called function does not touch at all
	uint8_t cfa_register;
	uint8_t n_registers;
	int64_t cfa_offset;
	const struct expression *cfa_expression; // instead of register + offset; owned
	struct register_rule registers[ARCH_MAX_REGISTERS];
	bool is_general; // a row for very much code, which may not be right for all of it
	uint32_t kept;   // registers that the code keeps, even where a guess leads out of it
	language_word words[RULE_WORDS]; // the language's own
};

// Frees the expressions.
void rule_deinit(struct rule *rule);
