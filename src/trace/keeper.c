// SPDX-License-Identifier: MIT
#include "keeper.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "stuck_worker.h"
#include "supervise.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define FORGET_FRAMES(at, size) __asan_unpoison_memory_region(at, size)
#else
#define FORGET_FRAMES(at, size) ((void)(at))
#endif

enum {
	STACK_BYTES = 64 << 10,     // until it goes on, on the worker's
	MAX_FRAMES_BYTES = 1 << 20, // of the functions in which the worker may be killed
};

static struct shared {
	_Atomic int pid; // 0: none
	_Atomic bool is_needed;
	_Atomic bool is_ready; // to go on
	_Atomic bool held;
	_Atomic int64_t due_ns;
} * shared; // with the supervisor; NULL: there is no keeper

static int go_fds[2] = {-1, -1}; // a pipe: the supervisor writes, the keeper reads

static pid_t worker;
static sigjmp_buf way;
static uint8_t *frames_end; // the worker's stack below this is left by siglongjmp
static bool goes_on;        // in the worker's place

void keeper_share(void)
{
	void *memory =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	shared = memory == MAP_FAILED || pipe2(go_fds, O_CLOEXEC) != 0 ? NULL : memory;
}

static void close_end(int i)
{
	if (go_fds[i] >= 0)
		close(go_fds[i]);
	go_fds[i] = -1;
}

void keeper_note_supervisor(void)
{
	close_end(0);
}

void keeper_note_worker(void)
{
	close_end(1);
}

sigjmp_buf *keeper_way(void)
{
	return &way;
}

// Sees, now that the supervisor is dead, that the worker can end: in a process with memory of its
// own, where calls may fail. The worker may be in the middle of malloc(3). If this one call fails,
// for lack of processes or memory, the worker's errno is changed as it runs: a retry or a message
// may be wrong, in a process that was told to end and whose supervisor is dead.
static void outlive_supervisor(void)
{
	if (shared->is_needed && syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0)
		stuck_worker_end_orphan(worker);
}

// Runs in the keeper, with all signals blocked. Its thread-local memory, and errno in it, is the
// worker's, so that only calls that do not fail may be made here.
static int keep(void *context)
{
	char go;

	(void)context;
	prctl(PR_SET_NAME, "profiler-keeper");
	if (read(go_fds[0], &go, 1) != 1) {
		outlive_supervisor();
		_exit(1);
	}
	if (!shared->is_ready)
		_exit(1);
	shared->is_ready = false;
	prctl(PR_SET_NAME, SUPERVISE_WORKER_NAME);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	// AddressSanitizer knows only of frames of the stack that this process was on.
	FORGET_FRAMES(frames_end - MAX_FRAMES_BYTES, MAX_FRAMES_BYTES);
	goes_on = true;
	siglongjmp(way, 1);
}

static pid_t start(void)
{
	static pid_t cleared;
	sigset_t all, old;
	uint8_t *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (stack == MAP_FAILED)
		return 0;
	// The kernel clears this when the worker ends: not the tid that libc keeps, which the
	// keeper goes on with.
	syscall(SYS_set_tid_address, &cleared);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	// A child of the supervisor, which waits for it as it does for the worker.
	const pid_t pid =
	    clone(keep, stack + STACK_BYTES,
	          CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND | CLONE_PARENT, NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid > 0 ? pid : 0;
}

void keeper_expect(int64_t duration_ns)
{
	if (shared)
		shared->due_ns = duration_ns ? clock_now_ns() + duration_ns : 0;
}

void keeper_begin(bool can_go_on)
{
	if (!shared || go_fds[0] < 0)
		return;
	worker = getpid();
	frames_end = __builtin_frame_address(0);
	shared->is_needed = true; // before there is a keeper: the supervisor may die at any time
	shared->pid = start();
	shared->is_needed = shared->pid != 0;
	shared->is_ready = can_go_on && shared->is_needed;
}

void keeper_end(void)
{
	if (!shared)
		return;
	shared->is_needed = false;
	shared->is_ready = false;
	shared->due_ns = 0; // what comes now, as writing, may take its time
}

void keeper_exit(int status)
{
	if (!goes_on)
		return;
	fflush(NULL);
	_exit(status);
}

bool keeper_is_needed(void)
{
	return shared && shared->is_needed;
}

bool keeper_is_ready(void)
{
	return shared && shared->is_ready;
}

int64_t keeper_due_ns(void)
{
	return shared ? shared->due_ns : 0;
}

bool keeper_has_held(void)
{
	return shared && shared->held;
}

pid_t keeper_take_over(bool held)
{
	const pid_t pid = keeper_is_ready() ? shared->pid : 0;

	if (!pid)
		return 0;
	shared->pid = 0;
	shared->due_ns = 0;
	if (waitpid(pid, NULL, WNOHANG) != 0) // somebody has killed it, and nobody would read
		return 0;
	shared->held = held;
	return write(go_fds[1], "", 1) == 1 ? pid : 0;
}

void keeper_dismiss(void)
{
	const pid_t pid = shared ? shared->pid : 0;

	if (!pid)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	shared->pid = 0;
}
