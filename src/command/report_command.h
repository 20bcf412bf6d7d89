// SPDX-License-Identifier: MIT
// report_command: `profiler report FILE`: turns a recording into any other format.
#pragma once

struct error;
struct options;
struct recording;

// Writes the report, and says on stderr what the recording holds.
struct error *report_command(const struct options *options);

// Does the same with a recording that has been opened, which it takes over.
struct error *report_recording(const struct options *options, struct recording *recording);
