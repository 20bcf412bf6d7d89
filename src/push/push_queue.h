// SPDX-License-Identifier: MIT
// push_queue: the windows that wait to be sent: files, oldest first.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"

struct push_window {
	char *path;
	uint64_t size;
	int64_t time_ns; // of its last change, CLOCK_REALTIME
	bool is_seen;    // it is there, at the last look
	bool is_done;    // it is not to be sent any more
	size_t n_sent;   // of its parts
	// The next one was sent, and nobody saw the answer: the server may have it.
	bool may_be_there;
	uint32_t tries;
	// Poison is told from a server that is away by the windows that it takes meanwhile.
	bool has_failed;      // since another one was taken
	uint32_t n_overtaken; // how often that was so
};

struct push_queue {
	struct push_window *items;
	size_t count, capacity;
	struct hash_index index; // by path, between begin and end
};

void push_queue_deinit(struct push_queue *queue);

// Looks for files at the path, or in the directory that it is, and adds new ones. False: it cannot
// be read, errno says why. Between begin and end, for each of the paths.
void push_queue_begin(struct push_queue *queue);
bool push_queue_look(struct push_queue *queue, const char *path);
void push_queue_end(struct push_queue *queue);

// The one to be tried next: the oldest of those tried least often; NULL: none waits.
struct push_window *push_queue_next(struct push_queue *queue);

// The oldest of those that wait; NULL: none.
struct push_window *push_queue_oldest(struct push_queue *queue);

// How many wait, and their bytes.
size_t push_queue_waiting(const struct push_queue *queue, uint64_t *ret_bytes);

// The server took a window.
void push_queue_note_success(struct push_queue *queue);

// Renames the window's file so that it says how many of its parts are sent, and whether the next
// one may be, for who comes after this process.
void push_queue_mark(struct push_window *window);
