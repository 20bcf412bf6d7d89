// SPDX-License-Identifier: MIT
// function_times: for how long threads were in each function, in bins of time. A function counts
// with all that it calls; the kernel's functions are left out.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "string_table.h"

struct report;

// The functions of several reports, by name.
struct function_names {
	struct string_table strings;
	bool *own;       // of the program's own code (own_code.h), in one of the reports
	size_t own_size; // capacity of own
	uint32_t *depth; // frames between a thread's root and the function, where first seen
	size_t depth_size;
};

struct function_times {
	size_t n_bins, n_functions;
	double *values;  // thread-seconds: function * n_bins + bin
	double *all;     // of all threads together, in each bin
	double *seconds; // each bin's length; the last one may be shorter
};

void function_names_deinit(struct function_names *names);

// Adds up the report's timeline, whose functions are added to the names. What the report does not
// select is left out. The caller frees *ret by function_times_deinit.
void function_times_init(struct function_times *ret, const struct report *report, int64_t bin_ns,
                         struct function_names *names);
void function_times_deinit(struct function_times *times);

// Returns for how long the report's timeline lasts.
int64_t function_times_duration_ns(const struct report *report);
