// SPDX-License-Identifier: MIT
// command_file: finds the file that a command is, and why the kernel would not execute it.
#pragma once

#include <stdbool.h>

// Reads the interpreter that the first line of a file names ("#!"), as the kernel does
// (load_script in its fs/binfmt_script.c).
enum {
	SCRIPT_LINE_BYTES = 256, // the kernel's BINPRM_BUF_SIZE
	SCRIPT_MAX_DEPTH = 5,    // scripts whose interpreter is a script (exec_binprm)
};

struct script {
	char interpreter[SCRIPT_LINE_BYTES];
	bool has_argument;
};

// Reads the file at the path. False if it is not a script, or cannot be read.
bool script_read(const char *path, struct script *ret);

// Returns the path of the file, as execvp(3) finds it; NULL: there is none that may be executed.
// The caller frees it.
char *command_file_find(const char *command);

// Checks whether the file's first line has a NUL, so that it is no script: what the kernel does not
// execute of these, no shell may either.
bool command_file_is_binary(const char *path);

// Returns what the file needs and is missing: a script's interpreter, or a program's loader. NULL:
// nothing. The caller frees it.
char *command_file_lacks(const char *path);
