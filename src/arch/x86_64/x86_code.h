// SPDX-License-Identifier: MIT
// x86_code: finds the return address of a function without unwinding tables, from its own code.
//
// The instructions are followed from a pc to a ret: what they add to the stack pointer on the way
// says how far above it the return address lies now, whichever way is taken, because the code
// itself relies on that. Only instructions whose effect on the stack pointer is certain are
// followed, and all ways must agree. Calls are taken to return; one that does not may lead into the
// code after it, so the result must be checked (x86_code_is_after_call).
//
// A jump through a register takes the place of a ret if nothing else is found: where the register
// comes from right below the stack pointer, or may (struct rule's is_jump); or on the way in from
// where the function begins, if that has popped the return address.
//
// Instructions: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix A.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"

// Makes the rule (RULE_CODE) for a frame at `address`, a pc or a return address (is_return). False
// if its way out is not found. The caller owns *ret.
bool x86_code_rule(const struct arch_code *code, uint64_t address, bool is_return,
                   struct rule *ret);

// Does the same where a table has only a general row for much hand-written code: makes a rule if
// the code certainly shows that it is called with less on the stack, or leaves the row's frame by
// itself.
bool x86_code_refine(const struct arch_code *code, uint64_t address, const struct rule *general,
                     struct rule *ret);

// Returns the registers that a function never touches, if a call to it returns to the address: it
// must be a direct call, of a function that calls none, all of whose code can be followed. A set by
// DWARF's numbers; empty: not known.
uint32_t x86_code_left_alone(const struct arch_code *code, uint64_t return_address);

// True if some way leads from the start of a function to the instruction that holds the address.
// Calls are taken to return.
bool x86_code_leads_to(const struct arch_code *code, uint64_t start, uint64_t address);

// True if one does, or may: if one could not be followed to its end; or if a way goes on by a
// table, or behind a call that seems to be the last of a function, and the address lies among the
// function's code. `is_other`: it is known to be another function's, to which any jump by a
// register or a table may lead.
bool x86_code_may_lead_to(const struct arch_code *code, uint64_t start, uint64_t address,
                          bool is_other);

// True if a way from there leads to a ret, or where it cannot be followed. A call that seems to be
// the last of its function does not return.
bool x86_code_may_return(const struct arch_code *code, uint64_t start);

// True for a jump with which the way ends.
struct instruction;
typedef bool x86_code_jump(const struct instruction *i);

// Finds how much the code adds to the stack pointer until such a jump; calls are taken to return.
// False if it does not jump so, as far as it is followed.
bool x86_code_way_to_jump(const struct arch_code *code, uint64_t address, x86_code_jump *is_last,
                          int64_t *ret);

enum { X86_CODE_MAX_CALL_BYTES = 8 };

// True if the `size` bytes end in a call instruction.
bool x86_code_is_after_call(const uint8_t *bytes, size_t size);
