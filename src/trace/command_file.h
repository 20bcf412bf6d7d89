// SPDX-License-Identifier: MIT
// command_file: finds the file that a command is, and why the kernel would not execute it.
#pragma once

#include <stdbool.h>

// Returns the path of the file, as execvp(3) finds it; NULL: there is none that may be executed.
// The caller frees it.
char *command_file_find(const char *command);

// Checks whether the file's first line has a NUL, so that it is no script: what the kernel does not
// execute of these, no shell may either.
bool command_file_is_binary(const char *path);

// Returns what the file needs and is missing: a script's interpreter, or a program's loader. NULL:
// nothing. The caller frees it.
char *command_file_lacks(const char *path);
