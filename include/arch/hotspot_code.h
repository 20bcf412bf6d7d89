// SPDX-License-Identifier: MIT
// hotspot_code: how HotSpot, OpenJDK's virtual machine, shapes the code that it makes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_code;
struct rule;

// The last place before `address` where a compiled method takes its frame, if it is near: by the
// look of the instructions alone, so that it counts only if the code leads from there to the
// address. 0: there is none.
uint64_t hotspot_code_find_start(const struct arch_code *code, uint64_t address);

// True if the interpreter's jump to the next bytecode ends at `end`.
bool hotspot_code_is_dispatch(const struct arch_code *code, uint64_t end);

// The rule for the frame of an interpreted method.
void hotspot_code_interpreter_rule(struct rule *ret);
