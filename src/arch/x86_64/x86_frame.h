// SPDX-License-Identifier: MIT
// x86_frame: finds how far the stack pointer is from its frame at a place in a function, from all
// of the function's code.
//
// A function that keeps a frame pointer has unwinding rules that count from that alone. Yet unless
// it moves the stack pointer by amounts that it computes (alloca, variable arrays, realigned
// frames), the distance is constant at each of its instructions: every way there has pushed and
// subtracted the same. So all ways are followed from the function's first instruction on, through
// all of its code, including the part split off from it (GCC's .cold). Nothing is said of a
// function in which two ways disagree, or any instruction changes the stack pointer in a way that
// is not certain.
//
// Code reached through jump tables and exceptions has the stack pointer of the jump, or of the call
// that raised: code that no other way leads to is followed with that, if it is the same for all
// jumps and calls of the function.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch.h"

// Finds the distance at `address`: before the instruction that begins there, or, with is_call, at
// the call that ends one byte after it; it is the same again when the call returns. Sets *ret only
// on success.
bool x86_frame_find(const struct arch_functions *functions, uint64_t address, bool is_call,
                    struct arch_frame *ret);
