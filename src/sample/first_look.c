// SPDX-License-Identifier: MIT
#include "first_look.h"

#include <string.h>

#include "arch.h"
#include "memory.h"
#include "sleeper.h"
#include "snapshot.h"
#include "target.h"
#include "unwind.h"

void first_look_keep(struct target_thread *thread, const struct snapshot *snapshot,
                     const struct unwound *unwound)
{
	struct first_look *look = &thread->first_look;

	sleeper_take_picture(snapshot, unwound->last_sp, &look->picture);
	look->runs = thread->sleep.runs;
	look->locations =
	    memory_grow(look->locations, &look->capacity, unwound->n, sizeof(*look->locations));
	memcpy(look->locations, unwound->locations, unwound->n * sizeof(*look->locations));
	look->n = unwound->n;
	look->end = unwound->end;
	look->guessed = unwound->guessed;
	look->labels = unwound->labels;
	look->known = true;
}

void first_look_drop(struct target_thread *thread)
{
	thread->first_look.known = false;
}

bool first_look_has_moved(const struct target_thread *thread, const struct snapshot *stopped)
{
	const struct first_look *look = &thread->first_look;
	struct stop_picture now;

	if (!look->known)
		return false;
	sleeper_take_picture(stopped, look->picture.sp + look->picture.size, &now);
	if (now.sp != look->picture.sp || now.pc != look->picture.pc)
		return true;
	// The kernel may write to its frame as it wakes it: what is left of its time, for one.
	return thread->sleep.stop_runs > look->runs + 1 && now.hash != look->picture.hash;
}

struct unwound first_look_unwound(const struct target_thread *thread)
{
	const struct first_look *look = &thread->first_look;

	return (struct unwound){
	    .locations = look->locations,
	    .n = look->n,
	    .end = look->end,
	    .guessed = look->guessed,
	    .labels = look->labels,
	};
}
