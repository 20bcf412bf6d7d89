// SPDX-License-Identifier: MIT
#include "snapshot.h"

#include <string.h>
#include <sys/mman.h>

#include "language.h"
#include "maps.h"
#include "order.h"

enum {
	// Threads that begin in different ways (Go's) have bases that lie a little apart. One that
	// has had a single base needs no more than what its outermost frame may read above it: the
	// rest is the C library's, and to copy it costs more than to unwind the stack.
	BASE_SLACK_BYTES = 4096,
	SINGLE_BASE_SLACK_BYTES = 128,
	KEPT_BYTES = 4 << 20, // of the buffer's memory, kept from one tick to the next
	MAX_UC_FLAGS = 0xff,
	MAX_ALTERNATE_BYTES = 1 << 30,  // of a signal stack: anything larger is not one
	MAX_MAIN_STACK_BYTES = 8 << 20, // how far below [stack] an SP still belongs to it
};

bool snapshot_buffer_init(struct snapshot_buffer *buffer)
{
	void *bytes = mmap(NULL, SNAPSHOT_BUFFER_BYTES, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bytes == MAP_FAILED)
		return false;
	*buffer = (struct snapshot_buffer){.bytes = bytes, .size = SNAPSHOT_BUFFER_BYTES};
	return true;
}

void snapshot_buffer_deinit(struct snapshot_buffer *buffer)
{
	if (buffer->bytes)
		munmap(buffer->bytes, buffer->size);
	*buffer = (struct snapshot_buffer){0};
}

void snapshot_buffer_reset(struct snapshot_buffer *buffer)
{
	if (buffer->n_wanted > 0)
		return;
	if (buffer->used > KEPT_BYTES)
		madvise(buffer->bytes + KEPT_BYTES, buffer->size - KEPT_BYTES, MADV_DONTNEED);
	buffer->used = 0;
}

struct snapshot_mark snapshot_buffer_mark(const struct snapshot_buffer *buffer)
{
	return (struct snapshot_mark){buffer->used, buffer->n_wanted};
}

void snapshot_buffer_take_back(struct snapshot_buffer *buffer, const struct snapshot_mark *mark)
{
	if (buffer->n_wanted == mark->n_wanted)
		buffer->used = mark->used;
}

bool snapshot_buffer_has_room(const struct snapshot_buffer *buffer)
{
	return buffer->size - buffer->used >=
	       (size_t)SNAPSHOT_MAX_STACK_BYTES * SNAPSHOT_MAX_STACKS + OTHER_STACKS_MAX_BYTES;
}

uint8_t *snapshot_buffer_begin_note(const struct snapshot_buffer *buffer, size_t *ret_room)
{
	*ret_room = buffer->size - buffer->used;
	return *ret_room >= SNAPSHOT_MAX_NOTE_BYTES ? buffer->bytes + buffer->used : NULL;
}

void snapshot_buffer_end_note(struct snapshot_buffer *buffer, size_t size, size_t i,
                              struct snapshot *snapshot)
{
	snapshot->notes[i] = (struct snapshot_note){buffer->bytes + buffer->used, size};
	buffer->used += (size + 15) & ~(size_t)15;
}

// How much of a stack is worth copying, from SP on.
struct extent {
	size_t bytes;
	bool is_whole;        // the stack certainly ends there
	uint64_t stack_bytes; // from SP to the end of the stack; 0: not known
};

static struct extent up_to(uint64_t stack_bytes, size_t limit)
{
	return (struct extent){
	    .bytes = stack_bytes <= limit ? stack_bytes : limit,
	    .is_whole = stack_bytes <= limit,
	    .stack_bytes = stack_bytes,
	};
}

// Limits the copy of a deep stack to where unwinding has been seen to go, since the thread is held
// meanwhile.
static struct extent limit_extent(const struct snapshot_hint *hint, uint64_t stack_bytes)
{
	return up_to(stack_bytes,
	             hint->limit_bytes ? hint->limit_bytes : SNAPSHOT_KNOWN_STACK_BYTES);
}

// Returns how many bytes above its base may belong to the stack.
static size_t base_slack(const struct snapshot_copy *copy)
{
	return copy->hint->n_changes > 1 || copy->has_many_bases ? BASE_SLACK_BYTES
	                                                         : SINGLE_BASE_SLACK_BYTES;
}

// Returns the language's stack that the stack pointer is on; NULL: none is known.
static const struct known_stack *find_known(const struct snapshot_copy *copy, uint64_t sp)
{
	for (size_t i = 0; i < copy->n_known; i++)
		if (sp >= copy->known[i].low && sp < copy->known[i].high)
			return &copy->known[i];
	return NULL;
}

static struct extent stack_extent(const struct snapshot_copy *copy, uint64_t sp)
{
	const struct snapshot_hint *hint = copy->hint;
	const struct maps *maps = copy->maps;
	const struct known_stack *known = find_known(copy, sp);
	const struct mapping *mapping = maps_find_from(maps, sp);
	const size_t slack = base_slack(copy);
	uint64_t end = 0;

	if (known && known->is_exact)
		return limit_extent(hint, known->high - sp);
	if (mapping && mapping->start > sp &&
	    (strcmp(maps_path(maps, mapping), "[stack]") != 0 ||
	     mapping->start - sp > MAX_MAIN_STACK_BYTES))
		mapping = NULL; // in no known mapping, nor in a main stack that has grown since
	if (mapping)
		end = mapping->end;
	// A thread that changes stacks (goroutines, coroutines) has a base for each; the last one
	// counts only near the depths seen.
	if (hint->base > sp && hint->base <= end &&
	    hint->base - sp <= 4 * hint->depth + SNAPSHOT_UNKNOWN_STACK_BYTES)
		end = end - hint->base > slack ? hint->base + slack : end;
	else if (hint->tls > sp && hint->tls < end)
		end = hint->tls; // glibc and musl keep a thread's descriptor above its stack
	if (end && end - sp <= SNAPSHOT_UNKNOWN_STACK_BYTES)
		return up_to(end - sp, SNAPSHOT_UNKNOWN_STACK_BYTES);
	if (end && (end != mapping->end || strcmp(maps_path(maps, mapping), "[stack]") == 0))
		return limit_extent(hint, end - sp);
	// It is a stack somewhere in a large mapping (a Go thread's, a coroutine's).
	size_t extent = hint->guess_bytes ? hint->guess_bytes : SNAPSHOT_UNKNOWN_STACK_BYTES;
	if (known && known->high - sp < SNAPSHOT_UNKNOWN_STACK_BYTES)
		extent = known->high - sp + BASE_SLACK_BYTES + hint->guess_bytes;
	if (extent > SNAPSHOT_MAX_STACK_BYTES)
		extent = SNAPSHOT_MAX_STACK_BYTES;
	return end && end - sp <= extent ? up_to(end - sp, extent)
	                                 : (struct extent){.bytes = extent};
}

// Removes a gap at the end, unless the stack is known to go on.
static void trim(struct snapshot_region *region, const struct maps *maps)
{
	const uint64_t last = region->start + region->size - 1;
	const struct mapping *mapping = maps_find_from(maps, last);

	if (region->size == 0 || region->gaps.count == 0 || (mapping && mapping->start <= last))
		return;
	region->size = resident_last_gap(&region->gaps, region->size);
	resident_cut_gaps(&region->gaps, region->size);
}

// Fills the region, from its start on.
static bool fill_region(const struct snapshot_copy *copy, uint8_t *bytes, size_t size,
                        struct snapshot_region *region)
{
	region->bytes = bytes;
	region->size = resident_copy(copy->hint->resident, copy->tid, region->start, bytes, size,
	                             &region->gaps);
	trim(region, copy->maps);
	return region->size > 0;
}

// Copies `size` bytes from sp on, and the red zone below it, if there is one: epilogues made by GCC
// have popped registers that their CFI still describes as saved, and these then lie below SP.
static bool copy_region(const struct snapshot_copy *copy, uint64_t sp, size_t size)
{
	struct snapshot_buffer *buffer = copy->buffer;
	struct snapshot *snapshot = copy->snapshot;
	const struct arch *arch = copy->arch;
	struct snapshot_region *region = &snapshot->regions[snapshot->n_regions];
	uint8_t *bytes = buffer->bytes + buffer->used;

	region->other = 0;
	size += arch->red_zone_bytes;
	if (size > buffer->size - buffer->used)
		size = buffer->size - buffer->used;
	region->start = sp - arch->red_zone_bytes;
	if (!fill_region(copy, bytes, size, region) || region->size <= arch->red_zone_bytes) {
		// It lies in the guard page below the stack.
		if (size <= arch->red_zone_bytes)
			return false;
		region->start = sp;
		if (!fill_region(copy, bytes, size - arch->red_zone_bytes, region))
			return false;
	}
	snapshot->n_regions++;
	buffer->used += (region->size + 15) & ~(size_t)15;
	return true;
}

// <linux/signal.h> has it, but cannot be included with <signal.h>
static const uint32_t AUTODISARM = 1u << 31;

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

// Returns the stack pointer that a signal interrupted, if handler_sp, in the region, is on an
// alternate signal stack: then the kernel's struct ucontext on it names the very stack that it lies
// on.
static uint64_t find_interrupted_sp(const struct arch *arch, const struct snapshot_region *region,
                                    uint64_t handler_sp)
{
	const size_t stack_at = arch->ucontext_stack_offset, sp_at = arch->ucontext_sp_offset;

	for (size_t i = handler_sp - region->start; i + sp_at + 8 <= region->size; i += 8) {
		const uint8_t *context = region->bytes + i;
		// The thread is held, and a deep stack has 20,000 words: this rules out nearly all
		// of them.
		const uint64_t base = word_at(context + stack_at);
		if (handler_sp - base >= MAX_ALTERNATE_BYTES)
			continue;
		if (resident_has_gap(&region->gaps, i, sp_at + 8))
			continue;
		const uint32_t flags = word_at(context + stack_at + 8); // padding follows
		const uint64_t size = word_at(context + stack_at + 16);
		const uint64_t sp = word_at(context + sp_at);
		// uc_flags and uc_link come before uc_stack. The kernel writes a few bits, and 0.
		if (word_at(context + stack_at - 16) > MAX_UC_FLAGS ||
		    word_at(context + stack_at - 8) != 0 || base == 0 ||
		    size > MAX_ALTERNATE_BYTES || (flags & ~AUTODISARM) > (uint32_t)SS_DISABLE)
			continue;
		if (base > handler_sp || handler_sp - base >= size || sp == 0 || sp % 8 != 0)
			continue;
		if (sp < base || sp - base >= size)
			return sp;
		// A handler interrupted another one on this stack. What lies between their frames
		// is not live, and may be an old context of this kind. One that names an SP below
		// itself is old, too.
		if (sp > region->start + i + sp_at)
			i = sp - region->start - 8;
	}
	return 0;
}

static bool is_copied(const struct snapshot *snapshot, uint64_t address)
{
	uint64_t byte;

	return snapshot_read(snapshot, address, 1, &byte);
}

// Returns how many bytes of that stack are to be copied: not beyond its mapping.
static size_t other_bytes(const struct other_stack *stack, const struct maps *maps)
{
	const struct mapping *mapping = maps_find(maps, stack->start);

	return mapping && mapping->end - stack->start < stack->bytes
	           ? (size_t)(mapping->end - stack->start)
	           : stack->bytes;
}

// Copies the other stacks that hold the thread's callers, as unwinding has shown.
static void copy_others(const struct snapshot_copy *copy)
{
	struct snapshot *snapshot = copy->snapshot;
	struct other_stacks *others = copy->hint->others;
	size_t left = OTHER_STACKS_MAX_BYTES;

	snapshot->others = others;
	snapshot->n_learned = others ? others->n_learned : 0;
	for (size_t i = 0; others && i < others->n; i++) {
		const uint64_t start = others->items[i].start;
		const size_t bytes = other_bytes(&others->items[i], copy->maps);
		if (bytes > left ||
		    (is_copied(snapshot, start) && is_copied(snapshot, start + bytes - 1)))
			continue;
		if (copy_region(copy, start, bytes))
			snapshot->regions[snapshot->n_regions - 1].other = i + 1;
		left -= bytes;
	}
}

size_t snapshot_copy_room(const struct snapshot_copy *copy)
{
	const size_t n = copy->snapshot->n_regions;

	return n < SNAPSHOT_MAX_STACKS ? SNAPSHOT_MAX_STACKS - n : 0;
}

void snapshot_copy_note(const struct snapshot_copy *copy, const void *bytes, size_t size)
{
	struct snapshot_buffer *buffer = copy->buffer;

	if (buffer->size - buffer->used < SNAPSHOT_MAX_NOTE_BYTES)
		return;
	memcpy(buffer->bytes + buffer->used, bytes, size);
	snapshot_buffer_end_note(buffer, size, copy->language, copy->snapshot);
}

bool snapshot_copy_has(const struct snapshot_copy *copy, uint64_t address)
{
	return is_copied(copy->snapshot, address);
}

void snapshot_copy_know(struct snapshot_copy *copy, const struct known_stack *stack)
{
	if (copy->n_known < SNAPSHOT_COPY_MAX_KNOWN)
		copy->known[copy->n_known++] = *stack;
}

bool snapshot_copy_stack(const struct snapshot_copy *copy, uint64_t sp)
{
	return snapshot_copy_bytes(copy, sp, stack_extent(copy, sp).bytes);
}

bool snapshot_copy_bytes(const struct snapshot_copy *copy, uint64_t start, size_t size)
{
	return snapshot_copy_room(copy) > 0 && copy_region(copy, start, size);
}

// Limits the copy of a stack that is known to have far more frames than are shown. One frame of
// megabytes near the base is none of them.
static void limit_huge(const struct snapshot_hint *hint, uint64_t sp, struct extent *extent,
                       struct snapshot *snapshot)
{
	const bool has_outer =
	    hint->outer_base > sp && hint->outer_base - sp <= extent->stack_bytes;
	// Among the outer frames, nothing is deep.
	const uint64_t below_outer = hint->outer_sp > sp ? hint->outer_sp - sp : 0;

	snapshot->stack_bytes = extent->stack_bytes;
	snapshot->deep_bytes = has_outer ? below_outer : extent->stack_bytes;
	snapshot->is_huge = hint->huge_bytes != 0 && snapshot->deep_bytes > hint->huge_bytes &&
	                    extent->bytes > hint->huge_limit_bytes;
	if (!snapshot->is_huge)
		return;
	extent->bytes = hint->huge_limit_bytes;
	extent->is_whole = false;
}

bool snapshot_capture(int tid, const struct arch *arch, const struct registers *registers,
                      const struct maps *maps, const struct snapshot_hint *hint,
                      struct snapshot_buffer *buffer, struct snapshot *ret)
{
	struct snapshot_copy copy = {
	    .tid = tid,
	    .arch = arch,
	    .maps = maps,
	    .hint = hint,
	    .buffer = buffer,
	    .snapshot = ret,
	};
	uint64_t sp = registers->value[arch->sp];

	ret->registers = *registers;
	ret->n_regions = 0;
	ret->n_grown = hint->n_grown;
	ret->tls = hint->tls;
	ret->cut = false;
	ret->stack_bytes = ret->deep_bytes = 0;
	ret->is_huge = false;
	ret->is_unsearched = false;
	memset(ret->notes, 0, sizeof(ret->notes));
	ret->is_parked = false;
	languages_ask(&copy);
	while (sp && ret->n_regions < SNAPSHOT_MAX_STACKS) {
		struct extent extent = stack_extent(&copy, sp);
		if (ret->n_regions == 0)
			limit_huge(hint, sp, &extent, ret);
		if (!copy_region(&copy, sp, extent.bytes))
			break;
		const struct snapshot_region *region = &ret->regions[ret->n_regions - 1];
		const uint64_t copied_bytes = region->start + region->size - sp;
		if (!extent.is_whole && copied_bytes == extent.bytes)
			ret->cut = true;
		if (!hint->misled && hint->base > sp && hint->base - sp <= copied_bytes)
			break; // the thread's own stack: nothing is left
		ret->is_unsearched =
		    !hint->is_searched && hint->deep_sp > sp && hint->deep_sp - sp <= copied_bytes;
		if (ret->is_unsearched)
			break; // as deep as is shown: hardly a signal stack, and long to search
		sp = find_interrupted_sp(arch, region, sp);
	}
	languages_copy(&copy);
	copy_others(&copy);
	return ret->n_regions > 0;
}

void snapshot_rehearse(int tid, const struct arch *arch, const struct maps *maps,
                       const struct snapshot_hint *hint, struct snapshot_buffer *buffer)
{
	const struct snapshot_mark mark = snapshot_buffer_mark(buffer);
	struct registers registers = {0};
	struct snapshot dropped;

	registers.value[arch->sp] = hint->stopped_sp;
	snapshot_capture(tid, arch, &registers, maps, hint, buffer, &dropped);
	snapshot_buffer_take_back(buffer, &mark);
}

bool snapshot_is_cut_before(const struct snapshot *snapshot, uint64_t address)
{
	for (size_t i = 0; snapshot->cut && i < snapshot->n_regions; i++) {
		const struct snapshot_region *region = &snapshot->regions[i];
		const size_t bytes = i == 0 ? snapshot->stack_bytes : 0;
		if (address >= region->start &&
		    address - region->start < order_max(bytes, SNAPSHOT_MAX_STACK_BYTES))
			return true;
	}
	return false;
}

bool snapshot_has_gap_at(const struct snapshot *snapshot, uint64_t address)
{
	for (size_t i = 0; i < snapshot->n_regions; i++) {
		const struct snapshot_region *region = &snapshot->regions[i];
		const uint64_t at = address - region->start;
		if (at < region->size && resident_has_gap(&region->gaps, at, sizeof(uint64_t)))
			return true;
	}
	return false;
}

bool snapshot_read(const void *context, uint64_t address, unsigned int size, uint64_t *ret)
{
	const struct snapshot *snapshot = context;

	for (size_t i = 0; i < snapshot->n_regions; i++) {
		const struct snapshot_region *region = &snapshot->regions[i];
		const uint64_t at = address - region->start;
		if (at >= region->size || region->size - at < size ||
		    resident_has_gap(&region->gaps, at, size))
			continue;
		if (region->other)
			snapshot->others->items[region->other - 1].was_read = true;
		*ret = 0;
		memcpy(ret, region->bytes + at, size); // little-endian
		return true;
	}
	return false;
}

size_t snapshot_find_region(const struct snapshot *snapshot, uint64_t address)
{
	size_t i = 0;

	while (i < snapshot->n_regions &&
	       address - snapshot->regions[i].start >= snapshot->regions[i].size)
		i++;
	return i;
}
