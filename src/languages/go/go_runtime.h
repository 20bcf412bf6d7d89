// SPDX-License-Identifier: MIT
// go_runtime: knows the functions of Go's runtime at which stacks end, or change.
//
// Some assembly functions of Go's runtime switch the stack pointer from a goroutine's stack to the
// thread's own (g0), or back, and make further calls there. Their CFI describes the stack that they
// were called on, so that a walk would go on into whatever lies above on the other one. Which
// functions these are, and what comes below them, is as in the runtime's own walk
// (runtime/traceback.go, unwinder).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "go_code.h"
#include "go_switch.h"

struct module;
struct rule;

// What such a rule holds in its words.
struct go_rule {
	struct go_layout layout; // the program's; tls_at is an address in the module's file
	uint8_t go_switch;       // RULE_LANGUAGE: enum go_switch
	uint8_t slot;            // the slot of that
};

// Finds the rule for an address in one of those functions; `is_call`: it is the look-up address of
// a return address. False if it is in none of them.
bool go_runtime_rule(struct module *module, uint64_t address, bool is_call, struct rule *ret);
