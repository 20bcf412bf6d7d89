// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "address_space.h"
#include "memory.h"
#include "proc.h"
#include "python.h"
#include "resident.h"
#include "runtimes.h"

// Of struct _gil_runtime_state (Include/internal/pycore_gil.h), which has conditions and mutexes
// besides, on whose futexes threads sleep.
struct gil {
	uint64_t holder; // the thread state that has it, or had it last
	int32_t locked;
};

enum { GIL_BYTES = 256, MAX_INTERPRETERS = 64 };

bool python_read_word(const struct python *python, int tid, uint64_t address, uint64_t *ret)
{
	return resident_read(python->setup->resident, tid, address, ret, sizeof(*ret));
}

// The GIL whose structure holds the address; 0: none. Interpreters may have their own from 3.12 on.
static uint64_t find_gil(const struct python *python, int tid, uint64_t address)
{
	const struct python_layout *layout = &python->layout;
	uint64_t gil = python->runtime + layout->runtime_gil, interp;

	if (layout->runtime_gil)
		return address - gil < GIL_BYTES ? gil : 0;
	if (!layout->interp_gil ||
	    !python_read_word(python, tid, python->runtime + layout->interpreters, &interp))
		return 0;
	for (size_t i = 0; interp && i < MAX_INTERPRETERS; i++) {
		if (!python_read_word(python, tid, interp + layout->interp_gil, &gil))
			return 0;
		if (gil && address - gil < GIL_BYTES)
			return gil;
		if (!python_read_word(python, tid, interp + layout->interp_next, &interp))
			return 0;
	}
	return 0;
}

static int tid_of_state(const struct python *python, uint64_t state)
{
	for (size_t i = 0; python->threads && i < python->threads->n; i++)
		if (python->threads->items[i].state == state)
			return python->threads->items[i].tid;
	return 0;
}

static bool read_gil(const struct python *python, int tid, uint64_t address, struct gil *ret)
{
	const struct python_layout *layout = &python->layout;

	return python_read_word(python, tid, address + layout->gil_holder, &ret->holder) &&
	       resident_read(python->setup->resident, tid, address + layout->gil_locked,
	                     &ret->locked, sizeof(ret->locked));
}

char *python_name_futex(void *context, int tid, uint64_t futex)
{
	struct python *python = context;
	const uint64_t address = find_gil(python, tid, futex);
	char name[PROC_NAME_SIZE];
	struct gil gil;

	if (!address)
		return NULL;
	python->gil_waiter = tid;
	if (!read_gil(python, tid, address, &gil) || gil.locked <= 0)
		return memory_strdup("GIL");
	const int holder = tid_of_state(python, gil.holder);
	// Who takes it says so a moment later (take_gil): until then it is the last one's, who may
	// wait for it by now.
	if (!holder || holder == tid || !proc_read_name(python->setup->space->pid, holder, name))
		return memory_strdup("GIL, held by another thread");
	_cleanup_free_ char *own = python_name_thread(python, holder);
	if (own)
		return memory_printf("GIL, held by \"%s\" %d", own, holder);
	return memory_printf("GIL, held by \"%s\" %d", name, holder);
}
