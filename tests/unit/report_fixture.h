// SPDX-License-Identifier: MIT
// report_fixture: a small profile, made by hand, for the tests of the writers.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "module.h"
#include "profile.h"
#include "selection.h"
#include "symbolize.h"
#include "writer.h"

struct report_fixture {
	struct profile profile;
	struct modules modules;
	struct symbols symbols;
	bool *selected;
	struct report report; // of the above
};

// An empty profile with the modules [anon], /usr/bin/prog, /usr/lib/libc.so.6 and [unknown] (0 to
// 3), of no thread and without symbols.
void report_fixture_init(struct report_fixture *fixture);
void report_fixture_deinit(struct report_fixture *fixture);

// A new function, its number.
uint32_t report_fixture_function(struct report_fixture *fixture, const char *name,
                                 const char *system_name, const char *file);

// A new location of `n` (function, line) pairs, innermost first; its number.
struct fixture_line {
	uint32_t function, line;
};
uint32_t report_fixture_location(struct report_fixture *fixture, uint32_t module, uint64_t address,
                                 const struct fixture_line *lines, size_t n);

// A function of that name with one location of its own in libc; the location.
uint32_t report_fixture_frame(struct report_fixture *fixture, const char *name);

// A thread of process 100; its number.
uint32_t report_fixture_thread(struct report_fixture *fixture, int tid, const char *name);

// The same as report_fixture_sample for a thread that waits (profile_intern_wait).
void report_fixture_wait(struct report_fixture *fixture, uint32_t thread, enum thread_state state,
                         const uint32_t *location_ids, size_t n, enum stack_end end, uint32_t wait,
                         uint64_t ticks);

// Counts `ticks`, each of 10 ms, for the stack.
void report_fixture_sample(struct report_fixture *fixture, uint32_t thread, enum thread_state state,
                           const uint32_t *location_ids, size_t n, enum stack_end end,
                           uint64_t ticks);

// Adds what most tests write: main (prog.c) calls an inlined function and one without a name; two
// threads share a stack; one has the others' ends.
void report_fixture_fill(struct report_fixture *fixture);

// Only what is selected is to be written, of what is in the profile by now.
void report_fixture_select(struct report_fixture *fixture, const struct selection *selection);

// What the writer makes of it, NUL-terminated, owned by the caller.
char *report_fixture_write(const struct report_fixture *fixture, const struct writer *writer,
                           size_t *ret_size);
