// SPDX-License-Identifier: MIT
// exception_frame: recognizes frames of the C++ unwinder that become those of their exception's
// handler.
//
// Before _Unwind_RaiseException, _Unwind_Resume and similar functions (libgcc) jump to a handler,
// they write the registers of its frame to where their own frame has saved their caller's, one by
// one, the return address last (uw_install_context_1 of GCC's libgcc/unwind-dw2.c). Once the frame
// pointer is there, their unwinding tables lead astray; once the return address is, they lead to
// the function with the handler, but not to its stack pointer. The unwinder itself describes both
// frames, in a struct _Unwind_Context each, on its stack.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct registers;
struct snapshot;

// A handler's frame, as it was after the call that it was to return from.
struct exception_frame_handler {
	uint64_t sp;
	uint64_t pc;  // a return address
	bool is_part; // only these registers and the frame pointer are the handler's yet
};

// True if a frame of such a function has become a handler's, from its registers, its CFA and its
// saved return address.
bool exception_frame_find_handler(const struct snapshot *snapshot,
                                  const struct registers *registers, uint64_t cfa,
                                  uint64_t return_address, struct exception_frame_handler *ret);

// True if the frame that these registers' one has called has become a handler's in part, by the
// frame pointer that it has left. Where the handler is just behind its call, only that the frame
// pointer does not lead to this frame's caller tells that from one that is the same by chance: call
// it for a frame of such a function, which needs it, when it does not.
bool exception_frame_find_handler_of_callee(const struct snapshot *snapshot,
                                            const struct registers *registers,
                                            struct exception_frame_handler *ret);
