// SPDX-License-Identifier: MIT
#include "lock_name.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>

#include "holder_names.h"
#include "lock_claim.h"
#include "lock_look.h"
#include "memory.h"
#include "proc.h"
#include "profile.h"
#include "target.h"

// The value of a lock's word while somebody waits for it, in the C library and in many other locks.
enum { CONTENDED = 2 };

static const struct target_thread *find_thread(const struct target *target, int tid)
{
	for (size_t i = 0; i < target->n_threads; i++)
		if (target->threads[i]->tid == tid && !target->threads[i]->gone)
			return target->threads[i];
	return NULL;
}

static bool is_target_thread(void *context, int tid, bool is_shared)
{
	(void)is_shared; // a thread of another process is not looked for
	return find_thread(context, tid) != NULL;
}

static bool is_contended(const struct lock_look *look)
{
	return (look->call.args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT &&
	       (uint32_t)look->call.args[2] == CONTENDED;
}

char *lock_name_futex(const struct target *target, const struct target_thread *thread,
                      struct holder_names *names)
{
	struct lock_look look = {.pid = target->pid, .tid = thread->tid, .call = thread->call};
	char name[PROC_NAME_SIZE];
	struct lock_claim claim;

	lock_look_read_words(&look);
	// pthread_join waits in the thread's own descriptor.
	const bool is_join = look.thread_tid != 0;
	lock_claim_read(&look, is_join ? LOCK_HINT_JOIN : LOCK_HINT_NONE, is_target_thread,
	                (void *)target, &claim);
	if (claim.owner && holder_names_read(names, target->pid, claim.owner, name))
		return is_join ? memory_printf("the end of \"%s\" %d", name, claim.owner)
		               : memory_printf("%s 0x%" PRIx64 ", held by \"%s\" %d",
		                               lock_what_name(claim.what), claim.address, name,
		                               claim.owner);
	return is_contended(&look) ? memory_printf("0x%" PRIx64, look.call.args[0]) : NULL;
}
