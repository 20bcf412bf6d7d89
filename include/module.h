// module: the ELF files (and other places) that the target's code lies in.
//
// A module is known by its file (device, inode) and path, not by where it is mapped, so dlclose,
// dlopen and exec do not mix modules up; it stays in the table until the end, when its symbols
// are looked up. Each file's Dwfl holds it alone, at bias 0: every address given to libdw is an
// address in the file.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Dwfl_Module Dwfl_Module; // <elfutils/libdwfl.h>
typedef struct Dwfl Dwfl;
typedef struct Elf Elf; // <libelf.h>

enum module_kind {
	MODULE_FILE,	  // an ELF file; addresses are the file's
	MODULE_VDSO,	  // the kernel's, copied out of the target; likewise
	MODULE_ANONYMOUS, // code without a file (JIT); addresses are the target's
	MODULE_UNKNOWN,	  // no mapping holds the address; likewise
};

// An executable mapping of the module, as first seen (pprof's Mapping).
struct module_mapping {
	uint64_t start, end;  // addresses in the target
	uint64_t file_offset; // of start
	uint64_t bias;	      // address in the target - address in the file
};

enum { MODULE_MAX_BUILD_ID = 64 };

struct module {
	enum module_kind kind;
	char *path; // as /proc/PID/maps has it, without " (deleted)"; "[vdso]", "[anon]", "[unknown]"
	uint64_t device, inode;
	struct module_mapping *mappings; // at least one, but for MODULE_UNKNOWN
	size_t n_mappings, mappings_capacity;
	uint8_t build_id[MODULE_MAX_BUILD_ID];
	size_t build_id_size; // 0: none

	// Private to module.c.
	int fd;
	bool opened;
	Dwfl *dwfl;
	Dwfl_Module *dwfl_module;
	struct module_segment *segments;
	size_t n_segments;
	void *image; // MODULE_VDSO: the copy
	size_t image_size;
};

struct modules {
	struct module **items; // pointers stay valid as the table grows
	size_t count, capacity;
};

// The module's last path component, or the path itself when it is in brackets. Owned by module.
const char *module_name(const struct module *module);

// libdw's view of the module at bias 0, opened at the first call; NULL when it is no ELF file
// that can be read (any more). Owned by the module.
Dwfl_Module *module_dwfl(struct module *module);
