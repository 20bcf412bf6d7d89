// SPDX-License-Identifier: MIT
// agent_list: what the agent would choose, and why (--list).
#pragma once

#include <stdio.h>

struct error;
struct options;

// A line for each process, those that are chosen first; kernel threads are only counted.
struct error *agent_list(const struct options *options, FILE *stream);
