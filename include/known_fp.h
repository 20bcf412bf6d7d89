// known_fp: the frame pointers of sleeping threads, remembered.
//
// Of a thread that sleeps SP and PC can be seen, but not the frame pointer, which code that is
// built with frame pointers needs. Only a stop shows it. When the thread sleeps again in the same
// place, the stop can be spared, and with it what a stop does to a call (syscall_mend.h): the place
// is the same if the call has the same PC and SP, and the frame that needs the frame pointer the
// same return address in the same word and the same caller. A function's frame has one size at any
// one PC, but for one that moves SP by amounts it computes (alloca); there the caller's word tells.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct snapshot;

enum { N_KNOWN_FPS = 4 }; // of a thread

// The frame at which unwinding ended for want of the register.
struct fp_frame {
	uint64_t pc, sp;
};

struct known_fp {
	uint64_t pc, sp; // the leaf's; 0: none
	struct fp_frame frame;
	uint64_t fp;
	uint64_t caller_pc;
};

struct known_fps {
	struct known_fp items[N_KNOWN_FPS];
	struct fp_frame wanted; // by the last copy of the sleeping thread
};

// From a stop that was made because of `wanted`. False: the stop found the thread elsewhere.
bool known_fps_learn(const struct known_fps *known, const struct snapshot *stopped,
                     struct known_fp *ret);
void known_fps_keep(struct known_fps *known, const struct known_fp *learned);

// Adds the frame pointer to the registers of a sleeping thread's copy, if it is known.
void known_fps_apply(const struct known_fps *known, struct snapshot *asleep);

// The copy's registers as they would be of a sleeping thread with that frame pointer.
void known_fp_reduce(const struct known_fp *learned, struct snapshot *stopped);
