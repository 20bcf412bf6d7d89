// SPDX-License-Identifier: MIT
// top_save: writes what `profiler top` shows to a file: a dump, a page or pprof.
//
// A child process writes it from its copy of the memory, while the screen goes on.
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct options;
struct top_source;

struct top_save {
	pid_t pid; // the child that writes; 0: none
	int fd;    // what the child says; -1: no child
};

struct top_save_part {
	char what;              // 'd': a dump of the end, 'S': a page, 'p': pprof
	int64_t from_ns, to_ns; // since the start
};

// Begins to write; does nothing while an earlier save is under way.
void top_save_start(struct top_save *save, const struct options *options, struct top_source *source,
                    const struct top_save_part *part);

// Waits until the save is done. Returns a text that tells what became of it, owned by the caller.
char *top_save_finish(struct top_save *save);
