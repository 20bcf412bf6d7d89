// SPDX-License-Identifier: MIT
#include "diagnose.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "arch.h"
#include "error.h"
#include "memory.h"
#include "proc.h"
#include "supervise.h"
#include "text.h"
#include "tracee_stop.h"

enum {
	PF_KTHREAD = 0x00200000, // the kernel's linux/sched.h
	// How often a tracer is looked for before it counts as one, and how long to wait in
	// between.
	TRACER_LOOKS = 5,
	TRACER_LOOK_NS = 3000000,
	MAX_AUXILIARY = 64,
};

static char *name_of(int pid)
{
	char name[PROC_NAME_SIZE];

	if (!proc_read_name(pid, pid, name))
		return memory_strdup("?");
	return text_clean(name, strlen(name), PROC_NAME_SIZE);
}

struct error *diagnose_gone(int pid)
{
	return error_create(EXIT_STATUS_TARGET, "process %d has ended", pid);
}

// A /proc that was mounted in another PID namespace has other processes under the same numbers. Its
// link `self` leads to nothing there, or, in an outer namespace, to the number that we have in it.
static struct error *check_proc(void)
{
	char link[16] = "";
	struct proc_status status;

	if (readlink("/proc/self", link, sizeof(link) - 1) < 0 && errno != ENOENT)
		return NULL; // a /proc of another kind: each process is judged by itself
	if (link[0] == '\0' && faccessat(AT_FDCWD, "/proc/self", F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		return error_create(
		    EXIT_STATUS_TARGET,
		    "/proc is not mounted here: mount it (mount -t proc proc /proc)");
	if (atoi(link) == getpid() && proc_read_status(getpid(), &status) && !status.has_own_pids)
		return NULL;
	return error_create(EXIT_STATUS_TARGET,
	                    "/proc shows another PID namespace, where these numbers are other "
	                    "processes: mount this one's (mount -t proc proc /proc)");
}

static struct error *no_such_process(int pid)
{
	if (kill(pid, 0) != 0 && errno == EPERM)
		return error_create(EXIT_STATUS_TARGET,
		                    "process %d belongs to another user, and this /proc hides it "
		                    "(hidepid): run profiler as root (sudo)",
		                    pid);
	return error_create(EXIT_STATUS_TARGET, "no process has the pid %d: see ps -e", pid);
}

const char *diagnose_tracer_advice(const char *tracer)
{
	if (strcmp(tracer, "gdb") == 0 || strcmp(tracer, "lldb") == 0 ||
	    strcmp(tracer, "lldb-server") == 0 || strcmp(tracer, "dlv") == 0)
		return "detach it in the debugger";
	if (strcmp(tracer, SUPERVISE_WORKER_NAME) == 0)
		return "let that profiler end";
	return "end that one";
}

static struct error *traced_by(int pid, int tracer)
{
	_cleanup_free_ char *name = name_of(pid), *tracer_name = name_of(tracer);

	return error_create(EXIT_STATUS_TARGET,
	                    "process %d (%s) is already traced by process %d (%s), and only one "
	                    "can trace it: %s first",
	                    pid, name, tracer, tracer_name, diagnose_tracer_advice(tracer_name));
}

static struct error *foreign_user(int pid, unsigned int uid)
{
	_cleanup_free_ char *name = name_of(pid);
	const struct passwd *user = getpwuid(uid);

	if (uid == 0)
		return error_create(EXIT_STATUS_TARGET,
		                    "process %d (%s) belongs to root: run profiler as root (sudo)",
		                    pid, name);
	if (user)
		return error_create(EXIT_STATUS_TARGET,
		                    "process %d (%s) belongs to user %s: run profiler as %s or as "
		                    "root (sudo)",
		                    pid, name, user->pw_name, user->pw_name);
	return error_create(EXIT_STATUS_TARGET,
	                    "process %d (%s) belongs to uid %u: run profiler as that user or as "
	                    "root (sudo)",
	                    pid, name, uid);
}

// Returns kernel.yama.ptrace_scope (Documentation/admin-guide/LSM/Yama); 0 without Yama.
static int yama_scope(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	return file && fscanf(file, "%d", &scope) == 1 ? scope : 0;
}

static struct error *denied_by_yama(int pid, int scope)
{
	if (scope >= 3)
		return error_create(EXIT_STATUS_TARGET,
		                    "Yama forbids all tracing until the next boot "
		                    "(kernel.yama.ptrace_scope = %d): process %d cannot be "
		                    "sampled",
		                    scope, pid);
	if (scope == 2)
		return error_create(EXIT_STATUS_TARGET,
		                    "Yama allows tracing to root only (kernel.yama.ptrace_scope = "
		                    "2): run profiler as root (sudo) to sample process %d",
		                    pid);
	return error_create(EXIT_STATUS_TARGET,
	                    "Yama forbids tracing of a process that profiler did not start "
	                    "(kernel.yama.ptrace_scope = 1): run profiler as root (sudo), or start "
	                    "the command under it (profiler -- COMMAND), or allow it with: sysctl "
	                    "kernel.yama.ptrace_scope=0");
}

static struct error *denied_by_container(void)
{
	return error_create(
	    EXIT_STATUS_TARGET,
	    "ptrace is not allowed here (a seccomp filter, as in containers): start the container "
	    "with --cap-add=SYS_PTRACE, or run profiler on the host");
}

struct error *diagnose_denied(int pid)
{
	struct proc_status status;

	if (!proc_read_status(pid, &status))
		return diagnose_gone(pid);
	if (status.tracer_pid && status.tracer_pid != getpid())
		return traced_by(pid, status.tracer_pid);
	if (!tracee_stop_is_permitted())
		return denied_by_container();
	if (geteuid() != 0 && (status.uid != geteuid() || status.euid != geteuid()))
		return foreign_user(pid, status.uid != geteuid() ? status.uid : status.euid);
	const int scope = yama_scope();
	if (scope > 0)
		return denied_by_yama(pid, scope);
	_cleanup_free_ char *name = name_of(pid);
	if (geteuid() != 0)
		return error_create(EXIT_STATUS_TARGET,
		                    "process %d (%s) does not allow tracing by its own user (it "
		                    "has privileges, its file may not be read, or it is not "
		                    "dumpable): run profiler as root (sudo)",
		                    pid, name);
	return error_create(EXIT_STATUS_TARGET,
	                    "process %d (%s) may not be traced, even by root: CAP_SYS_PTRACE is "
	                    "missing, or a security module forbids it",
	                    pid, name);
}

// True if a copy of n bytes, 0 or 1, of its memory is denied.
static bool copy_fails(int tid, unsigned long n)
{
	char byte;
	const struct iovec local = {&byte, 1}, remote = {NULL, 1}; // nothing is mapped there

	return process_vm_readv(tid, &local, n, &remote, n, 0) < 0 && errno == EPERM;
}

// True if copying is denied: by a filter of system calls, which hears of a call that asks for
// nothing, or as ptrace is (ptrace(2), PTRACE_MODE_ATTACH). Opening the memory is checked so, too,
// and does not wait for the process's mmap_lock, as reading does; but it also takes the right to
// the process's files, which CAP_SYS_PTRACE does not give.
static bool copying_is_denied(int tid)
{
	char path[64];

	if (copy_fails(tid, 0))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return copy_fails(tid, 1);
	close(fd);
	return false;
}

// True if the words of the process's auxiliary vector (getauxval(3)) are smaller than ours: then
// the size of a program header, which is one of them, is not where ours would be. The program's
// file may lie on a server that does not answer, so it is not read.
static bool is_32_bit(int pid)
{
	Elf64_auxv_t vector[MAX_AUXILIARY];
	_cleanup_close_ int fd = proc_open(pid, pid, "auxv");
	const ssize_t n = fd < 0 ? -1 : read(fd, vector, sizeof(vector));

	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(vector[0]); i++)
		if (vector[i].a_type == AT_PHENT)
			return vector[i].a_un.a_val != sizeof(Elf64_Phdr);
	// The main thread may have exited, or be in exec: the first sample will tell.
	return n > (ssize_t)sizeof(vector[0]);
}

static struct error *check_machine(int pid)
{
	if (!is_32_bit(pid))
		return NULL;
	_cleanup_free_ char *name = name_of(pid);
	return error_create(
	    EXIT_STATUS_TARGET,
	    "process %d (%s) is a 32-bit program: only 64-bit %s programs can be profiled", pid,
	    name, ARCH_NATIVE->name);
}

// Checks a zombie: its main thread has exited, but other threads may live on.
static struct error *check_zombie(int pid, const struct proc_status *status, const char *name)
{
	struct proc_stat stat;

	if (status->state == 'X')
		return diagnose_gone(pid);
	if (status->state != 'Z')
		return NULL;
	// A process with living threads still has a memory size in any of them; the kernel shows
	// the number of threads as num_threads, which is 1 or 0 for a real zombie.
	if (!proc_read_stat(-1, pid, pid, &stat))
		return diagnose_gone(pid);
	if (stat.n_threads > 1)
		return NULL;
	return error_create(EXIT_STATUS_TARGET,
	                    "process %d (%s) is a zombie: it has ended, and its parent %d has not "
	                    "collected it",
	                    pid, name, status->ppid);
}

int diagnose_tracer(int pid)
{
	const struct timespec pause = {.tv_nsec = TRACER_LOOK_NS};
	struct proc_status status;
	int tracer = 0;

	for (int i = 0; i < TRACER_LOOKS; i++) {
		if (!proc_read_status(pid, &status) || !status.tracer_pid)
			return 0;
		tracer = status.tracer_pid;
		nanosleep(&pause, NULL);
	}
	return tracer;
}

char *diagnose_tracer_text(int pid, int tracer)
{
	_cleanup_free_ char *name = name_of(pid), *tracer_name = name_of(tracer);

	return memory_printf("process %d (%s) is traced by process %d (%s): its threads can be "
	                     "sampled only while they sleep; to sample them always, %s first",
	                     pid, name, tracer, tracer_name, diagnose_tracer_advice(tracer_name));
}

// True if it is another profiler's worker that did not begin before us. If two hold each other,
// each waits for ever, and so do all that they hold; so only the later one may hold.
static bool is_later_worker(int pid)
{
	struct proc_stat own, stat;
	char name[PROC_NAME_SIZE];

	return proc_read_name(pid, pid, name) && strcmp(name, SUPERVISE_WORKER_NAME) == 0 &&
	       proc_read_stat(-1, pid, pid, &stat) &&
	       proc_read_stat(-1, getpid(), getpid(), &own) && stat.start_time >= own.start_time;
}

static bool traces_us(int pid)
{
	struct proc_status own, tracer;

	return proc_read_status(getpid(), &own) && own.tracer_pid &&
	       proc_read_status(own.tracer_pid, &tracer) && tracer.tgid == pid;
}

static struct error *check_tracer(int pid, const char *name)
{
	if (is_later_worker(pid))
		return error_create(EXIT_STATUS_TARGET,
		                    "process %d (%s) belongs to a profiler that started later than "
		                    "this one: they would block each other; start this one again",
		                    pid, name);
	if (traces_us(pid))
		return error_create(
		    EXIT_STATUS_TARGET,
		    "process %d (%s) traces this profiler: they would block each other", pid, name);
	return NULL;
}

struct error *diagnose_target(int pid, int *ret_pid)
{
	struct proc_status status;
	struct proc_stat stat;
	struct error *error = check_proc();

	if (error)
		return error;
	if (!proc_read_status(pid, &status) || status.tgid <= 0)
		return no_such_process(pid);
	pid = status.tgid;
	if (!proc_read_status(pid, &status))
		return diagnose_gone(pid);
	_cleanup_free_ char *name = name_of(pid);
	if (pid == getpid() || pid == getppid()) // getppid(): our supervisor
		return error_create(EXIT_STATUS_TARGET,
		                    "process %d is this profiler itself: name another one", pid);
	if (proc_read_stat(-1, pid, pid, &stat) && (stat.flags & PF_KTHREAD))
		return error_create(EXIT_STATUS_TARGET,
		                    "process %d (%s) is a kernel thread: it has no user stack to "
		                    "sample",
		                    pid, name);
	error = check_zombie(pid, &status, name);
	if (!error)
		error = check_tracer(pid, name);
	if (error)
		return error;
	if (!tracee_stop_is_permitted() || (status.state != 'Z' && copying_is_denied(pid)))
		return diagnose_denied(pid);
	*ret_pid = pid;
	return check_machine(pid);
}
