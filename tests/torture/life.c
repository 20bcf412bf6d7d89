// SPDX-License-Identifier: MIT
// life exec leader|thread|writer N: executes itself N times, from its main thread or from another
// one, while further threads compute and sleep; says whether all that it was is as it should be.
// writer: from another one, while the main thread writes to a pipe that is read slowly.
//
// life exit STATUS US: leaves by exit_group with that status after so many microseconds, from one
// of its many threads, at whatever the others are at.
//
// life die SIGNAL US: ends by that signal, likewise, and allows a core dump.
//
// life vfork SECONDS: lets children of vfork(2) sleep, for whose end its main thread waits
// uninterruptibly; says how often, and how often it did not wait or the child's end was another
// one.
//
// life vforks MS: waits for such a child for ever, and has a child that waits for one after the
// other, each for so many milliseconds, until a line on stdin; it says, in milliseconds, how long
// it was kept at most when one had ended.
//
// life pidfd SECONDS: has children that end at once, or a little later, and waits for each by its
// pidfd, as GLib does; says how many there were, and how many could not be waited for when their
// pidfd could be read, or ended otherwise.
//
// life births SECONDS RATE: so many threads a second are born, work for a moment and end; says how
// many there were, and how many did not do their work.
//
// life receive FD: one call of recvmmsg(2) for as many messages as it takes; says how many it has
// received, and which error the socket keeps for the next call.
//
// life strict N: after a line on stdin writes N times to a socket that is read slowly, under the
// seccomp that kills for all calls but read, write, exit and sigreturn; says how often it wrote,
// and how often not all.
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "torture.h"

FRAME void *compute(void *argument)
{
	for (;;)
		KEEP();
	return argument;
}

FRAME void *doze(void *argument)
{
	for (;;)
		usleep((useconds_t)random_below(500));
	return argument;
}

static char **next_argv;

FRAME void *execute(void *argument)
{
	usleep((useconds_t)random_below(20000));
	execv("/proc/self/exe", next_argv);
	die("exec");
	return argument;
}

enum { WRITER_FD = 100, WRITTEN = 300000, READ = 3000 };

// For all the programs to come.
static void open_slow_pipe(void)
{
	static char bytes[READ];
	int fds[2];

	if (pipe(fds) || dup2(fds[1], WRITER_FD) != WRITER_FD)
		die("pipe");
	close(fds[1]);
	if (fork() == 0) {
		close(WRITER_FD);
		close(STDOUT_FILENO);
		while (read(fds[0], bytes, sizeof(bytes)) > 0)
			usleep(20);
		_exit(0);
	}
	close(fds[0]);
}

FRAME void write_for_ever(void)
{
	static char bytes[WRITTEN];

	while (write(WRITER_FD, bytes, sizeof(bytes)) == WRITTEN)
		KEEP();
	die("write");
}

static int run_exec(int argc, char **argv)
{
	const long left = atol(argv[3]);
	const int writes = !strcmp(argv[2], "writer");
	char number[32], pid[32];

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (argc < 5) {
		if (writes)
			open_slow_pipe();
		ready();
	} else if (strcmp(argv[4], pid)) {
		say("another pid\n");
		return 1;
	}
	if (left == 0) {
		say("exec 1 0 0 0\nend\n");
		return 0;
	}
	snprintf(number, sizeof(number), "%ld", left - 1);
	next_argv = (char *[]){argv[0], argv[1], argv[2], number, pid, NULL};
	help(compute, NULL);
	help(doze, NULL);
	help(doze, NULL);
	if (strcmp(argv[2], "leader"))
		help(execute, NULL);
	else
		execute(NULL);
	if (writes)
		write_for_ever();
	compute(NULL);
	return 1;
}

static char **end_argv;

FRAME void *end_it(void *argument)
{
	usleep((useconds_t)atoi(end_argv[3]));
	if (!strcmp(end_argv[1], "exit"))
		exit(atoi(end_argv[2]));
	kill(getpid(), atoi(end_argv[2]));
	return argument;
}

static int run_end(char **argv)
{
	const struct rlimit limit = {1 << 20, 1 << 20};

	setrlimit(RLIMIT_CORE, &limit);
	end_argv = argv;
	help(compute, NULL);
	for (int i = 0; i < 10; i++)
		help(doze, NULL);
	ready();
	help(end_it, NULL);
	doze(NULL);
	return 99;
}

#define CHILD_MS 60

FRAME int wait_for_child(int status, volatile int *ret_ended)
{
	const pid_t child = vfork();
	int ended = 0;

	if (!child) {
		sleep_ms(CHILD_MS);
		*ret_ended = 1;
		_exit(status);
	}
	return waitpid(child, &ended, 0) == child && WIFEXITED(ended) &&
	       WEXITSTATUS(ended) == status;
}

static int run_vfork(char **argv)
{
	const double end_s = now_s() + atof(argv[2]);
	long n = 0, bad = 0;
	char line[64];

	help(doze, NULL);
	ready();
	for (; n == 0 || now_s() < end_s; n++) {
		volatile int ended = 0;
		bad += !wait_for_child((int)(n % 256), &ended) || !ended;
	}
	snprintf(line, sizeof(line), "vfork %ld %ld 0 0\nend\n", n, bad);
	say(line);
	return 0;
}

static int run_vforks(char **argv)
{
	struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
	volatile char *room = __builtin_alloca(16 + (size_t)random_below(64)); // a stop is wanted
	volatile double ended_s = 0;
	double longest_s = 0;
	char line[64];

	room[0] = 0;
	if (fork() != 0) {
		if (vfork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		return 1;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ready();
	while (poll(&end, 1, 0) == 0) {
		const pid_t child = vfork();
		if (child == 0) {
			sleep_ms(atoi(argv[2]));
			ended_s = now_s();
			_exit(0);
		}
		if (now_s() - ended_s > longest_s)
			longest_s = now_s() - ended_s;
		waitpid(child, NULL, 0);
	}
	snprintf(line, sizeof(line), "vforks 1 0 %.1f 0\nend\n", 1000 * longest_s);
	say(line);
	return 0;
}

enum { CHILD_BYTES = 1 << 20, CHILD_STATUS = 7 };

// The more memory it has touched, the longer it takes to end.
static void end_soon(void)
{
	static char bytes[CHILD_BYTES];
	const int n = random_below(CHILD_BYTES);

	memset(bytes, 1, (size_t)n);
	__asm__ volatile("" : : "r"(bytes) : "memory");
	_exit(CHILD_STATUS);
}

static int wait_by_pidfd(pid_t child)
{
	struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
	siginfo_t info = {0};

	if (end.fd < 0 || poll(&end, 1, -1) != 1)
		die("pidfd");
	const int found =
	    waitid(P_PIDFD, (id_t)end.fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == child;
	if (!found)
		waitid(P_PIDFD, (id_t)end.fd, &info, WEXITED);
	close(end.fd);
	return found && info.si_code == CLD_EXITED && info.si_status == CHILD_STATUS;
}

static int run_pidfd(char **argv)
{
	const double end_s = now_s() + atof(argv[2]);
	long n = 0, bad = 0;
	char line[64];

	ready();
	for (; n == 0 || now_s() < end_s; n++) {
		const pid_t child = fork();
		if (child == 0)
			end_soon();
		bad += !wait_by_pidfd(child);
	}
	snprintf(line, sizeof(line), "pidfd %ld %ld 0 0\nend\n", n, bad);
	say(line);
	return 0;
}

static atomic_long n_worked;

FRAME void *work_a_little(void *argument)
{
	volatile long n = 0;

	for (int i = 0; i < 20000; i++)
		n += i;
	if (random_below(2))
		usleep(1000);
	atomic_fetch_add(&n_worked, n == 199990000);
	return argument;
}

static int run_births(char **argv)
{
	const double start_s = now_s(), seconds = atof(argv[2]), rate = atof(argv[3]);
	char line[64];
	long n = 0;

	ready();
	while (now_s() < start_s + seconds) {
		for (; (double)n < (now_s() - start_s) * rate; n++)
			help(work_a_little, NULL);
		usleep(2000);
	}
	for (int i = 0; i < 60000 && atomic_load(&n_worked) < n; i++)
		usleep(1000);
	snprintf(line, sizeof(line), "births %ld %ld 0 0\nend\n", n, n - atomic_load(&n_worked));
	say(line);
	return 0;
}

#define WRITTEN (64 << 20)

// One call that lasts for as long as its reader likes.
static int run_write(char **argv)
{
	static char bytes[WRITTEN];
	char line[64];

	ready();
	snprintf(line, sizeof(line), "write %zd\nend\n",
	         write(atoi(argv[2]), bytes, sizeof(bytes)));
	say(line);
	return 0;
}

static int run_receive(char **argv)
{
	static struct mmsghdr messages[1024];
	static char bytes[1024];
	static struct iovec buffers[1024];
	const int fd = atoi(argv[2]);
	int error = -1;
	socklen_t size = sizeof(error);
	char line[64];

	for (int i = 0; i < 1024; i++) {
		buffers[i] = (struct iovec){&bytes[i], 1};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &buffers[i], .msg_iovlen = 1};
	}
	ready();
	const int n = recvmmsg(fd, messages, 1024, 0, NULL);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	snprintf(line, sizeof(line), "receive %d %d\nend\n", n, error);
	say(line);
	return 0;
}

static int run_strict(char **argv)
{
	static char bytes[1 << 20];
	const int n = atoi(argv[2]);
	int fds[2], n_short = 0;
	char line[64];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		die("socketpair");
	if (fork() == 0) {
		close(fds[1]);
		close(STDOUT_FILENO);
		while (read(fds[0], bytes, sizeof(bytes) / 16) > 0)
			usleep(100);
		_exit(0);
	}
	close(fds[0]);
	ready();
	if (read(STDIN_FILENO, line, 1) != 1)
		die("read");
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		die("prctl");
	for (int i = 0; i < n; i++)
		n_short += write(fds[1], bytes, sizeof(bytes)) != sizeof(bytes);
	snprintf(line, sizeof(line), "strict %d %d 0 0\nend\n", n, n_short);
	say(line);
	syscall(SYS_exit, 0);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "vfork"))
		return run_vfork(argv);
	if (!strcmp(argv[1], "vforks"))
		return run_vforks(argv);
	if (!strcmp(argv[1], "pidfd"))
		return run_pidfd(argv);
	if (!strcmp(argv[1], "write"))
		return run_write(argv);
	if (!strcmp(argv[1], "receive"))
		return run_receive(argv);
	if (!strcmp(argv[1], "strict"))
		return run_strict(argv);
	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "exec"))
		return run_exec(argc, argv);
	if (!strcmp(argv[1], "births"))
		return run_births(argv);
	return run_end(argv);
}
