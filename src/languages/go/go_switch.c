// SPDX-License-Identifier: MIT
#include "go_switch.h"

#include "arch.h"
#include "go_thread.h"
#include "snapshot.h"

enum { MAX_ALIGNED_BYTES = 40 }; // below a stack pointer, taken by aligning it and making room

// Takes the registers to the other stack: only what that holds of them is known from here on.
static void set_stack(struct registers *registers, uint64_t sp)
{
	const struct arch *arch = ARCH_NATIVE;

	registers->known &= 1u << arch->pc;
	registers_set(registers, arch->sp, sp);
}

// True if the goroutine that the thread runs waits where it left its stack, which it notes in
// struct g, unless C code has called Go's meanwhile.
static bool is_left(const struct go_thread *go, const struct go_walk *walk, uint64_t sp)
{
	return go->goroutine.sp && !walk->has_switched && !go_stack_has(&go->goroutine, sp);
}

// Finds the caller of asmcgocall(SB), which keeps the goroutine and, below it, how far its stack
// pointer was from the upper end of the stack, since the stack may be moved meanwhile.
static bool find_caller_of_c(const struct snapshot *snapshot, const struct go_thread *go,
                             uint64_t at, uint64_t *ret)
{
	const struct go_stack *goroutine = &go->goroutine;
	uint64_t g, depth;

	if (!goroutine->address || !snapshot_read_word(snapshot, at, &g) ||
	    g != goroutine->address || !snapshot_read_word(snapshot, at - 8, &depth) ||
	    depth % 8 != 0 || depth == 0 || depth > goroutine->high - goroutine->low)
		return false;
	*ret = goroutine->high - depth;
	return true;
}

// Finds the caller of cgocallback(SB): where C code left the thread's stack is in its struct g, and
// at that place is where it was left before.
static bool find_caller_of_go(const struct snapshot *snapshot, struct go_walk *walk, uint64_t *ret)
{
	const struct go_thread *go = walk->go;
	const uint64_t sp = walk->own_sp ? walk->own_sp : go->own.sp;

	if (sp == 0 || go_stack_has(&go->goroutine, sp) ||
	    !snapshot_read_word(snapshot, sp, &walk->own_sp))
		return false;
	*ret = sp;
	return true;
}

// Goes to the stack pointer that a register has, on this stack or on the goroutine's. A leaf may
// have taken it back already.
static enum go_move take_saved(const struct go_thread *go, unsigned int number, bool is_call,
                               struct registers *registers)
{
	const uint64_t sp = registers->value[ARCH_NATIVE->sp];
	const bool known = registers_know(registers, number);
	const uint64_t saved = known ? registers->value[number] : 0;

	if (!is_call && go_stack_has(&go->goroutine, sp))
		return GO_FRAME;
	if (!known)
		return GO_UNKNOWN;
	if ((saved >= sp && saved - sp <= MAX_ALIGNED_BYTES) || go_stack_has(&go->goroutine, saved))
		set_stack(registers, saved);
	else if (is_call)
		return GO_UNKNOWN;
	return GO_FRAME;
}

static enum go_move take_goroutine(const struct go_thread *go, enum go_switch kind,
                                   struct go_walk *walk, struct registers *registers)
{
	// The goroutine has been put aside for another one since.
	if (kind == GO_MORESTACK && !walk->has_switched && !go->goroutine.address)
		return GO_ROOT;
	if (walk->is_scheduled || !is_left(go, walk, registers->value[ARCH_NATIVE->sp]))
		return GO_UNKNOWN;
	walk->has_switched = true;
	set_stack(registers, go->goroutine.sp);
	if (kind != GO_MORESTACK)
		return GO_FRAME;
	registers_set(registers, ARCH_NATIVE->pc, go->goroutine.pc);
	return GO_CALLER;
}

// Goes from the scheduler, which puts aside the goroutine that the thread runs, or has just chosen
// it, to where that was left. With others, or none, nobody waits below.
static enum go_move take_left(const struct go_thread *go, struct go_walk *walk,
                              struct registers *registers)
{
	if (!go_thread_runs_goroutine(go) || !is_left(go, walk, registers->value[ARCH_NATIVE->sp]))
		return GO_ROOT;
	walk->has_switched = true;
	set_stack(registers, go->goroutine.sp);
	registers_set(registers, ARCH_NATIVE->pc, go->goroutine.pc);
	return GO_LEFT;
}

// Goes on in the goroutine whose registers gogo(SB) has taken, but for the pc.
static enum go_move take_begun(const struct go_thread *go, struct registers *registers)
{
	if (!go_thread_runs_goroutine(go))
		return GO_ROOT;
	set_stack(registers, registers->value[ARCH_NATIVE->sp]);
	registers_set(registers, ARCH_NATIVE->pc, go->goroutine.pc);
	return GO_LEFT;
}

// Leaves a leaf, whose function may have changed the stack already, or not yet.
static enum go_move leave_leaf(const struct go_thread *go, enum go_switch kind, uint8_t slot,
                               struct go_walk *walk, struct registers *registers)
{
	const uint64_t sp = registers->value[ARCH_NATIVE->sp];
	const bool on_goroutine = go_stack_has(&go->goroutine, sp);

	switch (kind) {
	case GO_MCALL:
		return on_goroutine ? GO_FRAME : take_left(go, walk, registers);
	case GO_GOGO:
		return on_goroutine ? take_begun(go, registers) : GO_FRAME;
	default:
		if (on_goroutine)
			return GO_FRAME;
		// A caller on the thread's stack has a frame there.
		if (go->own.sp - sp <= slot)
			return take_goroutine(go, kind, walk, registers);
		return kind == GO_SYSTEMSTACK && go_stack_has(&go->own, sp) && sp < go->own.sp
		           ? GO_FRAME
		           : GO_UNKNOWN;
	}
}

static enum go_move leave_c(const struct snapshot *snapshot, enum go_switch kind, uint8_t slot,
                            struct go_walk *walk, struct registers *registers)
{
	const uint64_t sp = registers->value[ARCH_NATIVE->sp];
	const struct go_thread *go = walk->go;
	const bool on_goroutine = go_stack_has(&go->goroutine, sp);
	uint64_t other;

	if (kind == GO_CGOCALLBACK && !on_goroutine) {
		// It may be before or after: it may already have noted that the thread's stack is
		// left here.
		if (sp == go->own.sp && !snapshot_read_word(snapshot, sp, &walk->own_sp))
			return GO_UNKNOWN;
		return GO_FRAME;
	}
	if (kind == GO_CGOCALLBACK) {
		if (!find_caller_of_go(snapshot, walk, &other))
			return GO_UNKNOWN;
	} else if (slot == 0 || !find_caller_of_c(snapshot, go, sp + slot, &other)) {
		return GO_UNKNOWN;
	}
	walk->has_switched = true;
	set_stack(registers, other);
	return GO_FRAME;
}

enum go_move go_switch_walk(const struct snapshot *snapshot, enum go_switch kind, uint8_t slot,
                            bool is_call, struct go_walk *walk, struct registers *registers)
{
	const uint64_t sp = registers->value[ARCH_NATIVE->sp];
	const struct go_thread *go = walk->go;
	uint64_t other;

	// All its frames are on its own stack, except those of C code that has called it. If these
	// are not at hand, a frame that the runtime has put there leads past them.
	if (snapshot->is_parked && kind != GO_UNCLEAR &&
	    (go->m == 0 || (kind != GO_CGOCALLBACK && kind != GO_ASMCGOCALL)))
		return GO_FRAME;
	if (kind == GO_SAME_STACK) {
		if (!snapshot_read_word(snapshot, sp + slot, &other) || other <= sp)
			return GO_UNKNOWN;
		set_stack(registers, other);
		return GO_FRAME;
	}
	if (kind == GO_SCHEDULE) {
		walk->is_scheduled = true;
		// Who called it was put aside, and is another one than that which it has chosen.
		return is_call && take_left(go, walk, registers) == GO_LEFT ? GO_LEFT : GO_FRAME;
	}
	if (kind == GO_MCALL && is_call && !go_stack_has(&go->goroutine, sp))
		return walk->is_scheduled ? GO_ROOT : take_left(go, walk, registers);
	if (kind == GO_MORESTACK && walk->is_scheduled && is_call)
		return GO_ROOT;
	if (go->m == 0 || kind == GO_UNCLEAR)
		return GO_UNKNOWN;
	if (kind == GO_SAVED_SP)
		return take_saved(go, slot, is_call, registers);
	// It is a call made before it changes the stack.
	if (is_call && kind != GO_CGOCALLBACK && go_stack_has(&go->goroutine, sp))
		return GO_FRAME;
	if (!is_call && kind != GO_CGOCALLBACK)
		return leave_leaf(go, kind, slot, walk, registers);
	if (kind == GO_ASMCGOCALL || kind == GO_CGOCALLBACK)
		return leave_c(snapshot, kind, slot, walk, registers);
	return take_goroutine(go, kind, walk, registers);
}
