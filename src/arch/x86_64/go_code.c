// SPDX-License-Identifier: MIT
#include "go_code.h"

#include <string.h>

#include "memory.h"
#include "rule.h"
#include "x86_registers.h"

enum {
	MAX_TLS = 1 << 20,
	MAX_CURG = 4096,
	// What it takes of the thread's stack: 64 bytes, until Go 1.21, and what aligns it.
	MAX_TAKEN = 64 + 15,
	RET = 0xc3,
	PUSH_RBP = 0x55,
};

bool go_code_is_start(const char *name)
{
	static const char *const starts[] = {"_rt0_amd64_linux", "_rt0_amd64_linux.abi0",
	                                     "_rt0_amd64", "_rt0_amd64.abi0"};

	for (size_t i = 0; i < array_size(starts); i++)
		if (strcmp(name, starts[i]) == 0)
			return true;
	return false;
}

static uint32_t u32_at(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

// Returns what follows the first occurrence of an instruction's bytes, at least `more` bytes; NULL:
// there is none.
static const uint8_t *find_code(const struct go_code *code, const char *bytes, size_t n,
                                size_t more)
{
	for (size_t at = 0; at + n + more <= code->size; at++)
		if (memcmp(code->bytes + at, bytes, n) == 0)
			return code->bytes + at + n;
	return NULL;
}

// Finds where the code gets g from, which depends on how the program was linked.
static bool find_tls(const struct go_code *code, uint64_t entry, struct go_layout *ret)
{
	const uint8_t *g = find_code(code, "\x64\x48\x8b\x04\x25", 5, 4); // mov %fs:x, %rax

	if (!g)
		g = find_code(code, "\x48\xc7\xc1", 3, 4); // mov $x, %rcx; mov %fs:(%rcx), %rax
	if (g) {
		ret->tls = (int32_t)u32_at(g);
		return ret->tls < 0 && ret->tls > -MAX_TLS && ret->tls % 8 == 0;
	}
	g = find_code(code, "\x48\x8b\x0d", 3, 8); // mov x(%rip), %rcx; mov %fs:(%rcx), %rax
	if (!g || memcmp(g + 4, "\x64\x48\x8b\x01", 4) != 0)
		return false;
	ret->tls_at = entry + (uint64_t)(g + 4 - code->bytes) + (uint64_t)(int32_t)u32_at(g);
	return true;
}

// It begins by comparing g with g.m.curg, whose offset depends on the version.
bool go_code_read_layout(const struct go_code *systemstack, uint64_t entry, struct go_layout *ret)
{
	const uint8_t *m = find_code(systemstack, "\x48\x8b\x58\x30", 4, 0); // mov 0x30(%rax), %rbx
	const uint8_t *curg = find_code(systemstack, "\x48\x3b\x83", 3, 4);  // cmp x(%rbx), %rax

	if (!m || !curg || u32_at(curg) > MAX_CURG || u32_at(curg) % 8 != 0 ||
	    !find_tls(systemstack, entry, ret))
		return false;
	ret->curg = (uint16_t)u32_at(curg);
	return true;
}

// It reads back the goroutine into %rdi, or the old stack pointer into %rsi if that was on the
// thread's stack already.
enum go_code_kept go_code_find_kept(const struct go_code *behind_call, uint8_t *ret_offset)
{
	enum { NEAR_BYTES = 16 };
	struct go_code code = *behind_call;

	if (code.size > NEAR_BYTES)
		code.size = NEAR_BYTES;
	const uint8_t *g = find_code(&code, "\x48\x8b\x7c\x24", 4, 1);   // mov x(%rsp), %rdi
	const uint8_t *sp = find_code(&code, "\x48\x8b\x74\x24", 4, 1);  // mov x(%rsp), %rsi
	const bool is_zero = find_code(&code, "\x48\x8b\x34\x24", 4, 0); // mov (%rsp), %rsi

	*ret_offset = g ? *g : sp ? *sp : 0;
	if (g)
		return GO_KEPT_GOROUTINE;
	return sp || is_zero ? GO_KEPT_SP : GO_KEPT_NOTHING;
}

// Returns the next ret after an instruction that was found; NULL: there is none.
static const uint8_t *find_return(const struct go_code *code, const uint8_t *behind)
{
	return behind ? memchr(behind, RET, (size_t)(code->bytes + code->size - behind)) : NULL;
}

// The way that begins on the thread's stack comes after the other way's return.
uint8_t go_code_taken(const struct go_code *asmcgocall, uint64_t offset)
{
	const uint8_t *changed =
	    find_code(asmcgocall, "\x48\x8b\x66\x38", 4, 0); // mov 0x38(%rsi), %rsp
	const uint8_t *way_out = find_return(asmcgocall, changed);

	return way_out && offset >= (uint64_t)(changed - asmcgocall->bytes) &&
	               offset <= (uint64_t)(way_out - asmcgocall->bytes)
	           ? MAX_TAKEN
	           : 0;
}

// Go's tables have no registers, but functions save the frame pointer first.
void go_code_add_frame_pointer(const struct go_code *function, struct rule *rule)
{
	const bool keeps = function->size > 0 && function->bytes[0] == PUSH_RBP;

	if (keeps && rule->cfa_offset == 8)
		return; // not yet
	rule->registers[rule->n_registers++] = (struct register_rule){
	    .number = RBP,
	    .kind = keeps ? REGISTER_AT_CFA : REGISTER_UNDEFINED,
	    .offset = -16,
	};
}

bool go_code_find_saved_sp(const struct go_code *function, uint64_t offset, bool is_call,
                           uint8_t *ret)
{
	static const struct {
		const char *save, *restore;
		uint8_t number;
	} registers[] = {
	    {"\x49\x89\xe4", "\x4c\x89\xe4", R12}, // mov %rsp, %r12; mov %r12, %rsp
	    {"\x49\x89\xe5", "\x4c\x89\xec", R13},
	    {"\x48\x89\xe3", "\x48\x89\xdc", RBX},
	};

	for (size_t i = 0; i < array_size(registers); i++) {
		const uint8_t *saved = find_code(function, registers[i].save, 3, 0);
		if (!saved || !find_code(function, registers[i].restore, 3, 0))
			continue;
		*ret = registers[i].number;
		return is_call || offset >= (uint64_t)(saved - function->bytes);
	}
	return false;
}

bool go_code_is_new_thread(const struct go_code *clone, uint64_t offset)
{
	const uint8_t *way_out = find_return(clone, find_code(clone, "\x0f\x05", 2, 0)); // syscall

	return way_out && offset > (uint64_t)(way_out - clone->bytes);
}
