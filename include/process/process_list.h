// SPDX-License-Identifier: MIT
// process_list: lists the threads of a process, and its descendants, as /proc shows them now.
#pragma once

#include <stddef.h>

enum { PROCESS_LIST_MAX = 100000 }; // threads, or processes; more are left out

// Returns the thread ids of the process; *ret_count may be 0. The caller frees.
int *process_threads(int pid, size_t *ret_count);

// Returns a thread of the process that lives; the process itself where its main thread does. 0: all
// have ended. Once the main thread has ended, others' files in /proc tell what its own do not.
int process_living_thread(int pid);

// Returns the pids of all processes that /proc shows, in ascending order. The caller frees.
int *process_all(size_t *ret_count);

// Returns the pids of the process's children. The caller frees.
int *process_children(int pid, size_t *ret_count);

// Returns the process itself and, parents first, its descendants. The caller frees.
int *process_tree(int pid, size_t *ret_count);
