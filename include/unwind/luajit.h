// SPDX-License-Identifier: MIT
// luajit: finds the frames below code that LuaJIT makes (traces), with 64-bit objects (LJ_GC64).
//
// A trace runs in the C frame of the virtual machine (VM) that entered it, and takes more of the
// stack: only the compiler knew how much. It ends in the VM's exit handler, which sets the stack
// pointer to the frame that the Lua state notes. A walk does the same: the note is read while the
// thread stands still (luajit_read), and the frames that the VM entered earlier follow from the
// chain that it keeps in them (lj_frame.h, CFRAME_*).
#pragma once

#include <stdint.h>

#include "luajit_code.h"

struct resident;
struct snapshot;

// What a stack has shown of a thread.
struct luajit_thread {
	uint64_t dispatch; // the VM's register; 0: not known
	struct luajit_layout layout;
};

// Reads where the innermost frame of the VM is, as resident_read does; 0: it is not known. It is
// right if the thread stands still.
uint64_t luajit_read(int tid, struct resident *resident, const struct luajit_thread *thread);

// Returns the VM's frame that holds the code with the stack pointer `sp`; 0: it is not known.
uint64_t luajit_find_frame(const struct snapshot *snapshot, uint64_t dispatch, uint64_t sp);
