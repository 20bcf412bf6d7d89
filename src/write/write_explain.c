// SPDX-License-Identifier: MIT
#include "write_explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "blame.h"
#include "frame_name.h"
#include "json.h"
#include "memory.h"
#include "module.h"
#include "own_code.h"
#include "profile.h"
#include "sample_kind.h"
#include "short_name.h"
#include "string_table.h"
#include "symbolize.h"
#include "syscall_name.h"
#include "text.h"
#include "wait_kind.h"
#include "writer.h"

enum {
	JSON_VERSION = 1,
	MAX_FINDINGS = 5,
	MAX_CAUSES = 2,
	// A thread that does something else for less than this part of its time waits for work, or
	// sleeps until the next time, wherever it waits.
	MIN_BUSY_PARTS = 50,
	IDLE_PARTS = 100, // less than this part of the time active: the program is idle
};

// What a sample's time goes to.
enum rule {
	RULE_IDLE, // waits for work: not told
	RULE_CIRCLE,
	RULE_CPU,
	RULE_GIL,
	RULE_LOCK,
	RULE_SWAP,
	RULE_FILE,
	RULE_LOOKUP,
	RULE_CHILD,
	RULE_PEER,
	RULE_SLEEP,
	RULE_HOT,
	N_RULES,
};

static const struct {
	const char *name; // in JSON
	const char *does; // what the function does, as in "handle waits for a lock"
	int least_percent;
	bool is_sure;
	const char *command; // options of the command that shows it
} RULES[N_RULES] = {
    [RULE_CIRCLE] = {"deadlock", "waits in a circle: a deadlock", 0, true, NULL},
    [RULE_CPU] = {"cpu", "is ready, but waits for a CPU", 20, true, "--state=runnable"},
    [RULE_GIL] = {"gil", "waits for Python's lock (the GIL)", 10, true, "--blame"},
    [RULE_LOCK] = {"lock", "waits for a lock", 10, true, "--blame"},
    [RULE_SWAP] = {"swap", "waits for its own memory to be read from disk", 5, true, "--off-cpu"},
    [RULE_FILE] = {"file", "waits for a disk", 10, true, "--off-cpu --syscalls"},
    [RULE_LOOKUP] = {"name-lookup", "waits for a name look-up (DNS)", 5, true, "--off-cpu"},
    [RULE_CHILD] = {"child", "waits for a child process", 30, true, "-c --blame"},
    [RULE_PEER] = {"peer", "waits for the other end of a connection or pipe", 20, false,
                   "--off-cpu --syscalls"},
    [RULE_SLEEP] = {"sleep", "sleeps on purpose, between other work", 20, false, "--off-cpu"},
    [RULE_HOT] = {"hot", "computes", 25, true, "--on-cpu"},
};

// An own function in a stack, root first.
struct place {
	uint32_t function; // of the symbols
	uint32_t line;     // 0: not known
	uint32_t link;     // 0: of the thread itself; n: of the n-th that it waits for
};

// What a sample adds.
struct row {
	enum rule rule;
	uint32_t n, n_own; // places; of the thread itself
	size_t first;      // in places
	uint32_t why;      // string
	double ns;
};

struct cause {
	size_t row; // one of its samples
	uint32_t n; // how many of that row's places it has
	double ns;
};

// The samples of a rule that go through the same function.
struct finding {
	enum rule rule;
	size_t row;     // one of them
	uint32_t depth; // of the function among the row's places, from 1 on; 0: none has a name
	double ns;
	struct cause causes[MAX_CAUSES]; // the largest first
	size_t n_causes;
};

struct explanation {
	const struct report *report;
	struct sample_kinds kinds;
	struct string_table strings;
	struct place *places;
	size_t n_places, places_capacity;
	struct row *rows;
	size_t n_rows, rows_capacity;
	double *busy_ns, *total_ns;         // by thread
	double active_ns, all_ns, ready_ns; // ready_ns: of the active time, waiting for a CPU
	struct finding findings[MAX_FINDINGS];
	size_t n_findings;
};

static const struct function *function_of(const struct explanation *explanation, uint32_t id)
{
	return &explanation->report->symbols->functions[id];
}

static void push_place(struct explanation *explanation, const struct line *line, uint32_t link)
{
	*array_push(explanation->places, explanation->n_places, explanation->places_capacity) =
	    (struct place){line->function, line->line, link};
}

// Adds the program's own functions of the frames from the n-th down to before the i-th, root first;
// if there are none, the innermost with a name. Returns how many.
static uint32_t push_places(struct explanation *explanation, const struct stack *stack, uint32_t i,
                            uint32_t n, uint32_t link)
{
	const struct report *report = explanation->report;
	const size_t first = explanation->n_places;
	const struct line *named = NULL;

	for (; n-- > i;) {
		const uint32_t id = report->profile->location_ids[stack->first + n];
		const struct location_lines *lines = &report->symbols->locations[id];
		const struct module *module =
		    report->modules->items[report->profile->locations[id].module];
		for (uint32_t j = lines->count; j-- > 0;) {
			const struct line *line = &report->symbols->lines[lines->first + j];
			named = line;
			if (own_code_function(module, function_of(explanation, line->function)))
				push_place(explanation, line, link);
		}
	}
	if (explanation->n_places == first && named)
		push_place(explanation, named, link);
	return (uint32_t)(explanation->n_places - first);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

// Returns "handle (bank.cc:13)", a new string; `line`: with the line.
static char *place_text(const struct explanation *explanation, const struct place *place, bool line)
{
	const struct function *function = function_of(explanation, place->function);
	_cleanup_free_ char *name = short_name(function->name);
	const uint32_t at = place->line ? place->line : function->start_line;

	if (!function->file[0] || !line)
		return take_pointer(name);
	return at ? memory_printf("%s (%s:%" PRIu32 ")", name, base_name(function->file), at)
	          : memory_printf("%s (%s)", name, base_name(function->file));
}

static bool has_name(const struct explanation *explanation, const struct stack *stack,
                     const char *const *names)
{
	const struct report *report = explanation->report;

	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const uint32_t id = report->profile->location_ids[stack->first + i];
		const struct location_lines *lines = &report->symbols->locations[id];
		for (uint32_t j = 0; j < lines->count; j++) {
			const uint32_t function = report->symbols->lines[lines->first + j].function;
			for (size_t k = 0; names[k]; k++)
				if (strstr(function_of(explanation, function)->name, names[k]))
					return true;
		}
	}
	return false;
}

static bool is_lookup(const struct explanation *explanation, const struct stack *stack)
{
	static const char *const names[] = {"getaddrinfo", "gethostbyname", "getnameinfo", NULL};

	return has_name(explanation, stack, names);
}

static bool is_circle(const struct explanation *explanation, const struct stack *stack)
{
	const struct report *report = explanation->report;

	return stack->n_blamed > 0 &&
	       blame_is_circle(
	           report->modules,
	           &report->profile->locations[report->profile->location_ids[stack->first]]);
}

static bool is_call(const struct wait *wait, const char *name)
{
	_cleanup_free_ char *call =
	    wait->syscall == NO_SYSCALL ? NULL : syscall_name(wait->syscall);

	return call && strcmp(call, name) == 0;
}

static enum rule rule_of(const struct explanation *explanation, const struct sample *sample)
{
	const struct profile *profile = explanation->report->profile;
	const struct stack *stack = &profile->stacks[sample->stack];
	const bool has_wait = sample->wait != WAIT_NONE;
	const struct wait *wait = has_wait ? &profile->waits[sample->wait] : NULL;

	switch (sample_kind(&explanation->kinds, sample)) {
	case WAIT_KIND_RUNNING:
		return RULE_HOT;
	case WAIT_KIND_RUNNABLE:
		return RULE_CPU;
	case WAIT_KIND_LOCK:
		return is_circle(explanation, stack)                                  ? RULE_CIRCLE
		       : wait && strncmp(wait->descriptor, "GIL", strlen("GIL")) == 0 ? RULE_GIL
		                                                                      : RULE_LOCK;
	case WAIT_KIND_FILE:
		return sample->state == THREAD_DISK && (!wait || wait->syscall == NO_SYSCALL)
		           ? RULE_SWAP
		           : RULE_FILE;
	case WAIT_KIND_SOCKET:
		return is_lookup(explanation, stack)                                   ? RULE_LOOKUP
		       : wait && (is_call(wait, "accept") || is_call(wait, "accept4")) ? RULE_IDLE
		                                                                       : RULE_PEER;
	case WAIT_KIND_EVENT:
		return is_lookup(explanation, stack) ? RULE_LOOKUP : RULE_IDLE;
	case WAIT_KIND_PIPE:
		return wait && (is_call(wait, "wait4") || is_call(wait, "waitid")) ? RULE_CHILD
		                                                                   : RULE_PEER;
	case WAIT_KIND_TIMER:
		return RULE_SLEEP;
	default:
		return RULE_IDLE;
	}
}

// True if the thread does little else than wait where it waits.
static bool waits_for_work(const struct explanation *explanation, const struct sample *sample,
                           enum rule rule)
{
	return (rule == RULE_PEER || rule == RULE_SLEEP) &&
	       explanation->busy_ns[sample->thread] * MIN_BUSY_PARTS <
	           explanation->total_ns[sample->thread];
}

// Returns what is waited for, as a part of a sentence; a new string, "" if nothing is known.
static char *why_text(const struct explanation *explanation, const struct sample *sample,
                      enum rule rule)
{
	static const char held_by[] = ", held by ", end_of[] = "the end of ";
	const struct profile *profile = explanation->report->profile;

	if (sample->wait == WAIT_NONE || rule == RULE_HOT || rule == RULE_CPU ||
	    rule == RULE_CIRCLE)
		return memory_strdup("");
	const char *descriptor = frame_name_descriptor(&profile->waits[sample->wait]);
	const char *holder = strstr(descriptor, held_by);
	if (holder)
		return memory_strdup(holder + strlen(", "));
	if (strncmp(descriptor, end_of, strlen(end_of)) == 0)
		return memory_strdup(descriptor + strlen(end_of));
	if (rule == RULE_LOCK || rule == RULE_GIL || rule == RULE_CHILD)
		return memory_strdup(descriptor);
	_cleanup_free_ char *call = frame_name_waits_in(&profile->waits[sample->wait]);
	return memory_printf("in %s%s%s", call ? call : "a call", *descriptor ? " of " : "",
	                     descriptor);
}

// Adds the places of the threads that are waited for.
static void push_links(struct explanation *explanation, const struct stack *stack)
{
	const struct report *report = explanation->report;
	const uint32_t *ids = report->profile->location_ids + stack->first;
	uint32_t link = 0;

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

static bool is_selected(const struct explanation *explanation, size_t i)
{
	const struct report *report = explanation->report;

	return (!report->selected || report->selected[i]) &&
	       report->profile->samples[i].wall_ns > 0;
}

static void add_up(struct explanation *explanation)
{
	const struct profile *profile = explanation->report->profile;
	_cleanup_free_ uint8_t *rules = memory_alloc_zeroed(profile->n_samples + 1, 1);

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		if (!is_selected(explanation, i))
			continue;
		const enum rule rule = rules[i] = (uint8_t)rule_of(explanation, sample);
		const double ns = (double)sample->wall_ns;
		explanation->total_ns[sample->thread] += ns;
		if (rule != RULE_IDLE && rule != RULE_PEER && rule != RULE_SLEEP)
			explanation->busy_ns[sample->thread] += ns;
		explanation->all_ns += ns;
	}
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		const enum rule rule = rules[i];
		if (!is_selected(explanation, i) || rule == RULE_IDLE ||
		    waits_for_work(explanation, sample, rule))
			continue;
		add_row(explanation, sample, rule);
		explanation->active_ns += (double)sample->wall_ns;
		explanation->ready_ns += rule == RULE_CPU ? (double)sample->wall_ns : 0;
	}
}

static void add_finding(struct explanation *explanation, const struct finding *finding)
{
	size_t at = explanation->n_findings;

	while (at > 0 && finding->rule != RULE_CIRCLE &&
	       explanation->findings[at - 1].rule != RULE_CIRCLE &&
	       explanation->findings[at - 1].ns < finding->ns)
		at--;
	if (finding->rule == RULE_CIRCLE)
		at = 0;
	if (at == MAX_FINDINGS)
		return;
	if (explanation->n_findings < MAX_FINDINGS)
		explanation->n_findings++;
	memmove(&explanation->findings[at + 1], &explanation->findings[at],
	        (explanation->n_findings - at - 1) * sizeof(*finding));
	explanation->findings[at] = *finding;
}

static const struct place *places_of(const struct explanation *explanation, size_t row)
{
	return explanation->places + explanation->rows[row].first;
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
	const struct place *place = &places_of(explanation, i)[depth];

	*ret_ns = 0;
	for (; i < end && explanation->rows[i].n > depth; i++) {
		const struct place *other = &places_of(explanation, i)[depth];
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
		if (places_of(explanation, i)[depth].link == 0 || ns * 5 < finding->ns)
			continue;
		has_inner = true;
		find_causes(explanation, finding, i, next, depth + 1, ns);
	}
	if (!has_inner && depth > finding->depth)
		note_cause(finding, &(struct cause){.row = first, .n = depth, .ns = all_ns});
}

// Returns from which time on it is worth telling.
static double least_ns(const struct explanation *explanation, enum rule rule)
{
	const double ready_ns = rule == RULE_HOT ? explanation->ready_ns : 0;

	return RULES[rule].least_percent * (explanation->active_ns - ready_ns) / 100;
}

static void emit(struct explanation *explanation, size_t first, size_t end, uint32_t depth,
                 double ns)
{
	const enum rule rule = explanation->rows[first].rule;
	struct finding finding = {.rule = rule, .row = first, .depth = depth, .ns = ns};
	double own_ns = 0;

	for (size_t i = first; i < end; i++) {
		own_ns += explanation->rows[i].n_own == depth ? explanation->rows[i].ns : 0;
		if (explanation->rows[i].ns > explanation->rows[finding.row].ns)
			finding.row = i;
	}
	// A program computes in some function or other: it is one that computes much itself.
	if (rule == RULE_HOT && own_ns < least_ns(explanation, rule))
		return;
	if (rule != RULE_CIRCLE)
		find_causes(explanation, &finding, first, end, depth, ns);
	add_finding(explanation, &finding);
}

// Goes down to the innermost functions that have enough of the rule's time.
static void descend(struct explanation *explanation, size_t first, size_t end, uint32_t depth,
                    double all_ns)
{
	const double enough_ns = least_ns(explanation, explanation->rows[first].rule);
	bool has_inner = false;

	for (size_t i = first, next; i < end; i = next) {
		double ns;
		next = i + 1;
		if (explanation->rows[i].n_own <= depth)
			continue;
		next = same_function(explanation, i, end, depth, &ns);
		if (ns < enough_ns || ns <= 0)
			continue;
		has_inner = true;
		descend(explanation, i, next, depth + 1, ns);
	}
	if (!has_inner && all_ns >= enough_ns)
		emit(explanation, first, end, depth, all_ns);
}

static void find(struct explanation *explanation)
{
	const size_t n = explanation->n_rows;

	if (n > 0)
		qsort_r(explanation->rows, n, sizeof(*explanation->rows), compare_rows,
		        explanation);
	for (size_t i = 0, end; i < n; i = end) {
		const enum rule rule = explanation->rows[i].rule;
		double ns = 0;
		for (end = i; end < n && explanation->rows[end].rule == rule; end++)
			ns += explanation->rows[end].ns;
		if (ns < least_ns(explanation, rule))
			continue;
		if (rule == RULE_CPU) // all functions take part in it alike
			add_finding(explanation,
			            &(struct finding){.rule = rule, .row = i, .ns = ns});
		else
			descend(explanation, i, end, 0, ns);
	}
}

static int percent(double part, double whole)
{
	return whole > 0 ? (int)(100 * part / whole + 0.5) : 0;
}

// Returns where those are that are waited for: "collect (gc.c:13), which waits for flush
// (log.c:7)"; a new string.
static char *cause_text(const struct explanation *explanation, const struct cause *cause)
{
	const struct place *places = places_of(explanation, cause->row);
	char *text = memory_strdup("");

	for (uint32_t i = 0; i < cause->n; i++) {
		const bool is_last = i + 1 == cause->n || places[i + 1].link != places[i].link;
		if (places[i].link == 0 || !is_last)
			continue;
		_cleanup_free_ char *place = place_text(explanation, &places[i], true);
		char *before = text;
		text = memory_printf("%s%s%s", before, *before ? ", which waits for " : "", place);
		free(before);
	}
	return text;
}

// Returns the finding as a sentence, a new string.
static char *sentence(const struct explanation *explanation, const struct finding *finding)
{
	const struct report *report = explanation->report;
	const struct place *places = places_of(explanation, finding->row);
	const char *does = RULES[finding->rule].does;
	const char *why = explanation->strings.items[explanation->rows[finding->row].why];

	if (finding->rule == RULE_CPU)
		return memory_printf("the program %s", report->cpu_wait ?: does);
	if (finding->depth == 0)
		return memory_printf("no single function %s%s%s", does, why[0] ? ", mostly " : "",
		                     why);
	_cleanup_free_ char *where = place_text(explanation, &places[finding->depth - 1], true);
	if (finding->depth == 1)
		return memory_printf("%s %s%s%s", where, does, why[0] ? " " : "", why);
	_cleanup_free_ char *caller = place_text(explanation, &places[finding->depth - 2], false);
	return memory_printf("%s, called by %s, %s%s%s", where, caller, does, why[0] ? " " : "",
	                     why);
}

// Returns the command that shows the finding, a new string.
static char *command(const struct explanation *explanation, const struct finding *finding)
{
	const struct report *report = explanation->report;
	const char *options = RULES[finding->rule].command;
	char *focus = NULL;

	if (!options)
		return memory_printf("profiler dump %d", report->pid);
	const char *file =
	    report->input && strcmp(report->input, "-") == 0 ? "FILE.wprof" : report->input;
	_cleanup_free_ char *input = file ? text_quote_file(file) : NULL;
	_cleanup_free_ char *begin = input ? memory_printf("profiler report %s", input)
	                                   : memory_printf("profiler -p %d -d 10", report->pid);
	if (finding->depth == 0)
		return memory_printf("%s %s -o look.html", begin, options);
	focus = place_text(explanation, &places_of(explanation, finding->row)[finding->depth - 1],
	                   false);
	for (char *c = focus; *c; c++) // an extended regex, in a shell's word
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:/-",
		            *c))
			*c = '.';
	char *text = memory_printf("%s %s --focus=%s -o look.html", begin, options, focus);
	free(focus);
	return text;
}

static void make(const struct report *report, struct explanation *ret)
{
	const size_t n = report->profile->n_threads + 1;

	*ret = (struct explanation){
	    .report = report,
	    .busy_ns = memory_alloc_zeroed(n, sizeof(double)),
	    .total_ns = memory_alloc_zeroed(n, sizeof(double)),
	};
	sample_kinds_init(&ret->kinds, report->profile, report->symbols);
	add_up(ret);
	find(ret);
}

static void free_explanation(struct explanation *explanation)
{
	sample_kinds_deinit(&explanation->kinds);
	string_table_deinit(&explanation->strings);
	free(explanation->places);
	free(explanation->rows);
	free(explanation->busy_ns);
	free(explanation->total_ns);
}

static double seconds(double ns)
{
	return ns / 1e9;
}

// Returns what to say if there is no finding.
static const char *nothing(const struct explanation *explanation)
{
	if (explanation->active_ns * IDLE_PARTS < explanation->all_ns)
		return "It is idle: its threads wait for work nearly all of the time.";
	return "Nothing stands out: no single function, lock or wait takes much of it.";
}

static void put_findings(const struct explanation *explanation, bool is_markdown, FILE *stream)
{
	const struct report *report = explanation->report;
	const struct profile *profile = report->profile;
	const char *mark = is_markdown ? "`" : "";

	if (is_markdown)
		fputs("## What the profile shows\n\n", stream);
	const char *raw = profile->n_processes > 0 ? profile->processes[0].name : "process";
	_cleanup_free_ char *name = text_clean(raw, strlen(raw), TEXT_UNLIMITED);
	fprintf(
	    stream,
	    "%s (%d): %.1f s, %zu thread%s. Together they were busy or kept from work for %.1f s: "
	    "that is 100 %% below. For %.1f s they were idle.\n%s",
	    name, report->pid, seconds((double)profile->duration_ns), profile->n_threads,
	    text_plural(profile->n_threads), seconds(explanation->active_ns),
	    seconds(explanation->all_ns - explanation->active_ns),
	    explanation->n_findings || is_markdown ? "\n" : "");
	for (size_t i = 0; i < explanation->n_findings; i++) {
		const struct finding *finding = &explanation->findings[i];
		_cleanup_free_ char *text = sentence(explanation, finding);
		_cleanup_free_ char *look = command(explanation, finding);
		fprintf(stream, "%zu. %s%d %%%s %s%s.\n", i + 1, is_markdown ? "**" : "",
		        percent(finding->ns, explanation->active_ns), is_markdown ? "**" : "",
		        RULES[finding->rule].is_sure ? "" : "Perhaps: ", text);
		for (size_t j = 0; j < finding->n_causes; j++) {
			_cleanup_free_ char *cause = cause_text(explanation, &finding->causes[j]);
			fprintf(stream, "   %sFor %d %% of that it is in %s.\n",
			        is_markdown ? "- " : "",
			        percent(finding->causes[j].ns, finding->ns), cause);
		}
		fprintf(stream, "   %s%s%s%s\n", is_markdown ? "- See " : "See: ", mark, look,
		        mark);
	}
	if (explanation->n_findings == 0)
		fprintf(stream, "%s\n", nothing(explanation));
}

static struct error *write_text(const struct report *report, FILE *stream)
{
	struct explanation explanation;

	make(report, &explanation);
	put_findings(&explanation, false, stream);
	free_explanation(&explanation);
	return NULL;
}

static struct error *write_markdown(const struct report *report, FILE *stream)
{
	struct explanation explanation;

	make(report, &explanation);
	put_findings(&explanation, true, stream);
	free_explanation(&explanation);
	return NULL;
}

static void put_share(struct json *json, double share)
{
	json_key(json, "share");
	json_time(json, (int64_t)(share * 10000 + 0.5) * 100000, 1000000000);
}

static void put_json_finding(const struct explanation *explanation, const struct finding *finding,
                             struct json *json)
{
	_cleanup_free_ char *text = sentence(explanation, finding);
	_cleanup_free_ char *look = command(explanation, finding);

	json_open(json, '{');
	json_key_string(json, "rule", RULES[finding->rule].name);
	put_share(json, finding->ns / (explanation->active_ns ?: 1));
	json_key_bool(json, "sure", RULES[finding->rule].is_sure);
	if (finding->depth > 0) {
		const struct place *place =
		    &places_of(explanation, finding->row)[finding->depth - 1];
		const struct function *function = function_of(explanation, place->function);
		json_key_string(json, "function", function->name);
		json_key_string(json, "file", function->file);
		json_key_int(json, "line", place->line ?: function->start_line);
	}
	json_key_string(json, "text", text);
	json_key_open(json, "causes", '[');
	for (size_t i = 0; i < finding->n_causes; i++) {
		_cleanup_free_ char *cause = cause_text(explanation, &finding->causes[i]);
		json_open(json, '{');
		put_share(json, finding->causes[i].ns / finding->ns);
		json_key_string(json, "text", cause);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_key_string(json, "command", look);
	json_close(json, '}');
}

static struct error *write_json(const struct report *report, FILE *stream)
{
	struct json json = {.stream = stream};
	struct explanation explanation;

	make(report, &explanation);
	json_open(&json, '{');
	json_key_int(&json, "version", JSON_VERSION);
	json_key_int(&json, "pid", report->pid);
	json_key_int(&json, "threads", (int64_t)report->profile->n_threads);
	json_key(&json, "active_s");
	json_time(&json, (int64_t)explanation.active_ns, 1000000000);
	json_key(&json, "all_s");
	json_time(&json, (int64_t)explanation.all_ns, 1000000000);
	json_key_open(&json, "findings", '[');
	for (size_t i = 0; i < explanation.n_findings; i++)
		put_json_finding(&explanation, &explanation.findings[i], &json);
	json_close(&json, ']');
	json_close(&json, '}');
	fputc('\n', stream);
	free_explanation(&explanation);
	return NULL;
}

const struct writer writer_explain = {.name = "explanation", .write = write_text};
const struct writer writer_explain_markdown = {.name = "explanation", .write = write_markdown};
const struct writer writer_explain_json = {.name = "explanation", .write = write_json};
