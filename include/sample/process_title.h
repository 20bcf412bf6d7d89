// SPDX-License-Identifier: MIT
// process_title: what a process has written over its command line, for people who list processes:
// "nginx: worker process", "postgres: checkpointer". It tells processes of one program apart.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process_title {
	char *text;     // clean (text.h); NULL: the command line is as the kernel made it. Owned
	int64_t due_ns; // when it is to be read again, CLOCK_MONOTONIC
	int64_t age_ns; // how long after that the next time comes
};

struct resident;

// Reads the title if it is due, which it is ever more seldom. Reads only memory that is there at
// once (resident.h), of the living thread `tid`. True if there is a title and it has changed.
bool process_title_update(struct process_title *title, int pid, int tid, struct resident *resident,
                          int64_t now_ns);

// Forgets it, and lets it be read soon: the process executes another program.
void process_title_forget(struct process_title *title, int64_t now_ns);
void process_title_deinit(struct process_title *title);

// Returns the title in the n bytes where a process's arguments begin, which have n_arguments bytes,
// and end with the byte `last`; NULL: there is none. The caller frees.
char *process_title_parse(const char *bytes, size_t n, size_t n_arguments, char last);
