// SPDX-License-Identifier: MIT
// v8_layout: where the fields of V8's objects are.
//
// V8 exports constants for debuggers (v8dbg_*, made by tools/gen-postmortem-metadata.py in its
// sources), with names that change from version to version, and not all that is needed. So each
// version that is known has a row here; where the file exports a constant of the row, both must be
// the same, or the version is not read.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Dwfl_Module Dwfl_Module; // <elfutils/libdwfl.h>

// Offsets are in bytes from the object's address, which is its pointer - 1.
struct v8_layout {
	int32_t major, minor;

	// Instance types: what an object's Map says of it. All types of strings are smaller than
	// `non_string`.
	int32_t first_function, last_function, bytecodes, shared, scope, script, non_string;

	int32_t function_shared; // JSFunction -> SharedFunctionInfo
	int32_t shared_name;     // name_or_scope_info
	int32_t shared_script;
	int32_t scope_first; // the number of the word where ScopeInfo's names begin
	int32_t scope_start; // the function's first character; 0: it comes after the names
};

enum {
	// The same in all of them.
	V8_MAP_TYPE = 12,
	V8_STRING_LENGTH = 12,
	V8_STRING_DATA = 16,   // characters; or the first, parent or other string
	V8_STRING_SECOND = 24, // the second string, the place in the parent, or external characters
	V8_SCRIPT_SOURCE = 8,
	V8_SCRIPT_NAME = 16,
	V8_SCRIPT_FIRST_LINE = 24,
	V8_SCRIPT_ID = 64,
	V8_SCRIPT_BYTES = 72,
	V8_SHARED_LITERAL = 20, // after `shared_script`: the function's number in its script
	V8_SHARED_BYTES = 64,   // that are read of a SharedFunctionInfo
	V8_LAYOUTS = 4,         // known versions
};

enum v8_layout_result {
	V8_LAYOUT_NONE, // the file does not have V8
	V8_LAYOUT_KNOWN,
	V8_LAYOUT_UNKNOWN, // V8 is there, but not as any known version
};

// Finds the layout by the symbols that the file exports. *ret_major is V8's version, if it has one.
// Call it in guarded work.
enum v8_layout_result v8_layout_find(Dwfl_Module *module, const struct v8_layout **ret,
                                     int *ret_major);

// Returns the i-th known layout.
const struct v8_layout *v8_layout_of(size_t i);
