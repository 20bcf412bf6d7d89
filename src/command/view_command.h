// view_command: `profiler view FILE`: shows a recording, a folded profile or a page in a browser.
#pragma once

struct error;
struct options;

// Writes the page, for this user alone, into $XDG_RUNTIME_DIR or /tmp, prints its name and opens
// it, where there is a display and a browser.
struct error *view_command(const struct options *options);
