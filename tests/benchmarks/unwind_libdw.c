// SPDX-License-Identifier: MIT
#include "unwind_libdw.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdlib.h>

#include "arch.h"
#include "memory.h"
#include "snapshot.h"

struct unwind_libdw {
	Dwfl *dwfl; // NULL: none yet, or libdw could not make one
	int tid;
	const struct snapshot *snapshot; // borrowed, of the stack that is being unwound
	uint64_t *pcs;
	size_t n, max;
};

static char *debug_path; // libdwfl's default

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .debuginfo_path = &debug_path,
};

// Returns the one thread of our process.
static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	const struct unwind_libdw *oracle = arg;

	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return oracle->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl, (void)tid;
	*thread_arg = arg;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
	const struct unwind_libdw *oracle = arg;

	(void)dwfl;
	return snapshot_read(oracle->snapshot, address, sizeof(*result), result);
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct unwind_libdw *oracle = arg;
	const struct registers *registers = &oracle->snapshot->registers;

	for (unsigned int i = 0; i < ARCH_MAX_REGISTERS; i++) {
		const Dwarf_Word value = registers->value[i];
		if (registers_know(registers, i) &&
		    !dwfl_thread_state_registers(thread, (int)i, 1, &value))
			return false;
	}
	dwfl_thread_state_register_pc(thread, registers->value[ARCH_NATIVE->pc]);
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

struct unwind_libdw *unwind_libdw_create(void)
{
	return memory_alloc_zeroed(1, sizeof(struct unwind_libdw));
}

static void close_modules(struct unwind_libdw *oracle)
{
	if (oracle->dwfl)
		dwfl_end(oracle->dwfl);
	oracle->dwfl = NULL;
}

void unwind_libdw_destroy(struct unwind_libdw *oracle)
{
	if (!oracle)
		return;
	close_modules(oracle);
	free(oracle);
}

static bool open_modules(struct unwind_libdw *oracle)
{
	oracle->dwfl = dwfl_begin(&callbacks);
	return oracle->dwfl && dwfl_linux_proc_report(oracle->dwfl, oracle->tid) == 0 &&
	       dwfl_report_end(oracle->dwfl, NULL, NULL) == 0 &&
	       dwfl_attach_state(oracle->dwfl, NULL, oracle->tid, &thread_callbacks, oracle);
}

static int note_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwind_libdw *oracle = arg;
	Dwarf_Addr pc;
	bool is_exact;

	if (oracle->n == oracle->max || !dwfl_frame_pc(frame, &pc, &is_exact))
		return DWARF_CB_ABORT;
	oracle->pcs[oracle->n++] = pc;
	return DWARF_CB_OK;
}

size_t unwind_libdw_unwind(struct unwind_libdw *oracle, int tid, const struct snapshot *snapshot,
                           uint64_t *pcs, size_t max)
{
	oracle->snapshot = snapshot;
	oracle->tid = tid;
	oracle->pcs = pcs;
	oracle->n = 0;
	oracle->max = max;
	if (!oracle->dwfl && !open_modules(oracle)) {
		close_modules(oracle);
		return 0;
	}
	// The state's "process" is the thread of the first call; libdw does not look at it again.
	dwfl_getthread_frames(oracle->dwfl, tid, note_frame, oracle);
	oracle->snapshot = NULL;
	return oracle->n;
}
