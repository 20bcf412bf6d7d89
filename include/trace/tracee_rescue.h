// SPDX-License-Identifier: MIT
// tracee_rescue: helps threads that are in the rest of a call (syscall_rest.h) when the process
// that traced them has died.
#pragma once

// Gives the threads that rescues.h has kept the result of the whole call: without that they would
// be told that the rest was all. A child process does it, for which a second is waited. It goes on
// while a thread that it has asked to stop has no CPU, or cannot be interrupted: until then that
// thread is in its call, and held by nobody. Does nothing if no process can be started.
void tracee_rescue(void);
