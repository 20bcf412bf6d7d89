// SPDX-License-Identifier: MIT
#include "untrusted_text.h"

#include <errno.h>
#include <stdio.h>

#include "memory.h"
#include "opener.h"
#include "proc.h"
#include "resident.h"
#include "text.h"

static bool is_unanswered(int number)
{
	return number != ESRCH && number != ENOENT && number != EACCES && number != EPERM;
}

char *untrusted_command(int pid)
{
	const struct opener_request request = {
	    .way = OPENER_COMMAND, .tid = pid, .time_ns = OPENER_WAIT_NS};
	struct opener_reply reply;

	if (!opener_ask(&request, &reply))
		return is_unanswered(errno) ? NULL : memory_strdup("");
	size_t size = reply.n_bytes;
	while (size > 0 && reply.text[size - 1] == '\0')
		size--;
	for (size_t i = 0; i < size; i++)
		if (reply.text[i] == '\0')
			reply.text[i] = ' ';
	return text_clean(reply.text, size, UNTRUSTED_COMMAND_BYTES);
}

// Reads the environment where all of it is in memory. Terminates it; the caller frees.
static char *read_environment(int pid, size_t *ret_size)
{
	struct resident resident;
	uint64_t start, end;
	bool is_read = false;

	if (!proc_find_environment(pid, &start, &end))
		return NULL;
	const size_t size =
	    end - start < PROC_ENVIRONMENT_BYTES ? end - start : PROC_ENVIRONMENT_BYTES;
	_cleanup_free_ char *text = memory_alloc(size + 1);
	resident_init(&resident, pid);
	resident_open(&resident, pid);
	if (!resident.hidden)
		is_read = resident_read(&resident, pid, start, text, size);
	resident_deinit(&resident);
	text[size] = '\0';
	*ret_size = size;
	return is_read ? take_pointer(text) : NULL;
}

char *untrusted_variable(int pid, const char *name, bool *ret_told)
{
	struct opener_request request = {
	    .way = OPENER_VARIABLE, .tid = pid, .time_ns = OPENER_WAIT_NS};
	struct opener_reply reply;
	size_t size;
	_cleanup_free_ char *text = read_environment(pid, &size);

	*ret_told = true;
	if (text)
		return proc_find_variable(text, size, name);
	snprintf(request.path, sizeof(request.path), "%s", name);
	if (opener_ask(&request, &reply))
		return memory_strndup(reply.text, reply.n_bytes);
	*ret_told = !is_unanswered(errno);
	return NULL;
}

char *untrusted_user(uid_t uid)
{
	const struct opener_request request = {
	    .way = OPENER_USER, .uid = uid, .time_ns = OPENER_WAIT_NS};
	struct opener_reply reply;

	if (opener_ask(&request, &reply))
		return text_clean(reply.text, reply.n_bytes, sizeof(reply.text));
	return is_unanswered(errno) ? NULL : memory_printf("%u", uid);
}
