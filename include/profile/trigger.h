// SPDX-License-Identifier: MIT
// trigger: tells when the flight recorder must write its window (--dump-when).
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

enum trigger_kind {
	TRIGGER_BLOCKED,   // blocked>TIME: a thread has waited in one sleep for longer
	TRIGGER_CPU_OVER,  // cpu>PERCENT: of one CPU, over a second
	TRIGGER_CPU_UNDER, // cpu<PERCENT
	TRIGGER_DEATH,     // the target has ended
};

enum { MAX_TRIGGERS = 8 };

struct trigger {
	enum trigger_kind kind;
	int64_t ns;     // TRIGGER_BLOCKED
	double percent; // TRIGGER_CPU_*
	bool was_true;  // at the last look; a trigger is reported when it becomes true
};

struct triggers {
	const regex_t *thread_name; // of threads that count as blocked; NULL: all; borrowed
	struct trigger items[MAX_TRIGGERS];
	size_t count;
	int64_t looked_ns;                   // the tick of the last look at the threads
	int64_t cpu_looked_ns, cpu_clock_ns; // of the last look at the CPU clock; 0: none yet
};

// Adds one or more triggers, separated by commas, such as "blocked>2s,death". False if `text` is
// malformed, or there are too many.
bool triggers_parse(const char *text, struct triggers *triggers);

// Call it after a tick. Returns a new text, owned by the caller, that says which trigger has become
// true since the last call, and for whom; NULL: none. `pid`: whose CPU clock is read.
char *triggers_look(struct triggers *triggers, const struct profile *profile, int pid,
                    int64_t now_ns);

bool triggers_want_death(const struct triggers *triggers);
