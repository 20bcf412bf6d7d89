// SPDX-License-Identifier: MIT
#include "idle_check.h"

#include "clock.h"
#include "machine_load.h"
#include "target.h"
#include "thread_sums.h"
#include "tracee.h"

enum {
	LEAVE_NS_PER_THREAD = 100,
	FEW_THREADS = 16, // looking at this many takes no longer than the sums take
	// With more threads than this the sums and the clock take long, 7 ms each for 30,000: ask
	// for the sums only if the clock does not tell.
	MANY_THREADS = 1000,
	// After so many ticks in a row in which some thread had run, the answer is taken to be the
	// same, and is asked for only in one tick of so many.
	BUSY_TICKS = 4,
	MAX_TRIES = 3, // for figures that belong together, while threads come and go on the CPUs
};

void idle_check_init(struct idle_check *check, const struct thread_sums *sums,
                     const struct machine_load *load)
{
	*check = (struct idle_check){.sums = sums, .load = load, .clock_ns = -1};
}

// True if the figures of many threads may be read: not while somebody may stop, and be held
// meanwhile.
static bool may_read(const struct target *target)
{
	return target->n_threads <= MANY_THREADS || !tracee_has_any();
}

// True if no thread has been given a CPU since the sum was last read.
static bool runs_stay(struct idle_check *check, const struct target *target)
{
	const uint64_t last_runs = check->runs;
	const bool had_runs = check->has_runs;
	struct proc_schedstat sum = {0};

	check->has_runs = thread_sums_read(check->sums, target->pid, &sum);
	check->runs = sum.runs;
	return had_runs && check->has_runs && check->runs == last_runs;
}

static int64_t read_clock(const struct target *target)
{
	return clock_read_ns(clock_of_process(target->pid));
}

// True if the clock has moved since it was last read, or cannot be read.
static bool clock_moved(struct idle_check *check, const struct target *target)
{
	const int64_t last_ns = check->clock_ns;

	check->clock_ns = read_clock(target);
	return check->clock_ns < 0 || check->clock_ns != last_ns;
}

// True if the process's CPU clock, which has not moved, tells enough: nothing else on the machine
// runs or is ready either, and so no thread of the process. Other work often lasts only some
// microseconds: waits for it, for a small part of the time that it takes to look at all threads.
static bool is_alone(struct idle_check *check, const struct target *target, long n_others)
{
	const int64_t until_ns = clock_now_ns() + (int64_t)target->n_threads * LEAVE_NS_PER_THREAD;

	if (n_others < 0)
		return false;
	while (machine_load_others(check->load) != 0)
		if (clock_now_ns() > until_ns)
			return false;
	return !clock_moved(check, target);
}

static enum idle_answer ask(struct idle_check *check, const struct target *target, long n_others)
{
	const bool has_sums = thread_sums_are_known(check->sums);

	if (has_sums && target->n_threads > FEW_THREADS && target->n_threads <= MANY_THREADS)
		return runs_stay(check, target) ? IDLE_YES : IDLE_NO;
	if (clock_moved(check, target))
		return IDLE_NO;
	if (n_others == 0 || (!has_sums && is_alone(check, target, n_others)))
		return IDLE_YES;
	// With many threads, the last sum was also read on an unsure tick. If one of them has run
	// since, its time is in the clock, or it still runs and is in the sum.
	return target->n_threads > MANY_THREADS && runs_stay(check, target) ? IDLE_YES
	                                                                    : IDLE_UNSURE;
}

// What is not read now is compared with older figures the next time: that errs towards IDLE_NO.
enum idle_answer idle_check_since_last(struct idle_check *check, const struct target *target,
                                       long n_others)
{
	if (!may_read(target))
		return IDLE_NO;
	if (check->n_busy >= BUSY_TICKS && check->n_busy++ % BUSY_TICKS != 0)
		return IDLE_NO;
	const enum idle_answer answer = ask(check, target, n_others);
	if (answer != IDLE_NO)
		check->n_busy = 0;
	else if (check->n_busy < BUSY_TICKS)
		check->n_busy++;
	return answer;
}

// Sums up what was last read of each thread. `reread`: reads anew those that may run, but does not
// store it: a thread's next look compares with what its last look saw.
static struct proc_schedstat sum_up(const struct target *target, bool reread)
{
	struct proc_schedstat sum = {0};

	for (size_t i = 0; i < target->n_threads; i++) {
		const struct target_thread *thread = target->threads[i];
		struct proc_schedstat own = thread->last;
		if (reread && !thread->look_later)
			proc_read_schedstat(thread->schedstat_fd, target->pid, thread->tid, &own);
		sum.cpu_ns += own.cpu_ns;
		sum.delay_ns += own.delay_ns;
		sum.runs += own.runs;
		target_attend(target, i);
	}
	return sum;
}

// Returns what the process shows beyond its threads: never less than the truth, and more if threads
// were switched since they were read.
static struct proc_schedstat rest_of(const struct idle_check *check, const struct target *target,
                                     bool reread)
{
	const struct proc_schedstat threads = sum_up(target, reread);
	struct proc_schedstat whole;

	if (!thread_sums_read(check->sums, target->pid, &whole))
		return (struct proc_schedstat){.cpu_ns = read_clock(target) - threads.cpu_ns};
	return (struct proc_schedstat){
	    .delay_ns = whole.delay_ns - threads.delay_ns,
	    .runs = whole.runs - threads.runs,
	};
}

// Compares all figures: the count of runs alone could be the same by chance.
static bool is_same(const struct proc_schedstat *a, const struct proc_schedstat *b)
{
	return a->cpu_ns == b->cpu_ns && a->delay_ns == b->delay_ns && a->runs == b->runs;
}

// True if the rest is what it was when it was last read; if not, stores the new one.
static bool rest_stays(struct idle_check *check, const struct target *target, bool reread)
{
	const int max_tries = target->n_threads <= MANY_THREADS ? MAX_TRIES : 1;
	struct proc_schedstat rest = {0};

	for (int i = 0; i < max_tries; i++, reread = true) {
		rest = rest_of(check, target, reread);
		if (is_same(&rest, &check->rest))
			return true;
	}
	check->rest = rest;
	return false;
}

bool idle_check_is_valid(struct idle_check *check, const struct target *target, bool has_woken,
                         bool has_stopped)
{
	const bool known = check->known;

	return may_read(target) && rest_stays(check, target, has_stopped) && known &&
	       (!has_woken || thread_sums_are_known(check->sums));
}

void idle_check_settle(struct idle_check *check, const struct target *target)
{
	if (!may_read(target))
		return;
	// If a sleeper had run meanwhile, the rest would be smaller than before.
	const bool stays = rest_stays(check, target, true);

	check->known = target->sees_schedstat && stays;
}
