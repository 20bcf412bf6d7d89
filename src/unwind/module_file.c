// SPDX-License-Identifier: MIT
#include "module_file.h"

#include <errno.h>

#include "address_space.h"
#include "clock.h"
#include "file_user.h"
#include "mapped_file.h"
#include "module.h"
#include "untrusted_file.h"

enum {
	NO_DEVICE = 0,  // no file's: for the modules of files that are gone
	MAX_LOOKS = 11, // for a file that is gone: over 10 s
};

#define FIRST_PAUSE_NS (10 * NS_PER_SECOND / 1000)

// True if the file, or the thread through which it was looked for, is gone.
static bool is_gone(int number)
{
	return number == ENOENT || number == ESRCH;
}

// Opens the mapping's file; *ret_tid: the thread through which it was opened. The thread through
// which the maps were read may have ended, as all other threads do when one executes a program:
// then it is the process's own.
static int open_file(const struct address_space *space, const struct mapping *mapping,
                     const char *path, int *ret_tid)
{
	*ret_tid = space->tid;
	const int fd = mapped_file_open(space->tid, &space->maps, mapping, path);
	if (fd >= 0 || !is_gone(errno))
		return fd;
	*ret_tid = space->pid;
	return mapped_file_open(space->pid, &space->maps, mapping, path);
}

static void note_look(struct module *gone, int64_t now_ns)
{
	if (gone->n_looks < MAX_LOOKS)
		gone->n_looks++;
	gone->look_again_ns = gone->n_looks < MAX_LOOKS
	                          ? now_ns + (FIRST_PAUSE_NS << (gone->n_looks - 1))
	                          : INT64_MAX;
}

static struct module *add(struct address_space *space, const char *path,
                          const struct mapping *mapping)
{
	int tid;
	const int fd = open_file(space, mapping, path, &tid);
	const int number = errno;
	const bool gone = fd < 0 && is_gone(number);

	struct module *module = modules_add(space->modules, MODULE_FILE, path,
	                                    gone ? NO_DEVICE : mapping->device, mapping->inode, fd);
	file_user_read(tid, &module->user);
	if (fd < 0)
		module->unreadable = untrusted_file_failure(number);
	if (gone)
		note_look(module, space->updated_ns);
	return module;
}

struct module *module_file_add(struct address_space *space, const char *path,
                               const struct mapping *mapping)
{
	struct module *gone =
	    modules_find(space->modules, MODULE_FILE, path, NO_DEVICE, mapping->inode);
	struct module *module =
	    gone && space->updated_ns < gone->look_again_ns ? gone : add(space, path, mapping);

	if (module->n_looks > 0) {
		address_space_look_at(space, module->look_again_ns);
	} else if (gone) {
		gone->unreadable = "it was not found at first";
		gone->look_again_ns = INT64_MAX;
		space->modules->n_found++;
	}
	return module;
}
