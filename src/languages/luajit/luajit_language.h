// SPDX-License-Identifier: MIT
// luajit: finds the frames below code that LuaJIT makes (traces), with 64-bit objects (LJ_GC64).
//
// A trace runs in the C frame of the virtual machine (VM) that entered it, and takes more of the
// stack: only the compiler knew how much. It ends in the VM's exit handler, which sets the stack
// pointer to the frame that the Lua state notes. A walk does the same: the note is read while the
// thread stands still, and the frames that the VM entered earlier follow from the chain that it
// keeps in them (lj_frame.h, CFRAME_*).
#pragma once

#include "language.h"

extern const struct language luajit_language;
