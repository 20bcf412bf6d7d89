// SPDX-License-Identifier: MIT
// ghc: unwinds Haskell code, as GHC compiles it, in programs that hold its runtime (GHC's default).
//
// Such code keeps its stack elsewhere, has no unwinding tables unless asked for, and never returns:
// each piece jumps to the next. The machine's stack pointer stays where StgRun left it, the
// runtime's function that entered Haskell code, except for what calls of C take. So the caller is
// that of StgRun, by the table's row for the place where Haskell code goes back to it
// (rts/StgCRun.c).
#pragma once

#include "language.h"

extern const struct language ghc_language;
