// SPDX-License-Identifier: MIT
// debug_sources: knows where the user wants debug files to be looked for, besides the usual places.
#pragma once

#include <stdbool.h>

#include "debug_server.h"

struct error;

struct debug_sources {
	const char *const *directories; // NULL-terminated; searched first; NULL: none; borrowed
	struct debug_server *server;    // asked last; NULL: never
	struct debug_server own_server; // what server points to
};

// `asks_servers`: uses the servers of the environment's DEBUGINFOD_URLS; an error if that is not
// possible. The struct must not be moved.
struct error *debug_sources_init(struct debug_sources *sources, const char *const *directories,
                                 bool asks_servers, bool shows_progress);
void debug_sources_deinit(struct debug_sources *sources);
