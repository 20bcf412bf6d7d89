// SPDX-License-Identifier: MIT
// php_code: recognizes how the code of PHP's virtual machine, and of its JIT, goes on to the next
// operation (php.c).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_code;

// Finds where the code first jumps to an operation's handler; NULL: nowhere.
const uint8_t *php_code_find_dispatch(const uint8_t *code, size_t size);

// True if the code at the address leads to such a jump. *ret: how far it moves the stack pointer
// until then.
bool php_code_way_to_handler(const struct arch_code *code, uint64_t address, int64_t *ret);
