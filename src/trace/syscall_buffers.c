// SPDX-License-Identifier: MIT
#include "syscall_buffers.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include "resident.h"
#include "syscall_rest.h"

// As compat calls have them (the kernel's include/linux/compat.h and include/net/compat.h).
struct compat_buffer {
	uint32_t address, size;
};

struct compat_message {
	uint32_t name;
	int32_t name_size;
	uint32_t buffers, n_buffers, control, control_size, flags;
};

struct compat_control {
	uint32_t size;
	int32_t level, type;
};

// An address of a target, as its own structures hold it.
static void *pointer(uint32_t address)
{
	return (void *)(uintptr_t)address;
}

static bool read_all(const struct syscall_caller *caller, uint64_t address, void *ret, size_t size)
{
	return resident_read(NULL, caller->tid, address, ret, size);
}

bool syscall_read_buffers(const struct syscall_caller *caller, uint64_t address, uint64_t n,
                          struct iovec *ret)
{
	struct compat_buffer compat[SYSCALL_MAX_BUFFERS];

	if (n > SYSCALL_MAX_BUFFERS)
		return false;
	if (!caller->compat)
		return read_all(caller, address, ret, n * sizeof(*ret));
	if (!read_all(caller, address, compat, n * sizeof(*compat)))
		return false;
	for (size_t i = 0; i < n; i++)
		ret[i] = (struct iovec){pointer(compat[i].address), compat[i].size};
	return true;
}

bool syscall_read_message(const struct syscall_caller *caller, uint64_t address, struct msghdr *ret)
{
	struct compat_message compat;

	if (!caller->compat)
		return read_all(caller, address, ret, sizeof(*ret));
	if (!read_all(caller, address, &compat, sizeof(compat)))
		return false;
	*ret = (struct msghdr){
	    .msg_iov = pointer(compat.buffers),
	    .msg_iovlen = compat.n_buffers,
	    .msg_control = pointer(compat.control),
	    .msg_controllen = compat.control_size,
	    .msg_flags = (int)compat.flags,
	};
	return true;
}

bool syscall_read_control(const struct syscall_caller *caller, uint64_t address,
                          struct cmsghdr *ret)
{
	struct compat_control compat;

	if (!caller->compat)
		return read_all(caller, address, ret, sizeof(*ret));
	if (!read_all(caller, address, &compat, sizeof(compat)))
		return false;
	*ret = (struct cmsghdr){
	    .cmsg_len = compat.size, .cmsg_level = compat.level, .cmsg_type = compat.type};
	return true;
}
