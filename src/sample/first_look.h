// SPDX-License-Identifier: MIT
// first_look: what a look showed of a sleeping thread that was then asked to stop for the rest.
//
// By the time that it stops it may have woken by itself and gone on. The stack that the stop finds
// then belongs to a later moment: counted in the state and call of the look, it would be a lie, and
// sleeps in frames that need a stop would lose time to those that need none.
#pragma once

#include <stdbool.h>

struct snapshot;
struct target_thread;
struct unwound;

// Keeps the copy of a sleeping thread, unwound as far as it goes.
void first_look_keep(struct target_thread *thread, const struct snapshot *snapshot,
                     const struct unwound *unwound);

// Forgets it.
void first_look_drop(struct target_thread *thread);

// True if the stop has found the thread elsewhere: by its registers, or, if it was scheduled more
// than once since the look, by its stack (the stop itself makes it be scheduled once). False if no
// look was kept.
bool first_look_has_moved(const struct target_thread *thread, const struct snapshot *stopped);

// Returns the stack that the look showed; valid until the next first_look_keep.
struct unwound first_look_unwound(const struct target_thread *thread);
