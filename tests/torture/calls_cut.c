// SPDX-License-Identifier: MIT
// Calls on files, devices and terminals, and waits, that the kernel cuts at any signal, whether or
// not anybody handles it: each does all that it does alone. What this machine lacks is left out.
#include <linux/aio_abi.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <termios.h>

#include "torture.h"

#define RANDOM_BYTES (256 << 10)
#define UNTOUCHED 0x5a
#define MARGIN 64

// Random bytes have come to all of the buffer, and to nothing behind it.
static void check_random(struct kind *kind, const unsigned char *bytes, long n)
{
	static const unsigned char untouched[MARGIN] = {[0 ... MARGIN - 1] = UNTOUCHED};

	for (long at = 0; at < n; at += MARGIN)
		if (memcmp(bytes + at, untouched, MARGIN) == 0) {
			fault(kind, "no random bytes at", at);
			return;
		}
	if (memcmp(bytes + n, untouched, MARGIN) != 0)
		fault(kind, "bytes behind the buffer", n);
}

static void note_random(struct kind *kind, const unsigned char *bytes, long result)
{
	if (result == RANDOM_BYTES)
		check_random(kind, bytes, result);
	else
		fault(kind, "random bytes", result);
}

FRAME void cut_getrandom(struct kind *kind)
{
	static unsigned char bytes[RANDOM_BYTES + MARGIN];

	memset(bytes, UNTOUCHED, sizeof(bytes));
	note_random(kind, bytes, getrandom(bytes, RANDOM_BYTES, 0));
}

FRAME void cut_read_urandom(struct kind *kind)
{
	static unsigned char bytes[RANDOM_BYTES + MARGIN];
	static int fd;
	const struct iovec parts[] = {
	    {bytes, 100001}, {bytes + 100001, 7}, {bytes + 100008, RANDOM_BYTES - 100008}};

	if (!fd)
		fd = open("/dev/urandom", O_RDWR);
	memset(bytes, UNTOUCHED, sizeof(bytes));
	switch (kind->calls % 4) {
	case 0:
		note_random(kind, bytes, read(fd, bytes, RANDOM_BYTES));
		break;
	case 1:
		note_random(kind, bytes, pread(fd, bytes, RANDOM_BYTES, 7));
		break;
	case 2:
		note_random(kind, bytes, readv(fd, parts, 3));
		break;
	default:
		note_random(kind, bytes, preadv2(fd, parts, 3, 0, 0));
	}
}

FRAME void cut_write_urandom(struct kind *kind)
{
	static char bytes[RANDOM_BYTES];
	static int fd;

	if (!fd)
		fd = open("/dev/urandom", O_RDWR);
	const long n = write(fd, bytes, sizeof(bytes));
	if (n != sizeof(bytes))
		fault(kind, "written", n);
}

#define ZEROS (4 << 20)

FRAME void cut_read_zero(struct kind *kind)
{
	static char bytes[ZEROS + 1];
	static int fd;

	if (!fd)
		fd = open("/dev/zero", O_RDONLY);
	memset(bytes, 1, sizeof(bytes));
	const long n = read(fd, bytes, ZEROS);
	if (n != ZEROS)
		fault(kind, "zeros", n);
	else if (bytes[0] != 0 || memcmp(bytes, bytes + 1, ZEROS - 1) != 0 || bytes[ZEROS] != 1)
		fault(kind, "not zeros", n);
}

#define COPIED (2 << 20)

static char file_bytes[COPIED];

static int make_file(void)
{
	const int fd = (int)syscall(SYS_memfd_create, "cut", 0);

	for (size_t i = 0; i < sizeof(file_bytes); i++)
		file_bytes[i] = (char)(i % 251);
	if (fd < 0 || write(fd, file_bytes, COPIED) != COPIED)
		die("memfd");
	return fd;
}

// All was copied, and both offsets are behind it.
static void check_copy(struct kind *kind, int fd, long result, long in, long out)
{
	static _Thread_local char bytes[COPIED];

	if (result != COPIED)
		fault(kind, "copied", result);
	else if (pread(fd, bytes, COPIED, 0) != COPIED || memcmp(bytes, file_bytes, COPIED) != 0)
		fault(kind, "other bytes than", result);
	else if (in != COPIED || out != COPIED)
		fault(kind, "offset", in == COPIED ? out : in);
	if (ftruncate(fd, 0))
		die("ftruncate");
}

FRAME void cut_sendfile(struct kind *kind)
{
	static int in, out;
	off_t offset = 0;

	if (!in) {
		in = make_file();
		out = (int)syscall(SYS_memfd_create, "out", 0);
	}
	lseek(out, 0, SEEK_SET);
	const long n = sendfile(out, in, &offset, COPIED);
	check_copy(kind, out, n, offset, lseek(out, 0, SEEK_CUR));
}

FRAME void cut_copy_file_range(struct kind *kind)
{
	static int in, out;
	off64_t from = 0, to = 0;

	if (!in) {
		in = make_file();
		out = (int)syscall(SYS_memfd_create, "out", 0);
	}
	const long n = copy_file_range(in, &from, out, &to, COPIED, 0);
	check_copy(kind, out, n, from, to);
}

#define PIPED (1 << 20)

// What the pipe holds goes to a file, or to a device that takes its time.
FRAME void cut_splice(struct kind *kind)
{
	static char bytes[PIPED];
	static int fds[2], out, device;
	off64_t to = 0;

	if (!out) {
		close(make_file());
		out = (int)syscall(SYS_memfd_create, "out", 0);
		device = open("/dev/urandom", O_WRONLY);
		if (pipe(fds) || fcntl(fds[1], F_SETPIPE_SZ, PIPED) != PIPED)
			die("pipe");
	}
	const int to_file = kind->calls % 2;
	if (write(fds[1], file_bytes, PIPED) != PIPED)
		fault(kind, "filling", 0);
	const long n = splice(fds[0], NULL, to_file ? out : device, to_file ? &to : NULL, PIPED, 0);
	if (n != PIPED)
		fault(kind, "spliced", n);
	for (long left = PIPED - n; left > 0; left -= read(fds[0], bytes, (size_t)left))
		;
	if (to_file && n == PIPED &&
	    (to != PIPED || pread(out, bytes, PIPED, 0) != PIPED ||
	     memcmp(bytes, file_bytes, PIPED)))
		fault(kind, "other bytes than", n);
}

static void open_terminal(int *ret_master, int *ret_slave, int least)
{
	struct termios modes;

	if (openpty(ret_master, ret_slave, NULL, NULL, NULL))
		die("openpty");
	tcgetattr(*ret_slave, &modes);
	cfmakeraw(&modes);
	modes.c_cc[VMIN] = (cc_t)least;
	modes.c_cc[VTIME] = 0;
	tcsetattr(*ret_slave, TCSANOW, &modes);
}

static void *type_slowly(void *argument)
{
	for (unsigned char i = 0; write(*(int *)argument, &i, 1) == 1; i++)
		if (i % 4 == 0)
			usleep(50);
	return NULL;
}

#define LEAST 60

FRAME void cut_read_terminal(struct kind *kind)
{
	static int master, slave;
	static unsigned char expected;
	unsigned char bytes[LEAST];

	if (!slave) {
		open_terminal(&master, &slave, LEAST);
		help(type_slowly, &master);
	}
	const long n = read(slave, bytes, sizeof(bytes));
	if (n != LEAST)
		fault(kind, "typed", n);
	for (long i = 0; i < n; i++)
		if (bytes[i] != expected++)
			fault(kind, "other byte, at", i);
}

#define PRINTED 20000

static struct kind *printing;

static void *read_slowly(void *argument)
{
	static char bytes[4096];
	static long at;

	for (long n; (n = read(*(int *)argument, bytes, sizeof(bytes))) > 0;) {
		for (long i = 0; i < n; i++, at++)
			if (bytes[i] != (char)(at % PRINTED % 251))
				fault(printing, "printed other byte, at", at);
		usleep(100);
	}
	return NULL;
}

FRAME void cut_write_terminal(struct kind *kind)
{
	static char bytes[PRINTED];
	static int master, slave;

	if (!slave) {
		for (int i = 0; i < PRINTED; i++)
			bytes[i] = (char)(i % 251);
		printing = kind;
		open_terminal(&master, &slave, 1);
		help(read_slowly, &master);
	}
	const long n = write(slave, bytes, PRINTED);
	if (n != PRINTED)
		fault(kind, "printed", n);
}

FRAME void cut_tcdrain(struct kind *kind)
{
	static int master, slave;

	if (!slave)
		open_terminal(&master, &slave, 1);
	for (int i = 0; i < 500; i++)
		if (kind->calls % 2 ? tcdrain(slave) : tcsendbreak(slave, 0))
			fault(kind, "drained", -1);
}

#define NAMES 1500

FRAME void cut_getdents(struct kind *kind)
{
	static char entries[1 << 20], path[] = "/dev/shm/profiler-cut-XXXXXX";
	static long whole;
	static int fd;

	if (!fd) {
		if (!mkdtemp(path) || (fd = open(path, O_DIRECTORY)) < 0)
			die(path);
		for (int i = 0; i < NAMES; i++) {
			char name[16];
			snprintf(name, sizeof(name), "%d", i);
			close(openat(fd, name, O_CREAT | O_WRONLY, 0600));
		}
		whole =
		    (NAMES - 10 - 90 - 900) * 24 + 1000 * 24 + 2 * 24; // linux_dirent64: 19 + name
	}
	lseek(fd, 0, SEEK_SET);
	const long n = syscall(SYS_getdents64, fd, entries, sizeof(entries));
	if (n != whole)
		fault(kind, "bytes of names", n);
	if (!is_over())
		return;
	for (int i = 0; i < NAMES; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		unlinkat(fd, name, 0);
	}
	rmdir(path);
}

// A timeout in memory that cannot be written, and one that is not to be.
FRAME void cut_select(struct kind *kind)
{
	static struct timespec *timeout;
	struct timeval time = {0, 500};
	long result;

	if (!timeout) {
		timeout =
		    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		timeout->tv_nsec = 500000;
		mprotect(timeout, 4096, PROT_READ);
		personality(0xffffffff &
		            (unsigned long)(personality(0xffffffff) | STICKY_TIMEOUTS));
	}
	if (kind->calls % 3 == 0)
		result = syscall(SYS_pselect6, 0, NULL, NULL, NULL, timeout, NULL);
	else if (kind->calls % 3 == 1)
		result = syscall(SYS_ppoll, NULL, 0, timeout, NULL, 8);
	else
		result = select(0, NULL, NULL, NULL, &time);
	if (result)
		fault(kind, "selected", result);
}

#define HUGE_PAGES 16
#define HUGE_PAGE_BYTES (2 << 20)

// Huge pages, where the machine has some; tmpfs has asked for death only since Linux 6.18.
FRAME void cut_fallocate(struct kind *kind)
{
	static off_t size = (off_t)HUGE_PAGES * HUGE_PAGE_BYTES;
	static int fd;

	if (!fd) {
		fd = (int)syscall(SYS_memfd_create, "reserved", 4 /* MFD_HUGETLB */);
		if (fd < 0 || (fallocate(fd, 0, 0, size) && errno != EINTR)) {
			fd = (int)syscall(SYS_memfd_create, "reserved", 0);
			size = 8 << 20;
			leave_out(kind, "no huge pages");
		}
	}
	if (fallocate(fd, 0, 0, size))
		fault(kind, "fallocate", -1);
	if (ftruncate(fd, 0))
		die("ftruncate");
}

#define EVENTS 8

static int event_pipes[EVENTS][2];

// One event after the other.
static void *make_events(void *argument)
{
	(void)argument;
	for (int i = 0; write(event_pipes[i % EVENTS][1], "x", 1) == 1; i++)
		usleep(200);
	return NULL;
}

static void open_events(aio_context_t *ret)
{
	if (syscall(SYS_io_setup, EVENTS, ret))
		die("io_setup");
	for (int i = 0; i < EVENTS; i++)
		if (pipe(event_pipes[i]))
			die("pipe");
	help(make_events, NULL);
}

// A poll of each pipe; all are waited for, and come one by one.
FRAME void cut_io_getevents(struct kind *kind)
{
	static aio_context_t context;
	struct io_event events[EVENTS];
	int counts[EVENTS] = {0};
	long n;

	if (!context)
		open_events(&context);
	for (int i = 0; i < EVENTS; i++) {
		struct iocb request = {.aio_lio_opcode = IOCB_CMD_POLL,
		                       .aio_buf = POLLIN,
		                       .aio_data = (uint64_t)i,
		                       .aio_fildes = (uint32_t)event_pipes[i][0]};
		struct iocb *pointer = &request;
		if (syscall(SYS_io_submit, context, 1, &pointer) != 1)
			die("io_submit");
	}
	n = syscall(SYS_io_getevents, context, EVENTS, EVENTS, events, NULL);
	if (n != EVENTS)
		fault(kind, "events", n);
	if (n < EVENTS)
		n += syscall(SYS_io_getevents, context, EVENTS - n, EVENTS - n, events + n, NULL);
	for (int i = 0; i < n; i++) {
		char bytes[64];
		const int at = (int)events[i].data;
		if (counts[at]++ || read(event_pipes[at][0], bytes, sizeof(bytes)) <= 0)
			fault(kind, "other events", at);
	}
}

static struct ring {
	char *queues;
	struct io_uring_sqe *entries;
	struct io_uring_params params;
	int fd;
} ring;

static unsigned int *in_ring(unsigned int offset)
{
	return (unsigned int *)(ring.queues + offset);
}

static void open_ring(void)
{
	ring.fd = (int)syscall(SYS_io_uring_setup, 8, &ring.params);
	if (ring.fd < 0)
		return; // not permitted, as in containers
	ring.queues =
	    mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	ring.entries = mmap(NULL, 8 * sizeof(*ring.entries), PROT_READ | PROT_WRITE, MAP_SHARED,
	                    ring.fd, IORING_OFF_SQES);
	if (!(ring.params.features & IORING_FEAT_SINGLE_MMAP))
		ring.fd = -1;
}

// One call submits a timeout and waits for it.
FRAME void cut_io_uring(struct kind *kind)
{
	static struct __kernel_timespec timeout = {.tv_nsec = 300000};

	if (!ring.fd)
		open_ring();
	if (ring.fd < 0) {
		leave_out(kind, "io_uring");
		return;
	}
	unsigned int *tail = in_ring(ring.params.sq_off.tail);
	const unsigned int at = *tail & *in_ring(ring.params.sq_off.ring_mask);
	ring.entries[at] = (struct io_uring_sqe){
	    .opcode = IORING_OP_TIMEOUT, .fd = -1, .addr = (uintptr_t)&timeout, .len = 1};
	in_ring(ring.params.sq_off.array)[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	const long n = syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	unsigned int *head = in_ring(ring.params.cq_off.head);
	const unsigned int *end = in_ring(ring.params.cq_off.tail);
	if (n != 1)
		fault(kind, "submitted", n);
	else if (__atomic_load_n(end, __ATOMIC_ACQUIRE) == *head)
		fault(kind, "no completion", n);
	while (__atomic_load_n(end, __ATOMIC_ACQUIRE) == *head)
		usleep(100);
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
}

// A program that takes the kernel some milliseconds to verify: it follows each turn of the loop.
FRAME void cut_bpf(struct kind *kind)
{
	static const struct bpf_insn code[] = {
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
	    {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 0, .imm = 1},
	    {.code = BPF_JMP | BPF_JLT | BPF_K, .dst_reg = 0, .off = -2, .imm = 5000},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attributes = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
	                             .insn_cnt = 4,
	                             .insns = (uintptr_t)code,
	                             .license = (uintptr_t) "GPL"};
	const int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes));

	if (fd >= 0)
		close(fd);
	else if (errno == EAGAIN)
		fault(kind, "load", fd);
	else
		leave_out(kind, "bpf");
}

struct kind cut_kinds[] = {
    {.name = "getrandom", .run = cut_getrandom},
    {.name = "read_urandom", .run = cut_read_urandom},
    {.name = "write_urandom", .run = cut_write_urandom},
    {.name = "read_zero", .run = cut_read_zero},
    {.name = "sendfile_file", .run = cut_sendfile},
    {.name = "copy_file_range", .run = cut_copy_file_range},
    {.name = "splice_file", .run = cut_splice},
    {.name = "read_terminal", .run = cut_read_terminal},
    {.name = "write_terminal", .run = cut_write_terminal},
    {.name = "tcdrain", .run = cut_tcdrain},
    {.name = "getdents", .run = cut_getdents},
    {.name = "select", .run = cut_select},
    {.name = "fallocate", .run = cut_fallocate},
#ifdef __x86_64__
    {.name = "code_of_32_bits", .run = run_32_bit_code},
#endif
    {.name = "io_getevents", .run = cut_io_getevents},
    {.name = "io_uring", .run = cut_io_uring},
    {.name = "bpf", .run = cut_bpf},
    {.name = "kvm_run", .run = cut_kvm_run},
    {0},
};
