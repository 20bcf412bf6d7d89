// SPDX-License-Identifier: MIT
// The words of a lock are the target's; so are the paths in the kernel's texts.
#include "blocked_since.h"
#include "call_text.h"
#include "file_locks.h"
#include "fuzz.h"
#include "lock_claim.h"
#include "lock_look.h"
#include "memory.h"

enum { FEWEST = 3, MOST = 40 }; // tids that live

static bool is_tid(void *context, int tid, bool is_shared)
{
	(void)context;
	(void)is_shared;
	return tid >= FEWEST && tid <= MOST;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct lock_look look = {0};
	struct lock_claim claim;
	int pids[3];
	const struct file_lock_wait wait = {.pid = 2, .inode = 7, .is_flock = input_u8(&input) & 1};
	const enum lock_hint hint = input_u8(&input) % (LOCK_HINT_PRIVATE + 1);

	if (input.left >= sizeof(look)) {
		memcpy(&look, input.data, sizeof(look));
		lock_claim_read(&look, hint, is_tid, NULL, &claim);
		expect(claim.owner == 0 || is_tid(NULL, claim.owner, false));
		expect(claim.what < N_LOCK_WHATS && lock_what_name(claim.what));
		expect(!claim.is_certain || claim.owner);
		free(call_text((int)(look.call.nr & 0x3ff), look.call.args, "", NULL));
	}
	_cleanup_free_ char *text = memory_strndup((const char *)input.data, input.left);
	expect(file_locks_find(text, &wait, pids, array_size(pids)) <= array_size(pids));
	expect(blocked_since_parse(text) >= -1);
	return 0;
}
