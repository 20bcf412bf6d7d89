// SPDX-License-Identifier: MIT
// module: knows the ELF files (and other places) that hold the target's code.
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

#include "debug_file.h"
#include "file_user.h"
#include "guard.h"

typedef struct Dwarf Dwarf;             // <elfutils/libdw.h>
typedef struct Dwfl_Module Dwfl_Module; // <elfutils/libdwfl.h>
typedef struct Dwfl Dwfl;

enum module_kind {
	MODULE_FILE,      // an ELF file; addresses are the file's
	MODULE_VDSO,      // the kernel's, copied from the target; likewise
	MODULE_ANONYMOUS, // code without a file (JIT); addresses are the target's
	MODULE_UNKNOWN,   // no mapping holds the address; likewise
	MODULE_IMAGE,     // an ELF image of code without a file, copied out of the target, whose
	                  // addresses it has (gdb_jit)
	MODULE_RUNTIME,   // a language's frames, as its runtime has them: no code; addresses
	                  // are frame_names'
};

// An executable mapping of the module, as first seen (pprof's Mapping).
struct module_mapping {
	uint64_t start, end;  // addresses in the target
	uint64_t file_offset; // of start
	uint64_t bias;        // address in the target - address in the file
};

enum {
	MODULE_MAX_BUILD_ID = 64,
	MODULE_MAX_LANGUAGES = 8, // language.h's LANGUAGES_MAX
};

struct module_segment; // a PT_LOAD program header
struct mapping;        // maps.h
struct debug_sources;
struct frame_names;
struct function_ranges;
struct gopclntab;
struct perf_map;
struct symbol_table;

// What changes when a file is written to.
struct file_version {
	bool is_known;
	uint64_t size;
	int64_t time_s; // of the last modification
	uint32_t time_ns;
};

struct module {
	enum module_kind kind;
	char *path; // as /proc/PID/maps has it, without " (deleted)"; "[vdso]", "[anon]", "[jit]",
	            // "[unknown]", "[python]"
	uint64_t device, inode;
	struct file_user user;           // the rights with which the files that it names are opened
	struct module_mapping *mappings; // at least one if a sample lies in it, but for
	                                 // MODULE_UNKNOWN
	size_t n_mappings, mappings_capacity;
	uint8_t build_id[MODULE_MAX_BUILD_ID];
	size_t build_id_size; // 0: none

	uint32_t index;                            // its position in the table
	const struct debug_sources *debug_sources; // that of the table

	struct perf_map *perf_map;       // of a process's MODULE_ANONYMOUS; NULL: none; owned
	struct frame_names *frame_names; // of a MODULE_RUNTIME; else NULL; owned

	// Why it could not be read, or not completely: static text, or `told`; NULL if nothing is
	// wrong.
	const char *unreadable;
	char *told; // by the recording that it is from; NULL: nothing; owned

	// Private to module.c.
	int fd;                        // the file; -1: none
	struct file_version version;   // of the file, when it was opened
	int debug_fd, shared_debug_fd; // from a debug server; -1: none
	bool opened;
	Dwfl *dwfl;
	Dwfl_Module *dwfl_module;
	struct module_segment *segments; // sorted by file offset
	size_t n_segments;
	struct symbol_table *symbols;
	struct function_ranges *function_ranges; // function_range.c's; NULL: none was asked for
	struct gopclntab *gopclntab;
	bool looked_for_gopclntab;
	bool is_abandoned;           // libdw's view of it is in an unknown state
	bool looks_for_shared;       // find_debuginfo is at work on it
	bool has_shared;             // it has found the debug file that others share
	bool looked_for_debug_frame; // cfi.c has
	bool has_debug_frame;        // it has one
	bool looked_for_descriptor;  // address_space.c has
	unsigned int n_looks;        // of address_space.c, while the file was gone; 0: it never was
	int64_t look_again_ns;       // when the next look is due; INT64_MAX: never
	unsigned int lacks_languages; // bits of those that are not linked in (language_position)
	uint64_t jit_descriptor;      // the address of GDB_JIT_DESCRIPTOR in the file; 0: none
	void *languages[MODULE_MAX_LANGUAGES]; // what each has found in the file; NULL: nothing;
	                                       // owned
	int64_t rules_left_ns;                 // what is left of the CPU time for its rules
};

enum module_use { MODULE_FOR_RULES, MODULE_FOR_NAMES };

struct modules {
	struct module *program; // the main executable, as last seen; NULL: not known
	struct module **items;  // pointers stay valid as the table grows
	size_t count, capacity;
	size_t n_found;       // files that were gone at first (address_space.c)
	size_t n_images;      // files that were copied for MODULE_IMAGE (address_space.c)
	uint64_t image_bytes; // bytes of those, and of those that could not be copied
	const struct debug_sources *debug_sources; // borrowed; NULL: the usual places only
};

// A zeroed struct modules is an empty table.
void modules_deinit(struct modules *modules);

// Sets the debug sources of the modules in the table and of those to come; borrowed.
void modules_set_debug_sources(struct modules *modules, const struct debug_sources *sources);

// Returns the module of that kind, file and path; adds it if it is not known yet. Takes over `fd`,
// which may be -1, and closes it if it is not needed.
struct module *modules_add(struct modules *modules, enum module_kind kind, const char *path,
                           uint64_t device, uint64_t inode, int fd);

// Returns the module of that kind and file, if it is known; otherwise NULL.
struct module *modules_find(const struct modules *modules, enum module_kind kind, const char *path,
                            uint64_t device, uint64_t inode);

// Notes an executable mapping of the module, if it is a new one.
void module_add_mapping(struct module *module, const struct module_mapping *mapping);

// True if somebody has written to the file since it was opened, as `cp new.so old.so` does: it is
// the same file, but its names may be those of other code than the code that was sampled.
bool module_was_written_to(const struct module *module);

// Gives the module another path, after sampling. Its old path does not find it any more.
void module_rename(struct module *module, const char *path);

// True if a program made the code as it ran: no file holds it.
static inline bool module_is_jit(const struct module *module)
{
	return module->kind == MODULE_ANONYMOUS || module->kind == MODULE_IMAGE;
}

// Returns the module's last path component, or the path itself if it is in brackets. Owned by
// module.
const char *module_name(const struct module *module);

// Returns the address in the module's file (as its symbols have it) of an address in the process,
// by the segment that its mapping shows; its file offset if the file is not a readable ELF file.
uint64_t module_address(struct module *module, const struct mapping *mapping, uint64_t pc);

// Returns the offset in the file of an address in one of the pages that segments are mapped by.
uint64_t module_offset_of_address(struct module *module, uint64_t address);

// Returns libdw's view of the module at bias 0, opened at the first call; NULL if it is not an ELF
// file that can (still) be read. Owned by the module.
Dwfl_Module *module_dwfl(struct module *module);

// Returns the module's DWARF, its own or its debug file's, and how much higher the module's
// addresses are than the DWARF's; NULL: it has none. Owned by the module. Call it in guarded work.
Dwarf *module_dwarf(struct module *module, uint64_t *ret_bias);

// Returns the places of its debug files, borrowed from the module.
struct debug_places module_debug_places(const struct module *module);

// Opens the DWARF package of the module (split_package.h); -1: there is none.
int module_open_package(const struct module *module);

// Asks the servers, if there are any to be asked, for those of the module's debug files that this
// machine lacks. What was read of the module before is read again. Do not call it in guarded work.
void module_fetch_debug_files(struct module *module);

// Runs work(context), which reads the module through libdw, with guard_run. False if the module has
// turned out to be unreadable; then, and from now on, module_dwfl and module_symbols return NULL.
// With MODULE_FOR_RULES all calls share one limit of time.
bool module_guard(struct module *module, guard_work *work, void *context, enum module_use use);

// Call it within guarded work on the module, before the work opens debug files or unpacks what is
// compressed (guard_opens_files).
void module_opens_files(const struct module *module);

// Copies up to `size` bytes of code at an address in the file; returns how many it copied. The
// module is untyped: it is the context of a struct arch_code.
size_t module_read_code(void *untyped, uint64_t address, void *buffer, size_t size);

// Returns the name of the section that holds the address, and its start; NULL: none. Owned by the
// module.
const char *module_section(struct module *module, uint64_t address, uint64_t *ret_start);

// Finds the address of the section with that name. False if there is none.
bool module_find_section(struct module *module, const char *name, uint64_t *ret_address);

// Returns the bytes from an address in the file up to the end of its section, as they are in the
// file, owned by the module; NULL: there are none. Call it, and read them, in guarded work.
const uint8_t *module_data(struct module *module, uint64_t address, size_t *ret_size);

// Returns the table of a Go program; NULL: it is not one. Owned by the module. Call it, too, in
// guarded work.
struct gopclntab *module_gopclntab(struct module *module);

// Returns the module's function names, read at the first call; NULL if module_dwfl returns NULL.
// Owned by the module.
const struct symbol_table *module_symbols(struct module *module);

// Reads EI_CLASS and e_machine of the ELF file behind fd. False if it is not an ELF file.
bool module_elf_machine(int fd, uint8_t *ret_class, uint16_t *ret_machine);
