// SPDX-License-Identifier: MIT
// instants: processes that do what they are told to at a given instant, and instants that last as
// long as a test likes: ptrace(2) and getdents64(2) are the test's own.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum {
	POLL_US = 1000,
	MAX_MS = 5000, // who takes longer has been left
};

// Called once, when the kernel has seized somebody.
extern void (*instant_after_seize)(void);

// The next directory lists the first thread once more, at its end.
extern bool instant_lists_twice;

enum { MAIN, SECOND, THIRD, N_THREADS };

// One of three threads. The second executes cat(1), clones a process, or writes LARGE zeros at once
// where its answers go, when it is told to; cat ends with its input. The others sleep.
struct process {
	pid_t pid, tids[N_THREADS];
	pid_t tracer; // of the third thread, and the process's parent; 0: none
	int order_fd, answer_fd, input_fd, reap_fd;
};

enum order { EXECUTE = 'x', CLONE = 'c', WRITE = 'w' };

enum { LARGE = 300000 }; // more than a pipe takes

// third_is_traced: by the process's parent, so that an exec waits until that one is told by reap_fd
// to collect the third thread's death.
void process_start(struct process *process, bool third_is_traced);
void process_end(struct process *process);

void process_tell(const struct process *process, enum order order);
int process_read_answer(const struct process *process, int *ret_about);

void process_await_state(pid_t pid, pid_t tid, char state);
void process_await(const struct process *process, bool (*is)(const struct process *process));
bool process_is_cat(const struct process *process);
bool process_runs_untraced(const struct process *process); // and has executed cat

// A process that cannot be stopped before it is told to wake.
struct sleeper {
	pid_t pid;
	int wake_fd;
};

void sleeper_start(struct sleeper *sleeper);
void sleeper_wake(const struct sleeper *sleeper);
void sleeper_end(const struct sleeper *sleeper);
