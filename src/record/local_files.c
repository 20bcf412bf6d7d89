// SPDX-License-Identifier: MIT
#include "local_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "module.h"
#include "untrusted_file.h"

#define DEBUG_DIRECTORY "/usr/lib/debug/.build-id"

// A file of a known build is looked into; any other is opened only if it is that inode.
static int open_file(const struct module *module, const char *path)
{
	return module->build_id_size > 0
	           ? untrusted_file_open(path, NULL)
	           : untrusted_file_open_same(path, module->device, module->inode);
}

// True if it is the build that was recorded. Reads the file as any other module, guarded.
static bool is_same_build(const struct module *module, int fd)
{
	struct modules others = {0};

	struct module *other =
	    modules_add(&others, MODULE_FILE, module->path, 0, 0, fcntl(fd, F_DUPFD_CLOEXEC, 3));
	const bool same = module_dwfl(other) && other->build_id_size == module->build_id_size &&
	                  memcmp(other->build_id, module->build_id, module->build_id_size) == 0;
	modules_deinit(&others);
	return same;
}

// /usr/lib/debug/.build-id/12/3456....debug; the caller frees.
static char *debug_path(const struct module *module)
{
	char *path = memory_printf(DEBUG_DIRECTORY "/%02x/", module->build_id[0]);

	for (size_t i = 1; i < module->build_id_size; i++) {
		char *longer = memory_printf("%s%02x", path, module->build_id[i]);
		free(path);
		path = longer;
	}
	char *whole = memory_printf("%s.debug", path);
	free(path);
	return whole;
}

static bool try_path(struct module *module, const char *path)
{
	const int fd = open_file(module, path);

	if (fd < 0 && (errno == ETIMEDOUT || errno == EINTR))
		module->unreadable = untrusted_file_failure(errno);
	if (fd < 0)
		return false;
	if (module->build_id_size == 0 || is_same_build(module, fd)) {
		module->fd = fd;
		module->unreadable = NULL;
		return true;
	}
	close(fd);
	return false;
}

static void find(struct module *module, const char *root)
{
	_cleanup_free_ char *inner = root ? memory_printf("%s%s", root, module->path) : NULL;

	// No more than that: a recording may ask what paths there are.
	if (!root)
		module->unreadable = "it is not on this machine, or only another build of it";
	if (module->path[0] == '/' && inner && try_path(module, inner))
		return;
	if (module->path[0] == '/' && try_path(module, module->path))
		return;
	if (module->build_id_size < 2)
		return;
	_cleanup_free_ char *path = debug_path(module);
	try_path(module, path);
}

void local_files_find(struct modules *modules, const char *root)
{
	for (size_t i = 0; i < modules->count; i++)
		if (modules->items[i]->kind == MODULE_FILE && modules->items[i]->fd < 0 &&
		    !(root && modules->items[i]->told))
			find(modules->items[i], root);
}
