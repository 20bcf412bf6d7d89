// SPDX-License-Identifier: MIT
#include "decision.h"

enum {
	MAX_GROWTHS = 7,       // of a copy that ends before its stack does
	MAX_COPIES_AGAIN = 32, // each may show one more stack
};

enum decision decision_before_look(bool asked_now, bool pending)
{
	if (asked_now)
		return DECISION_NOTHING;
	return pending ? DECISION_WAIT : DECISION_LOOK;
}

enum decision decision_after_look(enum sleeper_look look, enum bears_stop bears)
{
	switch (look) {
	case SLEEPER_UNCHANGED:
		return DECISION_KEEP;
	case SLEEPER_WAITS:
		return DECISION_KEEP_RAN;
	case SLEEPER_COPIED:
		return DECISION_COPY;
	case SLEEPER_GONE:
		return DECISION_FORGET;
	case SLEEPER_BARE:
		return DECISION_MARK;
	case SLEEPER_HIDDEN:
		if (bears == BEARS_NOT_ASKED)
			return DECISION_ASK;
		return bears == BEARS_STOP ? DECISION_STOP : DECISION_MARK;
	default:
		return DECISION_STOP;
	}
}

// True if another copy would show more: one that uses what unwinding this one has found.
static bool copy_shows_more(const struct copy_seen *seen)
{
	switch (seen->end) {
	case STACK_NOT_COPIED:
		return seen->n_again < MAX_GROWTHS || seen->is_elsewhere;
	case STACK_UNREADABLE:
		return seen->is_elsewhere;
	case STACK_SWITCHED:
		return seen->lack == LANGUAGE_LACKS_COPY;
	default:
		return false;
	}
}

// True if a stop would show more: it shows all registers, including the thread pointer.
static bool stop_shows_more(const struct copy_seen *seen)
{
	return seen->end == STACK_NEEDS_REGISTER ||
	       (seen->end == STACK_SWITCHED && seen->lack == LANGUAGE_LACKS_STOP);
}

enum decision decision_after_copy(const struct copy_seen *seen)
{
	if (copy_shows_more(seen) && seen->n_again < MAX_COPIES_AGAIN)
		return DECISION_COPY;
	if (!stop_shows_more(seen) || seen->held_at_exec || seen->is_traced)
		return DECISION_COUNT;
	if (seen->bears == BEARS_NOT_ASKED)
		return DECISION_ASK;
	return seen->bears == BEARS_STOP ? DECISION_STOP : DECISION_COUNT;
}
