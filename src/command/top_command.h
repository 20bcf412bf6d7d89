// top_command: what `profiler top` does.
#pragma once

struct error;
struct options;

// Shows what threads do, live or of a recording, as the options ask. An error is the caller's.
struct error *top_command(const struct options *options);
