// SPDX-License-Identifier: MIT
// frame_rule: replaces a rule that counts from the frame pointer by one that counts from the stack
// pointer, if the function's code keeps the distance between them constant (arch.h, find_frame).
//
// It is for sleeping threads, whose SP can be seen, but not their frame pointer.
#pragma once

#include <stdbool.h>

struct arch_functions;
struct code_address;
struct module;
struct rule;

// Makes the rule at `code` count from the stack pointer; `is_call`: for a return address. False if
// the rule counts from another register, or the distance is not constant. On success the caller
// owns *ret.
bool frame_rule_by_sp(const struct code_address *code, bool is_call, const struct rule *rule,
                      struct rule *ret);

// Returns the module's functions, to be followed in guarded work (module_guard). *ret borrows the
// module.
void frame_rule_functions(struct module *module, struct arch_functions *ret);
