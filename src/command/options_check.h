// SPDX-License-Identifier: MIT
// options_check: checks that the options of a command line go together.
#pragma once

struct error;
struct options;

// Returns NULL, or an error (EXIT_STATUS_USAGE) that says what to do.
struct error *options_check(const struct options *options);

// Returns an error as above if files are to go to standard output (-o -); NULL else.
struct error *options_check_directory(const struct options *options);
