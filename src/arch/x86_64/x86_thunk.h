// SPDX-License-Identifier: MIT
// x86_thunk: recognizes retpolines, which compilers put in place of returns and indirect jumps, so
// that the processor does not guess where they lead (GCC's -mfunction-return=thunk and
// -mindirect-branch=thunk, clang's -mretpoline; in functions of their own or inline):
//
//         call 1f
//     0:  pause; lfence; jmp 0b           where the processor's guesses end; never executed
//     1:  lea 8(%rsp), %rsp; ret          a return; or
//         mov %REGISTER, (%rsp); ret      a jump to where the register points
//
// Its call is not a real call: it does not return, and what it leads to belongs to the same
// function.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_code;
struct instruction;
struct rule;

// Turns *i, the instruction at the address, into the return or the indirect jump that it stands
// for, if it is a retpoline's call.
void x86_thunk_replace(const struct arch_code *code, uint64_t address, struct instruction *i);

// Makes the rule for a pc (not a return address) within a retpoline: GCC's own tables have a wrong
// one for the return's last instruction. False if the pc is not in one.
bool x86_thunk_rule(const struct arch_code *code, uint64_t address, struct rule *ret);
