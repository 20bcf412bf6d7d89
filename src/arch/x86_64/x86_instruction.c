// SPDX-License-Identifier: MIT
#include "x86_instruction.h"

struct cursor {
	const uint8_t *bytes;
	size_t size, at;
	bool failed;
};

static uint8_t take(struct cursor *cursor)
{
	if (cursor->at >= cursor->size) {
		cursor->failed = true;
		return 0;
	}
	return cursor->bytes[cursor->at++];
}

static int64_t take_signed(struct cursor *cursor, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)take(cursor) << (8 * i);
	const unsigned int shift = n ? 64 - 8 * n : 0;
	return (int64_t)(value << shift) >> shift;
}

// Prefixes, as far as they matter.
struct prefixes {
	bool operand_size, address_size, fs;
	uint8_t rex; // 0: none
};

static bool one_byte_has_modrm(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4;
	return op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op <= 0x8f) || op == 0xc0 ||
	       op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) ||
	       (op >= 0xd8 && op <= 0xdf) || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
}

// The immediate, offset or address that ends an instruction, by its opcode: a letter that
// one_byte_immediate explains, or '.' for none.
static const char one_byte_operands[] = "....bzxx....bzxx"  // 00: arithmetic with al, eax
                                        "....bzxx....bzxx"  // 10: likewise
                                        "....bzxx....bzxx"  // 20: likewise
                                        "....bzxx....bzxx"  // 30: likewise
                                        "................"  // 40
                                        "................"  // 50
                                        "xx......zzbb...."  // 60: push, imul
                                        "bbbbbbbbbbbbbbbb"  // 70: jcc
                                        "bzxb............"  // 80: group 1
                                        "..........x....."  // 90
                                        "oooo....bz......"  // a0: mov; test
                                        "bbbbbbbbvvvvvvvv"  // b0: mov
                                        "bbw...bze.w..bx."  // c0: group 2, ret, mov, enter, int
                                        "....xxx........."  // d0
                                        "bbbbbbbbddxb...."  // e0: loop, in, out, call, jmp
                                        "......BZ........"; // f0: group 3

// Returns the size of the immediate; -1: there is no such instruction in 64-bit mode. The names of
// operands are those of appendix A's opcode map.
static int one_byte_immediate(const struct instruction *i, const struct prefixes *prefixes)
{
	const int full = prefixes->operand_size && !i->wide ? 2 : 4;

	switch (one_byte_operands[i->opcode]) {
	case 'b': // Ib, Jb
		return 1;
	case 'w': // Iw
		return 2;
	case 'e': // Iw, Ib
		return 3;
	case 'd': // Jz, which has no other size in 64-bit mode
		return 4;
	case 'z': // Iz
		return full;
	case 'v': // Iv
		return i->wide ? 8 : full;
	case 'o': // Ob, Ov
		return prefixes->address_size ? 4 : 8;
	case 'B': // Ib of test alone
		return i->reg_field < 2 ? 1 : 0;
	case 'Z': // Iz of test alone
		return i->reg_field < 2 ? full : 0;
	case 'x':
		return -1;
	default:
		return 0;
	}
}

static bool two_byte_has_modrm(uint8_t op)
{
	return !(op == 0x05 || op == 0x06 || op == 0x07 || op == 0x08 || op == 0x09 || op == 0x0b ||
	         op == 0x0e || (op >= 0x30 && op <= 0x37) || op == 0x77 ||
	         (op >= 0x80 && op <= 0x8f) || (op >= 0xa0 && op <= 0xa2) ||
	         (op >= 0xa8 && op <= 0xaa) || op >= 0xc8) ||
	       op >= 0xd0;
}

static int two_byte_immediate(uint8_t op)
{
	if (op >= 0x80 && op <= 0x8f)
		return 4;
	return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
	       (op >= 0xc4 && op <= 0xc6) || op == 0x0f;
}

static void read_modrm(struct cursor *cursor, const struct prefixes *prefixes,
                       struct instruction *ret)
{
	const uint8_t byte = take(cursor), mod = byte >> 6, rm = byte & 7;
	size_t displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	uint8_t base = rm;

	ret->has_modrm = true;
	ret->mod = mod;
	ret->reg_field = byte >> 3 & 7;
	ret->reg = ret->reg_field | (prefixes->rex & 4) << 1;
	ret->plain_base = mod != 3 && !(mod == 0 && rm == 5);
	if (mod != 3 && rm == 4) {
		const uint8_t sib = take(cursor);
		base = sib & 7;
		ret->plain_base = (sib >> 3 & 7) == 4 && !(prefixes->rex & 2);
		if (mod == 0 && base == 5) {
			displacement = 4;
			ret->plain_base = false;
		}
	} else if (mod == 0 && rm == 5) {
		displacement = 4;
		ret->by_pc = true;
	}
	ret->rm = base | (prefixes->rex & 1) << 3;
	ret->displacement = (int32_t)take_signed(cursor, displacement);
}

// Reads VEX (C5, C4), EVEX (62) and XOP (8F): their bits replace those of REX, inverted.
static bool read_vector_prefix(struct cursor *cursor, uint8_t first, struct prefixes *prefixes,
                               struct instruction *ret)
{
	const uint8_t a = take(cursor);
	uint8_t b = a, map = 1;

	prefixes->rex = a & 0x80 ? 0 : 4;
	if (first != 0xc5) {
		prefixes->rex = (uint8_t)(~a >> 5 & 7);
		map = first == 0x62 ? a & 7 : a & 0x1f;
		b = take(cursor);
	}
	if (first == 0x62)
		take(cursor);
	ret->is_vector = true;
	ret->more = ~b >> 3 & 15;
	ret->map = (map >= 1 && map <= 3) || first == 0x8f ? map : MAP_OTHER;
	ret->opcode = take(cursor);
	return first == 0x8f ? map >= 8 && map <= 10 : map >= 1 && map <= 6;
}

// Reads a prefix. A REX prefix counts only if no other prefix comes after it.
static bool read_prefix(uint8_t byte, struct prefixes *prefixes)
{
	switch (byte) {
	case 0x66:
		prefixes->operand_size = true;
		break;
	case 0x67:
		prefixes->address_size = true;
		break;
	case 0x64:
		prefixes->fs = true;
		break;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x65:
	case 0xf0:
	case 0xf2:
	case 0xf3:
		break;
	default:
		if (byte < 0x40 || byte > 0x4f)
			return false;
		prefixes->rex = byte;
		return true;
	}
	prefixes->rex = 0;
	return true;
}

// True for XOP. Otherwise 8F is pop, whose ModRM has no such bits.
static bool is_xop(const struct cursor *cursor, uint8_t byte)
{
	return byte == 0x8f && cursor->at < cursor->size && (cursor->bytes[cursor->at] & 0x1f) >= 8;
}

static bool read_opcode(struct cursor *cursor, struct prefixes *prefixes, struct instruction *ret)
{
	uint8_t byte = take(cursor);

	while (!cursor->failed && read_prefix(byte, prefixes))
		byte = take(cursor);
	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62 || is_xop(cursor, byte))
		return !prefixes->rex && read_vector_prefix(cursor, byte, prefixes, ret);
	ret->has_rex = prefixes->rex != 0;
	ret->by_fs = prefixes->fs;
	ret->wide = prefixes->rex & 8;
	ret->map = MAP_ONE;
	if (byte == 0x0f) {
		ret->map = MAP_0F;
		byte = take(cursor);
		if (byte == 0x38 || byte == 0x3a) {
			ret->map = byte == 0x38 ? MAP_0F38 : MAP_0F3A;
			byte = take(cursor);
		}
	}
	ret->opcode = byte;
	ret->low = (byte & 7) | (prefixes->rex & 1) << 3;
	return true;
}

bool x86_instruction_decode(const uint8_t *bytes, size_t size, struct instruction *ret)
{
	struct cursor cursor = {
	    .bytes = bytes,
	    .size = size < X86_MAX_INSTRUCTION_BYTES ? size : X86_MAX_INSTRUCTION_BYTES,
	};
	struct prefixes prefixes = {0};
	int immediate;

	*ret = (struct instruction){0};
	if (!read_opcode(&cursor, &prefixes, ret))
		return false;
	const uint8_t op = ret->opcode;
	if (ret->map == MAP_ONE ? one_byte_has_modrm(op)
	                        : ret->map != MAP_0F || two_byte_has_modrm(op))
		read_modrm(&cursor, &prefixes, ret);
	switch (ret->map) {
	case MAP_ONE:
		immediate = one_byte_immediate(ret, &prefixes);
		break;
	case MAP_0F:
		immediate = two_byte_immediate(op);
		break;
	case MAP_0F3A:
	case MAP_XOP_8:
		immediate = 1;
		break;
	case MAP_XOP_10:
		immediate = 4;
		break;
	default:
		immediate = 0;
	}
	if (immediate < 0)
		return false;
	ret->immediate = take_signed(&cursor, immediate);
	ret->length = cursor.at;
	return !cursor.failed;
}

static bool is_group(uint8_t op) // the opcode goes on in ModRM's reg field
{
	return (op >= 0x80 && op <= 0x83) || op == 0x8f || op == 0xc0 || op == 0xc1 || op == 0xc6 ||
	       op == 0xc7 || (op >= 0xd0 && op <= 0xdf) || op == 0xf6 || op == 0xf7 || op == 0xfe ||
	       op == 0xff;
}

static bool only_compares(const struct instruction *i)
{
	const uint8_t op = i->opcode;

	return (op >= 0x38 && op <= 0x3b) || op == 0x84 || op == 0x85 ||
	       (op >= 0x80 && op <= 0x83 && i->reg_field == 7) ||
	       ((op == 0xf6 || op == 0xf7) && i->reg_field < 2) ||
	       (op == 0xff && (i->reg_field == 2 || i->reg_field == 4 || i->reg_field == 6));
}

// True if it writes to its ModRM's register only (of the two operands).
static bool writes_reg_only(uint8_t op)
{
	return op == 0x8b || op == 0x8d || op == 0x63 || op == 0x69 || op == 0x6b || op == 0x8a ||
	       (op < 0x40 && (op & 7) >= 2);
}

static bool writes_rm_only(uint8_t op)
{
	return op == 0x89 || op == 0x88 || (op < 0x40 && (op & 7) < 2);
}

// Returns the register's bit. In an instruction on bytes, low numbers may mean %ah, %ch, %dh, %bh.
static uint16_t register_bit(const struct instruction *i, uint8_t number)
{
	const uint8_t op = i->opcode;
	const bool has_low_bit = op < 0x40 || op == 0x80 || (op >= 0x84 && op <= 0x8a) ||
	                         op == 0xc0 || op == 0xc6 || op == 0xd0 || op == 0xd2 ||
	                         op == 0xf6 || op == 0xfe;
	bool on_bytes = false;

	if (i->map == MAP_ONE && !i->is_vector)
		on_bytes = (has_low_bit && !(op & 1)) || (op >= 0xb0 && op <= 0xb7);
	else if (i->map == MAP_0F) // setcc, cmpxchg, xadd
		on_bytes = (op >= 0x90 && op <= 0x9f) || op == 0xb0 || op == 0xc0;
	return 1u << (on_bytes && !i->has_rex ? number & 3 : number);
}

#define SP_BIT (1u << MACHINE_SP)

// Handles VEX and EVEX: nearly all write to other registers, or to none.
static uint16_t vector_may_write(const struct instruction *i)
{
	const uint16_t reg = 1u << i->reg, rm = i->mod == 3 ? 1u << i->rm : 0;
	const uint8_t op = i->opcode;

	switch (i->map) {
	case MAP_0F: // cvtss2si and its like, movmskps, movd, kmov, pextrw, pmovmskb
		return op == 0x2c || op == 0x2d || op == 0x50 || op == 0x78 || op == 0x79 ||
		               op == 0x7e || op == 0x93 || op == 0xc5 || op == 0xd7
		           ? reg | rm
		           : 0;
	case MAP_0F38: // those on general registers: andn, bextr, mulx, ...
		return op >= 0xf0 ? reg | rm | 1u << i->more : 0;
	case MAP_0F3A: // pextrb to extractps, rorx
		return op == 0xf0 || (op >= 0x14 && op <= 0x17) ? reg | rm : 0;
	default:
		return reg | rm | 1u << i->more;
	}
}

// Handles those that name a register in the opcode: mov, xchg (with %rax; with itself it is nop),
// bswap.
static uint16_t may_write_low(const struct instruction *i)
{
	const uint8_t op = i->opcode;

	if (i->map == MAP_0F)
		return op >= 0xc8 && op <= 0xcf ? 1u << i->low : 0;
	if (i->map != MAP_ONE)
		return 0;
	if (op >= 0xb0 && op <= 0xbf)
		return register_bit(i, i->low);
	return op >= 0x90 && op <= 0x97 && i->low != 0 ? 1u << i->low | 1u : 0;
}

// True for SSE and similar sets, whose operands are all other registers, or only read; except for
// cvtss2si and similar ones, movmskps, movd, pextrw, pmovmskb; movbe, crc32, adcx; pextrb to
// extractps.
static bool is_sse(const struct instruction *i)
{
	const uint8_t op = i->opcode;

	switch (i->map) {
	case MAP_0F:
		return (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2b) ||
		       (op >= 0x2e && op <= 0x2f) || (op >= 0x51 && op <= 0x7f && op != 0x7e) ||
		       op == 0xc2 || op == 0xc4 || op == 0xc6 ||
		       (op >= 0xd0 && op <= 0xfe && op != 0xd7);
	case MAP_0F38:
		return op < 0xf0;
	case MAP_0F3A:
		return op < 0x14 || op > 0x17;
	default:
		return false;
	}
}

// True for two opcode bytes if the opcode goes on in ModRM's reg field (ldmxcsr, bts $x, nopw,
// ...).
static bool is_group_0f(uint8_t op)
{
	return op <= 0x01 || op == 0x0d || (op >= 0x18 && op <= 0x1f) || op == 0xae || op == 0xba ||
	       op == 0xc7;
}

uint16_t x86_instruction_may_write(const struct instruction *i)
{
	const bool one = i->map == MAP_ONE;
	uint16_t written = 0;

	if (i->is_vector)
		return vector_may_write(i) & ~SP_BIT;
	if (is_sse(i))
		return 0;
	if (!i->has_modrm || (one && only_compares(i)))
		return i->map == MAP_0F && i->opcode == 0xa2 ? 1u << 3 : may_write_low(i); // cpuid
	if (i->mod == 3 && !(one && writes_reg_only(i->opcode)))
		written |= register_bit(i, i->rm);
	if (!(one && (is_group(i->opcode) || writes_rm_only(i->opcode))) &&
	    !(i->map == MAP_0F && is_group_0f(i->opcode)))
		written |= register_bit(i, i->reg);
	// SSE has other registers, except for a few instructions that move to general ones.
	return one ? written : written & ~SP_BIT;
}

// True for instructions of one opcode byte that write registers without naming them.
static bool writes_unnamed(const struct instruction *i)
{
	const uint8_t op = i->opcode;

	if (op >= 0xe0 && op <= 0xef) // loop, in, out; but for call and jmp
		return op != 0xe8 && op != 0xe9 && op != 0xeb;
	return (op < 0x40 && (op & 6) == 4) ||                    // add $x, %eax
	       (op >= 0x6c && op <= 0x6f) ||                      // ins, outs
	       (op >= 0x98 && op <= 0x9f) ||                      // cbw, cwd, lahf
	       op == 0xa0 || op == 0xa1 ||                        // mov x, %eax
	       (op >= 0xa4 && op <= 0xa7) ||                      // movs, cmps
	       (op >= 0xaa && op <= 0xaf) ||                      // stos, lods, scas
	       op == 0xd7 ||                                      // xlat
	       ((op == 0xf6 || op == 0xf7) && i->reg_field >= 4); // mul, div
}

uint16_t x86_instruction_implicit(const struct instruction *i)
{
	uint16_t all = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 6 | 1u << 7;
	const uint8_t op = i->opcode;
	bool writes;

	switch (i->map) {
	case MAP_ONE:
		writes = !i->is_vector && writes_unnamed(i);
		break;
	case MAP_0F: // rdtscp, xgetbv, syscall, rdtsc, rdpmc, cpuid, cmpxchg, ...
		writes = !i->is_vector &&
		         (op <= 0x0b || (op >= 0x30 && op <= 0x37) || op == 0xa2 || op == 0xa6 ||
		          op == 0xa7 || op == 0xb0 || op == 0xb1 || op == 0xc7);
		if (op == 0x05)
			all |= 1u << 11; // syscall
		break;
	case MAP_0F3A: // pcmpestri and its like
		writes = op >= 0x60 && op <= 0x63;
		break;
	default:
		writes = false;
	}
	return writes ? all : 0;
}

bool x86_instruction_sets_to_sp(const struct instruction *i, uint8_t number, int32_t *ret_offset)
{
	const bool is_lea =
	    i->opcode == 0x8d && i->plain_base && i->rm == MACHINE_SP && i->reg == number;
	const bool is_store =
	    i->opcode == 0x89 && i->mod == 3 && i->reg == MACHINE_SP && i->rm == number;
	const bool is_load =
	    i->opcode == 0x8b && i->mod == 3 && i->rm == MACHINE_SP && i->reg == number;

	if (i->map != MAP_ONE || i->is_vector || !i->wide || !(is_lea || is_store || is_load))
		return false;
	*ret_offset = is_lea ? i->displacement : 0;
	return true;
}

bool x86_instruction_is_padding(const struct instruction *i)
{
	return (i->map == MAP_ONE && !i->is_vector && (i->opcode == 0x90 || i->opcode == 0xcc)) ||
	       (i->map == MAP_0F && !i->is_vector && i->opcode == 0x1f);
}
