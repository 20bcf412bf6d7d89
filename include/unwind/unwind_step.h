// SPDX-License-Identifier: MIT
// unwind_step: what a language's step (language.h) may use of the walk.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "language.h"

struct registers;
struct rule;
struct unwinder;

// Steps by the rule's kind, as without a language.
struct move unwind_step_plain(struct language_step *step);

// Returns how much higher the frame's code lies in the process than its module says.
uint64_t unwind_step_bias(const struct language_step *step);

// Returns the rule for a pc, until the next one is asked for.
const struct rule *unwind_rule_at(struct unwinder *unwinder, uint64_t pc);

// True if the caller's pc lies in code.
bool unwind_is_code(const struct unwinder *unwinder, const struct registers *caller);

// True if a call returns to the caller's pc.
bool unwind_is_called_from(struct unwinder *unwinder, const struct registers *caller);

// Goes on after what rule_step, or the like, has done.
static inline struct move unwind_go_on_or_end(enum stack_end end)
{
	return end == STACK_COMPLETE ? move_go_on() : move_end_with(end);
}
