// SPDX-License-Identifier: MIT
// beam: finds the stack of the Erlang process for which a thread runs C code, and the way back from
// Erlang code to C (beam_code.h).
//
// The process is noted in the scheduler's data, which the thread's own data point to. Its place
// there is learned from a stack that has shown both the scheduler's registers and the process.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"

struct address_space;
struct beam_layout;
struct registers;
struct resident;
struct rule;
struct snapshot;

// What is known of a thread.
struct beam_thread {
	uint64_t process_slot;     // where it keeps the address of its process; 0: not known
	int32_t process_sp_offset; // struct beam_layout's
};

// What a stack has shown of a thread that ran C code for an Erlang process.
struct beam_seen {
	uint64_t process;          // 0: nothing
	uint64_t registers;        // the scheduler's
	int32_t process_sp_offset; // struct beam_layout's
};

// True if the stack pointer lies in process_main's frame, below which the C code runs that Erlang
// code calls: the walk must go back to Erlang's stack there, as above on the thread's are the
// scheduler's registers.
bool beam_is_in_frame(const struct beam_layout *layout, const struct registers *registers);

// Notes what the registers show in C code that runs for an Erlang process, if they are known.
void beam_note(const struct beam_layout *layout, const struct registers *registers,
               struct beam_seen *ret);

// Finds where the thread notes its process, if what was seen of it a moment ago still holds; `tls`
// is the thread pointer. From then on its process's stack can be copied.
void beam_learn(const struct beam_seen *seen, int tid, uint64_t tls, struct beam_thread *thread);

// Reads the process, and its stack pointer as last noted, as resident_read does. What it reads is
// right if the thread stands still.
bool beam_read(int tid, struct resident *resident, const struct beam_thread *thread,
               uint64_t *ret_process, uint64_t *ret_sp);

// Goes from Erlang code, whose rule it is (RULE_BEAM), to the caller of process_main, whose frame
// is aligned: its return address is in one of a few places. Returns what rule_step does.
enum stack_end beam_leave(struct address_space *space, const struct rule *rule,
                          const struct snapshot *snapshot, struct registers *registers);
