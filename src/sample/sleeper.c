// SPDX-License-Identifier: MIT
#include "sleeper.h"

#include <errno.h>
#include <stddef.h>

#include "hash.h"
#include "machine_load.h"
#include "memory.h"
#include "runtimes.h"
#include "snapshot.h"
#include "spared_calls.h"
#include "target.h"

enum {
	MAX_TRIES = 2,                // with a thread that moves while it is looked at
	MAX_PICTURE_BYTES = 16 << 10, // of a stack, its innermost frames
};

static enum thread_state state_of(char letter)
{
	switch (letter) {
	case 'R':
		return THREAD_RUNNING;
	case 'D':
		return THREAD_DISK;
	case 'T':
	case 't':
		return THREAD_STOPPED;
	default:
		return THREAD_SLEEPING;
	}
}

static bool is_gone(int error)
{
	return error == ESRCH || error == ENOENT;
}

enum { MAX_COUNTS = 3 };

bool woken_is_worth_looks(const struct machine_load *load, const struct target *target,
                          long n_others)
{
	return machine_load_is_crowded(load, n_others) && target->n_threads <= WOKEN_MAX_LOOKS;
}

bool woken_is_ready(const struct target *target, struct target_thread *thread)
{
	enum thread_state state;

	return !thread->sleep.stop_woke_it && !sleeper_is_blocked(target, thread) &&
	       sleeper_state(target, thread, &state) && state == THREAD_RUNNING;
}

static long count_running(const struct target *target)
{
	long n = 0;

	for (size_t i = 0; i < target->n_threads; i++)
		n += !target->threads[i]->look_later &&
		     !sleeper_is_blocked(target, target->threads[i]);
	return n;
}

bool woken_may_be_ready(const struct machine_load *load, const struct target *target, long n_others,
                        long n_running)
{
	// There may be any number of other processes' threads.
	for (int i = 0; i < MAX_COUNTS && n_others <= n_running + 1; i++) {
		if (n_others == n_running && machine_load_others(load) == n_others)
			return false;
		n_others = machine_load_others(load);
		n_running = count_running(target);
	}
	return true;
}

static bool read_stat(const struct target *target, struct target_thread *thread,
                      struct proc_stat *ret)
{
	// Not for one that sleeps for ever, which is looked at only once, nor if files are short.
	if (thread->stat_fd < 0 && thread->ran_ns > 0 && thread->schedstat_fd >= 0)
		thread->stat_fd = target_open_kept(target, thread->tid, "stat");
	return proc_read_stat(thread->stat_fd, target->pid, thread->tid, ret);
}

bool sleeper_state(const struct target *target, struct target_thread *thread,
                   enum thread_state *ret)
{
	struct proc_stat stat;

	if (!read_stat(target, thread, &stat)) {
		*ret = THREAD_RUNNING; // not known: perhaps no descriptor is left
		return !is_gone(errno);
	}
	if (stat.state == 'Z' || stat.state == 'X')
		return false;
	*ret = state_of(stat.state);
	return true;
}

bool sleeper_exits(const struct target *target, struct target_thread *thread)
{
	struct proc_stat stat;

	return read_stat(target, thread, &stat) && (stat.flags & PROC_EXITING) &&
	       stat.state != 'Z' && stat.state != 'X';
}

bool sleeper_is_blocked(const struct target *target, struct target_thread *thread)
{
	enum thread_state state;

	if (!target->sees_syscalls)
		return sleeper_state(target, thread, &state) && state != THREAD_RUNNING;
	return proc_is_blocked(thread->syscall_fd, target->pid, thread->tid);
}

void sleeper_take_picture(const struct snapshot *snapshot, uint64_t end, struct stop_picture *ret)
{
	const uint64_t sp = snapshot->registers.value[ARCH_NATIVE->sp];
	const struct snapshot_region *region = &snapshot->regions[0];
	const uint64_t at = sp - region->start;
	size_t size;

	*ret = (struct stop_picture){.sp = sp, .pc = snapshot->registers.value[ARCH_NATIVE->pc]};
	if (at >= region->size)
		return;
	size = region->size - at;
	if (end > sp && end - sp < size)
		size = end - sp;
	if (size > MAX_PICTURE_BYTES)
		size = MAX_PICTURE_BYTES;
	if (resident_has_gap(&region->gaps, at, size))
		return;
	ret->size = size;
	ret->hash = hash_bytes(region->bytes + at, size);
}

// True if a thread that a stop woke is back where that found it. The run count does not tell: what
// it waited for may have come in the moment of the stop, so that it went on, and now sleeps
// elsewhere, without having been scheduled more often.
static bool is_back(const struct target *target, const struct target_thread *thread)
{
	const struct stop_picture *picture = &thread->picture;
	uint8_t bytes[MAX_PICTURE_BYTES];
	struct proc_syscall call;

	if (picture->size == 0 || !target->sees_syscalls)
		return true;
	return proc_read_syscall(thread->syscall_fd, target->pid, thread->tid, &call) &&
	       !call.running && call.sp == picture->sp && call.pc == picture->pc &&
	       resident_read(thread->hint.resident, thread->tid, picture->sp, bytes,
	                     picture->size) &&
	       hash_bytes(bytes, picture->size) == picture->hash;
}

// Judges by the run count, as last read.
static enum sleep_verdict judge(const struct target *target, struct target_thread *thread)
{
	struct sleep *sleep = &thread->sleep;
	const uint64_t runs = thread->last.runs;

	if (!thread->has_schedstat)
		return SLEEP_UNKNOWN;
	enum sleep_verdict verdict = sleep_judge(sleep, runs, SLEEP_NOT_ASKED);
	if (verdict != SLEEP_ASK)
		return verdict;
	const bool blocked = sleeper_is_blocked(target, thread);
	verdict = sleep_judge(sleep, runs, blocked ? SLEEP_BLOCKED : SLEEP_NOT_BLOCKED);
	if (verdict == SLEEP_ON && !is_back(target, thread))
		return SLEEP_UNKNOWN;
	if (verdict == SLEEP_ON)
		sleep->stop_woke_it = false;
	return verdict;
}

static bool copy(const struct target *target, const struct target_thread *thread,
                 const struct proc_syscall *call, const struct maps *maps,
                 struct snapshot_buffer *buffer, struct snapshot *ret)
{
	const struct arch *arch = ARCH_NATIVE;
	struct registers registers = {0};

	registers_set(&registers, arch->sp, call->sp);
	registers_set(&registers, arch->pc, call->pc);
	// vfork, which cannot be stopped, keeps its return address in one of these.
	for (size_t i = 0; call->nr != -1 && i < array_size(arch->syscall_args); i++)
		registers_set(&registers, arch->syscall_args[i], call->args[i]);
	if (!snapshot_capture(thread->tid, arch, &registers, maps, &thread->hint, buffer, ret))
		return false;
	const bool was_calm = resident_set_calm(thread->hint.resident, true);
	if (target->runtimes)
		runtimes_read(target->runtimes, thread->tid, buffer, ret);
	resident_set_calm(thread->hint.resident, was_calm);
	return true;
}

// True if the thread has stayed off the CPUs since its run count was `runs`.
static bool stood_still(const struct target *target, struct target_thread *thread, uint64_t runs)
{
	return proc_read_schedstat(thread->schedstat_fd, target->pid, thread->tid, &thread->last) &&
	       thread->last.runs == runs;
}

// True if that is the very sleep that was seen before, and its state then.
static bool is_known(const struct target_thread *thread, const struct proc_syscall *call)
{
	const struct proc_syscall *known = &thread->call;

	return thread->has_schedstat && thread->seen.look == SLEEPER_COPIED &&
	       thread->seen.runs == thread->last.runs && known->nr == call->nr &&
	       known->sp == call->sp && known->pc == call->pc;
}

// Finds the call that the thread sleeps in. SLEEPER_COPIED: it is to be copied.
static enum sleeper_look find_call(const struct target *target, struct target_thread *thread,
                                   enum thread_state *ret_state)
{
	struct proc_syscall call;

	if (!proc_read_syscall(thread->syscall_fd, target->pid, thread->tid, &call))
		return is_gone(errno) || !sleeper_state(target, thread, ret_state) ? SLEEPER_GONE
		                                                                   : SLEEPER_RUNS;
	if (call.running) {
		*ret_state = THREAD_RUNNING;
		return SLEEPER_RUNS;
	}
	if (is_known(thread, &call))
		*ret_state = thread->seen.state;
	else if (!sleeper_state(target, thread, ret_state))
		return SLEEPER_GONE;
	if (call.sp == 0 && call.pc == 0)
		return SLEEPER_BARE;
	thread->call = call;
	return SLEEPER_COPIED;
}

// Copies the thread, which slept in thread->call when its run count was thread->last.runs.
static enum sleeper_look copy_found(const struct target *target, struct target_thread *thread,
                                    const struct maps *maps, struct snapshot_buffer *buffer,
                                    struct snapshot *ret_snapshot)
{
	const uint64_t runs = thread->last.runs;

	if (!copy(target, thread, &thread->call, maps, buffer, ret_snapshot))
		return SLEEPER_RUNS;
	if (!stood_still(target, thread, runs))
		return SLEEPER_UNCHANGED; // try again later
	sleep_note_seen(&thread->sleep, runs);
	return SLEEPER_COPIED;
}

// Reads the run count, if the kernel shows it. False if the thread is gone.
static bool read_schedstat(const struct target *target, struct target_thread *thread)
{
	thread->has_schedstat =
	    target->sees_schedstat &&
	    proc_read_schedstat(thread->schedstat_fd, target->pid, thread->tid, &thread->last);
	return thread->has_schedstat || !target->sees_schedstat || !is_gone(errno);
}

// Does what can be done if the kernel does not show run counts or system calls. With run counts,
// one stop for each sleep is enough.
static enum sleeper_look look_from_afar(const struct target *target, struct target_thread *thread,
                                        enum thread_state *ret_state)
{
	if (!sleeper_state(target, thread, ret_state))
		return SLEEPER_GONE;
	if (*ret_state == THREAD_RUNNING)
		return SLEEPER_RUNS;
	thread->sleep.runs = thread->last.runs;
	thread->call = (struct proc_syscall){.running = true}; // not known
	return SLEEPER_HIDDEN;
}

static enum sleeper_look see(const struct target *target, struct target_thread *thread,
                             enum thread_state *ret_state)
{
	if (!read_schedstat(target, thread))
		return SLEEPER_GONE;
	switch (judge(target, thread)) {
	case SLEEP_ON:
		return SLEEPER_UNCHANGED;
	case SLEEP_READY:
		return SLEEPER_WAITS;
	default:
		break;
	}
	if (thread->is_kernels)
		return sleeper_state(target, thread, ret_state) ? SLEEPER_BARE : SLEEPER_GONE;
	if (!thread->has_schedstat || !target->sees_syscalls)
		return look_from_afar(target, thread, ret_state);
	return find_call(target, thread, ret_state);
}

void sleeper_see(const struct target *target, struct target_thread *thread)
{
	thread->seen.look = see(target, thread, &thread->seen.state);
	thread->seen.runs = thread->last.runs;
	thread->seen.known = true;
}

enum sleeper_look sleeper_look(const struct target *target, struct target_thread *thread,
                               const struct maps *maps, struct snapshot_buffer *buffer,
                               struct snapshot *ret_snapshot, enum thread_state *ret_state)
{
	if (!thread->seen.known)
		sleeper_see(target, thread);
	thread->seen.known = false;
	*ret_state = thread->seen.state;
	if (thread->seen.look != SLEEPER_COPIED)
		return thread->seen.look;
	// A thread that moves while it is looked at is counted in the state in which it was found
	// first: anything else would favour states that last.
	enum sleeper_look look = copy_found(target, thread, maps, buffer, ret_snapshot);
	enum thread_state later;
	for (int i = 1; look == SLEEPER_UNCHANGED && i < MAX_TRIES; i++) {
		look = find_call(target, thread, &later);
		if (look == SLEEPER_COPIED)
			look = copy_found(target, thread, maps, buffer, ret_snapshot);
	}
	return look == SLEEPER_UNCHANGED ? SLEEPER_RUNS : look;
}

struct proc_schedstat sleeper_figures(const struct target *target,
                                      const struct target_thread *thread)
{
	struct proc_schedstat now;

	if (!thread->has_schedstat ||
	    !proc_read_schedstat(thread->schedstat_fd, target->pid, thread->tid, &now))
		return (struct proc_schedstat){0};
	return now;
}

struct proc_schedstat sleeper_note_stop(const struct target *target, struct target_thread *thread)
{
	const struct proc_schedstat now = sleeper_figures(target, thread);

	thread->sleep.stop_runs = now.runs;
	return now;
}

static bool runs(const struct target *target, struct target_thread *thread)
{
	struct proc_syscall call;
	enum thread_state state;

	if (thread->is_kernels || !read_schedstat(target, thread))
		return false;
	if (judge(target, thread) == SLEEP_ON)
		return false;
	if (proc_read_syscall(thread->syscall_fd, target->pid, thread->tid, &call))
		return call.running;
	return sleeper_state(target, thread, &state) && state == THREAD_RUNNING;
}

bool sleeper_runs(const struct target *target, struct target_thread *thread)
{
	const struct proc_schedstat seen = thread->last;
	const bool result = runs(target, thread);

	// Else it may have run and be asleep again; sleeper_look finds that out.
	if (!result)
		thread->last = seen;
	return result;
}

bool sleeper_bears_stop(const struct target *target, const struct target_thread *thread)
{
	return !spared_calls_has(target->pid, thread->tid, thread->hint.resident, &thread->call) &&
	       !spared_calls_asks_program(target->pid, thread->tid);
}

bool sleeper_has_moved(const struct target *target, const struct target_thread *thread)
{
	struct proc_schedstat now;

	return thread->has_schedstat &&
	       proc_read_schedstat(thread->schedstat_fd, target->pid, thread->tid, &now) &&
	       now.runs != thread->sleep.runs;
}

bool sleeper_copy_again(const struct target *target, struct target_thread *thread,
                        const struct maps *maps, struct snapshot_buffer *buffer,
                        struct snapshot *ret_snapshot)
{
	struct proc_syscall call;

	return proc_read_syscall(thread->syscall_fd, target->pid, thread->tid, &call) &&
	       !call.running && copy(target, thread, &call, maps, buffer, ret_snapshot) &&
	       stood_still(target, thread, thread->sleep.runs);
}
