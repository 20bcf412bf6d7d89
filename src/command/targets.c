// SPDX-License-Identifier: MIT
#include "targets.h"

#include <stdio.h>
#include <stdlib.h>

#include "diagnose.h"
#include "error.h"
#include "memory.h"
#include "options.h"
#include "target.h"

static bool is_open(const struct targets *targets, int pid)
{
	for (size_t i = 0; i < targets->n; i++)
		if (targets->items[i].pid == pid)
			return true;
	return false;
}

static void warn_of_tracer(const struct target *target)
{
	if (!target->tracer_pid)
		return;
	_cleanup_free_ char *text = diagnose_tracer_text(target->pid, target->tracer_pid);
	fprintf(stderr, "profiler: %s\n", text);
}

// A pid may be a thread's: the process may be there already.
static void keep(struct targets *targets, struct target *target, bool quiet)
{
	if (is_open(targets, target->pid)) {
		target_close(target);
		return;
	}
	if (!quiet)
		warn_of_tracer(target);
	targets->items[targets->n++] = *target;
}

static void say_left_out(struct error *error)
{
	fprintf(stderr, "profiler: left out: %s\n", error_message(error));
	error_destroy(error);
}

struct error *targets_open(const struct options *options, struct targets *ret)
{
	const size_t n = 1 + options->n_more_pids;
	struct error *first = NULL;

	*ret = (struct targets){.items = memory_alloc_zeroed(n, sizeof(*ret->items))};
	for (size_t i = 0; i < n; i++) {
		struct target target;
		struct error *error =
		    target_open(i ? options->more_pids[i - 1] : options->pid, false, &target);
		if (!error)
			keep(ret, &target, options->quiet);
		else if (first)
			say_left_out(error);
		else
			first = error;
	}
	if (ret->n == 0) {
		targets_close(ret);
		return first;
	}
	if (first)
		say_left_out(first);
	return NULL;
}

struct error *targets_open_own(int pid, struct targets *ret)
{
	*ret = (struct targets){.items = memory_alloc_zeroed(1, sizeof(*ret->items))};
	struct error *error = target_open(pid, true, ret->items);
	ret->n = !error;
	if (error)
		targets_close(ret);
	return error;
}

void targets_close(struct targets *targets)
{
	for (size_t i = 0; i < targets->n; i++)
		target_close(&targets->items[i]);
	free(targets->items);
	*targets = (struct targets){0};
}
