// SPDX-License-Identifier: MIT
#include "rule_cache.h"

#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "arch.h"
#include "call_check.h"
#include "cfi.h"
#include "code_bytes.h"
#include "expression.h"
#include "frame_rule.h"
#include "function_range.h"
#include "gopclntab.h"
#include "language.h"
#include "memory.h"
#include "module.h"
#include "perf_map.h"
#include "rule.h"

enum { MAX_CODE_BYTES = 16 };

void rule_cache_deinit(struct rule_cache *cache)
{
	for (size_t i = 0; i < cache->count; i++) {
		if (cache->rules[i])
			rule_deinit(cache->rules[i]);
		free(cache->rules[i]);
	}
	for (size_t i = 0; i < cache->n_by_sp; i++)
		free(cache->by_sp[i]); // they have no expressions
	for (size_t i = 0; i < cache->n_made_from; i++)
		free(cache->made_from[i]);
	free(cache->made_from);
	free(cache->rules);
	free(cache->by_sp);
	*cache = (struct rule_cache){0};
}

// A rule to be made.
struct order {
	const struct code_address *code;
	bool is_call;
	struct rule *rule; // stays RULE_NONE if the module has none
};

// Code that no file holds, which is noted as it is read.
struct noted_code {
	const struct code_address *code;
	struct code_notes *notes;
};

// Of the functions below, those for files take the struct code_address of the order as their
// context, those for other code a struct noted_code.

static size_t read_file_code(void *context, uint64_t address, void *buffer, size_t size)
{
	return module_read_code(((const struct code_address *)context)->module, address, buffer,
	                        size);
}

static bool is_together_in_file(void *context, uint64_t a, uint64_t b)
{
	return file_code_goes_on(((const struct code_address *)context)->module, a, b);
}

static uint64_t find_start_in_file(void *context, unsigned int n)
{
	const struct code_address *code = context;

	return n == 0 ? function_range_find(code->module, code->address).function : 0;
}

static void note_jit_code(void *context, uint64_t address, const void *bytes, size_t size)
{
	code_notes_add(((struct noted_code *)context)->notes, address, bytes, size);
}

static size_t read_jit_code(void *context, uint64_t address, void *buffer, size_t size)
{
	return address_space_read_code(((const struct noted_code *)context)->code->space, address,
	                               buffer, size);
}

static bool is_together_in_jit_code(void *context, uint64_t a, uint64_t b)
{
	const struct perf_map *map =
	    ((const struct noted_code *)context)->code->space->jit_module->perf_map;

	return perf_map_find(map, a) == perf_map_find(map, b);
}

// Finds it by what the process says, or else by what the code looks like.
static uint64_t find_start_of_jit_code(void *context, unsigned int n)
{
	const struct code_address *order = ((const struct noted_code *)context)->code;
	const struct arch_code code = {.read = read_jit_code, .context = context};
	const uint64_t said =
	    perf_map_find_start(order->space->jit_module->perf_map, order->address);

	if (n == 0 && said)
		return said;
	return n == (said != 0) ? languages_find_start(&code, order->address) : 0;
}

static const struct arch_code in_file = {
    .read = read_file_code,
    .is_together = is_together_in_file,
    .find_start = find_start_in_file,
    .rule_at_jump = languages_rule_at_jump,
};

static const struct arch_code jit_code = {
    .read = read_jit_code,
    .is_together = is_together_in_jit_code,
    .find_start = find_start_of_jit_code,
    .note = note_jit_code,
    .rule_at_jump = languages_rule_at_jump,
};

// True if calls need not preserve the register.
static bool is_scratch(unsigned int number)
{
	const struct arch *arch = ARCH_NATIVE;

	return number != arch->sp && !(arch->preserved >> number & 1);
}

// Reads the rule from the code itself: for a return address, from the instruction after the call
// on. `notes` are taken of code that no file holds.
static bool read_code_rule(const struct code_address *code, bool is_call, struct code_notes *notes,
                           struct rule *ret)
{
	struct noted_code noted = {code, notes};
	const enum module_kind kind = code->module->kind;
	const bool is_jit = module_is_jit(code->module);
	const uint64_t address = code->address + is_call;
	struct arch_code arch_code = is_jit ? jit_code : in_file;

	arch_code.context = is_jit ? (void *)&noted : (void *)code;
	if (kind == MODULE_ANONYMOUS && !(code->space && code->space->jit_module == code->module))
		return false;
	if (kind == MODULE_IMAGE && !code->space)
		return false;
	const struct language_code asked = {.at = code,
	                                    .address = address,
	                                    .is_call = is_call,
	                                    .is_jit = is_jit,
	                                    .code = &arch_code};
	if (languages_rule(&asked, false, ret))
		return true;
	const bool found = ARCH_NATIVE->code_rule(&arch_code, address, is_call, ret);
	if (found && is_call && !is_jit && is_scratch(ret->cfa_register))
		ret->left_alone = ARCH_NATIVE->left_alone(&arch_code, address);
	return found;
}

// True if the CFA counts from what the frame pointer points to. That holds in SBCL's
// call_into_lisp_ during its call, but the table says it of the code after the call as well, where
// the called function has set the frame pointer back.
static bool counts_from_saved_fp(const struct rule *rule)
{
	enum { OP_DEREF = 0x06, OP_BREG0 = 0x70 }; // DWARF 5, 7.7.1
	const struct expression *cfa = rule->cfa_expression;

	return cfa && cfa->count > 1 && cfa->ops[0].atom == OP_BREG0 + ARCH_NATIVE->fp &&
	       cfa->ops[0].number == 0 && cfa->ops[1].atom == OP_DEREF;
}

// Forgets where the frame pointer is saved, if that is given relative to the frame pointer itself,
// which does not lead there any more in the last instructions of a function that has restored it.
static void forget_saved_fp(const struct code_address *code, struct rule *rule)
{
	enum { OP_BREG0 = 0x70, MAX_BYTES = 4 };
	const unsigned int fp = ARCH_NATIVE->fp;
	uint8_t bytes[MAX_BYTES];

	for (size_t i = 0; i < rule->n_registers; i++) {
		const struct register_rule *saved = &rule->registers[i];
		if (saved->number != fp || saved->kind != REGISTER_AT_EXPRESSION ||
		    saved->expression->ops[0].atom != OP_BREG0 + fp)
			continue;
		const size_t n = module_read_code(code->module, code->address, bytes, MAX_BYTES);
		if (!ARCH_NATIVE->has_restored_fp(bytes, n))
			return;
		free((void *)saved->expression);
		rule->registers[i] = rule->registers[--rule->n_registers];
		return;
	}
}

static bool refine_by_language(const struct code_address *code, bool is_call,
                               const struct arch_code *arch_code, const struct rule *row,
                               struct rule *ret)
{
	const struct language_code asked = {
	    .at = code,
	    .address = code->address + is_call,
	    .is_call = is_call,
	    .code = arch_code,
	};

	return languages_refine(&asked, row, ret);
}

// Reads the rule from the tables, or from the code itself where the tables are too general for it.
static bool read_table_rule(const struct code_address *code, bool is_call, struct rule *ret)
{
	struct arch_code arch_code = in_file;
	struct rule refined;

	if (!cfi_find_rule(code->module, code->address, ret))
		return false;
	if (ret->kind == RULE_ROW && !is_call)
		forget_saved_fp(code, ret);
	arch_code.context = (void *)code;
	if (ret->kind == RULE_ROW && is_call && counts_from_saved_fp(ret) &&
	    ARCH_NATIVE->code_rule(&arch_code, code->address + is_call, is_call, &refined) &&
	    !refined.is_jump) { // not certain, and nothing to be freed
		rule_deinit(ret);
		*ret = refined;
	}
	if (ret->kind == RULE_ROW && ret->is_general && !ret->signal_frame &&
	    (refine_by_language(code, is_call, &arch_code, ret, &refined) ||
	     ARCH_NATIVE->refine(&arch_code, code->address + is_call, ret, &refined))) {
		rule_deinit(ret);
		*ret = refined;
	}
	return true;
}

static void read_rule(void *context)
{
	const struct order *order = context;
	const struct arch *arch = ARCH_NATIVE;
	const struct code_address *code = order->code;
	uint8_t bytes[MAX_CODE_BYTES];
	uint64_t section_start;
	struct gopclntab *table;
	struct arch_code arch_code = in_file;

	const struct language_code asked = {
	    .at = code,
	    .address = code->address + order->is_call,
	    .is_call = order->is_call,
	    .code = &arch_code,
	};

	arch_code.context = (void *)code;
	// Trampolines first: Go's has CFI that describes a plain function.
	const size_t n = module_read_code(code->module, code->address, bytes, sizeof(bytes));
	if (arch->is_stack_start(bytes, n)) {
		*order->rule = (struct rule){.kind = RULE_ROOT};
		return;
	}
	if (arch->signal_rule(bytes, n, order->rule) ||
	    (!order->is_call && arch->pc_rule(&arch_code, code->address, order->rule)) ||
	    languages_rule(&asked, true, order->rule) ||
	    read_table_rule(code, order->is_call, order->rule) ||
	    ((table = module_gopclntab(code->module)) &&
	     gopclntab_rule(table, code->address, order->rule)) ||
	    (!order->is_call && arch->clone_rule(bytes, n, order->rule)))
		return;
	const char *section = module_section(code->module, code->address, &section_start);
	if (!section ||
	    !arch->section_rule(section, code->address - section_start, bytes, n, order->rule))
		read_code_rule(code, order->is_call, NULL, order->rule);
}

struct image_order {
	struct module *image;
	uint64_t address;
	struct rule *rule;
};

static void read_image_rule(void *context)
{
	const struct image_order *order = context;

	if (cfi_find_rule(order->image, order->address, order->rule) &&
	    order->rule->kind == RULE_ROW)
		order->rule->kind = RULE_IMAGE;
}

// Makes the rule from the tables that the process has made for debuggers, or from the code itself.
static void make_jit_rule(const struct code_address *code, bool is_call, struct code_notes *notes,
                          struct rule *ret)
{
	struct module *image = code->module;

	if (image->kind != MODULE_IMAGE)
		image = code->space ? address_space_find_image(code->space, code->address) : NULL;
	const struct image_order order = {image, code->address, ret};
	if (image && !module_guard(image, read_image_rule, (void *)&order, MODULE_FOR_RULES))
		*ret = (struct rule){.kind = RULE_NONE};
	if (ret->kind == RULE_NONE)
		read_code_rule(code, is_call, notes, ret);
}

static void make_rule(const struct code_address *code, bool is_call, struct code_notes *notes,
                      struct rule *ret)
{
	const struct order order = {code, is_call, ret};

	*ret = (struct rule){.kind = RULE_NONE};
	if (code->module->kind == MODULE_UNKNOWN)
		return;
	if (module_is_jit(code->module))
		make_jit_rule(code, is_call, notes, ret);
	else if (!module_guard(code->module, read_rule, (void *)&order, MODULE_FOR_RULES))
		*ret = (struct rule){.kind = RULE_NONE};
	if (ret->kind == RULE_NONE)
		ARCH_NATIVE->frame_pointer_rule(ret);
}

// Keeps where the code lay that the rule was made from, and what it was.
static void keep_notes(struct rule_cache *cache, uint32_t id, const struct code_notes *notes)
{
	struct code_bytes ***made_from = &cache->made_from;

	if (id >= cache->n_made_from) {
		*made_from = memory_grow(*made_from, &cache->made_from_capacity, (size_t)id + 1,
		                         sizeof(**made_from));
		while (cache->n_made_from <= id)
			(*made_from)[cache->n_made_from++] = NULL;
	}
	if (!(*made_from)[id])
		(*made_from)[id] = memory_alloc(sizeof(struct code_bytes));
	*(*made_from)[id] = code_notes_finish(notes);
}

static void make_room(struct rule ***rules, size_t *count, size_t *capacity, uint32_t id)
{
	if (id < *count)
		return;
	*rules = memory_grow(*rules, capacity, (size_t)id + 1, sizeof(**rules));
	while (*count <= id)
		(*rules)[(*count)++] = NULL;
}

const struct rule *rule_cache_get(struct rule_cache *cache, uint32_t id,
                                  const struct code_address *code, bool is_call)
{
	const bool is_jit = module_is_jit(code->module);

	make_room(&cache->rules, &cache->count, &cache->capacity, id);
	// JIT code may have become other code: when asked again, make it again, in its old place.
	if (!cache->rules[id] || is_jit) {
		struct rule *rule = cache->rules[id];
		if (!rule)
			rule = memory_alloc_zeroed(1, sizeof(*rule));
		rule_deinit(rule);
		struct code_notes notes = {.size = 0};
		make_rule(code, is_call, &notes, rule);
		if (is_jit)
			keep_notes(cache, id, &notes);
		cache->rules[id] = rule;
		cache->n_made++;
	}
	return cache->rules[id];
}

bool rule_cache_is_valid(const struct rule_cache *cache, uint32_t id, struct code_blocks *blocks,
                         const struct address_space *space)
{
	return id >= cache->n_made_from || !cache->made_from[id] ||
	       code_bytes_are_valid(cache->made_from[id], blocks, space);
}

const struct rule *rule_cache_get_by_sp(struct rule_cache *cache, uint32_t id,
                                        const struct code_address *code, bool is_call)
{
	make_room(&cache->by_sp, &cache->n_by_sp, &cache->by_sp_capacity, id);
	if (!cache->by_sp[id]) {
		cache->by_sp[id] = memory_alloc_zeroed(1, sizeof(*cache->by_sp[id]));
		frame_rule_by_sp(code, is_call, cache->rules[id], cache->by_sp[id]);
	}
	return cache->by_sp[id];
}

const struct rule *rule_cache_find_by_sp(const struct rule_cache *cache, uint32_t id)
{
	return id < cache->n_by_sp ? cache->by_sp[id] : NULL;
}
