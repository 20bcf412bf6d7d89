// SPDX-License-Identifier: MIT
// frame_rule: replaces a rule that counts from the frame pointer by one that counts from the stack
// pointer, if the function's code makes the distance of the two a constant (arch.h, find_frame).
//
// For sleeping threads, whose SP can be seen, but not their frame pointer.
#pragma once

#include <stdbool.h>

struct arch_functions;
struct code_address;
struct module;
struct rule;

// The rule at `code` by the stack pointer; `is_call`: for a return address. False: the rule counts
// from another register, or the distance is not a constant. On success the caller owns *ret.
bool frame_rule_by_sp(const struct code_address *code, bool is_call, const struct rule *rule,
                      struct rule *ret);

// The module's functions, to be followed in guarded work (module_guard). *ret borrows the module.
void frame_rule_functions(struct module *module, struct arch_functions *ret);
