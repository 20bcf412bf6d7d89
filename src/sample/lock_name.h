// SPDX-License-Identifier: MIT
// lock_name: names the lock that a sleeping thread waits for in futex(2), and who holds it.
//
// It goes by the words of the lock alone, which are read without a stop: the names of functions are
// not known while sampling goes on. So a lock has no name unless it looks like one of the C
// library's in all its parts (lock_claim.h).
#pragma once

struct holder_names;
struct target;
struct target_thread;

// Returns a new string, owned by the caller: "mutex 0x7f0012345678, held by "worker-2" 4711", as it
// was when it was read; "the end of "worker-2" 4711" (pthread_join); or only the address of a lock
// whose holder is not known. NULL: it may not be a lock.
char *lock_name_futex(const struct target *target, const struct target_thread *thread,
                      struct holder_names *names);
