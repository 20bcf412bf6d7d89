// SPDX-License-Identifier: MIT
// debug_file: the file with a module's debug information, where that is separate.
//
// Looked for where libdwfl would: below /usr/lib/debug by build ID, then by the name that the
// module gives beside it, in .debug there, and below /usr/lib/debug. That name is of the module's
// making, and libdwfl opens whatever stands there: a pipe would be waited for, a device set off.
// Directories of the user's are searched in the same way before; in each also for the bare name.
// Here files are opened by untrusted_file, with the rights of the process that the module is from
// where the module names the place; and only those that belong to the module are taken.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_user;

// Where a module's files are looked for.
struct debug_places {
	const char *const *directories; // the user's, NULL-terminated; NULL: none; borrowed
	const struct file_user *user;   // whose rights are those of what the module names; borrowed
};

struct debug_file_wanted {
	struct debug_places places;
	const char *module_path; // of the file that asks for it
	const char *name;        // .gnu_debuglink's or .gnu_debugaltlink's; NULL: none
	const void *build_id;    // that it must have
	size_t build_id_size;    // 0: unknown; then
	uint32_t crc;            // its CRC-32 must be that; 0: unknown
	bool shared;             // of several debug files (dwz(1)): `name` may be a path
};

// True if the file behind fd has that build ID.
bool debug_file_has_build_id(int fd, const void *build_id, size_t build_id_size);

// Opens the DWARF package of the module, PATH.dwp: in the user's directories, else beside the
// module. Its units are known by their ids. -1: there is none.
int debug_file_open_package(const struct debug_places *places, const char *module_path);

// Opens a .dwo file that was compiled to `path`: in the user's directories, DIR/PATH or DIR/NAME.
// -1: there is none.
int debug_file_open_split(const struct debug_places *places, const char *path);

// The same where it was compiled to.
int debug_file_open_compiled(const struct debug_places *places, const char *path);

// Opens the debug file; -1: there is none. *ret_path is its path, owned by the caller.
int debug_file_open(const struct debug_file_wanted *wanted, char **ret_path);
