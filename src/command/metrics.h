// metrics: a run's own figures as JSON, for programs.
#pragma once

#include <stdbool.h>

struct error;
struct profile;
struct run;

// Writes one object on one line to the file, in place of what stood there. `pid`: of the target;
// `ended`: sampling is over.
struct error *metrics_write(const char *path, int pid, bool ended, const struct run *run,
                            const struct profile *profile);
