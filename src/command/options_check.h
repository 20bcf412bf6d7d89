// SPDX-License-Identifier: MIT
// options_check: checks that the options of a command line go together.
#pragma once

struct error;
struct options;

// Returns NULL, or an error (EXIT_STATUS_USAGE) that says what to do.
struct error *options_check(const struct options *options);
