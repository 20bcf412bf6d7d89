// SPDX-License-Identifier: MIT
// push_command: `profiler push`.
#pragma once

struct error;
struct options;

struct error *push_command(const struct options *options);
