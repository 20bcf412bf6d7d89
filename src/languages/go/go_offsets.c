// SPDX-License-Identifier: MIT
#include "go_offsets.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#include "memory.h"
#include "module.h"

enum {
	MAX_UNITS = 100000,
	MAX_TYPES = 1000000, // of all units together
	MAX_MEMBERS = 1000,
	MAX_TYPEDEFS = 8,
	MAX_OFFSET = 8192,
	WORD = 8,
};

#define NONE GO_NO_FIELD

// Go 1.16 to 1.27, by their debug information (linux/amd64).
static const struct {
	int minor;
	struct go_offsets offsets;
} versions[] = {
    {16, {0,   8,   48,  56, 64,  104, 112, 120, NONE, 144, 152, 176, NONE, 280,
          296, 312, 216, 72, 192, 80,  168, 344, 24,   64,  16,  40,  136}},
    {17, {0,   8,   48,  56, 64,  104, 112, 120, NONE, 144, 152, 176, 189, 296,
          312, 328, 232, 72, 192, 80,  168, 360, 24,   64,  8,   24,  32}},
    {18, {0,   8,   48,  56, 64,  104, 112, 120, NONE, 144, 152, 176, 189, 296,
          312, 328, 232, 72, 192, 80,  168, 360, 24,   64,  8,   24,  32}},
    {19, {0,   8,   48,  56, 64,  104, 112, 120, NONE, 144, 152, 176, 189, 296,
          312, 328, 232, 72, 192, 80,  168, 360, 24,   64,  8,   24,  32}},
    {20, {0,   8,   48,  56, 64,  104, 112, 120, NONE, 144, 152, 176, 189, 296,
          312, 328, 232, 72, 192, 80,  168, 360, 24,   64,  8,   24,  32}},
    {21, {0,   8,   48,  56, 64,  104, 112, 120, NONE, 144, 152, 176, 188, 280,
          296, 312, 208, 72, 192, 80,  168, 344, 24,   64,  8,   32,  40}},
    {22, {0,   8,   48,  56, 64,  104, 112, 120, NONE, 144, 152, 176, 191, 280,
          296, 312, 208, 72, 192, 80,  168, 344, 24,   64,  8,   32,  40}},
    {23, {0,   8,   48,  56, 64,  104, 112, 120, 128, 152, 160, 184, 199, 288,
          304, 320, 216, 72, 192, 80,  176, 352, 24,  64,  8,   32,  40}},
    {24, {0,   8,   48,  56, 64,  104, 112, 120, 128, 152, 160, 184, 199, 288,
          304, 320, 216, 72, 192, 80,  176, 352, 24,  64,  8,   32,  40}},
    {25, {0,   8,   48,  56, 64,  96, 104, 112, 120, 144, 152, 176, 191, 280,
          296, 312, 208, 64, 184, 80, 168, 344, 24,  64,  8,   32,  40}},
    {26, {0,   8,   48,  56, 64,  96, 104, 112, 120, 144, 152, 176, 191, 288,
          304, 320, 208, 64, 184, 96, 168, 352, 32,  72,  8,   32,  40}},
    {27, {0,   8,   48,  56, 64,  96, 104, 112, 120, 144, 152, 176, 191, 288,
          304, 320, 208, 64, 184, 96, 168, 352, 32,  72,  8,   32,  40}},
};

bool go_offsets_of_version(int minor, struct go_offsets *ret)
{
	for (size_t i = 0; i < array_size(versions); i++)
		if (versions[i].minor == minor) {
			*ret = versions[i].offsets;
			return true;
		}
	return false;
}

int go_offsets_newest(struct go_offsets *ret)
{
	const size_t last = array_size(versions) - 1;

	*ret = versions[last].offsets;
	return versions[last].minor;
}

size_t go_offsets_g_bytes(const struct go_offsets *offsets)
{
	const uint16_t fields[] = {
	    offsets->low,          offsets->high,       offsets->m,          offsets->sp,
	    offsets->pc,           offsets->bp,         offsets->syscall_sp, offsets->syscall_pc,
	    offsets->syscall_bp,   offsets->status,     offsets->goid,       offsets->wait_reason,
	    offsets->tracking_seq, offsets->creator_pc, offsets->start_pc,   offsets->waiting,
	    offsets->locked_m,     offsets->wait_since, offsets->labels,
	};
	size_t last = 0;

	for (size_t i = 0; i < array_size(fields); i++)
		if (fields[i] != NONE && fields[i] > last)
			last = fields[i];
	return last + WORD;
}

// The type of a member, without its other names.
static bool find_type(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Die type = *die, next;
	Dwarf_Attribute attribute;

	for (int i = 0; i < MAX_TYPEDEFS; i++) {
		if (!dwarf_attr(&type, DW_AT_type, &attribute) ||
		    !dwarf_formref_die(&attribute, &next))
			return false;
		type = next;
		if (dwarf_tag(&type) != DW_TAG_typedef) {
			*ret = type;
			return true;
		}
	}
	return false;
}

static uint16_t offset_of(Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr(member, DW_AT_data_member_location, &attribute))
		return NONE;
	// Go's compiler writes an expression, up to 1.24.
	if (dwarf_formudata(&attribute, &offset) != 0) {
		if (dwarf_getlocation(&attribute, &ops, &n) != 0 || n != 1 ||
		    ops[0].atom != DW_OP_plus_uconst)
			return NONE;
		offset = ops[0].number;
	}
	return offset < MAX_OFFSET ? (uint16_t)offset : NONE;
}

// The structure's member of that name; false: it has none.
static bool find_member(Dwarf_Die *structure, const char *name, uint16_t *ret_offset,
                        Dwarf_Die *ret_type)
{
	Dwarf_Die member;

	if (dwarf_child(structure, &member) != 0)
		return false;
	for (int i = 0; i < MAX_MEMBERS; i++) {
		const char *found = dwarf_diename(&member);
		if (dwarf_tag(&member) == DW_TAG_member && found && strcmp(found, name) == 0) {
			*ret_offset = offset_of(&member);
			return *ret_offset != NONE && find_type(&member, ret_type);
		}
		if (dwarf_siblingof(&member, &member) != 0)
			return false;
	}
	return false;
}

struct wanted {
	const char *name, *inner; // inner: a member of the member; NULL: it is not a structure
	uint16_t *ret;
	bool is_optional;
};

// One that has become a structure around the same value since (atomic.Uint32) is in its last
// member, "value".
static void add_value(Dwarf_Die *type, uint16_t *offset)
{
	Dwarf_Die inner;
	uint16_t at;

	if (dwarf_tag(type) == DW_TAG_structure_type && find_member(type, "value", &at, &inner))
		*offset += at;
}

static bool read_members(Dwarf_Die *structure, const struct wanted *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		Dwarf_Die type, inner;
		uint16_t offset = NONE, inside = 0;
		bool found = find_member(structure, wanted[i].name, &offset, &type);
		if (found && wanted[i].inner)
			found = find_member(&type, wanted[i].inner, &inside, &inner);
		else if (found)
			add_value(&type, &offset);
		if (!found && !wanted[i].is_optional)
			return false;
		*wanted[i].ret = found ? (uint16_t)(offset + inside) : NONE;
	}
	return true;
}

static bool read_g(Dwarf_Die *structure, struct go_offsets *ret)
{
	const struct wanted wanted[] = {
	    {"stack", "lo", &ret->low, false},
	    {"stack", "hi", &ret->high, false},
	    {"m", NULL, &ret->m, false},
	    {"sched", "sp", &ret->sp, false},
	    {"sched", "pc", &ret->pc, false},
	    {"sched", "bp", &ret->bp, false},
	    {"syscallsp", NULL, &ret->syscall_sp, false},
	    {"syscallpc", NULL, &ret->syscall_pc, false},
	    {"syscallbp", NULL, &ret->syscall_bp, true},
	    {"atomicstatus", NULL, &ret->status, false},
	    {"goid", NULL, &ret->goid, false},
	    {"waitreason", NULL, &ret->wait_reason, false},
	    {"trackingSeq", NULL, &ret->tracking_seq, true},
	    {"gopc", NULL, &ret->creator_pc, false},
	    {"startpc", NULL, &ret->start_pc, false},
	    {"waiting", NULL, &ret->waiting, false},
	    {"lockedm", NULL, &ret->locked_m, false},
	    {"waitsince", NULL, &ret->wait_since, true},
	    {"labels", NULL, &ret->labels, true},
	};

	return read_members(structure, wanted, array_size(wanted));
}

static bool read_m(Dwarf_Die *structure, struct go_offsets *ret)
{
	const struct wanted wanted[] = {
	    {"procid", NULL, &ret->thread_id, false},
	    {"curg", NULL, &ret->current, false},
	};

	return read_members(structure, wanted, array_size(wanted));
}

static bool read_poll(Dwarf_Die *structure, struct go_offsets *ret)
{
	const struct wanted wanted[] = {
	    {"fd", NULL, &ret->poll_fd, false},
	    {"rg", NULL, &ret->poll_reader, false},
	    {"wg", NULL, &ret->poll_writer, false},
	};

	return read_members(structure, wanted, array_size(wanted));
}

// The structures that were found.
struct found {
	bool g, m, poll;
};

// Looks through the unit's types for the structures; *left is how many may be looked at.
static bool read_unit(Dwarf_Die *unit, struct go_offsets *ret, struct found *found, int *left)
{
	Dwarf_Die type;

	if (dwarf_child(unit, &type) != 0)
		return false;
	while ((*left)-- > 0) {
		const char *name =
		    dwarf_tag(&type) == DW_TAG_structure_type ? dwarf_diename(&type) : NULL;
		if (name && strcmp(name, "runtime.g") == 0)
			found->g = read_g(&type, ret);
		else if (name && strcmp(name, "runtime.m") == 0)
			found->m = read_m(&type, ret);
		else if (name && strcmp(name, "runtime.pollDesc") == 0)
			found->poll = read_poll(&type, ret);
		if (found->g && found->m && found->poll)
			return true;
		if (dwarf_siblingof(&type, &type) != 0)
			return false;
	}
	return false;
}

bool go_offsets_of_module(struct module *module, struct go_offsets *ret)
{
	uint64_t bias;
	Dwarf *dwarf = module_dwarf(module, &bias);
	struct go_offsets offsets = {
	    .channel = NONE,
	    .element = NONE,
	    .next_waiting = NONE,
	    .labels = NONE,
	    .poll_fd = NONE,
	    .poll_reader = NONE,
	    .poll_writer = NONE,
	};
	struct found found = {0};
	Dwarf_Off at = 0, next;
	int left = MAX_TYPES;
	size_t header;

	for (int i = 0; dwarf && i < MAX_UNITS; i++, at = next) {
		Dwarf_Die unit;
		if (dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL) != 0)
			break;
		if (dwarf_offdie(dwarf, at + header, &unit) &&
		    read_unit(&unit, &offsets, &found, &left))
			break;
	}
	if (!found.g || !found.m)
		return false;
	*ret = offsets;
	return true;
}
