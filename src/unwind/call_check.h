// SPDX-License-Identifier: MIT
// call_check: tells whether a frame that was found without tables can be the one that its caller
// has called.
//
// A frame pointer leads to some frame that has one, and not always to the caller's: a function
// without a frame pointer of its own has that of a frame further out, and all between would be left
// out. The call in the caller says which function it calls.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct module;

struct address_space;
struct call_checks;

struct call_checks *call_checks_create(void);
void call_checks_destroy(struct call_checks *checks);

// Forgets all: the address space is another one.
void call_checks_clear(struct call_checks *checks);

// False if the call that ends at return_address is a direct one in the same file, of a function of
// which the code at the pc is no part; a pc that is a return address (is_return) belongs to the
// call before it. True if that cannot be told, or too many pairs are known. Each is looked at
// once, in the file.
bool call_checks_allow(struct call_checks *checks, struct address_space *space, uint64_t pc,
                       bool is_return, uint64_t return_address);

// Knows where functions end in a module's file.

// False if the code at `next`, behind a call at `call`, is another function's, so that the call
// never returns: by their symbols; or if neither has one, and it seems to be. Then only padding
// follows the call up to where the next function would begin; or nothing, and what is called does
// not return by its own code. Call it in guarded work on the module.
bool file_code_goes_on(struct module *module, uint64_t call, uint64_t next);
