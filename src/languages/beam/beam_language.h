// SPDX-License-Identifier: MIT
// beam: Erlang's virtual machine (BEAM). Finds the stack of the Erlang process for which a thread
// runs C code, and the way back from Erlang code to C (beam_code.h).
//
// The process is noted in the scheduler's data, which the thread's own data point to. Its place
// there is learned from a stack that has shown both the scheduler's registers and the process.
#pragma once

#include "language.h"

extern const struct language beam_language;
