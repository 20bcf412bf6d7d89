// SPDX-License-Identifier: MIT
#include "change.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "memory.h"

enum {
	WINDOW = 5,      // correlation times: up to there correlations are added up
	BLOCK_TIMES = 6, // correlation times: a block
	MIN_BLOCK_BINS = 4,
	PRIOR_FREEDOM = 10, // of the mean dispersion, beside that of a function's own
	MAX_STEPS = 300,    // of the continued fraction
};

#define LEAST_PART 1e-3

// The incomplete beta function's continued fraction (Abramowitz and Stegun, 26.5.8), by Lentz's
// method.
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);

	d = 1 / (fabs(d) < tiny ? tiny : d);
	double result = d;
	for (int i = 1; i <= MAX_STEPS; i++) {
		const double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
		const double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
		d = 1 / (1 + even * d);
		c = 1 + even / c;
		result *= c * d;
		d = 1 / (1 + odd * d);
		c = 1 + odd / c;
		result *= c * d;
		if (fabs(c * d - 1) < 1e-13)
			break;
	}
	return result;
}

// The regularized incomplete beta function.
static double beta(double a, double b, double x)
{
	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	const double front =
	    exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));

	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
	                                 : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// The probability of a Student's t beyond |t|, on both sides.
static double student_p(double t, double freedom)
{
	return isinf(t) ? 0 : beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

// The t beyond which, on both sides, there is the probability p.
static double student_t(double p, double freedom)
{
	double low = 0, high = 1;

	while (student_p(high, freedom) > p && high < 1e12)
		high *= 2;
	for (int i = 0; i < 60; i++) {
		const double middle = (low + high) / 2;
		*(student_p(middle, freedom) > p ? &low : &high) = middle;
	}
	return high;
}

double change_sum(const double *values, size_t n)
{
	double total = 0;

	for (size_t i = 0; i < n; i++)
		total += values[i];
	return total;
}

// A side's bins, as they differ from its rate.
struct residuals {
	double rate, total;
	struct change_stretch *stretches; // their values are the differences
	double *values;
	size_t n;
};

static void residuals_init(struct residuals *ret, const struct change_side *side)
{
	double value = 0, total = 0;
	size_t n = 0;

	for (size_t i = 0; i < side->n; i++) {
		value += change_sum(side->stretches[i].values, side->stretches[i].n);
		total += change_sum(side->stretches[i].totals, side->stretches[i].n);
		n += side->stretches[i].n;
	}
	*ret = (struct residuals){
	    .rate = total > 0 ? value / total : 0,
	    .total = total,
	    .stretches = memory_alloc_zeroed(side->n + 1, sizeof(*ret->stretches)),
	    .values = memory_alloc_zeroed(n + 1, sizeof(*ret->values)),
	    .n = side->n,
	};
	double *values = ret->values;
	for (size_t i = 0; i < side->n; i++) {
		const struct change_stretch *from = &side->stretches[i];
		ret->stretches[i] = (struct change_stretch){values, from->totals, from->n};
		for (size_t j = 0; j < from->n; j++)
			*values++ = from->values[j] - ret->rate * from->totals[j];
	}
}

static void residuals_deinit(struct residuals *residuals)
{
	free(residuals->stretches);
	free(residuals->values);
}

// The sum of the products of bins that are `lag` apart.
static double products(const struct residuals *residuals, size_t lag)
{
	double total = 0;

	for (size_t i = 0; i < residuals->n; i++) {
		const struct change_stretch *stretch = &residuals->stretches[i];
		for (size_t j = lag; j < stretch->n; j++)
			total += stretch->values[j] * stretch->values[j - lag];
	}
	return total;
}

static size_t longest(const struct residuals *residuals)
{
	size_t n = 0;

	for (size_t i = 0; i < residuals->n; i++)
		if (residuals->stretches[i].n > n)
			n = residuals->stretches[i].n;
	return n;
}

// The length of a block, by how long the values of both sides stay correlated.
static size_t find_block_bins(const struct residuals *a, const struct residuals *b, double least)
{
	const double square = products(a, 0) + products(b, 0);
	const size_t n = longest(a) > longest(b) ? longest(a) : longest(b);
	// A function that is always there differs by rounding alone.
	const double noise = least * LEAST_PART * least * LEAST_PART * (double)n;
	double time = 1;

	for (size_t lag = 1; square > noise && lag < n && (double)lag < WINDOW * time; lag++)
		time += 2 * (products(a, lag) + products(b, lag)) / square;
	const double bins = ceil(BLOCK_TIMES * time);
	return bins > MIN_BLOCK_BINS ? (size_t)bins : MIN_BLOCK_BINS;
}

// The variance of a sum, of which these are the parts.
struct spread {
	double variance, freedom;
};

static struct spread spread_of(double squares, size_t n)
{
	struct spread spread = {0};

	if (n >= 2) {
		spread.freedom = (double)(n - 1);
		spread.variance = squares * (double)n / spread.freedom;
	}
	return spread;
}

static struct spread spread_of_blocks(const struct residuals *residuals, size_t block_bins)
{
	double squares = 0;
	size_t n = 0;

	for (size_t i = 0; i < residuals->n; i++) {
		const struct change_stretch *stretch = &residuals->stretches[i];
		const size_t whole = stretch->n / block_bins, n_blocks = whole ? whole : 1;
		for (size_t j = 0; j < n_blocks; j++) {
			const size_t first = j * stretch->n / n_blocks,
			             end = (j + 1) * stretch->n / n_blocks;
			const double value = change_sum(stretch->values + first, end - first);
			squares += value * value;
		}
		n += n_blocks;
	}
	return spread_of(squares, n);
}

static struct spread spread_of_stretches(const struct residuals *residuals)
{
	double squares = 0;

	for (size_t i = 0; i < residuals->n; i++) {
		const double value =
		    change_sum(residuals->stretches[i].values, residuals->stretches[i].n);
		squares += value * value;
	}
	return spread_of(squares, residuals->n);
}

// Sets the change's variance on that side, and adds up by how much its stretches differ more than
// their blocks do.
static void find_variance(const struct residuals *residuals, int side, double least,
                          struct change *change)
{
	const struct spread within = spread_of_blocks(residuals, change->block_bins);
	const struct spread between = spread_of_stretches(residuals);
	const double end = least * fmax(1, residuals->rate);

	if (within.freedom == 0 || residuals->total <= 0)
		return;
	change->variance[side] =
	    (within.variance + 2 * end * end) / (residuals->total * residuals->total);
	change->freedom[side] = within.freedom;
	const double ratio =
	    between.variance / residuals->total / residuals->total / change->variance[side];
	change->dispersion += between.freedom * ratio;
	change->dispersion_freedom += between.freedom;
}

struct change change_find(const struct change_side *before, const struct change_side *after,
                          double least)
{
	struct residuals a, b;

	residuals_init(&a, before);
	residuals_init(&b, after);
	struct change change = {
	    .before = a.rate,
	    .after = b.rate,
	    .block_bins = find_block_bins(&a, &b, least),
	};
	find_variance(&a, 0, least, &change);
	find_variance(&b, 1, least, &change);
	if (change.dispersion_freedom > 0)
		change.dispersion /= change.dispersion_freedom;
	residuals_deinit(&a);
	residuals_deinit(&b);
	return change;
}

static double mean_dispersion(const struct change *changes, size_t n)
{
	double sum = 0, freedom = 0;

	for (size_t i = 0; i < n; i++) {
		sum += changes[i].dispersion * changes[i].dispersion_freedom;
		freedom += changes[i].dispersion_freedom;
	}
	return freedom > 0 ? sum / freedom : 1;
}

void change_disperse(struct change *changes, size_t n)
{
	const double mean = mean_dispersion(changes, n);

	for (size_t i = 0; i < n; i++) {
		struct change *change = &changes[i];
		const double own = change->dispersion_freedom, all = own + PRIOR_FREEDOM;
		if (own <= 0)
			continue;
		const double factor =
		    fmax(1, (own * change->dispersion + PRIOR_FREEDOM * mean) / all);
		for (int side = 0; side < 2; side++) {
			change->variance[side] *= factor;
			change->freedom[side] = fmin(change->freedom[side], all / 2);
		}
	}
}

double change_relative(const struct change *change)
{
	return change->before > 0 ? change->after / change->before - 1 : INFINITY;
}

// The standard error of after - factor * before, and its degrees of freedom (Welch, Biometrika 34,
// 1947). False: it is not known.
static bool find_error(const struct change *change, double factor, double *ret_error,
                       double *ret_freedom)
{
	const double a = factor * factor * change->variance[0], b = change->variance[1];

	if (change->freedom[0] <= 0 || change->freedom[1] <= 0 || a + b <= 0)
		return false;
	*ret_error = sqrt(a + b);
	*ret_freedom =
	    (a + b) * (a + b) / (a * a / change->freedom[0] + b * b / change->freedom[1]);
	return true;
}

double change_half_width(const struct change *change, double level)
{
	double error, freedom;

	if (change->before <= 0 ||
	    !find_error(change, change->after / change->before, &error, &freedom))
		return INFINITY;
	return student_t(1 - level, freedom) * error / change->before;
}

double change_p(const struct change *change)
{
	double error, freedom;

	if (!find_error(change, 1, &error, &freedom))
		return 1;
	return student_p((change->after - change->before) / error, freedom);
}

double change_p_more(const struct change *change, double margin)
{
	double error, freedom;

	if (!find_error(change, 1 + margin, &error, &freedom))
		return 1;
	const double t = (change->after - (1 + margin) * change->before) / error;
	const double p = student_p(t, freedom) / 2;
	return t > 0 ? p : 1 - p;
}

static int compare_pointed(const void *a, const void *b)
{
	const double p = **(double *const *)a, q = **(double *const *)b;

	return (p > q) - (p < q);
}

void change_correct(double *p, size_t n)
{
	_cleanup_free_ double **order = memory_alloc_zeroed(n + 1, sizeof(*order));
	double most = 0;

	for (size_t i = 0; i < n; i++)
		order[i] = &p[i];
	qsort(order, n, sizeof(*order), compare_pointed);
	for (size_t i = 0; i < n; i++) {
		most = fmax(most, fmin(1, *order[i] * (double)(n - i)));
		*order[i] = most;
	}
}

double change_times_as_long(const struct change *change, double margin)
{
	const double half_width = change_half_width(change, 0.95);

	return half_width * half_width / (margin * margin);
}
