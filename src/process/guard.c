// SPDX-License-Identifier: MIT
#include "guard.h"

#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "signal_context.h"

enum {
	ALTERNATE_STACK_BYTES = 64 << 10,
	MAX_SAFE = 8,
	TICK_NS = 100000000, // steps in which CPU time is counted
	RETRY_NS = 1000000,  // pause between tries, once the time is up, until the work can be left
};

// The kernel sends no real-time signals, but those that stop a container with systemd (SIGRTMIN +
// 3, and others up to + 6) are to be passed on by top. SIGRTMIN and SIGRTMIN + 4 are those of a
// window's writer.
#define CPU_SIGNAL (SIGRTMIN + 8)
#define WAIT_SIGNAL (SIGRTMIN + 9)

// Sanitizers reserve terabytes of address space.
#if defined(__SANITIZE_ADDRESS__)
#define LIMITS_MEMORY false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LIMITS_MEMORY false
#endif
#endif
#ifndef LIMITS_MEMORY
#define LIMITS_MEMORY true
#endif

struct code_range {
	uintptr_t start, end;
};

// Sends this process a signal when time is up.
//
// A timer of timer_create(2) has a signal of our own choice, but takes a place among the user's
// queued signals (RLIMIT_SIGPENDING: ulimit -i). Where there is none left, one of setitimer(2)
// stands in for it, which needs none, and has a signal of its own.
struct signal_timer {
	int signal;  // what it sends
	pid_t owner; // whose it is: a fork's child has none
	bool is_interval;
	int which; // of setitimer(2)
	timer_t id;
};

static int signal_of(int which)
{
	switch (which) {
	case ITIMER_REAL:
		return SIGALRM;
	case ITIMER_VIRTUAL:
		return SIGVTALRM;
	default:
		return SIGPROF;
	}
}

// Makes a timer that sends `signal`, and does not run yet. What may stand in for it is the timer
// `which` of setitimer(2), with a clock that is about the same: it tells apart neither threads
// nor, where it is ITIMER_VIRTUAL, what the kernel does for them. Set the handler for ret->signal
// then.
static void signal_timer_create(clockid_t clock, int signal, int which, struct signal_timer *ret)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal};

	*ret = (struct signal_timer){.signal = signal, .owner = getpid(), .which = which};
	ret->is_interval = timer_create(clock, &event, &ret->id) != 0;
	if (ret->is_interval)
		ret->signal = signal_of(which);
}

static struct timeval timeval_of(int64_t ns)
{
	const struct timespec time = clock_timespec(ns);

	return (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / NS_PER_US};
}

// Sends the first signal after first_ns, and one each then_ns from there on; 0: none.
static void signal_timer_set(const struct signal_timer *timer, int64_t first_ns, int64_t then_ns)
{
	const struct itimerspec when = {clock_timespec(then_ns), clock_timespec(first_ns)};
	const struct itimerval interval = {timeval_of(then_ns), timeval_of(first_ns)};

	if (timer->is_interval)
		setitimer(timer->which, &interval, NULL);
	else
		timer_settime(timer->id, 0, &when, NULL);
}

// True if a timer has sent it, and not another process.
static bool signal_timer_has_sent(const siginfo_t *info)
{
	return info->si_code == SI_TIMER || info->si_code == SI_KERNEL; // timer_create, setitimer
}

// Global, because the signal handlers need it.
static struct {
	bool ready;
	volatile sig_atomic_t active;
	volatile int64_t left_ns;
	sigjmp_buf way_out;
	volatile uintptr_t last_pc;
	struct code_range safe[MAX_SAFE]; // the code of libdw and its helpers
	size_t n_safe;
	struct signal_timer cpu_timer; // ticks all the time
	struct signal_timer wait_timer;
	bool opens_files, memory_is_limited;
	volatile sig_atomic_t hurries; // the CPU timer ticks fast
	struct rlimit memory;          // as it was
} guard;

static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction earlier[array_size(fault_signals)];

static bool is_safe(uintptr_t pc)
{
	for (size_t i = 0; i < guard.n_safe; i++)
		if (pc >= guard.safe[i].start && pc < guard.safe[i].end)
			return true;
	return false;
}

static void tick_every(int64_t ns)
{
	signal_timer_set(&guard.cpu_timer, ns, ns);
}

static void leave(enum guard_end end, uintptr_t pc)
{
	guard.last_pc = pc;
	siglongjmp(guard.way_out, end);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	if (guard.active)
		leave(number == SIGBUS ? GUARD_TRUNCATED : GUARD_FAULT, signal_context_pc(context));
	// Not ours: go back to the instruction, to fault as it would have without us.
	for (size_t i = 0; i < array_size(fault_signals); i++)
		if (fault_signals[i] == number)
			sigaction(number, &earlier[i], NULL);
	if (info->si_code <= 0) // somebody sent it, for example abort(3)
		raise(number);
}

// Both timers repeat, because the work cannot be abandoned within malloc(3), or while our own data
// is being changed: the next signal tries again.
static void on_cpu_time(int number, siginfo_t *info, void *context)
{
	(void)number;
	if (!guard.active || !signal_timer_has_sent(info))
		return;
	guard.left_ns -= guard.hurries ? RETRY_NS : TICK_NS;
	if (guard.left_ns > 0)
		return;
	if (is_safe(signal_context_pc(context)))
		leave(GUARD_TIME, signal_context_pc(context));
	if (!guard.hurries)
		tick_every(RETRY_NS);
	guard.hurries = 1;
}

static void on_waiting(int number, siginfo_t *info, void *context)
{
	(void)number;
	// malloc's own system calls, which must not be left, never end this way.
	if (guard.active && signal_timer_has_sent(info) && signal_context_ends_call(context))
		leave(GUARD_TIME, signal_context_pc(context));
}

static bool is_helper(const char *path)
{
	static const char *const names[] = {"/libdw", "/libelf", "/liblzma", "/libz.", "/libbz2"};

	for (size_t i = 0; i < array_size(names); i++)
		if (strstr(path, names[i]))
			return true;
	return false;
}

static int note_object(struct dl_phdr_info *object, size_t size, void *context)
{
	(void)size, (void)context;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];
		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) ||
		    guard.n_safe == MAX_SAFE || !is_helper(object->dlpi_name))
			continue;
		const uintptr_t start = object->dlpi_addr + header->p_vaddr;
		guard.safe[guard.n_safe++] = (struct code_range){start, start + header->p_memsz};
	}
	return 0;
}

// Gives handlers a stack of their own: endless recursion is among the faults.
static void set_alternate_stack(void)
{
	static char bytes[ALTERNATE_STACK_BYTES];
	stack_t old;

	if (sigaltstack(NULL, &old) == 0 && old.ss_flags & SS_DISABLE)
		sigaltstack(&(stack_t){.ss_sp = bytes, .ss_size = sizeof(bytes)}, NULL);
}

void guard_fill_signals(sigset_t *set)
{
	sigemptyset(set);
	if (!guard.ready)
		return;
	sigaddset(set, guard.cpu_timer.signal);
	sigaddset(set, guard.wait_timer.signal);
}

// Blocks the timers' signals in handlers: on a busy machine the next one may be there before the
// handler has got a CPU, and handlers on top of each other would fill the stack.
static void handle(int number, void (*handler)(int, siginfo_t *, void *), int more_flags,
                   struct sigaction *ret_earlier)
{
	struct sigaction action = {
	    .sa_sigaction = handler,
	    .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | more_flags,
	};
	sigset_t set;

	guard_fill_signals(&action.sa_mask);
	sigaction(number, &action, ret_earlier);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void on_no_memory(void)
{
	guard_leave_memory();
}

// A fork's child begins without timers, and has the handlers.
static void start_timers(void)
{
	signal_timer_create(CLOCK_PROCESS_CPUTIME_ID, CPU_SIGNAL, ITIMER_VIRTUAL, &guard.cpu_timer);
	signal_timer_create(CLOCK_MONOTONIC, WAIT_SIGNAL, ITIMER_REAL, &guard.wait_timer);
	handle(guard.cpu_timer.signal, on_cpu_time, SA_RESTART, NULL);
	handle(guard.wait_timer.signal, on_waiting, 0, NULL); // 0: system calls that wait must end
	tick_every(TICK_NS);
}

static void set_up(void)
{
	guard.ready = true;
	memory_on_exhaustion(on_no_memory);
	dl_iterate_phdr(note_object, NULL);
	set_alternate_stack();
	start_timers(); // before the handlers, which block the timers' signals
	for (size_t i = 0; i < array_size(fault_signals); i++)
		handle(fault_signals[i], on_fault, 0, &earlier[i]);
}

static uint64_t address_space_bytes(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages;

	if (!file || fscanf(file, "%lu", &pages) != 1)
		return 0;
	// cppcheck-suppress resourceLeak ; closed by _cleanup_fclose_
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void finish(enum guard_end end)
{
	sigset_t set;

	guard.active = 0;
	if (end != GUARD_DONE) { // perhaps out of a handler
		guard_fill_signals(&set);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
	if (guard.hurries)
		tick_every(TICK_NS);
	guard.hurries = 0;
	if (guard.opens_files)
		signal_timer_set(&guard.wait_timer, 0, 0);
	if (guard.memory_is_limited)
		setrlimit(RLIMIT_AS, &guard.memory);
	guard.opens_files = guard.memory_is_limited = false;
}

enum guard_end guard_run(guard_work *work, void *context, int64_t *left_ns)
{
	if (guard.active) {
		work(context);
		return GUARD_DONE;
	}
	if (!guard.ready)
		set_up();
	else if (guard.cpu_timer.owner != getpid())
		start_timers();
	guard.left_ns = *left_ns;
	const int result = sigsetjmp(guard.way_out, 0); // finish() restores the signals
	if (result == GUARD_DONE) {
		guard.active = 1;
		work(context);
	}
	finish(result);
	*left_ns = guard.left_ns;
	return result;
}

static void limit_memory(uint64_t bytes)
{
	if (!LIMITS_MEMORY ||
	    (!guard.memory_is_limited && getrlimit(RLIMIT_AS, &guard.memory) != 0))
		return;
	guard.memory_is_limited = true;
	struct rlimit limit = guard.memory;
	const uint64_t used = address_space_bytes();
	if (used && bytes < limit.rlim_cur && used < limit.rlim_cur - bytes)
		limit.rlim_cur = used + bytes;
	setrlimit(RLIMIT_AS, &limit);
}

void guard_opens_files(uint64_t memory_bytes)
{
	if (!guard.active)
		return;
	limit_memory(memory_bytes);
	if (!guard.opens_files)
		signal_timer_set(&guard.wait_timer, GUARD_WAIT_NS, RETRY_NS);
	guard.opens_files = true;
}

void guard_leave_memory(void)
{
	if (guard.active)
		siglongjmp(guard.way_out, GUARD_MEMORY);
}

const char *guard_end_text(enum guard_end end)
{
	switch (end) {
	case GUARD_TRUNCATED:
		return "it was cut short while it was read";
	case GUARD_FAULT:
		return "its tables are damaged";
	case GUARD_TIME:
		return "reading it took too long";
	case GUARD_MEMORY:
		return "reading it takes too much memory";
	default:
		return NULL;
	}
}

uintptr_t guard_last_pc(void)
{
	return guard.last_pc;
}
