// SPDX-License-Identifier: MIT
// debug_file: finds the file with a module's debug information, if that is separate.
//
// It looks where libdwfl would: below /usr/lib/debug by build ID, then by the name that the module
// gives, beside the module, in .debug there, and below /usr/lib/debug. The user's directories are
// searched first, in the same way, and each also for the bare name. The module may give any name,
// and libdwfl would open whatever has it: it would wait for a pipe, or set off a device. So files
// are opened by untrusted_file, with the rights of the module's process if the module names the
// place, and only a file that belongs to the module is taken.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_user;

// The places where a module's files are looked for.
struct debug_places {
	const char *const *directories; // the user's, NULL-terminated; NULL: none; borrowed
	const struct file_user *user;   // whose rights apply to what the module names; borrowed
};

struct debug_file_wanted {
	struct debug_places places;
	const char *module_path; // of the file that asks for it
	const char *name;        // .gnu_debuglink's or .gnu_debugaltlink's; NULL: none
	const void *build_id;    // the one that it must have
	size_t build_id_size;    // 0: unknown; then
	uint32_t crc;            // the CRC-32 that it must have; 0: unknown
	bool shared;             // several debug files share it (dwz(1)): `name` may be a path
};

// True if the file behind fd has that build ID.
bool debug_file_has_build_id(int fd, const void *build_id, size_t build_id_size);

// Opens the DWARF package of the module, PATH.dwp: in the user's directories, or else beside the
// module. Its units are known by their ids. -1: there is none.
int debug_file_open_package(const struct debug_places *places, const char *module_path);

// Opens a .dwo file that was compiled to `path`, in the user's directories: DIR/PATH or DIR/NAME.
// -1: there is none.
int debug_file_open_split(const struct debug_places *places, const char *path);

// Does the same at `path` itself.
int debug_file_open_compiled(const struct debug_places *places, const char *path);

// Opens the debug file; -1: there is none. *ret_path is its path, owned by the caller.
int debug_file_open(const struct debug_file_wanted *wanted, char **ret_path);
