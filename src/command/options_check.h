// SPDX-License-Identifier: MIT
// options_check: what no single option shows: is the whole of a command line consistent?
#pragma once

struct error;
struct options;

// NULL, or a mistake of the user's (EXIT_STATUS_USAGE); it says what to do.
struct error *options_check(const struct options *options);
