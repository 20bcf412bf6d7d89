// SPDX-License-Identifier: MIT
// go_offsets: where the fields lie that lead to a Go program's goroutines, by its version.
//
// Go does not promise that its structures (runtime/runtime2.go) stay as they are. The offsets of
// known minor versions are in a table, made from the debug information of their releases; those of
// any other version are read from the program's own debug information. A newer version without any
// may still have those of the newest known one (go_guess.h). Users of the offsets check what they
// lead to.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct module;

enum { GO_NO_FIELD = UINT16_MAX };

// In bytes. GO_NO_FIELD: the version has no such field.
struct go_offsets {
	// Of struct g.
	uint16_t low, high; // stack.lo, stack.hi
	uint16_t m;
	uint16_t sp, pc, bp; // sched.sp...
	uint16_t syscall_sp, syscall_pc, syscall_bp;
	uint16_t status, goid, wait_reason, tracking_seq;
	uint16_t creator_pc, start_pc; // gopc, startpc
	uint16_t waiting;              // the sudog that it waits by
	uint16_t locked_m;
	// Of struct m.
	uint16_t thread_id, current; // procid, curg
	// Of struct sudog.
	uint16_t channel; // c
	// Of struct g, again.
	uint16_t wait_since, labels; // waitsince
	// Of struct sudog, again.
	uint16_t element;      // elem: of a semaphore's
	uint16_t next_waiting; // waitlink
	// Of struct pollDesc.
	uint16_t poll_fd, poll_reader, poll_writer; // fd, rg, wg
};

// Finds the offsets of Go 1.`minor` on this processor. False if they are not known.
bool go_offsets_of_version(int minor, struct go_offsets *ret);

// Sets the offsets of the newest version that is known, and returns its minor number.
int go_offsets_newest(struct go_offsets *ret);

// Reads the offsets from the module's debug information. False if it has none. Call it within
// guarded work (guard.h).
bool go_offsets_of_module(struct module *module, struct go_offsets *ret);

// Returns how many bytes of struct g, from its start on, hold all of the fields.
size_t go_offsets_g_bytes(const struct go_offsets *offsets);
