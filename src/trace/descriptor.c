// SPDX-License-Identifier: MIT
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "memory.h"

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif

// From the kernel's admin-guide/devices.txt.
enum {
	MAJOR_MEMORY = 1,
	MAJOR_MISC = 10,
	MINOR_HW_RANDOM = 183,
	MAJOR_CONSOLE = 4,
	MAJOR_TTY_AUX = 5,
	MINOR_PTMX = 2,
	MAJOR_PTY_MASTER = 128,
	MAJOR_PTY_SLAVE = 136,
	N_PTY_MAJORS = 8,
	DRIVERS_BYTES = 8192,
	OPEN_THREAD = O_EXCL, // PIDFD_THREAD, since Linux 6.9
};

struct device {
	unsigned int major, minor;
};

static bool is_pty_major(unsigned int major, unsigned int first)
{
	return major >= first && major < first + N_PTY_MAJORS;
}

// True if the device is a pseudo-terminal's master. The modes that a master shows are those of the
// other side; its own stay at their defaults, and let a read return with one byte
// (tty_std_termios).
static bool is_pty_master(struct device device)
{
	return (device.major == MAJOR_TTY_AUX && device.minor == MINOR_PTMX) ||
	       is_pty_major(device.major, MAJOR_PTY_MASTER);
}

static bool is_pty(struct device device)
{
	return is_pty_master(device) || is_pty_major(device.major, MAJOR_PTY_SLAVE);
}

// True if the device is a terminal. The drivers of all terminals are in /proc/tty/drivers: name,
// path, major, minors ("64-95"), type. A signal handler may call this: no stdio.
static bool is_line(struct device device)
{
	_cleanup_close_ int fd = -1;
	char text[DRIVERS_BYTES];

	if (device.major == MAJOR_CONSOLE || device.major == MAJOR_TTY_AUX)
		return true;
	fd = open("/proc/tty/drivers", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	for (const char *line = text; line; line = strchr(line, '\n')) {
		unsigned int major, first, last;
		line += *line == '\n';
		const int fields = sscanf(line, "%*s %*s %u %u-%u", &major, &first, &last);
		if (fields >= 2 && device.major == major && device.minor >= first &&
		    device.minor <= (fields == 3 ? last : first))
			return true;
	}
	return false;
}

// True for mem, zero, full, random, urandom: drivers/char/mem.c, random.c;
// drivers/char/hw_random/core.c.
static bool is_memory(struct device device)
{
	static const unsigned int minors[] = {1, 5, 7, 8, 9};

	if (device.major == MAJOR_MISC)
		return device.minor == MINOR_HW_RANDOM;
	for (size_t i = 0; i < array_size(minors); i++)
		if (device.major == MAJOR_MEMORY && device.minor == minors[i])
			return true;
	return false;
}

static bool look(int tid, int number, struct statx *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, number);
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO,
	             ret) == 0;
}

static struct device device_of(const struct statx *status)
{
	return (struct device){status->stx_rdev_major, status->stx_rdev_minor};
}

enum descriptor_kind descriptor_kind(int tid, int number)
{
	struct statx status;

	if (!look(tid, number, &status))
		return DESCRIPTOR_UNKNOWN;
	const struct device device = device_of(&status);
	const unsigned int mode = status.stx_mode;
	if (S_ISSOCK(mode))
		return DESCRIPTOR_SOCKET;
	if (S_ISFIFO(mode))
		return DESCRIPTOR_PIPE;
	if (S_ISREG(mode))
		return DESCRIPTOR_FILE;
	if (S_ISCHR(mode) && is_memory(device))
		return DESCRIPTOR_MEMORY;
	if (S_ISCHR(mode) && is_pty(device))
		return DESCRIPTOR_PTY;
	return S_ISCHR(mode) && is_line(device) ? DESCRIPTOR_LINE : DESCRIPTOR_OTHER;
}

// Reads the flags with which it was opened (open(2)). False if they are not known.
static bool read_flags(int tid, int number, unsigned int *ret)
{
	_cleanup_close_ int fd = -1;
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", tid, number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	// its first lines: pos, flags
	const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	const char *line = strstr(text, "flags:");
	return line && sscanf(line, "flags: %o", ret) == 1;
}

bool descriptor_blocks(int tid, int number)
{
	unsigned int flags;

	return !read_flags(tid, number, &flags) || !(flags & O_NONBLOCK);
}

bool descriptor_is_direct(int tid, int number)
{
	unsigned int flags;

	return read_flags(tid, number, &flags) && (flags & O_DIRECT);
}

static int open_thread(int pid, int tid)
{
	const int fd = (int)syscall(SYS_pidfd_open, tid, tid == pid ? 0 : OPEN_THREAD);

	// An older kernel knows only main threads, most of whose descriptors are the thread's.
	return fd < 0 && errno == EINVAL ? (int)syscall(SYS_pidfd_open, pid, 0) : fd;
}

static bool is_same(int fd, const struct statx *status)
{
	struct stat own;

	return fstat(fd, &own) == 0 && own.st_ino == status->stx_ino &&
	       own.st_dev == makedev(status->stx_dev_major, status->stx_dev_minor);
}

// Returns a duplicate of what the thread has by that number, which is *status, to be closed. Only
// for sockets and terminals: closing a file can do more than that.
static int duplicate(int pid, int tid, int number, const struct statx *status)
{
	_cleanup_close_ int thread = open_thread(pid, tid);
	const int fd = thread < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, thread, number, 0);

	if (fd < 0 || is_same(fd, status))
		return fd;
	close(fd);
	errno = EBADF;
	return -1;
}

static bool get_option(int fd, int name, int *ret)
{
	socklen_t size = sizeof(*ret);

	return getsockopt(fd, SOL_SOCKET, name, ret, &size) == 0;
}

static bool has_timeout(int fd, int name)
{
	struct timeval time = {0};
	socklen_t size = sizeof(time);

	return getsockopt(fd, SOL_SOCKET, name, &time, &size) == 0 &&
	       (time.tv_sec != 0 || time.tv_usec != 0);
}

// unix_skb_scm_eq in net/unix/af_unix.c.
static bool tells_senders(int fd)
{
	static const int options[] = {SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD};
	int is_set;

	for (size_t i = 0; i < array_size(options); i++)
		if (get_option(fd, options[i], &is_set) && is_set)
			return true;
	return false;
}

bool descriptor_socket(int pid, int tid, int number, struct socket_facts *ret)
{
	const int sending = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_TX_SOFTWARE |
	                    SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_ACK;
	struct statx status;

	if (!look(tid, number, &status))
		return false;
	_cleanup_close_ int fd = duplicate(pid, tid, number, &status);
	int type, least, stamps = 0, peek_at = -1, domain = AF_UNSPEC, at_mark = 0;
	if (fd < 0 || !get_option(fd, SO_TYPE, &type) || !get_option(fd, SO_RCVLOWAT, &least))
		return false;
	get_option(fd, SO_TIMESTAMPING, &stamps);
	get_option(fd, SO_PEEK_OFF, &peek_at);
	get_option(fd, SO_DOMAIN, &domain);
	if (domain != AF_UNIX) // whose queue may begin with an urgent byte that was taken
		ioctl(fd, SIOCATMARK, &at_mark);
	*ret = (struct socket_facts){
	    .type = type,
	    .least = least > 0 ? (uint64_t)least : 1,
	    .notes_sending = stamps & sending,
	    .has_timeout = has_timeout(fd, SO_RCVTIMEO) || has_timeout(fd, SO_SNDTIMEO),
	    .peeks_on = peek_at >= 0,
	    .is_unix = domain == AF_UNIX,
	    .is_at_mark = at_mark,
	    .tells_senders = domain == AF_UNIX && tells_senders(fd),
	};
	return true;
}

void descriptor_take_error(int pid, int tid, int number)
{
	struct statx status;
	int error;

	if (!look(tid, number, &status))
		return;
	_cleanup_close_ int fd = duplicate(pid, tid, number, &status);
	if (fd >= 0)
		get_option(fd, SO_ERROR, &error);
}

// As n_tty_read in drivers/tty/n_tty.c does it.
bool descriptor_terminal(int pid, int tid, int number, struct terminal_facts *ret)
{
	struct termios modes;
	struct statx status;

	if (!look(tid, number, &status))
		return false;
	*ret = (struct terminal_facts){0};
	if (is_pty_master(device_of(&status)))
		return true;
	_cleanup_close_ int fd = duplicate(pid, tid, number, &status);
	if (fd < 0 || tcgetattr(fd, &modes) != 0)
		return false;
	if (!(modes.c_lflag & ICANON))
		*ret = (struct terminal_facts){modes.c_cc[VMIN], modes.c_cc[VTIME] != 0};
	return true;
}

bool descriptor_may_grow(int pid)
{
	struct rlimit limit;

	return prlimit(pid, RLIMIT_FSIZE, NULL, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}
