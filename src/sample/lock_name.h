// SPDX-License-Identifier: MIT
// lock_name: the lock that a sleeping thread waits for in futex(2), and who holds it.
//
// By the words of the lock alone, which are read without a stop: nobody knows the names of
// functions while sampling goes on. So what does not look like a lock of the C library in all of
// its parts has no name (lock_claim.h).
#pragma once

struct target;
struct target_thread;

// "mutex 0x7f0012345678, held by "worker-2" 4711", as it was when it was read, "the end of
// "worker-2" 4711" (pthread_join), or the address alone of a lock whose holder nobody can tell; a
// new string, owned by the caller. NULL: it may not be a lock.
char *lock_name_futex(const struct target *target, const struct target_thread *thread);
