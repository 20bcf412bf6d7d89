// SPDX-License-Identifier: MIT
#include "untrusted_file.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "file_user.h"
#include "memory.h"
#include "mounts.h"
#include "opener.h"
#include "regular_file.h"

enum {
	MAX_SERVERS = 16,
	MAX_LOST = 3,     // requests without an answer for which the server is not known
	MEMORY_SHARE = 8, // part of the machine's memory, for copies
	SPARE_FDS = 16,
};

// The time for all files of one server.
#define SERVER_NS (5 * NS_PER_SECOND)

#define MAX_COPIED_BYTES (UINT64_C(1) << 30)

#define OWN_MOUNTS_NS NS_PER_SECOND

// A device's number may be given to another once nothing of it is mapped any more.
#define MOUNTS_NS (NS_PER_SECOND / 10)

struct server {
	uint64_t device;
	int64_t left_ns;
};

struct view {
	int tid;
	int64_t read_ns; // 0: never
	bool honest;
	struct mounts mounts;
};

// One for the whole process, like the opener.
static struct {
	struct view own, theirs;
	struct server servers[MAX_SERVERS];
	size_t n_servers, n_lost;
	uint64_t copied_bytes;
} known;

static const struct mounts *look(struct view *view, int tid, int64_t max_age_ns)
{
	const int64_t now_ns = clock_now_ns();
	struct mounts mounts;

	if (view->read_ns && view->tid == tid && now_ns - view->read_ns < max_age_ns)
		return &view->mounts;
	mounts_read(tid, &mounts);
	mounts_deinit(&view->mounts);
	*view = (struct view){tid, now_ns, mounts_are_honest(tid), mounts};
	return &view->mounts;
}

static const struct mounts *own_mounts(void)
{
	return look(&known.own, getpid(), OWN_MOUNTS_NS);
}

// True if files of the device that thread `tid` has mapped are known to lie on this machine.
static bool is_local(int tid, uint64_t device)
{
	const struct mounts *mounts = look(&known.theirs, tid, MOUNTS_NS);
	const struct mount *mount = mounts_of_device(mounts, device);

	if (!mount)
		return false;
	return (known.theirs.honest || regular_file_is_local_type(mount->type)) &&
	       mounts_is_local(mount, own_mounts());
}

// Returns what is known of the device's server; NULL: there are too many.
static struct server *server_of(uint64_t device)
{
	for (size_t i = 0; i < known.n_servers; i++)
		if (known.servers[i].device == device)
			return &known.servers[i];
	if (known.n_servers == MAX_SERVERS)
		return NULL;
	known.servers[known.n_servers] = (struct server){device, SERVER_NS};
	return &known.servers[known.n_servers++];
}

static uint64_t bytes_for_copies(void)
{
	const uint64_t memory_bytes =
	    (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / MEMORY_SHARE;
	const uint64_t most = memory_bytes < MAX_COPIED_BYTES ? memory_bytes : MAX_COPIED_BYTES;

	return known.copied_bytes < most ? most - known.copied_bytes : 0;
}

static void count_copy(int fd)
{
	struct stat status;

	if (fstat(fd, &status) == 0)
		known.copied_bytes += (uint64_t)status.st_size;
}

static bool gave_up(int fd)
{
	return fd < 0 && (errno == ETIMEDOUT || errno == EINTR);
}

// Closes the descriptor if few are left: files of modules stay open, and the calls of the process
// that stops cut short need some, since continuing them takes files of /proc.
static int leave_room(int fd)
{
	struct rlimit limit;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    (rlim_t)fd + SPARE_FDS < limit.rlim_cur)
		return fd;
	close(fd);
	errno = EMFILE;
	return -1;
}

static int ask_for(struct opener_request *request, int64_t time_ns, struct opener_reply *reply)
{
	request->time_ns = time_ns;
	request->max_bytes = bytes_for_copies();
	*reply = (struct opener_reply){0};
	const int fd = leave_room(opener_open(request, reply));
	// Each copy of a file that grows takes the place of the one before.
	if (fd >= 0 && reply->is_copy && !request->no_links)
		count_copy(fd);
	return fd;
}

static int ask_server(struct opener_request *request, uint64_t device, struct opener_reply *reply)
{
	struct server *server = server_of(device);
	const int64_t start_ns = clock_now_ns();

	errno = ETIMEDOUT;
	if (!server || server->left_ns <= 0)
		return -1;
	const int fd = ask_for(request, server->left_ns, reply);
	server->left_ns -= clock_now_ns() - start_ns;
	if (gave_up(fd))
		server->left_ns = 0;
	return fd;
}

// Asks for a file that seems to lie on this machine: a link may lead elsewhere.
static int ask_local(struct opener_request *request, struct opener_reply *reply)
{
	errno = ETIMEDOUT;
	if (known.n_lost >= MAX_LOST)
		return -1;
	const int fd = ask_for(request, SERVER_NS, reply);
	known.n_lost += gave_up(fd);
	return fd;
}

static bool set_path(struct opener_request *request, const char *path)
{
	const size_t length = strlen(path);

	errno = ENAMETOOLONG;
	if (length >= sizeof(request->path))
		return false;
	memcpy(request->path, path, length + 1);
	return true;
}

static int open_path(struct opener_request *request, const char *path)
{
	struct opener_reply reply;
	const struct mounts *mounts = own_mounts();
	const struct mount *mount = mounts_of_path(mounts, path);

	if (!set_path(request, path))
		return -1;
	return !mount || mounts_is_local(mount, mounts)
	           ? ask_local(request, &reply)
	           : ask_server(request, mount->device, &reply);
}

int untrusted_file_open(const char *path, const struct file_user *user)
{
	struct opener_request request = {.way = OPENER_PATH};

	if (user)
		request.user = *user;
	return open_path(&request, path);
}

int untrusted_file_open_same(const char *path, uint64_t device, uint64_t inode)
{
	struct opener_request request = {.way = OPENER_PATH, .device = device, .inode = inode};

	return open_path(&request, path);
}

static int open_direct(const char *path, uint64_t inode)
{
	struct stat status;
	const int fd = leave_room(regular_file_open_path(path, &status));

	if (fd < 0 || status.st_ino == inode)
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

int untrusted_file_open_link(int tid, const char *link, uint64_t device, uint64_t inode)
{
	struct opener_request request = {
	    .way = OPENER_LINK, .tid = tid, .device = device, .inode = inode};
	struct opener_reply reply;

	snprintf(request.path, sizeof(request.path), "/proc/%d/%s", tid, link);
	return is_local(tid, device) ? open_direct(request.path, inode)
	                             : ask_server(&request, device, &reply);
}

int untrusted_file_open_mapped(int tid, const char *path, uint64_t device, uint64_t inode,
                               bool *ret_sure)
{
	struct opener_request request = {
	    .way = OPENER_BELOW, .tid = tid, .device = device, .inode = inode};
	struct opener_reply reply = {0};

	if (!set_path(&request, path))
		return -1;
	file_user_read(tid, &request.user);
	// It is known where the file lies, but not what is on the way.
	const int fd = is_local(tid, device) ? ask_local(&request, &reply)
	                                     : ask_server(&request, device, &reply);
	*ret_sure = reply.status.st_dev == device;
	return fd;
}

int untrusted_file_open_growing(int tid, const char *path, struct stat *ret, bool *ret_copy)
{
	struct opener_request request = {.way = OPENER_BELOW, .tid = tid, .no_links = true};
	struct opener_reply reply = {0};

	if (!set_path(&request, path))
		return -1;
	file_user_read(tid, &request.user);
	const int fd = ask_local(&request, &reply);
	*ret = reply.status;
	*ret_copy = reply.is_copy;
	return fd;
}

void untrusted_file_end(void)
{
	opener_end();
}

const char *untrusted_file_failure(int number)
{
	switch (number) {
	case ENODEV:
		return NULL;
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ESTALE:
		return "it was deleted, moved or replaced, and only root can still open it";
	case EACCES:
	case EPERM:
		return "no permission to read it";
	case EMFILE:
	case ENFILE:
		return "too many files are open";
	case ETIMEDOUT:
		return "its file server does not answer, or is too slow";
	case EINTR:
		return "its file server did not answer in time";
	case EFBIG:
		return "it is on a file server, and memory for a copy ran out";
	default:
		return "it cannot be opened";
	}
}
