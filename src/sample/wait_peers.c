// SPDX-License-Identifier: MIT
#include "wait_peers.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memory.h"
#include "peer_end.h"
#include "profile.h"
#include "syscall_numbers.h"

enum {
	MAX_WAITS = 1024,    // whose other end is not known yet
	MAX_PROCESSES = 256, // with more, no other end is looked for
	// Who has it may not be sampled yet: it is looked for again after a pause, for that time
	// and then for a thousandth of all time.
	PAUSE_NS = 100 * NS_PER_MS,
	FREE_COST_NS = 50 * NS_PER_MS,
	COST_FACTOR = 1000,
};

void wait_peers_deinit(struct wait_peers *peers)
{
	free(peers->waits);
	free(peers->noted);
	*peers = (struct wait_peers){0};
}

static bool is_written(int call)
{
	return call == SYS_write || call == SYS_writev || call == SYS_sendto ||
	       call == SYS_sendmsg || call == SYS_sendmmsg;
}

// True if it is for what one descriptor has. What a listening socket waits for has no other end.
static bool read_wait(const struct wait *wait, struct peer_wanted *ret)
{
	*ret = (struct peer_wanted){.is_written = is_written(wait->syscall)};
	const char *end = strchr(wait->descriptor, ']');

	return end && end[1] == '\0' && wait->syscall != SYS_accept &&
	       wait->syscall != SYS_accept4 &&
	       peer_end_parse(wait->descriptor, &ret->inode, &ret->is_socket);
}

void wait_peers_note(struct wait_peers *peers, const struct profile *profile, uint32_t wait)
{
	struct peer_wanted wanted;

	while (peers->n_noted <= wait)
		*array_push(peers->noted, peers->n_noted, peers->noted_capacity) = false;
	if (peers->noted[wait] || peers->n_waits >= MAX_WAITS)
		return;
	peers->noted[wait] = true;
	if (read_wait(&profile->waits[wait], &wanted))
		*array_push(peers->waits, peers->n_waits, peers->waits_capacity) = wait;
}

// Returns the process that has the other end, if it is one alone; 0: not known. Both ends of a pipe
// may be open in the process that waits.
static int peer_of(const struct peer_wanted *wanted)
{
	if (wanted->n_pids == 1)
		return wanted->pids[0];
	if (wanted->n_pids == 2 && !wanted->is_socket)
		return wanted->pids[wanted->pids[0] == wanted->pid];
	return 0;
}

static void tell(struct profile *profile, uint32_t id, int pid)
{
	const struct wait *wait = &profile->waits[id];
	_cleanup_free_ char *text =
	    memory_printf("%s" WAIT_OTHER_END "\"%s\" %d", wait->meaning ?: wait->descriptor,
	                  profile_process_name(profile, pid), pid);

	profile_explain_descriptor(profile, id, text);
}

static void find(struct wait_peers *peers, struct profile *profile, int pid, int tid)
{
	int pids[MAX_PROCESSES];
	const size_t n = peers->n_waits;
	_cleanup_free_ struct peer_wanted *wanted = memory_alloc_zeroed(n + 1, sizeof(*wanted));

	for (size_t i = 0; i < profile->n_processes; i++)
		pids[i] = profile->processes[i].pid;
	for (size_t i = 0; i < n; i++) {
		read_wait(&profile->waits[peers->waits[i]], &wanted[i]);
		wanted[i].pid = pid;
		wanted[i].tid = tid;
	}
	peer_end_find(wanted, n, pids, profile->n_processes);
	peers->n_waits = 0;
	for (size_t i = 0; i < n; i++)
		if (peer_of(&wanted[i]))
			tell(profile, peers->waits[i], peer_of(&wanted[i]));
		else
			peers->waits[peers->n_waits++] = peers->waits[i];
}

void wait_peers_find(struct wait_peers *peers, struct profile *profile, int pid, int tid, bool last)
{
	const int64_t now_ns = clock_now_ns();

	if (peers->n_waits == 0 || profile->n_processes > MAX_PROCESSES)
		return;
	if (!last && (now_ns < peers->next_ns ||
	              peers->cost_ns > FREE_COST_NS + (now_ns - profile->start_ns) / COST_FACTOR))
		return;
	// In CPU time: on a busy machine, one look may last longer than all may cost.
	const int64_t cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	find(peers, profile, pid, tid);
	peers->cost_ns += clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	peers->next_ns = clock_now_ns() + PAUSE_NS;
}
