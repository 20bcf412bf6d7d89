// SPDX-License-Identifier: MIT
// push_queue: the windows that wait to be sent, which are files; the oldest is sent first.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"

struct push_window {
	char *path;
	uint64_t size;
	int64_t time_ns; // of its last change, CLOCK_REALTIME
	bool is_seen;    // it was there at the last look
	bool is_done;    // it is not to be sent any more
	size_t n_sent;   // how many of its parts are sent
	// The next part was sent, but its answer did not arrive: the server may have it.
	bool may_be_there;
	uint32_t tries;
	// A window at which the server fails is told from a server that is away by the other
	// windows that the server takes meanwhile.
	bool has_failed;      // since the server last took another window
	uint32_t n_overtaken; // how often the server took another one after this had failed
};

struct push_queue {
	struct push_window *items;
	size_t count, capacity;
	struct hash_index index; // by path, between begin and end
};

void push_queue_deinit(struct push_queue *queue);

// Adds new files: call begin, then look for each path, a file or directory, then end. Look is false
// if the path cannot be read; errno tells why.
void push_queue_begin(struct push_queue *queue);
bool push_queue_look(struct push_queue *queue, const char *path);
void push_queue_end(struct push_queue *queue);

// Returns the window to try next: the oldest of those tried least often; NULL: none waits.
struct push_window *push_queue_next(struct push_queue *queue);

// Returns the oldest of the windows that wait; NULL: none does.
struct push_window *push_queue_oldest(struct push_queue *queue);

// Counts the windows that wait, and their bytes.
size_t push_queue_waiting(const struct push_queue *queue, uint64_t *ret_bytes);

// Call it when the server took a window.
void push_queue_note_success(struct push_queue *queue);

// Renames the window's file so that it tells how many of its parts are sent, and whether the next
// one may be, for the process that comes after this one.
void push_queue_mark(struct push_window *window);
