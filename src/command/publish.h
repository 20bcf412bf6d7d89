// SPDX-License-Identifier: MIT
// publish: a profile written in the way that the options ask for.
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct error;
struct modules;
struct options;
struct profile;
struct symbols;
struct timeline;

struct publication {
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
struct error *publish(const struct options *options, const struct publication *publication,
                      FILE *stream);

// Writes a page that compares b with a; both have timelines.
struct error *publish_page_diff(const struct options *options, const struct publication *a,
                                const struct publication *b, FILE *stream);
