// SPDX-License-Identifier: MIT
#include "gdb_jit.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "hash.h"
#include "interval_map.h"
#include "jit_object.h"
#include "memory.h"
#include "resident.h"

enum {
	VERSION = 1,
	MAX_LISTS = 8,
	MAX_IMAGES = 4096,
	MAX_SECTIONS = 4096,        // of an image
	MAX_ALL_SECTIONS = 1 << 16, // of all images together
	MAX_IMAGE_BYTES = 32 << 20,
	COST_FACTOR = 50, // after a reading, wait at least this many times its cost
};

// Images that were replaced by others that look the same, at the same place, are found after this
// time.
#define AGE_NS (4 * NS_PER_SECOND)

// As struct jit_descriptor and struct jit_code_entry of GDB's manual, for a 64-bit process.
struct descriptor {
	uint32_t version, action;
	uint64_t relevant_entry, first_entry;
};

struct code_entry {
	uint64_t next, previous;
	uint64_t address, size; // of the image
};

struct list {
	uint64_t address;       // of its descriptor
	struct descriptor seen; // when it was last looked at
};

struct images {
	struct gdb_jit_image *items;
	size_t count, capacity;
	size_t n_sections;
	struct interval_map by_address; // to positions in items
};

struct gdb_jit {
	struct list lists[MAX_LISTS];
	size_t n_lists;
	struct images images;
	bool is_stale; // a list has changed since
	int64_t read_ns, cost_ns;
};

struct gdb_jit *gdb_jit_create(void)
{
	return memory_alloc_zeroed(1, sizeof(struct gdb_jit));
}

static void images_deinit(struct images *images)
{
	interval_map_deinit(&images->by_address);
	free(images->items);
	*images = (struct images){0};
}

void gdb_jit_forget(struct gdb_jit *jit)
{
	jit->n_lists = 0;
	jit->is_stale = true;
}

void gdb_jit_destroy(struct gdb_jit *jit)
{
	if (!jit)
		return;
	images_deinit(&jit->images);
	free(jit);
}

void gdb_jit_add_descriptor(struct gdb_jit *jit, uint64_t address)
{
	for (size_t i = 0; i < jit->n_lists; i++)
		if (jit->lists[i].address == address)
			return;
	if (jit->n_lists < MAX_LISTS)
		jit->lists[jit->n_lists++] = (struct list){.address = address};
}

// Notes where the image says that its code is, and the hash of its headers. False if it is not an
// ELF image.
static bool read_headers(struct images *images, int tid, struct gdb_jit_image *image)
{
	const uint32_t id = (uint32_t)images->count;
	Elf64_Ehdr header = {0};

	if (image->size < sizeof(header) || image->size > MAX_IMAGE_BYTES ||
	    !resident_read(NULL, tid, image->address, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr) ||
	    header.e_shnum > MAX_SECTIONS ||
	    header.e_shnum > MAX_ALL_SECTIONS - images->n_sections ||
	    header.e_shoff > image->size ||
	    header.e_shnum * sizeof(Elf64_Shdr) > image->size - header.e_shoff)
		return false;
	images->n_sections += header.e_shnum;
	const size_t size = header.e_shnum * sizeof(Elf64_Shdr);
	_cleanup_free_ Elf64_Shdr *sections = memory_alloc(size + 1);
	if (!resident_read(NULL, tid, image->address + header.e_shoff, sections, size))
		return false;
	image->headers_hash =
	    hash_mix(hash_bytes(&header, sizeof(header)), hash_bytes(sections, size));
	for (size_t i = 0; i < header.e_shnum; i++) {
		const Elf64_Shdr *section = &sections[i];
		if (section->sh_flags & SHF_EXECINSTR && section->sh_addr != 0 &&
		    section->sh_size <= UINT64_MAX - section->sh_addr)
			interval_map_add(&images->by_address, section->sh_addr,
			                 section->sh_addr + section->sh_size, id, id);
	}
	return true;
}

// Reads a list. An entry's back link leads to the one before it, so that no list leads in a circle.
static void read_list(struct images *images, int tid, const struct descriptor *descriptor)
{
	uint64_t previous = 0, at = descriptor->first_entry;
	struct code_entry entry = {0};

	if (descriptor->version != VERSION)
		return;
	for (size_t n = 0; n < MAX_IMAGES && images->count < MAX_IMAGES && at != 0; n++) {
		if (!resident_read(NULL, tid, at, &entry, sizeof(entry)) ||
		    entry.previous != previous)
			return;
		struct gdb_jit_image image = {
		    .entry = at, .address = entry.address, .size = entry.size};
		if (read_headers(images, tid, &image))
			*array_push(images->items, images->count, images->capacity) = image;
		previous = at;
		at = entry.next;
	}
}

static bool is_same(const struct gdb_jit_image *a, const struct gdb_jit_image *b)
{
	return a->entry == b->entry && a->address == b->address && a->size == b->size &&
	       a->headers_hash == b->headers_hash;
}

// Keeps what was found out about images that are still there. Lists grow at the front. True if the
// images are the same as before.
static bool keep_known(struct images *images, const struct images *old)
{
	size_t at = old->count;
	bool same = images->count == old->count;

	for (size_t i = images->count; i-- > 0;) {
		struct gdb_jit_image *image = &images->items[i];
		size_t j = at;
		while (j > 0 && !is_same(image, &old->items[j - 1]))
			j--;
		same &= j > 0;
		if (j == 0)
			continue;
		image->module = old->items[j - 1].module;
		image->is_unusable = old->items[j - 1].is_unusable;
		at = j - 1;
	}
	return same;
}

// Reads the descriptors. True if one has changed.
static bool look(struct gdb_jit *jit, int tid)
{
	struct descriptor now = {0};
	bool changed = false;

	for (size_t i = 0; i < jit->n_lists; i++) {
		struct list *list = &jit->lists[i];
		if (!resident_read(NULL, tid, list->address, &now, sizeof(now)) ||
		    memcmp(&now, &list->seen, sizeof(now)) == 0)
			continue;
		list->seen = now;
		changed = true;
	}
	return changed;
}

// Reads all lists. True if there are other images than before.
static bool reread(struct gdb_jit *jit, int tid, int64_t now_ns)
{
	const int64_t start_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	struct images images = {0};

	for (size_t i = 0; i < jit->n_lists; i++)
		read_list(&images, tid, &jit->lists[i].seen);
	interval_map_build(&images.by_address);
	const bool same = keep_known(&images, &jit->images);
	images_deinit(&jit->images);
	jit->images = images;
	jit->is_stale = look(jit, tid); // stays stale if it has changed meanwhile
	jit->read_ns = now_ns;
	jit->cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	return !same;
}

bool gdb_jit_update(struct gdb_jit *jit, int tid, int64_t now_ns)
{
	const bool was_stale = jit->is_stale;
	const int64_t since_ns = now_ns - jit->read_ns;
	bool changed = false;

	if (jit->n_lists == 0)
		return false;
	jit->is_stale |= look(jit, tid);
	if ((jit->is_stale || since_ns >= AGE_NS) && since_ns >= COST_FACTOR * jit->cost_ns)
		changed = reread(jit, tid, now_ns);
	return changed || jit->is_stale != was_stale;
}

struct gdb_jit_image *gdb_jit_find(const struct gdb_jit *jit, uint64_t address)
{
	const uint32_t id =
	    jit->is_stale ? INTERVAL_NONE : interval_map_find(&jit->images.by_address, address);

	return id != INTERVAL_NONE && id < jit->images.count ? &jit->images.items[id] : NULL;
}

// True if the image is still what it was when its list was read.
static bool is_there(struct gdb_jit *jit, int tid, const struct gdb_jit_image *image)
{
	struct images again = {0};
	struct gdb_jit_image now = *image;
	struct code_entry entry = {0};

	jit->is_stale |= look(jit, tid);
	const bool same = !jit->is_stale &&
	                  resident_read(NULL, tid, image->entry, &entry, sizeof(entry)) &&
	                  entry.address == image->address && entry.size == image->size &&
	                  read_headers(&again, tid, &now) && is_same(image, &now);
	images_deinit(&again);
	return same;
}

int gdb_jit_copy(struct gdb_jit *jit, int tid, const struct gdb_jit_image *image)
{
	_cleanup_free_ uint8_t *bytes = memory_alloc(image->size + JIT_OBJECT_MORE_BYTES);
	if (!resident_read(NULL, tid, image->address, bytes, image->size) ||
	    !is_there(jit, tid, image))
		return -1;
	const size_t size = jit_object_place(bytes, image->size);
	const int fd = size > 0 ? memfd_create("jit", MFD_CLOEXEC) : -1;
	if (fd >= 0 && pwrite(fd, bytes, size, 0) != (ssize_t)size) {
		close(fd);
		return -1;
	}
	return fd;
}
