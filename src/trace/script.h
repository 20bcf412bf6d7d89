// SPDX-License-Identifier: MIT
// script: reads the interpreter that the first line of a file names ("#!"), as the kernel does
// (load_script in its fs/binfmt_script.c).
#pragma once

#include <stdbool.h>

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
