// SPDX-License-Identifier: MIT
#include "data_symbol.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <inttypes.h>
#include <string.h>

#include "demangle.h"
#include "memory.h"
#include "module.h"
#include "text.h"

enum { MAX_NAME_BYTES = 1024 };

struct search {
	struct module *module;
	uint64_t address; // in the file
	char *name;
	uint64_t offset;
};

// The file may have names of any bytes, and of megabytes.
static char *clean_name(const char *name)
{
	_cleanup_free_ char *bounded = memory_strndup(name, MAX_NAME_BYTES);
	_cleanup_free_ char *text = demangle_or_copy(bounded);

	return text_clean(text, strlen(text), MAX_NAME_BYTES);
}

static void search(void *context)
{
	struct search *search = context;
	Dwfl_Module *module = module_dwfl(search->module);
	const int count = module ? dwfl_module_getsymtab(module) : 0;

	for (int i = 1; i < count && !search->name; i++) {
		GElf_Sym symbol;
		GElf_Addr start;
		const char *name =
		    dwfl_module_getsym_info(module, i, &symbol, &start, NULL, NULL, NULL);
		if (!name || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT ||
		    search->address < start || search->address - start >= symbol.st_size)
			continue;
		search->offset = search->address - start;
		search->name = clean_name(name);
	}
}

// The module whose code lies next below the address, and where it is mapped.
static struct module *find_module(const struct modules *modules, uint64_t address,
                                  const struct module_mapping **ret)
{
	struct module *found = NULL;

	for (size_t i = 0; i < modules->count; i++)
		for (size_t j = 0; j < modules->items[i]->n_mappings; j++) {
			const struct module_mapping *mapping = &modules->items[i]->mappings[j];
			if (modules->items[i]->kind != MODULE_FILE || mapping->start > address ||
			    (found && mapping->start < (*ret)->start))
				continue;
			found = modules->items[i];
			*ret = mapping;
		}
	return found;
}

char *data_symbol_name(const struct modules *modules, uint64_t address)
{
	const struct module_mapping *mapping = NULL;
	struct search wanted = {.module = find_module(modules, address, &mapping)};

	if (!wanted.module)
		return NULL;
	wanted.address = address - mapping->bias;
	module_guard(wanted.module, search, &wanted, MODULE_FOR_NAMES);
	if (!wanted.name || wanted.offset == 0)
		return wanted.name;
	char *name = memory_printf("%s+0x%" PRIx64, wanted.name, wanted.offset);
	free(wanted.name);
	return name;
}
