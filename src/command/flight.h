// flight: the flight recorder (--ring): the last window is written when it is asked for, or when
// something has happened, and sampling goes on.
#pragma once

#include <stdbool.h>

#include "trigger.h"
#include "ring.h"

struct window_files;
struct modules;
struct options;
struct profile;
struct run;

struct flight {
	const struct options *options; // borrowed, as the next three
	struct profile *profile;
	const struct run *run;
	struct window_files *files;
	struct ring ring;
	struct triggers triggers;
	int64_t noticed_ns; // when one of the triggers was last seen
};

// Before the first tick, when the profile's start is known.
void flight_begin(struct flight *flight, const struct options *options, struct profile *profile,
                  const struct run *run, struct window_files *files);
void flight_deinit(struct flight *flight);

// After each tick. `asked`: the user wants the window (SIGUSR1).
void flight_ticked(struct flight *flight, bool asked);

// Sampling is over. Waits for what is being written.
void flight_end(struct flight *flight, bool target_ended);
