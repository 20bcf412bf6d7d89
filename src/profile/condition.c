#include "condition.h"

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

static bool parse_one(const char *text, struct condition *ret)
{
	static const char blocked[] = "blocked>", over[] = "cpu>", under[] = "cpu<";

	*ret = (struct condition){.kind = CONDITION_DEATH};
	if (strcmp(text, "death") == 0)
		return true;
	if (strncmp(text, blocked, strlen(blocked)) == 0) {
		ret->kind = CONDITION_BLOCKED;
		return quantity_parse_time(text + strlen(blocked), &ret->ns);
	}
	ret->kind = CONDITION_CPU_OVER;
	if (strncmp(text, over, strlen(over)) == 0)
		return parse_percent(text + strlen(over), &ret->percent);
	ret->kind = CONDITION_CPU_UNDER;
	return strncmp(text, under, strlen(under)) == 0 &&
	       parse_percent(text + strlen(under), &ret->percent);
}

bool conditions_parse(const char *text, struct conditions *conditions)
{
	_cleanup_free_ char *copy = memory_strdup(text);
	struct conditions more = *conditions;
	char *rest = copy;

	for (char *word = strsep(&rest, ","); word; word = strsep(&rest, ","))
		if (more.count >= MAX_CONDITIONS || !parse_one(word, &more.items[more.count++]))
			return false;
	*conditions = more;
	return true;
}

// A thread whose sleep has become longer than that since the last look.
static char *look_for_blocked(const struct conditions *conditions,
                              const struct condition *condition, const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct thread *thread = &profile->threads[i];
		const struct span *span = &thread->span;
		if (thread->ended || span->count == 0 ||
		    profile->samples[span->sample].state == THREAD_RUNNING)
			continue;
		const int64_t blocked_ns = thread->last_ns - span->start_ns;
		const int64_t before_ns = conditions->looked_ns - span->start_ns;
		if (blocked_ns <= condition->ns || before_ns > condition->ns)
			continue;
		if (conditions->thread_name &&
		    regexec(conditions->thread_name, thread->name, 0, NULL, 0) != 0)
			continue;
		_cleanup_free_ char *name =
		    text_clean(thread->name, strlen(thread->name), MAX_NAME_BYTES);
		return memory_printf("thread %d (%s) has been blocked for %.3f s", thread->tid,
		                     name, (double)blocked_ns / (double)NS_PER_SECOND);
	}
	return NULL;
}

static bool is_cpu(const struct condition *condition)
{
	return condition->kind == CONDITION_CPU_OVER || condition->kind == CONDITION_CPU_UNDER;
}

static char *look_at_share(struct conditions *conditions, double percent)
{
	char *text = NULL;

	for (size_t i = 0; i < conditions->count; i++) {
		struct condition *condition = &conditions->items[i];
		if (!is_cpu(condition))
			continue;
		const bool over = condition->kind == CONDITION_CPU_OVER;
		const bool holds =
		    over ? percent > condition->percent : percent < condition->percent;
		if (holds && !condition->held && !text)
			text = memory_printf("it uses %.1f %% of a CPU", percent);
		condition->held = holds;
	}
	return text;
}

// The share of a CPU that the process has used since the last look.
static char *look_at_cpu(struct conditions *conditions, int pid, int64_t now_ns)
{
	if (now_ns - conditions->cpu_looked_ns < CPU_EVERY_NS)
		return NULL;
	const int64_t cpu_ns = clock_read_ns(clock_of_process(pid));
	if (cpu_ns < 0)
		return NULL;
	const bool first = conditions->cpu_looked_ns == 0;
	const double percent = 100 * (double)(cpu_ns - conditions->cpu_clock_ns) /
	                       (double)(now_ns - conditions->cpu_looked_ns);
	conditions->cpu_clock_ns = cpu_ns;
	conditions->cpu_looked_ns = now_ns;
	return first ? NULL : look_at_share(conditions, percent);
}

char *conditions_look(struct conditions *conditions, const struct profile *profile, int pid,
                      int64_t now_ns)
{
	char *text = NULL;
	bool wants_cpu = false;

	for (size_t i = 0; i < conditions->count && !text; i++) {
		wants_cpu |= is_cpu(&conditions->items[i]);
		if (conditions->items[i].kind == CONDITION_BLOCKED)
			text = look_for_blocked(conditions, &conditions->items[i], profile);
	}
	if (!text && wants_cpu)
		text = look_at_cpu(conditions, pid, now_ns);
	conditions->looked_ns = now_ns;
	return text;
}

bool conditions_want_death(const struct conditions *conditions)
{
	for (size_t i = 0; i < conditions->count; i++)
		if (conditions->items[i].kind == CONDITION_DEATH)
			return true;
	return false;
}
