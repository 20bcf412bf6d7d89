// SPDX-License-Identifier: MIT
// beam_code: the places in the code that Erlang's virtual machine (BEAM) makes that tell how it
// changes stacks, known by their instructions: of OTP 24 to 28.
//
// Erlang code has its process's stack for its own, a block of the heap, and two registers of the
// machine for the scheduler's registers and the process. What it calls of C runs on the thread's
// stack, right below the frame of process_main, JIT code as well, which holds the scheduler's
// registers and never returns (erts/emulator/beam/jit/x86: beam_asm.hpp, process_main.cpp).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_code;

// The registers that have them, by DWARF's numbers.
extern const uint8_t beam_code_registers, beam_code_process;

struct beam_layout {
	uint64_t normal_exit, normal_exit_end; // where a process's first function returns to
	uint64_t main, main_end;               // process_main
	uint32_t frame_bytes;                  // that it takes of the stack, and then aligns it
	int32_t stack; // the thread's stack pointer, in calls of C, from the registers
	int32_t stop;  // where the process keeps its own stack pointer
};

enum { BEAM_FRAME_ALIGNMENT = 64 };

// Follows the code at normal_exit (the VM's beam_normal_exit); false: it has another shape.
bool beam_code_read(const struct arch_code *code, uint64_t normal_exit, struct beam_layout *ret);
