// SPDX-License-Identifier: MIT
// diff_command: `profiler diff A B`: shows what has changed from one recording, or folded profile,
// to another.
#pragma once

struct error;
struct options;

// Writes folded stacks with two columns (diff_folded.h), pprof with A's samples negative, or a page
// that compares the two.
struct error *diff_command(const struct options *options);
