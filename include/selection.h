// selection: which samples of a profile the user asked for.
#pragma once

#include <regex.h>
#include <stdbool.h>

struct profile;
struct sample;

struct selection {
	bool on_cpu;                // only running ones
	bool off_cpu;               // only the others
	const regex_t *thread_name; // only threads whose name matches; NULL: all. Borrowed.
};

bool selection_matches(const struct selection *selection, const struct profile *profile,
                       const struct sample *sample);
