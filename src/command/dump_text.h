// SPDX-License-Identifier: MIT
// dump_text: writes a dump for people: problems first, equal stacks once.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct dump;

struct dump_text_options {
	bool all_frames;    // each frame on a line of its own, and all of deep stacks
	bool no_group;      // each thread by itself
	int64_t blocked_ns; // who has waited for longer is told first (dump_blocked); 0: nobody
};

// Writes the dump, whose threads are sorted. Errors stay in the stream's error indicator.
void dump_text_write(const struct dump *dump, const struct dump_text_options *options,
                     FILE *stream);
