// SPDX-License-Identifier: MIT
#include "exception_frame.h"

#include "arch.h"
#include "snapshot.h"

enum {
	MAX_FRAME_BYTES = 4096, // of the unwinder's frame, which has two contexts of 240 bytes
	STACK_ALIGNMENT = 16,   // of a CFA (psABI 3.2.2)

	WORD = 8,
};

// Fields of struct _Unwind_Context: reg[], pointers to the caller's registers, by DWARF's numbers;
// cfa; ra.
#define FRAME_POINTER_AT (ARCH_NATIVE->fp * WORD)
#define RETURN_ADDRESS_AT (ARCH_NATIVE->pc * WORD)
#define CFA_AT (ARCH_NATIVE->unwinder_registers * WORD)
#define RA_AT (CFA_AT + WORD)

// A frame for which the unwinder has a context at some address.
struct context {
	uint64_t cfa;   // its stack pointer after the call
	uint64_t slot;  // where that call's return address is
	uint64_t there; // what is there now
	uint64_t ra;    // where it is to go on
	uint64_t fp_at; // where its frame pointer is
};

static bool read_context(const struct snapshot *snapshot, uint64_t at, struct context *ret)
{
	return snapshot_read_word(snapshot, at + CFA_AT, &ret->cfa) &&
	       ret->cfa % STACK_ALIGNMENT == 0 &&
	       snapshot_read_word(snapshot, at + RETURN_ADDRESS_AT, &ret->slot) &&
	       ret->slot == ret->cfa - 8 && snapshot_read_word(snapshot, ret->slot, &ret->there) &&
	       snapshot_read_word(snapshot, at + RA_AT, &ret->ra) &&
	       snapshot_read_word(snapshot, at + FRAME_POINTER_AT, &ret->fp_at);
}

// Finds the unwinder's own context, which it began with, and that of the frame that it has come to.
static bool find_contexts(const struct snapshot *snapshot, uint64_t sp, uint64_t cfa,
                          struct context *ret_own, struct context *ret_handler)
{
	struct context context;
	bool has_own = false, has_handler = false;

	for (uint64_t at = sp; at + RA_AT + 8 <= cfa; at += 8) {
		if (!read_context(snapshot, at, &context) || context.cfa < cfa)
			continue;
		*(context.cfa == cfa ? ret_own : ret_handler) = context;
		has_own |= context.cfa == cfa;
		has_handler |= context.cfa != cfa;
	}
	return has_own && has_handler;
}

// True if the handler's frame pointer has been put in the place of the one of the unwinder's
// caller. The two are in one place from the start if no frame between has saved it. Elsewhere they
// may be equal by chance, but not if the frame pointer points into the handler's frame, nor if that
// frame is to go on anywhere but after its call (the handler may be just there).
static bool has_frame_pointer_of(const struct snapshot *snapshot, const struct context *own,
                                 const struct context *handler)
{
	uint64_t here, there, word;

	return own->fp_at != handler->fp_at && snapshot_read_word(snapshot, own->fp_at, &here) &&
	       snapshot_read_word(snapshot, handler->fp_at, &there) && here == there &&
	       (handler->there != handler->ra ||
	        (here >= handler->cfa && snapshot_read_word(snapshot, here, &word)));
}

bool exception_frame_find_handler_of_callee(const struct snapshot *snapshot,
                                            const struct registers *registers,
                                            struct exception_frame_handler *ret)
{
	const uint64_t sp = registers->value[ARCH_NATIVE->sp];
	struct context own, handler;
	uint64_t here, there;

	if (!find_contexts(snapshot, (sp - MAX_FRAME_BYTES) & -(uint64_t)WORD, sp, &own,
	                   &handler) ||
	    own.ra != registers->value[ARCH_NATIVE->pc] || own.fp_at == handler.fp_at ||
	    !snapshot_read_word(snapshot, own.fp_at, &here) ||
	    !snapshot_read_word(snapshot, handler.fp_at, &there) || here != there)
		return false;
	*ret = (struct exception_frame_handler){
	    .sp = handler.cfa, .pc = handler.there, .is_part = true};
	return true;
}

bool exception_frame_find_handler(const struct snapshot *snapshot,
                                  const struct registers *registers, uint64_t cfa,
                                  uint64_t return_address, struct exception_frame_handler *ret)
{
	const uint64_t sp = registers->value[ARCH_NATIVE->sp];
	struct context own, handler;

	if (cfa < sp || cfa - sp > MAX_FRAME_BYTES ||
	    !find_contexts(snapshot, sp, cfa, &own, &handler))
		return false;
	*ret = (struct exception_frame_handler){.sp = handler.cfa, .pc = return_address};
	// In the end, the handler's address is where that frame's return address was.
	if (own.ra != return_address)
		return handler.there == return_address || handler.there == handler.ra;
	ret->pc = handler.there;
	ret->is_part = true;
	return has_frame_pointer_of(snapshot, &own, &handler);
}
