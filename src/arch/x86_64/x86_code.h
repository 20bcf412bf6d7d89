// SPDX-License-Identifier: MIT
// x86_code: where a function without unwinding tables has its return address, by its own code.
//
// From a pc on, the instructions are followed to a ret: what they add to the stack pointer on the
// way says how far above it the return address lies now, whichever way is taken, because the code
// itself relies on that. Only instructions whose effect on the stack pointer is certain are
// followed, and all ways must agree. A call is taken to return; one that does not may lead into the
// code behind it, so that the result is to be checked (x86_code_is_after_call).
//
// Instructions: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix A.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"

// The rule (RULE_CODE) for a frame at `address`, a pc or a return address (is_return); false: its
// way out is not found. The caller owns *ret.
bool x86_code_rule(const struct arch_code *code, uint64_t address, bool is_return,
                   struct rule *ret);

// The same where a table has only a general row for much hand-written code: the rule, if the code
// says for certain that it is called with less on the stack, or leaves the row's frame by itself.
bool x86_code_refine(const struct arch_code *code, uint64_t address, const struct rule *general,
                     struct rule *ret);

// The registers that the function leaves alone at all times that was called where a call returns to
// the address: a direct call, of a function that calls none, all of whose code can be followed. A
// set by DWARF's numbers; empty: that is not known.
uint32_t x86_code_left_alone(const struct arch_code *code, uint64_t return_address);

// How much the code adds to the stack pointer until it jumps through the word that %r15 points to,
// as PHP's handlers do, calls being taken to return; false: it does not, as far as it is followed.
bool x86_code_way_to_handler(const struct arch_code *code, uint64_t address, int64_t *ret);

enum { X86_CODE_MAX_CALL_BYTES = 8 };

// True if the `size` bytes end in a call instruction.
bool x86_code_is_after_call(const uint8_t *bytes, size_t size);
