// SPDX-License-Identifier: MIT
// beam_code: finds the places in the code that Erlang's virtual machine (BEAM) makes that tell how
// it changes stacks, by their instructions: in OTP 24 to 28.
//
// Erlang code runs on its process's own stack, a block of the heap, and keeps two of the machine's
// registers for the scheduler's registers and the process. The C code that it calls runs on the
// thread's stack, right below the frame of process_main, which is JIT code as well, holds the
// scheduler's registers and never returns (erts/emulator/beam/jit/x86: beam_asm.hpp,
// process_main.cpp).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_code;

// The machine's registers that hold the two, by DWARF's numbers.
extern const uint8_t beam_code_registers, beam_code_process;

struct beam_layout {
	uint64_t normal_exit, normal_exit_end; // where a process's first function returns to
	uint64_t main, main_end;               // process_main
	uint32_t frame_bytes;                  // what it takes of the stack before it aligns it
	int32_t sp_offset;         // the thread's stack pointer, in calls of C, from the registers
	int32_t process_sp_offset; // where the process keeps its own stack pointer (p->stop)
};

enum { BEAM_FRAME_ALIGNMENT = 64 };

// Follows the code at normal_exit (the VM's beam_normal_exit). False if it has another shape.
bool beam_code_read(const struct arch_code *code, uint64_t normal_exit, struct beam_layout *ret);

// True for Erlang's calls in place of a return, with the stack pointer as at the entry: a jump
// through an export, jmp *(%rax,%r12,8), and any way to where a function begins.
bool beam_code_is_tail_call(const struct arch_code *code, uint64_t address);

// True if the header of an Erlang function begins there: with a call that never returns, behind
// which there are data.
bool beam_code_is_header(const struct arch_code *code, uint64_t address);
