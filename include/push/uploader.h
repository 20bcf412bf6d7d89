// SPDX-License-Identifier: MIT
// uploader: sends windows, which are files, to a server, as long as it takes.
//
// One request at a time, the oldest window first. What the server does not take now is tried again,
// later and later; what it never takes is dropped and counted. Nothing is lost that is in the
// files: a process that is killed leaves them to the next one.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push_parts.h"

struct error;
struct push_counts;

enum { UPLOADER_FLUSH_S = 10 }; // for what is left when the end has come

struct uploader {
	struct push_wishes wishes;
	const char *const *paths;          // files and directories, NULL-terminated
	const char *header_file, *ca_file; // NULL: none
	uint64_t spool_bytes;              // what waits in them may take; 0: no limit
	bool follows;                      // more windows may come
	bool removes;                      // files that are sent, or never will be
	bool dry;                          // only says what would be sent
	bool quiet;
	struct push_counts *counts;
	// What is not pprof as pprof; the bytes are taken over (malloc). NULL: cannot be done.
	struct error *(*convert)(const char *name, uint8_t *bytes, size_t size, uint8_t **ret,
	                         size_t *ret_size);
};

// Sends until nothing is left to send, or, where more may come, until SIGTERM, SIGINT or
// counts->ending_ns. Not all could be sent: an error (EXIT_STATUS_OUTPUT).
struct error *uploader_run(const struct uploader *uploader);
