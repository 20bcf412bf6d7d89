// SPDX-License-Identifier: MIT
// java: HotSpot (OpenJDK's virtual machine) in a process: its frames, and their names.
//
// HotSpot's code has frames of its own kind (frame_<arch>.hpp in OpenJDK's sources): a compiled
// method's frame has a fixed size, interpreted frames are linked by the frame pointer. java_step
// goes from a frame to its caller and notes what the frame is; java_merge then replaces these
// native frames by methods, inlined ones included.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "java_code.h"
#include "java_heaps.h"
#include "java_layout.h"
#include "java_methods.h"
#include "java_objects.h"
#include "java_replay.h"
#include "java_threads.h"
#include "profile.h"

struct arch_code;
struct language_code;
struct language_step;
struct module;
struct move;
struct registers;
struct rule;
struct runtimes_setup;
struct snapshot;
struct snapshot_note;
struct unwound;

enum java_frame_kind {
	JAVA_FRAME_COMPILED,
	JAVA_FRAME_INTERPRETED,
	JAVA_FRAME_STUB, // not a method's: it only leads from one to the next
};

// A native frame in Java's code that the last walk has found.
struct java_frame {
	size_t n;    // its number in the stack
	uint64_t sp; // its SP
	enum java_frame_kind kind;
	// Of COMPILED and STUB. If the method is to be deoptimized: the pc before that.
	uint64_t pc;
	bool is_return;
	// Of INTERPRETED, addresses: the Method, the bytecode by the register (0: not known) and by
	// the frame.
	uint64_t method, bytecode, saved_bytecode;
};

// A constant string in HotSpot.
struct java_string {
	uint64_t address;
	char *text; // NULL: it cannot be read
};

struct java {
	const struct runtimes_setup *setup; // borrowed
	struct module *libjvm;              // borrowed
	uint64_t bias;                      // of libjvm
	struct java_source source;
	struct java_layout layout;
	struct java_heaps heaps;
	uint64_t call_stub; // where Java returns to the stub through which C++ called it
	bool has_code;      // these two are known
	uint64_t unloads;   // address of the number of classes that were unloaded; 0: not known
	uint64_t unloaded;  // the number for which `methods` is right
	bool looked_for_unloads;
	struct java_string *strings;
	size_t n_strings, strings_capacity;
	struct java_code code;
	struct java_methods methods;
	struct java_threads threads;
	struct java_objects objects;
	struct java_replay replay;
	uint32_t names_module;     // the index of "[java]"
	struct java_frame *frames; // of the last walk
	size_t n_frames, frames_capacity;
	uint32_t *locations; // of the last merged stack
	size_t n_locations, locations_capacity;
};

// What is read while a thread stands still.
struct java_note {
	uint64_t unloaded; // how many classes had been unloaded
};

enum java_stepped {
	JAVA_STEP_DONE,
	JAVA_STEP_UNKNOWN,        // the code has to be followed; the registers are as before
	JAVA_STEP_NEEDS_REGISTER, // the frame pointer, which is not known
	JAVA_STEP_UNREADABLE,     // memory that the copy does not hold
};

// True if the pc lies in code that HotSpot has made.
bool java_claims(struct java *java, uint64_t pc);

// Goes from the frame with that number to its caller. `is_first`: it is the walk's first frame in
// Java's code.
enum java_stepped java_step(struct java *java, const struct snapshot *snapshot, size_t n,
                            bool is_first, bool is_return, struct registers *registers);

// For struct language: makes the rule for code that HotSpot has made, and takes a step by it.
bool java_rule(const struct language_code *code, struct rule *ret);
bool java_rule_at_jump(const struct arch_code *code, uint64_t end, bool keeps_fp, struct rule *ret);
struct move java_take_step(struct language_step *step);

// Reads how many classes were unloaded; 0: it is not known.
uint64_t java_read_unloaded(const struct java *java, int tid);

// For struct language: what a thread that sleeps in a futex waits for ("monitor CLASS 0xADDRESS,
// held by "NAME" TID", "lock CLASS ..., held by ...", "notify of CLASS", "parked on CLASS"), and
// Java's own name of a thread.
char *java_name_futex(void *java, int tid, uint64_t futex);
char *java_name_thread(void *java, int tid);

// For struct language: replaces native frames by methods.
bool java_merge(void *java, int tid, const struct snapshot *snapshot,
                const struct snapshot_note *note, struct unwound *stack);
