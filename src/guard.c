#include "guard.h"

#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"

enum {
	ALTERNATE_STACK_BYTES = 64 << 10,
	MAX_SAFE = 8,
	RETRY_NS = 1000000, // once the time is up, until the work is where it can be left
	FOR_CPU_TIME = 1,   // what a timer is for
	FOR_WAITING,
};

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

// File-wide because the signal handlers need it.
static struct {
	bool ready;
	volatile sig_atomic_t active;
	sigjmp_buf way_out;
	volatile uintptr_t last_pc;
	struct rlimit memory;             // as it was
	struct code_range safe[MAX_SAFE]; // the code of libdw and its helpers
	size_t n_safe;
	timer_t cpu_timer, wait_timer;
	bool has_timers, memory_is_limited;
} guard;

static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction others[array_size(fault_signals)]; // handlers, while work is guarded

#if defined(__x86_64__)

static uintptr_t pc_of(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

// Does the signal end a system call that waits? Then the instruction before the pc is "syscall",
// and the call will return EINTR. (Those of malloc(3) never do.)
static bool is_waiting(const void *context)
{
	const ucontext_t *machine = context;

	return machine->uc_mcontext.gregs[REG_RAX] == -EINTR &&
	       memcmp((const void *)(pc_of(context) - 2), "\x0f\x05", 2) == 0;
}

#else

static uintptr_t pc_of(const void *context)
{
	(void)context;
	return 0;
}

static bool is_waiting(const void *context)
{
	(void)context;
	return false;
}

#endif

static bool is_safe(uintptr_t pc)
{
	for (size_t i = 0; i < guard.n_safe; i++)
		if (pc >= guard.safe[i].start && pc < guard.safe[i].end)
			return true;
	return false;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)info;
	guard.last_pc = pc_of(context);
	siglongjmp(guard.way_out, number == SIGBUS ? GUARD_TRUNCATED : GUARD_FAULT);
}

static void on_time(int number, siginfo_t *info, void *context)
{
	(void)number;
	// In the midst of malloc(3), or of changes of our own, the work cannot be left: the timer
	// will come again soon.
	const bool can_leave = info->si_value.sival_int == FOR_CPU_TIME ? is_safe(pc_of(context))
	                                                                : is_waiting(context);
	if (!guard.active || !can_leave)
		return;
	guard.last_pc = pc_of(context);
	siglongjmp(guard.way_out, GUARD_TIME);
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

// Handlers run on a stack of their own: endless recursion is among the faults.
static void set_alternate_stack(void)
{
	static char bytes[ALTERNATE_STACK_BYTES];
	stack_t old;

	if (sigaltstack(NULL, &old) == 0 && old.ss_flags & SS_DISABLE)
		sigaltstack(&(stack_t){.ss_sp = bytes, .ss_size = sizeof(bytes)}, NULL);
}

static void catch_faults(void)
{
	const struct sigaction action = {
	    .sa_sigaction = on_fault,
	    .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	for (size_t i = 0; i < array_size(fault_signals); i++)
		sigaction(fault_signals[i], &action, &others[i]);
}

static void restore_faults(void)
{
	for (size_t i = 0; i < array_size(fault_signals); i++)
		sigaction(fault_signals[i], &others[i], NULL);
}

static bool create_timer(clockid_t clock, int purpose, timer_t *ret)
{
	struct sigevent event = {
	    .sigev_notify = SIGEV_SIGNAL,
	    .sigev_signo = SIGPROF,
	    .sigev_value.sival_int = purpose,
	};

	return timer_create(clock, &event, ret) == 0;
}

static void create_timers(void)
{
	// Without SA_RESTART: system calls that wait must end.
	const struct sigaction action = {
	    .sa_sigaction = on_time,
	    .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};
	sigset_t set;

	sigaction(SIGPROF, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	guard.has_timers = create_timer(CLOCK_PROCESS_CPUTIME_ID, FOR_CPU_TIME, &guard.cpu_timer) &&
	                   create_timer(CLOCK_MONOTONIC, FOR_WAITING, &guard.wait_timer);
}

static void set_up(void)
{
	guard.ready = true;
	dl_iterate_phdr(note_object, NULL);
	set_alternate_stack();
	create_timers();
}

// 0: disarms.
static void arm(timer_t timer, int64_t ns)
{
	struct itimerspec when = {.it_value = clock_timespec(ns)};

	if (ns > 0)
		when.it_interval = clock_timespec(RETRY_NS);
	if (guard.has_timers)
		timer_settime(timer, 0, &when, NULL);
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

static void begin(int64_t cpu_ns)
{
	if (!guard.ready)
		set_up();
	catch_faults();
	arm(guard.cpu_timer, cpu_ns);
	arm(guard.wait_timer, GUARD_WAIT_NS);
}

static void finish(void)
{
	guard.active = 0;
	restore_faults();
	arm(guard.cpu_timer, 0);
	arm(guard.wait_timer, 0);
	if (guard.memory_is_limited)
		setrlimit(RLIMIT_AS, &guard.memory);
	guard.memory_is_limited = false;
}

enum guard_end guard_run(guard_work *work, void *context, int64_t cpu_ns)
{
	if (guard.active) {
		work(context);
		return GUARD_DONE;
	}
	begin(cpu_ns);
	const int result = sigsetjmp(guard.way_out, 1);
	if (result == GUARD_DONE) {
		guard.active = 1;
		work(context);
	}
	finish();
	return result;
}

void guard_limit_memory(uint64_t bytes)
{
	if (!LIMITS_MEMORY || !guard.active)
		return;
	if (!guard.memory_is_limited && getrlimit(RLIMIT_AS, &guard.memory) != 0)
		return;
	guard.memory_is_limited = true;
	struct rlimit limit = guard.memory;
	const uint64_t used = address_space_bytes();
	if (used && bytes < limit.rlim_cur && used < limit.rlim_cur - bytes)
		limit.rlim_cur = used + bytes;
	setrlimit(RLIMIT_AS, &limit);
}

void guard_leave(enum guard_end end)
{
	if (guard.active)
		siglongjmp(guard.way_out, end);
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
