// SPDX-License-Identifier: MIT
// dump_problems: who holds what, and deadlocks, in words.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct dump;
struct dump_thread;
struct peer_wanted;

// "mutex held by "worker-2" 4711"; NULL: nothing is known. Owned by the caller.
char *dump_holder_text(const struct dump *dump, const struct dump_thread *thread);

// Who could end the wait by the other end of a pipe or socket: "the other end has process "sh" 12".
// Owned by the caller.
char *dump_peers_text(const struct dump *dump, const struct peer_wanted *peer);

// Writes the deadlocks, and the threads that many wait for, each with a line that begins with "!".
void dump_problems_write(const struct dump *dump, FILE *stream);

size_t dump_count_deadlocks(const struct dump *dump);

// The clean name of a thread or process that holds something; owned by the caller.
char *dump_name_of(const struct dump *dump, int pid, int tid);
