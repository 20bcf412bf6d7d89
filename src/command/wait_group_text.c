// SPDX-License-Identifier: MIT
#include "wait_group_text.h"

#include <string.h>

#include "call_text.h"
#include "memory.h"
#include "text.h"
#include "wait_groups.h"

void wait_group_text_write(const struct profile *profile, const char *lock_prefix,
                           const char *prefix, size_t max_lines, FILE *stream)
{
	size_t n;
	_cleanup_free_ struct wait_group *groups = wait_groups_find(profile, &n);
	char duration[CALL_TEXT_DURATION_SIZE];

	for (size_t i = 0; i < n && i < max_lines; i++) {
		const struct wait_group *group = &groups[i];
		_cleanup_free_ char *object =
		    text_clean(group->object, strlen(group->object), TEXT_UNLIMITED);
		fprintf(stream, "%s%zu goroutines wait for %s",
		        group->is_lock ? lock_prefix : prefix, group->count, object);
		if (group->oldest_ns >= 0) {
			call_text_duration(group->oldest_ns, duration);
			fprintf(stream, ", the oldest for %s or more", duration);
		}
		fputc('\n', stream);
	}
	if (n > max_lines)
		fprintf(stream, "%s%zu things more that several goroutines wait for\n", prefix,
		        n - max_lines);
}
