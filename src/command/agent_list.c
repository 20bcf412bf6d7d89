// SPDX-License-Identifier: MIT
#include "agent_list.h"

#include <stddef.h>
#include <stdlib.h>

#include "agent_command.h"
#include "agent_process.h"
#include "clock.h"
#include "memory.h"
#include "options.h"
#include "process_labels.h"
#include "process_list.h"

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

// What is said of a process that is chosen: under which labels it is filed. NULL: its environment
// is not told.
static char *describe_labels(const struct options *options, int pid, const struct agent_rule *rule)
{
	struct push_labels labels = {0};
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return memory_strdup("");
	const bool is_told = process_labels_read(pid, &labels);
	process_labels_add(&labels, &rule->labels);
	process_labels_add(&labels, &options->push.labels);
	for (size_t i = 0; i < labels.count; i++)
		fprintf(stream, "%s%s=%s", i ? " " : "", labels.items[i].key,
		        labels.items[i].value);
	fclose(stream);
	push_labels_deinit(&labels);
	if (!is_told)
		free(take_pointer(text));
	return text;
}

// *chosen becomes false if that is found here.
static char *describe(const struct options *options, const struct agent_process *process,
                      const struct agent_choice *choice, const char *obstacle, bool *chosen)
{
	if (obstacle)
		return memory_printf("'%s', but %s", choice->rule->text, obstacle);
	switch (choice->verdict) {
	case AGENT_CHOSEN: {
		_cleanup_free_ char *labels = describe_labels(options, process->pid, choice->rule);
		*chosen = labels != NULL;
		return labels ? memory_printf("'%s': %s", choice->rule->text, labels)
		              : memory_printf("'%s', but its environment could not be read "
		                              "within a second",
		                              choice->rule->text);
	}
	case AGENT_OWN:
		return memory_strdup("a profiler, or started by one");
	case AGENT_UNMATCHED:
		return memory_strdup("no rule matches");
	case AGENT_EXCLUDED:
		return memory_printf("excluded by '%s'", choice->rule->text);
	case AGENT_YOUNG:
		return memory_printf("'%s', but it is only %.1f s old", choice->rule->text,
		                     clock_seconds(process->age_ns));
	case AGENT_SILENT:
		return memory_strdup(
		    "its command line or user name could not be read within a second");
	case AGENT_KERNEL:
	case N_AGENT_VERDICTS:
		break;
	}
	return memory_strdup("a kernel thread");
}

struct listed {
	bool chosen;
	char *line;
};

// False: there is nothing to be said of it alone.
static bool list_process(const struct options *options, int pid, struct listed *ret)
{
	struct agent_process process;

	if (!agent_process_look(pid, &process) || process.is_kernel)
		return false;
	const struct agent_choice choice = agent_choose(&options->agent, &process);
	if (!agent_process_user(&process))
		process.user = memory_printf("%u", process.uid);
	_cleanup_free_ char *obstacle =
	    choice.verdict == AGENT_CHOSEN ? agent_process_obstacle(&process) : NULL;
	ret->chosen = choice.verdict == AGENT_CHOSEN && !obstacle;
	_cleanup_free_ char *why = describe(options, &process, &choice, obstacle, &ret->chosen);
	ret->line = memory_printf("%-4s %7d  %-15s  %-12s  %s\n", ret->chosen ? "yes" : "no", pid,
	                          process.name, process.user, why);
	agent_process_deinit(&process);
	return true;
}

static size_t print(const struct listed *items, size_t n, bool chosen, FILE *stream)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (items[i].chosen != chosen)
			continue;
		fputs(items[i].line, stream);
		count++;
	}
	return count;
}

struct error *agent_list(const struct options *options, FILE *stream)
{
	size_t n_pids, n = 0;
	_cleanup_free_ int *pids = process_all(&n_pids);
	_cleanup_free_ struct listed *items = memory_alloc_zeroed(n_pids, sizeof(*items));

	for (size_t i = 0; i < n_pids; i++)
		n += list_process(options, pids[i], &items[n]);
	fprintf(stream, "%-4s %7s  %-15s  %-12s  %s\n", "", "PID", "COMM", "USER", "WHY");
	const size_t n_chosen = print(items, n, true, stream);
	print(items, n, false, stream);
	fprintf(stream, "%zu of %zu processes are chosen; kernel threads are not listed\n",
	        n_chosen, n);
	for (size_t i = 0; i < n; i++)
		free(items[i].line);
	return NULL;
}
