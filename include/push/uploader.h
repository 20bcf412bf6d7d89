// SPDX-License-Identifier: MIT
// uploader: sends windows, which are files, to a server, however long that takes.
//
// It sends one request at a time, of the oldest window first. What the server does not take now is
// tried again after longer and longer pauses; what it never takes is dropped and counted. Nothing
// that is in the files gets lost: if the process is killed, the next one goes on with them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push_parts.h"

struct error;
struct push_counts;

enum { UPLOADER_FLUSH_S = 10 }; // how long it goes on when the end has come

struct uploader {
	struct push_wishes wishes;
	const char *const *paths;          // files and directories, NULL-terminated
	const char *header_file, *ca_file; // NULL: none
	uint64_t spool_bytes;              // limit of the files that wait; 0: none
	bool follows;                      // more windows may come
	bool removes;                      // removes files that are sent, or never will be
	bool dry;                          // only tells what would be sent
	bool quiet;
	struct push_counts *counts;
	// Turns a file of another format into pprof; takes the bytes over (malloc). NULL: files
	// of other formats are not sent.
	struct error *(*convert)(const char *name, uint8_t *bytes, size_t size, uint8_t **ret,
	                         size_t *ret_size);
};

// Sends until nothing is left to send; if more may come, until SIGTERM, SIGINT or
// counts->ending_ns. Returns an error (EXIT_STATUS_OUTPUT) if not all could be sent.
struct error *uploader_run(const struct uploader *uploader);
