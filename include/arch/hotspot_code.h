// SPDX-License-Identifier: MIT
// hotspot_code: recognizes the code that HotSpot, OpenJDK's virtual machine, makes.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_code;
struct rule;

// Finds the last place nearby before `address` where a compiled method makes its frame; 0: there is
// none. It goes by the look of the instructions alone, so it counts only if the code leads from
// there to the address.
uint64_t hotspot_code_find_start(const struct arch_code *code, uint64_t address);

// True if the interpreter's jump to the next bytecode ends at `end`.
bool hotspot_code_is_dispatch(const struct arch_code *code, uint64_t end);

// Makes the rule for the frame of an interpreted method.
void hotspot_code_interpreter_rule(struct rule *ret);

// True if a return to `address` first puts the frames of more callers of a virtual thread back on
// the stack (JDK 21 and later): what lies above are the carrier's frames.
bool hotspot_code_is_return_barrier(const struct arch_code *code, uint64_t address);
