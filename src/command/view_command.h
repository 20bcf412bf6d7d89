// SPDX-License-Identifier: MIT
// view_command: `profiler view FILE`: shows a recording, folded stacks, a pprof profile or a page..
#pragma once

struct error;
struct options;

// Writes the page, for this user alone, into $XDG_RUNTIME_DIR or /tmp, prints its name and opens
// it, where there is a display and a browser.
struct error *view_command(const struct options *options);
