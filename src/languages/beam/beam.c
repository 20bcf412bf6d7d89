// SPDX-License-Identifier: MIT
// beam: Erlang's virtual machine (BEAM). Finds the stack of the Erlang process for which a thread
// runs C code, and the way back from Erlang code to C (beam_code.h).
//
// The process is noted in the scheduler's data, which the thread's own data point to. Its place
// there is learned from a stack that has shown both the scheduler's registers and the process.
#include "languages.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>

#include "address_space.h"
#include "arch.h"
#include "beam_code.h"
#include "memory.h"
#include "resident.h"
#include "rule.h"
#include "rule_step.h"
#include "snapshot.h"
#include "symbol_table.h"
#include "unwind.h"

enum {
	// To find a value of pthread_setspecific in glibc's descriptor, or a thread's own variable.
	BELOW_TLS = 512,
	ABOVE_TLS = 2048,
	DATA_WORDS = 64, // of a scheduler's data; its registers are noted at their start
	                 // How much of an Erlang process's stack is copied, around where the
	                 // process noted it last.
	STACK_BYTES = 32 << 10,
	STACK_BYTES_BELOW = 2048,
};

// What a file with BEAM has.
struct beam_file {
	uint64_t exit;         // its variable beam_normal_exit
	uint64_t process_main; // the function, which calls the one made at run time
};

// What is kept of a process.
struct beam {
	struct address_space *space;
	struct module *module;
	uint64_t process_main;     // in the module
	struct beam_layout layout; // normal_exit is 0: not known
};

// What is kept of a thread.
struct beam_thread {
	uint64_t process_slot;     // where it keeps the address of its process
	int32_t process_sp_offset; // struct beam_layout's
};

// What a walk has shown of a thread that ran C code for an Erlang process, in its words.
struct beam_seen {
	uint64_t process;          // 0: nothing
	uint64_t registers;        // the scheduler's
	int32_t process_sp_offset; // struct beam_layout's
};

_Static_assert(sizeof(struct beam_seen) <= LANGUAGE_WORDS * sizeof(uint64_t), "in its words");

static void *beam_look_in_file(struct module *module)
{
	struct beam_file found;

	if (!symbol_table_find_named(module_dwfl(module), "beam_normal_exit", STT_OBJECT,
	                             &found.exit) ||
	    !symbol_table_find_named(module_dwfl(module), "process_main", STT_FUNC,
	                             &found.process_main))
		return NULL;
	struct beam_file *file = memory_alloc(sizeof(*file));
	*file = found;
	return file;
}

static size_t read_jit_code(void *space, uint64_t address, void *buffer, size_t size)
{
	return address_space_read_code(space, address, buffer, size);
}

static void *beam_claim(struct address_space *space, struct module *module, const void *found,
                        uint64_t bias)
{
	const struct arch_code code = {.read = read_jit_code, .context = space};
	const struct beam_file *file = found;
	struct beam *beam = memory_alloc_zeroed(1, sizeof(*beam));
	uint64_t normal_exit;

	beam->space = space;
	beam->module = module;
	beam->process_main = file->process_main;
	if (resident_read(NULL, space->tid, bias + file->exit, &normal_exit, sizeof(normal_exit)))
		beam_code_read(&code, normal_exit, &beam->layout);
	return beam;
}

// True for process_main, and for the place that a process's first function returns to: nothing else
// calls it.
static bool is_main(const struct beam_layout *layout, uint64_t address)
{
	return address - layout->main < layout->main_end - layout->main ||
	       address - layout->normal_exit < layout->normal_exit_end - layout->normal_exit;
}

// Makes the rule for the frame of process_main (RULE_LANGUAGE), or for Erlang code. Erlang's two
// registers keep what they hold in any of its code.
static bool beam_rule(const struct language_code *code, struct rule *ret)
{
	const struct beam *beam = code->process;

	if (!beam || !code->is_jit)
		return false;
	if (is_main(&beam->layout, code->address)) {
		*ret = (struct rule){
		    .kind = RULE_LANGUAGE,
		    .cfa_register = beam_code_registers,
		    .cfa_offset = beam->layout.sp_offset + (int64_t)beam->layout.frame_bytes,
		};
		return true;
	}
	struct arch_code erlang = *code->code;
	erlang.changes_stacks = true;
	erlang.is_tail_call = beam_code_is_tail_call;
	erlang.is_last_call = beam_code_is_header;
	if (!ARCH_NATIVE->code_rule(&erlang, code->address, code->is_call, ret))
		ARCH_NATIVE->frame_pointer_rule(ret);
	ret->kept = 1u << beam_code_registers | 1u << beam_code_process;
	return true;
}

static uint64_t frame_of(const struct beam_layout *layout, const struct registers *registers)
{
	return registers->value[beam_code_registers] + (uint64_t)(int64_t)layout->sp_offset;
}

// True if the stack pointer lies in process_main's frame, below which the C code runs that Erlang
// code calls: the walk must go back to Erlang's stack there, as above on the thread's are the
// scheduler's registers.
static bool is_in_frame(const struct beam_layout *layout, const struct registers *registers)
{
	const uint64_t sp = registers->value[ARCH_NATIVE->sp];

	return registers_know(registers, beam_code_registers) &&
	       sp - frame_of(layout, registers) < layout->frame_bytes;
}

// Notes what the registers show in C code that runs for an Erlang process, if they are known.
static void note(const struct beam_layout *layout, const struct registers *registers,
                 struct beam_seen *ret)
{
	if (!registers_know(registers, beam_code_registers) ||
	    !registers_know(registers, beam_code_process))
		return;
	*ret = (struct beam_seen){
	    .process = registers->value[beam_code_process],
	    .registers = frame_of(layout, registers),
	    .process_sp_offset = layout->process_sp_offset,
	};
}

// True if the return address follows a direct call of process_main.
static bool is_return_from_main(const struct beam *beam, uint64_t pc)
{
	const size_t call_bytes = ARCH_NATIVE->direct_call_bytes;
	const struct code_address code = address_space_resolve(beam->space, pc - 1);
	const uint64_t next = code.address + 1;
	uint8_t bytes[ARCH_MAX_DIRECT_CALL_BYTES];

	return code.module == beam->module &&
	       module_read_code(code.module, next - call_bytes, bytes, call_bytes) == call_bytes &&
	       ARCH_NATIVE->direct_call_target(bytes, next) == beam->process_main;
}

// Goes from process_main, whose frame is aligned, to its caller: the return address is in one of a
// few places.
static enum stack_end leave_main(const struct beam *beam, struct language_step *step)
{
	const struct arch *arch = ARCH_NATIVE;
	uint64_t frame, pc;

	if (!rule_cfa(step->rule, step->registers, step->snapshot, &frame))
		return STACK_NEEDS_REGISTER;
	for (uint64_t at = frame; at < frame + BEAM_FRAME_ALIGNMENT; at += sizeof(pc)) {
		if (!snapshot_read_word(step->snapshot, at, &pc))
			return STACK_UNREADABLE;
		if (!is_return_from_main(beam, pc))
			continue;
		step->registers->known = 0;
		registers_set(step->registers, arch->sp, at + sizeof(pc));
		registers_set(step->registers, arch->pc, pc);
		return STACK_COMPLETE;
	}
	return STACK_NO_RULE;
}

static struct move beam_step(struct language_step *step)
{
	const struct beam *beam = *step->process;

	if (step->rule->kind == RULE_LANGUAGE)
		return unwind_go_on_or_end(beam ? leave_main(beam, step) : STACK_NEEDS_REGISTER);
	if (beam && step->rule->kind == RULE_CODE) {
		if (step->rule->is_elsewhere)
			note(&beam->layout, step->registers, (struct beam_seen *)step->words);
		else if (is_in_frame(&beam->layout, step->registers))
			return move_end_with(STACK_NO_RULE);
	}
	return unwind_step_plain(step);
}

// Finds the scheduler's data; 0: they are not found.
static uint64_t find_data(const struct language_thread *thread, uint64_t registers)
{
	uint64_t words[(BELOW_TLS + ABOVE_TLS) / sizeof(uint64_t)], first;

	if (!resident_read(NULL, thread->tid, thread->tls - BELOW_TLS, words, sizeof(words)))
		return 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i] > ABOVE_TLS && words[i] % sizeof(uint64_t) == 0 &&
		    resident_read(NULL, thread->tid, words[i], &first, sizeof(first)) &&
		    first == registers)
			return words[i];
	return 0;
}

// Finds where the thread notes its process, if what was seen of it a moment ago still holds. From
// then on its process's stack can be copied.
static void beam_learn(const struct language_thread *thread, const language_word *seen_words,
                       const struct unwound *stack)
{
	const struct beam_seen *seen = (const struct beam_seen *)seen_words;
	uint64_t words[DATA_WORDS];

	if (stack->end == STACK_COMPLETE || !thread->tls || !seen->process)
		return;
	const uint64_t data = find_data(thread, seen->registers);
	if (!data || !resident_read(NULL, thread->tid, data, words, sizeof(words)))
		return;
	for (size_t i = 0; i < DATA_WORDS; i++) {
		if (words[i] != seen->process)
			continue;
		struct beam_thread *own = *thread->own;
		if (!own)
			own = memory_alloc(sizeof(*own));
		*own = (struct beam_thread){data + i * sizeof(words[0]), seen->process_sp_offset};
		*thread->own = own; // when it is whole: a signal handler may copy the thread
		return;
	}
}

// Reads the thread's process, and its stack pointer as last noted.
static bool read_process(const struct language_thread *thread, struct resident *resident,
                         const struct beam_thread *own, uint64_t *ret_process, uint64_t *ret_sp)
{
	return resident_read(resident, thread->tid, own->process_slot, ret_process,
	                     sizeof(*ret_process)) &&
	       *ret_process != 0 &&
	       resident_read(resident, thread->tid,
	                     *ret_process + (uint64_t)(int64_t)own->process_sp_offset, ret_sp,
	                     sizeof(*ret_sp)) &&
	       *ret_sp != 0;
}

// Copies, for a thread that runs C code for an Erlang process, the process's own stack, and its
// note of it.
static void beam_copy(const struct language_thread *thread, struct snapshot_copy *copy)
{
	const struct beam_thread *own = *thread->own;
	const size_t guess_bytes = copy->hint->guess_bytes;
	uint64_t process, sp;

	if (!own || snapshot_copy_room(copy) < 2 ||
	    !read_process(thread, copy->hint->resident, own, &process, &sp) ||
	    snapshot_copy_has(copy, sp))
		return;
	if (snapshot_copy_bytes(copy, sp - STACK_BYTES_BELOW,
	                        guess_bytes > STACK_BYTES ? guess_bytes : STACK_BYTES))
		copy->snapshot->cut = true;
	// The frame pointer is kept after it (erl_process.h, struct process).
	snapshot_copy_bytes(copy, process + (uint64_t)(int64_t)own->process_sp_offset,
	                    2 * sizeof(sp));
}

const struct language beam_language = {
    .name = "beam",
    .look_in_file = beam_look_in_file,
    .claim = beam_claim,
    .destroy = free,
    .rule = beam_rule,
    .copy = beam_copy,
    .step = beam_step,
    .learn = beam_learn,
};

static const char *const files[] = {"beam.smp", NULL};

const struct language_text beam_text = {.files = files};
