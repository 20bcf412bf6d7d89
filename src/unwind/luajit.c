// SPDX-License-Identifier: MIT
#include "luajit.h"

#include "resident.h"
#include "snapshot.h"

enum {
	CFRAME_OFS_PREV = 32, // lj_frame.h
	CFRAME_RAWMASK = ~3,
	MAX_FRAMES = 256, // of the VM, in one stack
	// The stack that traces and the exit handler take: 256 slots of 4 bytes, registers.
	MAX_TRACE_BYTES = 4096,
};

uint64_t luajit_read(int tid, struct resident *resident, const struct luajit_thread *thread)
{
	const struct luajit_layout *layout = &thread->layout;
	uint64_t state, frame;

	if (!resident_read(resident, tid, thread->dispatch + (uint64_t)(int64_t)layout->state,
	                   &state, sizeof(state)) ||
	    !resident_read(resident, tid, state + (uint64_t)(int64_t)layout->frame, &frame,
	                   sizeof(frame)))
		return 0;
	return frame & (uint64_t)CFRAME_RAWMASK;
}

uint64_t luajit_find_frame(const struct snapshot *snapshot, uint64_t dispatch, uint64_t sp)
{
	uint64_t frame = snapshot->luajit_frame, next;

	if (dispatch == 0 || snapshot->luajit_dispatch != dispatch)
		return 0;
	for (size_t i = 0; i < MAX_FRAMES && frame % 8 == 0 && frame != 0; i++) {
		if (frame > sp)
			return frame - sp <= MAX_TRACE_BYTES ? frame : 0;
		if (!snapshot_read_word(snapshot, frame + CFRAME_OFS_PREV, &next) ||
		    (next &= (uint64_t)CFRAME_RAWMASK) <= frame)
			return 0;
		frame = next;
	}
	return 0;
}
