// SPDX-License-Identifier: MIT
#include "module_debug.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debug_file.h"
#include "debug_sources.h"
#include "function_range.h"
#include "memory.h"
#include "module.h"
#include "symbol_table.h"
#include "unpack.h"

static int find_no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                       char **file_name, Elf **elf)
{
	// Every module is reported with its file: libdwfl must never look for one by its name,
	// which in another mount namespace is another file.
	(void)module, (void)data, (void)name, (void)base, (void)file_name, (void)elf;
	return -1;
}

// Expects to need half of the machine's memory, and room for a mapping of the file.
static void expect_opening(int fd)
{
	const uint64_t memory_bytes =
	    (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	struct stat status;

	if (fd >= 0 && fstat(fd, &status) == 0)
		guard_opens_files(memory_bytes / 2 + (uint64_t)status.st_size);
}

void module_opens_files(const struct module *module)
{
	expect_opening(module->fd);
}

struct debug_places module_debug_places(const struct module *module)
{
	return (struct debug_places){
	    .directories = module->debug_sources ? module->debug_sources->directories : NULL,
	    .user = &module->user,
	};
}

// libdwfl closes what it gets.
static int use_fetched(int fd, char **ret_path)
{
	*ret_path = memory_strdup("");
	return dup(fd);
}

static int find_debug_file(struct module *module, const char *file_name, const char *link,
                           GElf_Word crc, char **ret_path)
{
	struct debug_file_wanted wanted = {
	    .places = module_debug_places(module),
	    .module_path = file_name,
	    .name = link,
	    .build_id = module->build_id,
	    .build_id_size = module->build_id_size,
	    .crc = crc,
	};

	if (module->debug_fd >= 0)
		return use_fetched(module->debug_fd, ret_path);
	return debug_file_open(&wanted, ret_path);
}

// Finds the file that several debug files share. libdwfl asks for it in the same way as for the
// debug file itself, but without a CRC, after it has opened that.
static int find_shared_debug_file(struct module *module, Dwfl_Module *dwfl_module,
                                  const char *file_name, char **ret_path)
{
	struct debug_file_wanted wanted = {
	    .places = module_debug_places(module),
	    .module_path = file_name,
	    .shared = true,
	};
	Dwarf_Addr bias;

	if (module->looks_for_shared)
		return -1; // a CRC of zero, and no debug file yet
	module->looks_for_shared = true;
	Dwarf *dwarf = dwfl_module_getdwarf(dwfl_module, &bias);
	module->looks_for_shared = false;
	const ssize_t size =
	    dwarf ? dwelf_dwarf_gnu_debugaltlink(dwarf, &wanted.name, &wanted.build_id) : -1;
	if (size <= 0)
		return -1;
	wanted.build_id_size = size;
	const int fd = module->shared_debug_fd >= 0 ? use_fetched(module->shared_debug_fd, ret_path)
	                                            : debug_file_open(&wanted, ret_path);
	module->has_shared = fd >= 0;
	return fd;
}

static int find_debuginfo(Dwfl_Module *dwfl_module, void **data, const char *name, Dwarf_Addr base,
                          const char *file_name, const char *link, GElf_Word crc, char **ret_path)
{
	struct module *module = *data;

	(void)name, (void)base;
	if (!module || !file_name)
		return -1;
	const int fd = link && crc == 0
	                   ? find_shared_debug_file(module, dwfl_module, file_name, ret_path)
	                   : find_debug_file(module, file_name, link, crc, ret_path);
	errno = 0;
	expect_opening(fd);
	return unpack_sections(fd);
}

const Dwfl_Callbacks module_debug_callbacks = {
    .find_elf = find_no_elf,
    .find_debuginfo = find_debuginfo,
};

Dwarf *module_dwarf(struct module *module, uint64_t *ret_bias)
{
	Dwarf_Addr bias = 0;

	if (!module_dwfl(module))
		return NULL;
	module_opens_files(module);
	Dwarf *dwarf = dwfl_module_getdwarf(module->dwfl_module, &bias);
	// Otherwise libdw would by itself open whatever stands at the path that .gnu_debugaltlink
	// gives. This is how dwarf_getalt notes that there is none (dwarf_getalt.c).
	if (dwarf && !module->has_shared)
		dwarf_setalt(dwarf, (Dwarf *)-1);
	*ret_bias = bias;
	return dwarf;
}

int module_open_package(const struct module *module)
{
	const struct debug_places places = module_debug_places(module);

	return unpack_sections(debug_file_open_package(&places, module->path));
}

// The debug information of a module that is not found here.
struct missing {
	struct module *module;
	bool whole;
	uint8_t shared_build_id[MODULE_MAX_BUILD_ID];
	size_t shared_build_id_size; // 0: nothing shared is missing
};

static void find_missing(void *context)
{
	struct missing *missing = context;
	const char *name;
	const void *build_id;
	uint64_t bias;
	Dwarf *dwarf = module_dwarf(missing->module, &bias);

	missing->whole = !dwarf;
	if (!dwarf || missing->module->has_shared)
		return;
	const ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id);
	if (size <= 0 || size > MODULE_MAX_BUILD_ID)
		return;
	memcpy(missing->shared_build_id, build_id, size);
	missing->shared_build_id_size = size;
}

// libdwfl remembers what it did not find.
static void forget_elf(struct module *module)
{
	symbol_table_destroy(module->symbols);
	function_ranges_destroy(take_pointer(module->function_ranges));
	if (module->dwfl)
		dwfl_end(module->dwfl);
	free(module->segments);
	module->symbols = NULL;
	module->dwfl = NULL;
	module->dwfl_module = NULL;
	module->segments = NULL;
	module->n_segments = 0;
	module->opened = module->has_shared = false;
}

static int fetch(struct module *module, const void *build_id, size_t size)
{
	const int fd =
	    debug_server_fetch(module->debug_sources->server, build_id, size, module_name(module));

	if (fd < 0 || debug_file_has_build_id(fd, build_id, size))
		return fd;
	close(fd);
	return -1;
}

// Fetches what is missing. False if there is nothing to be read again.
static bool fetch_missing(struct module *module)
{
	struct missing missing = {.module = module};

	if (!module_guard(module, find_missing, &missing, MODULE_FOR_NAMES))
		return false;
	int *fd = missing.whole ? &module->debug_fd : &module->shared_debug_fd;
	if (*fd >= 0 || (!missing.whole && missing.shared_build_id_size == 0))
		return false;
	*fd = missing.whole ? fetch(module, module->build_id, module->build_id_size)
	                    : fetch(module, missing.shared_build_id, missing.shared_build_id_size);
	if (*fd < 0)
		return false;
	forget_elf(module);
	return true;
}

void module_fetch_debug_files(struct module *module)
{
	if (!module->debug_sources || !module->debug_sources->server || !module_dwfl(module) ||
	    module->build_id_size == 0)
		return;
	// The file itself, and then what it shares with others.
	while (fetch_missing(module))
		;
}
