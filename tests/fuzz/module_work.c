// SPDX-License-Identifier: MIT
#include "module_work.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "address_space.h"
#include "fuzz.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "rule_cache.h"
#include "symbolize.h"
#include "writer.h"

static int make_file(const void *bytes, size_t size)
{
	const int fd = memfd_create("module", MFD_CLOEXEC);

	expect(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	return fd;
}

static void ask_for_rules(struct module *module, struct profile *profile, const uint64_t *addresses,
                          size_t n)
{
	struct rule_cache rules = {0};

	for (size_t i = 0; i < n; i++) {
		const struct mapping mapping = {.file_offset = addresses[i], .executable = i & 2};
		const struct code_address code = {
		    .module = module,
		    .address = i % 2 ? addresses[i] : module_address(module, &mapping, i),
		};
		const uint32_t id = profile_intern_location(profile, module->index, code.address);
		expect(rule_cache_get(&rules, id, &code, i % 3) != NULL);
	}
	rule_cache_deinit(&rules);
}

static void count_stacks(struct profile *profile, uint32_t thread)
{
	for (uint32_t id = 0; id < profile->n_locations; id++) {
		const uint32_t stack = profile_intern_stack(profile, &id, 1, STACK_COMPLETE, false);
		profile_count(profile, thread, stack, THREAD_RUNNING, WAIT_NONE, 1, 1000 + id);
	}
}

static void write_all(const struct report *report)
{
	static const char *const formats[] = {"folded", "pprof"};

	for (size_t i = 0; i < array_size(formats); i++) {
		_cleanup_free_ char *text = NULL;
		size_t size;
		FILE *stream = open_memstream(&text, &size);
		expect(stream && !writer_by_name(formats[i])->write(report, stream));
		fclose(stream);
		expect(size > 0 || report->profile->n_samples == 0);
	}
}

static void write_profiles(struct profile *profile, struct modules *modules)
{
	const struct symbolize_options options = {.inlines = true};
	const char *const comments[] = {NULL};
	struct symbols symbols;

	symbolize(profile, modules, &options, &symbols);
	expect(symbols.n_locations == profile->n_locations);
	write_all(&(struct report){
	    .profile = profile,
	    .modules = modules,
	    .symbols = &symbols,
	    .comments = comments,
	    .pid = 1,
	    .lines = true,
	});
	symbols_deinit(&symbols);
}

// The guard is for libdw's faults. What fails in this program's own code is to be found.
static void check_fault(const struct module *module)
{
	Dl_info fault, own;

	if (!module->unreadable || strcmp(module->unreadable, guard_end_text(GUARD_FAULT)) != 0 ||
	    guard_last_pc() == 0)
		return;
	expect(dladdr((void *)module_work, &own) != 0);
	if (dladdr((void *)guard_last_pc(), &fault) == 0)
		return;
	if (fault.dli_fbase == own.dli_fbase)
		abort();
	fprintf(stderr, "endured: a fault in %s at %#zx\n", fault.dli_fname,
	        (size_t)(guard_last_pc() - (uintptr_t)fault.dli_fbase));
}

void module_work(const void *file, size_t size, const uint64_t *addresses, size_t n_addresses)
{
	struct modules modules = {0};
	struct profile profile = {0};
	struct module *module =
	    modules_add(&modules, MODULE_FILE, "/nowhere/module", 1, 1, make_file(file, size));

	const uint32_t thread = profile_add_thread(&profile, 1, 1, "thread", 0);
	ask_for_rules(module, &profile, addresses, n_addresses);
	count_stacks(&profile, thread);
	write_profiles(&profile, &modules);
	check_fault(module);
	profile_deinit(&profile);
	modules_deinit(&modules);
}
