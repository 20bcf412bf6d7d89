// SPDX-License-Identifier: MIT
// held_time: how the books of held threads are kept, with given times and a file of the test's
// making in the place of the sampler's own schedstat.
#include "unit.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "held_time.h"
#include "run_stats.h"
#include "tracee.h"
#include "untrusted_file.h"
#include "untrusted_text.h"
#include "writing.h"

enum {
	LONG_NS = 1000000, // longer than a hold should be
	TRIES = 3,
};

struct fixture {
	struct run_stats stats;
	struct held_time hold;
	FILE *schedstat;
};

// The sampler has waited for a CPU so long in all.
static void set_delay(struct fixture *fixture, int64_t delay_ns)
{
	char text[64];
	const int n = snprintf(text, sizeof(text), "1 %020jd 1\n", (intmax_t)delay_ns);

	assert_int_equal(pwrite(fileno(fixture->schedstat), text, (size_t)n, 0), n);
}

static int begin(void **state)
{
	static struct fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	fixture.schedstat = tmpfile();
	assert_non_null(fixture.schedstat);
	set_delay(&fixture, 0);
	held_time_init(&fixture.hold, &fixture.stats, NULL);
	close(fixture.hold.own_schedstat_fd);
	fixture.hold.own_schedstat_fd = fileno(fixture.schedstat);
	*state = &fixture;
	return 0;
}

static int end(void **state)
{
	struct fixture *fixture = *state;

	fixture->hold.own_schedstat_fd = -1; // the stream closes it
	held_time_deinit(&fixture->hold);
	fclose(fixture->schedstat);
	return 0;
}

// Each thread counts by itself; the time for which some thread was held is the union of all.
static void test_union(void **state)
{
	static const struct {
		int64_t start_ns, end_ns, held_ns;
	} cases[] = {
	    {1000, 3000, 2000}, // the first one
	    {2000, 5000, 4000}, // overlaps it
	    {4000, 5000, 4000}, // lies within
	    {9000, 9500, 4500}, // lies apart
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		held_time_add(&fixture->hold, cases[i].start_ns, cases[i].end_ns);
		assert_int_equal(fixture->stats.held_ns, cases[i].held_ns);
		assert_int_equal(fixture->stats.stops, i + 1);
		assert_int_equal(fixture->stats.thread_hold.total, i + 1);
	}
	assert_int_equal(fixture->stats.thread_hold.max_ns, 3000);
}

// Nobody was held before the time at which all were last seen not to have stopped.
static void test_none_before(void **state)
{
	struct fixture *fixture = *state;

	held_time_note_none(&fixture->hold, LONG_NS);
	held_time_add(&fixture->hold, 0, LONG_NS + 700);
	assert_int_equal(fixture->stats.held_ns, 700);
	assert_int_equal(fixture->stats.thread_hold.max_ns, 700);
	// A look shortly after the last one is not noted: it would cost more than it tells.
	held_time_note_none(&fixture->hold, LONG_NS + 1000);
	assert_int_equal(fixture->hold.quiet_ns, LONG_NS);
}

// What of a long hold the sampler waited for a CPU is told apart, but never more than the hold.
static void test_waiting(void **state)
{
	static const struct {
		int64_t hold_ns, delay_ns, waiting_ns;
	} cases[] = {
	    {LONG_NS, 0, 0},
	    {LONG_NS, 300000, 300000},
	    {LONG_NS, 3 * LONG_NS, LONG_NS},
	    {1000, 500, 0}, // too short to be looked at
	};
	struct fixture *fixture = *state;
	int64_t now_ns = 1000, delay_ns = 0, waiting_ns = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		delay_ns += cases[i].delay_ns;
		waiting_ns += cases[i].waiting_ns;
		set_delay(fixture, delay_ns);
		held_time_add(&fixture->hold, now_ns, now_ns + cases[i].hold_ns);
		assert_int_equal(fixture->stats.held_waiting_ns, waiting_ns);
		now_ns += 2 * cases[i].hold_ns;
	}
}

// Without schedstat nothing is known of it, and nothing is told apart.
static void test_unknown_waiting(void **state)
{
	struct fixture *fixture = *state;

	fixture->hold.own_schedstat_fd = -1;
	held_time_add(&fixture->hold, 1000, 1000 + LONG_NS);
	assert_int_equal(fixture->stats.held_ns, LONG_NS);
	assert_int_equal(fixture->stats.held_waiting_ns, 0);
}

// A tick has what was held until the next one begins; one without a hold is not counted.
static void test_ticks(void **state)
{
	struct fixture *fixture = *state;

	held_time_settle_tick(&fixture->hold);
	assert_int_equal(fixture->stats.tick_hold.total, 0);
	held_time_add(&fixture->hold, 1000, 1200);
	held_time_add(&fixture->hold, 1300, 1400);
	held_time_settle_tick(&fixture->hold);
	held_time_settle_tick(&fixture->hold);
	assert_int_equal(fixture->stats.tick_hold.total, 1);
	assert_int_equal(fixture->stats.tick_hold.max_ns, 300);
}

static void serve_nobody(void *context)
{
	(void)context;
}

static void compute(void)
{
	const int64_t until_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + 4 * LONG_NS;

	while (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		continue;
}

static void sleep_long(void)
{
	usleep(LONG_NS / 1000);
}

static void sleep_and_compute(void)
{
	sleep_long();
	compute();
}

static pid_t first_child(void)
{
	int pid = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &pid), 1);
	fclose(file);
	return pid;
}

// The process that opens files answers only after a while, and no signal comes meanwhile.
static void wait_for_opener(void)
{
	const pid_t opener = first_child();

	kill(opener, SIGSTOP);
	const pid_t waker = (pid_t)syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL);
	if (waker == 0) {
		usleep(10 * LONG_NS / 1000);
		kill(opener, SIGCONT);
		_exit(0);
	}
	free(untrusted_command(getpid()));
	waitpid(waker, NULL, __WALL);
}

// A pipe is full, and is read after a while; no signal comes meanwhile.
static void wait_for_reader(void)
{
	static char bytes[1 << 20];
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	const pid_t reader = (pid_t)syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL);
	if (reader == 0) {
		close(fds[1]);
		usleep(10 * LONG_NS / 1000);
		while (read(fds[0], bytes, sizeof(bytes)) > 0)
			continue;
		_exit(0);
	}
	assert_int_equal(writing_write(fds[1], bytes, sizeof(bytes)), 0);
	close(fds[0]);
	close(fds[1]);
	waitpid(reader, NULL, __WALL);
}

// For how long before the end of the work somebody may have been held, and for how long the test
// itself had no CPU in it.
static int64_t unsure_after(struct held_time *hold, void (*work)(void), int64_t *ret_off_cpu_ns)
{
	const int64_t start_ns = clock_now_ns(), cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	const bool begun = held_time_begin_work(hold);

	assert_true(begun);
	work();
	held_time_end_work(hold, begun);
	const int64_t end_ns = clock_now_ns();
	*ret_off_cpu_ns = end_ns - start_ns - (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
	return end_ns - hold->quiet_ns;
}

// A stop that comes while the sampler computes, or waits for a file to be opened or for a reader,
// is noticed at once; but perhaps not while it waits in the kernel, for a disk or a lock.
static void test_waits_at_work(void **state)
{
	static const struct {
		void (*work)(void);
		int64_t deaf_ns, listened_ns; // at least
	} cases[] = {
	    {compute, 0, 0},
	    {sleep_long, LONG_NS, 0},
	    {sleep_and_compute, LONG_NS, 0},
	    {wait_for_opener, 0, 9 * LONG_NS},
	    {wait_for_reader, 0, 9 * LONG_NS},
	};
	struct held_time *hold = &((struct fixture *)*state)->hold;
	struct sigaction action;

	free(untrusted_command(getpid()));
	const pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	hold->server.serve = serve_nobody;
	tracee_setup();
	sigaction(SIGCHLD, NULL, &action);
	action.sa_flags |= SA_NOCLDSTOP;
	sigaction(SIGCHLD, &action, NULL);
	assert_int_equal(tracee_seize(pid, pid), TRACEE_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool noticed = false;
		// The test may lose its CPU between two of its clocks.
		for (int tries = 0; tries < TRIES && !noticed; tries++) {
			int64_t off_cpu_ns;
			const int64_t unsure_ns = unsure_after(hold, cases[i].work, &off_cpu_ns);
			assert_true(unsure_ns >= cases[i].deaf_ns);
			noticed = unsure_ns < off_cpu_ns - cases[i].listened_ns + LONG_NS / 2;
		}
		assert_true(noticed);
	}
	hold->no_room = true; // for a copy of somebody who had stopped before
	int64_t unused;
	assert_true(unsure_after(hold, compute, &unused) >= 4 * LONG_NS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	untrusted_file_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_union, begin, end),
	    cmocka_unit_test_setup_teardown(test_none_before, begin, end),
	    cmocka_unit_test_setup_teardown(test_waiting, begin, end),
	    cmocka_unit_test_setup_teardown(test_waits_at_work, begin, end),
	    cmocka_unit_test_setup_teardown(test_unknown_waiting, begin, end),
	    cmocka_unit_test_setup_teardown(test_ticks, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
