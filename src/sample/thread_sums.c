// SPDX-License-Identifier: MIT
#include "thread_sums.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_REPLY_BYTES = 2048 }; // struct taskstats grows; it has about 500 now

struct message {
	struct nlmsghdr header;
	struct genlmsghdr generic;
	char attributes[MAX_REPLY_BYTES];
};

// Sends one request with one attribute, and reads the answer. Returns the size of the answer's
// attributes; 0 if there is no answer.
static size_t ask(int fd, uint16_t family, uint8_t command, uint16_t type, const void *value,
                  size_t size, struct message *ret)
{
	struct message request = {
	    .header = {.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN + NLA_HDRLEN + NLA_ALIGN(size)),
	               .nlmsg_type = family,
	               .nlmsg_flags = NLM_F_REQUEST},
	    .generic = {.cmd = command, .version = 1},
	};
	const struct nlattr attribute = {.nla_len = NLA_HDRLEN + size, .nla_type = type};
	const size_t headers = offsetof(struct message, attributes);

	memcpy(request.attributes, &attribute, sizeof(attribute));
	memcpy(request.attributes + NLA_HDRLEN, value, size);
	if (send(fd, &request, request.header.nlmsg_len, 0) < 0)
		return 0;
	// The kernel answers before send returns (netlink(7)).
	const ssize_t n = recv(fd, ret, sizeof(*ret), MSG_DONTWAIT);
	if (n < (ssize_t)headers || ret->header.nlmsg_type != family)
		return 0; // NLMSG_ERROR
	return n - headers;
}

// Finds the attribute of that type; its payload has at least min_size bytes. NULL: not there.
static const char *find_attribute(const char *attributes, size_t size, uint16_t type,
                                  size_t min_size, size_t *ret_size)
{
	struct nlattr attribute;

	for (size_t at = 0; at + NLA_HDRLEN <= size; at += NLA_ALIGN(attribute.nla_len)) {
		memcpy(&attribute, attributes + at, sizeof(attribute));
		if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > size - at)
			return NULL;
		*ret_size = attribute.nla_len - NLA_HDRLEN;
		if ((attribute.nla_type & NLA_TYPE_MASK) == type)
			return *ret_size < min_size ? NULL : attributes + at + NLA_HDRLEN;
	}
	return NULL;
}

static bool find_family(int fd, uint16_t *ret)
{
	struct message reply;
	const size_t size = ask(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME,
	                        TASKSTATS_GENL_NAME, sizeof(TASKSTATS_GENL_NAME), &reply);
	size_t found_size;
	const char *family =
	    find_attribute(reply.attributes, size, CTRL_ATTR_FAMILY_ID, sizeof(*ret), &found_size);

	if (family)
		memcpy(ret, family, sizeof(*ret));
	return family;
}

void thread_sums_init(struct thread_sums *sums)
{
	struct proc_schedstat own;

	*sums = (struct thread_sums){
	    .fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC),
	};
	if (sums->fd >= 0 &&
	    (!find_family(sums->fd, &sums->family) || !thread_sums_read(sums, getpid(), &own) ||
	     own.runs == 0)) // as without CONFIG_TASK_DELAY_ACCT
		thread_sums_deinit(sums);
}

void thread_sums_deinit(struct thread_sums *sums)
{
	if (sums->fd >= 0)
		close(sums->fd);
	sums->fd = -1;
}

bool thread_sums_read(const struct thread_sums *sums, int pid, struct proc_schedstat *ret)
{
	// Both come before the fields that have moved from version to version.
	const size_t min_size = offsetof(struct taskstats, cpu_delay_total) + sizeof(uint64_t);
	const uint32_t tgid = pid;
	struct message reply;
	struct taskstats stats = {0};
	size_t size;

	if (sums->fd < 0)
		return false;
	size = ask(sums->fd, sums->family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_TGID, &tgid,
	           sizeof(tgid), &reply);
	const char *of_process =
	    find_attribute(reply.attributes, size, TASKSTATS_TYPE_AGGR_TGID, 0, &size);
	const char *found =
	    of_process ? find_attribute(of_process, size, TASKSTATS_TYPE_STATS, min_size, &size)
	               : NULL;
	if (!found)
		return false;
	memcpy(&stats, found, size < sizeof(stats) ? size : sizeof(stats));
	*ret = (struct proc_schedstat){.delay_ns = stats.cpu_delay_total, .runs = stats.cpu_count};
	return true;
}
