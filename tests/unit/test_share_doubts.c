// SPDX-License-Identifier: MIT
// When the shares of a profile are said to be uncertain.
#include <string.h>

#include "clock.h"
#include "memory.h"
#include "profile.h"
#include "share_doubts.h"
#include "unit.h"

enum { PERIOD_NS = 10 * NS_PER_MS };

// Threads that ticks found running and asleep by turns, for a tick each.
struct threads {
	int count, ticks;
	int64_t cpu_ns; // of each, as the kernel counts; -1: it does not tell
};

static struct profile made;

static uint32_t add_thread(int64_t begin_ns)
{
	const int tid = 7 + (int)made.n_threads;

	return profile_add_thread(&made, 7, tid, "t", begin_ns);
}

static void add_threads(const struct threads *threads)
{
	const uint32_t stack = profile_intern_stack(&made, NULL, 0, STACK_COMPLETE, 0);

	for (int i = 0; i < threads->count; i++) {
		const uint32_t thread = add_thread(0);
		for (int j = 1; j <= threads->ticks; j++)
			profile_count(&made, thread, stack,
			              j % 2 ? THREAD_RUNNING : THREAD_SLEEPING, WAIT_NONE, 1,
			              (int64_t)j * PERIOD_NS);
		for (int end = 0; end < 2 && threads->cpu_ns >= 0; end++)
			profile_note_figures(
			    &made, thread,
			    &(struct thread_figures){
			        .at_ns = end ? (int64_t)threads->ticks * PERIOD_NS : 1,
			        .cpu_ns = end ? threads->cpu_ns : 0});
	}
}

// The text about a profile of these threads; it is over or grows still.
static char *tell(const struct threads *a, const struct threads *b, int64_t late_ns, bool is_over)
{
	made = (struct profile){.period_ns = PERIOD_NS, .late_ns = late_ns};
	add_threads(a);
	add_threads(b);
	profile_end_watch(&made, (int64_t)a->ticks * PERIOD_NS);
	made.duration_ns = is_over ? (int64_t)a->ticks * PERIOD_NS : 0;
	char *text = share_doubts_text(&made);
	profile_deinit(&made);
	return text;
}

static const struct threads none = {0}, right = {2, 400, 2000 * NS_PER_MS}, hidden = {2, 400, -1},
                            wrong = {2, 400, 3000 * NS_PER_MS}, idler = {2, 400, 1000 * NS_PER_MS},
                            brief = {100, 8, 0}, few = {20, 8, 0};

static const struct {
	const struct threads *a, *b;
	int64_t late_ns;
	const char *text; // NULL: nothing is said
} cases[] = {
    {&right, &none, 9 * NS_PER_MS, NULL},
    {&hidden, &none, 9 * NS_PER_MS, NULL},
    {&none, &none, 9 * NS_PER_MS, NULL},
    {&wrong, &none, 0,
     "which functions used the CPU may be wrong in part: samples saw 4.00 s of running, the "
     "kernel counted 6.00 s (totals are the kernel's)"},
    {&idler, &none, 0,
     "which functions used the CPU may be wrong in part: samples saw 4.00 s of running, the "
     "kernel counted 2.00 s (totals are the kernel's)"},
    // By chance, or of short threads, of which the kernel's count is only a part.
    {&(struct threads){1, 16, 160 * NS_PER_MS}, &none, 0, NULL},
    {&right, &brief, 0, NULL},
    // Short threads matter only where ticks were late, and if they are many.
    {&right, &few, 9 * NS_PER_MS, NULL},
    {&right, &brief, NS_PER_MS / 2, NULL},
    {&right, &brief, 3 * NS_PER_MS,
     "50 % of the time belongs to threads with fewer than 16 samples, and one sample in ten was "
     "over 3.0 ms late: how that time divides is uncertain (as root, samples come in time)"},
    {&wrong, &brief, 3 * NS_PER_MS,
     "which functions used the CPU may be wrong in part: samples saw 4.00 s of running, the "
     "kernel counted 6.00 s (totals are the kernel's); 50 % of the time belongs to threads with "
     "fewer than 16 samples, and one sample in ten was over 3.0 ms late: how that time divides is "
     "uncertain (as root, samples come in time)"},
    // All are short in a short run.
    {&(struct threads){9, 15, 0}, &none, 9 * NS_PER_MS, NULL},
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		_cleanup_free_ char *text = tell(cases[i].a, cases[i].b, cases[i].late_ns, true);
		if (!cases[i].text != !text || (text && strcmp(text, cases[i].text) != 0))
			fail_msg("case %zu: %s", i, text ?: "nothing");
	}
}

// What the kernel has counted since the last figures is not known while sampling goes on; and
// threads that sleep on have samples that are not counted yet.
static void test_grows(void **state)
{
	const int64_t now_ns = 2 * NS_PER_SECOND;

	(void)state;
	for (int told = 0; told < 2; told++) {
		made = (struct profile){.period_ns = PERIOD_NS, .late_ns = 9 * NS_PER_MS};
		const uint32_t stack = profile_intern_stack(&made, NULL, 0, STACK_COMPLETE, 0);
		for (int i = 0; i < 8; i++) {
			const uint32_t thread = add_thread(0), sleeper = add_thread(0);
			profile_count(&made, sleeper, stack, THREAD_SLEEPING, WAIT_NONE, 1,
			              PERIOD_NS);
			for (int64_t ns = PERIOD_NS; ns <= now_ns; ns += PERIOD_NS)
				profile_count(&made, thread, stack, THREAD_RUNNING, WAIT_NONE, 1,
				              ns);
			profile_take_figures(&made, thread, &(struct thread_figures){.at_ns = 1});
			profile_take_figures(
			    &made, thread,
			    &(struct thread_figures){.at_ns = told ? now_ns : now_ns / 2,
			                             .cpu_ns = now_ns / 2});
		}
		_cleanup_free_ char *text = share_doubts_text(&made);
		if (told)
			assert_non_null(strstr(text, "samples saw 16.00 s of running"));
		else
			assert_null(text);
		profile_deinit(&made);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_texts),
	    cmocka_unit_test(test_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
