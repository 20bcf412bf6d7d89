// SPDX-License-Identifier: MIT
#include "module.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "debug_file.h"
#include "debug_server.h"
#include "frame_names.h"
#include "function_range.h"
#include "gopclntab.h"
#include "maps.h"
#include "memory.h"
#include "perf_map.h"
#include "symbol_table.h"
#include "unpack.h"

enum {
	MAX_SEGMENTS = 4096,
	MAX_MAPPINGS = 1 << 16,
};

// CPU time for all rules of a module together: a row takes microseconds.
#define RULES_NS (2 * NS_PER_SECOND)

// CPU time for all names of a module. The largest debug files take some seconds.
#define NAMES_NS (60 * NS_PER_SECOND)

struct module_segment {
	uint64_t file_offset, file_size;
	uint64_t address;
	bool executable;
};

static void module_destroy(struct module *module)
{
	// What guarded work left half done is left alone.
	if (!module->is_abandoned)
		symbol_table_destroy(module->symbols);
	if (module->dwfl && !module->is_abandoned)
		dwfl_end(module->dwfl);
	memory_cleanup_close(&module->fd);
	memory_cleanup_close(&module->debug_fd);
	memory_cleanup_close(&module->shared_debug_fd);
	perf_map_destroy(module->perf_map);
	function_ranges_destroy(module->function_ranges);
	if (module->frame_names)
		frame_names_deinit(module->frame_names);
	free(module->frame_names);
	for (size_t i = 0; i < MODULE_MAX_LANGUAGES; i++)
		free(module->languages[i]);
	free(module->gopclntab);
	free(module->segments);
	free(module->mappings);
	free(module->path);
	free(module->told);
	free(module);
}

void modules_deinit(struct modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		module_destroy(modules->items[i]);
	free(modules->items);
	*modules = (struct modules){0};
}

struct module *modules_find(const struct modules *modules, enum module_kind kind, const char *path,
                            uint64_t device, uint64_t inode)
{
	for (size_t i = 0; i < modules->count; i++) {
		struct module *module = modules->items[i];
		if (module->kind == kind && module->inode == inode && module->device == device &&
		    strcmp(module->path, path) == 0)
			return module;
	}
	return NULL;
}

void modules_set_debug_sources(struct modules *modules, const struct debug_sources *sources)
{
	modules->debug_sources = sources;
	for (size_t i = 0; i < modules->count; i++)
		modules->items[i]->debug_sources = sources;
}

// Asks no file server: what the kernel knows is enough.
static struct file_version version_of(int fd)
{
	struct statx status;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_MTIME,
	                    &status) != 0)
		return (struct file_version){.is_known = false};
	return (struct file_version){
	    .is_known = true,
	    .size = status.stx_size,
	    .time_s = status.stx_mtime.tv_sec,
	    .time_ns = status.stx_mtime.tv_nsec,
	};
}

bool module_was_written_to(const struct module *module)
{
	const struct file_version *then = &module->version;
	const struct file_version now = version_of(module->fd);

	return module->kind == MODULE_FILE && then->is_known && now.is_known &&
	       (now.size != then->size || now.time_s != then->time_s ||
	        now.time_ns != then->time_ns);
}

struct module *modules_add(struct modules *modules, enum module_kind kind, const char *path,
                           uint64_t device, uint64_t inode, int fd)
{
	struct module *module = modules_find(modules, kind, path, device, inode);

	if (module) {
		if (fd >= 0)
			close(fd);
		return module;
	}
	module = memory_alloc_zeroed(1, sizeof(*module));
	module->kind = kind;
	module->path = memory_strdup(path);
	module->device = device;
	module->inode = inode;
	module->fd = fd;
	module->version = version_of(fd);
	module->debug_fd = module->shared_debug_fd = -1;
	module->debug_sources = modules->debug_sources;
	module->rules_left_ns = RULES_NS;
	module->index = modules->count;
	if (kind == MODULE_RUNTIME)
		module->frame_names = memory_alloc_zeroed(1, sizeof(*module->frame_names));
	*array_push(modules->items, modules->count, modules->capacity) = module;
	return module;
}

void module_add_mapping(struct module *module, const struct module_mapping *mapping)
{
	if (module->n_mappings >= MAX_MAPPINGS)
		return;
	for (size_t i = 0; i < module->n_mappings; i++)
		if (module->mappings[i].file_offset == mapping->file_offset &&
		    (module->kind == MODULE_FILE || module->mappings[i].start == mapping->start))
			return;
	*array_push(module->mappings, module->n_mappings, module->mappings_capacity) = *mapping;
}

void module_rename(struct module *module, const char *path)
{
	free(module->path);
	module->path = memory_strdup(path);
}

const char *module_name(const struct module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash && slash[1] && module->path[0] == '/' ? slash + 1 : module->path;
}

static void read_segments(struct module *module, Elf *elf)
{
	size_t count = 0, capacity = 0;

	if (elf_getphdrnum(elf, &count) != 0)
		return;
	for (size_t i = 0; i < count && i < MAX_SEGMENTS; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(elf, i, &header) || header.p_type != PT_LOAD)
			continue;
		*array_push(module->segments, module->n_segments, capacity) =
		    (struct module_segment){
		        .file_offset = header.p_offset,
		        .file_size = header.p_filesz,
		        .address = header.p_vaddr,
		        .executable = header.p_flags & PF_X,
		    };
	}
}

static void read_build_id(struct module *module)
{
	const unsigned char *bits;
	GElf_Addr address;
	const int size = dwfl_module_build_id(module->dwfl_module, &bits, &address);

	if (size <= 0 || size > MODULE_MAX_BUILD_ID)
		return;
	memcpy(module->build_id, bits, size);
	module->build_id_size = size;
}

static bool report_elf(struct module *module)
{
	void **data;
	// libdwfl closes the fd that it is given; ours stays for code bytes.
	const int fd = unpack_sections(dup(module->fd));

	if (fd < 0)
		return false;
	dwfl_report_begin(module->dwfl);
	module->dwfl_module =
	    dwfl_report_elf(module->dwfl, module_name(module), module->path, fd, 0, true);
	if (!module->dwfl_module)
		close(fd);
	else if (dwfl_module_info(module->dwfl_module, &data, NULL, NULL, NULL, NULL, NULL, NULL))
		*data = module;
	return dwfl_report_end(module->dwfl, NULL, NULL) == 0 && module->dwfl_module;
}

// A module's debug information: its own, or that of files that are found, or fetched, for it.

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

// libdwfl finds nothing by itself: neither a module's file nor its debug files. Each Dwfl_Module's
// user data is its struct module.
static const Dwfl_Callbacks module_debug_callbacks = {
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

static void open_elf(void *context)
{
	struct module *module = context;
	GElf_Addr bias = 0;

	module_opens_files(module);
	module->dwfl = dwfl_begin(&module_debug_callbacks);
	if (!module->dwfl)
		return;
	if (report_elf(module)) {
		Elf *elf = dwfl_module_getelf(module->dwfl_module, &bias);
		if (elf && bias == 0) {
			read_segments(module, elf);
			read_build_id(module);
			return;
		}
	}
	module->dwfl_module = NULL;
	dwfl_end(module->dwfl);
	module->dwfl = NULL;
	module->unreadable = "it is damaged";
}

static void abandon(struct module *module, enum guard_end end)
{
	module->unreadable = guard_end_text(end);
	module->is_abandoned = true;
	module->dwfl_module = NULL;
	module->symbols = NULL;
	function_ranges_destroy(take_pointer(module->function_ranges));
}

// True if it has lost its end before it was read: there may be no trace of its names.
static bool was_cut(const struct module *module)
{
	const struct file_version now = version_of(module->fd);

	return module->version.is_known && now.is_known && now.size < module->version.size;
}

Dwfl_Module *module_dwfl(struct module *module)
{
	uint8_t elf_class;
	uint16_t machine;

	if (module->opened)
		return module->dwfl_module;
	module->opened = true;
	if (was_cut(module)) {
		abandon(module, GUARD_TRUNCATED);
		return NULL;
	}
	// libdwfl would unpack what looks like a compressed image of the kernel.
	if (module->fd >= 0 && module_elf_machine(module->fd, &elf_class, &machine))
		module_guard(module, open_elf, module, MODULE_FOR_RULES);
	return module->dwfl_module;
}

bool module_guard(struct module *module, guard_work *work, void *context, enum module_use use)
{
	int64_t names_left_ns = NAMES_NS;

	if (module->is_abandoned)
		return false;
	const enum guard_end end = guard_run(
	    work, context, use == MODULE_FOR_RULES ? &module->rules_left_ns : &names_left_ns);
	if (end != GUARD_DONE)
		abandon(module, end);
	return end == GUARD_DONE;
}

static uint64_t page_start(uint64_t value)
{
	return value & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

// Finds the segment that holds the address in the file. With by_page, its first page is whole.
static const struct module_segment *find_segment(struct module *module, uint64_t address,
                                                 bool by_page)
{
	const struct module_segment *best = NULL;

	module_dwfl(module);
	for (size_t i = 0; i < module->n_segments; i++) {
		const struct module_segment *segment = &module->segments[i];
		const uint64_t start = by_page ? page_start(segment->address) : segment->address;
		if (address - start < segment->file_size + (segment->address - start) &&
		    (!best || segment->executable))
			best = segment;
	}
	return best;
}

// Says how well the segment fits what the mapping shows at a file offset; 0: not at all. Segments
// may share a page of the file, which is then mapped once for each of them, at different distances
// from its addresses in the file (lld, mold). They differ in their permissions, or else in their
// bytes.
static int fit_of(const struct module_segment *segment, const struct mapping *mapping,
                  uint64_t offset)
{
	const uint64_t first = page_start(segment->file_offset);
	const uint64_t end = segment->file_offset + segment->file_size;

	if (segment->file_size == 0 || mapping->file_offset - first >= end - first)
		return 0;
	return 1 + 2 * (segment->executable == mapping->executable) +
	       (offset - segment->file_offset < segment->file_size);
}

uint64_t module_address(struct module *module, const struct mapping *mapping, uint64_t pc)
{
	const uint64_t offset = pc - mapping->start + mapping->file_offset;
	const struct module_segment *best = NULL;
	int best_fit = 0;

	module_dwfl(module);
	for (size_t i = 0; i < module->n_segments; i++) {
		const int fit = fit_of(&module->segments[i], mapping, offset);
		if (fit > best_fit) {
			best = &module->segments[i];
			best_fit = fit;
		}
	}
	return offset + (best ? best->address - best->file_offset : 0);
}

uint64_t module_offset_of_address(struct module *module, uint64_t address)
{
	const struct module_segment *segment = find_segment(module, address, true);

	return segment ? address - segment->address + segment->file_offset : address;
}

size_t module_read_code(void *untyped, uint64_t address, void *buffer, size_t size)
{
	struct module *module = untyped;
	const struct module_segment *segment = find_segment(module, address, false);

	if (!segment)
		return 0;
	const uint64_t into = address - segment->address;
	if (size > segment->file_size - into)
		size = segment->file_size - into;
	const ssize_t n = pread(module->fd, buffer, size, segment->file_offset + into);
	return n > 0 ? n : 0;
}

// Finds the first section that `fits`; NULL: none. Owned by libelf.
static Elf_Scn *find_section(struct module *module, GElf_Shdr *ret,
                             bool fits(Elf *elf, const GElf_Shdr *header, const void *wanted),
                             const void *wanted, Elf **ret_elf)
{
	Dwfl_Module *dwfl_module = module_dwfl(module);
	GElf_Addr bias;

	Elf *elf = dwfl_module ? dwfl_module_getelf(dwfl_module, &bias) : NULL;
	*ret_elf = elf;
	for (Elf_Scn *section = NULL; elf && (section = elf_nextscn(elf, section));)
		if (gelf_getshdr(section, ret) && fits(elf, ret, wanted))
			return section;
	return NULL;
}

static bool section_holds(Elf *elf, const GElf_Shdr *header, const void *wanted)
{
	(void)elf;
	return header->sh_flags & SHF_ALLOC &&
	       *(const uint64_t *)wanted - header->sh_addr < header->sh_size;
}

static const char *section_name(Elf *elf, const GElf_Shdr *header)
{
	size_t names;

	return elf_getshdrstrndx(elf, &names) == 0 ? elf_strptr(elf, names, header->sh_name) : NULL;
}

static bool section_is_called(Elf *elf, const GElf_Shdr *header, const void *wanted)
{
	const char *name = section_name(elf, header);

	return name && strcmp(name, wanted) == 0;
}

const char *module_section(struct module *module, uint64_t address, uint64_t *ret_start)
{
	GElf_Shdr header;
	Elf *elf;

	if (!find_section(module, &header, section_holds, &address, &elf))
		return NULL;
	*ret_start = header.sh_addr;
	return section_name(elf, &header);
}

bool module_find_section(struct module *module, const char *name, uint64_t *ret_address)
{
	GElf_Shdr header;
	Elf *elf;

	if (!find_section(module, &header, section_is_called, name, &elf))
		return false;
	*ret_address = header.sh_addr;
	return true;
}

const uint8_t *module_data(struct module *module, uint64_t address, size_t *ret_size)
{
	GElf_Shdr header;
	Elf *elf;

	Elf_Scn *section = find_section(module, &header, section_holds, &address, &elf);
	const Elf_Data *data =
	    section && header.sh_type != SHT_NOBITS ? elf_rawdata(section, NULL) : NULL;
	if (!data || !data->d_buf || address - header.sh_addr >= data->d_size)
		return NULL;
	*ret_size = data->d_size - (address - header.sh_addr);
	return (const uint8_t *)data->d_buf + (address - header.sh_addr);
}

struct gopclntab *module_gopclntab(struct module *module)
{
	if (!module->looked_for_gopclntab && module_dwfl(module))
		module->gopclntab = gopclntab_create(module);
	module->looked_for_gopclntab = true;
	return module->is_abandoned ? NULL : module->gopclntab;
}

const struct symbol_table *module_symbols(struct module *module)
{
	if (!module->symbols && module_dwfl(module))
		module->symbols = symbol_table_create(module->dwfl_module);
	return module->symbols;
}

bool module_elf_machine(int fd, uint8_t *ret_class, uint16_t *ret_machine)
{
	Elf64_Ehdr header; // e_ident, e_type and e_machine stand alike in both classes

	if (pread(fd, &header, sizeof(Elf32_Ehdr), 0) < (ssize_t)sizeof(Elf32_Ehdr) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	*ret_class = header.e_ident[EI_CLASS];
	*ret_machine = header.e_machine;
	return true;
}
