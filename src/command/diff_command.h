// SPDX-License-Identifier: MIT
// diff_command: `profiler diff A B`: what has changed from one recording, or folded profile, to
// another.
#pragma once

struct error;
struct options;

// Does it: folded output in two columns (diff_folded.h), or pprof with A's samples negative.
struct error *diff_command(const struct options *options);
