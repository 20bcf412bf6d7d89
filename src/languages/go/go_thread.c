// SPDX-License-Identifier: MIT
#include "go_thread.h"

#include <string.h>

#include "order.h"
#include "resident.h"

enum {
	// Words of struct g: stack.lo, stack.hi, two guards, _panic, _defer, m, sched (sp, pc, g).
	G_LOW = 0,
	G_HIGH = 1,
	G_M = 6,
	G_SP = 7,
	G_PC = 8,
	G_SELF = 9,
	G_WORDS = 10,
	MAX_IDENTITY_WORDS = 64,

	STATUS_MASK = 0xfff,       // the garbage collector's bit is above
	MAX_STACK_BYTES = 1 << 30, // runtime.maxstacksize, of 64-bit programs
};

// Whose memory is read.
struct source {
	int tid;
	struct resident *resident;
};

static bool read_words(const struct source *source, uint64_t address, uint64_t *ret, size_t n)
{
	const size_t size = n * sizeof(*ret);

	return address != 0 && address % sizeof(*ret) == 0 &&
	       resident_read(source->resident, source->tid, address, ret, size);
}

// Parses the words of a struct g.
static bool parse_stack(const uint64_t *words, uint64_t address, uint64_t m, struct go_stack *ret)
{
	if (words[G_M] != m || words[G_LOW] >= words[G_HIGH] ||
	    words[G_HIGH] - words[G_LOW] > MAX_STACK_BYTES)
		return false;
	*ret = (struct go_stack){
	    .address = address,
	    .low = words[G_LOW],
	    .high = words[G_HIGH],
	    .pc = words[G_PC],
	};
	if (words[G_SP] % sizeof(uint64_t) == 0)
		ret->sp = words[G_SP];
	return true;
}

// Reads the goroutine that the thread runs; there is none between two of them.
static bool read_goroutine(const struct source *source, uint64_t address, uint64_t m,
                           struct go_stack *ret)
{
	uint64_t words[G_WORDS];

	*ret = (struct go_stack){0};
	if (address == 0)
		return true;
	if (!read_words(source, address, words, G_WORDS) || words[G_SELF] != address)
		return false;
	if (words[G_M] == 0)
		return true; // it is just being taken on, or put aside
	if (!parse_stack(words, address, m, ret))
		return false;
	if (!go_stack_has(ret, ret->sp))
		ret->sp = 0;
	return true;
}

static bool find_g(const struct source *source, uint64_t tls, const struct go_layout *layout,
                   uint64_t *ret)
{
	uint64_t offset = (uint64_t)layout->tls;

	return (layout->tls != 0 || read_words(source, layout->tls_at, &offset, 1)) &&
	       read_words(source, tls + offset, ret, 1);
}

// Reads the status, id and labels of the goroutine, which the thread runs while it stands still,
// and what lies between them, at once.
static void read_identity(const struct source *source, const struct go_layout *layout,
                          struct go_thread *thread)
{
	uint64_t words[MAX_IDENTITY_WORDS];
	const uint64_t labels = layout->labels ? layout->labels : layout->goid; // 0: it has none
	const uint64_t first = order_min(order_min(layout->status, layout->goid), labels);
	const uint64_t last = order_max(order_max(layout->status, layout->goid), labels);
	const size_t n = (last - first) / sizeof(*words) + 1;

	if (n > MAX_IDENTITY_WORDS ||
	    (layout->goid | layout->status | layout->labels) % sizeof(*words) != 0 ||
	    !read_words(source, thread->goroutine.address + first, words, n))
		return;
	thread->goid = words[(layout->goid - first) / sizeof(*words)];
	thread->status = words[(layout->status - first) / sizeof(*words)] & STATUS_MASK;
	if (layout->labels)
		thread->labels = words[(labels - first) / sizeof(*words)];
}

bool go_thread_read(int tid, struct resident *resident, uint64_t tls,
                    const struct go_layout *layout, struct go_thread *ret)
{
	const struct source source = {tid, resident};
	struct go_thread thread = {0};
	uint64_t own, goroutine, g[G_WORDS], g0[G_WORDS];

	if (!find_g(&source, tls, layout, &thread.g) ||
	    !read_words(&source, thread.g, g, G_WORDS) || !read_words(&source, g[G_M], &own, 1) ||
	    !read_words(&source, g[G_M] + layout->curg, &goroutine, 1) ||
	    !read_words(&source, own, g0, G_WORDS) || !parse_stack(g0, own, g[G_M], &thread.own))
		return false;
	thread.m = g[G_M];
	if (goroutine == own || !read_goroutine(&source, goroutine, thread.m, &thread.goroutine))
		return false;
	if (thread.goroutine.address && layout->goid)
		read_identity(&source, layout, &thread);
	*ret = thread;
	return true;
}

bool go_thread_is_valid(int tid, struct resident *resident, const struct go_thread *thread)
{
	const struct source source = {tid, resident};
	struct go_stack now;

	return thread->goroutine.address == 0 ||
	       (read_goroutine(&source, thread->goroutine.address, thread->m, &now) &&
	        memcmp(&now, &thread->goroutine, sizeof(now)) == 0);
}
