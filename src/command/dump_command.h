// SPDX-License-Identifier: MIT
// dump_command: `profiler dump`.
#pragma once

struct options;

// Writes the dumps that the options ask for, reports errors on stderr, and returns the exit status.
int dump_command(const struct options *options);
