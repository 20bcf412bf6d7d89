// SPDX-License-Identifier: MIT
// Calls that a program answers, or a virtual machine: a seccomp supervisor's receive, a file system
// of a program's, which is told of an interruption and then does nothing, KVM_RUN. Made by
// functions whose frames have no fixed size, so that they are stopped in their sleep. What this
// machine lacks is left out.
#include <alloca.h>
#include <linux/filter.h>
#include <linux/fuse.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "torture.h"

// Keeps the compiler from a frame of a fixed size.
#define MOVE_STACK()                                                                               \
	do {                                                                                       \
		char *space = alloca((size_t)(16 + 16 * random_below(8)));                         \
		__asm__ volatile("" : : "r"(space) : "memory");                                    \
	} while (0)

enum { ANSWER = 77, MAX_MS = 20 };

static atomic_int listener;

int ask_for_supervision(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("PR_SET_NO_NEW_PRIVS");
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
	                    &program);
}

static void *ask(void *argument)
{
	struct kind *kind = argument;

	atomic_store(&listener, ask_for_supervision());
	for (;;) {
		sleep_ms(random_below(MAX_MS));
		const long result = syscall(SYS_getpriority, 0, 0);
		if (result != ANSWER)
			fault(kind, "answered", result);
	}
	return NULL;
}

FRAME void supervise(struct kind *kind)
{
	struct seccomp_notif question = {0};
	struct seccomp_notif_resp answer = {.val = ANSWER};

	MOVE_STACK();
	if (!listener)
		help(ask, kind);
	while (!atomic_load(&listener))
		sleep_ms(1);
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question)) {
		if (errno != ENOENT) // withdrawn, as who asks was stopped just then
			fault(kind, "receive", -1);
		return;
	}
	answer.id = question.id;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

enum { FILE_NODE = 2, BLOCK = 512, MAX_WAITING = 8 };

// A request that is answered later.
struct waiting {
	struct fuse_in_header header;
	double due_s;
	uint64_t number; // that is written
};

static struct {
	int device, root; // root: 0 or less: no such file systems here
	struct waiting waiting[MAX_WAITING];
	uint64_t written; // the last number
	long *n_wrong;    // numbers that came out of turn; shared
} server;

static void reply(uint64_t unique, int error, const void *body, size_t size)
{
	char bytes[sizeof(struct fuse_out_header) + BLOCK + 256];
	const struct fuse_out_header header = {
	    .len = (uint32_t)(sizeof(header) + size), .error = error, .unique = unique};

	memcpy(bytes, &header, sizeof(header));
	if (size > 0)
		memcpy(bytes + sizeof(header), body, size);
	if (write(server.device, bytes, header.len) < 0 && errno != ENOENT)
		die("fuse");
}

static struct fuse_attr attributes_of(uint64_t node)
{
	return (struct fuse_attr){
	    .ino = node,
	    .size = node == FILE_NODE ? BLOCK : 0,
	    .mode = node == FILE_NODE ? S_IFREG | 0600 : S_IFDIR | 0700,
	    .nlink = 1,
	    .blksize = 4096,
	};
}

static void answer(const struct waiting *one)
{
	const uint64_t unique = one->header.unique, node = one->header.nodeid;
	const struct fuse_entry_out entry = {.nodeid = FILE_NODE, .attr = attributes_of(FILE_NODE)};
	const struct fuse_attr_out attributes = {.attr = attributes_of(node)};
	const struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO};
	const struct fuse_write_out written = {.size = BLOCK};
	static char block[BLOCK];

	memset(block, 'x', sizeof(block));
	if (one->header.opcode == FUSE_LOOKUP)
		reply(unique, 0, &entry, sizeof(entry));
	else if (one->header.opcode == FUSE_GETATTR)
		reply(unique, 0, &attributes, sizeof(attributes));
	else if (one->header.opcode == FUSE_OPEN)
		reply(unique, 0, &opened, sizeof(opened));
	else if (one->header.opcode == FUSE_READ)
		reply(unique, 0, block, sizeof(block));
	else if (one->header.opcode == FUSE_WRITE)
		reply(unique, 0, &written, sizeof(written));
	if (one->header.opcode == FUSE_WRITE && one->number != ++server.written)
		++*server.n_wrong;
}

static void interrupt(uint64_t unique)
{
	for (int i = 0; i < MAX_WAITING; i++)
		if (server.waiting[i].header.unique == unique) {
			reply(unique, -EINTR, NULL, 0);
			server.waiting[i].header.unique = 0;
		}
}

static void keep(const struct fuse_in_header *header, const char *body)
{
	for (int i = 0; i < MAX_WAITING; i++) {
		struct waiting *one = &server.waiting[i];
		if (one->header.unique)
			continue;
		*one = (struct waiting){.header = *header, .due_s = now_s() + 0.015};
		if (header->opcode == FUSE_WRITE)
			memcpy(&one->number, body + sizeof(struct fuse_write_in),
			       sizeof(one->number));
		return;
	}
	die("too many requests");
}

static void take_request(void)
{
	static char bytes[1 << 18];
	const struct fuse_init_out init = {
	    .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 65536};
	struct fuse_interrupt_in interrupted;
	struct fuse_in_header header;

	const ssize_t n = read(server.device, bytes, sizeof(bytes));
	if (n < 0 && errno == ENODEV)
		_exit(0); // nobody has it open any more
	if (n < (ssize_t)sizeof(header))
		return;
	memcpy(&header, bytes, sizeof(header));
	memcpy(&interrupted, bytes + sizeof(header), sizeof(interrupted));
	switch (header.opcode) {
	case FUSE_INIT:
		reply(header.unique, 0, &init, sizeof(init));
		break;
	case FUSE_INTERRUPT:
		interrupt(interrupted.unique);
		break;
	case FUSE_FORGET:
		break;
	case FUSE_LOOKUP:
	case FUSE_GETATTR:
	case FUSE_OPEN:
	case FUSE_READ:
	case FUSE_WRITE:
		keep(&header, bytes + sizeof(header));
		break;
	case FUSE_RELEASE:
	case FUSE_FLUSH:
		reply(header.unique, 0, NULL, 0);
		break;
	default:
		reply(header.unique, -ENOSYS, NULL, 0);
	}
}

// A process of its own: the files of a program that ends are closed, for which its server is asked.
static void serve(void)
{
	struct pollfd device = {.fd = server.device, .events = POLLIN};

	for (;;) {
		if (poll(&device, 1, 1) > 0)
			take_request();
		for (int i = 0; i < MAX_WAITING; i++)
			if (server.waiting[i].header.unique && now_s() >= server.waiting[i].due_s) {
				answer(&server.waiting[i]);
				server.waiting[i].header.unique = 0;
			}
	}
}

// Unmounted at once: it lives on in the descriptor alone, and so no longer than the program.
static void mount_server(void)
{
	char directory[] = "/tmp/profiler-served-XXXXXX", options[128];

	server.device = open("/dev/fuse", O_RDWR);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d",
	         server.device, (int)getuid(), (int)getgid());
	server.n_wrong =
	    mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (server.device < 0 || !mkdtemp(directory))
		return;
	if (mount("profiler-test", directory, "fuse", MS_NOSUID | MS_NODEV, options) == 0) {
		if (fork() == 0)
			serve();
		server.root = open(directory, O_PATH | O_DIRECTORY);
		umount2(directory, MNT_DETACH);
	}
	close(server.device);
	rmdir(directory);
}

static int has_server(struct kind *kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, mount_server);
	if (server.root <= 0)
		leave_out(kind, "no file system of a program's");
	return server.root > 0;
}

FRAME void look_at_served(struct kind *kind)
{
	struct stat status;

	MOVE_STACK();
	if (!has_server(kind))
		return;
	const long result = syscall(SYS_newfstatat, server.root, "file", &status, 0);
	if (result)
		fault(kind, "stat", result);
}

FRAME void read_served(struct kind *kind)
{
	static int fd;
	char bytes[BLOCK];

	MOVE_STACK();
	if (!has_server(kind))
		return;
	if (!fd)
		fd = openat(server.root, "file", O_RDONLY);
	if (fd < 0) {
		fault(kind, "open", fd);
		fd = 0;
		return;
	}
	const long n = syscall(SYS_pread64, fd, bytes, sizeof(bytes), 0L);
	if (n != BLOCK || bytes[0] != 'x' || bytes[BLOCK - 1] != 'x')
		fault(kind, "read", n);
}

// Each number once: what was not done is done again, and nothing else.
FRAME void write_served(struct kind *kind)
{
	static uint64_t number[BLOCK / sizeof(uint64_t)];
	static int fd;

	MOVE_STACK();
	if (!has_server(kind))
		return;
	if (!fd)
		fd = openat(server.root, "file", O_WRONLY);
	if (fd < 0) {
		fault(kind, "open", fd);
		fd = 0;
		return;
	}
	number[0]++;
	const long n = syscall(SYS_pwrite64, fd, number, sizeof(number), 0L);
	if (n != BLOCK) {
		fault(kind, "written", n);
		number[0]--;
	} else if (*server.n_wrong > 0) {
		fault(kind, "out of turn", *server.n_wrong);
	}
}

struct kind served_kinds[] = {
    {.name = "supervise", .run = supervise},
    {.name = "stat_served", .run = look_at_served},
    {.name = "read_served", .run = read_served},
    {.name = "write_served", .run = write_served},
    {0},
};
