// SPDX-License-Identifier: MIT
#include "split_dwarf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "debug_file.h"
#include "memory.h"
#include "split_package.h"
#include "unpack.h"

enum { MAX_PATH_BYTES = 4096 };

static const char *string_attribute(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr(die, name, &attribute));
}

struct split_package *split_dwarf_open(const struct debug_places *places, void *skeleton_die,
                                       enum split_dwarf_place place)
{
	Dwarf_Die *skeleton = skeleton_die;
	const char *name = string_attribute(skeleton, DW_AT_dwo_name)
	                       ?: string_attribute(skeleton, DW_AT_GNU_dwo_name),
	           *directory = string_attribute(skeleton, DW_AT_comp_dir);

	if (!places || !name || strlen(name) > MAX_PATH_BYTES ||
	    (directory && strlen(directory) > MAX_PATH_BYTES))
		return NULL;
	_cleanup_free_ char *path = name[0] == '/' || !directory
	                                ? memory_strdup(name)
	                                : memory_printf("%s/%s", directory, name);
	const int fd = place == SPLIT_DWARF_COMPILED ? debug_file_open_compiled(places, path)
	                                             : debug_file_open_split(places, path);
	return fd < 0 ? NULL : split_package_open(unpack_sections(fd));
}
