// SPDX-License-Identifier: MIT
// The system calls of i386 programs, which 64-bit ones make by int $0x80.
#include <stddef.h>

#include "memory.h"
#include "syscall_numbers.h"
#include "syscall_registers.h"

enum {
	I386_IPC = 117, // ipc(2), all of System V's calls in one, and which of them has a timeout
	IPC_SEMTIMEDOP = 4,
};

// arch/x86/entry/syscalls/syscall_32.tbl. Numbers from 424 on are the same in both.
static const struct {
	uint16_t compat, native;
} pairs[] = {
    {3, SYS_read},
    {4, SYS_write},
    {5, SYS_open},
    {6, SYS_close},
    {7, SYS_wait4},
    {29, SYS_pause},
    {54, SYS_ioctl},
    {82, SYS_select},
    {114, SYS_wait4},
    {117, SYS_semtimedop},
    {141, SYS_getdents},
    {142, SYS_select},
    {143, SYS_flock},
    {145, SYS_readv},
    {146, SYS_writev},
    {162, SYS_nanosleep},
    {168, SYS_poll},
    {177, SYS_rt_sigtimedwait},
    {180, SYS_pread64},
    {181, SYS_pwrite64},
    {187, SYS_sendfile},
    {220, SYS_getdents64},
    {221, SYS_fcntl},
    {239, SYS_sendfile},
    {240, SYS_futex},
    {247, SYS_io_getevents},
    {256, SYS_epoll_wait},
    {267, SYS_clock_nanosleep},
    {295, SYS_openat},
    {308, SYS_pselect6},
    {309, SYS_ppoll},
    {313, SYS_splice},
    {319, SYS_epoll_pwait},
    {324, SYS_fallocate},
    {333, SYS_preadv},
    {334, SYS_pwritev},
    {337, SYS_recvmmsg},
    {345, SYS_sendmmsg},
    {355, SYS_getrandom},
    {361, SYS_bind},
    {362, SYS_connect},
    {364, SYS_accept4},
    {369, SYS_sendto},
    {370, SYS_sendmsg},
    {371, SYS_recvfrom},
    {372, SYS_recvmsg},
    {377, SYS_copy_file_range},
    {378, SYS_preadv2},
    {379, SYS_pwritev2},
    {385, SYS_io_pgetevents},
    {407, SYS_clock_nanosleep},
    {413, SYS_pselect6},
    {414, SYS_ppoll},
    {416, SYS_io_pgetevents},
    {417, SYS_recvmmsg},
    {420, SYS_semtimedop},
    {421, SYS_rt_sigtimedwait},
    {422, SYS_futex},
    {426, SYS_io_uring_enter},
    {441, SYS_epoll_pwait2},
};

int syscall_from_compat(int64_t number)
{
	for (size_t i = 0; i < array_size(pairs); i++)
		if (pairs[i].compat == number)
			return pairs[i].native;
	return -1;
}

int syscall_to_compat(int number)
{
	for (size_t i = 0; i < array_size(pairs); i++)
		if (pairs[i].native == number)
			return pairs[i].compat;
	return -1;
}

bool syscall_compat_has_timeout(int64_t number, const uint64_t arguments[SYSCALL_ARGUMENTS])
{
	return number == I386_IPC && (arguments[0] & 0xffff) == IPC_SEMTIMEDOP;
}
