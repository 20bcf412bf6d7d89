// SPDX-License-Identifier: MIT
#include "dump_problems.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "call_text.h"
#include "dump.h"
#include "dump_locks.h"
#include "memory.h"
#include "proc.h"
#include "text.h"

enum { MAX_NAME_BYTES = 64, MIN_WAITERS = 2, MAX_LISTED = 64 };

static const struct dump_thread *thread_of(const struct dump *dump, int pid, int tid)
{
	for (size_t i = 0; i < dump->n_threads; i++) {
		const struct thread *entry = dump_thread_of(dump, &dump->threads[i]);
		if (entry->tid == tid && entry->pid == pid)
			return &dump->threads[i];
	}
	return NULL;
}

char *dump_name_of(const struct dump *dump, int pid, int tid)
{
	const struct dump_thread *thread = thread_of(dump, pid, tid ? tid : pid);
	char name[PROC_NAME_SIZE];

	if (thread)
		return memory_strdup(thread->name);
	if (!proc_read_name(pid, tid ? tid : pid, name))
		name[0] = '\0';
	return text_clean(name, strlen(name), MAX_NAME_BYTES);
}

// "worker" 12, or process "server" 10.
static char *holder_name(const struct dump *dump, const struct deadlock_holder *holder)
{
	_cleanup_free_ char *name = dump_name_of(dump, holder->pid, holder->tid);

	if (holder->tid == 0)
		return memory_printf("process \"%s\" %d", name, holder->pid);
	if (holder->pid != dump->pid && !thread_of(dump, holder->pid, holder->tid))
		return memory_printf("\"%s\" %d of process %d", name, holder->tid, holder->pid);
	return memory_printf("\"%s\" %d", name, holder->tid);
}

static const struct deadlock_node *node_of(const struct dump *dump, int pid, int tid)
{
	return dump->locks ? dump_locks_node(dump->locks, pid, tid) : NULL;
}

static const struct dump_waiter *waiter_of(const struct dump *dump,
                                           const struct deadlock_node *node)
{
	return &dump->locks->waiters[node - dump->locks->nodes];
}

// "mutex a", "the end", "a file lock".
static char *what_text(const struct dump_waiter *waiter)
{
	const struct lock_claim *claim = &waiter->claim;

	switch (claim->what) {
	case LOCK_WHAT_JOIN:
	case LOCK_WHAT_PROCESS:
		return memory_strdup("the end");
	case LOCK_WHAT_FILE:
		return memory_strdup("file lock");
	case LOCK_WHAT_CHILD:
		return memory_strdup("child");
	default:
		return waiter->symbol
		           ? memory_printf("%s %s", lock_what_name(claim->what), waiter->symbol)
		           : memory_strdup(lock_what_name(claim->what));
	}
}

static const char *relation(const struct dump_waiter *waiter)
{
	switch (waiter->claim.what) {
	case LOCK_WHAT_JOIN:
	case LOCK_WHAT_PROCESS:
		return " of";
	case LOCK_WHAT_CHILD:
		return "";
	default:
		return waiter->claim.is_certain ? " held by" : " perhaps held by";
	}
}

static char *holders_text(const struct dump *dump, const struct deadlock_node *node)
{
	char *text = memory_strdup("");

	for (size_t i = 0; i < node->n_holders; i++) {
		_cleanup_free_ char *name = holder_name(dump, &node->holders[i]);
		char *longer = memory_printf("%s%s%s", text, i ? ", " : "", name);
		free(text);
		text = longer;
	}
	return text;
}

static char *wait_text(const struct dump *dump, const struct deadlock_node *node)
{
	const struct dump_waiter *waiter = waiter_of(dump, node);
	_cleanup_free_ char *what = what_text(waiter);
	_cleanup_free_ char *holders = holders_text(dump, node);

	if (node->n_holders == 0 && waiter->claim.readers)
		return memory_printf("%s held by %" PRIu32 " reader%s", what, waiter->claim.readers,
		                     waiter->claim.readers == 1 ? "" : "s");
	return memory_printf("%s%s %s", what, relation(waiter), holders);
}

char *dump_peers_text(const struct dump *dump, const struct peer_wanted *peer)
{
	char *text = memory_strdup("the other end has");

	for (size_t i = 0; i < peer->n_pids && i < PEER_MAX; i++) {
		const struct deadlock_holder holder = {peer->pids[i], 0};
		_cleanup_free_ char *name = holder_name(dump, &holder);
		char *longer = memory_printf("%s%s %s", text, i ? "," : "", name);
		free(text);
		text = longer;
	}
	if (peer->n_pids <= PEER_MAX)
		return text;
	char *longer = memory_printf("%s and %zu more", text, peer->n_pids - PEER_MAX);
	free(text);
	return longer;
}

char *dump_holder_text(const struct dump *dump, const struct dump_thread *thread)
{
	const struct thread *entry = dump_thread_of(dump, thread);
	const struct deadlock_node *node = node_of(dump, entry->pid, entry->tid);

	if (node && waiter_of(dump, node)->peer.n_pids > 0)
		return dump_peers_text(dump, &waiter_of(dump, node)->peer);
	if (!node || (node->n_holders == 0 && !waiter_of(dump, node)->claim.readers))
		return NULL;
	return wait_text(dump, node);
}

struct place_search {
	char *place; // "slow t.cc:13"
	bool is_own; // it is of the program's own code
};

static bool is_library(const char *module)
{
	static const char *const names[] = {"/libc.so", "/libc-", "/libpthread", "/libstdc++",
	                                    "/ld-"};

	for (size_t i = 0; i < array_size(names); i++)
		if (strstr(module, names[i]))
			return true;
	return module[0] == '\0';
}

// What a compiler puts into every program: std::mutex::lock and the like.
static bool is_header(const char *file)
{
	return text_begins_with(file, "/usr/include/") || text_begins_with(file, "/usr/lib/");
}

// The innermost function of the program's own; without any, the innermost one of no system library.
static void note_place(void *context, const struct dump_frame *frame)
{
	struct place_search *search = context;
	const char *slash = strrchr(frame->file, '/');

	if (search->is_own || (search->place && !frame->is_own) || is_library(frame->module) ||
	    is_header(frame->file))
		return;
	free(search->place);
	search->is_own = frame->is_own;
	search->place = frame->line ? memory_printf("%s %s:%" PRIu32, frame->name,
	                                            slash ? slash + 1 : frame->file, frame->line)
	                            : memory_strdup(frame->name);
}

static char *place_of(const struct dump *dump, const struct deadlock_node *node)
{
	const struct dump_thread *thread = thread_of(dump, node->pid, node->tid);
	struct place_search search = {0};

	if (thread)
		dump_frames(dump, thread->sample, note_place, &search);
	return search.place;
}

static void put_dead(const struct dump *dump, const struct deadlock_node *node, FILE *stream)
{
	const struct deadlock_holder self = {node->pid, node->tid};
	const struct dump_waiter *waiter = waiter_of(dump, node);
	_cleanup_free_ char *name = holder_name(dump, &self);
	_cleanup_free_ char *wait = wait_text(dump, node);
	_cleanup_free_ char *place = place_of(dump, node);

	fprintf(stream, "    %s waits for %s", name, wait);
	if (waiter->claim.address)
		fprintf(stream, ", at 0x%" PRIx64, waiter->claim.address);
	fprintf(stream, "%s%s\n", place ? ", in " : "", place ?: "");
}

static bool begins_cycle(const struct dump_locks *locks, size_t i)
{
	return locks->nodes[i].is_dead && locks->nodes[i].cycle == (long)i;
}

size_t dump_count_deadlocks(const struct dump *dump)
{
	size_t n = 0;

	for (size_t i = 0; dump->locks && i < dump->locks->count; i++)
		n += begins_cycle(dump->locks, i);
	return n;
}

static void put_cycle(const struct dump *dump, size_t first, FILE *stream)
{
	const struct deadlock_node *nodes = dump->locks->nodes;
	size_t n = 0;

	for (size_t i = 0; i < dump->locks->count; i++)
		n += nodes[i].cycle == (long)first;
	if (n == 1)
		fputs("! DEADLOCK: a thread waits for itself\n", stream);
	else
		fprintf(stream, "! DEADLOCK: %zu threads wait for each other\n", n);
	size_t i = first;
	do {
		put_dead(dump, &nodes[i], stream);
		i = (size_t)nodes[i].next;
	} while (i != first);
}

// Those that wait for a deadlock without being part of it.
static void put_victims(const struct dump *dump, FILE *stream)
{
	size_t n = 0;

	for (size_t i = 0; i < dump->locks->count; i++)
		n += dump->locks->nodes[i].is_dead && dump->locks->nodes[i].cycle == DEADLOCK_NONE;
	if (n > 0)
		fprintf(stream, "! %zu more thread%s for those, directly or not\n", n,
		        n == 1 ? " waits" : "s wait");
}

static void put_root(const struct dump *dump, size_t root, size_t n, FILE *stream)
{
	const struct deadlock_node *node = &dump->locks->nodes[root];
	const struct dump_thread *thread = thread_of(dump, node->pid, node->tid);
	const struct deadlock_holder holder = {node->pid, node->tid};
	_cleanup_free_ char *name = holder_name(dump, &holder);
	_cleanup_free_ char *place = place_of(dump, node);
	char duration[CALL_TEXT_DURATION_SIZE];

	fprintf(stream, "! %zu threads wait, directly or not, for %s", n, name);
	if (thread && thread->kind == WAIT_KIND_RUNNING)
		fputs(", which runs", stream);
	else if (thread && thread->kind == WAIT_KIND_RUNNABLE)
		fputs(", which waits for a CPU", stream);
	else if (thread && thread->call)
		fprintf(stream, ", which is in %.*s", (int)strcspn(thread->call, "("),
		        thread->call);
	if (thread && thread->blocked_ns >= 0) {
		call_text_duration(thread->blocked_ns, duration);
		fprintf(stream, " (for %s)", duration);
	}
	fprintf(stream, "%s%s\n", place ? ", below " : "", place ?: "");
}

static void put_roots(const struct dump *dump, FILE *stream)
{
	const struct dump_locks *locks = dump->locks;
	_cleanup_free_ size_t *n_waiters = memory_alloc_zeroed(locks->count + 1, sizeof(size_t));
	size_t n_listed = 0;

	for (size_t i = 0; i < locks->count; i++)
		if (locks->nodes[i].root != DEADLOCK_NONE && locks->waiters[i].claim.is_certain)
			n_waiters[locks->nodes[i].root]++;
	for (size_t i = 0; i < locks->count && n_listed < MAX_LISTED; i++)
		if (n_waiters[i] >= MIN_WAITERS) {
			put_root(dump, i, n_waiters[i], stream);
			n_listed++;
		}
}

// What there was too much of.
static void put_unseen(const struct dump_locks *locks, FILE *stream)
{
	if (locks->n_unseen_processes)
		fprintf(stream,
		        "! %zu more processes hold something and were not checked: a deadlock "
		        "through them is not found\n",
		        locks->n_unseen_processes);
	if (locks->n_unseen_descriptors)
		fprintf(stream,
		        "! %zu descriptors were not checked, beyond the first %d: other ends of "
		        "pipes and sockets may be missing\n",
		        locks->n_unseen_descriptors, PEER_MAX_DESCRIPTORS);
}

void dump_problems_write(const struct dump *dump, FILE *stream)
{
	if (!dump->locks)
		return;
	for (size_t i = 0; i < dump->locks->count; i++)
		if (begins_cycle(dump->locks, i))
			put_cycle(dump, i, stream);
	put_victims(dump, stream);
	put_roots(dump, stream);
	put_unseen(dump->locks, stream);
}
