// SPDX-License-Identifier: MIT
#include "syscall_buffers.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include "resident.h"
#include "syscall_rest.h"

static bool read_all(const struct syscall_caller *caller, uint64_t address, void *ret, size_t size)
{
	return resident_read(NULL, caller->tid, address, ret, size);
}

bool syscall_read_buffers(const struct syscall_caller *caller, uint64_t address, uint64_t n,
                          struct iovec *ret)
{
	return n <= SYSCALL_MAX_BUFFERS && read_all(caller, address, ret, n * sizeof(*ret));
}

bool syscall_read_message(const struct syscall_caller *caller, uint64_t address, struct msghdr *ret)
{
	return read_all(caller, address, ret, sizeof(*ret));
}

bool syscall_read_control(const struct syscall_caller *caller, uint64_t address,
                          struct cmsghdr *ret)
{
	return read_all(caller, address, ret, sizeof(*ret));
}
