// SPDX-License-Identifier: MIT
// stack_root: tells whether a walk has come to the root of a thread's stack, or ends there by
// chance.
//
// An undefined return address says so itself (rule.h: RULE_ROOT). A return address of 0, or a frame
// pointer of 0 in code without rules, is what a root shows (psABI 3.4.1), but any code may have it
// in a register: it counts only at the top of a stack.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct address_space;

// True if the stack pointer is near where the program was entered.
bool stack_root_is_entry(const struct address_space *space, uint64_t sp);

// True if nothing more of a stack lies above the stack pointer: it is near where the program was
// entered, at the end of its mapping, or between two pages, where makers of stacks begin, unless
// the mapping holds the program's first stack, or the thread pointer `tls` (0: unknown), which
// lies above a stack of the C library's. If no mapping is known, marks the maps as stale.
bool stack_root_is_top(struct address_space *space, uint64_t sp, uint64_t tls);

// True if the walk has left the program's entry code for what the kernel wrote above it: the number
// of arguments is where a return address would be.
bool stack_root_is_passed(const struct address_space *space, uint64_t sp, uint64_t pc);
