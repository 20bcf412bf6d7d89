// SPDX-License-Identifier: MIT
// local_files: the files of code that a recording names, found on this machine by their build IDs.
#pragma once

struct modules;

// Looks up each file by its path (below `root`, if that is not NULL, and then in this machine's
// tree), and by its build ID among the debug files of /usr/lib/debug. A file of another build is
// not taken; one that was recorded without a build ID is taken only if it is the same inode. What
// is not found is noted in module->unreadable.
void local_files_find(struct modules *modules, const char *root);
