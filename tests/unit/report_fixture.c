// SPDX-License-Identifier: MIT
#include "report_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "memory.h"

enum { TICK_NS = 10 * NS_PER_MS };

static struct module *add_module(struct report_fixture *fixture, enum module_kind kind,
                                 const char *path)
{
	struct module *module = memory_alloc_zeroed(1, sizeof(*module));

	module->kind = kind;
	module->path = memory_strdup(path);
	module->fd = -1;
	module->index = fixture->modules.count;
	if (kind == MODULE_FILE && !fixture->modules.program)
		fixture->modules.program = module;
	*array_push(fixture->modules.items, fixture->modules.count, fixture->modules.capacity) =
	    module;
	return module;
}

static void add_mapping(struct module *module, uint64_t start, uint64_t end, uint64_t file_offset,
                        uint64_t bias)
{
	*array_push(module->mappings, module->n_mappings, module->mappings_capacity) =
	    (struct module_mapping){start, end, file_offset, bias};
}

void report_fixture_init(struct report_fixture *fixture)
{
	*fixture = (struct report_fixture){0};
	fixture->profile.start_time_ns = 1700000000 * NS_PER_SECOND;
	fixture->profile.duration_ns = 2 * NS_PER_SECOND;
	fixture->profile.period_ns = TICK_NS;

	add_mapping(add_module(fixture, MODULE_ANONYMOUS, "[anon]"), 0x10000, 0x20000, 0, 0);
	struct module *prog = add_module(fixture, MODULE_FILE, "/usr/bin/prog");
	add_mapping(prog, 0x555555555000, 0x555555556000, 0x1000, 0x555555554000);
	add_mapping(prog, 0x555555557000, 0x555555558000, 0x2000, 0x555555555000);
	prog->build_id_size = 3;
	prog->build_id[0] = 0x0a;
	prog->build_id[1] = 0xbc;
	prog->build_id[2] = 0xff;
	struct module *libc = add_module(fixture, MODULE_FILE, "/usr/lib/libc.so.6");
	add_mapping(libc, 0x7ffff7d00000, 0x7ffff7e00000, 0x26000, 0x7ffff7cda000);
	add_module(fixture, MODULE_UNKNOWN, "[unknown]");

	fixture->report = (struct report){
	    .profile = &fixture->profile,
	    .modules = &fixture->modules,
	    .symbols = &fixture->symbols,
	    .pid = 100,
	};
}

void report_fixture_deinit(struct report_fixture *fixture)
{
	free(fixture->selected);
	for (size_t i = 0; i < fixture->modules.count; i++) {
		free(fixture->modules.items[i]->path);
		free(fixture->modules.items[i]->mappings);
		free(fixture->modules.items[i]->frame_names);
		free(fixture->modules.items[i]);
	}
	free(fixture->modules.items);
	for (size_t i = 0; i < fixture->symbols.n_functions; i++) {
		free(fixture->symbols.functions[i].name);
		free(fixture->symbols.functions[i].system_name);
		free(fixture->symbols.functions[i].file);
	}
	free(fixture->symbols.functions);
	free(fixture->symbols.lines);
	free(fixture->symbols.locations);
	profile_deinit(&fixture->profile);
}

uint32_t report_fixture_function(struct report_fixture *fixture, const char *name,
                                 const char *system_name, const char *file)
{
	struct symbols *symbols = &fixture->symbols;

	*array_push(symbols->functions, symbols->n_functions, symbols->functions_capacity) =
	    (struct function){
	        .name = memory_strdup(name),
	        .system_name = memory_strdup(system_name),
	        .file = memory_strdup(file),
	    };
	return symbols->n_functions - 1;
}

uint32_t report_fixture_location(struct report_fixture *fixture, uint32_t module, uint64_t address,
                                 const struct fixture_line *lines, size_t n)
{
	struct symbols *symbols = &fixture->symbols;
	const uint32_t location = profile_intern_location(&fixture->profile, module, address);

	symbols_fit(symbols, location + 1);
	symbols->locations[location] =
	    (struct location_lines){.first = symbols->n_lines, .count = n};
	for (size_t i = 0; i < n; i++)
		*array_push(symbols->lines, symbols->n_lines, symbols->lines_capacity) =
		    (struct line){lines[i].function, lines[i].line};
	return location;
}

uint32_t report_fixture_frame(struct report_fixture *fixture, const char *name)
{
	const uint32_t function = report_fixture_function(fixture, name, name, "");

	return report_fixture_location(fixture, 2, 0x26000 + fixture->profile.n_locations,
	                               &(struct fixture_line){function, 0}, 1);
}

uint32_t report_fixture_thread(struct report_fixture *fixture, int tid, const char *name)
{
	return profile_add_thread(&fixture->profile, 100, tid, name, 0);
}

void report_fixture_wait(struct report_fixture *fixture, uint32_t thread, enum thread_state state,
                         const uint32_t *location_ids, size_t n, enum stack_end end, uint32_t wait,
                         uint64_t ticks)
{
	const uint32_t stack = profile_intern_stack(&fixture->profile, location_ids, n, end, false);
	const int64_t now_ns = fixture->profile.threads[thread].last_ns + (int64_t)ticks * TICK_NS;

	profile_count(&fixture->profile, thread, stack, state, wait, ticks, now_ns);
}

void report_fixture_sample(struct report_fixture *fixture, uint32_t thread, enum thread_state state,
                           const uint32_t *location_ids, size_t n, enum stack_end end,
                           uint64_t ticks)
{
	report_fixture_wait(fixture, thread, state, location_ids, n, end, WAIT_NONE, ticks);
}

void report_fixture_fill(struct report_fixture *f)
{
	const uint32_t main_ = report_fixture_function(f, "main", "main", "/src/prog.c");
	const uint32_t inner =
	    report_fixture_function(f, "ns::in(int)", "_ZN2ns2inEi", "/src/in.h");
	const struct fixture_line main_line = {main_, 10};
	const struct fixture_line inlined_lines[] = {{inner, 3}, {main_, 12}};
	const uint32_t ids[] = {
	    report_fixture_location(f, 2, 0x27123, NULL, 0),
	    report_fixture_location(f, 1, 0x2010, inlined_lines, 2),
	    report_fixture_location(f, 1, 0x1020, &main_line, 1),
	    report_fixture_location(f, 0, 0x10008, NULL, 0),
	    report_fixture_location(f, 3, 0xdead, NULL, 0),
	};
	const uint32_t a = report_fixture_thread(f, 100, "prog");
	const uint32_t b = report_fixture_thread(f, 101, "bad thread;\xff\n");

	report_fixture_sample(f, a, THREAD_RUNNING, ids, 3, STACK_COMPLETE, 3);
	report_fixture_sample(f, b, THREAD_SLEEPING, ids, 3, STACK_COMPLETE, 4);
	report_fixture_sample(f, a, THREAD_RUNNING, ids + 3, 1, STACK_NO_RULE, 1);
	report_fixture_sample(f, b, THREAD_STOPPED, ids + 4, 1, STACK_UNREADABLE, 1);
	report_fixture_sample(f, b, THREAD_DISK, NULL, 0, STACK_NOT_SAMPLED, 2);
	report_fixture_sample(f, b, THREAD_RUNNABLE, NULL, 0, STACK_NOT_SAMPLED, 7);
}

void report_fixture_select(struct report_fixture *fixture, const struct selection *selection)
{
	free(fixture->selected);
	fixture->selected = selection_apply(selection, &fixture->profile, &fixture->modules,
	                                    &fixture->symbols, fixture->report.syscalls);
	fixture->report.selected = fixture->selected;
}

char *report_fixture_write(const struct report_fixture *fixture, const struct writer *writer,
                           size_t *ret_size)
{
	char *bytes = NULL;
	FILE *stream = open_memstream(&bytes, ret_size);

	if (!stream || writer->write(&fixture->report, stream) || fclose(stream) != 0)
		abort();
	return bytes;
}
