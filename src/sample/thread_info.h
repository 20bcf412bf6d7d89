// SPDX-License-Identifier: MIT
// thread_info: notes in the profile what is known of the target's threads besides their samples:
// names, the kernel's own figures, and which have ended.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct profile;
struct target;
struct target_thread;

// Reads the name of the target's process, which begins to be watched.
void thread_info_begin_process(struct profile *profile, const struct target *target,
                               int64_t now_ns);

// Adds the target's last n_new threads to the profile, first seen at now_ns. The CPU time of one
// that was born since then counts from its birth.
void thread_info_add(struct profile *profile, const struct target *target, size_t n_new,
                     int64_t now_ns);

// Call it for a thread that has run. Reads its name again if that may be worth it.
void thread_info_refresh_name(struct profile *profile, const struct target *target,
                              struct target_thread *thread, int64_t now_ns);

// Names the process, and its first thread, by the title that the process has given itself.
void thread_info_note_title(struct profile *profile, const struct target *target);

// Call it when the process executes another program. Reads the process's name at once, since it may
// be gone before a name is read again.
void thread_info_note_exec(struct profile *profile, const struct target *target, int64_t now_ns);

// Notes how long the thread has run, and waited for a CPU, as the kernel counts it.
void thread_info_note_kernel_figures(struct profile *profile, const struct target_thread *thread,
                                     int64_t at_ns);

// Notes the ends of the threads that target_forget_gone is about to forget.
void thread_info_note_ends(struct profile *profile, const struct target *target);
