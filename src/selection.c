#include "selection.h"

#include "profile.h"

static bool state_matches(const struct selection *selection, enum thread_state state)
{
	if (selection->on_cpu == selection->off_cpu)
		return true;
	return selection->on_cpu == (state == THREAD_RUNNING);
}

bool selection_matches(const struct selection *selection, const struct profile *profile,
                       const struct sample *sample)
{
	if (!state_matches(selection, sample->state))
		return false;
	return !selection->thread_name ||
	       regexec(selection->thread_name, profile->threads[sample->thread].name, 0, NULL, 0) ==
	           0;
}
