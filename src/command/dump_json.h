// SPDX-License-Identifier: MIT
// dump_json: writes a dump as one line of JSON, for programs; profiler(1) describes it.
#pragma once

#include <stdio.h>

struct dump;

// Writes the dump, whose threads are sorted. Errors stay in the stream's error indicator.
void dump_json_write(const struct dump *dump, FILE *stream);
