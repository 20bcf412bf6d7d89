// SPDX-License-Identifier: MIT
// frame_name: names frames that have no name of their own, in the same way in every format.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct module;
struct thread_spans;

// Returns "[module+0xoffset]", a new string, owned by the caller. The offset is `address` as the
// location has it: in the file, or for code without a file in the target.
char *frame_name_unresolved(const struct module *module, uint64_t address)
    __attribute__((returns_nonnull));

// Returns "[truncated: reason]", a new string, owned by the caller: the root of a stack that does
// not reach the thread's root.
char *frame_name_truncated(enum stack_end end) __attribute__((returns_nonnull));

// Returns the end that the writers show for a stack: its own, except that a complete stack without
// frames counts as not sampled.
enum stack_end frame_name_stack_end(const struct stack *stack);

// Returns the i-th frame (leaf first) of what a thread waits in: the kernel's functions and, with
// `syscalls`, the system call below them, each with the suffix of kernel frames, as in "futex_[k]"
// or "read pipe:[4711]_[k]". NULL: there are no more. A new string, owned by the caller.
char *frame_name_wait(const struct wait *wait, bool syscalls, size_t i);

// Returns the system call that a thread waits in, or why a goroutine waits ("chan receive"); clean
// text. NULL: neither is known. A new string, owned by the caller.
char *frame_name_waits_in(const struct wait *wait);

// Returns the sample's labels, as in "tenant=red, locked=yes"; clean text. NULL: it has none. A new
// string, owned by the caller.
char *frame_name_labels(const struct profile *profile, const struct sample *sample);

// Returns the label with that key of a set (labels.h) as root frame, as in "tenant=red"; clean
// text. NULL: the set has none. A new string, owned by the caller.
char *frame_name_label(const char *labels, const char *key);

// Returns what the descriptor of the wait's system call is; "" if that is not known. Owned by the
// wait.
const char *frame_name_descriptor(const struct wait *wait);

// Returns how callers were found in code without unwinding rules: "frame-pointer", "code",
// "code,frame-pointer"; NULL: there was no such code.
const char *frame_name_guess(const struct stack *stack);

// Returns a thread's name as root frame; "[no name]" if it has none. Owned by the thread, or
// static.
const char *frame_name_thread(const struct thread *thread);

// Returns what people know a thread by besides its name: "1234", or "g17" for a goroutine ("g" for
// several, one after the other). A new string, owned by the caller.
char *frame_name_number(const struct thread *thread) __attribute__((returns_nonnull));

// Returns the name of a timeline's part: that of a thread, "main.worker g17" for a goroutine,
// "main.worker (212 goroutines)" for several that are shown as one. Owned by the caller.
char *frame_name_track(const struct profile *profile, const struct thread_spans *spans)
    __attribute__((returns_nonnull));

// Returns "name-pid" of the thread's process as root frame, as stackcollapse-perf.pl writes it; a
// new string, owned by the caller.
char *frame_name_process(const struct profile *profile, const struct thread *thread)
    __attribute__((returns_nonnull));
