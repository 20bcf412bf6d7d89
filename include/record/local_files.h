// SPDX-License-Identifier: MIT
// local_files: finds the files of code that a recording names on this machine, by their build IDs.
#pragma once

struct modules;

// Looks for each file at its path, first below `root` if that is not NULL and then below /, and by
// its build ID among the debug files of /usr/lib/debug. Does not take a file of another build; if
// none was recorded, it takes a file only if it is the same inode. If a file is not found,
// module->unreadable says so. With a root, whose files who samples has just looked for, leaves out
// those that could not be opened there.
void local_files_find(struct modules *modules, const char *root);
