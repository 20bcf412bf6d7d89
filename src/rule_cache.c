#include "rule_cache.h"

#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "cfi.h"
#include "go_runtime.h"
#include "memory.h"
#include "module.h"
#include "rule.h"

enum { MAX_CODE_BYTES = 16 };

void rule_cache_deinit(struct rule_cache *cache)
{
	for (size_t i = 0; i < cache->count; i++) {
		if (cache->rules[i])
			rule_deinit(cache->rules[i]);
		free(cache->rules[i]);
	}
	free(cache->rules);
	*cache = (struct rule_cache){0};
}

static void make_rule(const struct code_address *code, bool is_call, struct rule *ret)
{
	const struct arch *arch = ARCH_NATIVE;
	struct module *module = code->module;
	uint8_t bytes[MAX_CODE_BYTES];
	uint64_t section_start;

	*ret = (struct rule){.kind = RULE_NONE};
	if (module->kind == MODULE_UNKNOWN)
		return;
	if (module->kind == MODULE_ANONYMOUS) {
		arch->frame_pointer_rule(ret);
		return;
	}
	// Trampolines first: Go's has CFI that describes a plain function.
	const size_t n = module_read_code(module, code->address, bytes, sizeof(bytes));
	if (arch->signal_rule(bytes, n, ret) ||
	    (is_call && go_runtime_rule(module, code->address, ret)) ||
	    cfi_find_rule(module, code->address, ret) ||
	    (!is_call && arch->clone_rule(bytes, n, ret)))
		return;
	const char *section = module_section(module, code->address, &section_start);
	if (section && arch->section_rule(section, code->address - section_start, bytes, n, ret))
		return;
	arch->frame_pointer_rule(ret);
}

const struct rule *rule_cache_get(struct rule_cache *cache, uint32_t id,
                                  const struct code_address *code, bool is_call)
{
	if (id >= cache->count) {
		cache->rules = memory_grow(cache->rules, &cache->capacity, (size_t)id + 1,
		                           sizeof(*cache->rules));
		while (cache->count <= id)
			cache->rules[cache->count++] = NULL;
	}
	if (!cache->rules[id]) {
		struct rule *rule = memory_alloc_zeroed(1, sizeof(*rule));
		make_rule(code, is_call, rule);
		cache->rules[id] = rule;
		cache->n_made++;
	}
	return cache->rules[id];
}
