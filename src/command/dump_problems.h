// SPDX-License-Identifier: MIT
// dump_problems: tells in words who holds what, and where deadlocks are.
#pragma once

#include <stddef.h>
#include <stdio.h>

struct dump;
struct dump_thread;
struct peer_wanted;

// Returns a text such as `mutex held by "worker-2" 4711`, owned by the caller; NULL: not known.
char *dump_holder_text(const struct dump *dump, const struct dump_thread *thread);

// Returns a text that tells who has the other end of a pipe or socket, and so could end the wait:
// `the other end has process "sh" 12`. Owned by the caller.
char *dump_peers_text(const struct dump *dump, const struct peer_wanted *peer);

// Writes a line that begins with "!" for each deadlock, and for each thread that many others wait
// for.
void dump_problems_write(const struct dump *dump, FILE *stream);

size_t dump_count_deadlocks(const struct dump *dump);

// Returns the name of a thread or process that holds something: clean text, owned by the caller.
char *dump_name_of(const struct dump *dump, int pid, int tid);
