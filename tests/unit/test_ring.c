// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "trigger.h"
#include "hash.h"
#include "memory.h"
#include "ring.h"
#include "slice.h"
#include "unit.h"

enum { PERIOD_NS = 1000, N_PLACES = 50 };

// Threads that are born, wander between ever new stacks, sleep and die, tick by tick.
struct world {
	struct profile profile;
	struct ring ring;
	uint64_t seed;
	int64_t now_ns;
	uint32_t threads[8];
	uint64_t n_counted[8]; // of each: ticks
	uint64_t total;
};

static uint64_t draw(struct world *world, uint64_t n)
{
	return hash_mix(world->seed++, 99) % n;
}

static uint32_t new_stack(struct world *world)
{
	uint32_t ids[20];
	const size_t n = 1 + draw(world, 20);

	for (size_t i = 0; i < n; i++)
		ids[i] = profile_intern_location(&world->profile, 0, draw(world, N_PLACES));
	return profile_intern_stack(&world->profile, ids, n, STACK_COMPLETE, false);
}

static void tick(struct world *world)
{
	struct profile *profile = &world->profile;

	world->now_ns += PERIOD_NS;
	for (size_t i = 0; i < array_size(world->threads); i++) {
		const uint32_t id = world->threads[i];
		const uint64_t dice = draw(world, 10);
		if (world->n_counted[i] > 0 && dice < 4) {
			profile_count_again(profile, profile->threads[id].span.sample, 1,
			                    world->now_ns);
		} else if (dice == 4 && world->n_counted[i] > 0) {
			profile_end_thread(profile, id);
			world->threads[i] = profile_add_thread(profile, 1, (int)world->seed,
			                                       "thread", world->now_ns);
			world->n_counted[i] = 0;
			continue;
		} else {
			profile_count(profile, id, new_stack(world),
			              (enum thread_state)draw(world, N_THREAD_STATES), WAIT_NONE, 1,
			              world->now_ns);
		}
		world->n_counted[i]++;
		world->total++;
	}
	ring_trim(&world->ring, world->now_ns);
	ring_collect(&world->ring);
}

static void world_init(struct world *world, int64_t window_ns, uint64_t max_bytes)
{
	*world = (struct world){.profile.period_ns = PERIOD_NS};
	for (size_t i = 0; i < array_size(world->threads); i++)
		world->threads[i] = profile_add_thread(&world->profile, 1, (int)i + 1, "thread", 0);
	profile_begin(&world->profile, 0);
	ring_init(&world->ring, window_ns, max_bytes, &world->profile);
}

static void world_deinit(struct world *world)
{
	ring_deinit(&world->ring);
	profile_deinit(&world->profile);
}

// However long it goes on, it takes no more memory, and nothing is lost from the books.
static void test_memory_is_bounded(void **state)
{
	struct world world;
	uint64_t n_samples = 0;

	(void)state;
	world_init(&world, 100 * PERIOD_NS, 1 << 20);
	for (int i = 0; i < 30000; i++)
		tick(&world);
	assert_true(world.total > 200000);
	assert_true(world.profile.samples_capacity <= 16384);
	assert_true(world.profile.stacks_capacity <= 16384);
	assert_true(world.profile.threads_capacity <= 16384);
	assert_true(world.ring.capacity * sizeof(struct span) <= 1 << 20);
	for (size_t i = 0; i < world.profile.n_samples; i++)
		n_samples += world.profile.samples[i].count;
	assert_int_equal(n_samples + world.profile.forgotten.by_end[STACK_COMPLETE], world.total);
	world_deinit(&world);
}

static uint64_t stack_hash(const struct profile *profile, const struct sample *sample)
{
	const struct stack *stack = &profile->stacks[sample->stack];
	uint64_t hash = hash_mix((uint64_t)profile->threads[sample->thread].tid, sample->state);

	for (uint32_t i = 0; i < stack->n_frames; i++)
		hash = hash_mix(
		    hash, profile->locations[profile->location_ids[stack->first + i]].address);
	return hash;
}

// A sum over a profile's samples that tells different ones apart.
static uint64_t content(const struct profile *profile)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profile->n_samples; i++)
		sum += stack_hash(profile, &profile->samples[i]) * profile->samples[i].count +
		       (uint64_t)profile->samples[i].wall_ns;
	return sum;
}

// The window is what a slice of the whole is, to the last sample, whatever was forgotten meanwhile.
static void test_window(void **state)
{
	(void)state;
	for (int n_ticks = 1; n_ticks < 8000; n_ticks = n_ticks * 2 + 3) {
		const int64_t window_ns = 300 * PERIOD_NS;
		struct world ringed, whole;
		struct slice window, all;
		world_init(&ringed, window_ns, 16 << 20);
		world_init(&whole, INT64_MAX / 4, (uint64_t)1 << 40); // forgets nothing
		whole.profile.collect_at = SIZE_MAX;
		slice_init(&all, n_ticks * PERIOD_NS - window_ns, INT64_MAX);
		profile_follow(&whole.profile, &all.follower);
		for (int i = 0; i < n_ticks; i++) {
			tick(&ringed);
			tick(&whole);
		}
		profile_end_spans(&whole.profile);
		const struct profile a = ring_view(&ringed.ring, ringed.now_ns, &window);
		const struct profile b = slice_view(&all, &whole.profile);
		assert_int_equal(content(&a), content(&b));
		assert_true(a.duration_ns <= window_ns + 1);
		slice_deinit(&window);
		slice_deinit(&all);
		world_deinit(&ringed);
		world_deinit(&whole);
	}
}

// Too little memory for the window: it is shorter, and says so.
static void test_too_small(void **state)
{
	struct world world;
	struct slice slice;

	(void)state;
	world_init(&world, INT64_MAX / 4, 1);
	for (int i = 0; i < 3000; i++)
		tick(&world);
	const struct profile view = ring_view(&world.ring, world.now_ns, &slice);
	assert_true(view.n_samples > 0);
	assert_true(view.duration_ns > 0 && view.duration_ns < 1000 * PERIOD_NS);
	slice_deinit(&slice);
	world_deinit(&world);
}

static void test_empty(void **state)
{
	struct world world;
	struct slice slice;

	(void)state;
	world_init(&world, 1000, 1 << 20);
	const struct profile view = ring_view(&world.ring, 0, &slice);
	assert_int_equal(view.n_samples, 0);
	slice_deinit(&slice);
	world_deinit(&world);
}

static void test_triggers(void **state)
{
	static const char *const good[] = {"death", "blocked>2s", "cpu>90", "cpu<0.5%",
	                                   "blocked>1m,cpu>200%,death"};
	static const char *const bad[] = {"",      "blocked", "blocked>", "blocked<2s",
	                                  "cpu>",  "cpu=5",   "death,",   "cpu>-1",
	                                  "Death", "cpu>5x",  "blocked>0"};

	(void)state;
	for (size_t i = 0; i < array_size(good); i++) {
		struct triggers triggers = {0};
		assert_true(triggers_parse(good[i], &triggers));
		assert_true(triggers.count > 0);
		assert_int_equal(triggers_want_death(&triggers), strstr(good[i], "death") != NULL);
	}
	for (size_t i = 0; i < array_size(bad); i++) {
		struct triggers triggers = {0};
		assert_false(triggers_parse(bad[i], &triggers));
		assert_int_equal(triggers.count, 0);
	}
}

// Told when a sleep becomes longer than that, once for each sleep.
static void test_blocked(void **state)
{
	struct profile profile = {.period_ns = NS_PER_SECOND};
	struct triggers triggers = {0};
	const uint32_t thread = profile_add_thread(&profile, 1, 77, "sleeper", 0);
	int n_told = 0;

	(void)state;
	assert_true(triggers_parse("blocked>2.5s", &triggers));
	for (int64_t s = 1; s <= 20; s++) {
		const int64_t now_ns = s * NS_PER_SECOND;
		if (s % 5 == 1) // wakes, and sleeps again at the same place
			profile_count(&profile, thread, 0, THREAD_SLEEPING, WAIT_NONE, 1, now_ns);
		else
			profile_count_again(&profile, profile.threads[thread].span.sample, 1,
			                    now_ns);
		_cleanup_free_ char *why = triggers_look(&triggers, &profile, 0, now_ns);
		if (!why)
			continue;
		n_told++;
		assert_string_equal(why, "thread 77 (sleeper) has been blocked for 3.000 s");
	}
	assert_int_equal(n_told, 4);
	profile_deinit(&profile);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_memory_is_bounded), cmocka_unit_test(test_window),
	    cmocka_unit_test(test_too_small),         cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_triggers),          cmocka_unit_test(test_blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
