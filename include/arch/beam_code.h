// SPDX-License-Identifier: MIT
// beam_code: the places in the code that Erlang's virtual machine (BEAM) makes that tell how it
// changes stacks, known by their instructions: for x86-64, of OTP 24 to 28.
//
// Erlang code has its process's stack for its own, a block of the heap, and %rbx and %r13 for the
// scheduler's registers and the process. What it calls of C runs on the thread's stack, right below
// the frame of process_main, JIT code as well, which holds the scheduler's registers and never
// returns (erts/emulator/beam/jit/x86: beam_asm.hpp, process_main.cpp).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_code;

enum { BEAM_REGISTERS = 3, BEAM_PROCESS = 13 }; // DWARF's numbers: rbx, r13

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
