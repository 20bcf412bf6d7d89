// SPDX-License-Identifier: MIT
#include "untrusted_text.h"

#include <errno.h>
#include <stdio.h>

#include "memory.h"
#include "opener.h"
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

char *untrusted_variable(int pid, const char *name, bool *ret_told)
{
	struct opener_request request = {
	    .way = OPENER_VARIABLE, .tid = pid, .time_ns = OPENER_WAIT_NS};
	struct opener_reply reply;

	*ret_told = true;
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
