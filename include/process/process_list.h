// SPDX-License-Identifier: MIT
// process_list: the threads of a process, and its descendants, as /proc lists them now.
#pragma once

#include <stddef.h>

enum { PROCESS_LIST_MAX = 100000 }; // threads, or processes; more are left out

// The thread ids of the process; *ret_count may be 0. The caller frees.
int *process_threads(int pid, size_t *ret_count);

// The pids of all processes that /proc shows, in ascending order. The caller frees.
int *process_all(size_t *ret_count);

// The pids of its children. The caller frees.
int *process_children(int pid, size_t *ret_count);

// The process itself and, parents first, its descendants. The caller frees.
int *process_tree(int pid, size_t *ret_count);
