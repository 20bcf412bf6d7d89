// SPDX-License-Identifier: MIT
#include "explain.h"

#include <stdlib.h>
#include <string.h>

#include "blame.h"
#include "frame_name.h"
#include "garbage.h"
#include "held_tasks.h"
#include "language_text.h"
#include "memory.h"
#include "module.h"
#include "own_code.h"
#include "profile.h"
#include "served_ports.h"
#include "stack_marks.h"
#include "symbolize.h"
#include "syscall_name.h"
#include "syscall_numbers.h"
#include "wait_kind.h"
#include "writer.h"

enum {
	// A thread that does something else for less than this part of its time waits for work, or
	// sleeps until the next time, wherever it waits.
	MIN_BUSY_PARTS = 50,
	MIN_BUSY_PARTS_OF_SLEEPER = 10,
	// Of one thread's time: less is not worth telling of any program; likewise of waits for
	// CPUs, as in cpu_waits.c.
	LEAST_THREAD_PERCENT = 10,
	LEAST_HOT_PERCENT = 20,
	// But waits that take most of the busy time describe a program that has little to do.
	MOST_OF_ALL_PERCENT = 50,
	LEAST_MOST_PERCENT = 2,
	// One thread that hands out work waits most of the time until it is taken, or a place is
	// free. Several that do so wait for who is too slow.
	LEAST_SENDERS_PERCENT = 200,
	// Who makes garbage is told if as many ticks show it.
	LEAST_GARBAGE_TICKS = 5,
	MAX_SYNC_FRAMES = 5, // of Go, from the system call up to syscall.Fsync
};

static const double LEAST_RAN_OF_LOCK = 0.2; // else hardly any lock were told

// Columns as in struct explain_rule.
const struct explain_rule explain_rules[N_RULES] = {
    [RULE_CIRCLE] = {"deadlock", "waits in a circle: a deadlock", 0, true, NULL},
    [RULE_CPU] = {"cpu", "is ready, but waits for a CPU", 20, true, "--state=runnable"},
    [RULE_GIL] = {"gil", "waits for the interpreter's lock (the GIL)", 20, true, "--blame"},
    [RULE_COLLECT] = {"gc", "garbage collection", 25, true, "--on-cpu"},
    [RULE_COLLECT_YOUNG] = {"gc", "garbage collection", 25, false, "--on-cpu"},
    [RULE_LOCK] = {"lock", "waits for a lock", 10, true, "--blame"},
    [RULE_SWAP] = {"swap", "waits for its own memory to be read from disk", 5, true, "--off-cpu"},
    [RULE_FILE] = {"file", "waits for a disk", 10, false, "--off-cpu --syscalls"},
    [RULE_LOOKUP] = {"name-lookup", "waits for a name look-up (DNS)", 5, true, "--off-cpu"},
    [RULE_CHILD] = {"child", "waits for a child process", 30, false, "-c --blame"},
    [RULE_PEER] = {"peer", "waits for the other end of a connection or pipe", 20, false,
                   "--off-cpu --syscalls"},
    [RULE_POOL] = {"pool", "waits until a semaphore or pool has a free place", 20, true,
                   "--off-cpu"},
    [RULE_SEND] = {"channel", "waits to send to a channel or queue that is full", 20, true,
                   "--off-cpu"},
    [RULE_SLEEP] = {"sleep", "sleeps between other work", 20, false, "--off-cpu"},
    [RULE_HOT] = {"hot", "computes", 30, false, "--on-cpu"},
    [RULE_RESULT] = {"result", "waits for the result of another task", 20, false, "--off-cpu"},
    [RULE_ONLY_PEER] = {"peer", "mostly waits for the other end of a connection or pipe", 20, false,
                        "--off-cpu --syscalls"},
    [RULE_ONLY_SLEEP] = {"sleep", "mostly sleeps", 20, false, "--off-cpu"},
};

const struct function *explain_function(const struct explanation *explanation, uint32_t id)
{
	return &explanation->report->symbols->functions[id];
}

static void push_place(struct explanation *explanation, const struct line *line, uint32_t link)
{
	*array_push(explanation->places, explanation->n_places, explanation->places_capacity) =
	    (struct place){line->function, line->line, link};
}

// Looks at each line once: most stacks have the same.
static bool is_own(const struct explanation *explanation, const struct module *module,
                   const struct line *line)
{
	uint8_t *known = &explanation->own[line - explanation->report->symbols->lines];

	if (*known == 0)
		*known = own_code_function(module, explain_function(explanation, line->function))
		             ? 2
		             : 1;
	return *known == 2;
}

// Adds a function of a stack whose places begin at `first`. One that calls itself counts once, with
// the line of its innermost call.
static void push_call(struct explanation *explanation, size_t first, const struct line *line,
                      uint32_t link)
{
	struct place *places = explanation->places;
	const size_t n = explanation->n_places;

	if (n > first && places[n - 1].function == line->function)
		places[n - 1].line = line->line;
	else
		push_place(explanation, line, link);
}

// Adds the program's own functions of the frames from the n-th down to before the i-th, root first.
// Returns how many; sets *ret_named to the innermost function with a name, if there is one: to one
// of a language's own frames rather than to what the interpreter does for it.
static uint32_t push_own(struct explanation *explanation, const struct stack *stack, uint32_t i,
                         uint32_t n, uint32_t link, const struct line **ret_named)
{
	const struct report *report = explanation->report;
	const size_t first = explanation->n_places;
	bool has_frame = false;

	for (; n-- > i;) {
		const uint32_t id = report->profile->location_ids[stack->first + n];
		const struct location_lines *lines = &report->symbols->locations[id];
		const struct module *module =
		    report->modules->items[report->profile->locations[id].module];
		for (uint32_t j = lines->count; j-- > 0;) {
			const struct line *line = &report->symbols->lines[lines->first + j];
			if (module->kind == MODULE_RUNTIME || !has_frame)
				*ret_named = line;
			has_frame = has_frame || module->kind == MODULE_RUNTIME;
			if (is_own(explanation, module, line))
				push_call(explanation, first, line, link);
		}
	}
	return (uint32_t)(explanation->n_places - first);
}

// The same; if there are none, adds the function that waits for a child, else the innermost one
// with a name.
static uint32_t push_places(struct explanation *explanation, const struct stack *stack, uint32_t i,
                            uint32_t n, uint32_t link)
{
	const struct line *named = NULL;
	const uint32_t count = push_own(explanation, stack, i, n, link, &named);

	if (count > 0 || !named)
		return count;
	const struct line *child =
	    link == 0 ? stack_marks_find(&explanation->marks, stack, MARK_CHILD) : NULL;
	push_place(explanation, child ? child : named, link);
	return 1;
}

const struct place *explain_own_places(struct explanation *explanation, const struct stack *stack,
                                       uint32_t *ret_n)
{
	const struct line *named = NULL;

	*ret_n = push_own(explanation, stack, stack->n_blamed, stack->n_frames, 0, &named);
	explanation->n_places -= *ret_n;
	return *ret_n > 0 ? explanation->places + explanation->n_places : NULL;
}

static bool has(const struct explanation *explanation, const struct stack *stack,
                enum stack_mark mark)
{
	return stack_marks_has(&explanation->marks, stack, mark);
}

// True if it waits until another one takes what it gives.
static bool is_send(const struct explanation *explanation, const struct stack *stack,
                    const struct wait *wait)
{
	for (size_t i = 0; wait && language_texts[i]; i++) {
		const char *const *reason = language_texts[i]->sends;
		for (; reason && *reason; reason++)
			if (strcmp(wait->reason, *reason) == 0)
				return true;
	}
	return has(explanation, stack, MARK_GIVE);
}

static bool is_sync_name(const char *name)
{
	static const char *const names[] = {"fsync", "fdatasync", "msync", "syncfs"};
	static const char of_go[] = "syscall.";

	if (strncmp(name, of_go, strlen(of_go)) == 0)
		name += strlen(of_go);
	for (size_t i = 0; i < array_size(names); i++)
		if (strcasecmp(name + strspn(name, "_"), names[i]) == 0)
			return true;
	return false;
}

// True if it is in a call that makes a disk write: of that, a fast disk makes CPU time.
static bool is_sync(const struct explanation *explanation, const struct stack *stack)
{
	const struct report *report = explanation->report;

	for (uint32_t i = 0; i < stack->n_frames && i < MAX_SYNC_FRAMES; i++) {
		const struct location_lines *lines =
		    &report->symbols->locations[report->profile->location_ids[stack->first + i]];
		for (uint32_t j = 0; j < lines->count; j++) {
			const uint32_t function = report->symbols->lines[lines->first + j].function;
			if (is_sync_name(explain_function(explanation, function)->name))
				return true;
		}
	}
	return false;
}

static bool is_circle(const struct explanation *explanation, const struct stack *stack)
{
	const struct report *report = explanation->report;

	return stack->n_blamed > 0 &&
	       blame_is_circle(
	           report->modules,
	           &report->profile->locations[report->profile->location_ids[stack->first]]);
}

// True if who holds the lock waits for clients: threads of a server take turns at that.
static bool is_turn(const struct explanation *explanation, const struct stack *stack)
{
	const struct report *report = explanation->report;

	if (stack->n_blamed == 0)
		return false;
	const struct location_lines *lines =
	    &report->symbols->locations[report->profile->location_ids[stack->first]];
	return lines->count > 0 &&
	       wait_kind_is_client_call(
	           explain_function(explanation, report->symbols->lines[lines->first].function)
	               ->name);
}

static bool is_call(const struct wait *wait, const char *name)
{
	_cleanup_free_ char *call =
	    wait->syscall == NO_SYSCALL ? NULL : syscall_name(wait->syscall);

	return call && strcmp(call, name) == 0;
}

// True if it waits in a call for a child.
static bool is_child_call(const struct wait *wait)
{
	return is_call(wait, "wait4") || is_call(wait, "waitid");
}

static bool waits_for_signal(const struct wait *wait)
{
	return wait->syscall == SYS_pause || wait->syscall == SYS_rt_sigsuspend;
}

// True if it waits, with a time limit, for one connection alone, and the other end has not begun
// it. Several descriptors, or another socket, may be an event loop's.
static bool is_one_connection(const struct explanation *explanation, const struct wait *wait)
{
	static const char tcp[] = "tcp ";

	return wait && wait->meaning && strncmp(wait->meaning, tcp, strlen(tcp)) == 0 &&
	       !strstr(wait->meaning, " +") && !wait_kind_has_no_work(WAIT_KIND_SOCKET, wait) &&
	       !served_ports_have(explanation->served, wait);
}

static enum rule rule_of(const struct explanation *explanation, const struct sample *sample)
{
	const struct profile *profile = explanation->report->profile;
	const struct stack *stack = &profile->stacks[sample->stack];
	const bool has_wait = sample->wait != WAIT_NONE;
	const struct wait *wait = has_wait ? &profile->waits[sample->wait] : NULL;

	switch (sample_kind(&explanation->kinds, sample)) {
	case WAIT_KIND_RUNNING:
		return is_sync(explanation, stack)                 ? RULE_FILE
		       : garbage_is_collected(explanation, sample) ? RULE_COLLECT
		                                                   : RULE_HOT;
	case WAIT_KIND_RUNNABLE:
		return RULE_CPU;
	case WAIT_KIND_LOCK:
		return is_circle(explanation, stack)                           ? RULE_CIRCLE
		       : wait && language_text_is_whole_lock(wait->descriptor) ? RULE_GIL
		       : has(explanation, stack, MARK_COLLECT) ||
		               has(explanation, stack, MARK_ALLOCATE)
		           ? RULE_HOT
		       : is_turn(explanation, stack) ? RULE_IDLE
		                                     : RULE_LOCK;
	case WAIT_KIND_FILE:
		return sample->state == THREAD_DISK && (!wait || wait->syscall == NO_SYSCALL)
		           ? RULE_SWAP
		           : RULE_FILE;
	case WAIT_KIND_SOCKET:
		return has(explanation, stack, MARK_LOOKUP) ? RULE_LOOKUP
		       : wait_kind_has_no_work(WAIT_KIND_SOCKET, wait) ||
		               (wait && served_ports_have(explanation->served, wait))
		           ? RULE_IDLE
		           : RULE_PEER;
	case WAIT_KIND_EVENT:
		return has(explanation, stack, MARK_LOOKUP)   ? RULE_LOOKUP
		       : has(explanation, stack, MARK_POOL)   ? RULE_POOL
		       : has(explanation, stack, MARK_CHILD)  ? RULE_CHILD
		       : has(explanation, stack, MARK_ANSWER) ? RULE_PEER
		       : is_one_connection(explanation, wait) ? RULE_PEER
		                                              : RULE_IDLE;
	case WAIT_KIND_CONDITION:
		return is_send(explanation, stack, wait)      ? RULE_SEND
		       : has(explanation, stack, MARK_CHILD)  ? RULE_CHILD
		       : has(explanation, stack, MARK_LOOKUP) ? RULE_LOOKUP
		       : has(explanation, stack, MARK_POOL)   ? RULE_POOL
		       : has(explanation, stack, MARK_ANSWER) ? RULE_PEER
		       : has(explanation, stack, MARK_RESULT) ? RULE_RESULT
		                                              : RULE_IDLE;
	case WAIT_KIND_PIPE:
		return has(explanation, stack, MARK_CHILD)             ? RULE_CHILD
		       : !wait || !is_child_call(wait)                 ? RULE_PEER
		       : strcmp(wait->descriptor, WAIT_ANY_CHILD) == 0 ? RULE_IDLE
		                                                       : RULE_CHILD;
	case WAIT_KIND_TIMER: // with a time limit, Python looks for its child again and again
		return has(explanation, stack, MARK_CHILD) ? RULE_CHILD
		       : wait && waits_for_signal(wait)    ? RULE_IDLE
		                                           : RULE_SLEEP;
	default:
		return RULE_IDLE;
	}
}

static bool is_in_own_code(struct explanation *explanation, const struct stack *stack)
{
	uint32_t n;

	explain_own_places(explanation, stack, &n);
	return n > 0;
}

// True if it has functions of a language's own frames: then the program's own have names as well.
static bool is_of_language(const struct explanation *explanation, const struct stack *stack)
{
	const struct report *report = explanation->report;

	for (uint32_t i = stack->n_blamed; i < stack->n_frames; i++) {
		const uint32_t id = report->profile->location_ids[stack->first + i];
		if (report->modules->items[report->profile->locations[id].module]->kind ==
		    MODULE_RUNTIME)
			return true;
	}
	return false;
}

// True if the thread does little else than wait. That it is late at its work, on a busy machine, is
// not work.
static bool only_waits(const struct explanation *explanation, uint32_t thread, int least_parts)
{
	const double ready_ns = explanation->ready_ns[thread];

	return (explanation->busy_ns[thread] - ready_ns) * least_parts <
	       explanation->total_ns[thread] - ready_ns;
}

// True if it may just hand out work.
static bool is_sender(enum rule rule)
{
	return rule == RULE_SEND || rule == RULE_POOL || rule == RULE_RESULT;
}

// Returns the sample's rule by what its thread does else.
static enum rule rule_by_thread(struct explanation *explanation, const struct sample *sample,
                                enum rule rule)
{
	const struct profile *profile = explanation->report->profile;

	if (is_sender(rule) &&
	    explanation->send_ns[rule] * 100 < LEAST_SENDERS_PERCENT * (double)profile->duration_ns)
		return RULE_IDLE;
	// Go looks a name up in several goroutines, of which one is the program's.
	const bool is_task = sample->wait != WAIT_NONE && profile->waits[sample->wait].reason[0];
	// Java has a thread of its own wait for each child, and its library has locks of its own.
	if (rule != RULE_PEER && rule != RULE_SLEEP && rule != RULE_CHILD &&
	    !(rule == RULE_LOCK && is_of_language(explanation, &profile->stacks[sample->stack])) &&
	    !(rule == RULE_LOOKUP && is_task))
		return rule;
	const struct stack *stack = &profile->stacks[sample->stack];
	if (!is_in_own_code(explanation, stack) && !has(explanation, stack, MARK_ENTER))
		return RULE_IDLE;
	if (rule == RULE_PEER && only_waits(explanation, sample->thread, MIN_BUSY_PARTS))
		// The other end is in the same process: what it does is told there.
		return sample->wait != WAIT_NONE && wait_peer(&profile->waits[sample->wait]) ==
		                                        profile->threads[sample->thread].pid
		           ? RULE_IDLE
		           : RULE_ONLY_PEER;
	if (rule != RULE_SLEEP)
		return rule;
	return only_waits(explanation, sample->thread, MIN_BUSY_PARTS_OF_SLEEPER) ? RULE_ONLY_SLEEP
	                                                                          : rule;
}

// True if it runs what a virtual machine has compiled and has not named.
static bool is_in_nameless_code(const struct explanation *explanation, const struct stack *stack)
{
	const struct report *report = explanation->report;

	if (stack->n_frames <= stack->n_blamed)
		return false;
	const uint32_t id = report->profile->location_ids[stack->first + stack->n_blamed];
	return report->symbols->locations[id].count == 0 &&
	       module_is_jit(report->modules->items[report->profile->locations[id].module]);
}

// Returns what is waited for, or what it computes, as a part of a sentence; a new string, "" if
// nothing is known.
static char *why_text(const struct explanation *explanation, const struct sample *sample,
                      enum rule rule)
{
	static const char held_by[] = ", held by ", end_of[] = "the end of ";
	const struct profile *profile = explanation->report->profile;

	if (rule == RULE_ALLOCATES)
		return memory_strdup(garbage_made_text(explanation, sample));
	if (rule == RULE_HOT && is_in_nameless_code(explanation, &profile->stacks[sample->stack]))
		return memory_strdup("in functions compiled at run time, which have no names");
	if (sample->wait == WAIT_NONE || rule == RULE_HOT || rule == RULE_CPU ||
	    rule == RULE_SLEEP || rule == RULE_ONLY_SLEEP || rule == RULE_CIRCLE || is_sender(rule))
		return memory_strdup("");
	const char *descriptor = frame_name_descriptor(&profile->waits[sample->wait]);
	const char *holder = strstr(descriptor, held_by);
	if (holder)
		return memory_strdup(holder + strlen(", "));
	if (strncmp(descriptor, end_of, strlen(end_of)) == 0)
		return memory_strdup(descriptor + strlen(end_of));
	if (rule == RULE_CHILD) // else in one for its output
		return memory_strdup(is_child_call(&profile->waits[sample->wait]) ? descriptor
		                                                                  : "");
	if (rule == RULE_LOCK && *descriptor)
		return memory_printf("(%s)", descriptor);
	if (rule == RULE_LOCK || rule == RULE_GIL)
		return memory_strdup("");
	// "futex", or a channel, within the library that asks.
	if (sample_kind(&explanation->kinds, sample) == WAIT_KIND_CONDITION)
		return memory_strdup("");
	_cleanup_free_ char *call = frame_name_waits_in(&profile->waits[sample->wait]);
	return memory_printf("in %s%s%s", call ? call : "a call", *descriptor ? " of " : "",
	                     descriptor);
}

// Adds the places of the threads that are waited for.
static void push_links(struct explanation *explanation, const struct stack *stack)
{
	const struct report *report = explanation->report;
	uint32_t link = 0;

	if (stack->n_blamed == 0)
		return;
	const uint32_t *ids = report->profile->location_ids + stack->first;
	for (uint32_t end = stack->n_blamed; end > 0;) {
		uint32_t first = end - 1; // where the separator is
		while (first > 0 &&
		       !blame_is_separator(report->modules,
		                           &report->profile->locations[ids[first - 1]]))
			first--;
		push_places(explanation, stack, first, end - 1, ++link);
		end = first;
	}
}

static void add_row(struct explanation *explanation, const struct sample *sample, enum rule rule)
{
	const struct stack *stack = &explanation->report->profile->stacks[sample->stack];
	const size_t first = explanation->n_places;
	_cleanup_free_ char *why = why_text(explanation, sample, rule);
	const uint32_t n_own = push_places(explanation, stack, stack->n_blamed, stack->n_frames, 0);

	push_links(explanation, stack);
	*array_push(explanation->rows, explanation->n_rows, explanation->rows_capacity) =
	    (struct row){.rule = rule,
	                 .n = (uint32_t)(explanation->n_places - first),
	                 .n_own = n_own,
	                 .first = first,
	                 .why = string_table_intern_clean(&explanation->strings, why),
	                 .ns = (double)sample->wall_ns};
}

bool explain_is_selected(const struct explanation *explanation, size_t i)
{
	const struct report *report = explanation->report;

	return (!report->selected || report->selected[i]) &&
	       report->profile->samples[i].wall_ns > 0;
}

// Tells the machine's load from the program's own.
static void tell_machine(struct explanation *explanation)
{
	const struct report *report = explanation->report;

	explanation->machine_is_busy = report->cpu_wait && report->cpu_by_others;
	explanation->active_ns -= explanation->machine_is_busy ? explanation->all_ready_ns : 0;
}

bool explain_is_last(enum rule rule)
{
	return rule == RULE_ONLY_PEER || rule == RULE_ONLY_SLEEP || rule == RULE_RESULT;
}

static void add_up(struct explanation *explanation)
{
	const struct profile *profile = explanation->report->profile;
	_cleanup_free_ uint8_t *rules = memory_alloc_zeroed(profile->n_samples + 1, 1);

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		if (!explain_is_selected(explanation, i))
			continue;
		rules[i] = (uint8_t)rule_of(explanation, sample);
	}
	held_tasks_find(explanation, rules);
	garbage_find(explanation, rules);
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		if (!explain_is_selected(explanation, i))
			continue;
		const enum rule rule = rules[i];
		const double ns = (double)sample->wall_ns;
		explanation->total_ns[sample->thread] += ns;
		explanation->send_ns[rule] += is_sender(rule) ? ns : 0;
		if (rule != RULE_IDLE && rule != RULE_PEER && rule != RULE_SLEEP &&
		    !is_sender(rule))
			explanation->busy_ns[sample->thread] += ns;
		if (rule == RULE_CPU)
			explanation->ready_ns[sample->thread] += ns;
		explanation->all_ns += ns;
	}
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		if (!explain_is_selected(explanation, i))
			continue;
		const enum rule rule = rule_by_thread(explanation, sample, rules[i]);
		if (explanation->collect_ns > 0 && garbage_is_made(explanation, sample) &&
		    is_in_own_code(explanation, &profile->stacks[sample->stack]))
			add_row(explanation, sample, RULE_ALLOCATES);
		if (rule == RULE_IDLE)
			continue;
		if (rule != RULE_COLLECT)
			add_row(explanation, sample, rule);
		*(explain_is_last(rule) ? &explanation->only_ns
		  : rule == RULE_SLEEP  ? &explanation->sleep_ns
		                        : &explanation->active_ns) += (double)sample->wall_ns;
		explanation->all_ready_ns += rule == RULE_CPU ? (double)sample->wall_ns : 0;
	}
	tell_machine(explanation);
}

// Deadlocks come first, then other faults, each by its time.
static bool comes_before(const struct finding *a, const struct finding *b)
{
	if ((a->rule == RULE_CIRCLE) != (b->rule == RULE_CIRCLE))
		return a->rule == RULE_CIRCLE;
	if (explain_rules[a->rule].is_fault != explain_rules[b->rule].is_fault)
		return explain_rules[a->rule].is_fault;
	return a->ns > b->ns;
}

static void add_finding(struct explanation *explanation, const struct finding *finding)
{
	size_t at = explanation->n_findings;

	while (at > 0 && comes_before(finding, &explanation->findings[at - 1]))
		at--;
	if (at == MAX_FINDINGS)
		return;
	if (explanation->n_findings < MAX_FINDINGS)
		explanation->n_findings++;
	memmove(&explanation->findings[at + 1], &explanation->findings[at],
	        (explanation->n_findings - at - 1) * sizeof(*finding));
	explanation->findings[at] = *finding;
}

const struct place *explain_places(const struct explanation *explanation, size_t row)
{
	// Where no stack has a place, there are none at all.
	return explanation->places ? explanation->places + explanation->rows[row].first : NULL;
}

static int compare_rows(const void *a_pointer, const void *b_pointer, void *context)
{
	const struct explanation *explanation = context;
	const struct row *a = a_pointer, *b = b_pointer;

	if (a->rule != b->rule)
		return a->rule < b->rule ? -1 : 1;
	for (uint32_t i = 0; i < a->n && i < b->n; i++) {
		const struct place *x = &explanation->places[a->first + i];
		const struct place *y = &explanation->places[b->first + i];
		if (x->link != y->link)
			return x->link < y->link ? -1 : 1;
		if (x->function != y->function)
			return x->function < y->function ? -1 : 1;
	}
	return (a->n > b->n) - (a->n < b->n);
}

// Returns the end of the rows from `i` on that have the same function at that depth, and what they
// add up to.
static size_t same_function(const struct explanation *explanation, size_t i, size_t end,
                            uint32_t depth, double *ret_ns)
{
	const struct place *place = &explain_places(explanation, i)[depth];

	*ret_ns = 0;
	for (; i < end && explanation->rows[i].n > depth; i++) {
		const struct place *other = &explain_places(explanation, i)[depth];
		if (other->function != place->function || other->link != place->link)
			break;
		*ret_ns += explanation->rows[i].ns;
	}
	return i;
}

static void note_cause(struct finding *finding, const struct cause *cause)
{
	size_t at = finding->n_causes;

	while (at > 0 && finding->causes[at - 1].ns < cause->ns)
		at--;
	if (at == MAX_CAUSES)
		return;
	if (finding->n_causes < MAX_CAUSES)
		finding->n_causes++;
	memmove(&finding->causes[at + 1], &finding->causes[at],
	        (finding->n_causes - at - 1) * sizeof(*cause));
	finding->causes[at] = *cause;
}

// Goes down to the functions, of the threads that are waited for, in which the finding's rows are
// for a good part of their time.
static void find_causes(const struct explanation *explanation, struct finding *finding,
                        size_t first, size_t end, uint32_t depth, double all_ns)
{
	bool has_inner = false;

	for (size_t i = first, next; i < end; i = next) {
		double ns;
		next = i + 1;
		if (explanation->rows[i].n <= depth)
			continue;
		next = same_function(explanation, i, end, depth, &ns);
		if (explain_places(explanation, i)[depth].link == 0 || ns * 5 < finding->ns)
			continue;
		has_inner = true;
		find_causes(explanation, finding, i, next, depth + 1, ns);
	}
	if (!has_inner && depth > finding->depth)
		note_cause(finding, &(struct cause){.row = first, .n = depth, .ns = all_ns});
}

// Returns which part of one thread's time a finding must have. Threads that wait for CPUs compute
// the less, as long as they run at all.
static double least_thread_ns(const struct explanation *explanation, enum rule rule)
{
	const double all_ns = (double)explanation->report->profile->duration_ns;
	const double ran_ns = all_ns - explanation->all_ready_ns;

	if (rule != RULE_HOT)
		return LEAST_THREAD_PERCENT * all_ns / 100;
	return LEAST_HOT_PERCENT * (ran_ns * 20 > all_ns ? ran_ns : all_ns / 20) / 100;
}

double explain_whole_ns(const struct explanation *explanation, enum rule rule)
{
	if (explain_is_garbage(rule))
		return explanation->cpu_ns;
	return explanation->active_ns +
	       (rule == RULE_SLEEP || explain_is_last(rule) ? explanation->sleep_ns : 0) +
	       (explain_is_last(rule) ? explanation->only_ns : 0);
}

// Returns from which time on waits for a lock are worth telling. On a busy machine, who holds it
// waits for a CPU now and then, and so do the others with it: of their time, only as much counts as
// threads that were ready also ran. Holders of other locks than the interpreter's may as well
// sleep.
static double least_lock_ns(const struct explanation *explanation, enum rule rule)
{
	const double part = explain_rules[rule].least_percent / 100.0;
	const double ready_ns = explanation->machine_is_busy ? explanation->all_ready_ns : 0;
	const double needed_ns = explanation->cpu_ns + ready_ns;
	double ran = needed_ns > 0 ? explanation->cpu_ns / needed_ns : 1;

	if (rule == RULE_LOCK && ran < LEAST_RAN_OF_LOCK)
		ran = LEAST_RAN_OF_LOCK;
	return part * explanation->active_ns / (ran + part * (1 - ran));
}

// Returns from which time on it is worth telling.
static double least_ns(const struct explanation *explanation, enum rule rule)
{
	const double ready_ns =
	    rule == RULE_HOT && !explanation->machine_is_busy ? explanation->all_ready_ns : 0;
	const double whole_ns = explain_whole_ns(explanation, rule) - ready_ns;
	const double share_ns = rule == RULE_GIL || rule == RULE_LOCK
	                            ? least_lock_ns(explanation, rule)
	                            : explain_rules[rule].least_percent * whole_ns / 100;
	const double thread_ns = least_thread_ns(explanation, rule);

	// While a lock changes hands, threads seem to wait for each other for a moment.
	const double ns = share_ns > thread_ns ? share_ns : thread_ns;
	if (explain_rules[rule].is_fault || rule == RULE_HOT || rule == RULE_COLLECT_YOUNG)
		return ns;
	const double most_ns = MOST_OF_ALL_PERCENT * whole_ns / 100;
	const double little_ns =
	    LEAST_MOST_PERCENT * (double)explanation->report->profile->duration_ns / 100;
	const double other_ns = most_ns > little_ns ? most_ns : little_ns;
	return other_ns < ns ? other_ns : ns;
}

// True if the row's place at that depth has a line.
static bool has_line_at(const struct explanation *explanation, const struct row *row,
                        uint32_t depth)
{
	const struct place *place = &explanation->places[row->first + depth - 1];

	return place->line != 0 || explain_function(explanation, place->function)->start_line != 0;
}

// Tells of the rows' function; `own_ns`: of what is in no function that it calls.
static void emit(struct explanation *explanation, size_t first, size_t end, uint32_t depth,
                 double ns, double own_ns)
{
	const enum rule rule = explanation->rows[first].rule;
	struct finding finding = {.rule = rule, .row = first, .depth = depth, .ns = ns};

	double most_ns = -1;
	bool knows_line = false; // compiled code may not

	for (size_t i = first; i < end; i++) {
		const struct row *row = &explanation->rows[i];
		const bool has_line =
		    depth > 0 && row->n >= depth && has_line_at(explanation, row, depth);
		if (row->n_own != depth && ns <= own_ns)
			continue;
		if (has_line != knows_line ? knows_line : row->ns <= most_ns)
			continue;
		knows_line = has_line;
		most_ns = row->ns;
		finding.row = i;
	}
	if (depth == 0 && (rule == RULE_PEER || rule == RULE_SLEEP || explain_is_last(rule)))
		return;
	// A program computes in some function or other: it is one that computes much itself.
	if (rule == RULE_HOT && own_ns < least_ns(explanation, rule))
		return;
	if (rule != RULE_CIRCLE)
		find_causes(explanation, &finding, first, end, depth, ns);
	add_finding(explanation, &finding);
}

// Goes down to the innermost functions that have enough of the rule's time, and to those that have
// enough of it by themselves.
static void descend(struct explanation *explanation, size_t first, size_t end, uint32_t depth,
                    double all_ns)
{
	const double enough_ns = least_ns(explanation, explanation->rows[first].rule);
	bool has_inner = false;
	double own_ns = 0;

	for (size_t i = first, next; i < end; i = next) {
		double ns;
		next = i + 1;
		own_ns += explanation->rows[i].n_own == depth ? explanation->rows[i].ns : 0;
		if (explanation->rows[i].n_own <= depth)
			continue;
		next = same_function(explanation, i, end, depth, &ns);
		if (ns < enough_ns || ns <= 0)
			continue;
		has_inner = true;
		descend(explanation, i, next, depth + 1, ns);
	}
	const double told_ns = has_inner ? own_ns : all_ns;
	if (told_ns >= enough_ns && (depth > 0 || !has_inner))
		emit(explanation, first, end, depth, told_ns, own_ns);
}

// True if there is something else to tell. Waits for others are told before sleeping.
static bool is_told(const struct explanation *explanation, enum rule rule)
{
	return explanation->n_findings > 0 &&
	       (rule == RULE_ONLY_SLEEP || !explain_is_last(explanation->findings[0].rule));
}

// Tells of collecting garbage, and in which function most of it is made, if many samples show one:
// the innermost one that makes a third.
static void find_garbage(struct explanation *explanation, size_t first, size_t end)
{
	struct finding finding = {
	    .rule = garbage_rule(explanation), .row = first, .ns = explanation->collect_ns};
	double all_ns = 0;

	if (explanation->collect_ns <= 0 ||
	    explanation->collect_ns < least_ns(explanation, RULE_COLLECT))
		return;
	for (size_t i = first; i < end; i++)
		all_ns += explanation->rows[i].ns;
	while (first < end &&
	       all_ns >= LEAST_GARBAGE_TICKS * (double)explanation->report->profile->period_ns) {
		size_t most = end, next;
		double ns, most_ns = 0;
		for (size_t i = first; i < end; i = next) {
			next = i + 1;
			if (explanation->rows[i].n_own <= finding.depth)
				continue;
			next = same_function(explanation, i, end, finding.depth, &ns);
			most = ns > most_ns ? i : most;
			most_ns = ns > most_ns ? ns : most_ns;
		}
		if (most_ns * 3 < all_ns || most == end)
			break;
		first = most;
		end = same_function(explanation, most, end, finding.depth, &ns);
		finding.row = first;
		finding.depth++;
	}
	add_finding(explanation, &finding);
}

static void find(struct explanation *explanation)
{
	size_t n = explanation->n_rows;

	if (n > 0)
		qsort_r(explanation->rows, n, sizeof(*explanation->rows), compare_rows,
		        explanation);
	while (n > 0 && explanation->rows[n - 1].rule == RULE_ALLOCATES)
		n--;
	find_garbage(explanation, n, explanation->n_rows);
	for (size_t i = 0, end; i < n; i = end) {
		const enum rule rule = explanation->rows[i].rule;
		double ns = 0;
		for (end = i; end < n && explanation->rows[end].rule == rule; end++)
			ns += explanation->rows[end].ns;
		if (ns < least_ns(explanation, rule) ||
		    (explain_is_last(rule) && is_told(explanation, rule)) ||
		    (rule == RULE_CPU &&
		     (!explanation->report->cpu_wait || explanation->machine_is_busy)))
			continue;
		if (rule == RULE_CPU) // all functions take part in it alike
			add_finding(explanation,
			            &(struct finding){.rule = rule, .row = i, .ns = ns});
		else
			descend(explanation, i, end, 0, ns);
	}
}

void explain_make(const struct report *report, struct explanation *ret)
{
	const size_t n = report->profile->n_threads + 1;

	*ret = (struct explanation){
	    .report = report,
	    .served = served_ports_find(report->profile),
	    .own = memory_alloc_zeroed(report->symbols->n_lines + 1, 1),
	    .busy_ns = memory_alloc_zeroed(n, sizeof(double)),
	    .ready_ns = memory_alloc_zeroed(n, sizeof(double)),
	    .total_ns = memory_alloc_zeroed(n, sizeof(double)),
	};
	sample_kinds_init(&ret->kinds, report->profile, report->symbols);
	stack_marks_init(&ret->marks, report->profile, report->symbols);
	add_up(ret);
	find(ret);
}

void explain_free(struct explanation *explanation)
{
	sample_kinds_deinit(&explanation->kinds);
	stack_marks_deinit(&explanation->marks);
	string_table_deinit(&explanation->strings);
	free(explanation->own);
	free(explanation->places);
	free(explanation->rows);
	free(explanation->served);
	free(explanation->busy_ns);
	free(explanation->ready_ns);
	free(explanation->total_ns);
}
