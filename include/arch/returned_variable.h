// SPDX-License-Identifier: MIT
// returned_variable: finds a variable without a name by a function that returns its value.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { RETURNED_VARIABLE_CODE_BYTES = 12 };

// Returns the address of the variable whose value the function at `address` returns, if its code
// does nothing else.
bool returned_variable(const uint8_t code[RETURNED_VARIABLE_CODE_BYTES], uint64_t address,
                       uint64_t *ret);
