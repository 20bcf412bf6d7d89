// SPDX-License-Identifier: MIT
#include "diff_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff_changes.h"
#include "error.h"
#include "memory.h"
#include "options.h"
#include "short_name.h"
#include "text.h"

enum {
	MAX_CHANGED = 30, // rows
	MAX_OTHERS = 8,
	MIN_NAME = 16,
	MAX_NAME = 48,
	VERDICT_WIDTH = 40,
	// --check: a function of this part of the time must be long enough to tell.
	CHECKED_PARTS = 10,
};

static char *duration_text(double seconds)
{
	static const struct {
		double least, unit;
		const char *name;
	} units[] = {{2 * 86400, 86400, "day"}, {2 * 3600, 3600, "hour"}, {90, 60, "minute"}};

	for (size_t i = 0; i < array_size(units); i++)
		if (seconds >= units[i].least)
			return memory_printf("%.0f more %ss", ceil(seconds / units[i].unit),
			                     units[i].name);
	return memory_printf("%.0f more seconds", fmax(1, ceil(seconds)));
}

static char *percent(double share)
{
	return share < 0.0995 ? memory_printf("%.1f", 100 * share)
	                      : memory_printf("%.0f", 100 * share);
}

static char *certain_text(const struct function_change *item)
{
	const double relative = fabs(item->relative);
	_cleanup_free_ char *change = NULL, *half = NULL;

	if (isinf(item->relative))
		return memory_strdup("new");
	if (item->shares[1] <= 0)
		return memory_strdup("gone");
	change = percent(relative);
	half = percent(item->half_width);
	if (isinf(item->half_width))
		return memory_printf("%s by %s %%", item->relative > 0 ? "slower" : "faster",
		                     change);
	return memory_printf("%s by %s %% ± %s", item->relative > 0 ? "slower" : "faster", change,
	                     half);
}

static char *verdict_text(const struct function_change *item)
{
	_cleanup_free_ char *half = percent(item->half_width), *more = NULL;

	if (item->verdict == CHANGE_CERTAIN)
		return certain_text(item);
	if (item->verdict == CHANGE_NONE)
		return memory_printf("not changed (± %s %%)", half);
	if (isinf(item->half_width))
		return memory_strdup("too short to tell");
	more = duration_text(item->more_seconds);
	return memory_printf("too short to tell: about %s", more);
}

static size_t characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80; // not inside a character of UTF-8
	return n;
}

static void pad(FILE *stream, const char *text, size_t width)
{
	const size_t n = characters(text);

	fprintf(stream, "%s%*s", text, n < width ? (int)(width - n) : 0, "");
}

static char *name_text(const struct function_change *item)
{
	_cleanup_free_ char *name = short_name(item->name);

	return text_clean(name, strlen(name), MAX_NAME);
}

static void print_row(const struct diff_changes *changes, const struct function_change *item,
                      size_t width, FILE *stream)
{
	_cleanup_free_ char *name = name_text(item), *verdict = verdict_text(item);
	_cleanup_free_ char *before = percent(item->shares[0]), *after = percent(item->shares[1]);

	fputs("  ", stream);
	pad(stream, name, width);
	fputs("  ", stream);
	if (changes->timed)
		pad(stream, verdict, VERDICT_WIDTH);
	fprintf(stream, "  %5s -> %5s %%", before, after);
	if (changes->timed)
		fprintf(stream, "  %5.0f -> %5.0f ms/s", 1e3 * item->seconds_a_second[0],
		        1e3 * item->seconds_a_second[1]);
	fputs("\n", stream);
}

static size_t name_width(const struct diff_changes *changes, size_t first, size_t end, size_t width)
{
	for (size_t i = first; i < end; i++) {
		_cleanup_free_ char *name = name_text(&changes->items[i]);
		if (characters(name) > width)
			width = characters(name);
	}
	return width;
}

static void print_rest(const struct diff_changes *changes, size_t first, FILE *stream)
{
	size_t n_same = 0, n_unsure = 0;

	for (size_t i = first; i < changes->n; i++) {
		n_same += changes->items[i].verdict == CHANGE_NONE;
		n_unsure += changes->items[i].verdict == CHANGE_UNSURE;
	}
	if (n_same > 0)
		fprintf(stream, "  %zu more not changed (by %g %% or more)\n", n_same,
		        100 * changes->margin);
	if (n_unsure > 0)
		fprintf(stream, "  %zu more too short to tell\n", n_unsure);
}

static void print_timed(const struct diff_changes *changes, FILE *stream)
{
	const size_t n_certain = changes->n_certain;
	const size_t n_shown = n_certain < MAX_CHANGED ? n_certain : MAX_CHANGED;
	const size_t others_end =
	    changes->n - n_certain < MAX_OTHERS ? changes->n : n_certain + MAX_OTHERS;
	const size_t width =
	    name_width(changes, n_certain, others_end, name_width(changes, 0, n_shown, MIN_NAME));

	if (n_certain == 0)
		fputs("No function has changed for certain.\n", stream);
	for (size_t i = 0; i < n_shown; i++)
		print_row(changes, &changes->items[i], width, stream);
	if (n_shown < n_certain)
		fprintf(stream, "  %zu more changed\n", n_certain - n_shown);
	for (size_t i = n_certain; i < others_end; i++)
		print_row(changes, &changes->items[i], width, stream);
	print_rest(changes, others_end, stream);
}

static void print_untimed(const struct diff_changes *changes, FILE *stream)
{
	const size_t n = changes->n < MAX_CHANGED ? changes->n : MAX_CHANGED;
	const size_t width = name_width(changes, 0, n, MIN_NAME);

	for (size_t i = 0; i < n; i++)
		print_row(changes, &changes->items[i], width, stream);
	fputs("Folded and pprof profiles hold no times, so chance cannot be told from change: give "
	      "recordings (-o FILE.wprof).\n",
	      stream);
}

void diff_table_print(const struct options *options, const struct diff_changes *changes,
                      FILE *stream)
{
	const struct diff_options *diff = &options->diff;

	if (!changes->timed) {
		print_untimed(changes, stream);
		return;
	}
	print_timed(changes, stream);
	fprintf(stream,
	        "%.0f s before, %.0f s after%s; a time counts what a function calls; ± is "
	        "a 95 %% interval\n",
	        changes->seconds[0], changes->seconds[1],
	        options->normalize ? ", compared by shares" : "");
	if (diff->before.count < 2 || diff->after.count < 2)
		fputs("± knows only how the program varies within a recording: to include how runs "
		      "differ, give several (--before A... --after B...)\n",
		      stream);
}

static struct error *say_slower(const struct options *options, const struct diff_changes *changes,
                                const struct function_change *worst, size_t n)
{
	_cleanup_free_ char *name = name_text(worst), *text = certain_text(worst);

	(void)changes;
	return error_create(EXIT_STATUS_SLOWER,
	                    "%zu function%s slower by more than %g %%, such as %s: %s", n,
	                    n == 1 ? " is" : "s are", 100 * options->diff.check, name, text);
}

struct error *diff_table_check(const struct options *options, const struct diff_changes *changes)
{
	const struct function_change *worst = NULL, *unsure = NULL;
	size_t n = 0;

	if (!options->diff.checks)
		return NULL;
	for (size_t i = 0; i < changes->n; i++) {
		const struct function_change *item = &changes->items[i];
		n += item->beyond;
		if (item->beyond && !worst)
			worst = item;
		if (item->verdict == CHANGE_UNSURE && item->may_be_beyond &&
		    fmax(item->shares[0], item->shares[1]) * CHECKED_PARTS >= 1 &&
		    (!unsure || item->more_seconds > unsure->more_seconds))
			unsure = item;
	}
	if (worst)
		return say_slower(options, changes, worst, n);
	if (!unsure)
		return NULL;
	_cleanup_free_ char *name = name_text(unsure), *verdict = verdict_text(unsure);
	return error_create(EXIT_STATUS_UNSURE, "--check: %s: %s", name, verdict);
}
