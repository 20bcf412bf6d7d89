// SPDX-License-Identifier: MIT
#include "dump_locks.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "call_text.h"
#include "clock.h"
#include "data_symbol.h"
#include "dump.h"
#include "dump_inferred.h"
#include "file_locks.h"
#include "lock_look.h"
#include "maps.h"
#include "memory.h"
#include "own_tids.h"
#include "proc.h"
#include "process_list.h"
#include "profile.h"
#include "syscall_numbers.h"
#include "text.h"

enum {
	BETWEEN_LOOKS_NS = 2000000,
	MAX_OTHER_PROCESSES = 32,
	MAX_OTHER_THREADS = 1000, // of all of them
	ANY_CHILD = -1,
};

// Locks in memory that two processes share.
//
// A lock's word tells the tid of its holder, which may be a thread of any process, or one that is
// long gone: it counts only if the thread's process has the same memory mapped. A word is known to
// be a mutex's by the names of the functions that wait for it, and these are not known for another
// process: there it is taken for a mutex if the thread waits at the same instruction of the same
// file as one of the dump's threads that wait for a mutex.
enum {
	OWNER_WORD = 2, // of glibc's mutex, from the futex on; the word itself has it in some
	TID_MASK = FUTEX_TID_MASK,
};

// A place in a file, or in memory that is mapped like one.
struct place {
	uint64_t device, inode, offset;
};

static bool is_same(const struct place *a, const struct place *b)
{
	return a->inode != 0 && a->device == b->device && a->inode == b->inode &&
	       a->offset == b->offset;
}

// False: it is nobody else's memory.
static bool find_place(const struct maps *maps, uint64_t address, struct place *ret)
{
	const struct mapping *mapping = maps_find(maps, address);

	if (!mapping || mapping->inode == 0)
		return false;
	*ret = (struct place){mapping->device, mapping->inode,
	                      address - mapping->start + mapping->file_offset};
	return true;
}

static bool has_place(const struct maps *maps, const struct place *place)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->items[i];
		if (mapping->shared && mapping->device == place->device &&
		    mapping->inode == place->inode && place->offset >= mapping->file_offset &&
		    place->offset - mapping->file_offset < mapping->end - mapping->start)
			return true;
	}
	return false;
}

// True if the process `pid` has the memory mapped in which the waiter's futex lies.
static bool dump_shared_has(const struct lock_look *look, int pid)
{
	struct maps own = {0}, other = {0};
	struct place place;

	maps_read(&own, look->pid, look->tid);
	const struct mapping *mapping = maps_find(&own, look->call.args[0]);
	bool has = mapping && mapping->shared && find_place(&own, look->call.args[0], &place);
	if (has)
		maps_read(&other, pid, pid);
	has = has && has_place(&other, &place);
	maps_deinit(&own);
	maps_deinit(&other);
	return has;
}

static int process_of_word(uint32_t tid)
{
	struct proc_status status;

	return tid != 0 && tid <= TID_MASK && proc_read_status((int)tid, &status) ? status.tgid : 0;
}

// Returns the pid of another process of which a thread may hold what this one waits for; 0: none.
static int dump_shared_holder(const struct lock_look *look)
{
	const uint32_t words[] = {lock_look_word(look, OWNER_WORD),
	                          lock_look_word(look, 0) & TID_MASK};

	if (look->call.nr != SYS_futex || look->call.args[1] & FUTEX_PRIVATE_FLAG)
		return 0;
	for (size_t i = 0; i < array_size(words); i++) {
		const int pid = process_of_word(words[i]);
		if (pid != 0 && pid != look->pid && dump_shared_has(look, pid))
			return pid;
	}
	return 0;
}

// Where each of the waiters waits, by instruction; they are sorted by process.
static struct place *find_places(const struct dump_waiter *waiters, size_t n)
{
	struct place *places = memory_alloc_zeroed(n + 1, sizeof(*places));
	struct maps maps = {0};
	int pid = 0;

	for (size_t i = 0; i < n; i++) {
		const struct lock_look *look = &waiters[i].look;
		if (!waiters[i].has_look || look->call.nr != SYS_futex)
			continue;
		if (pid != look->pid)
			maps_read(&maps, look->pid, look->tid);
		pid = look->pid;
		find_place(&maps, look->call.pc, &places[i]);
	}
	maps_deinit(&maps);
	return places;
}

static bool is_mutex(const struct dump_waiter *waiters, const struct place *places, size_t n,
                     const struct place *place)
{
	for (size_t i = 0; i < n; i++)
		if (waiters[i].hint == LOCK_HINT_MUTEX && waiters[i].thread >= 0 &&
		    is_same(&places[i], place))
			return true;
	return false;
}

// Sets the hints for threads of other processes, by comparing their waits with the dump's.
static void dump_shared_hints(struct dump_waiter *waiters, size_t n)
{
	bool has_other = false;

	for (size_t i = 0; i < n; i++)
		has_other |= waiters[i].thread < 0 && waiters[i].look.call.nr == SYS_futex;
	if (!has_other)
		return;
	_cleanup_free_ struct place *places = find_places(waiters, n);
	for (size_t i = 0; i < n; i++)
		if (waiters[i].thread < 0 && is_mutex(waiters, places, n, &places[i]))
			waiters[i].hint = LOCK_HINT_MUTEX;
}

static struct dump_waiter *push(struct dump_locks *locks, int pid, int tid)
{
	struct dump_waiter *waiter = array_push(locks->waiters, locks->count, locks->capacity);

	*waiter = (struct dump_waiter){.thread = -1, .look = {.pid = pid, .tid = tid}};
	waiter->has_look = lock_look_take(pid, tid, &waiter->look);
	locks->first_ns = clock_now_ns();
	return waiter;
}

void dump_locks_add(struct dump_locks *locks, int pid, int tid, uint32_t thread, bool asleep,
                    uint64_t runs, const char *lock)
{
	struct dump_waiter *waiter = push(locks, pid, tid);

	waiter->thread = thread;
	waiter->lock = lock;
	waiter->is_same = asleep && waiter->has_look && waiter->look.runs == runs;
}

static bool has_process(const struct dump_locks *locks, int pid)
{
	for (size_t i = 0; i < locks->n_pids; i++)
		if (locks->pids[i] == pid)
			return true;
	return false;
}

void dump_locks_add_process(struct dump_locks *locks, int pid)
{
	if (!has_process(locks, pid))
		*array_push(locks->pids, locks->n_pids, locks->pids_capacity) = pid;
}

static bool waits_for_file_lock(const struct dump_waiter *waiter)
{
	const int64_t nr = waiter->look.call.nr;

	return waiter->has_look && (nr == SYS_flock || nr == SYS_fcntl);
}

// The processes that hold the lock that it waits for.
static size_t file_holders(const char *table, const struct dump_waiter *waiter, int *ret,
                           size_t max)
{
	const struct file_lock_wait wait = {
	    .pid = waiter->look.pid,
	    .inode = waiter->look.inode,
	    .is_flock = waiter->look.call.nr == SYS_flock,
	};

	return table ? file_locks_find(table, &wait, ret, max) : 0;
}

// The pid of the child that it waits for, as the process sees it; ANY_CHILD; 0: it waits for none.
static int awaited_child(const struct dump_waiter *waiter)
{
	const struct proc_syscall *call = &waiter->look.call;

	if (!waiter->has_look)
		return 0;
	if (call->nr == SYS_wait4)
		return (int)call->args[0] > 0 ? (int)call->args[0] : ANY_CHILD;
	if (call->nr == SYS_waitid && call->args[0] == P_PID)
		return (int)call->args[1];
	return call->nr == SYS_waitid && call->args[0] != P_PIDFD ? ANY_CHILD : 0;
}

// The children of the process that are awaited; of any, those that there are.
static size_t child_holders(const struct dump_waiter *waiter, int *ret, size_t max)
{
	const int wanted = awaited_child(waiter);
	size_t n, n_found = 0;
	struct proc_status status;

	if (wanted == 0)
		return 0;
	_cleanup_free_ int *children = process_children(waiter->look.pid, &n);
	for (size_t i = 0; i < n && n_found < max; i++) {
		if (!proc_read_status(children[i], &status) || status.state == 'Z')
			continue;
		if (wanted == ANY_CHILD || status.ns_pid == wanted)
			ret[n_found++] = children[i];
	}
	return n_found;
}

static bool is_unseen(const struct dump_locks *locks, int pid)
{
	for (size_t i = 0; i < locks->n_unseen_processes; i++)
		if (locks->unseen[i] == pid)
			return true;
	return false;
}

// It holds something, and is not looked at.
static void leave_out(struct dump_locks *locks, int pid)
{
	*array_push(locks->unseen, locks->n_unseen_processes, locks->unseen_capacity) = pid;
}

static void look_at_process(struct dump_locks *locks, int pid)
{
	size_t n;

	if (pid <= 0 || has_process(locks, pid) || is_unseen(locks, pid))
		return;
	if (locks->n_pids >= MAX_OTHER_PROCESSES) {
		leave_out(locks, pid);
		return;
	}
	_cleanup_free_ int *tids = process_threads(pid, &n);
	if (n > MAX_OTHER_THREADS - locks->n_other_threads)
		leave_out(locks, pid);
	if (n == 0 || n > MAX_OTHER_THREADS - locks->n_other_threads)
		return;
	locks->n_other_threads += n;
	for (size_t i = 0; i < n; i++) {
		struct dump_waiter *waiter = push(locks, pid, tids[i]);
		waiter->is_same = waiter->has_look;
	}
	dump_locks_add_process(locks, pid);
}

// Who holds what those wait for who are known by now, and so on.
static void look_at_others(struct dump_locks *locks)
{
	int pids[DEADLOCK_MAX_HOLDERS];

	for (size_t i = 0; i < locks->count; i++) {
		size_t n = 0;
		if (waits_for_file_lock(&locks->waiters[i]) && !locks->table)
			locks->table = file_locks_read();
		if (waits_for_file_lock(&locks->waiters[i]))
			n = file_holders(locks->table, &locks->waiters[i], pids, array_size(pids));
		else
			n = child_holders(&locks->waiters[i], pids, array_size(pids));
		if (locks->waiters[i].has_look) {
			const struct lock_look look = locks->waiters[i].look;
			look_at_process(locks, look.awaited_pid);
			look_at_process(locks, dump_shared_holder(&look));
		}
		for (size_t j = 0; j < n; j++)
			look_at_process(locks, pids[j]);
	}
}

static void wait_until(int64_t until_ns)
{
	const struct timespec until = clock_timespec(until_ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
		;
}

void dump_locks_look_again(struct dump_locks *locks)
{
	look_at_others(locks);
	wait_until(locks->first_ns + BETWEEN_LOOKS_NS);
	for (size_t i = 0; i < locks->count; i++) {
		struct dump_waiter *waiter = &locks->waiters[i];
		struct lock_look again;
		waiter->is_same = waiter->is_same &&
		                  lock_look_take(waiter->look.pid, waiter->look.tid, &again) &&
		                  lock_look_is_same(&waiter->look, &again);
	}
	if (!locks->table)
		return;
	_cleanup_free_ char *table = file_locks_read();
	for (size_t i = 0; i < locks->count; i++) {
		struct dump_waiter *waiter = &locks->waiters[i];
		int then[DEADLOCK_MAX_HOLDERS] = {0}, now[DEADLOCK_MAX_HOLDERS] = {0};
		if (!waits_for_file_lock(waiter))
			continue;
		const size_t n = file_holders(locks->table, waiter, then, array_size(then));
		waiter->is_same &= n == file_holders(table, waiter, now, array_size(now)) &&
		                   memcmp(then, now, sizeof(then)) == 0;
	}
}

static int compare_waiters(const void *a_pointer, const void *b_pointer)
{
	const struct lock_look *a = &((const struct dump_waiter *)a_pointer)->look;
	const struct lock_look *b = &((const struct dump_waiter *)b_pointer)->look;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

// The process of the thread, which may be another one's if the lock is shared; 0: there is none.
static int process_of(const struct own_tids *tids, int own, bool is_shared)
{
	struct proc_status status;

	if (own_tids_find(tids, own))
		return tids->pid;
	return is_shared && !tids->is_elsewhere && proc_read_status(own, &status) ? status.tgid : 0;
}

static bool is_tid(void *context, int tid, bool is_shared)
{
	return process_of(context, tid, is_shared) != 0;
}

static void add_holder(struct deadlock_node *node, int pid, int tid)
{
	if (node->n_holders < DEADLOCK_MAX_HOLDERS)
		node->holders[node->n_holders++] = (struct deadlock_holder){pid, tid};
}

static void find_futex_holder(struct dump_waiter *waiter, struct deadlock_node *node,
                              struct own_tids *tids)
{
	struct lock_claim *claim = &waiter->claim;

	lock_claim_read(&waiter->look, waiter->hint, is_tid, tids, claim);
	// After a stop it may be any call that is begun anew.
	if (waiter->look.call.nr == SYS_restart_syscall && waiter->hint == LOCK_HINT_NONE &&
	    claim->owner == 0)
		*claim = (struct lock_claim){0};
	if (claim->owner == 0)
		return;
	const int pid = process_of(tids, claim->owner, claim->is_shared);
	if (pid != tids->pid && !dump_shared_has(&waiter->look, pid)) {
		claim->owner = 0;
		return;
	}
	add_holder(node, pid, pid == tids->pid ? own_tids_find(tids, claim->owner) : claim->owner);
	node->is_certain = claim->is_certain && !claim->is_timed;
}

// Reads a lock that a language has told of from its text: "monitor CLASS 0xADDRESS, held by "NAME"
// TID", or "lock
// ...". The owner of a monitor alone lets others enter; who waits for another lock may do so for a
// time.
static bool find_told_holder(struct dump_waiter *waiter, struct deadlock_node *node, int pid)
{
	static const char monitor[] = "monitor ", lock[] = "lock ";
	struct lock_claim *claim = &waiter->claim;
	const char *text = waiter->lock ?: "";
	const bool is_monitor = text_begins_with(text, monitor);
	const char *name = text + strlen(is_monitor ? monitor : lock);
	const char *address = strstr(text, " 0x");

	if (!address || (!is_monitor && !text_begins_with(text, lock)))
		return false;
	claim->what = is_monitor ? LOCK_WHAT_MONITOR : LOCK_WHAT_LOCK;
	claim->address = strtoull(address + 1, NULL, 16);
	claim->owner = wait_text_holder(text);
	claim->is_certain = claim->owner != 0;
	claim->is_timed = !is_monitor && call_futex_is_timed(waiter->look.call.args);
	if (address > name)
		waiter->symbol = memory_strndup(name, (size_t)(address - name));
	if (claim->owner)
		add_holder(node, pid, claim->owner);
	node->is_certain = claim->is_certain && !claim->is_timed;
	return true;
}

// Checks that no signal handler can end the thread's wait: by the call's EINTR, by longjmp(3) or by
// an exception. The waits for a mutex or for a thread's end go on after a handler.
static bool is_safe_from_handlers(const struct lock_look *look)
{
	struct proc_status status;

	return proc_read_status(look->tid, &status) &&
	       (status.signals_caught & ~status.signals_blocked) == 0;
}

// An open file that other processes have, too, may be unlocked by them.
static void find_file_holders(const struct dump_locks *locks, struct dump_waiter *waiter,
                              struct deadlock_node *node)
{
	int pids[DEADLOCK_MAX_HOLDERS];
	const size_t n = file_holders(locks->table, waiter, pids, array_size(pids));

	waiter->claim.what = LOCK_WHAT_FILE;
	node->is_certain = n > 0 && n < array_size(pids);
	for (size_t i = 0; i < n; i++) {
		node->is_certain &= pids[i] > 0;
		if (pids[i] > 0)
			add_holder(node, pids[i], 0);
	}
	waiter->claim.is_certain = node->is_certain;
	node->is_certain &= is_safe_from_handlers(&waiter->look);
}

// Any of them may end the wait; of any child, one to which another thread gives birth, too.
static void find_child_holders(struct dump_waiter *waiter, struct deadlock_node *node)
{
	int pids[DEADLOCK_MAX_HOLDERS];
	const size_t n = child_holders(waiter, pids, array_size(pids));
	size_t n_threads;

	waiter->claim.what = LOCK_WHAT_CHILD;
	for (size_t i = 0; i < n; i++)
		add_holder(node, pids[i], 0);
	waiter->claim.is_certain = node->is_certain = n > 0 && n < array_size(pids);
	free(process_threads(waiter->look.pid, &n_threads)); // their number is enough
	node->is_certain &= n_threads == 1 || awaited_child(waiter) != ANY_CHILD;
	node->is_certain &= is_safe_from_handlers(&waiter->look);
}

// Nobody but the process itself ends it, and no wait of its own thread's does.
static void find_awaited_process(struct dump_waiter *waiter, struct deadlock_node *node)
{
	const struct proc_syscall *call = &waiter->look.call;
	const bool is_timed = (call->nr == SYS_poll && (int)call->args[2] >= 0) ||
	                      (call->nr == SYS_ppoll && call->args[2] != 0);

	waiter->claim.what = LOCK_WHAT_PROCESS;
	waiter->claim.is_certain = true;
	waiter->claim.is_timed = is_timed;
	add_holder(node, waiter->look.awaited_pid, 0);
	node->is_certain = !is_timed && is_safe_from_handlers(&waiter->look);
}

static void find_holders(const struct dump_locks *locks, size_t i, struct own_tids *tids)
{
	struct dump_waiter *waiter = &locks->waiters[i];
	const int64_t nr = waiter->look.call.nr;

	if (!waiter->is_same)
		return;
	if (find_told_holder(waiter, &locks->nodes[i], tids->pid))
		return;
	if (nr == SYS_futex || nr == SYS_restart_syscall)
		find_futex_holder(waiter, &locks->nodes[i], tids);
	else if (waits_for_file_lock(waiter))
		find_file_holders(locks, waiter, &locks->nodes[i]);
	else if (waiter->look.awaited_pid)
		find_awaited_process(waiter, &locks->nodes[i]);
	else if (awaited_child(waiter))
		find_child_holders(waiter, &locks->nodes[i]);
}

struct hint_search {
	enum lock_hint hint;
	unsigned int n_frames;
};

static void note_hint(void *context, const struct dump_frame *frame)
{
	struct hint_search *search = context;

	if (search->n_frames++ >= WAIT_KIND_MAX_NAMES || !frame->module[0])
		return;
	const enum lock_hint hint = lock_hint_of(frame->name);
	if (search->hint == LOCK_HINT_NONE || search->hint == LOCK_HINT_PRIVATE)
		search->hint = hint ? hint : search->hint;
}

// By the innermost function that tells; the wait within a lock of the C library's tells little.
static void find_hints(struct dump_locks *locks, const struct dump *dump)
{
	_cleanup_free_ enum lock_hint *hints =
	    memory_alloc_zeroed(dump->profile->n_threads + 1, sizeof(*hints));

	for (size_t i = 0; i < dump->n_threads; i++) {
		struct hint_search search = {0};
		dump_frames(dump, dump->threads[i].sample, note_hint, &search);
		hints[dump->threads[i].thread] = search.hint;
	}
	for (size_t i = 0; i < locks->count; i++)
		if (locks->waiters[i].thread >= 0)
			locks->waiters[i].hint = hints[locks->waiters[i].thread];
}

// Proves what only many looks at files can prove, of those that it matters for.
static void doubt_shared_files(struct dump_locks *locks)
{
	for (size_t i = 0; i < locks->count; i++) {
		struct deadlock_node *node = &locks->nodes[i];
		if (!node->is_dead || locks->waiters[i].look.call.nr != SYS_flock)
			continue;
		for (size_t j = 0; j < node->n_holders && node->is_certain; j++)
			node->is_certain =
			    file_locks_is_sole(node->holders[j].pid, locks->waiters[i].look.inode);
	}
}

// -1: the call reads from its first argument, 1: it writes to it; 0: neither.
static int way_of(int64_t nr)
{
	switch (nr) {
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
		return -1;
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
		return 1;
	default:
		return 0;
	}
}

// Who has the other ends of the pipes and sockets that the dump's threads wait for: all at once.
static void find_peers(struct dump_locks *locks)
{
	_cleanup_free_ struct peer_wanted *wanted =
	    memory_alloc_zeroed(locks->count + 1, sizeof(*wanted));
	size_t n = 0;

	for (size_t i = 0; i < locks->count; i++) {
		struct dump_waiter *waiter = &locks->waiters[i];
		const struct proc_syscall *call = &waiter->look.call;
		const int way = waiter->is_same && waiter->thread >= 0 ? way_of(call->nr) : 0;
		struct peer_wanted peer = {.is_written = way > 0};
		if (way == 0 ||
		    !peer_end_read(waiter->look.pid, waiter->look.tid, (int)call->args[0], &peer))
			continue;
		waiter->claim.what = peer.is_socket ? LOCK_WHAT_SOCKET : LOCK_WHAT_PIPE;
		wanted[n++] = peer;
	}
	locks->n_unseen_descriptors = peer_end_find(wanted, n, NULL, 0);
	n = 0;
	for (size_t i = 0; i < locks->count; i++) {
		const enum lock_what what = locks->waiters[i].claim.what;
		if (what == LOCK_WHAT_SOCKET || what == LOCK_WHAT_PIPE)
			locks->waiters[i].peer = wanted[n++];
	}
}

static void find_symbols(struct dump_locks *locks, const struct dump *dump)
{
	for (size_t i = 0; i < locks->count; i++) {
		struct dump_waiter *waiter = &locks->waiters[i];
		if (waiter->thread < 0 || !waiter->claim.address)
			continue;
		for (size_t j = 0; j < i && !waiter->symbol; j++)
			if (locks->waiters[j].symbol &&
			    locks->waiters[j].look.pid == waiter->look.pid &&
			    locks->waiters[j].claim.address == waiter->claim.address)
				waiter->symbol = memory_strdup(locks->waiters[j].symbol);
		if (!waiter->symbol)
			waiter->symbol = data_symbol_name(dump->modules, waiter->claim.address);
	}
}

void dump_locks_find(struct dump_locks *locks, const struct dump *dump)
{
	struct own_tids tids = {0};

	find_hints(locks, dump);
	if (locks->count > 0)
		qsort(locks->waiters, locks->count, sizeof(*locks->waiters), compare_waiters);
	dump_shared_hints(locks->waiters, locks->count);
	locks->nodes = memory_alloc_zeroed(locks->count + 1, sizeof(*locks->nodes));
	for (size_t i = 0; i < locks->count; i++) {
		const struct lock_look *look = &locks->waiters[i].look;
		locks->nodes[i] = (struct deadlock_node){
		    .pid = look->pid,
		    .tid = look->tid,
		    .is_whole = has_process(locks, look->pid),
		};
		if (tids.pid != look->pid) {
			own_tids_deinit(&tids);
			own_tids_init(&tids, look->pid);
		}
		find_holders(locks, i, &tids);
	}
	own_tids_deinit(&tids);
	deadlock_find(locks->nodes, locks->count);
	doubt_shared_files(locks);
	dump_infer_holders(locks, dump);
	deadlock_find(locks->nodes, locks->count);
	find_symbols(locks, dump);
	find_peers(locks);
}

const struct deadlock_node *dump_locks_node(const struct dump_locks *locks, int pid, int tid)
{
	const struct dump_waiter key = {.look = {.pid = pid, .tid = tid}};
	const struct dump_waiter *found =
	    locks->nodes ? bsearch(&key, locks->waiters, locks->count, sizeof(key), compare_waiters)
	                 : NULL;

	return found ? &locks->nodes[found - locks->waiters] : NULL;
}

void dump_locks_deinit(struct dump_locks *locks)
{
	for (size_t i = 0; i < locks->count; i++)
		free(locks->waiters[i].symbol);
	free(locks->waiters);
	free(locks->nodes);
	free(locks->pids);
	free(locks->unseen);
	free(locks->table);
	*locks = (struct dump_locks){0};
}
