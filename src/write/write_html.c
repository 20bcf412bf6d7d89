// SPDX-License-Identifier: MIT
// The HTML page: one file that holds its script, its style and the profile. It needs no network and
// can reach none. Its script is in page/, which page.py joins.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "folded_line.h"
#include "clock.h"
#include "error.h"
#include "json.h"
#include "memory.h"
#include "page.h"
#include "page_sections.h"
#include "page_tables.h"
#include "share_doubts.h"
#include "text.h"
#include "timeline.h"
#include "write_explain.h"
#include "write_html.h"
#include "writer.h"

// Has page_head, page_body, page_data and page_tail: the texts before the title, the tables, the
// data and the end.
#include "page_text.h"

enum { MAX_TITLE_BYTES = 200, MAX_RUNS = 4 << 20 };

static void put_kinds(struct json *json, const struct page *page)
{
	const uint8_t n = page->count_ns ? 0 : N_PAGE_KINDS;

	json_key_open(json, "kinds", '[');
	if (page->count_ns)
		json_string(json, "samples");
	for (uint8_t kind = 0; kind < n; kind++)
		json_string(json, page_kind_name(kind));
	json_close(json, ']');
	json_key_open(json, "idle", '[');
	for (uint8_t kind = 0; kind < n; kind++)
		if (page_kind_is_idle(kind))
			json_string(json, page_kind_name(kind));
	json_close(json, ']');
}

static void put_processes(struct json *json, const struct profile *profile)
{
	json_key_open(json, "processes", '{');
	for (size_t i = 0; i < profile->n_processes; i++) {
		const struct process_name *process = &profile->processes[i];
		_cleanup_free_ char *pid = memory_printf("%d", process->pid);
		json_key_clean(json, pid, process->name);
	}
	json_close(json, '}');
}

static void put_notes(struct json *json, const struct report *report)
{
	json_key_open(json, "notes", '[');
	for (size_t i = 0; report->comments && report->comments[i]; i++) {
		const char *note = report->comments[i];
		_cleanup_free_ char *clean = text_clean(note, strlen(note), TEXT_UNLIMITED);
		json_string(json, clean);
	}
	json_close(json, ']');
}

// Writes which part of the time is shown, counted from the first tick.
static void put_time(struct json *json, const struct page *page, const struct report *report)
{
	const struct profile *profile = report->profile;
	const struct timeline *timeline = report->timeline;
	const int64_t from_ns =
	    timeline->from_ns > profile->start_ns ? timeline->from_ns - profile->start_ns : 0;

	json_key_int(json, "period_ns", profile->period_ns);
	json_key_int(json, "start_ms", profile->start_time_ns / NS_PER_MS);
	json_key_int(json, "stretch_ns", page->stretch_ns);
	json_key_int(json, "from_ns", from_ns < page->end_ns ? from_ns : 0);
}

static void put_findings(struct json *json, const struct explain_lines *lines)
{
	json_key_open(json, "findings", '[');
	for (size_t i = 0; i < lines->n; i++) {
		json_open(json, '{');
		json_key_string(json, "text", lines->items[i].text);
		json_key_string(json, "function", lines->items[i].function);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_report(struct json *json, const struct page *page, const struct report *report)
{
	json_key_int(json, "pid", report->pid);
	put_time(json, page, report);
	put_processes(json, report->profile);
	put_notes(json, report);
	_cleanup_free_ char *doubts = share_doubts_text(report->profile);
	if (doubts)
		json_key_string(json, "doubts", doubts);
	if (report->cpu_wait)
		json_key_string(json, "cpu_wait", report->cpu_wait);
	if (report->findings)
		put_findings(json, report->findings);
}

// Returns the page's "meta" as JSON. `report` is NULL if the profile has no time.
static char *make_meta(const struct page *page, const struct report *report, const char *title)
{
	char *text = NULL;
	size_t size = 0;
	struct json json = {.stream = open_memstream(&text, &size)};

	if (!json.stream)
		return memory_strdup("{}");
	json_open(&json, '{');
	json_key_int(&json, "version", 1);
	json_key_string(&json, "profiler", PROFILER_VERSION);
	json_key_string(&json, "title", title);
	json_key_int(&json, "unit_ns", page_unit_ns(page));
	json_key_int(&json, "count_ns", page->count_ns);
	if (page->count_ns)
		json_key_string(&json, "counts", page->unit ?: "samples");
	json_key_int(&json, "end_ns", page->end_ns);
	put_kinds(&json, page);
	if (report)
		put_report(&json, page, report);
	json_close(&json, '}');
	fclose(json.stream);
	return text;
}

static char *make_title(const struct report *report)
{
	if (report->title)
		return text_clean(report->title, strlen(report->title), MAX_TITLE_BYTES);
	const char *name = profile_process_name(report->profile, report->pid);
	_cleanup_free_ char *clean = text_clean(name, strlen(name), MAX_TITLE_BYTES);

	return memory_printf("%s%spid %d", clean, clean[0] ? ", " : "", report->pid);
}

static struct error *put_data(const struct page *page, const uint32_t *order, const char *meta,
                              FILE *stream)
{
	_cleanup_free_ char *bytes = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&bytes, &size);

	if (!memory)
		return error_create(EXIT_STATUS_OUTPUT, "no memory for a page");
	struct error *error = page_sections_write(page, order, meta, memory);
	const bool failed = ferror(memory) != 0;
	if ((fclose(memory) != 0 || failed) && !error)
		error = error_create(EXIT_STATUS_OUTPUT, "no memory for a page");
	if (!error)
		base64_write(stream, bytes, size);
	return error;
}

static struct error *write_page(struct page *page, const struct report *report, const char *title,
                                FILE *stream)
{
	_cleanup_free_ uint32_t *order = page_tree_order(&page->tree);
	_cleanup_free_ char *meta = make_meta(page, report, title);

	fputs(page_head, stream);
	page_put_text(stream, title, MAX_TITLE_BYTES);
	fputs(page_body, stream);
	struct error *error = put_data(page, order, meta, stream);
	fputs(page_program, stream);
	page_tables_write(page, order, stream);
	fputs(page_tail, stream);
	return error;
}

struct error *write_html_diff(const struct report *base, const struct report *report, FILE *stream)
{
	struct page page;

	page_init(&page);
	if (base)
		page_add(&page, base, true);
	page_add(&page, report, false);
	page_bound_runs(&page, MAX_RUNS);
	_cleanup_free_ char *title = make_title(report);
	struct error *error = write_page(&page, report, title, stream);
	page_deinit(&page);
	return error;
}

static struct error *add_lines(struct page *page, lines_fn *lines, void *context, uint64_t *ret_bad)
{
	struct page_folded folded;
	struct error *error;
	const char *text;
	size_t size;

	page_folded_begin(&folded, page);
	while (!(error = lines(context, &text, &size)) && size > 0)
		page_folded_add(&folded, text, size);
	*ret_bad = page_folded_end(&folded);
	return error;
}

struct error *write_html_folded(const char *name, const char *title, lines_fn *lines, void *context,
                                FILE *stream)
{
	uint64_t n_bad;
	struct page page;

	page_init(&page);
	struct error *error = add_lines(&page, lines, context, &n_bad);
	if (!error && page.n_runs == 0)
		error = error_create(EXIT_STATUS_TARGET, FOLDED_NONE, name);
	if (!error)
		error = write_page(&page, NULL, title, stream);
	page_deinit(&page);
	if (!error && n_bad > 0)
		fprintf(stderr, "profiler: left out %" PRIu64 " lines that are not folded stacks\n",
		        n_bad);
	return error;
}

struct error *write_html_pprof(const char *name, const char *title, const uint8_t *bytes,
                               size_t size, FILE *stream)
{
	uint64_t n_left_out = 0;
	struct page page;

	page_init(&page);
	struct error *error = page_add_pprof(&page, name, bytes, size, &n_left_out);
	if (!error)
		error = write_page(&page, NULL, title, stream);
	page_deinit(&page);
	if (!error && n_left_out > 0)
		fprintf(stderr, "profiler: %" PRIu64 " samples count less than nothing: left out\n",
		        n_left_out);
	return error;
}

static struct error *write_html(const struct report *report, FILE *stream)
{
	return write_html_diff(NULL, report, stream);
}

const struct writer writer_html = {
    .name = "html",
    .suffixes = (const char *const[]){".html", NULL},
    .default_suffix = ".html",
    .binary = true,
    .next_command = "profiler view %s",
    .shows_time = true,
    .write = write_html,
};
