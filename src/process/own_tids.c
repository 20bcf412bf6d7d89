// SPDX-License-Identifier: MIT
#include "own_tids.h"

#include <stdlib.h>

#include "memory.h"
#include "proc.h"
#include "process_list.h"

static int compare(const void *a_pointer, const void *b_pointer)
{
	const int a = ((const struct own_tid *)a_pointer)->own;
	const int b = ((const struct own_tid *)b_pointer)->own;

	return (a > b) - (a < b);
}

void own_tids_init(struct own_tids *tids, int pid)
{
	struct proc_status status;
	size_t n;

	*tids = (struct own_tids){.pid = pid};
	_cleanup_free_ int *ours = process_threads(pid, &n);
	tids->items = memory_alloc_zeroed(n + 1, sizeof(*tids->items));
	tids->is_elsewhere = proc_read_status(pid, &status) && status.has_own_pids;
	for (size_t i = 0; i < n; i++)
		if (!tids->is_elsewhere)
			tids->items[tids->count++] = (struct own_tid){ours[i], ours[i]};
		else if (proc_read_status(ours[i], &status))
			tids->items[tids->count++] = (struct own_tid){status.ns_pid, ours[i]};
	qsort(tids->items, tids->count, sizeof(*tids->items), compare);
}

void own_tids_deinit(struct own_tids *tids)
{
	free(tids->items);
	tids->items = NULL;
	tids->count = 0;
}

int own_tids_find(const struct own_tids *tids, int own)
{
	const struct own_tid key = {.own = own};
	const struct own_tid *found =
	    tids->count ? bsearch(&key, tids->items, tids->count, sizeof(key), compare) : NULL;

	return found ? found->ours : 0;
}
