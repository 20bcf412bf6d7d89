// SPDX-License-Identifier: MIT
// tracee_rescue: threads that are still in the rest of a call (syscall_rest.h) when the process
// that traced them has died.
#pragma once

// Puts those right that rescues.h has kept; else they would be told that the rest's bytes were all.
// It is done by a child process, whose end lets go of all that it has asked to stop: after a second
// it ends in any case, for a thread that gets no CPU, or cannot be interrupted, stops much later.
// Does nothing if no process can be started.
void tracee_rescue(void);
