// SPDX-License-Identifier: MIT
// file_code: knows where functions end in a module's file.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct module;

// False if the code at `next`, behind a call at `call`, is another function's, so that the call
// never returns: by their symbols; or if neither has one, and it seems to be. Then only padding
// follows the call up to where the next function would begin; or nothing, and what is called does
// not return by its own code. Call it in guarded work on the module.
bool file_code_goes_on(struct module *module, uint64_t call, uint64_t next);
