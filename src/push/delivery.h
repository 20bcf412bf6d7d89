// SPDX-License-Identifier: MIT
// delivery: one window brought to the server: read, cut into requests, sent, and what the answer
// means.
#pragma once

#include <stdbool.h>
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
	bool has_sent;          // a part of it now
	char *text;             // why, one clean line; owned; NULL: nothing to be said
	int fd; // of the window's file; while it is open no other uploader touches that; -1: none
};

// Sends what of the window is not sent yet, in `timeout_ms` at most for each request.
void deliver(const struct uploader *uploader, struct http *http, struct push_window *window,
             int64_t timeout_ms, struct delivery *ret);

// The same for who will drop the window: only counts what is not sent, as far as it can be read.
// False: it is gone, or somebody else has it.
bool delivery_claim(const struct uploader *uploader, const struct push_window *window,
                    struct delivery *ret);

// Frees, and lets the file go.
void delivery_deinit(struct delivery *delivery);
