// SPDX-License-Identifier: MIT
// debug_server: gets debug files from debuginfod servers, by build ID (debuginfod(8)). Uses
// elfutils' client library, libdebuginfod.so.1, which is loaded only when needed, and keeps what it
// fetches in a cache ($XDG_CACHE_HOME/debuginfod_client) for later runs and other programs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct debuginfod_client;

struct debug_server {
	char *urls;          // with spaces between them
	bool shows_progress; // on stderr, a terminal
	void *library;
	struct debuginfod_client *client;
	int64_t left_ns; // what is left of the time for all files
	uint64_t n_fetched;
	uint64_t n_not_fetched; // the servers do not have them, or cannot be reached
	bool timed_out;

	// Private: the file that is being fetched.
	const char *name;
	int64_t start_ns, shown_ns;
};

// Opens the debug file with that build ID; -1: no server has it, or none sends it in time. `name`:
// the file that it is for, to be shown. May take up to a minute for all files together.
int debug_server_fetch(struct debug_server *server, const void *build_id, size_t build_id_size,
                       const char *name);

// Knows where the user wants debug files to be looked for, besides the usual places.
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
