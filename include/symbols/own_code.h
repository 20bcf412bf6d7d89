// SPDX-License-Identifier: MIT
// own_code: tells a program's own functions from those of its language, its libraries and the
// system, so that a table or a page can show an author's own code first.
//
// Own are the functions of executables and of libraries outside the system's folders. Not own are
// interpreters and virtual machines, and standard libraries and installed packages, as
// language_text tells them.
#pragma once

#include <stdbool.h>

#include "module.h"

struct function; // symbolize.h

// What is known of a function; "" where unknown.
struct code_place {
	enum module_kind kind;
	const char *path;        // of the module
	const char *name;        // of the function
	const char *system_name; // as in the symbol table
	const char *file;        // of the source
};

// Returns true if the function is of the program's own code.
bool own_code(const struct code_place *place);

// Returns the same for a function in the module; NULL: one without a name.
bool own_code_function(const struct module *module, const struct function *function);
