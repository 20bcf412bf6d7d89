// SPDX-License-Identifier: MIT
// go_offsets: where the fields lie that lead to a Go program's goroutines, by its version.
//
// Go's runtime promises nothing of its structures (runtime/runtime2.go). The offsets of each minor
// version are in a table, made from the debug information of its releases; those of another one
// are read from the program's own debug information. Whoever uses them checks what they lead to.
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

// Those of Go 1.`minor` on this processor; false: not known.
bool go_offsets_of_version(int minor, struct go_offsets *ret);

// Those that the module's debug information has; false: it has none. To be called in guarded work.
bool go_offsets_of_module(struct module *module, struct go_offsets *ret);

// How many bytes of struct g, from its start on, hold all of the fields.
size_t go_offsets_g_bytes(const struct go_offsets *offsets);
