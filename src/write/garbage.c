// SPDX-License-Identifier: MIT
#include "garbage.h"

#include <stddef.h>
#include <string.h>

#include "explain.h"
#include "labels.h"
#include "language_text.h"
#include "profile.h"
#include "text.h"
#include "writer.h"

// Of the CPU time: that much is a fault if it is spent on looking at all memory, not just at what
// is new. Any program that allocates has the other.
enum { LEAST_ALL_PERCENT = 20 };

static bool has(const struct explanation *explanation, const struct sample *sample,
                enum stack_mark mark)
{
	const struct profile *profile = explanation->report->profile;

	return stack_marks_has(&explanation->marks, &profile->stacks[sample->stack], mark);
}

static bool is_collector(const struct thread *thread)
{
	for (size_t i = 0; language_texts[i]; i++)
		if (language_texts[i]->collectors &&
		    text_begins_with_any(thread->name, language_texts[i]->collectors))
			return true;
	return false;
}

// True if the language itself says so, which needs no symbols of its runtime.
static bool is_labelled(const struct profile *profile, const struct sample *sample)
{
	return sample->labels != LABELS_NONE &&
	       strstr(profile->labels[sample->labels], "gc\tcollecting\n");
}

bool garbage_is_collected(const struct explanation *explanation, const struct sample *sample)
{
	const struct profile *profile = explanation->report->profile;

	return is_labelled(profile, sample) || is_collector(&profile->threads[sample->thread]) ||
	       has(explanation, sample, MARK_COLLECT);
}

enum rule garbage_rule(const struct explanation *explanation)
{
	const double needed_ns = explanation->cpu_ns - explanation->collect_spare_ns;

	return explanation->collect_all_ns * 100 >= LEAST_ALL_PERCENT * needed_ns
	           ? RULE_COLLECT
	           : RULE_COLLECT_YOUNG;
}

// Adds a sample that collects.
static void add(struct explanation *explanation, const struct sample *sample)
{
	const double ns = (double)sample->wall_ns;
	const bool is_spare = has(explanation, sample, MARK_COLLECT_SPARE);

	explanation->collect_ns += ns;
	if (is_spare)
		explanation->collect_spare_ns += ns;
	else if (has(explanation, sample, MARK_COLLECT_ALL) ||
	         is_labelled(explanation->report->profile, sample))
		explanation->collect_all_ns += ns;
}

bool garbage_is_made(const struct explanation *explanation, const struct sample *sample)
{
	return has(explanation, sample, MARK_ALLOCATE) ||
	       has(explanation, sample, MARK_ASK_COLLECT) ||
	       is_labelled(explanation->report->profile, sample);
}

const char *garbage_made_text(const struct explanation *explanation, const struct sample *sample)
{
	return has(explanation, sample, MARK_ASK_COLLECT) ? "asks for it the most"
	       : has(explanation, sample, MARK_ALLOCATE)  ? "allocates the most"
	                                                  : "has it done the most";
}

void garbage_find(struct explanation *explanation, uint8_t *rules)
{
	const struct profile *profile = explanation->report->profile;

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		if (!explain_is_selected(explanation, i) || sample->state != THREAD_RUNNING)
			continue;
		explanation->cpu_ns += (double)sample->wall_ns;
		if (rules[i] == RULE_COLLECT)
			add(explanation, sample);
	}
	if (explanation->collect_ns * 100 >=
	    explain_rules[RULE_COLLECT].least_percent * explanation->cpu_ns)
		return;
	explanation->collect_ns = 0;
	for (size_t i = 0; i < profile->n_samples; i++)
		if (rules[i] == RULE_COLLECT)
			rules[i] = RULE_HOT;
}
