// SPDX-License-Identifier: MIT
// go_runtime: the functions of Go's runtime at which stacks end, or change.
//
// Some assembly functions of Go's runtime change the stack pointer from a goroutine's stack to the
// thread's own (g0), or back, and call on from there. Their CFI describes the stack that they were
// called on, so that a walk would go on into whatever lies above on the other one. Which they are,
// and what comes below, is as in the runtime's own walk (runtime/traceback.go, unwinder).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct module;
struct rule;

// The rule for an address in one of those functions; `is_call`: the look-up address of a return
// address. False: it is in none.
bool go_runtime_rule(struct module *module, uint64_t address, bool is_call, struct rule *ret);
