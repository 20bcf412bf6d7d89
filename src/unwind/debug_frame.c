// SPDX-License-Identifier: MIT
#include "debug_frame.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

#include "debug_file.h"
#include "memory.h"
#include "module.h"

// True for .debug_frame; GNU tools once named a compressed one ".zdebug_frame".
static bool is_debug_frame(const char *name)
{
	return name && (strcmp(name, ".debug_frame") == 0 || strcmp(name, ".zdebug_frame") == 0);
}

static bool has_section(Elf *elf)
{
	GElf_Shdr header;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
		if (gelf_getshdr(section, &header) &&
		    is_debug_frame(elf_strptr(elf, names, header.sh_name)))
			return true;
	return false;
}

// Opens the file that libdwfl will take for the module's debug file.
static int open_debug_file(const struct module *module, Elf *elf, char **ret_path)
{
	GElf_Word crc = 0;
	const struct debug_file_wanted wanted = {
	    .places = module_debug_places(module),
	    .module_path = module->path,
	    .name = dwelf_elf_gnu_debuglink(elf, &crc),
	    .build_id = module->build_id,
	    .build_id_size = module->build_id_size,
	    .crc = crc,
	};

	return module->debug_fd >= 0 ? dup(module->debug_fd) : debug_file_open(&wanted, ret_path);
}

static bool debug_file_has_section(const struct module *module, Elf *module_elf)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = open_debug_file(module, module_elf, &path);
	Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	const bool has = has_section(elf);

	elf_end(elf);
	return has;
}

static bool look_for_it(struct module *module)
{
	Dwfl_Module *dwfl_module = module_dwfl(module);
	GElf_Addr bias;
	Elf *elf = dwfl_module ? dwfl_module_getelf(dwfl_module, &bias) : NULL;

	module_opens_files(module); // its debug file, as libdwfl will
	return elf && (has_section(elf) || debug_file_has_section(module, elf));
}

bool debug_frame_is_there(struct module *module)
{
	if (!module->looked_for_debug_frame) {
		module->looked_for_debug_frame = true;
		module->has_debug_frame = look_for_it(module);
	}
	return module->has_debug_frame;
}
