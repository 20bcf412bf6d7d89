// SPDX-License-Identifier: MIT
// write_explain: says in a few sentences what a profile shows (profiler explain).
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct report;

enum { MAX_EXPLAIN_LINES = 3 };

// A finding for the summary and the page.
struct explain_line {
	bool is_fault;  // else it describes what the program does
	char *text;     // "62 % handle (bank.c:13), called by work, waits for a lock"
	char *function; // its whole name; "": the finding is of no single function
};

struct explain_lines {
	struct explain_line items[MAX_EXPLAIN_LINES]; // the most important first
	size_t n;
	const char *none;  // what to say if there are none; static
	bool cpu_is_first; // waits for CPUs would come before all of these, but are not among them
};

// Explains the report, but not that it waits for CPUs if report->cpu_wait says so.
// explain_lines_deinit must follow.
void explain_lines_init(struct explain_lines *lines, const struct report *report);
void explain_lines_deinit(struct explain_lines *lines);

extern const struct writer writer_explain; // text
extern const struct writer writer_explain_markdown;
extern const struct writer writer_explain_json; // profiler-explain(1) has the keys
