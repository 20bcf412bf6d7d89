// SPDX-License-Identifier: MIT
// goroutine_time: one goroutine in the profile: its birth, its samples, its end.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct goroutine;
struct goroutine_entry;
struct goroutine_samples;
struct target_thread;
struct ticker;
struct unwound;

// Adds a goroutine that was not known. Its first tick is `tick`, and it is watched from from_ns on.
void goroutine_begin(struct ticker *ticker, struct goroutine_entry *entry,
                     const struct goroutine *goroutine, uint64_t tick, int64_t from_ns);

// True if what was read is not the goroutine that the entry, which is alive, belongs to any more;
// or if it is to be shown now and was not before, or the other way round.
bool goroutine_is_another(const struct goroutine_samples *samples,
                          const struct goroutine_entry *entry, const struct goroutine *goroutine);

// Ends it in the profile, if it was there.
void goroutine_end(struct ticker *ticker, struct goroutine_entry *entry);

// Counts one sample of it, up to until_ns, for the ticks since it was last counted. False if there
// were none.
bool goroutine_count(struct ticker *ticker, struct goroutine_entry *entry, uint32_t stack,
                     uint64_t tick, int64_t until_ns);

// True if it was parked when it was last seen, and its stack is known.
bool goroutine_was_parked(const struct ticker *ticker, const struct goroutine_entry *entry);

// Counts the ticks since it was last counted as its last sample, up to until_ns.
void goroutine_count_as_before(struct ticker *ticker, struct goroutine_entry *entry, uint64_t tick,
                               int64_t until_ns);

// True if it is counted up to that time.
bool goroutine_is_counted(const struct ticker *ticker, const struct goroutine_entry *entry,
                          int64_t until_ns);

// Why labels are lacking.
#define GOROUTINE_LABELS_UNREADABLE "unreadable, or more than 64"

// Labels its next samples with the program's labels, or why they are lacking (NULL: they are not),
// and with whether only one thread may run it (locked).
void goroutine_label(struct ticker *ticker, struct goroutine_entry *entry, const char *labels,
                     const char *lack);

// Does the same with those of one that a thread runs, as it was last seen. What was at their
// address then may be another's by now, if the goroutine has got others since.
void goroutine_label_running(struct ticker *ticker, struct goroutine_entry *entry);

// Gives one that C's code on that thread has begun, which has no function of its own to begin with,
// the thread's name.
void goroutine_name_after(struct ticker *ticker, const struct goroutine_entry *entry,
                          const struct target_thread *thread);

// Returns the stack's id in the profile, with the goroutine's creator as root if it is whole.
uint32_t goroutine_intern(struct ticker *ticker, struct goroutine_entry *entry,
                          const struct unwound *unwound);
