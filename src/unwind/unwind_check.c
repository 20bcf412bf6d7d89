// SPDX-License-Identifier: MIT
#include "unwind_check.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "arch.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "snapshot.h"
#include "text.h"
#include "unwind.h"
#include "unwind_libdw.h"

enum {
	MAX_SHOWN = 4, // stacks of each kind of difference
	MAX_NAME_BYTES = 256,
};

enum verdict {
	CHECK_EQUAL,
	CHECK_LIBDW_SHORTER, // libdw's stack is the beginning of ours
	CHECK_OURS_SHORTER,  // and the other way round
	CHECK_DIFFERENT,
	N_VERDICTS,
};

static const char *const verdict_names[] = {
    [CHECK_EQUAL] = "equal, but not whole",
    [CHECK_LIBDW_SHORTER] = "libdw stopped earlier",
    [CHECK_OURS_SHORTER] = "ours stopped earlier",
    [CHECK_DIFFERENT] = "different",
};

struct unwind_check {
	struct unwind_libdw *oracle;
	uint64_t *pcs; // libdw's
	size_t capacity;
	uint64_t counts[N_VERDICTS];
	size_t shown[N_VERDICTS];
	char *texts[N_VERDICTS][MAX_SHOWN]; // the first of each kind
};

struct unwind_check *unwind_check_create(void)
{
	struct unwind_check *check = memory_alloc_zeroed(1, sizeof(*check));

	check->oracle = unwind_libdw_create();
	return check;
}

void unwind_check_destroy(struct unwind_check *check)
{
	if (!check)
		return;
	for (int i = 0; i < N_VERDICTS; i++)
		for (int j = 0; j < MAX_SHOWN; j++)
			free(check->texts[i][j]);
	unwind_libdw_destroy(check->oracle);
	free(check->pcs);
	free(check);
}

static enum verdict compare(const uint64_t *ours, size_t n_ours, const uint64_t *theirs,
                            size_t n_theirs)
{
	size_t common = 0;

	while (common < n_ours && common < n_theirs && ours[common] == theirs[common])
		common++;
	if (common == n_ours && common == n_theirs)
		return CHECK_EQUAL;
	if (common == n_theirs)
		return CHECK_LIBDW_SHORTER;
	return common == n_ours ? CHECK_OURS_SHORTER : CHECK_DIFFERENT;
}

static void print_place(FILE *stream, uint64_t pc, const char *module, uint64_t address)
{
	_cleanup_free_ char *name = text_clean(module, strlen(module), MAX_NAME_BYTES);

	fprintf(stream, "%#18" PRIx64 " %s+%#" PRIx64, pc, name, address);
}

static void print_ours(FILE *stream, const struct unwinder *unwinder, uint64_t pc)
{
	const struct code_address code = address_space_resolve(unwinder->space, pc);

	print_place(stream, pc, module_name(code.module), code.address);
}

static void print_theirs(FILE *stream, struct unwind_libdw *oracle, uint64_t pc)
{
	uint64_t address;
	const char *name = unwind_libdw_module(oracle, pc, &address);

	print_place(stream, pc, name, address);
}

static char *describe(struct unwind_check *check, int tid, const struct unwinder *unwinder,
                      const struct snapshot *snapshot, const struct unwound *unwound,
                      size_t n_theirs, const char *why)
{
	const struct registers *registers = &snapshot->registers;
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	fprintf(stream, "thread %d, ours: %s; libdw: %s; registers:", tid,
	        stack_end_name(unwound->end), why ? why : "complete");
	for (unsigned int i = 0; i < ARCH_MAX_REGISTERS; i++)
		if (registers_know(registers, i))
			fprintf(stream, " %u=%#" PRIx64, i, registers->value[i]);
	fputc('\n', stream);
	for (size_t i = 0; i < unwound->n || i < n_theirs; i++) {
		const bool same =
		    i < unwound->n && i < n_theirs && unwinder->pcs[i] == check->pcs[i];
		fprintf(stream, "  #%zu%s", i, same ? "" : " ours ");
		if (i < unwound->n)
			print_ours(stream, unwinder, unwinder->pcs[i]);
		if (!same)
			fprintf(stream, " libdw ");
		if (!same && i < n_theirs)
			print_theirs(stream, check->oracle, check->pcs[i]);
		fputc('\n', stream);
	}
	fclose(stream);
	return text;
}

// True for all differences, and for stacks that end early in both, except those of sleeping
// threads, whose registers are not known at first.
static bool is_worth_showing(enum verdict verdict, const struct snapshot *snapshot,
                             const struct unwound *unwound)
{
	if (verdict != CHECK_EQUAL)
		return true;
	return unwound->end != STACK_COMPLETE && unwound->end != STACK_TOO_DEEP &&
	       registers_know(&snapshot->registers, ARCH_NATIVE->fp);
}

void unwind_check_compare(struct unwind_check *check, int tid, const struct unwinder *unwinder,
                          const struct snapshot *snapshot, const struct unwound *unwound)
{
	const char *why;

	check->pcs =
	    memory_grow(check->pcs, &check->capacity, unwinder->max_frames, sizeof(*check->pcs));
	const size_t n_max =
	    unwound->end == STACK_TOO_DEEP ? unwound->n : (size_t)unwinder->max_frames;
	const size_t n = unwind_libdw_unwind(check->oracle, tid, unwinder->space->generation,
	                                     snapshot, check->pcs, n_max, &why);
	const enum verdict verdict = compare(unwinder->pcs, unwound->n, check->pcs, n);
	check->counts[verdict]++;
	if (check->shown[verdict] < MAX_SHOWN && is_worth_showing(verdict, snapshot, unwound))
		check->texts[verdict][check->shown[verdict]++] =
		    describe(check, tid, unwinder, snapshot, unwound, n, why);
}

void unwind_check_print(const struct unwind_check *check, bool verbose)
{
	uint64_t total = 0;

	for (int i = 0; i < N_VERDICTS; i++)
		total += check->counts[i];
	fprintf(stderr,
	        "profiler: check: %" PRIu64 " stacks compared with libdw: %" PRIu64
	        " equal, %" PRIu64 " where libdw stopped earlier, %" PRIu64
	        " where ours stopped earlier, %" PRIu64 " different\n",
	        total, check->counts[CHECK_EQUAL], check->counts[CHECK_LIBDW_SHORTER],
	        check->counts[CHECK_OURS_SHORTER], check->counts[CHECK_DIFFERENT]);
	for (int i = 0; verbose && i < N_VERDICTS; i++)
		for (size_t j = 0; j < check->shown[i]; j++)
			fprintf(stderr, "profiler: check: %s: %s", verdict_names[i],
			        check->texts[i][j] ?: "");
}
