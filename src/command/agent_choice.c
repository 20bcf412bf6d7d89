// SPDX-License-Identifier: MIT
#include "agent_choice.h"

#include <stddef.h>

#include "agent_options.h"
#include "agent_process.h"

// By the rules alone.
static enum agent_verdict judge(const struct agent_options *options,
                                const struct agent_process *process, const struct agent_rule *rule)
{
	if (!rule)
		return AGENT_UNMATCHED;
	if (rule->excludes)
		return AGENT_EXCLUDED;
	if (agent_process_is_own(process))
		return AGENT_OWN;
	return process->age_ns < options->min_age_ns ? AGENT_YOUNG : AGENT_CHOSEN;
}

struct agent_choice agent_choose(const struct agent_options *options, struct agent_process *process)
{
	struct agent_choice choice = {.verdict = AGENT_KERNEL};

	if (process->is_kernel)
		return choice;
	agent_process_read(process);
	choice.rule = agent_rules_find(&options->rules, process);
	choice.verdict = process->is_silent ? AGENT_SILENT : judge(options, process, choice.rule);
	return choice;
}
