// SPDX-License-Identifier: MIT
// go_code: learns about Go's runtime from the instructions of its code. All functions are in its
// assembly (runtime/asm_*.s, sys_linux_*.s).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rule;

// Where a Go program keeps what leads to its stacks (go_thread.h), as its own code
// shows.

// Holds nothing that is known if both tls and tls_at are 0.
struct go_layout {
	int32_t tls;           // where a thread keeps g, from its thread pointer
	uint16_t curg;         // offset in struct m
	uint16_t goid, status; // in struct g; 0: not known
	uint16_t labels;       // likewise
	bool calls_back;       // C code may call Go functions
	uint64_t tls_at;       // instead of tls, if the dynamic linker sets that: an address in the
	                       // target; in a rule, in the module's file
};

static inline bool go_layout_is_known(const struct go_layout *layout)
{
	return layout->tls != 0 || layout->tls_at != 0;
}

enum { GO_CODE_BYTES = 256 };

// The code at the start of a function, or from some place in it on.
struct go_code {
	uint8_t bytes[GO_CODE_BYTES];
	size_t size;
};

// True if the program begins in the function of that name.
bool go_code_is_start(const char *name);

// Reads from systemstack(SB), at the address `entry` in its file, where threads keep g, and the
// offset of curg in struct m, into *ret. False if the code has another shape.
bool go_code_read_layout(const struct go_code *systemstack, uint64_t entry, struct go_layout *ret);

// What asmcgocall(SB) has kept on the stack for the moment when its call returns.
enum go_code_kept { GO_KEPT_NOTHING, GO_KEPT_GOROUTINE, GO_KEPT_SP };

// Tells it from the code after its call. *ret_offset: where it is, from the stack pointer.
enum go_code_kept go_code_find_kept(const struct go_code *behind_call, uint8_t *ret_offset);

// Returns how many bytes of the thread's stack asmcgocall(SB) may have taken `offset` bytes from
// its entry, where it is on that stack; 0: none, it is not on that stack there.
uint8_t go_code_taken(const struct go_code *asmcgocall, uint64_t offset);

// Adds to a function's rule where its frame pointer is saved.
void go_code_add_frame_pointer(const struct go_code *function, struct rule *rule);

// Finds the register, by DWARF's number, in which a function that calls C code keeps the stack
// pointer. False if there is none, or the leaf at `offset` has not reached that instruction.
bool go_code_find_saved_sp(const struct go_code *function, uint64_t offset, bool is_call,
                           uint8_t *ret);

// True if `offset` lies after the return of clone(SB), where only the new thread comes.
bool go_code_is_new_thread(const struct go_code *clone, uint64_t offset);
