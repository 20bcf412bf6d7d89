#include "address_space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "hash.h"
#include "memory.h"
#include "module.h"
#include "perf_map.h"
#include "proc.h"

enum {
	// A reading is followed by at least this many times its cost: with a sign that the maps
	// have changed, and without. A dlclose and a dlopen of equal size leave no sign, but to
	// code_watch.
	HINTED_COST_FACTOR = 50,
	COST_FACTOR = 200,
	MAX_VDSO_BYTES = 1 << 20,
};

void address_space_init(struct address_space *space, struct modules *modules, int pid)
{
	*space = (struct address_space){.modules = modules, .stat_fd = -1, .pid = pid};
	code_watch_init(&space->watch);
}

void address_space_deinit(struct address_space *space)
{
	if (space->made)
		perf_map_finish(space->made->perf_map);
	if (space->stat_fd >= 0)
		close(space->stat_fd);
	code_watch_deinit(&space->watch);
	maps_deinit(&space->maps);
	free(space->owners);
	*space = (struct address_space){0};
}

// Opens the file that is mapped, if it stands there and is a regular one: a pipe would be waited
// for, and a device may notice. -1 with errno: ENODEV for those, ESTALE for another file. On
// overlayfs and btrfs stat may name another device than maps; the inode has to do.
static int open_same(const char *path, const struct mapping *mapping)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return -1;
	errno = S_ISREG(status.st_mode) ? ESTALE : ENODEV;
	if (!S_ISREG(status.st_mode) || status.st_ino != mapping->inode)
		return -1;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == mapping->inode)
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

// In maps, a newline of a path is "\012"; but so may be those four characters themselves.
static char *unescape(const char *path)
{
	char *result = memory_strdup(path);

	for (char *at = result; (at = strstr(at, "\\012")); at++) {
		*at = '\n';
		memmove(at + 1, at + 4, strlen(at + 4) + 1);
	}
	return result;
}

// As the target sees the path.
static int open_by_path(const struct address_space *space, const char *path,
                        const struct mapping *mapping)
{
	_cleanup_free_ char *name =
	    memory_printf("/proc/%d/task/%d/root%s", space->pid, space->tid, path);

	return open_same(name, mapping);
}

// By way of map_files, which needs privileges but works for deleted files too; else by the path,
// if that is still the same file. -1 with errno.
static int open_mapped_file(const struct address_space *space, const struct mapping *mapping,
                            const char *path)
{
	char name[128];

	snprintf(name, sizeof(name), "/proc/%d/map_files/%lx-%lx", space->tid,
	         (unsigned long)mapping->start, (unsigned long)mapping->end);
	int fd = open_same(name, mapping);
	if (fd < 0 && errno != ENODEV)
		fd = open_by_path(space, path, mapping);
	if (fd < 0 && strstr(path, "\\012")) {
		_cleanup_free_ char *plain = unescape(path);
		fd = open_by_path(space, plain, mapping);
	}
	return fd;
}

// Why a file could not be opened; NULL: it is none that has symbols.
static const char *open_failure(int number)
{
	switch (number) {
	case ENODEV:
		return NULL;
	case ENOENT:
	case ENOTDIR:
	case ESTALE:
		return "it was deleted, moved or replaced, and only root can still open it";
	case EACCES:
	case EPERM:
		return "there is no permission to read it";
	case EMFILE:
	case ENFILE:
		return "too many files are open";
	default:
		return "it cannot be opened";
	}
}

// The vDSO has no file: its pages, copied into a memory file.
static int copy_vdso(int tid, const struct mapping *mapping)
{
	const size_t size = mapping->end - mapping->start;

	if (size > MAX_VDSO_BYTES)
		return -1;
	_cleanup_free_ void *bytes = memory_alloc(size);
	struct iovec local = {bytes, size}, remote = {(void *)(uintptr_t)mapping->start, size};
	const ssize_t n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	const int fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && (n <= 0 || pwrite(fd, bytes, n, 0) != n)) {
		close(fd);
		return -1;
	}
	return fd;
}

// The path as it was before the file was deleted. The caller frees.
static char *path_of(const struct address_space *space, const struct mapping *mapping)
{
	static const char deleted[] = " (deleted)";
	const char *path = maps_path(&space->maps, mapping);
	const size_t length = strlen(path), tail = sizeof(deleted) - 1;

	if (length > tail && strcmp(path + length - tail, deleted) == 0)
		return memory_strndup(path, length - tail);
	return memory_strdup(path[0] ? path : "[anon]");
}

static struct module *add_owner(struct address_space *space, enum module_kind kind,
                                const char *path, const struct mapping *mapping)
{
	int fd = -1;

	if (kind == MODULE_FILE)
		fd = open_mapped_file(space, mapping, path);
	else if (kind == MODULE_VDSO)
		fd = copy_vdso(space->tid, mapping);
	const int number = errno;
	struct module *module =
	    modules_add(space->modules, kind, path, mapping->device, mapping->inode, fd);
	if (kind == MODULE_FILE && fd < 0)
		module->unreadable = open_failure(number);
	return module;
}

// The process's one module for the code that no file holds: its locations are the target's
// addresses, and their names come from its perf map.
static struct module *made_code(struct address_space *space)
{
	if (space->made)
		return space->made;
	space->made =
	    modules_add(space->modules, MODULE_ANONYMOUS, "[anon]", 0, (uint64_t)space->pid, -1);
	if (!space->made->perf_map)
		space->made->perf_map = perf_map_create();
	else
		perf_map_forget(space->made->perf_map); // of an earlier process with that pid
	perf_map_update(space->made->perf_map, space->pid, space->tid, space->read_ns);
	return space->made;
}

// "[anon:NAME]" is what the process itself called it (PR_SET_VMA_ANON_NAME).
static bool is_made(const char *path)
{
	return path[0] != '[' || strcmp(path, "[anon]") == 0 || strncmp(path, "[anon:", 6) == 0;
}

// Memory of a file system that has no names holds made code as well (.NET's doublemapper), unless
// it holds a program.
static bool is_made_in_memory_file(const struct address_space *space, const struct mapping *mapping,
                                   const char *path)
{
	uint8_t elf_class;
	uint16_t machine;

	if (strncmp(path, "/memfd:", 7) != 0 && strcmp(path, "/dev/zero") != 0)
		return false;
	_cleanup_close_ int fd = open_mapped_file(space, mapping, path);
	return fd >= 0 && !module_elf_machine(fd, &elf_class, &machine);
}

static struct module *find_owner(struct address_space *space, const struct mapping *mapping)
{
	_cleanup_free_ char *path = path_of(space, mapping);
	const bool vdso = strcmp(path, "[vdso]") == 0;
	enum module_kind kind = MODULE_ANONYMOUS;

	if (vdso || mapping->inode)
		kind = vdso ? MODULE_VDSO : MODULE_FILE;
	if ((kind == MODULE_ANONYMOUS && is_made(path)) ||
	    (kind == MODULE_FILE && is_made_in_memory_file(space, mapping, path)))
		return made_code(space);
	struct module *module =
	    modules_find(space->modules, kind, path, mapping->device, mapping->inode);
	return module ? module : add_owner(space, kind, path, mapping);
}

// The module of the mapping, which holds code; opened when the first of its code is seen, since
// there may be 65,530 others.
static struct module *owner_of(struct address_space *space, const struct mapping *mapping)
{
	struct module **owner = &space->owners[mapping - space->maps.items];

	if (!*owner && mapping->executable)
		*owner = find_owner(space, mapping);
	return *owner;
}

// The program itself, which profiles name first, is listed even if no sample lies in it.
static void note_program(struct address_space *space, int tid)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/exe", space->pid, tid);
	if (stat(path, &status) != 0)
		return;
	for (size_t i = 0; i < space->maps.count; i++) {
		const struct mapping *mapping = &space->maps.items[i];
		if (!mapping->executable || mapping->inode != status.st_ino)
			continue;
		space->modules->program = address_space_resolve(space, mapping->start).module;
		return;
	}
}

static uint64_t hash_code(const struct maps *maps)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *m = &maps->items[i];
		if (!m->executable)
			continue;
		hash = hash_mix(hash, hash_mix(m->start, m->end));
		hash = hash_mix(hash, hash_mix(m->file_offset, m->inode ^ m->device << 40));
	}
	return hash;
}

static void forget_owners(struct address_space *space)
{
	space->owners = memory_grow(space->owners, &space->owners_capacity, space->maps.count + 1,
	                            sizeof(*space->owners));
	memset(space->owners, 0, space->maps.count * sizeof(*space->owners));
}

static void reread(struct address_space *space, int tid, int64_t now_ns)
{
	const int64_t start_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);

	space->n_reads++;
	space->stale = false;
	space->tid = tid;
	if (maps_read(&space->maps, space->pid, tid)) {
		const uint64_t hash = hash_code(&space->maps);
		forget_owners(space);
		if (hash != space->code_hash) {
			space->generation++;
			code_watch_clear(&space->watch);
			note_program(space, tid);
		}
		space->code_hash = hash;
	}
	space->read_ns = now_ns;
	space->cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

// At each tick: from one file that is kept open, until its thread ends.
static bool read_stat(struct address_space *space, int tid, struct proc_stat *ret)
{
	if (space->stat_fd >= 0 && proc_read_stat(space->stat_fd, space->pid, tid, ret))
		return true;
	if (space->stat_fd >= 0)
		close(space->stat_fd);
	space->stat_fd = proc_open(space->pid, tid, "stat");
	return proc_read_stat(space->stat_fd, space->pid, tid, ret);
}

void address_space_update(struct address_space *space, int tid, int64_t now_ns, bool force)
{
	const int64_t since_ns = now_ns - space->read_ns;
	struct proc_stat stat;

	if (!read_stat(space, tid, &stat))
		return;
	// start_stack is random for each exec: another one is another program.
	const bool exec = stat.start_stack != space->start_stack;
	const bool hint = stat.vsize_bytes != space->vsize_bytes || space->stale;
	const int64_t rest_ns = (hint ? HINTED_COST_FACTOR : COST_FACTOR) * space->cost_ns;

	if (space->made && exec)
		perf_map_forget(space->made->perf_map);
	if (space->made &&
	    (perf_map_update(space->made->perf_map, space->pid, tid, now_ns) || exec))
		space->made_generation++;
	const bool due = exec || force || since_ns >= rest_ns;
	const uint32_t generation = space->generation;

	if (!due && !code_watch_changed(&space->watch, space->pid, tid))
		return;
	space->vsize_bytes = stat.vsize_bytes;
	space->start_stack = stat.start_stack;
	reread(space, tid, now_ns);
	if (!due && space->generation == generation)
		space->watch.unknown = true; // it does not see what the maps show
	if (exec)
		space->generation++;
}

// The one module for addresses that belong nowhere.
static struct module *unknown_module(struct address_space *space)
{
	return modules_add(space->modules, MODULE_UNKNOWN, "[unknown]", 0, 0, -1);
}

static void note_mapping(struct module *module, const struct mapping *mapping, uint64_t bias)
{
	module_add_mapping(module, &(struct module_mapping){
	                               .start = mapping->start,
	                               .end = mapping->end,
	                               .file_offset = mapping->file_offset,
	                               .bias = bias,
	                           });
}

struct code_address address_space_resolve(struct address_space *space, uint64_t pc)
{
	const struct mapping *mapping = maps_find(&space->maps, pc);
	struct module *owner = mapping ? owner_of(space, mapping) : NULL;

	if (!owner) {
		space->stale = true;
		return (struct code_address){.module = unknown_module(space), .address = pc};
	}
	uint64_t address = pc;
	if (owner->kind != MODULE_ANONYMOUS)
		address =
		    module_address_of_offset(owner, pc - mapping->start + mapping->file_offset);
	code_watch_add(&space->watch, mapping);
	note_mapping(owner, mapping, pc - address);
	return (struct code_address){
	    .module = owner,
	    .address = address,
	    .code = owner == space->made ? perf_map_find(owner->perf_map, pc) : PERF_MAP_NONE,
	};
}

bool address_space_is_code(const struct address_space *space, uint64_t pc)
{
	const struct mapping *mapping = maps_find(&space->maps, pc);

	return mapping && mapping->executable;
}
