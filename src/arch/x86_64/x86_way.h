// SPDX-License-Identifier: MIT
// x86_way: follows what instructions do to the stack pointer, on a way out of a function.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct instruction;

// What the stack pointer is counted from.
enum base { BASE_SP, BASE_REGISTER, BASE_MEMORY, BASE_PROCESS };

// The state on a way out.
struct way {
	uint64_t address;
	enum base base;
	int64_t at;         // stack pointer - base
	uint8_t number;     // BASE_REGISTER: the base, by the machine's number
	int64_t slot;       // BASE_MEMORY: the base is in memory at the first value of register
	                    // `slot_by` + slot; BASE_PROCESS: at BEAM_PROCESS + slot
	uint8_t slot_by;    // by the machine's number
	uint16_t written;   // registers, by the machine's numbers
	uint16_t popped;    // those of them that were popped
	int64_t places[16]; // where they were, relative to the base
	// Registers that hold what is in memory at the first value of register loaded_by +
	// loaded_at.
	uint16_t loaded;
	int64_t loaded_at[16];
	uint8_t loaded_by[16];
	uint16_t stored; // registers whose first value the way has put into memory somewhere
	// Words of the stack, counted from the first SP, into which the way has put registers; if
	// there are more than there is room for, not all are known.
	int64_t filled[4];
	uint8_t n_filled;
	uint16_t kept;     // registers that the way has put on the stack, unchanged
	int64_t keeps[16]; // where they are
	uint16_t copies;   // those of %rbp, %r10 and %r11 that are the base + copied_at
	int64_t copied_at[16];
	bool has_called;   // a call was followed
	bool took_return;  // BASE_SP: took the word at the first SP from the stack
	uint16_t returns;  // registers that hold it
	uint8_t compared;  // the register that SP was just compared with; 0: it was not
	bool checks_guard; // the flags say if the stack's guard is as it was
	bool is_jump;      // it returned by a jump to the address in register `jump`
	uint8_t jump;
	bool is_lost; // SP was changed by an amount that the code computes; `at` is not known, but
	              // counts on

	// A frame that was realigned with the address of the arguments in %r10, as GCC does it:
	bool has_pushed_fp;     // pushed the frame pointer
	int64_t pushed_fp_at;   // there
	bool has_frame;         // the frame pointer points there now
	bool has_arguments;     // %r10 was pushed: what is at the frame pointer + arguments_slot
	int64_t arguments_slot; // is the base + arguments_at
	int64_t arguments_at;

	// WAY_CHANGES_STACKS:
	bool is_away;         // on the thread's stack
	bool came_back;       // the way has been on the thread's stack
	int64_t left_at;      // where it left Erlang's stack
	uint16_t left_copies; // `copies` and `written` at that moment
	uint16_t left_written;
	bool fp_is_of_process; // the frame pointer is in memory at BEAM_PROCESS + fp_slot
	int64_t fp_slot;
};

enum effect { GO_ON, JUMP, BRANCH, RETURN, DEAD_END };

// How to follow a way.
enum {
	WAY_FOLLOWS_CALLS = 1,  // calls are taken to return
	WAY_KEEPS_SP = 2,       // setting the stack pointer is a dead end, too
	WAY_CHANGES_STACKS = 4, // as BEAM does for calls of C (beam_code.h)
	WAY_TAKES_JUMPS = 8,    // a jump to where a register points may be a return
};

// Takes one instruction; way->address is already after it. `how`: WAY_*, together.
enum effect x86_way_step(const struct instruction *i, unsigned int how, struct way *way);

// True if the branch is taken only where the stack's guard was overwritten: it never returns.
bool x86_way_is_failure(const struct instruction *i, const struct way *way);

// Goes on after a branch that is not taken. -fstack-clash-protection makes a large frame page by
// page in a loop, after which SP is what it is compared with.
void x86_way_pass_branch(const struct instruction *i, struct way *way);

// Returns the register that the instruction compares SP with; 0: it does not compare it.
uint8_t x86_way_compared(const struct instruction *i);
