// SPDX-License-Identifier: MIT
// ghc: Haskell code, as GHC compiles it, in programs that hold its runtime (GHC's default).
//
// It keeps its stack elsewhere, has no unwinding tables unless asked for, and never returns: each
// piece goes on to another by a jump. The machine's stack pointer stays where StgRun left it, the
// runtime's function that entered Haskell code, except for what calls of C take. So the caller is
// that of StgRun, by the table row of the place where Haskell code goes back to it (rts/StgCRun.c).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_code;
struct module;
struct rule;

// The rule (RULE_CODE) for an address of the module's code that no table covers. False: it is not
// known to be Haskell. The caller owns *ret. Call it in guarded work (module_guard).
bool ghc_rule(struct module *module, const struct arch_code *code, uint64_t address,
              struct rule *ret);
