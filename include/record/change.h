// SPDX-License-Identifier: MIT
// change: how much a rate differs between two measurements, and how sure that is. Plain values in,
// plain values out.
//
// A measurement is one or more stretches of time, cut into bins of equal length. The rate is the
// sum of the bins' values divided by the sum of their totals: of time in a function, by time. Bins
// that follow each other are alike, as a program stays in a phase for a while. So the variance is
// that of blocks of bins ("batch means", Conway 1963), several times as long as the values stay
// correlated: the correlation time is summed up to a window of 5 times itself (Sokal, Monte Carlo
// Methods in Statistical Mechanics, 1989). Threads are added up before: they share locks, CPUs and
// requests, and so are no independent measurements.
//
// Of many functions some always differ by chance. Holm's correction (Scandinavian Journal of
// Statistics 6, 1979) keeps the probability of even one false alarm below the level, however the
// functions depend on each other: a caller and its callee do. Benjamini and Hochberg's would only
// keep the share of false alarms among all alarms, and a build that fails wants the former.
#pragma once

#include <stddef.h>

struct change_stretch {
	const double *values, *totals; // of each bin; borrowed
	size_t n;
};

// One side: the stretches of its recordings.
struct change_side {
	const struct change_stretch *stretches;
	size_t n;
};

struct change {
	double before, after;           // rates
	double variance[2], freedom[2]; // of these, and their degrees of freedom; 0: not known
	double dispersion,
	    dispersion_freedom; // variance between recordings, by that within; 0: one
	size_t block_bins;      // the length of a block
};

// Compares the sides. `least` is the smallest value that can be measured, such as a tick's period:
// each side's sum is taken to be uncertain by that much at both of its ends.
struct change change_find(const struct change_side *before, const struct change_side *after,
                          double least);

// Adds to n functions' variances what recordings of one side differ more than they vary within. Few
// recordings tell little of a function, but there are many functions: each function's ratio of the
// two is moderated by the mean of all (Smyth, Statistical Applications in Genetics and Molecular
// Biology 3, 2004). Does nothing with one recording a side.
void change_disperse(struct change *changes, size_t n);

// Returns the change relative to before: 0.12 for 12 % more; infinite if there was nothing before.
double change_relative(const struct change *change);

// Returns the half width of its confidence interval at the level, such as 0.95; infinite if it is
// not known.
double change_half_width(const struct change *change, double level);

// Returns the probability that two sides with the same rate differ by as much as these (two-sided).
double change_p(const struct change *change);

// Returns the probability that `after` is as large as it is, or larger, if it really is
// (1 + margin) times what was before (one-sided).
double change_p_more(const struct change *change, double margin);

// Corrects n probabilities for being n (Holm), in place.
void change_correct(double *p, size_t n);

// Returns how many times as long both sides would have to be for a half width of `margin` at 95 %.
double change_times_as_long(const struct change *change, double margin);

// Adds up the values.
double change_sum(const double *values, size_t n);
