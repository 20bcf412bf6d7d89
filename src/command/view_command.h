// SPDX-License-Identifier: MIT
// view_command: `profiler view FILE`: shows a recording, folded stacks, a pprof profile or a page.
#pragma once

struct error;
struct options;

// Writes a page that only this user may read to $XDG_RUNTIME_DIR or /tmp, prints its name, and
// opens it if there is a display and a browser.
struct error *view_command(const struct options *options);
