// SPDX-License-Identifier: MIT
// explain_options: the command line of `profiler explain`.
#pragma once

struct error;
struct option_table;
struct options;

// The options of this verb alone.
extern const struct option_table explain_rows;

// For struct verb: explain_take_word takes a process or a recording; explain_check checks that
// there is one, and sets what is sampled and written.
struct error *explain_take_word(struct options *options, const char *word);
struct error *explain_check(struct options *options);
