// SPDX-License-Identifier: MIT
#include "trigger.h"

#include <string.h>

#include "clock.h"
#include "memory.h"
#include "profile.h"
#include "quantity.h"
#include "text.h"

enum { MAX_NAME_BYTES = 64, MAX_PERCENT = 1000000 };

#define CPU_EVERY_NS NS_PER_SECOND

static bool parse_percent(const char *text, double *ret)
{
	const char *rest = quantity_parse_decimal(text, ret);

	if (rest && *rest == '%')
		rest++;
	return rest && !*rest && *ret <= MAX_PERCENT;
}

static bool parse_one(const char *text, struct trigger *ret)
{
	static const char blocked[] = "blocked>", over[] = "cpu>", under[] = "cpu<";

	*ret = (struct trigger){.kind = TRIGGER_DEATH};
	if (strcmp(text, "death") == 0)
		return true;
	if (text_begins_with(text, blocked)) {
		ret->kind = TRIGGER_BLOCKED;
		return quantity_parse_time(text + strlen(blocked), &ret->ns);
	}
	ret->kind = TRIGGER_CPU_OVER;
	if (text_begins_with(text, over))
		return parse_percent(text + strlen(over), &ret->percent);
	ret->kind = TRIGGER_CPU_UNDER;
	return text_begins_with(text, under) && parse_percent(text + strlen(under), &ret->percent);
}

bool triggers_parse(const char *text, struct triggers *triggers)
{
	_cleanup_free_ char *copy = memory_strdup(text);
	struct triggers more = *triggers;
	char *rest = copy;

	for (char *word = strsep(&rest, ","); word; word = strsep(&rest, ","))
		if (more.count >= MAX_TRIGGERS || !parse_one(word, &more.items[more.count++]))
			return false;
	*triggers = more;
	return true;
}

// Looks for a thread whose sleep has become longer than that since the last look.
static char *look_for_blocked(const struct triggers *triggers, const struct trigger *trigger,
                              const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct thread *thread = &profile->threads[i];
		const struct span *span = &thread->span;
		if (thread->ended || span->count == 0 ||
		    !thread_state_is_blocked(profile->samples[span->sample].state))
			continue;
		const int64_t blocked_ns = thread->last_ns - span->start_ns;
		const int64_t before_ns = triggers->looked_ns - span->start_ns;
		if (blocked_ns <= trigger->ns || before_ns > trigger->ns)
			continue;
		if (triggers->thread_name &&
		    regexec(triggers->thread_name, thread->name, 0, NULL, 0) != 0)
			continue;
		_cleanup_free_ char *name =
		    text_clean(thread->name, strlen(thread->name), MAX_NAME_BYTES);
		return memory_printf("thread %d (%s) has been blocked for %.3f s", thread->tid,
		                     name, clock_seconds(blocked_ns));
	}
	return NULL;
}

static bool is_cpu(const struct trigger *trigger)
{
	return trigger->kind == TRIGGER_CPU_OVER || trigger->kind == TRIGGER_CPU_UNDER;
}

static char *look_at_share(struct triggers *triggers, double percent)
{
	char *text = NULL;

	for (size_t i = 0; i < triggers->count; i++) {
		struct trigger *trigger = &triggers->items[i];
		if (!is_cpu(trigger))
			continue;
		const bool over = trigger->kind == TRIGGER_CPU_OVER;
		const bool is_true = over ? percent > trigger->percent : percent < trigger->percent;
		if (is_true && !trigger->was_true && !text)
			text = memory_printf("it uses %.1f %% of a CPU", percent);
		trigger->was_true = is_true;
	}
	return text;
}

// Looks at the share of a CPU that the process has used since the last look.
static char *look_at_cpu(struct triggers *triggers, int pid, int64_t now_ns)
{
	if (now_ns - triggers->cpu_looked_ns < CPU_EVERY_NS)
		return NULL;
	const int64_t cpu_ns = clock_read_ns(clock_of_process(pid));
	if (cpu_ns < 0)
		return NULL;
	const bool first = triggers->cpu_looked_ns == 0;
	const double percent = 100 * (double)(cpu_ns - triggers->cpu_clock_ns) /
	                       (double)(now_ns - triggers->cpu_looked_ns);
	triggers->cpu_clock_ns = cpu_ns;
	triggers->cpu_looked_ns = now_ns;
	return first ? NULL : look_at_share(triggers, percent);
}

char *triggers_look(struct triggers *triggers, const struct profile *profile, int pid,
                    int64_t now_ns)
{
	char *text = NULL;
	bool wants_cpu = false;

	for (size_t i = 0; i < triggers->count && !text; i++) {
		wants_cpu |= is_cpu(&triggers->items[i]);
		if (triggers->items[i].kind == TRIGGER_BLOCKED)
			text = look_for_blocked(triggers, &triggers->items[i], profile);
	}
	if (!text && wants_cpu)
		text = look_at_cpu(triggers, pid, now_ns);
	triggers->looked_ns = now_ns;
	return text;
}

bool triggers_want_death(const struct triggers *triggers)
{
	for (size_t i = 0; i < triggers->count; i++)
		if (triggers->items[i].kind == TRIGGER_DEATH)
			return true;
	return false;
}
