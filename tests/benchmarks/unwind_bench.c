// SPDX-License-Identifier: MIT
// unwind_bench PID SNAPSHOTS INTERVAL_MS: what a frame costs, warm. Copies the stack of a live
// process's main thread again and again, a random while apart, and then unwinds every copy many
// times, by turns with our unwinder and with libdw's own; in CPU time of this thread, medians of
// the rounds. Says "name value" lines.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "address_space.h"
#include "arch.h"
#include "clock.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "rule_cache.h"
#include "snapshot.h"
#include "tracee.h"
#include "unwind.h"
#include "unwind_libdw.h"

enum {
	MAX_FRAMES = 100000,
	ROUNDS = 15,
	ROUND_NS = 20000000, // of ours, in each round
};

struct bench {
	int pid;
	struct modules modules;
	struct address_space space;
	struct profile profile;
	struct rule_cache rules;
	struct unwinder unwinder;
	struct unwind_libdw *libdw;
	uint64_t *pcs; // libdw's, MAX_FRAMES
	struct snapshot_buffer buffer;
	struct snapshot_hint hint;
	struct snapshot *snapshots;
	size_t n_snapshots;
	int passes; // of ours over all snapshots, in each round
};

static int64_t cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

// Unwinds and interns all copies once; returns the number of frames.
static uint64_t unwind_ours(struct bench *bench, bool intern)
{
	uint64_t n = 0;

	for (size_t i = 0; i < bench->n_snapshots; i++) {
		struct unwound unwound;
		unwinder_unwind(&bench->unwinder, &bench->snapshots[i], &unwound);
		n += unwound.n;
		if (intern)
			profile_intern_stack(&bench->profile, unwound.locations, unwound.n,
			                     unwound.end, unwound.guessed);
	}
	return n;
}

static uint64_t unwind_theirs(struct bench *bench)
{
	uint64_t n = 0;

	for (size_t i = 0; i < bench->n_snapshots; i++)
		n += unwind_libdw_unwind(bench->libdw, bench->pid, &bench->snapshots[i], bench->pcs,
		                         MAX_FRAMES);
	return n;
}

// One more copy; false: the process has gone.
static bool take(struct bench *bench)
{
	struct snapshot *snapshot = &bench->snapshots[bench->n_snapshots];
	struct registers registers;
	struct tracee_stop stop;
	struct unwound unwound;
	uint64_t tls;

	if (!snapshot_buffer_has_room(&bench->buffer) ||
	    tracee_seize(bench->pid, bench->pid) != TRACEE_OK ||
	    tracee_interrupt(bench->pid) != TRACEE_OK ||
	    tracee_wait(bench->pid, &stop) != TRACEE_STOPPED)
		return false;
	address_space_update(&bench->space, bench->pid, clock_now_ns(), true);
	const bool copied =
	    tracee_registers(bench->pid, &stop, &registers, &tls) &&
	    snapshot_capture(bench->pid, ARCH_NATIVE, &registers, &bench->space.maps, &bench->hint,
	                     &bench->buffer, snapshot);
	tracee_release(bench->pid, &stop);
	if (!copied)
		return false;
	bench->n_snapshots++;
	unwinder_unwind(&bench->unwinder, snapshot, &unwound);
	if (unwound.base > registers.value[ARCH_NATIVE->sp]) {
		bench->hint.base = unwound.base;
		if (unwound.base - registers.value[ARCH_NATIVE->sp] > bench->hint.depth)
			bench->hint.depth = unwound.base - registers.value[ARCH_NATIVE->sp];
	}
	return true;
}

static void take_all(struct bench *bench, size_t n, long interval_ms)
{
	bench->snapshots = memory_alloc_zeroed(n, sizeof(*bench->snapshots));
	srandom(1);
	while (bench->n_snapshots < n && take(bench)) {
		// Not in step with whatever the target does in turns.
		const struct timespec rest = clock_timespec(
		    interval_ms * NS_PER_MS / 2 + random() % (interval_ms * NS_PER_MS + 1));
		nanosleep(&rest, NULL);
	}
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

static double time_ours(struct bench *bench, bool intern)
{
	const int64_t start_ns = cpu_ns();
	uint64_t n = 0;

	for (int i = 0; i < bench->passes; i++)
		n += unwind_ours(bench, intern);
	return (double)(cpu_ns() - start_ns) / (double)n;
}

static double time_theirs(struct bench *bench)
{
	const int64_t start_ns = cpu_ns();
	const uint64_t n = unwind_theirs(bench);

	return n ? (double)(cpu_ns() - start_ns) / (double)n : 0;
}

static void measure(struct bench *bench)
{
	double ours[ROUNDS], interned[ROUNDS], theirs[ROUNDS];
	int64_t start_ns = cpu_ns();
	const uint64_t n = unwind_ours(bench, true);
	const int64_t pass_ns = cpu_ns() - start_ns;
	const uint64_t n_theirs = unwind_theirs(bench); // opens the modules

	bench->passes = 1 + (int)(ROUND_NS / (pass_ns + 1));
	for (int i = 0; i < ROUNDS; i++) {
		ours[i] = time_ours(bench, false);
		interned[i] = time_ours(bench, true);
		theirs[i] = time_theirs(bench);
	}
	printf("snapshots %zu\nframes %.1f\nlibdw_frames %.1f\nours_ns %.1f\ninterned_ns %.1f\n"
	       "libdw_ns %.1f\nrules %ju\nlocations %zu\n",
	       bench->n_snapshots, (double)n / (double)bench->n_snapshots,
	       (double)n_theirs / (double)bench->n_snapshots, median(ours), median(interned),
	       median(theirs), (uintmax_t)bench->rules.n_made, bench->profile.n_locations);
}

int main(int argc, char **argv)
{
	struct bench bench = {0};

	if (argc != 4 || !snapshot_buffer_init(&bench.buffer))
		return 2;
	bench.pid = atoi(argv[1]);
	tracee_setup();
	address_space_init(&bench.space, &bench.modules, bench.pid);
	address_space_update(&bench.space, bench.pid, clock_now_ns(), true);
	unwinder_init(&bench.unwinder, &bench.space, &bench.profile, &bench.rules, MAX_FRAMES);
	bench.libdw = unwind_libdw_create();
	bench.pcs = memory_alloc(MAX_FRAMES * sizeof(*bench.pcs));
	take_all(&bench, strtoul(argv[2], NULL, 10), atol(argv[3]));
	if (bench.n_snapshots == 0) {
		fprintf(stderr, "no snapshot of process %d\n", bench.pid);
		return 1;
	}
	measure(&bench);
	free(bench.snapshots);
	free(bench.pcs);
	unwind_libdw_destroy(bench.libdw);
	unwinder_deinit(&bench.unwinder);
	rule_cache_deinit(&bench.rules);
	profile_deinit(&bench.profile);
	address_space_deinit(&bench.space);
	modules_deinit(&bench.modules);
	snapshot_buffer_deinit(&bench.buffer);
	return 0;
}
