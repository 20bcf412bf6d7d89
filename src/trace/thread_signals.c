// SPDX-License-Identifier: MIT
#include "thread_signals.h"

#include <signal.h>
#include <stdint.h>

#include "proc.h"

static uint64_t bit_of(int signal)
{
	return 1ull << (signal - 1);
}

static uint64_t ignored(const struct proc_status *status)
{
	const uint64_t by_default =
	    bit_of(SIGCHLD) | bit_of(SIGURG) | bit_of(SIGWINCH) | bit_of(SIGCONT);

	return status->signals_ignored | (by_default & ~status->signals_caught);
}

enum thread_signals_pending thread_signals_find_pending(int tid)
{
	struct proc_status status;

	if (!proc_read_status(tid, &status))
		return PENDING_NONE;
	const uint64_t signals = status.signals_pending & ~status.signals_blocked;
	if (signals & ~ignored(&status))
		return PENDING_SIGNAL;
	return signals ? PENDING_IGNORED : PENDING_NONE;
}

bool thread_signals_await(int tid, int signal)
{
	struct proc_status status;

	return proc_read_status(tid, &status) && (status.signals_pending & bit_of(signal));
}

bool thread_signals_ignore(int tid, int signal)
{
	struct proc_status status;

	return proc_read_status(tid, &status) && (ignored(&status) & bit_of(signal));
}

bool thread_signals_block(int tid, int signal)
{
	struct proc_status status;

	return !proc_read_status(tid, &status) || (status.signals_blocked & bit_of(signal));
}
