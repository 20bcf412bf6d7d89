// SPDX-License-Identifier: MIT
// agent_list: lists what the agent would choose, and why (--list).
#pragma once

#include <stdio.h>

struct error;
struct options;

// Writes a line for each process, chosen ones first; kernel threads are only counted.
struct error *agent_list(const struct options *options, FILE *stream);
