#include "local_files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "module.h"

#define DEBUG_DIRECTORY "/usr/lib/debug/.build-id"

// A regular file's descriptor, or -1.
static int open_regular(const char *path)
{
	struct stat status;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_same_inode(const struct module *module, int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_ino == module->inode &&
	       status.st_dev == module->device;
}

// Is it the build that was recorded? Reads the file as any other module, guarded.
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

static bool is_same(const struct module *module, int fd)
{
	return module->build_id_size > 0 ? is_same_build(module, fd) : is_same_inode(module, fd);
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
	const int fd = open_regular(path);

	if (fd < 0)
		return false;
	if (is_same(module, fd)) {
		module->fd = fd;
		module->unreadable = NULL;
		return true;
	}
	close(fd);
	module->unreadable = "another build of it stands there than was recorded";
	return false;
}

static void find(struct module *module)
{
	module->unreadable = "it is not on this machine";
	if (module->path[0] == '/' && try_path(module, module->path))
		return;
	if (module->build_id_size < 2)
		return;
	_cleanup_free_ char *path = debug_path(module);
	try_path(module, path);
}

void local_files_find(struct modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		if (modules->items[i]->kind == MODULE_FILE && modules->items[i]->fd < 0)
			find(modules->items[i]);
}
