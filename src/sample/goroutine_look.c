// SPDX-License-Identifier: MIT
#include "goroutine_look.h"

#include "clock.h"
#include "goroutine_parked.h"
#include "goroutine_samples.h"
#include "goroutine_time.h"
#include "run_stats.h"
#include "target.h"
#include "tick.h"

enum {
	LOOK_SHARE = 50,   // looks may take at most one part in this many of the time
	TICK_SHARE = 4,    // and such a part of a period in a tick
	CHECK_ONCE = 4096, // entries, between looks at the clock
	MAX_LAST_LOOKS = 4 // at those of which nothing is known but that they ran
};

#define FIRST_LOOK_NS (50 * NS_PER_MS) // before the first tick

static const int64_t NO_LIMIT = INT64_MAX;

// Returns since when and in which tick one is counted that is new to the table. It stands for those
// that were at its place since the last look.
static void begin_new(struct ticker *ticker, struct goroutine_entry *entry,
                      const struct goroutine *goroutine)
{
	const struct goroutine_samples *samples = &ticker->goroutines;
	const bool was_looked_at = samples->looked_ns != 0;

	goroutine_begin(ticker, entry, goroutine,
	                was_looked_at ? samples->tick : samples->look.first_tick,
	                was_looked_at ? samples->looked_ns : samples->look.from_ns);
}

static void look_at(struct ticker *ticker, const struct goroutine *goroutine)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	struct goroutine_entry *entry = goroutine_table_get(&samples->table, goroutine->address);

	if (entry->is_alive && goroutine_is_another(samples, entry, goroutine))
		goroutine_end(ticker, entry);
	if (!entry->is_alive)
		begin_new(ticker, entry, goroutine);
	entry->look = samples->look.number;
	if (goroutine->m)
		goroutine_samples_note_thread(ticker, goroutine->m);
	samples->look.system += entry->thread == GOROUTINE_NONE;
	if (entry->thread == GOROUTINE_NONE)
		return;
	if (goroutine->m && !goroutine_is_in_c(goroutine))
		goroutine_samples_attend(samples, entry);
	if (goroutine_is_in_c(goroutine) && !entry->bound_tid) {
		entry->seen = *goroutine;
		goroutine_count_as_before(ticker, entry, samples->tick, ticker->accounting.now_ns);
	}
	if (goroutine_is_parked(goroutine) &&
	    (ticker->accounting.priming ||
	     !goroutine_is_counted(ticker, entry, ticker->accounting.now_ns)))
		goroutine_count_parked(ticker, entry, goroutine);
}

// Looks at goroutines that were run and are not any more: they need not wait for the next look.
static void look_at_active(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const struct go_memory memory = goroutine_memory(ticker);
	size_t kept = 0;

	for (size_t i = 0; i < samples->n_active; i++) {
		const uint32_t id = samples->active[i];
		struct goroutine_entry *entry = &samples->table.entries[id];
		struct goroutine goroutine;
		if (!entry->is_active || !entry->is_alive || entry->thread == GOROUTINE_NONE) {
			entry->is_active = false;
			continue;
		}
		if (!goroutine_is_counted(ticker, entry, ticker->accounting.now_ns) &&
		    goroutine_read(&samples->program, &memory, entry->seen.address, &goroutine)) {
			if (goroutine_is_another(samples, entry, &goroutine) ||
			    goroutine.status == GOROUTINE_DEAD)
				goroutine_end(ticker, entry);
			else if (goroutine_is_parked(&goroutine))
				goroutine_count_parked(ticker, entry, &goroutine);
		}
		samples->active[kept++] = id;
		target_attend(ticker->target, i);
	}
	samples->n_active = kept;
	goroutine_count_copied(ticker);
}

// False if the list cannot be read.
static bool begin(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	struct run_goroutines *figures = &ticker->stats->goroutines;
	const struct go_memory memory = goroutine_memory(ticker);

	if (!goroutine_list_read(&samples->list, &samples->program, &memory)) {
		if (figures->looks == 0)
			figures->refused = "its list of goroutines cannot be read";
		return false;
	}
	figures->refused = NULL;
	figures->looks++;
	figures->left_out = samples->list.n_left_out;
	samples->look = (struct goroutine_look){
	    .number = samples->look.number + 1,
	    .is_begun = true,
	    .first_tick = samples->tick,
	    .from_ns = ticker->accounting.from_ns,
	    .began_ns = ticker->accounting.now_ns,
	};
	return true;
}

// Looks at some hundred; false if there are no more.
static bool look_at_next(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const struct go_memory memory = goroutine_memory(ticker);

	if (!goroutine_list_next(&samples->list, &samples->program, &memory))
		return false;
	samples->look.alive += samples->list.count;
	for (size_t i = 0; i < samples->list.count; i++) {
		look_at(ticker, &samples->list.items[i]);
		target_attend(ticker->target, i);
	}
	return true;
}

// Ends some of those that were not listed; false if there are no more.
static bool end_some(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	struct goroutine_look *look = &samples->look;

	for (size_t i = 0; i < CHECK_ONCE && look->n_checked < samples->table.n_entries; i++) {
		struct goroutine_entry *entry = &samples->table.entries[look->n_checked++];
		if (entry->is_alive && entry->look != look->number)
			goroutine_end(ticker, entry);
		target_attend(ticker->target, i);
	}
	return look->n_checked < samples->table.n_entries;
}

static void end(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;

	ticker->stats->goroutines.alive = samples->look.alive;
	ticker->stats->goroutines.system = samples->look.system;
	samples->look.is_begun = false;
	samples->looked_ns = samples->look.began_ns;
	if (ticker->accounting.priming)
		return;
	samples->is_read = true;
	samples->next_look_ns = clock_now_ns() + samples->look.cost_ns * LOOK_SHARE;
}

// Goes on until that time, or the look's end.
static void go_on(struct ticker *ticker, int64_t until_ns)
{
	struct goroutine_look *look = &ticker->goroutines.look;
	struct run_goroutines *figures = &ticker->stats->goroutines;
	const int64_t cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	bool is_over = false;

	do {
		if (!look->is_listed)
			look->is_listed = !look_at_next(ticker);
		else
			is_over = !end_some(ticker);
	} while (!is_over && clock_now_ns() < until_ns);
	goroutine_count_copied(ticker);
	const int64_t cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	look->cost_ns += cost_ns;
	figures->look_ns += cost_ns;
	figures->first_looks_ns += ticker->goroutines.is_read ? 0 : cost_ns;
	if (is_over)
		end(ticker);
	else if (ticker->accounting.priming)
		look->is_begun = false; // those that were read are counted by the next one
}

static int64_t end_of_share(const struct ticker *ticker, int64_t now_ns)
{
	if (ticker->setup->counts_at_once)
		return NO_LIMIT;
	return now_ns + (ticker->accounting.priming ? FIRST_LOOK_NS
	                                            : ticker->profile->period_ns / TICK_SHARE);
}

bool goroutine_look_at_some(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const int64_t now_ns = clock_now_ns();

	look_at_active(ticker);
	if (!samples->look.is_begun && (now_ns < samples->next_look_ns || !begin(ticker)))
		return false;
	go_on(ticker, end_of_share(ticker, now_ns));
	return true;
}

void goroutine_look_at_last(struct ticker *ticker)
{
	const struct goroutine_samples *samples = &ticker->goroutines;

	if (!samples->is_read && (samples->look.is_begun || begin(ticker)))
		go_on(ticker, NO_LIMIT);
	for (int i = 0; i < MAX_LAST_LOOKS && samples->n_active > 0; i++)
		look_at_active(ticker);
}
