// exception: frames of the C++ unwinder that have become their exception's handler's.
//
// Before _Unwind_RaiseException, _Unwind_Resume and their like (libgcc) jump to a handler, they put
// the registers of its frame where their own frame has saved their caller's, the return address
// among them (uw_install_context_1 of GCC's libgcc/unwind-dw2.c). From then on their unwinding
// tables lead to the function with the handler, but not to its stack pointer: that stands in the
// unwinder's own account of that frame, a struct _Unwind_Context on its stack. In the last
// instructions the handler's address stands in the place of that frame's return address.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct registers;
struct snapshot;

// Of a frame of such a function, with its registers and CFA, whose saved return address is
// return_address: has it become a handler's? Then *ret_sp is the stack pointer of the handler's
// frame, as it was behind the call that it was to return from.
bool exception_find_handler(const struct snapshot *snapshot, const struct registers *registers,
                            uint64_t cfa, uint64_t return_address, uint64_t *ret_sp);
