// SPDX-License-Identifier: MIT
// top_save: what is looked at in `profiler top`, written to a file: a dump, a page, pprof.
//
// A process of its own writes it, from a copy of what is known: the screen goes on meanwhile.
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct options;
struct top_source;

struct top_save {
	pid_t pid; // that writes; 0: none does
	int fd;    // what it says; -1: none does
};

struct top_save_part {
	char what;              // 'd': a dump of the end, 'S': a page, 'p': pprof
	int64_t from_ns, to_ns; // since the start
};

// Begins; a save that is under way already stays alone.
void top_save_start(struct top_save *save, const struct options *options, struct top_source *source,
                    const struct top_save_part *part);

// Waits until it is done; returns in words what became of it, owned by the caller.
char *top_save_finish(struct top_save *save);
