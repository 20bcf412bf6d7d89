// SPDX-License-Identifier: MIT
// dump_command: `profiler dump`.
#pragma once

struct options;

// Does it, tells of errors on stderr, and returns the exit status.
int dump_command(const struct options *options);
