// SPDX-License-Identifier: MIT
// ghc_code: tells how Haskell code, as GHC compiles it, leaves the machine's stack alone (ghc.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_code;

// Finds where StgReturn, at which Haskell code goes back to C, begins in a program's code; NULL: it
// does not have it.
const uint8_t *ghc_code_find_return(const uint8_t *text, size_t size);

// Follows the code at the address to where this piece of Haskell code ends: by a jump to another
// piece, or to StgReturn at that address. *ret: how far it moves the stack pointer until then.
// False if the code is not known to be Haskell.
bool ghc_code_way_out(const struct arch_code *code, uint64_t stg_return_at, uint64_t address,
                      int64_t *ret);
