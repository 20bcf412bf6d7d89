// publish: a profile written in the way that the options ask for.
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct error;
struct long_waits;
struct modules;
struct options;
struct profile;
struct slice;
struct symbols;
struct timeline;

struct publication {
	const struct profile *profile;
	const struct modules *modules;
	const struct symbols *symbols;
	struct timeline
	    *timeline; // for a format that shows time, with the whole profile; else NULL
	const char *const *comments; // NULL-terminated
	int pid;
	bool children; // it holds other processes, too
};

// Writes to the stream in the format options->writer.
struct error *publish(const struct options *options, const struct publication *publication,
                      FILE *stream);

// Does the format show time? Then a timeline is to follow the profile, which is published whole.
bool publish_shows_time(const struct options *options);

// Is a part of the time asked for (--from, --to)?
bool publish_is_sliced(const struct options *options);

// Sets the slice's bounds. The profile's start must be known. An error where nothing lies between
// them.
struct error *publish_set_slice(const struct options *options, const struct profile *profile,
                                struct slice *slice);

// The profile's view with long waits alone (--waits), which has followed it; says how many there
// are.
struct profile publish_waits(const struct options *options, struct long_waits *waits,
                             const struct profile *profile);

// An error if the slice of the profile is too short to tell anything: less than two ticks.
struct error *publish_check_slice(const struct profile *view, const struct profile *profile);
