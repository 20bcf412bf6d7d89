// SPDX-License-Identifier: MIT
// x86_rule: makes unwinding rules of what a way through code does to the stack pointer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rule;
struct way;

// DWARF's number of each of the machine's registers.
extern const uint8_t x86_dwarf_number[16];

// Makes the rule from a way to a return, which takes `popped` bytes off the stack besides the
// return address. The caller owns *ret.
void x86_rule_of_way_out(const struct way *way, int64_t popped, struct rule *ret);

// Makes the rule from the way that led here from the function's first instruction. The caller owns
// *ret.
void x86_rule_of_way_in(const struct way *way, struct rule *ret);

// True if the way in from where the function begins has left the return address in a register
// alone.
bool x86_rule_holds_return(const struct way *way);
