// SPDX-License-Identifier: MIT
// oracle_go PROGRAM NAME STEPS: single-steps the thread of one goroutine of golang_stacks.go, keeps
// a shadow call stack of its own by watching calls and returns, unwinds a snapshot at every
// instruction, and compares all return addresses.
//
// Who called is the same on whichever of a thread's stacks the call was made: nothing is known here
// of how the runtime changes them. But where it puts a goroutine aside (mcall, gogo, or morestack,
// if it does not go back), and where a signal comes, another stack begins: it must be whole.
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "address_space.h"
#include "arch.h"
#include "clock.h"
#include "gopclntab.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "rule_cache.h"
#include "snapshot.h"
#include "syscall_registers.h"
#include "unwind.h"

enum { MAX_DEPTH = 512, MAX_SHOWN = 12, MAX_SECONDS = 100 };

struct oracle {
	pid_t pid, tid;
	struct modules modules;
	struct profile profile;
	struct rule_cache rules;
	struct address_space space;
	struct unwinder unwinder;
	struct snapshot_buffer buffer;
	struct snapshot snapshot;
	struct snapshot_hint hint;
	struct unwound unwound;

	uint64_t shadow[MAX_DEPTH]; // return addresses, the leaf's last
	size_t depth;
	uint64_t n_compared, n_frames, n_others, n_short, n_wrong, n_writing;
};

static void die(const char *what)
{
	perror(what);
	exit(99);
}

struct question {
	const struct code_address *code;
	char name[128];
};

static void ask_name(void *context)
{
	struct question *question = context;
	struct gopclntab *table = module_gopclntab(question->code->module);
	const char *name = table ? gopclntab_name(table, question->code->address) : NULL;

	snprintf(question->name, sizeof(question->name), "%s", name ? name : "?");
}

static struct question name_of(struct oracle *o, uint64_t pc)
{
	const struct code_address code = address_space_resolve(&o->space, pc);
	struct question question = {.code = &code, .name = "?"};

	module_guard(code.module, ask_name, &question, MODULE_FOR_NAMES);
	return question;
}

static bool is_in(struct oracle *o, uint64_t pc, const char *function)
{
	return strcmp(name_of(o, pc).name, function) == 0;
}

static void unwind(struct oracle *o, const struct user_regs_struct *user)
{
	struct registers registers;

	thread_registers_read(&(struct thread_registers){*user}, &registers);
	o->hint = (struct snapshot_hint){.tls = user->fs_base, .of_process = o->space.languages};
	snapshot_buffer_reset(&o->buffer);
	if (!snapshot_capture(o->tid, ARCH_NATIVE, &registers, &o->space.maps, &o->hint, &o->buffer,
	                      &o->snapshot))
		die("no snapshot");
	unwinder_unwind(&o->unwinder, &o->snapshot, &o->unwound);
}

static void take_over(struct oracle *o)
{
	o->depth = 0;
	for (size_t i = o->unwound.n - 1; i > 0; i--)
		o->shadow[o->depth++] = o->unwinder.pcs[i];
}

// How many return addresses, from the leaf's on, are as in the shadow.
static size_t count_same(const struct oracle *o)
{
	size_t n = 0;

	while (n < o->depth && n + 1 < o->unwound.n &&
	       o->unwinder.pcs[n + 1] == o->shadow[o->depth - 1 - n])
		n++;
	return n;
}

// May another stack begin at that instruction?
static bool may_change(struct oracle *o, uint64_t old_pc, uint64_t pc)
{
	const char *const names[] = {"runtime.mcall", "runtime.gogo", "gogo"};
	const char *const changes_interrupted = "runtime.doSigPreempt";
	const size_t last = o->unwound.n - 1;

	for (size_t i = 0; i < array_size(names); i++)
		if (is_in(o, old_pc, names[i]) || is_in(o, pc, names[i]))
			return true;
	if (is_in(o, old_pc, changes_interrupted))
		return true;
	// A goroutine that was preempted as it entered a function.
	return last > 0 && count_same(o) == last &&
	       is_in(o, o->unwinder.pcs[last] - 1, "runtime.morestack");
}

static void show(struct oracle *o, uint64_t pc, const char *what)
{
	if (o->n_wrong + o->n_short > MAX_SHOWN)
		return;
	printf("# %s at %#" PRIx64 " in %s: %s\n", what, pc, name_of(o, pc).name,
	       stack_end_name(o->unwound.end));
	for (size_t i = 1; i < o->unwound.n || i <= o->depth; i++) {
		const uint64_t ours = i < o->unwound.n ? o->unwinder.pcs[i] : 0;
		const uint64_t theirs = i <= o->depth ? o->shadow[o->depth - i] : 0;
		printf("#   %#" PRIx64 " %s%s", ours, ours ? name_of(o, ours - 1).name : "",
		       ours == theirs ? "\n" : ", not ");
		if (ours != theirs)
			printf("%#" PRIx64 " %s\n", theirs,
			       theirs ? name_of(o, theirs - 1).name : "");
	}
}

static void compare(struct oracle *o, uint64_t old_pc, uint64_t pc, bool is_signal)
{
	const size_t same = count_same(o);
	const bool whole = o->unwound.end == STACK_COMPLETE;

	o->n_compared++;
	o->n_frames += o->unwound.n;
	if (whole && same == o->depth && o->unwound.n == o->depth + 1)
		return;
	if (is_in(o, pc, "runtime.doSigPreempt")) {
		o->n_writing++; // it changes what the signal has interrupted, in two steps
		return;
	}
	if (!whole && same == o->unwound.n - 1) {
		o->n_short++;
		show(o, pc, "short");
	} else if (whole && (is_signal || may_change(o, old_pc, pc))) {
		o->n_others++;
		take_over(o);
	} else {
		o->n_wrong++;
		show(o, pc, "wrong");
		take_over(o);
	}
}

enum instruction { PLAIN, CALL, RETURN, SYSTEM_CALL };

static enum instruction kind_of(struct oracle *o, uint64_t pc)
{
	uint8_t bytes[16] = {0};
	const uint8_t *code = bytes;

	if (address_space_read_code(&o->space, pc, bytes, sizeof(bytes)) == 0)
		die("no code");
	while ((*code & 0xf0) == 0x40 || *code == 0xf2 || *code == 0xf3 || *code == 0x3e)
		code++;
	if (code[0] == 0xe8 || (code[0] == 0xff && (code[1] >> 3 & 7) == 2))
		return CALL;
	if (code[0] == 0xc3)
		return RETURN;
	return code[0] == 0x0f && code[1] == 0x05 ? SYSTEM_CALL : PLAIN;
}

static void get_registers(const struct oracle *o, struct user_regs_struct *ret)
{
	if (ptrace(PTRACE_GETREGS, o->tid, NULL, ret) != 0)
		die("PTRACE_GETREGS");
}

static int wait_for_stop(const struct oracle *o)
{
	int status;

	if (waitpid(o->tid, &status, __WALL) != o->tid || !WIFSTOPPED(status))
		die("the thread is gone");
	return WSTOPSIG(status);
}

static void push(struct oracle *o, uint64_t pc)
{
	if (o->depth == MAX_DEPTH)
		die("the shadow stack is full");
	o->shadow[o->depth++] = pc;
}

static void follow(struct oracle *o, enum instruction kind, uint64_t return_address,
                   const struct user_regs_struct *old, const struct user_regs_struct *now)
{
	if (kind == CALL && now->rsp == old->rsp - 8)
		push(o, return_address);
	else if (kind == RETURN && o->depth > 0)
		o->depth--;
}

static uint64_t word_at(const struct oracle *o, uint64_t address)
{
	uint64_t word = 0;
	struct iovec local = {&word, sizeof(word)};
	struct iovec remote = {(void *)(uintptr_t)address, sizeof(word)};

	process_vm_readv(o->tid, &local, 1, &remote, 1, 0);
	return word;
}

static void step_through(struct oracle *o, uint64_t n_steps)
{
	struct user_regs_struct old, now;
	int signal = 0;

	get_registers(o, &old);
	for (uint64_t i = 0; i < n_steps; i++) {
		const enum instruction kind = kind_of(o, old.rip);
		const bool is_signal =
		    signal || (kind == SYSTEM_CALL && old.rax == SYS_rt_sigreturn);
		if (ptrace(PTRACE_SINGLESTEP, o->tid, NULL, signal) != 0)
			die("PTRACE_SINGLESTEP");
		const int stop = wait_for_stop(o);
		get_registers(o, &now);
		if (stop != SIGTRAP) { // before the instruction
			signal = stop;
			continue;
		}
		follow(o, kind, word_at(o, now.rsp), &old, &now);
		if (kind == SYSTEM_CALL && (old.rax == SYS_mmap || old.rax == SYS_munmap))
			address_space_update(&o->space, o->pid, clock_now_ns(), true);
		unwind(o, &now);
		compare(o, old.rip, now.rip, is_signal);
		signal = 0;
		old = now;
	}
}

// Starts the program; the thread of the goroutine of that name, which it prints.
static void start(struct oracle *o, const char *program, const char *name)
{
	const size_t length = strlen(name);
	char line[512];
	int ends[2];

	if (pipe(ends) != 0 || (o->pid = fork()) < 0)
		die("fork");
	if (o->pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		alarm(MAX_SECONDS);
		setenv("GOMAXPROCS", "8", 1);
		execl(program, program, NULL);
		_exit(98);
	}
	close(ends[1]);
	FILE *said = fdopen(ends[0], "r");
	while (said && fgets(line, sizeof(line), said) && strcmp(line, "ready\n") != 0)
		if (strncmp(line, name, length) == 0 && line[length] == ' ')
			o->tid = atoi(line + length + 1);
	if (o->tid == 0)
		die("no such goroutine");
}

static int report(const struct oracle *o)
{
	printf("%" PRIu64 " instructions compared, %" PRIu64 " frames, %" PRIu64
	       " times another stack: %" PRIu64 " wrong, %" PRIu64 " short; %" PRIu64
	       " while a frame was changed\n",
	       o->n_compared, o->n_frames, o->n_others, o->n_wrong, o->n_short, o->n_writing);
	return o->n_writing * 100 > o->n_compared || o->n_wrong != 0 ||
	       o->n_short * 1000 > o->n_compared;
}

int main(int argc, char **argv)
{
	struct user_regs_struct user;

	if (argc != 4)
		return 2;
	alarm(MAX_SECONDS);
	struct oracle *o = memory_alloc_zeroed(1, sizeof(*o));
	start(o, argv[1], argv[2]);
	if (ptrace(PTRACE_SEIZE, o->tid, NULL, PTRACE_O_EXITKILL) != 0) {
		kill(o->pid, SIGKILL);
		return 77;
	}
	ptrace(PTRACE_INTERRUPT, o->tid, NULL, NULL);
	wait_for_stop(o);
	address_space_init(&o->space, &o->modules, o->pid);
	address_space_update(&o->space, o->pid, clock_now_ns(), true);
	unwinder_init(&o->unwinder, &o->space, &o->profile, &o->rules, MAX_DEPTH);
	o->unwinder.pcs = memory_alloc(o->unwinder.max_frames * sizeof(uint64_t));
	if (!snapshot_buffer_init(&o->buffer))
		die("no memory");
	get_registers(o, &user);
	unwind(o, &user); // which shows that it is a program of Go
	unwind(o, &user);
	take_over(o);
	step_through(o, strtoull(argv[3], NULL, 10));
	const int result = report(o);
	kill(o->pid, SIGKILL);
	snapshot_buffer_deinit(&o->buffer);
	unwinder_deinit(&o->unwinder);
	address_space_deinit(&o->space);
	rule_cache_deinit(&o->rules);
	profile_deinit(&o->profile);
	modules_deinit(&o->modules);
	free(o);
	return result;
}
