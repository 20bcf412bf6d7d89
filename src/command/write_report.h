// SPDX-License-Identifier: MIT
// write_report: writes a profile in the way that the options ask for.
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct error;
struct explain_lines;
struct modules;
struct options;
struct profile;
struct symbols;
struct timeline;

// What a report is made of; borrowed.
struct report_source {
	const struct profile *part;  // whose samples are written
	const struct profile *whole; // the profile of which that is a part; needed only with...
	struct timeline *timeline;   // ...this, for a format that shows time; else NULL
	const struct modules *modules;
	const struct symbols *symbols;
	const char *const *comments; // NULL-terminated
	const char *cpu_wait;        // a line about waits for CPUs; NULL: none
	bool cpu_by_others;          // ...for which other processes are the cause
	int pid;
	bool children; // it holds other processes, too
};

// Joins what comments may be, NULL-terminated; the caller frees the array, not the strings. `more`
// may be NULL.
const char **report_comments(const char *first, const char *const *more);

// Writes it to the stream in the format of options->writer.
struct error *write_report(const struct options *options, const struct report_source *source,
                           FILE *stream);

// Says on stderr what stands out, to a person.
void write_report_findings(const struct options *options, const struct report_source *source);

// Writes a page that compares b with a; both have timelines.
struct error *write_report_diff(const struct options *options, const struct report_source *a,
                                const struct report_source *b, FILE *stream);
