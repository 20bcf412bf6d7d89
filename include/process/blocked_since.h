// SPDX-License-Identifier: MIT
// blocked_since: finds for how long threads have not run, without having watched them.
//
// The kernel notes for each thread the time at which it last ran, by the task clock of the CPU that
// it ran on (se.exec_start of /proc/PID/task/TID/sched). Task clocks differ between CPUs, and stand
// still while a hypervisor takes the CPU away. So the time now is read on the same CPU, by the same
// clock; at least the difference has passed.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Sets ret_ns[i] to the time since thread tids[i] of the process last ran, as of now_ns
// (CLOCK_MONOTONIC, about now); -1: it is not known. Call it before any stop, since a stop counts
// as a run. Moves the calling thread to each CPU in turn, and then lets it use the same CPUs as
// before.
void blocked_since_read(int pid, const int *tids, size_t n, int64_t now_ns, int64_t *ret_ns);

// Returns the number of milliseconds after "se.exec_start" in the text of such a file, in ns; -1:
// none.
int64_t blocked_since_parse(const char *text);
