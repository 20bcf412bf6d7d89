// SPDX-License-Identifier: MIT
// delivery: one window brought to the server: read, cut into requests, sent, and what the answer
// means.
#pragma once

#include <stdint.h>

struct http;
struct push_window;
struct uploader;

enum verdict {
	VERDICT_SENT,          // the server has it
	VERDICT_LATER,         // it is away, slow, or busy
	VERDICT_FAULTY,        // it fails, which may be the window's fault
	VERDICT_CONFIGURATION, // it does not let us in, or is no such server
	VERDICT_REFUSED,       // it says that the window is wrong
	VERDICT_TOO_OLD,
	VERDICT_UNREADABLE,
	VERDICT_GONE, // the file is, or somebody else sends it
	N_VERDICTS,
};

struct delivery {
	enum verdict verdict;
	int64_t retry_after_ns; // as the server asks; 0: it does not
	uint64_t samples;       // of the window that are not sent
	char *text;             // why, one clean line; owned; NULL: nothing to be said
};

// Sends what of the window is not sent yet, in `timeout_ms` at most for each request. The caller
// frees ret->text.
void deliver(const struct uploader *uploader, struct http *http, struct push_window *window,
             int64_t timeout_ms, struct delivery *ret);

// How many samples are in the window's file, as far as it can be read, for who drops it.
uint64_t delivery_count(const struct uploader *uploader, const struct push_window *window);
