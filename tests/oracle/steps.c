// SPDX-License-Identifier: MIT
// steps [dlopen]: a short run through every way of calling, to be single-stepped by oracle_step.
// Traps (int3) where the oracle is to begin; SIGUSR1 may be sent to it at any instruction after
// that.
#include <alloca.h>
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define KEEP() __asm__ volatile("" ::: "memory")

static volatile int sink;
static jmp_buf back;

NOINLINE static int leaf(int x)
{
	sink += x;
	return sink * 3;
}

// A sibling call, where optimization allows it.
NOINLINE static int tail_calls(int x)
{
	if (x > 10)
		return leaf(x - 1);
	return leaf(x + 1);
}

NOINLINE static int recurse(int n)
{
	int result = n ? recurse(n - 1) : tail_calls(3);

	KEEP();
	return result + leaf(n);
}

// Varargs save the vector registers.
NOINLINE static double sum(int n, ...)
{
	double total = 0;
	va_list args;

	va_start(args, n);
	while (n--)
		total += va_arg(args, double);
	va_end(args);
	return total;
}

// All preserved registers, and arguments on the stack.
NOINLINE static long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	long x = leaf((int)a), y = leaf((int)b), z = leaf((int)c), u = leaf((int)d);
	long v = leaf((int)e), w = leaf((int)f);

	return x * a + y * b + z * c + u * d + v * e + w * f + leaf((int)g) * h;
}

NOINLINE static int dynamic(size_t n)
{
	char *space = alloca(n);

	memset(space, (int)n, n);
	KEEP();
	return leaf(space[n / 2]) + leaf(space[0]);
}

// A realigned stack. Not with alloca or arguments on the stack: for a frame that needs a register
// for its CFA (r10), GCC's rules for the last two instructions lead to the caller's saved rbp.
NOINLINE static int realigned(int n)
{
	_Alignas(64) char space[128];

	memset(space, n, sizeof(space));
	KEEP();
	return leaf(space[n % 128]) + leaf(space[5]);
}

NOINLINE static int big_frame(int n)
{
	char space[70000];

	memset(space, n, 300);
	KEEP();
	return leaf(space[7]) + leaf(space[299]);
}

// Returns early before its registers are saved.
NOINLINE static int shrink_wrapped(int n)
{
	if (n < 0)
		return 0;
	return (int)many(n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7);
}

NOINLINE static int jump_table(int n)
{
	switch (n) {
	case 0:
		return leaf(1);
	case 1:
		return tail_calls(2);
	case 2:
		return recurse(2);
	case 3:
		return dynamic(100);
	case 4:
		return realigned(9);
	case 5:
		return shrink_wrapped(-1);
	case 6:
		return shrink_wrapped(1);
	default:
		return big_frame(n);
	}
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int chosen(int x)
{
	return leaf(x + 7);
}

static int (*choose(void))(int)
{
	return chosen;
}

int by_ifunc(int x) __attribute__((ifunc("choose")));

__attribute__((noreturn)) NOINLINE static void leave(int value)
{
	leaf(value);
	longjmp(back, value);
}

// The call of a function that does not return is the last instruction: its return address lies in
// the next function.
__attribute__((noreturn)) NOINLINE static void noreturn_tail(int value)
{
	leaf(value);
	leave(value);
}

NOINLINE static void jumps(void)
{
	if (!setjmp(back))
		noreturn_tail(1);
	if (!sigsetjmp(back, 1))
		noreturn_tail(2);
}

static void handler(int number)
{
	leaf(number);
	KEEP();
}

static void on_other_stack(int number)
{
	char text[40];

	snprintf(text, sizeof(text), "%d", number);
	leaf(text[0]);
	recurse(3);
}

void faults_at_once(void);
__asm__(".text\n.type faults_at_once, @function\n"
        "faults_at_once:\n.cfi_startproc\nud2\nret\n.cfi_endproc\n"
        ".size faults_at_once, . - faults_at_once\n");

static void skip_fault(int number, siginfo_t *info, void *context)
{
	ucontext_t *state = context;

	(void)number, (void)info;
	leaf(5);
	state->uc_mcontext.gregs[REG_RIP] += 2;
}

static void set_handlers(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	stack_t stack = {
	    .ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	    .ss_size = 65536};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	action.sa_handler = on_other_stack;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	action.sa_sigaction = skip_fault;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGILL, &action, NULL);
}

NOINLINE static void use_signals(void)
{
	raise(SIGUSR1);
	raise(SIGUSR2);
	faults_at_once();
	KEEP();
}

// Functions of the C library: lazily bound, chosen by the processor, written in assembly.
NOINLINE static void use_libc(void)
{
	char text[200], *end;
	int values[20];

	for (int i = 0; i < 20; i++)
		values[i] = i * 37 % 20;
	qsort(values, 20, sizeof(values[0]), compare);
	snprintf(text, sizeof(text), "%s %d %.3f %p %-8x", "text", values[3], sum(3, 1.5, 2.5, 3.5),
	         (void *)text, 77u);
	sink += (int)strtod("3.25e2", &end) + (int)strlen(text) + (int)strtol("-42", NULL, 10);
	sink += strchr(text, '.') != NULL;
	memmove(text + 1, text, 100);
	sink += memcmp(text, text + 1, 50) + (int)pow(sink, 0.5);
	free(realloc(malloc(100), 70000));
	sink += (int)time(NULL) + (getenv("HOME") != NULL);
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	sink += (int)now.tv_nsec;
}

extern char **environ;

NOINLINE static void use_children(void)
{
	char *const argv[] = {(char *)"true", NULL};
	pid_t pid = vfork();
	int status;

	if (pid == 0)
		_exit(0);
	waitpid(pid, &status, 0);
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0)
		waitpid(pid, &status, 0);
}

static void at_end(void)
{
	leaf(99);
}

int main(int argc, char **argv)
{
	set_handlers();
	atexit(at_end);
	__asm__ volatile("int3");
	for (int i = 0; i < 8; i++)
		leaf(jump_table(i));
	sink += by_ifunc(3);
	jumps();
	use_signals();
	use_libc();
	use_children();
	if (argc > 1 && !strcmp(argv[1], "dlopen")) {
		void *library = dlopen("libz.so.1", RTLD_LAZY);
		sink += library && dlsym(library, "zlibVersion") && !dlsym(library, "none");
	}
	return 0;
}
