// SPDX-License-Identifier: MIT
// x86_frame: how far the stack pointer is from its frame at a place in a function, by all of the
// function's code.
//
// A function that keeps a frame pointer has unwinding rules that count from that alone. Yet unless
// it moves the stack pointer by amounts that it computes (alloca, variable arrays, realigned
// frames), the distance is one constant at each of its instructions: whatever way leads there has
// pushed and subtracted the same. So all ways are followed from the function's first instruction
// on, through all of its code, that split off from it (GCC's .cold) included; and nothing is said
// of a function in which two ways disagree, or any instruction does to the stack pointer what is
// not certain.
//
// What is jumped to by tables and by exceptions has the stack pointer that the jump, or the call
// that raised, had: code that no other way leads to is followed with that, if it is the same for
// all jumps and calls of the function.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"

// Finds the distance at `address`: before the instruction that begins there, or, with is_call, that
// of the call which ends one byte behind it, as it is again when the call returns. *ret is set only
// on success.
bool x86_frame_find(const struct arch_functions *functions, uint64_t address, bool is_call,
                    struct arch_frame *ret);
