#include "exception.h"

#include "arch.h"
#include "snapshot.h"

enum {
	MAX_FRAME_BYTES = 4096, // of the unwinder's frame, which has two contexts of 240 bytes
	STACK_ALIGNMENT = 16,   // of a CFA (psABI 3.2.2)

	// Fields of struct _Unwind_Context on x86-64: reg[18], the last but one of which says where
	// the return address stands; cfa; ra.
	RETURN_ADDRESS_AT = 16 * 8,
	CFA_AT = 18 * 8,
	RA_AT = 19 * 8,

	RCX = 2, // DWARF's number (psABI, figure 3.36): where __builtin_eh_return takes the address
	         // from
};

// A frame of which the unwinder has a context at some address.
struct context {
	uint64_t cfa;   // its stack pointer behind the call
	uint64_t slot;  // where that call's return address stands
	uint64_t there; // what stands there now
	uint64_t ra;    // where it is to go on
};

static bool read_context(const struct snapshot *snapshot, uint64_t at, struct context *ret)
{
	return snapshot_read_word(snapshot, at + CFA_AT, &ret->cfa) &&
	       ret->cfa % STACK_ALIGNMENT == 0 &&
	       snapshot_read_word(snapshot, at + RETURN_ADDRESS_AT, &ret->slot) &&
	       ret->slot == ret->cfa - 8 && snapshot_read_word(snapshot, ret->slot, &ret->there) &&
	       snapshot_read_word(snapshot, at + RA_AT, &ret->ra);
}

bool exception_find_handler(const struct snapshot *snapshot, const struct registers *registers,
                            uint64_t cfa, uint64_t return_address, uint64_t *ret_sp)
{
	const uint64_t sp = registers->value[ARCH_NATIVE->sp];
	struct context context;

	if (cfa < sp || cfa - sp > MAX_FRAME_BYTES)
		return false;
	for (uint64_t at = sp; at + RA_AT + 8 <= cfa; at += 8) {
		if (!read_context(snapshot, at, &context) || context.cfa <= cfa)
			continue;
		const bool is_last = registers_know(registers, RCX) &&
		                     registers->value[RCX] == context.slot &&
		                     context.there == context.ra;
		if (context.there != return_address && !is_last)
			continue;
		*ret_sp = context.cfa;
		return true;
	}
	return false;
}
