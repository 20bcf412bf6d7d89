// SPDX-License-Identifier: MIT
// report_command: `profiler report FILE`: turns a recording into any other format.
#pragma once

struct error;
struct options;

// Writes the report, and says on stderr what the recording holds.
struct error *report_command(const struct options *options);
