// SPDX-License-Identifier: MIT
// oracle_step [-w] [-s] [-l] [-g] PROGRAM [ARG...]: single-steps the program, keeps a shadow call
// stack of its own by watching calls and returns, unwinds a snapshot at every instruction, and
// compares all return addresses. Then the same with nothing but SP and PC, as of a sleeping thread:
// what that shows must be right, too, as far as it goes. -w: from the very first instruction (the
// dynamic linker's) on, else from the program's first int3. -s: sends it SIGUSR1 every now and
// then.
//
// A function that is about to leave for an exception's handler may have that handler's frame for
// its caller: there, or where the jump that follows then leads. What one that leaves by changing SP
// (longjmp) gets wrong of itself is counted apart: its rules describe the place that it goes to.
// -l: the program has such functions. -g: steps that are guessed, by the frame pointer, are judged
// as all others; a stack that is marked as cut may be wrong, and is counted apart.
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
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "rule.h"
#include "rule_cache.h"
#include "snapshot.h"
#include "syscall_registers.h"
#include "unwind.h"

enum {
	MAX_STEPS = 3000000,
	MIN_COMPARED = 5000,
	MAX_DEPTH = 512,
	MAX_SHOWN = 12,
	MAX_PENDING = 4096,
	MAX_LANDINGS = 8,
	SIGNAL_EVERY = 211, // instructions; a prime
	KIND_CACHE = 1 << 14,
};

// A frame that somebody will return to.
struct shadow_entry {
	uint64_t pc;
	uint64_t slot;  // where the return address stands on the stack
	uint64_t pc_at; // of an interrupted frame: where its pc stands, for handlers to change
};

enum instruction { PLAIN, CALL, RETURN, SYSTEM_CALL };

// A stack that came out wrong.
struct fault {
	uint64_t pc;        // of the leaf
	uint64_t blamed_pc; // of the frame that is to blame
	size_t depth;       // of the shadow stack, for the frame that is to blame
	const char *why;
};

struct oracle {
	pid_t pid;
	struct modules modules;
	struct profile profile;
	struct rule_cache rules;
	struct address_space space;
	struct unwinder unwinder;
	struct snapshot_buffer buffer;
	struct snapshot snapshot;
	struct unwound unwound;

	struct shadow_entry shadow[MAX_DEPTH]; // the leaf's caller last
	size_t depth;
	struct {
		uint64_t pc;
		enum instruction kind;
	} kinds[KIND_CACHE];

	uint64_t n_steps, n_compared, n_frames, n_signals;
	uint64_t n_blind, n_blind_whole;   // by SP and PC alone; those that came to the root
	uint64_t n_wrong, n_leaving;       // n_leaving: in functions that left by changing SP
	uint64_t n_landing;                // that led to an exception's handler
	struct fault pending[MAX_PENDING]; // pcs that were wrong in the function that runs
	size_t n_pending;
	struct fault landings[MAX_LANDINGS]; // the jump that comes tells whether they are wrong
	uint64_t landing_pcs[MAX_LANDINGS];  // to which it must lead
	size_t n_landings;
	bool leaving; // SP was changed; until the jump
	size_t leaving_depth;
	bool judges_guesses;    // -g
	uint64_t n_marked;      // with -g: they say that they are cut
	uint64_t n_without_cfi; // in code that has none, such as GCC's crtstuff.c
};

static void die(const char *what)
{
	perror(what);
	exit(99);
}

static bool read_target(const struct oracle *o, uint64_t address, void *bytes, size_t size)
{
	struct iovec local = {bytes, size}, remote = {(void *)(uintptr_t)address, size};

	return process_vm_readv(o->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static uint64_t word_at(const struct oracle *o, uint64_t address)
{
	uint64_t word = 0;

	read_target(o, address, &word, sizeof(word));
	return word;
}

// A retpoline's call (x86_thunk.h) leads on to the same function: lea 8(%rsp), %rsp takes its
// return address off again, and mov %REGISTER, (%rsp) puts the next jump's in its place.
static bool is_thunk_call(const uint8_t *code)
{
	static const uint8_t loop[] = {0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9};

	return code[0] == 0xe8 && memcmp(code + 5, loop, sizeof(loop)) == 0;
}

// Prefixes, then E8 (call), FF /2 (call through register or memory), C3 and C2 (ret), 0F 05.
static enum instruction decode(const uint8_t *code)
{
	static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64,
	                                   0x65, 0x66, 0x67, 0xf2, 0xf3};

	while (memchr(prefixes, *code, sizeof(prefixes)) || (*code & 0xf0) == 0x40)
		code++;
	if (is_thunk_call(code))
		return PLAIN;
	if (code[0] == 0xe8 || (code[0] == 0xff && (code[1] >> 3 & 7) == 2))
		return CALL;
	if (code[0] == 0xc3 || code[0] == 0xc2)
		return RETURN;
	return code[0] == 0x0f && code[1] == 0x05 ? SYSTEM_CALL : PLAIN;
}

static enum instruction kind_of(struct oracle *o, uint64_t pc)
{
	const size_t at = (pc ^ pc >> 14) % KIND_CACHE;
	uint8_t code[17] = {0};

	if (o->kinds[at].pc != pc) {
		struct iovec local = {code, 16}, remote = {(void *)(uintptr_t)pc, 16};
		if (process_vm_readv(o->pid, &local, 1, &remote, 1, 0) <= 0)
			return PLAIN;
		o->kinds[at].pc = pc;
		o->kinds[at].kind = decode(code);
	}
	return o->kinds[at].kind;
}

static void push(struct oracle *o, uint64_t pc, uint64_t slot, uint64_t pc_at)
{
	if (o->depth == MAX_DEPTH) {
		fputs("the shadow stack is full\n", stderr);
		exit(99);
	}
	o->shadow[o->depth++] = (struct shadow_entry){pc, slot, pc_at};
}

static void count_fault(struct oracle *o, const struct fault *fault, bool left_by_sp)
{
	if (left_by_sp) {
		o->n_leaving++;
		return;
	}
	if (o->n_wrong++ >= MAX_SHOWN)
		return;
	const struct code_address at = address_space_resolve(&o->space, fault->pc);
	const struct code_address to_blame = address_space_resolve(&o->space, fault->blamed_pc);
	printf("# wrong at %s+%#" PRIx64 ": %s, by the rule for %s+%#" PRIx64 "\n",
	       module_name(at.module), at.address, fault->why, module_name(to_blame.module),
	       to_blame.address);
}

// The function that runs at that depth, and those above it, were left, or call others: what was
// wrong in them counts; apart, where they were left by a change of SP.
static void settle(struct oracle *o, size_t depth, bool left_by_sp)
{
	size_t kept = 0;

	for (size_t i = 0; i < o->n_pending; i++) {
		if (o->pending[i].depth < depth)
			o->pending[kept++] = o->pending[i];
		else
			count_fault(o, &o->pending[i], left_by_sp);
	}
	o->n_pending = kept;
}

// The function that runs has left for a handler.
static void settle_landings(struct oracle *o, uint64_t pc)
{
	for (size_t i = 0; i < o->n_landings; i++)
		if (o->landing_pcs[i] == pc)
			o->n_landing++;
		else
			count_fault(o, &o->landings[i], false);
	o->n_landings = 0;
}

// Brings the shadow stack from the state before an instruction to the one after it.
static void follow(struct oracle *o, const struct user_regs_struct *old,
                   const struct user_regs_struct *now, enum instruction kind)
{
	if (kind == CALL && now->rsp == old->rsp - 8) {
		settle(o, o->depth, false);
		push(o, word_at(o, now->rsp), now->rsp, 0);
		return;
	}
	const bool sigreturn = kind == SYSTEM_CALL && old->rax == SYS_rt_sigreturn;
	bool popped = false, by_sp = false;
	while (o->depth > 0) {
		const struct shadow_entry *top = &o->shadow[o->depth - 1];
		const bool above = now->rsp > top->slot + 8;
		const bool returned =
		    now->rsp == top->slot + 8 && (now->rip == top->pc || (sigreturn && !popped));
		if (!above && !returned && !(by_sp && now->rsp == top->slot + 8))
			break;
		popped = true;
		by_sp |= above && kind != RETURN && kind != SYSTEM_CALL;
		o->depth--;
	}
	if (popped)
		settle(o, o->depth + 1, by_sp);
	if (by_sp) {
		o->leaving = true;
		o->leaving_depth = o->depth;
	} else if (o->leaving && o->depth <= o->leaving_depth && now->rip - old->rip > 15 &&
	           !sigreturn) {
		// The jump to the landing; _Unwind_RaiseException popped its address first.
		o->leaving = false;
		settle_landings(o, now->rip);
		if (o->depth > 0 && now->rsp == o->shadow[o->depth - 1].slot + 8)
			settle(o, o->depth--, true);
	}
}

// The frame whose rule was wrong, counted from the leaf; -1: none.
static int find_fault(const struct oracle *o, const char **ret_why)
{
	const size_t n = o->unwound.n;

	*ret_why = "another return address";
	for (size_t i = 1; i < n && i <= o->depth; i++) {
		const struct shadow_entry *entry = &o->shadow[o->depth - i];
		const uint64_t pc = entry->pc_at ? word_at(o, entry->pc_at) : entry->pc;
		if (o->unwinder.pcs[i] != pc)
			return (int)i - 1;
	}
	if (n > o->depth + 1) {
		*ret_why = "frames beyond the root";
		return (int)o->depth;
	}
	*ret_why =
	    o->unwound.end == STACK_COMPLETE ? "a root too early" : stack_end_name(o->unwound.end);
	if (n == o->depth + 1 && o->unwound.end == STACK_COMPLETE)
		return -1;
	return (int)n - 1;
}

// Has its return address been overwritten? _Unwind_RaiseException does that to itself, when it is
// about to leave for the landing (uw_install_context).
static bool was_redirected(const struct oracle *o, size_t depth)
{
	return depth > 0 && !o->shadow[depth - 1].pc_at &&
	       word_at(o, o->shadow[depth - 1].slot) != o->shadow[depth - 1].pc;
}

static bool raises(const struct oracle *o, size_t frame)
{
	const struct rule *rule = o->rules.rules[o->unwound.locations[frame]];

	return rule->raises || rule->signal_frame;
}

// Do the frames above that one begin with one of the shadow stack's, there or where it is about to
// go on, and are the others that one's callers, to the root?
static bool leads_to_handler(const struct oracle *o, size_t frame)
{
	const size_t n = o->unwound.n, n_above = n - frame - 1;
	const uint64_t *pcs = o->unwinder.pcs;

	if (n_above == 0 || n_above > o->depth - frame || o->unwound.end != STACK_COMPLETE)
		return false;
	for (size_t i = 0; i + 1 < n_above; i++)
		if (pcs[n - 1 - i] != o->shadow[i].pc)
			return false;
	const struct shadow_entry *handler = &o->shadow[n_above - 1];
	return pcs[frame + 1] == handler->pc || pcs[frame + 1] == word_at(o, handler->slot);
}

// Is the frame above that one in no shadow stack, as a handler's is behind a call with arguments on
// the stack, and are the others that one's callers, to the root?
static bool leads_to_landing(const struct oracle *o, size_t frame)
{
	const size_t n = o->unwound.n;

	if (n < frame + 2 || n - frame - 2 > o->depth || o->unwound.end != STACK_COMPLETE)
		return false;
	for (size_t i = 0; i < n - frame - 2; i++)
		if (o->unwinder.pcs[n - 1 - i] != o->shadow[i].pc)
			return false;
	return true;
}

static void note_wrong(struct oracle *o, uint64_t pc, size_t frame, const char *why)
{
	const size_t depth = o->depth - frame;
	const uint32_t location = o->unwound.locations[frame];

	if (o->judges_guesses && o->unwound.end != STACK_COMPLETE) {
		o->n_marked++;
		return;
	}
	if (o->rules.rules[location]->kind == RULE_FRAME_POINTER && !o->judges_guesses) {
		o->n_without_cfi++;
		return;
	}
	const bool redirected = was_redirected(o, depth);
	if ((redirected || raises(o, frame)) && leads_to_handler(o, frame)) {
		o->n_landing++;
		return;
	}
	const bool leaves = (o->leaving && depth == o->leaving_depth) || redirected;
	const struct fault fault = {pc, o->unwinder.pcs[frame], depth, why};
	if (leaves && raises(o, frame) && o->n_landings < MAX_LANDINGS &&
	    leads_to_landing(o, frame)) {
		o->landing_pcs[o->n_landings] = o->unwinder.pcs[frame + 1];
		o->landings[o->n_landings++] = fault;
		return;
	}
	if (leaves) {
		o->n_leaving++;
		return;
	}
	if (o->n_pending == MAX_PENDING)
		settle(o, 0, false);
	o->pending[o->n_pending++] = fault;
}

static bool unwind(struct oracle *o, const struct user_regs_struct *user)
{
	const struct snapshot_hint hint = {0};
	struct registers registers;

	thread_registers_read(&(struct thread_registers){*user}, &registers);
	snapshot_buffer_reset(&o->buffer);
	if (!snapshot_capture(o->pid, ARCH_NATIVE, &registers, &o->space.maps, &hint, &o->buffer,
	                      &o->snapshot))
		return false;
	unwinder_unwind(&o->unwinder, &o->snapshot, &o->unwound);
	return true;
}

// With the registers that are known of a sleeping thread.
static void compare_blind(struct oracle *o, const struct user_regs_struct *user)
{
	const char *why;

	o->snapshot.registers.known = 1u << ARCH_NATIVE->pc | 1u << ARCH_NATIVE->sp;
	unwinder_unwind(&o->unwinder, &o->snapshot, &o->unwound);
	o->n_blind++;
	o->n_blind_whole += o->unwound.end == STACK_COMPLETE;
	const int frame = find_fault(o, &why);
	// It may end for want of a register, with nothing wrong until then.
	if (frame >= 0 && !(o->unwound.end == STACK_NEEDS_REGISTER &&
	                    (size_t)frame + 1 == o->unwound.n && o->unwound.n <= o->depth + 1))
		note_wrong(o, user->rip, frame, why);
}

static void compare(struct oracle *o, const struct user_regs_struct *user)
{
	const char *why;

	if (!unwind(o, user)) {
		fputs("no snapshot\n", stderr);
		exit(99);
	}
	o->n_compared++;
	o->n_frames += o->unwound.n;
	const int frame = find_fault(o, &why);
	if (frame >= 0)
		note_wrong(o, user->rip, frame, why);
	else
		compare_blind(o, user);
}

static void get_registers(const struct oracle *o, struct user_regs_struct *ret)
{
	if (ptrace(PTRACE_GETREGS, o->pid, NULL, ret) != 0)
		die("PTRACE_GETREGS");
}

// Waits for the next stop; its signal, or 0 when the program has ended.
static int wait_for_stop(const struct oracle *o)
{
	int status;

	if (waitpid(o->pid, &status, 0) != o->pid)
		die("waitpid");
	if (WIFSTOPPED(status))
		return WSTOPSIG(status);
	if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "the program ended with status %#x\n", status);
		exit(99);
	}
	return 0;
}

// Has the signal led into a handler? Then struct rt_sigframe lies at SP: the trampoline's address,
// and struct ucontext with the interrupted registers (rsp and rip the last of 17 words at 40).
static bool entered_handler(struct oracle *o, const struct user_regs_struct *old,
                            const struct user_regs_struct *now)
{
	enum { RSP_AT = 8 + 40 + 15 * 8, RIP_AT = RSP_AT + 8 };

	if (now->rip == old->rip || word_at(o, now->rsp + RIP_AT) != old->rip ||
	    word_at(o, now->rsp + RSP_AT) != old->rsp)
		return false;
	push(o, old->rip, old->rsp - 8, now->rsp + RIP_AT);
	push(o, word_at(o, now->rsp), now->rsp, 0);
	o->n_signals++;
	return true;
}

static bool changes_maps(uint64_t number)
{
	return number == SYS_mmap || number == SYS_munmap || number == SYS_mprotect ||
	       number == SYS_mremap;
}

static void reread_maps(struct oracle *o)
{
	address_space_update(&o->space, o->pid, clock_now_ns(), true);
	memset(o->kinds, 0, sizeof(o->kinds));
}

static void step_through(struct oracle *o, bool sends_signals)
{
	struct user_regs_struct old, now;
	int signal = 0;

	get_registers(o, &old);
	for (; o->n_steps < MAX_STEPS; o->n_steps++) {
		compare(o, &old);
		const enum instruction kind = kind_of(o, old.rip);
		if (!signal && sends_signals && o->n_steps % SIGNAL_EVERY == SIGNAL_EVERY - 1)
			signal = SIGUSR1;
		if (ptrace(PTRACE_SINGLESTEP, o->pid, NULL, signal) != 0)
			die("PTRACE_SINGLESTEP");
		const int stop = wait_for_stop(o);
		if (!stop)
			return;
		get_registers(o, &now);
		if (!signal || !entered_handler(o, &old, &now))
			follow(o, &old, &now, kind);
		if (kind == SYSTEM_CALL && changes_maps(old.rax))
			reread_maps(o);
		signal = stop == SIGTRAP ? 0 : stop;
		old = now;
	}
	fputs("too many steps\n", stderr);
	exit(99);
}

// The program has run up to here unwatched: its callers are those that the unwinder finds.
static void begin_in_the_middle(struct oracle *o)
{
	struct user_regs_struct user;

	get_registers(o, &user);
	if (!unwind(o, &user) || o->unwound.end != STACK_COMPLETE) {
		fputs("no stack to begin with\n", stderr);
		exit(99);
	}
	uint64_t slots[MAX_DEPTH], slot = user.rsp;
	for (size_t i = 1; i < o->unwound.n; i++) {
		while (word_at(o, slot) != o->unwinder.pcs[i])
			slot += 8;
		slots[i] = slot;
	}
	for (size_t i = o->unwound.n - 1; i > 0; i--)
		push(o, o->unwinder.pcs[i], slots[i], 0);
}

static pid_t start(char **argv)
{
	const pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid > 0)
		return pid;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(77);
	unsetenv("LD_BIND_NOW");
	execv(argv[0], argv);
	_exit(98);
}

static int report(const struct oracle *o, bool has_leaving)
{
	const uint64_t n_leaving = o->n_leaving + o->n_landings; // no jump came

	printf("%" PRIu64 " instructions compared, %" PRIu64 " frames, %" PRIu64
	       " signals: %" PRIu64 " wrong; %" PRIu64 " in functions that leave by changing SP, "
	       "%" PRIu64 " that led to a handler, %" PRIu64 " in code without CFI, %" PRIu64
	       " marked; %" PRIu64 " of %" PRIu64 " whole by SP and PC alone\n",
	       o->n_compared, o->n_frames, o->n_signals, o->n_wrong, n_leaving, o->n_landing,
	       o->n_without_cfi, o->n_marked, o->n_blind_whole, o->n_blind);
	// What is counted apart is little, and what was compared is not.
	return o->n_wrong != 0 || o->n_compared < MIN_COMPARED ||
	       (n_leaving != 0 && !has_leaving) || o->n_landing * 20 > o->n_compared ||
	       n_leaving * 50 > o->n_compared || o->n_without_cfi * 200 > o->n_compared ||
	       o->n_marked * 10 > o->n_compared;
}

int main(int argc, char **argv)
{
	bool whole = false, sends_signals = false, leaves = false, judges_guesses = false;
	int option, status;

	while ((option = getopt(argc, argv, "+wslg")) != -1) {
		whole |= option == 'w';
		sends_signals |= option == 's';
		leaves |= option == 'l';
		judges_guesses |= option == 'g';
	}
	if (optind >= argc)
		return 2;
	struct oracle *o = memory_alloc_zeroed(1, sizeof(*o));
	o->judges_guesses = judges_guesses;
	o->pid = start(argv + optind);
	if (waitpid(o->pid, &status, 0) != o->pid || !WIFSTOPPED(status)) {
		fputs("ptrace is not permitted here, or there is no such program\n", stderr);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
	}
	ptrace(PTRACE_SETOPTIONS, o->pid, NULL, PTRACE_O_EXITKILL);
	if (!whole) {
		ptrace(PTRACE_CONT, o->pid, NULL, NULL);
		if (wait_for_stop(o) != SIGTRAP)
			return 99;
	}
	address_space_init(&o->space, &o->modules, o->pid);
	unwinder_init(&o->unwinder, &o->space, &o->profile, &o->rules, MAX_DEPTH);
	o->unwinder.pcs = memory_alloc(o->unwinder.max_frames * sizeof(uint64_t));
	if (!snapshot_buffer_init(&o->buffer))
		return 99;
	reread_maps(o);
	if (!whole)
		begin_in_the_middle(o);
	step_through(o, sends_signals);
	settle(o, 0, false);
	const int result = report(o, leaves);
	snapshot_buffer_deinit(&o->buffer);
	unwinder_deinit(&o->unwinder);
	address_space_deinit(&o->space);
	rule_cache_deinit(&o->rules);
	profile_deinit(&o->profile);
	modules_deinit(&o->modules);
	free(o);
	return result;
}
