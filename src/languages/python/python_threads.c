// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "arch.h"
#include "clock.h"
#include "memory.h"
#include "proc.h"
#include "python.h"
#include "resident.h"
#include "runtimes.h"

enum {
	MAX_INTERPRETERS = 64,
	MAX_THREADS = 1 << 16,
	MAX_CHUNKS = 1 << 14,       // of a data stack
	MAX_TRIES = 4,              // to read a list that changes meanwhile
	MAX_MISSED = 16,            // lists in a row that a state is not in
	COST_FACTOR = 50,           // the list is read again after so many times what that cost
	MAX_ASKED_INTERPRETERS = 4, // while a thread is held
	MAX_NEWEST = 16, // states that are looked at for that of a thread that is not listed
	MAX_SEEN = 8,    // of a thread without the interpreter's loop; then it is not Python's
};

void python_threads_destroy(struct python_threads *threads)
{
	for (size_t i = 0; threads && i < threads->n; i++)
		free(threads->items[i].plan);
	free(threads);
}

static int compare(const void *a, const void *b)
{
	const struct python_thread *x = a, *y = b;

	if (x->tid == y->tid) // the oldest first
		return (x->place < y->place) - (x->place > y->place);
	return x->tid < y->tid ? -1 : 1;
}

const struct python_thread *python_threads_find(const struct python_threads *threads, int tid,
                                                size_t *ret_n)
{
	size_t low = 0, high = threads ? threads->n : 0;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (threads->items[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_n = 0;
	while (threads && low + *ret_n < threads->n && threads->items[low + *ret_n].tid == tid)
		++*ret_n;
	return *ret_n > 0 ? &threads->items[low] : NULL;
}

// The tids of the process, as its own pid namespace has them and as ours has.
struct tid_pair {
	int own, ours;
};

struct tids {
	struct tid_pair *items;
	size_t n, capacity;
};

static void read_tids(const struct python *python, struct tids *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", python->setup->space->pid);
	DIR *directory = opendir(path);
	for (const struct dirent *entry;
	     directory && ret->n < MAX_THREADS && (entry = readdir(directory));) {
		const int tid = atoi(entry->d_name);
		struct proc_status status;
		if (tid <= 0)
			continue;
		if (!python->has_own_pids)
			*array_push(ret->items, ret->n, ret->capacity) =
			    (struct tid_pair){tid, tid};
		else if (proc_read_status(tid, &status))
			*array_push(ret->items, ret->n, ret->capacity) =
			    (struct tid_pair){status.ns_pid, tid};
	}
	if (directory)
		closedir(directory);
}

static int compare_tids(const void *a, const void *b)
{
	const struct tid_pair *x = a, *y = b;

	return (x->own > y->own) - (x->own < y->own);
}

// 0: it is none of the process's.
static int our_tid(const struct tids *tids, uint64_t own)
{
	const struct tid_pair key = {.own = own <= INT_MAX ? (int)own : 0};
	const struct tid_pair *found =
	    tids->n ? bsearch(&key, tids->items, tids->n, sizeof(key), compare_tids) : NULL;

	return found ? found->ours : 0;
}

// The tid that the C library has for the thread, in the process's own namespace; 0: not known.
static uint64_t pthread_tid(const struct python *python, int tid, const uint8_t *state)
{
	const uint64_t pthread = python_word_at(state, python->layout.thread_id);
	uint32_t number;

	return resident_read(python->setup->resident, tid, pthread + ARCH_NATIVE->pthread_tid,
	                     &number, sizeof(number))
	           ? number
	           : 0;
}

// The thread that the state is of; 0: not known. A process that has forked without telling Python
// (uwsgi) leaves the state of its one thread the tid that this had in the parent. Of other states
// the parent's threads are not there, but others may live where these have been.
static int tid_of(const struct python *python, int tid, const struct tids *tids,
                  const uint8_t *state)
{
	const struct python_layout *layout = &python->layout;

	if (!layout->thread_native_id)
		return our_tid(tids, pthread_tid(python, tid, state));
	const int found = our_tid(tids, python_word_at(state, layout->thread_native_id));
	if (found)
		return found;
	const int pid = python->setup->space->pid;
	return our_tid(tids, pthread_tid(python, tid, state)) == pid ? pid : 0;
}

uint64_t python_threads_id(const struct python *python, const uint8_t *state)
{
	const struct python_layout *layout = &python->layout;

	return python_word_at(state, layout->thread_native_id ? layout->thread_native_id
	                                                      : layout->thread_id);
}

// True if the state is that thread's.
static bool is_of(const struct python *python, int tid, const uint8_t *state)
{
	return python->layout.thread_native_id ? python_threads_id(python, state) == (uint64_t)tid
	                                       : pthread_tid(python, tid, state) == (uint64_t)tid;
}

struct listing {
	struct python_thread *items;
	size_t n, capacity, n_interps;
	struct tids tids;
	bool is_cut;   // an interpreter's list changed while it was gone through
	bool is_whole; // not that, and the thread of each state is known
};

static void list_threads(const struct python *python, int tid, const struct python_thread *of,
                         uint64_t state, struct listing *ret)
{
	const struct python_layout *layout = &python->layout;
	uint8_t bytes[PYTHON_MAX_THREAD_BYTES];

	for (; state && ret->n < MAX_THREADS; state = python_word_at(bytes, layout->thread_next)) {
		if (!resident_read(python->setup->resident, tid, state, bytes,
		                   layout->thread_bytes) ||
		    python_word_at(bytes, layout->thread_interp) != of->interp) {
			ret->is_cut = true;
			ret->is_whole = false;
			return;
		}
		const int found = tid_of(python, tid, &ret->tids, bytes);
		const size_t place = ret->n;
		ret->is_whole &= found != 0; // one that is about to begin
		if (found)
			*array_push(ret->items, ret->n, ret->capacity) =
			    (struct python_thread){.tid = found,
			                           .state = state,
			                           .place = place,
			                           .interp = of->interp,
			                           .interp_id = of->interp_id,
			                           .gil = of->gil,
			                           .thread_id = python_threads_id(python, bytes)};
	}
}

// What all threads of an interpreter have in common.
static struct python_thread read_interp(const struct python *python, int tid, uint64_t interp)
{
	const struct python_layout *layout = &python->layout;
	struct python_thread of = {.interp = interp};

	if (layout->interp_id &&
	    !python_read_word(python, tid, interp + layout->interp_id, &of.interp_id))
		of.interp_id = 0;
	if (layout->interp_gil &&
	    !python_read_word(python, tid, interp + layout->interp_gil, &of.gil))
		of.gil = 0;
	return of;
}

// Looks at up to *left states of one interpreter.
static bool find_newest(const struct python *python, int tid, uint64_t interp, size_t *left,
                        struct python_thread *ret)
{
	const struct python_layout *layout = &python->layout;
	uint8_t bytes[PYTHON_MAX_THREAD_BYTES];
	uint64_t state;

	if (!python_read_word(python, tid, interp + layout->interp_threads, &state))
		return false;
	for (; state && *left > 0; --*left, state = python_word_at(bytes, layout->thread_next)) {
		if (!resident_read(python->setup->resident, tid, state, bytes,
		                   layout->thread_bytes) ||
		    python_word_at(bytes, layout->thread_interp) != interp)
			return false;
		if (!is_of(python, tid, bytes))
			continue;
		*ret = read_interp(python, tid, interp);
		ret->tid = tid;
		ret->state = state;
		ret->thread_id = python_threads_id(python, bytes);
		return true;
	}
	return false;
}

// Goes through the interpreters; with `ret` through their threads, too. Returns a hash of where the
// lists begin: new threads come first in them.
static uint64_t go_through(const struct python *python, int tid, struct listing *ret)
{
	const struct python_layout *layout = &python->layout;
	uint64_t interp, hash = 0, first;
	size_t n = 0;

	if (!python_read_word(python, tid, python->runtime + layout->interpreters, &interp))
		return 0;
	for (; interp && n < MAX_INTERPRETERS; n++) {
		if (!python_read_word(python, tid, interp + layout->interp_threads, &first))
			return 0;
		hash = hash_mix(hash, hash_mix(interp, first));
		if (ret) {
			const struct python_thread of = read_interp(python, tid, interp);
			list_threads(python, tid, &of, first, ret);
			ret->n_interps = n + 1;
		}
		if (!python_read_word(python, tid, interp + layout->interp_next, &interp))
			return 0;
	}
	return hash;
}

void python_threads_note_other(struct python *python, int tid, bool is_other)
{
	struct python_other *other = &python->others[(unsigned int)tid % PYTHON_MAX_OTHERS];

	if (other->tid != tid || !is_other)
		*other = (struct python_other){.tid = tid};
	if (is_other && other->n_seen < MAX_SEEN)
		other->n_seen++;
}

static bool is_known_other(const struct python *python, int tid)
{
	const struct python_other *other = &python->others[(unsigned int)tid % PYTHON_MAX_OTHERS];

	return other->tid == tid && other->n_seen == MAX_SEEN;
}

bool python_threads_find_newest(const struct python *python, int tid, struct python_thread *ret)
{
	const struct python_layout *layout = &python->layout;
	uint64_t interp;
	size_t left = MAX_NEWEST;

	if (python->has_own_pids || is_known_other(python, tid) ||
	    !python_read_word(python, tid, python->runtime + layout->interpreters, &interp))
		return false;
	for (size_t n = 0; interp && n < MAX_ASKED_INTERPRETERS && left > 0; n++) {
		if (find_newest(python, tid, interp, &left, ret))
			return true;
		if (!python_read_word(python, tid, interp + layout->interp_next, &interp))
			return false;
	}
	return false;
}

// As go_through; a list that was cut is read again.
static uint64_t read_list(const struct python *python, int tid, struct listing *ret)
{
	uint64_t hash = 0;

	ret->is_cut = true;
	for (int i = 0; i < MAX_TRIES && ret->is_cut; i++) {
		ret->n = 0;
		ret->is_cut = false;
		ret->is_whole = true;
		hash = go_through(python, tid, ret);
	}
	return hash;
}

// Those that are listed again keep what is known of them.
static struct python_threads *make_threads(struct python_threads *old,
                                           const struct listing *listing)
{
	struct python_threads *threads =
	    memory_alloc(sizeof(*threads) + listing->n * sizeof(threads->items[0]));

	threads->n = listing->n;
	if (listing->n > 0)
		memcpy(threads->items, listing->items, listing->n * sizeof(threads->items[0]));
	qsort(threads->items, threads->n, sizeof(threads->items[0]), compare);
	for (size_t i = 0; i < threads->n; i++) {
		struct python_thread *thread = &threads->items[i];
		size_t n;
		thread->plan = NULL;
		// A plan has one owner, even if a damaged list has a state several times.
		if (i > 0 && thread[-1].tid == thread->tid)
			continue;
		const struct python_thread *known = python_threads_find(old, thread->tid, &n);
		if (n > 0 && known->state == thread->state) {
			thread->plan = known->plan;
			thread->root = known->root;
		}
	}
	return threads;
}

static bool has_state(const struct python_threads *threads, const struct python_thread *thread)
{
	size_t n;
	const struct python_thread *states = python_threads_find(threads, thread->tid, &n);

	for (size_t i = 0; i < n; i++)
		if (states[i].state == thread->state)
			return true;
	return false;
}

// Adds what is known from before of threads that a list which was cut does not come to. Of their
// states, those that are no more have no frames, and those that are others' by now say so.
static void keep_missed(const struct python *python, struct listing *ret)
{
	const struct python_threads *old = python->threads;
	struct python_threads *listed = make_threads(NULL, ret);
	char name[PROC_NAME_SIZE];

	for (size_t i = 0; old && i < old->n && ret->n < MAX_THREADS; i++) {
		const struct python_thread *thread = &old->items[i];
		if (thread->n_missed == MAX_MISSED || has_state(listed, thread) ||
		    !proc_read_name(python->setup->space->pid, thread->tid, name))
			continue;
		*array_push(ret->items, ret->n, ret->capacity) = *thread;
		ret->items[ret->n - 1].n_missed++;
	}
	free(listed);
}

// Frees the list, but not what the new one has taken over.
static void replace(struct python *python, struct python_threads *threads)
{
	struct python_threads *old = python->threads;

	python->threads = threads; // a signal handler sees the one or the other
	for (size_t i = 0; old && i < old->n; i++) {
		size_t n;
		const struct python_thread *kept =
		    python_threads_find(threads, old->items[i].tid, &n);
		for (size_t j = 0; j < n; j++)
			if (kept[j].plan == old->items[i].plan)
				old->items[i].plan = NULL;
	}
	python_threads_destroy(old);
}

uint64_t python_threads_find_root(const struct python *python, int tid, uint64_t state)
{
	const uint32_t at = python->layout.thread_chunk;
	uint64_t chunk, previous;

	if (!at || !python_read_word(python, tid, state + at, &chunk))
		return 0;
	// Each chunk begins with the address of the one before.
	for (size_t i = 0; chunk && i < MAX_CHUNKS; i++) {
		if (!python_read_word(python, tid, chunk, &previous))
			return 0;
		if (!previous)
			return chunk;
		chunk = previous;
	}
	return 0;
}

// A thread that has not called anything yet has no data stack.
static void find_roots(struct python *python, int tid)
{
	struct python_threads *threads = python->threads;

	for (size_t i = 0; i < threads->n; i++)
		if (!threads->items[i].root)
			threads->items[i].root =
			    python_threads_find_root(python, tid, threads->items[i].state);
}

// True if a thread has two states in one interpreter. A thread that begins another one makes its
// state, which says to be the maker's until the new thread runs.
static bool has_newcomer(const struct python_threads *threads)
{
	for (size_t i = 1; i < threads->n; i++)
		if (threads->items[i].tid == threads->items[i - 1].tid &&
		    threads->items[i].interp == threads->items[i - 1].interp)
			return true;
	return false;
}

void python_threads_update(struct python *python, int tid, int64_t now_ns)
{
	const uint64_t hash = go_through(python, tid, NULL);

	if (hash == python->threads_hash && !python->wants_threads)
		return;
	if (now_ns - python->threads_ns < COST_FACTOR * python->threads_cost_ns)
		return;
	const int64_t start_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	struct listing listing = {0};
	read_tids(python, &listing.tids);
	if (listing.tids.n > 0)
		qsort(listing.tids.items, listing.tids.n, sizeof(struct tid_pair), compare_tids);
	python->threads_hash = read_list(python, tid, &listing);
	python->n_interps = listing.n_interps;
	if (listing.is_cut)
		keep_missed(python, &listing);
	replace(python, make_threads(python->threads, &listing));
	find_roots(python, tid);
	python->wants_threads = !listing.is_whole || has_newcomer(python->threads);
	free(listing.items);
	free(listing.tids.items);
	python->threads_ns = now_ns;
	python->threads_cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}
