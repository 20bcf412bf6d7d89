// go_runtime: where the stacks of Go's threads end.
//
// A few assembly functions of Go's runtime change the stack pointer from a goroutine's stack to
// the thread's own (g0), and call on from there. Their CFI describes the stack that they were
// called on, so that a walk would go on into whatever lies above on the other one.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct module;
struct rule;

// The rule for a call (lookup address of a return address) in one of those functions; false: the
// address is in none.
bool go_runtime_rule(struct module *module, uint64_t address, struct rule *ret);
