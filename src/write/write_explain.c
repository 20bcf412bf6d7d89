// SPDX-License-Identifier: MIT
#include "write_explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "json.h"
#include "memory.h"
#include "profile.h"
#include "short_name.h"
#include "symbolize.h"
#include "text.h"
#include "writer.h"

enum {
	JSON_VERSION = 2,
	IDLE_PARTS = 100, // less than this part of the time active: the program is idle
};

// Returns "handle (bank.cc:13)", a new string; `line`: with the line.
static char *place_text(const struct explanation *explanation, const struct place *place, bool line)
{
	const struct function *function = explain_function(explanation, place->function);
	_cleanup_free_ char *name = short_name(function->name);
	const uint32_t at = place->line ? place->line : function->start_line;

	if (!function->file[0] || !line)
		return take_pointer(name);
	return at ? memory_printf("%s (%s:%" PRIu32 ")", name, text_base_name(function->file), at)
	          : memory_printf("%s (%s)", name, text_base_name(function->file));
}

static double seconds(double ns)
{
	return ns / 1e9;
}

static int percent(double part, double whole)
{
	return whole > 0 ? (int)(100 * part / whole + 0.5) : 0;
}

// Returns where those are that are waited for: "collect (gc.c:13), which waits for flush
// (log.c:7)"; a new string.
static char *cause_text(const struct explanation *explanation, const struct cause *cause)
{
	const struct place *places = explain_places(explanation, cause->row);
	char *text = memory_strdup("");

	for (uint32_t i = 0; i < cause->n; i++) {
		const bool is_last = i + 1 == cause->n || places[i + 1].link != places[i].link;
		if (places[i].link == 0 || !is_last)
			continue;
		_cleanup_free_ char *place = place_text(explanation, &places[i], true);
		_cleanup_free_ char *caller =
		    i > 0 && i + 1 == cause->n && places[i - 1].link == places[i].link
		        ? place_text(explanation, &places[i - 1], false)
		        : NULL;
		char *before = text;
		text = memory_printf("%s%s%s%s%s", before, *before ? ", which waits for " : "",
		                     place, caller ? ", called by " : "", caller ?: "");
		free(before);
	}
	return text;
}

// Returns that garbage is collected, after `begin`, and for whom; a new string.
static char *garbage_text(const struct explanation *explanation, const struct finding *finding,
                          const char *begin)
{
	const struct place *places = explain_places(explanation, finding->row);

	if (finding->depth == 0)
		return memory_printf("%sgarbage collection", begin);
	_cleanup_free_ char *where = place_text(explanation, &places[finding->depth - 1], true);
	_cleanup_free_ char *caller =
	    finding->depth > 1 ? place_text(explanation, &places[finding->depth - 2], false) : NULL;
	return memory_printf("%sgarbage collection; %s%s%s%s %s", begin, where,
	                     caller ? ", called by " : "", caller ?: "", caller ? "," : "",
	                     explanation->strings.items[explanation->rows[finding->row].why]);
}

// Returns what the finding is, without its share, a new string.
static char *sentence(const struct explanation *explanation, const struct finding *finding)
{
	const struct report *report = explanation->report;
	const struct place *places = explain_places(explanation, finding->row);
	const char *does = explain_rules[finding->rule].does;

	if (explain_is_garbage(finding->rule))
		return garbage_text(explanation, finding, "");
	const char *why = explanation->strings.items[explanation->rows[finding->row].why];
	if (finding->rule == RULE_CPU)
		return memory_printf("the program %s", report->cpu_wait ?: does);
	if (finding->depth == 0)
		return memory_printf("%s, in no single function%s%s", does,
		                     why[0] ? ", mostly " : "", why);
	_cleanup_free_ char *where = place_text(explanation, &places[finding->depth - 1], true);
	if (finding->depth == 1)
		return memory_printf("%s %s%s%s", where, does, why[0] ? " " : "", why);
	_cleanup_free_ char *caller = place_text(explanation, &places[finding->depth - 2], false);
	const char *called_by = strncmp(caller, "created by ", 11) == 0 ? "" : "called by ";
	return memory_printf("%s, %s%s, %s%s%s", where, called_by, caller, does, why[0] ? " " : "",
	                     why);
}

// Returns the finding with how much time it takes, a new string. What is not active time has no
// share.
static char *told(const struct explanation *explanation, const struct finding *finding,
                  const char *mark)
{
	_cleanup_free_ char *text = sentence(explanation, finding);

	if (explain_is_garbage(finding->rule)) {
		_cleanup_free_ char *begin =
		    memory_printf("%s%d %%%s of the CPU time is ", mark,
		                  percent(finding->ns, explanation->cpu_ns), mark);
		return garbage_text(explanation, finding, begin);
	}
	if (finding->rule == RULE_SLEEP || explain_is_last(finding->rule))
		return memory_printf("%s, for %s%.1f s%s", text, mark, seconds(finding->ns), mark);
	return memory_printf("%s%d %%%s %s", mark, percent(finding->ns, explanation->active_ns),
	                     mark, text);
}

// Returns the command that shows the finding, a new string.
static char *command(const struct explanation *explanation, const struct finding *finding)
{
	const struct report *report = explanation->report;
	const char *options = explain_rules[finding->rule].command;
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
	focus = place_text(explanation,
	                   &explain_places(explanation, finding->row)[finding->depth - 1], false);
	for (char *c = focus; *c; c++) // an extended regex, in a shell's word
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:/-",
		            *c))
			*c = '.';
	char *text = memory_printf("%s %s --focus=%s -o look.html", begin, options, focus);
	free(focus);
	return text;
}

// Returns what is to be said of waits for CPUs that are no fault of the program's; NULL: nothing.
static const char *machine_text(const struct explanation *explanation)
{
	return explanation->machine_is_busy ? explanation->report->cpu_wait : NULL;
}

static bool is_idle(const struct explanation *explanation)
{
	return (explanation->active_ns + explanation->sleep_ns) * IDLE_PARTS < explanation->all_ns;
}

// Returns what to say if there is no finding.
static const char *nothing(const struct explanation *explanation)
{
	if (is_idle(explanation))
		return "It is idle: its threads wait for work nearly all of the time.";
	return "Nothing stands out: no single function, lock or wait takes much of it.";
}

// Returns what to say before a description; NULL: nothing, as one is before it already.
static const char *heading(const struct explanation *explanation, size_t i)
{
	const struct finding *finding = &explanation->findings[i];

	if (explain_rules[finding->rule].is_fault)
		return NULL;
	if (i == 0)
		return finding->rule == RULE_ONLY_SLEEP && is_idle(explanation)
		           ? "It is idle: its threads sleep or wait for work nearly all of the "
		             "time. What sleeps most:"
		           : "Nothing stands out as a fault. What it does most:";
	return explain_rules[finding[-1].rule].is_fault ? "What it does most otherwise:" : NULL;
}

static void put_findings(const struct explanation *explanation, bool is_markdown, FILE *stream)
{
	const struct report *report = explanation->report;
	const struct profile *profile = report->profile;
	const char *mark = is_markdown ? "`" : "";
	const char *machine = machine_text(explanation);
	const double idle_ns = explanation->all_ns - explanation->active_ns -
	                       (machine ? explanation->all_ready_ns : 0);

	if (is_markdown)
		fputs("## What the profile shows\n\n", stream);
	const char *raw = profile->n_processes > 0 ? profile->processes[0].name : "process";
	_cleanup_free_ char *name = text_clean(raw, strlen(raw), TEXT_UNLIMITED);
	_cleanup_free_ char *threads = profile_threads_text(profile);
	fprintf(stream,
	        "%s (%d): %s, %.1f s. Busy (computing or held up) for %.1f s in all, idle "
	        "for %.1f s. Percentages are of the busy time.\n%s",
	        name, report->pid, threads, seconds((double)profile->duration_ns),
	        seconds(explanation->active_ns), seconds(idle_ns),
	        explanation->n_findings || is_markdown ? "\n" : "");
	if (machine)
		fprintf(stream,
		        "The machine is busy (waits for a CPU are not counted above): the program "
		        "%s.\n%s",
		        machine, explanation->n_findings || is_markdown ? "\n" : "");
	for (size_t i = 0; i < explanation->n_findings; i++) {
		const struct finding *finding = &explanation->findings[i];
		_cleanup_free_ char *text = told(explanation, finding, is_markdown ? "**" : "");
		_cleanup_free_ char *look = command(explanation, finding);
		const char *before = heading(explanation, i);
		if (before)
			fprintf(stream, "%s%s\n\n", i > 0 ? "\n" : "", before);
		fprintf(stream, "%zu. %s.\n", i + 1, text);
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

// Returns the finding with what makes it wait most, if that is known; a new string.
static char *told_with_cause(const struct explanation *explanation, const struct finding *finding)
{
	char *text = told(explanation, finding, "");

	if (finding->n_causes == 0)
		return text;
	_cleanup_free_ char *cause = cause_text(explanation, &finding->causes[0]);
	char *both = memory_printf("%s. For %d %% of that it is in %s", text,
	                           percent(finding->causes[0].ns, finding->ns), cause);
	free(text);
	return both;
}

void explain_lines_init(struct explain_lines *lines, const struct report *report)
{
	struct explanation explanation;

	*lines = (struct explain_lines){0};
	explain_make(report, &explanation);
	lines->none = nothing(&explanation);
	for (size_t i = 0; i < explanation.n_findings && lines->n < MAX_EXPLAIN_LINES; i++) {
		const struct finding *finding = &explanation.findings[i];
		if (finding->rule == RULE_CPU && report->cpu_wait) {
			lines->cpu_is_first |= i == 0;
			continue; // report->cpu_wait says it
		}
		const struct place *places = explain_places(&explanation, finding->row);
		lines->items[lines->n++] = (struct explain_line){
		    .is_fault = explain_rules[finding->rule].is_fault,
		    .text = told_with_cause(&explanation, finding),
		    .function = memory_strdup(
		        finding->depth == 0
		            ? ""
		            : explain_function(&explanation, places[finding->depth - 1].function)
		                  ->name),
		};
	}
	explain_free(&explanation);
}

void explain_lines_deinit(struct explain_lines *lines)
{
	for (size_t i = 0; i < lines->n; i++) {
		free(lines->items[i].text);
		free(lines->items[i].function);
	}
	*lines = (struct explain_lines){0};
}

static struct error *write_text(const struct report *report, FILE *stream)
{
	struct explanation explanation;

	explain_make(report, &explanation);
	put_findings(&explanation, false, stream);
	explain_free(&explanation);
	return NULL;
}

static struct error *write_markdown(const struct report *report, FILE *stream)
{
	struct explanation explanation;

	explain_make(report, &explanation);
	put_findings(&explanation, true, stream);
	explain_free(&explanation);
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
	json_key_string(json, "rule", explain_rules[finding->rule].name);
	put_share(json, finding->ns / (explain_whole_ns(explanation, finding->rule) ?: 1));
	json_key_bool(json, "fault", explain_rules[finding->rule].is_fault);
	if (finding->depth > 0) {
		const struct place *place =
		    &explain_places(explanation, finding->row)[finding->depth - 1];
		const struct function *function = explain_function(explanation, place->function);
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

	explain_make(report, &explanation);
	json_open(&json, '{');
	json_key_int(&json, "version", JSON_VERSION);
	json_key_int(&json, "pid", report->pid);
	json_key_int(&json, "threads", (int64_t)report->profile->n_threads);
	json_key(&json, "active_s");
	json_time(&json, (int64_t)explanation.active_ns, 1000000000);
	json_key(&json, "all_s");
	json_time(&json, (int64_t)explanation.all_ns, 1000000000);
	if (machine_text(&explanation))
		json_key_string(&json, "machine", machine_text(&explanation));
	json_key_open(&json, "findings", '[');
	for (size_t i = 0; i < explanation.n_findings; i++)
		put_json_finding(&explanation, &explanation.findings[i], &json);
	json_close(&json, ']');
	json_close(&json, '}');
	fputc('\n', stream);
	explain_free(&explanation);
	return NULL;
}

const struct writer writer_explain = {.name = "explanation", .write = write_text};
const struct writer writer_explain_markdown = {.name = "explanation", .write = write_markdown};
const struct writer writer_explain_json = {.name = "explanation", .write = write_json};
