// SPDX-License-Identifier: MIT
// x86_padding: knows what compilers put between functions, and before the heads of loops.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// True if the code is nothing but what lies between functions: instructions that do nothing.
bool x86_padding_is_all(const uint8_t *code, size_t size);

// True if a jump in the code, decoded one instruction after another, leads to its first byte.
bool x86_padding_jumps_back(const uint8_t *code, size_t size);
