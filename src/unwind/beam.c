// SPDX-License-Identifier: MIT
#include "beam.h"

#include <stddef.h>

#include "address_space.h"
#include "arch.h"
#include "beam_code.h"
#include "module.h"
#include "resident.h"
#include "rule_step.h"
#include "snapshot.h"

enum {
	// To find a value of pthread_setspecific in glibc's descriptor, or a thread's own variable.
	BELOW_TLS = 512,
	ABOVE_TLS = 2048,
	DATA_WORDS = 64, // of a scheduler's data; its registers are noted at their start
};

static uint64_t frame_of(const struct beam_layout *layout, const struct registers *registers)
{
	return registers->value[beam_code_registers] + (uint64_t)(int64_t)layout->sp_offset;
}

bool beam_is_in_frame(const struct beam_layout *layout, const struct registers *registers)
{
	const uint64_t sp = registers->value[ARCH_NATIVE->sp];

	return registers_know(registers, beam_code_registers) &&
	       sp - frame_of(layout, registers) < layout->frame_bytes;
}

void beam_note(const struct beam_layout *layout, const struct registers *registers,
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

// Finds the scheduler's data; 0: they are not found.
static uint64_t find_data(int tid, uint64_t tls, uint64_t registers)
{
	uint64_t words[(BELOW_TLS + ABOVE_TLS) / sizeof(uint64_t)], first;

	if (!resident_read(NULL, tid, tls - BELOW_TLS, words, sizeof(words)))
		return 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i] > ABOVE_TLS && words[i] % sizeof(uint64_t) == 0 &&
		    resident_read(NULL, tid, words[i], &first, sizeof(first)) && first == registers)
			return words[i];
	return 0;
}

void beam_learn(const struct beam_seen *seen, int tid, uint64_t tls, struct beam_thread *thread)
{
	uint64_t words[DATA_WORDS];

	if (!tls || !seen->process)
		return;
	const uint64_t data = find_data(tid, tls, seen->registers);
	if (!data || !resident_read(NULL, tid, data, words, sizeof(words)))
		return;
	for (size_t i = 0; i < DATA_WORDS; i++)
		if (words[i] == seen->process) {
			thread->process_slot = data + i * sizeof(words[0]);
			thread->process_sp_offset = seen->process_sp_offset;
			return;
		}
}

bool beam_read(int tid, struct resident *resident, const struct beam_thread *thread,
               uint64_t *ret_process, uint64_t *ret_sp)
{
	return resident_read(resident, tid, thread->process_slot, ret_process,
	                     sizeof(*ret_process)) &&
	       *ret_process != 0 &&
	       resident_read(resident, tid,
	                     *ret_process + (uint64_t)(int64_t)thread->process_sp_offset, ret_sp,
	                     sizeof(*ret_sp)) &&
	       *ret_sp != 0;
}

// True if the return address follows a direct call of the function at `target` in that module.
static bool is_return_from(struct address_space *space, uint64_t pc, const struct module *module,
                           uint64_t target)
{
	const size_t call_bytes = ARCH_NATIVE->direct_call_bytes;
	const struct code_address code = address_space_resolve(space, pc - 1);
	const uint64_t next = code.address + 1;
	uint8_t bytes[ARCH_MAX_DIRECT_CALL_BYTES];

	return code.module == module &&
	       module_read_code(code.module, next - call_bytes, bytes, call_bytes) == call_bytes &&
	       ARCH_NATIVE->direct_call_target(bytes, next) == target;
}

enum stack_end beam_leave(struct address_space *space, const struct rule *rule,
                          const struct snapshot *snapshot, struct registers *registers)
{
	const struct arch *arch = ARCH_NATIVE;
	const struct module *beam = space->beam;
	uint64_t frame, pc;

	if (!beam || !rule_cfa(rule, registers, snapshot, &frame))
		return STACK_NEEDS_REGISTER;
	for (uint64_t at = frame; at < frame + BEAM_FRAME_ALIGNMENT; at += sizeof(pc)) {
		if (!snapshot_read_word(snapshot, at, &pc))
			return STACK_UNREADABLE;
		if (!is_return_from(space, pc, beam, beam->beam_main))
			continue;
		registers->known = 0;
		registers_set(registers, arch->sp, at + sizeof(pc));
		registers_set(registers, arch->pc, pc);
		return STACK_COMPLETE;
	}
	return STACK_NO_RULE;
}
