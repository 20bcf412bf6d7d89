// SPDX-License-Identifier: MIT
#include "arch.h"

#include <elf.h>
#include <string.h>

#include "expression.h"
#include "memory.h"
#include "rule.h"
#include "x86_code.h"
#include "x86_frame.h"
#include "x86_instruction.h"
#include "x86_registers.h"
#include "x86_thunk.h"

#ifndef SHT_X86_64_UNWIND
#define SHT_X86_64_UNWIND 0x70000001
#endif

// struct ucontext: uc_flags, uc_link, uc_stack (ss_sp, ss_flags, ss_size), then the registers of
// struct sigcontext (the kernel's asm/sigcontext.h).
enum { UC_STACK = 16, UC_REGISTERS = 40 };

static const uint8_t sigcontext_order[] = {R8,  R9,  R10, R11, R12, R13, R14, R15, RDI,
                                           RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP};

static bool signal_rule(const uint8_t *code, size_t size, struct rule *ret)
{
	// mov $SYS_rt_sigreturn, %rax (or %eax); syscall. libgcc's fallback knows it the same way.
	static const uint8_t mov_rax[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t mov_eax[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};

	if (!(size >= sizeof(mov_rax) && memcmp(code, mov_rax, sizeof(mov_rax)) == 0) &&
	    !(size >= sizeof(mov_eax) && memcmp(code, mov_eax, sizeof(mov_eax)) == 0))
		return false;
	// The handler has returned past the address of this code: RSP is the struct ucontext.
	*ret = (struct rule){.kind = RULE_ROW, .signal_frame = true, .cfa_register = RSP};
	for (size_t i = 0; i < sizeof(sigcontext_order); i++)
		ret->registers[ret->n_registers++] = (struct register_rule){
		    .number = sigcontext_order[i],
		    .kind = REGISTER_AT_CFA,
		    .offset = UC_REGISTERS + 8 * i,
		};
	return true;
}

// Makes the rule at a signal trampoline's syscall.
static bool sigreturn_rule(const struct arch_code *code, uint64_t address, struct rule *ret)
{
	enum { MOV_RAX = 7, MOV_EAX = 5, SYSCALL = 2 };
	uint8_t bytes[MOV_RAX + SYSCALL];

	if (code->read(code->context, address, bytes, SYSCALL) != SYSCALL || bytes[0] != 0x0f ||
	    bytes[1] != 0x05 ||
	    code->read(code->context, address - MOV_RAX, bytes, sizeof(bytes)) != sizeof(bytes))
		return false;
	return signal_rule(bytes, sizeof(bytes), ret) ||
	       signal_rule(bytes + MOV_RAX - MOV_EAX, MOV_EAX + SYSCALL, ret);
}

static bool pc_rule(const struct arch_code *code, uint64_t address, struct rule *ret)
{
	return x86_thunk_rule(code, address, ret) || sigreturn_rule(code, address, ret);
}

// Makes the rule for a return address that lies above what was pushed.
static void popping_rule(int64_t pushed_bytes, struct rule *ret)
{
	*ret = (struct rule){
	    .kind = RULE_ROW,
	    .cfa_register = RSP,
	    .cfa_offset = 8 + pushed_bytes,
	    .n_registers = 1,
	    .registers = {{.number = RIP, .kind = REGISTER_AT_CFA, .offset = -8}},
	};
}

// Knows _init and _fini (glibc's crti.S), which have no CFI: [endbr64;] sub $8, %rsp; ...; add $8,
// %rsp; ret.
static bool init_rule(const uint8_t *code, size_t size, struct rule *ret)
{
	static const uint8_t sub[] = {0x48, 0x83, 0xec, 0x08}, endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const bool bare = size < sizeof(sub) || memcmp(code, sub, sizeof(sub)) == 0 ||
	                  memcmp(code, endbr, sizeof(endbr)) == 0 || code[0] == 0xc3;

	popping_rule(bare ? 0 : 8, ret);
	return true;
}

static bool section_rule(const char *section, uint64_t offset, const uint8_t *code, size_t size,
                         struct rule *ret)
{
	int64_t pushed = 0;

	if (strcmp(section, ".init") == 0 || strcmp(section, ".fini") == 0)
		return init_rule(code, size, ret);
	// Static programs have a .plt without CFI. Its entries are 16 bytes long: jmp *GOT (6
	// bytes), push index (5), jmp to the first entry (5); the first: push (6), jmp. The
	// entries of .plt.got and .plt.sec, and of a static program's IFUNC .plt, are one jmp.
	if (strcmp(section, ".plt") != 0 && strcmp(section, ".plt.got") != 0 &&
	    strcmp(section, ".plt.sec") != 0 && strcmp(section, ".iplt") != 0)
		return false;
	if (strcmp(section, ".plt") == 0 && offset < 16)
		pushed = offset < 6 ? 8 : 16;
	else if (strcmp(section, ".plt") == 0 && offset % 16 >= 11)
		pushed = 8;
	popping_rule(pushed, ret);
	return true;
}

static bool starts_with(const uint8_t *code, size_t size, const char *bytes, size_t n)
{
	return size >= n && memcmp(code, bytes, n) == 0;
}

// Returns the length of the instructions from `code` up to a ret, if they are among those after the
// system call of clone; SIZE_MAX: they are not.
static size_t find_ret(const uint8_t *code, size_t size)
{
	size_t at = 0;

	if (starts_with(code, size, "\x0f\x05", 2)) // syscall
		at += 2;
	if (starts_with(code + at, size - at, "\x48\x85\xc0", 3)) // test %rax, %rax
		at += 3;
	else if (starts_with(code + at, size - at, "\x48\x83\xf8\x00", 4)) // cmp $0, %rax
		at += 4;
	if (starts_with(code + at, size - at, "\x7c", 1)) // jl error
		at += 2;
	else if (starts_with(code + at, size - at, "\x0f\x8c", 2))
		at += 6;
	if (at < size && starts_with(code + at, size - at, "\x74", 1)) // jz child
		at += 2;
	if (at < size && starts_with(code + at, size - at, "\x89\x44\x24", 3)) // mov %eax, x(%rsp)
		at += 4;
	return at < size && code[at] == 0xc3 ? at : SIZE_MAX;
}

// glibc ends the FDE of clone and clone3 before the system call, because none could be right for
// both threads: syscall; test; jl error; jz child; ret (sysdeps/unix/sysv/linux/x86_64/clone3.S).
// Go's: syscall; cmp; je child; mov; ret (runtime/sys_linux_amd64.s). The caller's stack is as at
// the ret; the child, where rax is 0, has nobody to return to.
static bool clone_rule(const uint8_t *code, size_t size, struct rule *ret)
{
	// The return address: rax ? *(CFA - 8) : 0. Codes: DWARF 5, 7.7.1.
	enum {
		DEREF = 0x06,
		DROP = 0x13,
		MINUS = 0x1c,
		BRA = 0x28,
		SKIP = 0x2f,
		LIT0 = 0x30,
		BREG0 = 0x70
	};
	static const struct expression_op ops[] = {
	    {.atom = BREG0 + RAX},
	    {.atom = BRA, .target = 5},
	    {.atom = DROP},
	    {.atom = LIT0},
	    {.atom = SKIP, .target = 8},
	    {.atom = LIT0 + 8},
	    {.atom = MINUS},
	    {.atom = DEREF},
	};
	const size_t ret_at = find_ret(code, size);

	if (ret_at == SIZE_MAX)
		return false;
	popping_rule(0, ret);
	// At the ret itself, of any function. The code tells this, not a table, so the caller keeps
	// what the function left alone.
	if (ret_at == 0) {
		ret->kind = RULE_CODE;
		return true;
	}
	struct expression *expression = memory_alloc(sizeof(*expression) + sizeof(ops));
	expression->count = array_size(ops);
	memcpy(expression->ops, ops, sizeof(ops));
	ret->begins = true;
	ret->registers[0].kind = REGISTER_IS_EXPRESSION;
	ret->registers[0].expression = expression;
	return true;
}

// True where stacks begin: makers of stacks have the outermost function return there.
static bool is_stack_start(const uint8_t *code, size_t size)
{
	// __start_context of glibc (sysdeps/unix/sysv/linux/x86_64/__start_context.S), of
	// makecontext(3): mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi.
	if (starts_with(code, size, "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff", 10) ||
	    starts_with(code, size, "\xf3\x0f\x1e\xfa\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff", 14))
		return true;
	// __clone of musl (src/thread/x86_64/clone.s), in a thread: mov %eax, %edi; xor %eax, %eax;
	// mov $60, %al; syscall.
	if (starts_with(code, size, "\x89\xc7\x31\xc0\xb0\x3c\x0f\x05", 8))
		return true;
	// finish of Boost.Context (make_x86_64_sysv_elf_gas.S), of its fibers and PHP's:
	// xor %rdi, %rdi; call _exit; hlt.
	return starts_with(code, size, "\x48\x31\xff\xe8", 4) && size > 8 && code[8] == 0xf4;
}

// True if the code is nothing but what lies between functions: instructions that do nothing.
static bool is_padding(const uint8_t *code, size_t size)
{
	struct instruction i;

	for (size_t at = 0; at < size; at += i.length)
		if (!x86_instruction_decode(code + at, size - at, &i) ||
		    !x86_instruction_is_padding(&i))
			return false;
	return true;
}

static bool is_jump(const struct instruction *i)
{
	if (i->is_vector)
		return false;
	return i->map == MAP_ONE ? (i->opcode >= 0x70 && i->opcode <= 0x7f) || i->opcode == 0xe9 ||
	                               i->opcode == 0xeb
	                         : i->map == MAP_0F && i->opcode >= 0x80 && i->opcode <= 0x8f;
}

// True if a jump in the code, decoded one instruction after another, leads to its first byte.
static bool jumps_back(const uint8_t *code, size_t size)
{
	struct instruction i;

	for (size_t at = 0; x86_instruction_decode(code + at, size - at, &i); at += i.length)
		if (is_jump(&i) && (int64_t)(at + i.length) + i.immediate == 0)
			return true;
	return false;
}

enum { DIRECT_CALL_BYTES = 5 }; // call rel32

static uint64_t direct_call_target(const uint8_t *bytes, uint64_t next)
{
	int32_t distance;

	memcpy(&distance, bytes + 1, sizeof(distance));
	return bytes[0] == 0xe8 ? next + (uint64_t)(int64_t)distance : 0;
}

// [endbr64] [bnd] jmp *disp32(%rip)
static uint64_t plt_slot(const uint8_t *code, size_t size, uint64_t address)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = 0;
	int32_t displacement;

	if (size >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		at += sizeof(endbr64);
	if (at < size && code[at] == 0xf2)
		at++;
	if (size < at + 6 || code[at] != 0xff || code[at + 1] != 0x25)
		return 0;
	memcpy(&displacement, code + at + 2, sizeof(displacement));
	return address + at + 6 + (uint64_t)(int64_t)displacement;
}

// True for ret, and for lea -N(%r10), %rsp before it, which makes room for what was pushed before a
// realigned frame (GCC: ix86_expand_epilogue).
static bool has_restored_fp(const uint8_t *code, size_t size)
{
	return starts_with(code, size, "\xc3", 1) ||
	       starts_with(code, size, "\x49\x8d\x62", 3) || // an offset of one byte
	       starts_with(code, size, "\x49\x8d\xa2", 3);   // of four
}

static void frame_pointer_rule(struct rule *ret)
{
	*ret = (struct rule){
	    .kind = RULE_FRAME_POINTER,
	    .cfa_register = RBP,
	    .cfa_offset = 16,
	    .n_registers = 2,
	    .registers = {{.number = RBP, .kind = REGISTER_AT_CFA, .offset = -16},
	                  {.number = RIP, .kind = REGISTER_AT_CFA, .offset = -8}},
	};
}

const struct arch arch_native = {
    .name = "x86-64",
    .elf_machine = EM_X86_64,
    .elf_class = ELFCLASS64,
    .elf_unwind_section = SHT_X86_64_UNWIND,
    .n_registers = RIP + 1,
    .pc = RIP,
    .sp = RSP,
    .fp = RBP,
    .preserved = 1u << RBX | 1u << RBP | 1u << R12 | 1u << R13 | 1u << R14 | 1u << R15,
    .raising = 1u << RAX | 1u << RDX, // __builtin_eh_return_data_regno
    .syscall_args = {RDI, RSI, RDX, R10, R8, R9},
    .red_zone_bytes = 128,
    .signal_rule = signal_rule,
    .section_rule = section_rule,
    .clone_rule = clone_rule,
    .pc_rule = pc_rule,
    .popping_rule = popping_rule,
    .code_rule = x86_code_rule,
    .refine = x86_code_refine,
    .left_alone = x86_code_left_alone,
    .leads_to = x86_code_leads_to,
    .may_lead_to = x86_code_may_lead_to,
    .may_return = x86_code_may_return,
    .is_padding = is_padding,
    .jumps_back = jumps_back,
    .is_after_call = x86_code_is_after_call,
    .max_call_bytes = X86_CODE_MAX_CALL_BYTES,
    .direct_call_target = direct_call_target,
    .direct_call_bytes = DIRECT_CALL_BYTES,
    .plt_slot = plt_slot,
    .find_frame = x86_frame_find,
    .is_stack_start = is_stack_start,
    .has_restored_fp = has_restored_fp,
    .frame_pointer_rule = frame_pointer_rule,
    .unwinder_registers = 18,
    .pthread_self = 0x10,
    .pthread_tid = 0x2d0,
    .user_end = UINT64_C(1) << 47,
    .ucontext_stack_offset = UC_STACK,
    .ucontext_sp_offset = UC_REGISTERS + 8 * 15,
};
