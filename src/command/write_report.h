// SPDX-License-Identifier: MIT
// write_report: a profile written in the way that the options ask for.
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct error;
struct modules;
struct options;
struct profile;
struct symbols;
struct timeline;

// What a report is made of; borrowed.
struct report_source {
	const struct profile *part;  // its samples are what is written
	const struct profile *whole; // the profile that it is a part of; not needed without...
	struct timeline *timeline;   // ...this, for a format that shows time; else NULL
	const struct modules *modules;
	const struct symbols *symbols;
	const char *const *comments; // NULL-terminated
	int pid;
	bool children; // it holds other processes, too
};

// Writes to the stream in the format options->writer.
struct error *write_report(const struct options *options, const struct report_source *source,
                           FILE *stream);

// Writes a page that compares b with a; both have timelines.
struct error *write_report_diff(const struct options *options, const struct report_source *a,
                                const struct report_source *b, FILE *stream);
