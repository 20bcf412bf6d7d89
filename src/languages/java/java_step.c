// SPDX-License-Identifier: MIT
#include <string.h>

#include "address_space.h"
#include "arch.h"
#include "hotspot_frame.h"
#include "java.h"
#include "memory.h"
#include "runtimes.h"
#include "snapshot.h"

enum { WORD = 8, MAX_FRAMES = 1 << 16 };

// A step, and where it may lead.
struct walk {
	struct java *java;
	const struct snapshot *snapshot;
	size_t n;
	bool is_return;
	struct registers *registers;
	uint64_t pc, sp, fp;
	bool has_fp;
};

static bool read_word(const struct walk *walk, uint64_t address, uint64_t *ret)
{
	return snapshot_read_word(walk->snapshot, address, ret);
}

static void note_frame(struct walk *walk, struct java_frame frame)
{
	struct java *java = walk->java;

	if (java->n_frames >= MAX_FRAMES)
		return;
	frame.n = walk->n;
	frame.sp = walk->sp;
	frame.is_return = walk->is_return;
	*array_push(java->frames, java->n_frames, java->frames_capacity) = frame;
}

// Of the caller's registers only these are known. `fp` counts only with `has_fp`.
static enum java_stepped go_to(struct walk *walk, uint64_t pc, uint64_t sp, uint64_t fp,
                               bool has_fp)
{
	const struct arch *arch = ARCH_NATIVE;
	struct registers *registers = walk->registers;

	if (sp <= walk->sp || sp % WORD != 0)
		return JAVA_STEP_UNKNOWN;
	registers->known = 0;
	registers_set(registers, arch->pc, pc);
	registers_set(registers, arch->sp, sp);
	if (has_fp)
		registers_set(registers, arch->fp, fp);
	return JAVA_STEP_DONE;
}

// Leaves a frame whose return address is at `at`. `has_saved_fp`: the word before it is the
// caller's frame pointer; else that is still in its register.
static enum java_stepped leave_frame(struct walk *walk, uint64_t at, bool has_saved_fp)
{
	uint64_t pc, fp = walk->fp;

	if (!read_word(walk, at, &pc) || (has_saved_fp && !read_word(walk, at - WORD, &fp)))
		return JAVA_STEP_UNREADABLE;
	return go_to(walk, pc, at + WORD, fp, has_saved_fp || walk->has_fp);
}

// True if a call has put the word on the stack.
static bool is_return_address(struct walk *walk, uint64_t word)
{
	struct java *java = walk->java;
	const struct java_site *site =
	    java_heaps_of(&java->heaps, word) ? java_code_find(&java->code, word, true) : NULL;

	if (!site)
		return false;
	const struct java_blob *blob = java_code_blob(&java->code, site);
	return blob->kind != JAVA_COMPILED || word == blob->deopt || word == blob->deopt_mh ||
	       java_blob_has_return(&java->source.memory, &java->layout, blob, word);
}

// Compiled code pushes a few words in the middle of a method (string intrinsics).
static enum java_stepped leave_made_frame(struct walk *walk, const struct hotspot_top *top)
{
	for (uint64_t i = 0; i <= HOTSPOT_MAX_PUSHED; i++) {
		const uint64_t at = walk->sp + top->to_return + i * WORD;
		uint64_t word;
		if (!read_word(walk, at, &word))
			return JAVA_STEP_UNREADABLE;
		if (is_return_address(walk, word))
			return leave_frame(walk, at, true);
	}
	return JAVA_STEP_UNKNOWN;
}

static enum java_stepped leave_interrupted(struct walk *walk, const struct java_blob *blob)
{
	uint8_t code[HOTSPOT_TOP_BYTES];
	struct hotspot_top top;

	if (!java_read(&walk->java->source.memory, walk->pc - sizeof(code) / 2, code, sizeof(code)))
		return JAVA_STEP_UNKNOWN;
	hotspot_frame_top(code, walk->pc - blob->begin, walk->pc < blob->begin + blob->complete,
	                  blob->frame_bytes, &top);
	if (top.is_made && blob->kind == JAVA_COMPILED)
		return leave_made_frame(walk, &top);
	return leave_frame(walk, walk->sp + top.to_return, top.has_saved_fp);
}

// Returns the address for which the method's tables hold: one that is to be deoptimized returns
// elsewhere, and keeps in its frame where it was to return to.
static uint64_t original_pc(const struct walk *walk, const struct java_blob *blob)
{
	uint64_t pc;

	if ((walk->pc != blob->deopt && walk->pc != blob->deopt_mh) || blob->orig_pc == 0 ||
	    !read_word(walk, walk->sp + blob->orig_pc, &pc))
		return walk->pc;
	return pc >= blob->begin && pc < blob->end ? pc : walk->pc;
}

// Returns the caller's SP, which is above the return address, or above the arguments that an
// adapter has copied to there.
static uint64_t sp_of_caller(const struct walk *walk)
{
	const uint64_t kept = walk->registers->value[hotspot_frame_bytecode];
	uint8_t code[HOTSPOT_ADAPTER_BYTES];

	return registers_know(walk->registers, hotspot_frame_bytecode) &&
	               java_read(&walk->java->source.memory, walk->pc - sizeof(code), code,
	                         sizeof(code)) &&
	               hotspot_frame_made_room(code, kept - walk->sp)
	           ? kept
	           : walk->sp + WORD;
}

// Leaves code that has no frame, if a call has left the return address where SP points to.
static enum java_stepped leave_frameless(struct walk *walk)
{
	uint64_t word;

	if (!read_word(walk, walk->sp, &word))
		return JAVA_STEP_UNREADABLE;
	return !walk->is_return && is_return_address(walk, word)
	           ? go_to(walk, word, sp_of_caller(walk), walk->fp, walk->has_fp)
	           : JAVA_STEP_UNKNOWN;
}

static enum java_stepped leave_compiled(struct walk *walk, const struct java_blob *found)
{
	const struct java_blob blob = *found; // it moves when others are found

	note_frame(
	    walk, (struct java_frame){.kind = JAVA_FRAME_COMPILED, .pc = original_pc(walk, &blob)});
	if (blob.frame_bytes == 0) // of a method handle's intrinsic
		return leave_frameless(walk);
	if (!walk->is_return)
		return leave_interrupted(walk, &blob);
	return leave_frame(walk, walk->sp + blob.frame_bytes + (uint64_t)HOTSPOT_END_RETURN_AT,
	                   true);
}

// The frame pointer has led to a frame if it is above SP.
static bool has_frame(const struct walk *walk)
{
	return walk->has_fp && walk->fp >= walk->sp && walk->fp % WORD == 0;
}

// Reads a word of an interpreted frame. What the interpreter has not pushed yet is in the register.
static bool read_pushed(const struct walk *walk, int64_t offset, unsigned int number, uint64_t *ret)
{
	const uint64_t at = walk->fp + (uint64_t)offset;

	if (walk->is_return || at >= walk->sp)
		return read_word(walk, at, ret);
	*ret = walk->registers->value[number];
	return registers_know(walk->registers, number);
}

static enum java_stepped leave_interpreted(struct walk *walk)
{
	const uint64_t fp = walk->fp;
	uint64_t method, bytecode, sp, pc, caller_fp, in_register = 0;

	if (!walk->has_fp)
		return JAVA_STEP_NEEDS_REGISTER;
	if (!has_frame(walk))
		return JAVA_STEP_UNKNOWN;
	if (!read_pushed(walk, HOTSPOT_METHOD_AT, hotspot_frame_method, &method) ||
	    !read_pushed(walk, HOTSPOT_BYTECODE_AT, hotspot_frame_bytecode, &bytecode) ||
	    !read_pushed(walk, HOTSPOT_CALLER_SP_AT, hotspot_frame_bytecode, &sp) ||
	    !read_word(walk, fp + HOTSPOT_RETURN_AT, &pc) || !read_word(walk, fp, &caller_fp))
		return JAVA_STEP_UNREADABLE;
	// The slot in the frame is written when the interpreter calls.
	if (!walk->is_return && registers_know(walk->registers, hotspot_frame_bytecode))
		in_register = walk->registers->value[hotspot_frame_bytecode];
	note_frame(walk, (struct java_frame){.kind = JAVA_FRAME_INTERPRETED,
	                                     .method = method,
	                                     .bytecode = in_register,
	                                     .saved_bytecode = bytecode});
	return go_to(walk, pc, sp, caller_fp, true);
}

// Leaves the stub through which C++ has called Java. It has saved what C++ calls preserve.
static enum java_stepped leave_call_stub(struct walk *walk)
{
	const uint64_t fp = walk->fp;
	uint64_t saved[HOTSPOT_N_SAVED], pc, caller_fp;

	if (!walk->has_fp)
		return JAVA_STEP_NEEDS_REGISTER;
	if (!has_frame(walk))
		return JAVA_STEP_UNKNOWN;
	for (size_t i = 0; i < HOTSPOT_N_SAVED; i++)
		if (!read_word(walk, fp + (uint64_t)(int64_t)hotspot_frame_saved[i].at, &saved[i]))
			return JAVA_STEP_UNREADABLE;
	if (!read_word(walk, fp + HOTSPOT_RETURN_AT, &pc) || !read_word(walk, fp, &caller_fp))
		return JAVA_STEP_UNREADABLE;
	note_frame(walk, (struct java_frame){.kind = JAVA_FRAME_STUB, .pc = walk->pc});
	const enum java_stepped step =
	    go_to(walk, pc, fp + HOTSPOT_RETURN_AT + WORD, caller_fp, true);
	for (size_t i = 0; step == JAVA_STEP_DONE && i < HOTSPOT_N_SAVED; i++)
		registers_set(walk->registers, hotspot_frame_saved[i].number, saved[i]);
	return step;
}

static enum java_stepped leave_stub(struct walk *walk, const struct java_blob *blob)
{
	note_frame(walk, (struct java_frame){.kind = JAVA_FRAME_STUB, .pc = walk->pc});
	if (blob->kind == JAVA_FRAMELESS)
		return leave_frameless(walk);
	if (blob->kind == JAVA_OTHER || !walk->is_return)
		return JAVA_STEP_UNKNOWN;
	return leave_frame(walk, walk->sp + blob->frame_bytes + (uint64_t)HOTSPOT_END_RETURN_AT,
	                   true);
}

// Reads where the code lies once it is made. Its heaps do not move.
static bool know_code(struct java *java)
{
	const struct java_memory *memory = &java->source.memory;

	java->source.memory.tid = java->setup->space->tid;
	if (!java->has_code) {
		java->call_stub = java_read_word(memory, java->layout.call_stub_return);
		java->has_code =
		    java->call_stub != 0 && java_heaps_read(memory, &java->layout, &java->heaps);
	}
	return java->has_code;
}

bool java_claims(struct java *java, uint64_t pc)
{
	return know_code(java) && java_heaps_of(&java->heaps, pc);
}

enum java_stepped java_step(struct java *java, const struct snapshot *snapshot, size_t n,
                            bool is_first, bool is_return, struct registers *registers)
{
	const struct arch *arch = ARCH_NATIVE;
	struct walk walk = {
	    .java = java,
	    .snapshot = snapshot,
	    .n = n,
	    .is_return = is_return,
	    .registers = registers,
	    .pc = registers->value[arch->pc],
	    .sp = registers->value[arch->sp],
	    .fp = registers->value[arch->fp],
	    .has_fp = registers_know(registers, arch->fp),
	};

	if (is_first) {
		java->n_frames = 0;
		know_code(java);
		java_code_begin(&java->code, snapshot);
	}
	if (walk.pc == java->call_stub)
		return leave_call_stub(&walk);
	const struct java_site *site = java_code_find(&java->code, walk.pc, is_return);
	if (!site)
		return JAVA_STEP_UNKNOWN;
	const struct java_blob *blob = java_code_blob(&java->code, site);
	switch (blob->kind) {
	case JAVA_COMPILED:
	case JAVA_NATIVE:
		return leave_compiled(&walk, blob);
	case JAVA_INTERPRETER:
		return leave_interpreted(&walk);
	default:
		return leave_stub(&walk, blob);
	}
}
