// SPDX-License-Identifier: MIT
#include "stop_state.h"

#include <linux/futex.h>
#include <sys/syscall.h>

// A thread that is ready, by the time for which it waited for a CPU before it stopped.
static enum thread_state ready_state(const struct stop_seen *seen)
{
	const uint64_t runs = seen->stopped.runs - seen->asked.runs;
	const int64_t delay_ns = (int64_t)(seen->stopped.delay_ns - seen->asked.delay_ns);

	if (!seen->has_runs || runs == 0)
		return THREAD_RUNNING; // it had its CPU from the look to the stop
	if (delay_ns > seen->found_ns - seen->due_ns)
		return THREAD_RUNNABLE;
	// It has become ready since the tick was due: woken, or displaced by the sampler.
	return seen->waits ? THREAD_SLEEPING : THREAD_RUNNING;
}

enum thread_state stop_state(const struct stop_seen *seen)
{
	const bool is_same =
	    seen->call == seen->asked_call || seen->asked_call == STOP_STATE_ANY_CALL;

	switch (seen->asked_state) {
	case THREAD_STOPPED:
		return seen->group_stop || seen->call != -1 ? THREAD_STOPPED : ready_state(seen);
	case THREAD_SLEEPING:
		if (seen->call != -1 && is_same)
			return THREAD_SLEEPING;
		return ready_state(seen);
	case THREAD_DISK:
		if (is_same) // -1: a page fault
			return THREAD_DISK;
		return ready_state(seen);
	case THREAD_RUNNABLE: // settled by a first stop
		return THREAD_RUNNABLE;
	default:
		return ready_state(seen);
	}
}

bool stop_state_waits(int64_t call, uint64_t second_argument)
{
	switch (call) {
	case SYS_futex:
		switch (second_argument & (uint64_t)FUTEX_CMD_MASK) {
		case FUTEX_WAIT:
		case FUTEX_WAIT_BITSET:
		case FUTEX_LOCK_PI:
		case FUTEX_WAIT_REQUEUE_PI:
			return true;
		default:
			return false;
		}
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_epoll_pwait:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_semtimedop:
	case SYS_wait4:
	case SYS_waitid:
#ifdef SYS_poll // not on newer architectures
	case SYS_poll:
	case SYS_select:
	case SYS_epoll_wait:
	case SYS_pause:
#endif
		return true;
	default:
		return false;
	}
}
