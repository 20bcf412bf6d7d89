// SPDX-License-Identifier: MIT
// report_command: `profiler report FILE`: a recording turned into any other format.
#pragma once

struct error;
struct options;

// Does it, and says on stderr what it found.
struct error *report_command(const struct options *options);
