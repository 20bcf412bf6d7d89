// SPDX-License-Identifier: MIT
#include "address_space.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch.h"
#include "clock.h"
#include "file_user.h"
#include "gdb_jit.h"
#include "hash.h"
#include "language.h"
#include "maps.h"
#include "memory.h"
#include "module.h"
#include "perf_map.h"
#include "proc.h"
#include "symbol_table.h"
#include "untrusted_file.h"

enum {
	// After a reading, wait at least this many times its cost: with a sign that the maps have
	// changed, and without. A dlclose and a dlopen of equal size leave no sign, except to
	// code_watch.
	HINTED_COST_FACTOR = 50,
	COST_FACTOR = 200,
	LOOKS_AT_ONCE = 8, // files that were gone
	MAX_VDSO_BYTES = 1 << 20,
	MAX_SEARCHED = 512, // files, for what they tell debuggers
	MAX_IMAGES = 1024,  // of all processes, to the end of the run: each keeps a file open
	MAX_IMAGE_BYTES = 256 << 20, // for all of them together
};

// --- The very file that a process has mapped, whatever has its name now

enum {
	HEAD_BYTES = 4096,  // of a file: its ELF header, usually with its build ID
	MAX_NEIGHBOURS = 8, // mappings that are looked at for one of the same file
	N_PROBES = 16,
	PROBE_BYTES = 256,
};

// Turns "\012" in a path of maps into the newline that it stands for; but it may be those four
// characters.
static char *unescape(const char *path)
{
	char *result = memory_strdup(path);

	for (char *at = result; (at = strstr(at, "\\012")); at++) {
		*at = '\n';
		memmove(at + 1, at + 4, strlen(at + 4) + 1);
	}
	return result;
}

// Returns the mapping of the same file's beginning; NULL: there is none nearby.
static const struct mapping *find_head(const struct maps *maps, const struct mapping *mapping)
{
	for (size_t i = 0; i < MAX_NEIGHBOURS && mapping >= maps->items; i++, mapping--)
		if (mapping->inode && mapping->file_offset == 0)
			return mapping;
	return NULL;
}

// True if the file is the one that is mapped. Its inode's number is not enough: another file
// system, mounted over the directory since, has the same numbers. So the beginning of the file must
// equal what is mapped, which nobody changes, unless it is not mapped or cannot be read.
static bool is_what_is_mapped(int fd, int tid, const struct maps *maps,
                              const struct mapping *mapping)
{
	const struct mapping *head = find_head(maps, mapping);
	unsigned char file[HEAD_BYTES], memory[HEAD_BYTES];

	if (!head || head->inode != mapping->inode || head->device != mapping->device ||
	    !head->readable)
		return true;
	const ssize_t n = pread(fd, file, sizeof(file), 0);
	if (n <= 0 || !proc_read_memory(tid, head->start, memory, (size_t)n))
		return true;
	return memcmp(file, memory, (size_t)n) == 0;
}

static int open_by_path(int tid, const struct maps *maps, const struct mapping *mapping,
                        const char *path)
{
	bool sure = false;
	const int fd =
	    untrusted_file_open_mapped(tid, path, mapping->device, mapping->inode, &sure);

	// Do not wait for a page of memory that a server holds.
	if (fd < 0 || sure || is_what_is_mapped(fd, tid, maps, mapping))
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

static int open_link(int tid, const struct mapping *mapping, const char *link)
{
	return untrusted_file_open_link(tid, link, mapping->device, mapping->inode);
}

// True if trying further ways is useless after this error.
static bool is_final(int number)
{
	return number == ENODEV || number == ETIMEDOUT || number == EINTR || number == EFBIG;
}

// Opens the file of a mapping whose path is `path`, as thread `tid` of the process sees it. -1 with
// errno as in untrusted_file.h, which also has the words for it.
//
// Tries map_files first, which needs privileges but works for deleted files too; then the path, if
// it is still the same file; and last the program, which its users can always open.
static int mapped_file_open(int tid, const struct maps *maps, const struct mapping *mapping,
                            const char *path)
{
	char link[64];

	snprintf(link, sizeof(link), "map_files/%lx-%lx", (unsigned long)mapping->start,
	         (unsigned long)mapping->end);
	int fd = open_link(tid, mapping, link);
	if (fd < 0 && !is_final(errno))
		fd = open_by_path(tid, maps, mapping, path);
	if (fd < 0 && !is_final(errno) && strstr(path, "\\012")) {
		_cleanup_free_ char *plain = unescape(path);
		fd = open_by_path(tid, maps, mapping, plain);
	}
	if (fd < 0 && !is_final(errno)) {
		const int number = errno;
		fd = open_link(tid, mapping, "exe");
		errno = number;
	}
	return fd;
}

static bool are_of_one_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode && a->inode == b->inode && a->device == b->device;
}

// A program may move its code into memory of its own, for larger pages. Finds a mapping of the file
// that this anonymous one may be a part of: the one below, if one above is of the same file, or the
// next above, if the file's beginning was moved. NULL: there is none.
static const struct mapping *mapped_file_beside(const struct maps *maps,
                                                const struct mapping *mapping)
{
	const struct mapping *end = maps->items + maps->count, *below = mapping, *above = mapping;

	for (size_t i = 0; i < MAX_NEIGHBOURS && below > maps->items && !below->inode; i++)
		below--;
	for (size_t i = 0; i < MAX_NEIGHBOURS && above + 1 < end && !above->inode; i++)
		above++;
	if (are_of_one_file(below, above))
		return below;
	// gold's executable segment is the first. Where a file begins above, nothing of it is
	// below.
	return above == mapping + 1 && above->inode && above->file_offset > 0 ? above : NULL;
}

// Compares the mapping's memory with the file in places that far apart. False if one differs.
static bool probe(int tid, const struct mapping *mapping, struct module *module, uint64_t address,
                  uint64_t step, size_t *ret_compared)
{
	unsigned char file[PROBE_BYTES], memory[PROBE_BYTES];

	*ret_compared = 0;
	for (size_t i = 0; i < N_PROBES; i++) {
		const size_t n = module_read_code(module, address + i * step, file, sizeof(file));
		if (n == 0)
			continue; // after its end, where a page is filled up
		if (!proc_read_memory(tid, mapping->start + i * step, memory, n) ||
		    memcmp(file, memory, n) != 0)
			return false;
		++*ret_compared;
	}
	return true;
}

// True if the mapping's memory holds what the module's file has for its addresses (the mapping's
// start is address `address` of the file). Compares some places.
static bool mapped_file_holds_code(int tid, const struct mapping *mapping, struct module *module,
                                   uint64_t address)
{
	uint64_t step = (mapping->end - mapping->start) / N_PROBES;
	size_t n_compared;

	// There may be only a little code in a large page.
	do {
		if (!probe(tid, mapping, module, address, step, &n_compared))
			return false;
		step /= 2;
	} while (n_compared < N_PROBES / 2 && step >= PROBE_BYTES);
	return n_compared > 0;
}

// --- The module of a file that may be gone for a moment

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

// Opens the file of a mapping that is not known yet, and adds its module. In the moment of an exec
// there is no file: a file that is gone has a module without a file, and is looked for again each
// time that this is called, after pauses that double. The locations in that module are not those in
// the file's own, which is made once it is found, so nothing that was learned without the file is
// kept for its code.
static struct module *module_file_add(struct address_space *space, const char *path,
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

// --- The address space

void address_space_init(struct address_space *space, struct modules *modules, int pid)
{
	*space = (struct address_space){
	    .modules = modules, .stat_fd = -1, .pid = pid, .look_again_ns = INT64_MAX};
	code_watch_init(&space->watch);
}

void address_space_deinit(struct address_space *space)
{
	if (space->jit_module)
		perf_map_finish(space->jit_module->perf_map);
	if (space->stat_fd >= 0)
		close(space->stat_fd);
	code_watch_deinit(&space->watch);
	maps_deinit(&space->maps);
	free(space->owners);
	gdb_jit_destroy(space->jit);
	languages_forget(space->languages);
	*space = (struct address_space){0};
}

// Copies the pages of the vDSO, which has no file, into a memory file.
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

// Returns the path as it was before the file was deleted. The caller frees.
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
	if (kind == MODULE_FILE)
		return module_file_add(space, path, mapping);
	const int fd = kind == MODULE_VDSO ? copy_vdso(space->tid, mapping) : -1;
	return modules_add(space->modules, kind, path, mapping->device, mapping->inode, fd);
}

static struct module *owner_of(struct address_space *space, const struct mapping *mapping);

static void look_in_file(void *context)
{
	struct module *module = context;

	if (!symbol_table_find_named(module_dwfl(module), GDB_JIT_DESCRIPTOR, STT_OBJECT,
	                             &module->jit_descriptor))
		module->jit_descriptor = 0;
	languages_look_in_file(module);
}

// CPU time for one search; what is left is searched another time.
#define MAX_SEARCH_NS (NS_PER_SECOND / 2)

// Looks for what any of the process's files may tell of JIT code; looks once in each file.
static void find_descriptors(struct address_space *space, int64_t now_ns)
{
	const int64_t start_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	size_t n_searched = 0;

	gdb_jit_forget(space->jit);
	languages_drop_claims(space);
	space->searched = true;
	space->jit_generation = space->generation;
	for (size_t i = 0; i < space->maps.count && n_searched < MAX_SEARCHED; i++) {
		const struct mapping *mapping = &space->maps.items[i];
		struct module *module = mapping->inode ? owner_of(space, mapping) : NULL;
		if (!module || module->kind != MODULE_FILE)
			continue;
		n_searched++;
		if (!module->looked_for_descriptor) {
			const int64_t cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
			space->searched &= cost_ns < MAX_SEARCH_NS;
			if (!space->searched)
				continue;
			module_guard(module, look_in_file, module, MODULE_FOR_RULES);
		}
		module->looked_for_descriptor = true;
		const uint64_t bias =
		    mapping->start - module_address(module, mapping, mapping->start);
		languages_claim(space, module, bias);
		if (module->jit_descriptor)
			gdb_jit_add_descriptor(space->jit, module->jit_descriptor + bias);
	}
	space->searched_ns = now_ns;
	space->search_cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

// Returns the process's one module for code that no file holds: its locations are the target's
// addresses, and their names come from its perf map.
static struct module *jit_module_of(struct address_space *space)
{
	if (space->jit_module)
		return space->jit_module;
	space->jit_module =
	    modules_add(space->modules, MODULE_ANONYMOUS, "[anon]", 0, (uint64_t)space->pid, -1);
	if (!space->jit_module->perf_map)
		space->jit_module->perf_map = perf_map_create();
	else
		perf_map_forget(space->jit_module->perf_map); // of an earlier process with that pid
	perf_map_update(space->jit_module->perf_map, space->pid, space->tid, space->read_ns);
	space->jit = gdb_jit_create();
	find_descriptors(space, space->read_ns);
	gdb_jit_update(space->jit, space->tid, space->read_ns);
	return space->jit_module;
}

// True for a JIT's "[anon:NAME]", with a name that the process itself has given
// (PR_SET_VMA_ANON_NAME).
static bool is_jit_path(const char *path)
{
	return path[0] != '[' || strcmp(path, "[anon]") == 0 || strncmp(path, "[anon:", 6) == 0;
}

// True if the mapping is memory of a nameless file system, which may hold JIT code as well (.NET's
// doublemapper), unless it holds a program.
static bool is_jit_in_memory_file(const struct address_space *space, const struct mapping *mapping,
                                  const char *path)
{
	uint8_t elf_class;
	uint16_t machine;

	if (strncmp(path, "/memfd:", 7) != 0 && strcmp(path, "/dev/zero") != 0)
		return false;
	_cleanup_close_ int fd = mapped_file_open(space->tid, &space->maps, mapping, path);
	return fd >= 0 && !module_elf_machine(fd, &elf_class, &machine);
}

// Returns the address in the module's file of an address in the mapping. The mapping of code that
// was moved has no file: one beside it has.
static uint64_t address_in_file(const struct address_space *space, struct module *module,
                                const struct mapping *mapping, uint64_t pc)
{
	if (module->kind != MODULE_FILE || mapping->inode)
		return module_address(module, mapping, pc);
	mapping = mapped_file_beside(&space->maps, mapping);
	return pc - mapping->start + module_address(module, mapping, mapping->start);
}

// Returns the file whose code a program has moved into this anonymous mapping; NULL: there is none.
static struct module *find_moved(struct address_space *space, const struct mapping *mapping)
{
	const struct mapping *beside =
	    mapping->inode ? NULL : mapped_file_beside(&space->maps, mapping);

	if (!beside)
		return NULL;
	_cleanup_free_ char *path = path_of(space, beside);
	struct module *module =
	    modules_find(space->modules, MODULE_FILE, path, beside->device, beside->inode);
	if (!module)
		module = add_owner(space, MODULE_FILE, path, beside);
	return mapped_file_holds_code(space->tid, mapping, module,
	                              address_in_file(space, module, mapping, mapping->start))
	           ? module
	           : NULL;
}

static struct module *find_owner(struct address_space *space, const struct mapping *mapping)
{
	_cleanup_free_ char *path = path_of(space, mapping);
	struct module *moved = find_moved(space, mapping);

	if (moved)
		return moved;
	const bool vdso = strcmp(path, "[vdso]") == 0;
	enum module_kind kind = MODULE_ANONYMOUS;

	if (vdso || mapping->inode)
		kind = vdso ? MODULE_VDSO : MODULE_FILE;
	if ((kind == MODULE_ANONYMOUS && is_jit_path(path)) ||
	    (kind == MODULE_FILE && is_jit_in_memory_file(space, mapping, path)))
		return jit_module_of(space);
	struct module *module =
	    modules_find(space->modules, kind, path, mapping->device, mapping->inode);
	return module ? module : add_owner(space, kind, path, mapping);
}

// Returns the module of the mapping, which holds code. It is opened when the first of its code is
// seen, since there may be 65,530 others.
static struct module *owner_of(struct address_space *space, const struct mapping *mapping)
{
	struct module **owner = &space->owners[mapping - space->maps.items];

	if (!*owner && mapping->executable)
		*owner = find_owner(space, mapping);
	return *owner;
}

static bool is_foreign(const struct module *module)
{
	uint8_t elf_class;
	uint16_t machine;

	return module->fd >= 0 && module_elf_machine(module->fd, &elf_class, &machine) &&
	       (elf_class != ARCH_NATIVE->elf_class || machine != ARCH_NATIVE->elf_machine);
}

// Lists the program itself, which profiles name first, even if no sample lies in it. Finding out
// what /proc/PID/exe is may mean asking a server that does not answer.
static void note_program(struct address_space *space)
{
	const struct mapping *mapping = maps_find(&space->maps, space->start_code);

	if (!mapping || !mapping->executable || !mapping->inode)
		return;
	space->modules->program = address_space_resolve(space, mapping->start).module;
	space->is_foreign = is_foreign(space->modules->program);
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

// For this long, what is known of the code that was seen can take the place of a reading.
#define MAX_UNREAD_NS NS_PER_SECOND

// JIT code may be replaced without a sign: what was learned of it, but for the code that rules were
// made from (code_bytes.h), holds for this long.
#define JIT_CODE_AGE_NS (4 * NS_PER_SECOND)

static void reread(struct address_space *space, int tid, int64_t now_ns)
{
	const int64_t start_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);

	space->n_reads++;
	space->stale = space->unsure = false;
	if (maps_read(&space->maps, space->pid, tid)) {
		const uint64_t hash = hash_code(&space->maps);
		forget_owners(space);
		if (hash != space->code_hash) {
			space->generation++;
			code_watch_clear(&space->watch);
			note_program(space);
		}
		space->code_hash = hash;
		address_space_look_at(space, now_ns);
	}
	space->read_ns = space->known_ns = now_ns;
	space->cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

// Reads the file at each tick: it is kept open until its thread ends.
static bool read_stat(struct address_space *space, int tid, struct proc_stat *ret)
{
	if (space->stat_fd >= 0 && proc_read_stat(space->stat_fd, space->pid, tid, ret))
		return true;
	if (space->stat_fd >= 0)
		close(space->stat_fd);
	space->stat_fd = proc_open(space->pid, tid, "stat");
	return proc_read_stat(space->stat_fd, space->pid, tid, ret);
}

static void update_jit_code(struct address_space *space, int tid, int64_t now_ns, bool exec)
{
	struct perf_map *map = space->jit_module->perf_map;

	if (exec) {
		perf_map_forget(map);
		gdb_jit_forget(space->jit);
	}
	if ((space->jit_generation != space->generation || !space->searched) &&
	    now_ns - space->searched_ns >= HINTED_COST_FACTOR * space->search_cost_ns)
		find_descriptors(space, now_ns);
	bool changed = perf_map_update(map, space->pid, tid, now_ns);
	changed |= gdb_jit_update(space->jit, tid, now_ns);
	if (!changed && !exec && now_ns - space->jit_code_ns < JIT_CODE_AGE_NS)
		return;
	space->jit_code_ns = now_ns;
	space->jit_code_generation++;
}

// True if a reading that is due, without a sign that the maps have changed, would tell nothing: all
// code that was seen is still where it was. Code that was not seen yet is looked at when it is
// (code_watch_add), or lies outside of all known mappings, which makes them stale.
static bool needs_no_reading(struct address_space *space, int tid, int64_t now_ns)
{
	return !space->unsure && now_ns - space->read_ns < MAX_UNREAD_NS &&
	       code_watch_is_valid(&space->watch, space->pid, tid);
}

static void update_maps(struct address_space *space, int tid, int64_t now_ns, bool force)
{
	const int64_t since_ns = now_ns - space->known_ns;
	struct proc_stat stat;

	if (!read_stat(space, tid, &stat))
		return;
	// start_stack is random for each exec: another value means another program. start_code is
	// set last, when the maps may have been read already.
	const bool exec =
	    stat.start_stack != space->start_stack || stat.start_code != space->start_code;
	const bool hint = stat.vsize_bytes != space->vsize_bytes || space->stale;
	const int64_t rest_ns = (hint ? HINTED_COST_FACTOR : COST_FACTOR) * space->cost_ns;

	space->tid = tid;
	if (space->jit_module)
		update_jit_code(space, tid, now_ns, exec);
	if (exec)
		code_watch_clear(&space->watch);
	if (!exec && !force && since_ns < rest_ns &&
	    !code_watch_changed(&space->watch, space->pid, tid))
		return;
	if (!exec && !force && since_ns >= rest_ns && !hint &&
	    needs_no_reading(space, tid, now_ns)) {
		space->known_ns = now_ns;
		return;
	}
	const uint32_t generation = space->generation;
	const bool watch_says = space->watch.changed;

	space->vsize_bytes = stat.vsize_bytes;
	space->start_code = stat.start_code;
	space->start_stack = stat.start_stack;
	reread(space, tid, now_ns);
	if (watch_says && space->generation == generation)
		space->watch.unknown = true; // it does not see what the maps show
	if (exec) {
		space->generation++;
		space->is_foreign = false; // the one before was
		note_program(space);
	}
}

void address_space_note_exec(struct address_space *space, int tid)
{
	struct proc_stat stat;

	if (read_stat(space, tid, &stat) && stat.start_stack != space->start_stack)
		space->stale = true;
}

static const struct mapping *find_code_of(const struct address_space *space,
                                          const struct module *module)
{
	for (size_t i = 0; i < space->maps.count; i++) {
		const struct mapping *mapping = &space->maps.items[i];
		_cleanup_free_ char *path = mapping->executable && mapping->inode == module->inode
		                                ? path_of(space, mapping)
		                                : NULL;
		if (path && strcmp(path, module->path) == 0)
			return mapping;
	}
	return NULL;
}

// Asks once more for files that were gone; a module that is found counts in n_found.
static void look_for_gone(struct address_space *space)
{
	size_t n = 0;

	space->look_again_ns = INT64_MAX;
	for (size_t i = 0; i < space->modules->count && n < LOOKS_AT_ONCE; i++) {
		const struct module *gone = space->modules->items[i];
		if (gone->n_looks == 0)
			continue;
		if (space->updated_ns < gone->look_again_ns) {
			address_space_look_at(space, gone->look_again_ns);
			continue;
		}
		const struct mapping *mapping = find_code_of(space, gone);
		if (!mapping)
			continue;
		n++;
		space->owners[mapping - space->maps.items] = NULL;
		owner_of(space, mapping);
	}
	if (n == LOOKS_AT_ONCE)
		space->look_again_ns = space->updated_ns; // again at the next call
}

// Makes anew what is kept by address, with the files that were found, by whichever process.
static void take_found(struct address_space *space)
{
	const struct module *program = space->modules->program;

	space->n_found = space->modules->n_found;
	forget_owners(space);
	space->generation++;
	if (program && program->n_looks > 0)
		note_program(space);
}

void address_space_update(struct address_space *space, int tid, int64_t now_ns, bool force)
{
	space->updated_ns = now_ns;
	update_maps(space, tid, now_ns, force);
	if (now_ns >= space->look_again_ns)
		look_for_gone(space);
	if (space->n_found != space->modules->n_found)
		take_found(space);
}

// Returns the one module for addresses that belong nowhere.
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

static int copy_image(const struct address_space *space, const struct gdb_jit_image *image)
{
	struct modules *modules = space->modules;

	if (modules->n_images == MAX_IMAGES || image->size > MAX_IMAGE_BYTES - modules->image_bytes)
		return -1;
	modules->image_bytes += image->size;
	const int fd = gdb_jit_copy(space->jit, space->tid, image);
	modules->n_images += fd >= 0;
	return fd;
}

struct module *address_space_find_image(const struct address_space *space, uint64_t pc)
{
	struct gdb_jit_image *image = space->jit ? gdb_jit_find(space->jit, pc) : NULL;

	if (!image || image->module || image->is_unusable)
		return image ? image->module : NULL;
	const int fd = copy_image(space, image);
	image->is_unusable = fd < 0;
	if (fd < 0)
		return NULL;
	// Each differs from those before: a number tells them apart.
	image->module = modules_add(space->modules, MODULE_IMAGE, "[jit]", (uint64_t)space->pid,
	                            space->modules->count, fd);
	return image->module;
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
	struct mapping shown = *mapping;

	if (owner == space->jit_module)
		code_watch_leave_out(&space->watch);
	else if (!code_watch_add(&space->watch, mapping, space->pid, space->tid))
		space->stale = true;
	if (owner->kind != MODULE_ANONYMOUS)
		address = address_in_file(space, owner, mapping, pc);
	if (owner->kind == MODULE_FILE && !mapping->inode)
		shown.file_offset =
		    module_offset_of_address(owner, address - (pc - mapping->start));
	const uint32_t code =
	    owner == space->jit_module ? perf_map_find(owner->perf_map, pc) : PERF_MAP_NONE;
	struct module *image = owner == space->jit_module && code == PERF_MAP_NONE
	                           ? address_space_find_image(space, pc)
	                           : NULL;
	if (image)
		owner = image;
	note_mapping(owner, &shown, pc - address);
	return (struct code_address){
	    .space = space, .module = owner, .address = address, .code = code};
}

size_t address_space_read_code(const struct address_space *space, uint64_t pc, void *buffer,
                               size_t size)
{
	const struct mapping *mapping = maps_find(&space->maps, pc);

	if (!mapping || !mapping->executable || !mapping->readable)
		return 0;
	if (size > mapping->end - pc)
		size = mapping->end - pc;
	struct iovec local = {buffer, size}, remote = {(void *)(uintptr_t)pc, size};
	const ssize_t n = process_vm_readv(space->tid, &local, 1, &remote, 1, 0);
	return n > 0 ? (size_t)n : 0;
}

bool address_space_is_code(const struct address_space *space, uint64_t pc)
{
	const struct mapping *mapping = maps_find(&space->maps, pc);

	return mapping && mapping->executable;
}
