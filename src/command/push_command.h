// SPDX-License-Identifier: MIT
// push_command: `profiler push`.
#pragma once

struct error;
struct options;

// Sends the files that options->push names, or tells what would be sent (--dry-run).
struct error *push_command(const struct options *options);
