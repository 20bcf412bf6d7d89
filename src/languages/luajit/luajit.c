// SPDX-License-Identifier: MIT
// luajit: finds the frames below code that LuaJIT makes (traces), with 64-bit objects (LJ_GC64).
//
// A trace runs in the C frame of the virtual machine (VM) that entered it, and takes more of the
// stack: only the compiler knew how much. It ends in the VM's exit handler, which sets the stack
// pointer to the frame that the Lua state notes. A walk does the same: the note is read while the
// thread stands still, and the frames that the VM entered earlier follow from the chain that it
// keeps in them (lj_frame.h, CFRAME_*).
#include "languages.h"

#include <string.h>

#include "arch.h"
#include "luajit_code.h"
#include "memory.h"
#include "resident.h"
#include "rule.h"
#include "rule_step.h"
#include "snapshot.h"
#include "unwind.h"

enum {
	CFRAME_OFS_PREV = 32, // lj_frame.h
	CFRAME_RAWMASK = ~3,
	MAX_FRAMES = 256, // of the VM, in one stack
	// The stack that traces and the exit handler take: 256 slots of 4 bytes, registers.
	MAX_TRACE_BYTES = 4096,
};

// What is kept of a thread, and what a walk has shown of it, in its words.
struct luajit_thread {
	uint64_t dispatch; // the VM's register; 0: not known
	struct luajit_layout layout;
};

// What is noted in a copy.
struct luajit_note {
	uint64_t dispatch; // of the VM that was asked
	uint64_t frame;    // where its innermost frame is; 0: not known
};

_Static_assert(sizeof(struct luajit_thread) <= LANGUAGE_WORDS * sizeof(uint64_t), "in its words");
_Static_assert(sizeof(struct luajit_layout) <= RULE_WORDS * sizeof(uint64_t), "in a rule's words");

static bool luajit_refine(const struct language_code *code, const struct rule *row,
                          struct rule *ret)
{
	return luajit_code_refine(code->code, code->address, row, ret);
}

// Makes the rule for code that runs in a frame of the VM: its words are the VM's layout.
static bool luajit_rule_at_jump(const struct arch_code *code, uint64_t end, bool keeps_fp,
                                struct rule *ret)
{
	struct luajit_layout layout = {0};

	(void)keeps_fp;
	if (!luajit_code_is_exit(code, end, &layout))
		return false;
	*ret = (struct rule){.kind = RULE_LANGUAGE};
	memcpy(ret->words, &layout, sizeof(layout));
	return true;
}

// Reads where the innermost frame of the VM is; 0: it is not known.
static uint64_t read_frame(int tid, struct resident *resident, const struct luajit_thread *own)
{
	const struct luajit_layout *layout = &own->layout;
	uint64_t state, frame;

	if (!resident_read(resident, tid, own->dispatch + (uint64_t)(int64_t)layout->state, &state,
	                   sizeof(state)) ||
	    !resident_read(resident, tid, state + (uint64_t)(int64_t)layout->frame, &frame,
	                   sizeof(frame)))
		return 0;
	return frame & (uint64_t)CFRAME_RAWMASK;
}

static void luajit_copy(const struct language_thread *thread, struct snapshot_copy *copy)
{
	const struct luajit_thread *own = *thread->own;

	if (!own)
		return;
	const struct luajit_note note = {own->dispatch,
	                                 read_frame(thread->tid, copy->hint->resident, own)};
	snapshot_copy_note(copy, &note, sizeof(note));
}

static struct luajit_note note_of(const struct snapshot_note *note)
{
	struct luajit_note ret = {0};

	if (note->size == sizeof(ret))
		memcpy(&ret, note->bytes, sizeof(ret));
	return ret;
}

// Returns the VM's frame that holds the code with the stack pointer `sp`; 0: it is not known.
static uint64_t find_frame(const struct language_step *step, uint64_t dispatch, uint64_t sp)
{
	const struct luajit_note note = note_of(step->note);
	uint64_t frame = note.frame, next;

	if (dispatch == 0 || note.dispatch != dispatch)
		return 0;
	for (size_t i = 0; i < MAX_FRAMES && frame % 8 == 0 && frame != 0; i++) {
		if (frame > sp)
			return frame - sp <= MAX_TRACE_BYTES ? frame : 0;
		if (!snapshot_read_word(step->snapshot, frame + CFRAME_OFS_PREV, &next) ||
		    (next &= (uint64_t)CFRAME_RAWMASK) <= frame)
			return 0;
		frame = next;
	}
	return 0;
}

// Leaves code that runs in a frame of the VM: the caller is the VM's.
static struct move luajit_step(struct language_step *step)
{
	enum { R12 = 12, R13 = 13 }; // traces use them, too
	const struct arch *arch = ARCH_NATIVE;
	struct luajit_thread *seen = (struct luajit_thread *)step->words;
	struct registers caller = *step->registers;

	if (!registers_know(&caller, luajit_code_dispatch))
		return move_end_with(STACK_NEEDS_REGISTER);
	seen->dispatch = caller.value[luajit_code_dispatch];
	memcpy(&seen->layout, step->rule->words, sizeof(seen->layout));
	const uint64_t frame = find_frame(step, seen->dispatch, caller.value[arch->sp]);
	if (frame == 0)
		return move_end_with(STACK_SWITCHED);
	registers_set(&caller, arch->sp, frame);
	caller.known &= ~(1u << R12 | 1u << R13);
	const struct rule *row =
	    unwind_rule_at(step->unwinder, seen->layout.vm + unwind_step_bias(step));
	if (row->kind != RULE_ROW ||
	    rule_step(row, step->is_return, step->snapshot, &caller) != STACK_COMPLETE ||
	    !unwind_is_called_from(step->unwinder, &caller))
		return move_end_with(STACK_NO_RULE);
	*step->registers = caller;
	return move_go_on();
}

static void luajit_learn(const struct language_thread *thread, const language_word *words,
                         const struct unwound *stack)
{
	const struct luajit_thread *seen = (const struct luajit_thread *)words;
	struct luajit_thread *own = *thread->own;

	(void)stack;
	if (seen->dispatch == 0)
		return;
	if (!own)
		own = memory_alloc(sizeof(*own));
	*own = *seen;
	*thread->own = own; // when it is whole: a signal handler may copy the thread
}

// The stack is in another VM than the one that the copy was made for.
static enum language_lack luajit_lacks(const struct language_thread *thread,
                                       const struct snapshot_note *note)
{
	const struct luajit_thread *own = *thread->own;

	return own && own->dispatch != note_of(note).dispatch ? LANGUAGE_LACKS_COPY
	                                                      : LANGUAGE_LACKS_NOTHING;
}

const struct language luajit_language = {
    .name = "luajit",
    .refine = luajit_refine,
    .rule_at_jump = luajit_rule_at_jump,
    .copy = luajit_copy,
    .step = luajit_step,
    .learn = luajit_learn,
    .lacks = luajit_lacks,
};

static const char *const files[] = {"luajit*", "lua", "lua[0-9]*", "liblua*", NULL};

const struct language_text luajit_text = {.files = files};
