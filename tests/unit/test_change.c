// SPDX-License-Identifier: MIT
// change: known distributions, and simulated programs: how often it sees a change where there is
// none, and whether it sees one that is there.
#include "unit.h"
#include <math.h>
#include <string.h>

#include "change.h"
#include "memory.h"

enum { N_FUNCTIONS = 20, MAX_BINS = 800, TICKS_IN_BIN = 6, MIN_TICKS = 50 };

static uint64_t seed = 88172645463325252u;

// Marsaglia's xorshift; from 0 to below 1.
static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) / 9007199254740992.0;
}

// A simulated recording: ticks in each function.
struct run {
	double values[N_FUNCTIONS][MAX_BINS], totals[MAX_BINS];
	size_t n_bins;
};

// Some functions are called more often than others.
static int call(double *left, double stay, const double *slower)
{
	const double x = uniform();
	const int function = (int)(N_FUNCTIONS * x * x);

	*left -= log(1 - uniform()) * stay * (slower ? slower[function] : 1);
	return function;
}

// `threads` threads go from function to function and stay in each for `stay` ticks on average.
static void simulate(struct run *run, size_t n_bins, int threads, double stay, const double *slower)
{
	memset(run, 0, sizeof(*run));
	run->n_bins = n_bins;
	for (size_t i = 0; i < n_bins; i++)
		run->totals[i] = TICKS_IN_BIN;
	for (int thread = 0; thread < threads; thread++) {
		double left = 0;
		int function = call(&left, stay, slower);
		for (size_t tick = 0; tick < n_bins * TICKS_IN_BIN; tick++, left--) {
			while (left <= 0)
				function = call(&left, stay, slower);
			run->values[function][tick / TICKS_IN_BIN]++;
		}
	}
}

static double ticks(const struct run *run, int function)
{
	double sum = 0;

	for (size_t i = 0; i < run->n_bins; i++)
		sum += run->values[function][i];
	return sum;
}

static struct change compare(const struct run *a, const struct run *b, int function)
{
	const struct change_stretch before = {a->values[function], a->totals, a->n_bins},
	                            after = {b->values[function], b->totals, b->n_bins};

	return change_find(&(struct change_side){&before, 1}, &(struct change_side){&after, 1}, 1);
}

// Returns the functions that are said to have changed, as bits.
static unsigned int changed(const struct run *a, const struct run *b)
{
	double p[N_FUNCTIONS];
	int functions[N_FUNCTIONS];
	size_t n = 0;
	unsigned int bits = 0;

	for (int i = 0; i < N_FUNCTIONS; i++)
		if (ticks(a, i) + ticks(b, i) >= MIN_TICKS) {
			const struct change change = compare(a, b, i);
			functions[n] = i;
			p[n++] = change_p(&change);
		}
	change_correct(p, n);
	for (size_t i = 0; i < n; i++)
		bits |= p[i] < 0.05 ? 1u << functions[i] : 0;
	return bits;
}

static struct run runs[2];

// Phases from far below a tick to five seconds, a minute of each: in 5 % of the pairs at most there
// is one false alarm or more, give or take what 200 pairs leave to chance (3 standard errors).
static void test_false_alarms(void **state)
{
	static const double stays[] = {0.3, 3, 30, 300};
	enum { N_PAIRS = 200 };
	int all = 0;

	(void)state;
	for (size_t i = 0; i < array_size(stays); i++) {
		int n = 0;
		for (int pair = 0; pair < N_PAIRS; pair++) {
			simulate(&runs[0], MAX_BINS, 3, stays[i], NULL);
			simulate(&runs[1], MAX_BINS, 3, stays[i], NULL);
			n += changed(&runs[0], &runs[1]) != 0;
		}
		print_message("# %.1f ticks a call: %d of %d pairs\n", stays[i], n, N_PAIRS);
		assert_true(n <= N_PAIRS * 0.05 + 3 * sqrt(N_PAIRS * 0.05 * 0.95));
		all += n;
	}
	assert_true(all >= 4 * N_PAIRS * 0.01); // nor is it blind
}

// A function that is slower by half is found, alone, in 18 of 20 pairs.
static void test_finds(void **state)
{
	enum { N_PAIRS = 100, SLOW = 2 };
	double slower[N_FUNCTIONS];
	int n_found = 0, n_best = 0;

	(void)state;
	for (int i = 0; i < N_FUNCTIONS; i++)
		slower[i] = i == SLOW ? 1.5 : 1;
	for (int pair = 0; pair < N_PAIRS; pair++) {
		simulate(&runs[0], MAX_BINS, 3, 1, NULL);
		simulate(&runs[1], MAX_BINS, 3, 1, slower);
		n_found += (changed(&runs[0], &runs[1]) >> SLOW & 1) != 0;
		const struct change change = compare(&runs[0], &runs[1], SLOW);
		// All that it takes more, the others take less.
		const double truth =
		    (1.5 * change.before / (1 + 0.5 * change.before / 3)) / change.before - 1;
		n_best +=
		    fabs(change_relative(&change) - truth) <= change_half_width(&change, 0.95);
	}
	print_message("# found in %d of %d; the interval holds the truth in %d\n", n_found, N_PAIRS,
	              n_best);
	assert_true(n_found >= 90);
	assert_true(n_best >= 88);
}

// Several recordings a side, each with a level of its own: no change, though each pair of
// recordings differs beyond doubt.
static void test_recordings_differ(void **state)
{
	enum { N = 5, N_BINS = 100, N_PAIRS = 300 };
	static double values[2][N][N_BINS], totals[N_BINS];
	struct change_stretch stretches[2][N];
	int n = 0;

	(void)state;
	for (int i = 0; i < N_BINS; i++)
		totals[i] = 1;
	for (int pair = 0; pair < N_PAIRS; pair++) {
		for (int side = 0; side < 2; side++)
			for (int i = 0; i < N; i++) {
				const double level = 0.4 + 0.2 * uniform();
				for (int j = 0; j < N_BINS; j++)
					values[side][i][j] = level + 0.1 * (uniform() - 0.5);
				stretches[side][i] =
				    (struct change_stretch){values[side][i], totals, N_BINS};
			}
		struct change change = change_find(&(struct change_side){stretches[0], N},
		                                   &(struct change_side){stretches[1], N}, 0.01);
		change_disperse(&change, 1);
		n += change_p(&change) < 0.05;
	}
	print_message("# %d of %d pairs\n", n, N_PAIRS);
	assert_true(n <= N_PAIRS * 0.05 + 3 * sqrt(N_PAIRS * 0.05 * 0.95));
}

static void test_holm(void **state)
{
	double p[] = {0.04, 0.01, 0.03, 0.6};
	const double expected[] = {0.09, 0.04, 0.09, 0.6};

	(void)state;
	change_correct(p, 4);
	for (int i = 0; i < 4; i++)
		assert_float_equal(p[i], expected[i], 1e-12);
	change_correct(p, 0);
}

// Student's t of printed tables: 2.228 and 1.96 are the 95 % points for 10 and many degrees of
// freedom.
static void test_student(void **state)
{
	struct change change = {.before = 1, .after = 1, .variance = {0.5, 0.5}, .freedom = {5, 5}};

	(void)state;
	assert_float_equal(change_half_width(&change, 0.95), 2.228, 0.001);
	assert_float_equal(change_p(&change), 1, 1e-9);
	change.after = 1 + 2.228;
	assert_float_equal(change_p(&change), 0.05, 0.0001);
	assert_float_equal(change_p_more(&change, 0), 0.025, 0.0001);
	change.freedom[0] = change.freedom[1] = 1e6;
	change.after = 1;
	assert_float_equal(change_half_width(&change, 0.95), 1.96, 0.001);
	assert_float_equal(change_times_as_long(&change, 0.98), 4, 0.01);
}

// What cannot be told is not told.
static void test_too_little(void **state)
{
	enum { N = 24 };
	(void)state;
	double one[N], none[N] = {0};
	for (int i = 0; i < N; i++)
		one[i] = 1;
	const struct change_stretch full = {one, one, N}, empty = {none, one, N},
	                            no_bins = {one, one, 0};
	const struct change_side sides[] = {{&full, 1}, {&empty, 1}, {&no_bins, 1}, {NULL, 0}};

	for (size_t i = 0; i < array_size(sides); i++)
		for (size_t j = 0; j < array_size(sides); j++) {
			const struct change change = change_find(&sides[i], &sides[j], 0.01);
			const double p = change_p(&change);
			assert_true(p >= 0 && p <= 1);
			assert_true(change_half_width(&change, 0.95) >= 0);
			if (i == j || i > 1 || j > 1)
				assert_float_equal(p, 1, 1e-9);
		}
	// All of it gone: that is no chance, as it never varied.
	const struct change change = change_find(&sides[0], &sides[1], 0.01);
	assert_true(change_p(&change) < 1e-3);
	assert_float_equal(change_relative(&change), -1, 1e-9);
	const struct change new = change_find(&sides[1], &sides[0], 0.01);
	assert_true(isinf(change_relative(&new)) && isinf(change_half_width(&new, 0.95)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_false_alarms),      cmocka_unit_test(test_finds),
	    cmocka_unit_test(test_recordings_differ), cmocka_unit_test(test_holm),
	    cmocka_unit_test(test_student),           cmocka_unit_test(test_too_little),
	};

	return cmocka_run_group_tests_name("change", tests, NULL, NULL);
}
