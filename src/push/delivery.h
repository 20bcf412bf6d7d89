// SPDX-License-Identifier: MIT
// delivery: reads one window, splits it into requests, sends them, and tells what the server's
// answer means.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct http;
struct push_window;
struct uploader;

enum verdict {
	VERDICT_SENT,          // the server has it
	VERDICT_LATER,         // the server is away, slow or busy
	VERDICT_FAULTY,        // the server fails, perhaps because of this window
	VERDICT_CONFIGURATION, // the server refuses us, or is not one of this kind
	VERDICT_REFUSED,       // the server says that the window is wrong
	VERDICT_UNREADABLE,
	VERDICT_BARRED, // the file cannot be opened, or is not a regular one
	VERDICT_GONE,   // the file is gone, or somebody else sends it
	N_VERDICTS,
};

struct delivery {
	enum verdict verdict;
	int64_t retry_after_ns; // as the server asks; 0: it does not
	uint64_t samples;       // in the parts that are not sent
	bool has_sent;          // a part was sent this time
	char *text;             // the reason, or a warning, as one clean line; owned; NULL: none
	int fd; // the window's file: no other uploader takes it while this is open; -1: none
};

// Sends the parts of the window that are not sent yet.
void deliver(const struct uploader *uploader, struct http *http, struct push_window *window,
             struct delivery *ret);

// Call it before dropping a window: takes its file as deliver does, and only counts the samples
// that are not sent, as far as they can be read. False if the file is gone, or somebody else has
// it.
bool delivery_claim(const struct uploader *uploader, const struct push_window *window,
                    struct delivery *ret);

// Frees what *delivery owns, and lets the file go.
void delivery_deinit(struct delivery *delivery);
