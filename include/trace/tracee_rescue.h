// SPDX-License-Identifier: MIT
// tracee_rescue: helps threads that are in the rest of a call (syscall_rest.h) when the process
// that traced them has died.
#pragma once

// Gives the threads that rescues.h has kept the result of the whole call: without that they would
// be told that the rest was all. A child process does it, and ends after a second at the latest,
// which lets go of all threads that it has asked to stop: one that gets no CPU, or cannot be
// interrupted, may stop much later. Does nothing if no process can be started.
void tracee_rescue(void);
