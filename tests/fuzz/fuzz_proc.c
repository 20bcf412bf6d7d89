// SPDX-License-Identifier: MIT
// /proc/PID/stat, status and syscall: the names in them are the target's.
#include "fuzz.h"
#include "memory.h"
#include "proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = memory_strndup((const char *)data, size);
	struct proc_stat stat;
	struct proc_status status;
	struct proc_syscall call;

	if (proc_parse_stat(text, &stat))
		expect(stat.state != '\0');
	proc_parse_status(text, &status);
	proc_parse_syscall(text, &call);
	return 0;
}
