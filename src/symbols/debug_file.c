// SPDX-License-Identifier: MIT
#include "debug_file.h"

#include <elfutils/libdwelf.h>
#include <elf.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "memory.h"
#include "untrusted_file.h"

#define ROOT "/usr/lib/debug"

enum { READ_BYTES = 64 << 10, MAX_BUILD_ID_BYTES = 64 };

static const off_t MAX_CRC_BYTES = INT64_C(4) << 30;

bool debug_file_has_build_id(int fd, const void *wanted, size_t wanted_size)
{
	const void *build_id;

	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return false;
	const ssize_t size =
	    elf_kind(elf) == ELF_K_ELF ? dwelf_elf_gnu_build_id(elf, &build_id) : -1;
	const bool same =
	    size > 0 && (size_t)size == wanted_size && memcmp(build_id, wanted, size) == 0;
	elf_end(elf);
	return same;
}

// True for an ELF file. Reads only the beginning of any other file.
static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, SELFMAG, 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static bool has_crc(int fd, uint32_t wanted)
{
	_cleanup_free_ unsigned char *bytes = memory_alloc(READ_BYTES);
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n;

	while (at < MAX_CRC_BYTES && (n = pread(fd, bytes, READ_BYTES, at)) > 0) {
		crc = crc32(crc, bytes, n);
		at += n;
	}
	return n == 0 && crc == wanted;
}

static bool is_wanted(int fd, const struct debug_file_wanted *wanted)
{
	if (!is_elf(fd))
		return false;
	if (wanted->build_id_size)
		return debug_file_has_build_id(fd, wanted->build_id, wanted->build_id_size);
	return wanted->crc && has_crc(fd, wanted->crc);
}

// True if it leads out of the place where it is looked for.
static bool goes_up(const char *path)
{
	for (const char *at = path; (at = strstr(at, "..")); at++)
		if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
			return true;
	return false;
}

// Opens ROOT/REST: below a directory that the profiler's user has named, or the system's own. Takes
// `rest` over, as all functions here do.
static int open_below(const char *root, char *rest)
{
	_cleanup_free_ char *path = memory_printf("%s/%s", root, rest);
	const int fd = goes_up(rest) ? -1 : untrusted_file_open(path, NULL);

	free(rest);
	return fd;
}

// Opens the place that the module names.
static int open_named(char *path, const struct debug_places *places)
{
	const int fd = untrusted_file_open(path, places->user);

	free(path);
	return fd;
}

static int accept(int fd, char *path, const struct debug_file_wanted *wanted, char **ret_path)
{
	_cleanup_free_ char *own = path;

	if (fd < 0)
		return -1;
	if (!is_wanted(fd, wanted)) {
		close(fd);
		return -1;
	}
	*ret_path = take_pointer(own);
	return fd;
}

static int try_below(const char *root, char *rest, const struct debug_file_wanted *wanted,
                     char **ret_path)
{
	char *path = memory_printf("%s/%s", root, rest);

	return accept(open_below(root, rest), path, wanted, ret_path);
}

static int try_named(char *path, const struct debug_file_wanted *wanted, char **ret_path)
{
	return accept(open_named(memory_strdup(path), &wanted->places), path, wanted, ret_path);
}

static int try_build_id(const char *root, const struct debug_file_wanted *wanted, char **ret_path)
{
	const unsigned char *bytes = wanted->build_id;
	char digits[2 * MAX_BUILD_ID_BYTES + 1];

	if (wanted->build_id_size < 2 || wanted->build_id_size > MAX_BUILD_ID_BYTES)
		return -1;
	for (size_t i = 0; i < wanted->build_id_size; i++)
		snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
	return try_below(root, memory_printf(".build-id/%.2s/%s.debug", digits, digits + 2), wanted,
	                 ret_path);
}

// Tries dwz's files: the path as it is, or relative to the file that names it.
static int try_shared(const char *directory, const struct debug_file_wanted *wanted,
                      char **ret_path)
{
	const char *slash = strrchr(wanted->name, '/');
	int fd = try_named(wanted->name[0] == '/' ? memory_strdup(wanted->name)
	                                          : memory_printf("%s/%s", directory, wanted->name),
	                   wanted, ret_path);

	if (fd < 0)
		fd = try_below(ROOT, memory_printf(".dwz/%s", slash ? slash + 1 : wanted->name),
		               wanted, ret_path);
	return fd;
}

static int try_directories(const char *directory, const char *name,
                           const struct debug_file_wanted *wanted, char **ret_path)
{
	int fd = try_named(memory_printf("%s/%s", directory, name), wanted, ret_path);

	if (fd < 0)
		fd = try_named(memory_printf("%s/.debug/%s", directory, name), wanted, ret_path);
	// A library in /usr/lib may have its debug file in ROOT/lib: that was once another place.
	for (const char *rest = directory; fd < 0 && rest; rest = strchr(rest + 1, '/'))
		fd = try_below(ROOT, memory_printf("%s/%s", rest, name), wanted, ret_path);
	return fd;
}

// Tries one of the user's directories, laid out as ROOT is, or with the files directly in it.
static int try_user_directory(const char *root, const struct debug_file_wanted *wanted,
                              char **ret_path)
{
	const char *path = wanted->module_path, *slash = strrchr(path, '/');
	const char *module = slash ? slash + 1 : path;
	_cleanup_free_ char *name =
	    wanted->name ? memory_strdup(wanted->name) : memory_printf("%s.debug", module);
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	int fd = try_build_id(root, wanted, ret_path);

	if (fd < 0 && slash)
		fd = try_below(root, memory_printf("%.*s/%s", (int)(slash - path), path, base),
		               wanted, ret_path);
	if (fd < 0 && wanted->shared)
		fd = try_below(root, memory_printf(".dwz/%s", base), wanted, ret_path);
	if (fd < 0)
		fd = try_below(root, memory_strdup(base), wanted, ret_path);
	return fd;
}

int debug_file_open(const struct debug_file_wanted *wanted, char **ret_path)
{
	const char *slash = strrchr(wanted->module_path, '/');
	int fd = -1;

	for (const char *const *root = wanted->places.directories; fd < 0 && root && *root; root++)
		fd = try_user_directory(*root, wanted, ret_path);
	if (fd < 0)
		fd = try_build_id(ROOT, wanted, ret_path);
	if (fd >= 0 || wanted->module_path[0] != '/')
		return fd;
	_cleanup_free_ char *directory =
	    memory_strndup(wanted->module_path, slash - wanted->module_path);
	if (wanted->shared)
		return try_shared(directory, wanted, ret_path);
	if (wanted->name && !strchr(wanted->name, '/'))
		return try_directories(directory, wanted->name, wanted, ret_path);
	_cleanup_free_ char *name = memory_printf("%s.debug", slash + 1);
	return try_directories(directory, name, wanted, ret_path);
}

// Opens it in one of the user's directories, by the whole path or the bare name.
static int open_in(const char *const *directories, const char *path, const char *suffix)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	int fd = -1;

	for (const char *const *root = directories; fd < 0 && root && *root; root++) {
		fd = open_below(*root, memory_printf("%s%s", path, suffix));
		if (fd < 0)
			fd = open_below(*root, memory_printf("%s%s", base, suffix));
	}
	return fd;
}

int debug_file_open_package(const struct debug_places *places, const char *module_path)
{
	if (module_path[0] != '/')
		return -1;
	const int fd = open_in(places->directories, module_path, ".dwp");
	return fd >= 0 ? fd : open_named(memory_printf("%s.dwp", module_path), places);
}

int debug_file_open_split(const struct debug_places *places, const char *path)
{
	return open_in(places->directories, path, "");
}

int debug_file_open_compiled(const struct debug_places *places, const char *path)
{
	return path[0] == '/' ? open_named(memory_strdup(path), places) : -1;
}
