// SPDX-License-Identifier: MIT
// x86_registers: DWARF's numbers of the registers (System V ABI, AMD64 supplement, figure 3.36).
#pragma once

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RIP };

// Those that Erlang code keeps (beam_code.h).
enum { BEAM_REGISTERS = RBX, BEAM_PROCESS = R13 };
