// SPDX-License-Identifier: MIT
#include "opener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "guard.h"
#include "listening.h"
#include "memory.h"
#include "mounts.h"
#include "proc.h"
#include "regular_file.h"
#include "resident.h"

enum {
	SLICE_MS = 100,
	MAX_LEFT = 32,    // processes left behind that have not ended yet
	BUSY_FACTOR = 10, // for an opener that waits for a CPU, not for a server
	END_LOOKS = 100,
	END_LOOK_NS = 1000000,
};

// One for the whole process, like guard: libdw calls what asks for files, without a context.
static struct {
	pid_t owner; // the process that may use it
	pid_t pid;   // 0: none runs
	int fd;
	pid_t left[MAX_LEFT]; // something else holds them; they are killed
	size_t n_left;
} opener;

// The work of the opener's process.
enum { COPY_BYTES = 1 << 20 };

static bool reply(int socket, const struct opener_reply *reply_, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {(void *)reply_, sizeof(*reply_)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof(*reply_);
}

// Finds a file without opening it. Does not follow links of the kernel's, which lead anywhere.
static int find(int directory, const char *path, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};
	const int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
	// It is before Linux 5.6, or a seccomp filter does not know the call.
	if (directory != AT_FDCWD)
		path += strspn(path, "/");
	return openat(directory, path, O_PATH | O_CLOEXEC);
}

static int open_root(int tid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", tid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

// Goes step by step, through directories only. Finds a link at the end itself.
static int find_without_links(int root, char *path)
{
	char *save = NULL, *name = strtok_r(path, "/", &save);
	int at = dup(root);

	while (name && at >= 0) {
		char *next = strtok_r(NULL, "/", &save);
		const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (next ? O_DIRECTORY : 0);
		const int fd = openat(at, name, flags);
		const int number = errno;
		close(at);
		errno = number;
		at = fd;
		name = next;
	}
	return at;
}

static int find_below(struct opener_request *request)
{
	_cleanup_close_ int root = open_root(request->tid);

	if (root < 0)
		return -1;
	file_user_become(&request->user);
	return request->no_links
	           ? find_without_links(root, request->path)
	           : find(root, request->path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

static int find_requested(struct opener_request *request)
{
	switch (request->way) {
	case OPENER_LINK:
		return open(request->path, O_PATH | O_CLOEXEC);
	case OPENER_BELOW:
		return find_below(request);
	default:
		file_user_become(&request->user);
		return find(AT_FDCWD, request->path, RESOLVE_NO_MAGICLINKS);
	}
}

// Reads it from fdinfo, proc(5): statx(2) gives the same since Linux 5.8.
static int mount_id(int path_fd)
{
	char path[48], text[512], *at;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", path_fd);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	at = strstr(text, "mnt_id:");
	return at ? atoi(at + strlen("mnt_id:")) : -1;
}

static bool has_local_layers(int path_fd, int tid)
{
	struct mounts own, theirs;

	file_user_return();
	if (tid && !mounts_are_honest(tid))
		return false;
	mounts_read(getpid(), &own);
	mounts_read(tid ? tid : getpid(), &theirs);
	const struct mount *mount = mounts_by_id(&theirs, mount_id(path_fd));
	const bool local = mount && mounts_is_local(mount, &own);
	mounts_deinit(&own);
	mounts_deinit(&theirs);
	return local;
}

// Returns a copy in memory; -1 with errno. Reports progress now and then.
static int copy(int socket, int from, uint64_t max_bytes)
{
	static char bytes[COPY_BYTES];
	const struct opener_reply progress = {.is_progress = true};
	const int to = memfd_create("copy", MFD_CLOEXEC);
	uint64_t size = 0;
	ssize_t n = -1;

	while (to >= 0 && (n = read(from, bytes, sizeof(bytes))) > 0) {
		size += (uint64_t)n;
		errno = EFBIG;
		if (size > max_bytes || write(to, bytes, (size_t)n) != n ||
		    !reply(socket, &progress, -1)) {
			n = -1;
			break;
		}
	}
	if (n == 0)
		return to;
	const int number = errno;
	if (to >= 0)
		close(to);
	errno = number;
	return -1;
}

static bool is_requested(const struct opener_request *request, const struct stat *status,
                         bool served)
{
	if (request->inode == 0 && request->device == 0)
		return true;
	// On overlayfs and btrfs, stat gives another device than maps.
	const bool same_device = status->st_dev == request->device;
	return status->st_ino == request->inode &&
	       (same_device || (request->way != OPENER_PATH && !served));
}

// Looks at what a user's file system (FUSE) keeps from all others, root among them, as the user
// whose process has mapped it. This process can then do nothing else.
static enum storage look_as_its_user(int path_fd, int tid, struct opener_reply *ret)
{
	ret->is_last = true;
	errno = EACCES;
	if (!file_user_become_for_good(tid))
		return STORAGE_NONE;
	prctl(PR_SET_PDEATHSIG, SIGKILL); // it was cleared
	return regular_file_look(path_fd, &ret->status);
}

static int open_requested(int socket, struct opener_request *request, struct opener_reply *ret)
{
	_cleanup_close_ int path_fd = find_requested(request);

	if (path_fd < 0)
		return -1;
	enum storage storage = regular_file_look(path_fd, &ret->status);
	if (storage == STORAGE_NONE && errno == EACCES && request->way == OPENER_LINK)
		storage = look_as_its_user(path_fd, request->tid, ret);
	if (storage == STORAGE_NONE)
		return -1;
	errno = ESTALE;
	if (!is_requested(request, &ret->status, storage == STORAGE_SERVER))
		return -1;
	const int fd = regular_file_open(path_fd);
	if (fd < 0 || storage == STORAGE_LOCAL)
		return fd;
	if (storage == STORAGE_LAYERS && has_local_layers(path_fd, request->tid))
		return fd;
	// Close it before the reply: closing may wait for the server as well.
	_cleanup_close_ int server_fd = fd;
	ret->is_copy = true;
	return copy(socket, server_fd, request->max_bytes);
}

// Tells the words in the process's memory, whose lock the process may keep for as long as it likes.
static int tell_command(const struct opener_request *request, struct opener_reply *ret)
{
	size_t size = 0;
	_cleanup_free_ char *text =
	    proc_read_whole(request->tid, "cmdline", sizeof(ret->text), &size);

	if (!text)
		return errno;
	memcpy(ret->text, text, size);
	ret->n_bytes = (uint32_t)size;
	return 0;
}

// Asks a server of users (NSS: LDAP, sssd).
static int tell_user(const struct opener_request *request, struct opener_reply *ret)
{
	const struct passwd *user = getpwuid(request->uid);

	if (!user)
		return ENOENT;
	ret->n_bytes = (uint32_t)strnlen(user->pw_name, sizeof(ret->text));
	memcpy(ret->text, user->pw_name, ret->n_bytes);
	return 0;
}

// Reads the environment where all of it is in memory: /proc tells no page that is a file's.
// Terminates it; the caller frees.
static char *read_environment(int pid, size_t *ret_size)
{
	struct resident resident;
	struct proc_words words;
	bool is_read = false;

	if (!proc_find_words(pid, &words))
		return NULL;
	const size_t length = words.environment_end - words.environment;
	const size_t size = length < PROC_ENVIRONMENT_BYTES ? length : PROC_ENVIRONMENT_BYTES;
	_cleanup_free_ char *text = memory_alloc(size + 1);
	resident_init(&resident, pid);
	resident_open(&resident, pid);
	if (!resident.hidden)
		is_read = resident_read(&resident, pid, words.environment, text, size);
	resident_deinit(&resident);
	text[size] = '\0';
	*ret_size = size;
	return is_read ? take_pointer(text) : NULL;
}

static char *read_variable(int pid, const char *name)
{
	size_t size;
	_cleanup_free_ char *text = read_environment(pid, &size);

	if (!text)
		return proc_read_variable(pid, name);
	errno = ENOENT; // if it is not there
	return proc_find_variable(text, size, name);
}

static int tell_variable(const struct opener_request *request, struct opener_reply *ret)
{
	_cleanup_free_ char *value = read_variable(request->tid, request->path);

	if (!value)
		return errno;
	ret->n_bytes = (uint32_t)strnlen(value, sizeof(ret->text));
	memcpy(ret->text, value, ret->n_bytes);
	return 0;
}

static int tell(const struct opener_request *request, struct opener_reply *ret)
{
	switch (request->way) {
	case OPENER_COMMAND:
		return tell_command(request, ret);
	case OPENER_VARIABLE:
		return tell_variable(request, ret);
	default:
		return tell_user(request, ret);
	}
}

// Returns a descriptor, or -1.
static int answer_request(int socket, struct opener_request *request, struct opener_reply *ret)
{
	if (request->way >= OPENER_COMMAND) {
		ret->error = tell(request, ret);
		return -1;
	}
	const int fd = open_requested(socket, request, ret);
	ret->error = fd < 0 ? errno : 0;
	return fd;
}

// Answers requests from the socket until the other end is closed.
static void opener_serve(int fd)
{
	static struct opener_request request;

	while (recv(fd, &request, sizeof(request), 0) == sizeof(request)) {
		struct opener_reply answer = {0};
		request.path[sizeof(request.path) - 1] = '\0';
		file_user_return();
		const int found = answer_request(fd, &request, &answer);
		if (!reply(fd, &answer, found) || answer.is_last)
			return;
		if (found >= 0)
			close(found);
	}
}

// Runs in the child. Leaves nothing of the parent's open: otherwise, whoever waits for the parent's
// end would wait for a child that is held.
static __attribute__((noreturn)) void run(int fd, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	if (fd != 0)
		dup2(fd, 0);
	closefrom(1);
	opener_serve(0);
	_exit(0);
}

// Reaps those left behind that have ended. The others end when they are let go; if we are gone,
// init reaps them.
static void collect_left(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < opener.n_left; i++)
		if (waitpid(opener.left[i], NULL, WNOHANG | __WALL) == 0)
			opener.left[kept++] = opener.left[i];
	opener.n_left = kept;
}

static bool start(void)
{
	const pid_t parent = getpid();
	int fds[2];

	collect_left();
	if (opener.n_left >= MAX_LEFT ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return false;
	// No signal at its end: it would pass for a tracee's.
	const pid_t pid = (pid_t)syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL);
	if (pid == 0)
		run(fds[1], parent);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return false;
	}
	opener.owner = parent;
	opener.pid = pid;
	opener.fd = fds[0];
	return true;
}

static void leave_behind(void)
{
	close(opener.fd);
	kill(opener.pid, SIGKILL);
	opener.left[opener.n_left++] = opener.pid; // there was room when it was started
	opener.pid = 0;
	collect_left();
}

void opener_end(void)
{
	const struct timespec moment = {.tv_nsec = END_LOOK_NS};

	if (!opener.pid || opener.owner != getpid())
		return;
	close(opener.fd);
	kill(opener.pid, SIGKILL);
	for (int i = 0; i < END_LOOKS && waitpid(opener.pid, NULL, WNOHANG | __WALL) == 0; i++)
		nanosleep(&moment, NULL); // it may wait for a server
	opener.pid = 0;
}

static bool make_ready(void)
{
	if (opener.pid && opener.owner != getpid()) { // we are a child that has inherited it
		close(opener.fd);
		opener.pid = 0;
		opener.n_left = 0;
	}
	return opener.pid || start();
}

static bool user_wants_to_end(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

static bool has_replied(void)
{
	struct pollfd pollfd = {.fd = opener.fd, .events = POLLIN};

	return listening_poll(&pollfd, 1, SLICE_MS) > 0;
}

// Waits for a reply; returns 0 when there is one, else why not. The opener may wait for a CPU on a
// busy machine; that is not held against a server.
static int await(int64_t until_ns)
{
	const int64_t start_ns = clock_now_ns();
	struct proc_stat stat;

	for (;;) {
		if (has_replied())
			return 0;
		const int64_t now_ns = clock_now_ns();
		if (user_wants_to_end())
			return EINTR;
		if (now_ns > until_ns || now_ns - start_ns > BUSY_FACTOR * OPENER_WAIT_NS)
			return ETIMEDOUT;
		if (now_ns - start_ns > OPENER_WAIT_NS &&
		    !(proc_read_stat(-1, opener.pid, opener.pid, &stat) && stat.state == 'R'))
			return ETIMEDOUT;
	}
}

static bool receive(struct opener_reply *ret, int *ret_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {ret, sizeof(*ret)};
	struct msghdr message = {
	    .msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = sizeof(control.bytes),
	};

	*ret_fd = -1;
	if (recvmsg(opener.fd, &message, MSG_CMSG_CLOEXEC) != sizeof(*ret))
		return false;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return true;
}

static int ask(const struct opener_request *request, struct opener_reply *ret)
{
	const int64_t until_ns = clock_now_ns() + request->time_ns;
	int fd;

	if (!make_ready()) {
		errno = EAGAIN;
		return -1;
	}
	if (send(opener.fd, request, sizeof(*request), MSG_NOSIGNAL) != sizeof(*request)) {
		leave_behind();
		return -1;
	}
	do {
		int number = await(until_ns);
		if (number == 0 && !receive(ret, &fd))
			number = EIO;
		if (number != 0) {
			leave_behind();
			errno = number;
			return -1;
		}
	} while (ret->is_progress);
	if (ret->is_last)
		leave_behind();
	errno = ret->error;
	return fd;
}

// Blocks the signals of guarded work, which would leave in the middle of this (guard.h).
int opener_open(const struct opener_request *request, struct opener_reply *ret)
{
	sigset_t guard, mask;

	guard_fill_signals(&guard);
	sigprocmask(SIG_BLOCK, &guard, &mask);
	const int fd = ask(request, ret);
	const int number = errno;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	errno = number;
	return fd;
}

bool opener_ask(const struct opener_request *request, struct opener_reply *ret)
{
	opener_open(request, ret);
	return errno == 0;
}
