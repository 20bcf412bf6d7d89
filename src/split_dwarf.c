#include "split_dwarf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static bool is_regular(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

// libdw opens the path that the file names. One that leads to a pipe would block for ever.
static bool is_safe(Dwarf_Die *die, const char *name)
{
	const char *directory = string_attribute(die, DW_AT_comp_dir);

	if (name[0] == '/')
		return is_regular(name);
	if (!directory || directory[0] != '/' || strlen(directory) + strlen(name) > MAX_PATH_BYTES)
		return false;
	_cleanup_free_ char *path = memory_printf("%s/%s", directory, name);
	return is_regular(path);
}

static const char *name_of(Dwarf_Die *skeleton)
{
	return string_attribute(skeleton, DW_AT_dwo_name)
	           ?: string_attribute(skeleton, DW_AT_GNU_dwo_name);
}

bool split_dwarf_find(void *skeleton_die, void *ret_die)
{
	Dwarf_Die *skeleton = skeleton_die, split;
	const char *name = name_of(skeleton);

	if (!name || !is_safe(skeleton, name))
		return false;
	if (dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) != 0 ||
	    !split.addr || dwarf_tag(&split) != DW_TAG_compile_unit)
		return false;
	*(Dwarf_Die *)ret_die = split;
	return true;
}

struct split_package *split_dwarf_open(const char *const *directories, void *skeleton_die)
{
	Dwarf_Die *skeleton = skeleton_die;
	const char *name = name_of(skeleton),
	           *directory = string_attribute(skeleton, DW_AT_comp_dir);

	if (!directories || !name || strlen(name) > MAX_PATH_BYTES ||
	    (directory && strlen(directory) > MAX_PATH_BYTES))
		return NULL;
	_cleanup_free_ char *path = name[0] == '/' || !directory
	                                ? memory_strdup(name)
	                                : memory_printf("%s/%s", directory, name);
	const int fd = debug_file_open_split(directories, path);
	return fd < 0 ? NULL : split_package_open(unpack_sections(fd));
}
