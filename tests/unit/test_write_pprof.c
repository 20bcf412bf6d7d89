// SPDX-License-Identifier: MIT
// The pprof writer, read back by protobuf-c, which shares nothing with the emitter.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "clock.h"
#include "memory.h"
#include "profile.pb-c.h"
#include "protobuf.h"
#include "report_fixture.h"
#include "text.h"
#include "unit.h"

typedef Perftools__Profiles__Profile Profile;
typedef Perftools__Profiles__Sample Sample;
typedef Perftools__Profiles__Location Location;
typedef Perftools__Profiles__Mapping Mapping;
typedef Perftools__Profiles__Function Function;

enum { MAX_PROFILE_BYTES = 1 << 22, AUTODETECT = 15 + 32 };

static Profile *unpack(const char *bytes, size_t size)
{
	_cleanup_free_ unsigned char *message = memory_alloc(MAX_PROFILE_BYTES);
	z_stream zlib = {
	    .next_in = (unsigned char *)bytes,
	    .avail_in = size,
	    .next_out = message,
	    .avail_out = MAX_PROFILE_BYTES,
	};

	assert_memory_equal(bytes, "\x1f\x8b", 2);
	assert_int_equal(inflateInit2(&zlib, AUTODETECT), Z_OK);
	assert_int_equal(inflate(&zlib, Z_FINISH), Z_STREAM_END);
	assert_int_equal(zlib.avail_in, 0);
	inflateEnd(&zlib);
	Profile *profile = perftools__profiles__profile__unpack(NULL, zlib.total_out, message);
	assert_non_null(profile);
	return profile;
}

static const char *text(const Profile *profile, int64_t string)
{
	assert_in_range(string, 0, profile->n_string_table - 1);
	return profile->string_table[string];
}

static const Location *location(const Profile *profile, uint64_t id)
{
	assert_in_range(id, 1, profile->n_location);
	return profile->location[id - 1];
}

static const Function *function(const Profile *profile, uint64_t id)
{
	assert_in_range(id, 1, profile->n_function);
	return profile->function[id - 1];
}

static void check_strings(const Profile *profile)
{
	assert_string_equal(text(profile, 0), "");
	for (size_t i = 0; i < profile->n_string_table; i++) {
		const char *string = profile->string_table[i];
		assert_true(text_is_clean(string, strlen(string)));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(string, profile->string_table[j]);
	}
}

static void check_functions(const Profile *profile)
{
	for (size_t i = 0; i < profile->n_function; i++) {
		const Function *f = profile->function[i];
		assert_int_equal(f->id, i + 1);
		assert_string_not_equal(text(profile, f->name), "");
		text(profile, f->system_name);
		text(profile, f->filename);
		for (size_t j = 0; j < i; j++) {
			const Function *g = profile->function[j];
			assert_false(f->name == g->name && f->system_name == g->system_name &&
			             f->filename == g->filename && f->start_line == g->start_line);
		}
	}
}

static void check_locations(const Profile *profile)
{
	for (size_t i = 0; i < profile->n_location; i++) {
		const Location *l = profile->location[i];
		assert_int_equal(l->id, i + 1);
		assert_in_range(l->mapping_id, 0, profile->n_mapping);
		assert_true(l->n_line > 0);
		for (size_t j = 0; j < l->n_line; j++)
			function(profile, l->line[j]->function_id);
		if (l->mapping_id == 0)
			continue;
		const Mapping *mapping = profile->mapping[l->mapping_id - 1];
		assert_in_range(l->address, mapping->memory_start, mapping->memory_limit - 1);
	}
}

static void check_samples(const Profile *profile)
{
	_cleanup_free_ bool *used = memory_alloc_zeroed(profile->n_location, sizeof(*used));

	for (size_t i = 0; i < profile->n_sample; i++) {
		const Sample *sample = profile->sample[i];
		assert_int_equal(sample->n_value, profile->n_sample_type);
		assert_true(sample->n_location_id > 0);
		for (size_t j = 0; j < sample->n_location_id; j++) {
			location(profile, sample->location_id[j]);
			used[sample->location_id[j] - 1] = true;
		}
	}
	for (size_t i = 0; i < profile->n_location; i++)
		assert_true(used[i]);
}

// What go tool pprof and Parca ask of any profile.
static void check_valid(const Profile *profile)
{
	check_strings(profile);
	for (size_t i = 0; i < profile->n_mapping; i++)
		assert_int_equal(profile->mapping[i]->id, i + 1);
	check_functions(profile);
	check_locations(profile);
	check_samples(profile);
}

static Profile *write_and_read(const struct report_fixture *fixture)
{
	size_t size;
	_cleanup_free_ char *bytes = report_fixture_write(fixture, &writer_pprof, &size);
	Profile *profile = unpack(bytes, size);

	check_valid(profile);
	return profile;
}

static void free_profile(Profile *profile)
{
	perftools__profiles__profile__free_unpacked(profile, NULL);
}

// The names of a sample's frames, leaf first, as "a|b,c|": b inlined into c.
static void assert_stack(const Profile *profile, size_t i, const char *expected)
{
	_cleanup_free_ char *names = memory_strdup("");

	for (size_t j = 0; j < profile->sample[i]->n_location_id; j++) {
		const Location *l = location(profile, profile->sample[i]->location_id[j]);
		for (size_t k = 0; k < l->n_line; k++) {
			const Function *f = function(profile, l->line[k]->function_id);
			char *longer = memory_printf("%s%s%s", names, text(profile, f->name),
			                             k + 1 < l->n_line ? "," : "|");
			free(names);
			names = longer;
		}
	}
	assert_string_equal(names, expected);
}

static void assert_values(const Sample *sample, int64_t count, int64_t cpu_ms, int64_t wall_ms)
{
	assert_int_equal(sample->value[0], count);
	assert_int_equal(sample->value[1], cpu_ms * NS_PER_MS);
	assert_int_equal(sample->value[2], wall_ms * NS_PER_MS);
}

static void assert_labels(const Profile *profile, const Sample *sample, int64_t tid,
                          const char *thread, const char *state, const char *kind)
{
	assert_int_equal(sample->n_label, 5);
	assert_string_equal(text(profile, sample->label[0]->key), "pid");
	assert_int_equal(sample->label[0]->num, 100);
	assert_string_equal(text(profile, sample->label[1]->key), "tid");
	assert_int_equal(sample->label[1]->num, tid);
	assert_string_equal(text(profile, sample->label[2]->key), "thread");
	assert_string_equal(text(profile, sample->label[2]->str), thread);
	assert_string_equal(text(profile, sample->label[3]->key), "state");
	assert_string_equal(text(profile, sample->label[3]->str), state);
	assert_string_equal(text(profile, sample->label[4]->key), "kind");
	assert_string_equal(text(profile, sample->label[4]->str), kind);
}

static void assert_value_type(const Profile *profile, const Perftools__Profiles__ValueType *type,
                              const char *name, const char *unit)
{
	assert_string_equal(text(profile, type->type), name);
	assert_string_equal(text(profile, type->unit), unit);
}

static void test_header(void **state)
{
	static const char *const comments[] = {"first\n", "second", NULL};
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	f.report.comments = comments;
	Profile *p = write_and_read(&f);
	assert_int_equal(p->n_sample_type, 3);
	assert_value_type(p, p->sample_type[0], "samples", "count");
	assert_value_type(p, p->sample_type[1], "cpu", "nanoseconds");
	assert_value_type(p, p->sample_type[2], "wall", "nanoseconds");
	assert_string_equal(text(p, p->default_sample_type), "wall");
	assert_value_type(p, p->period_type, "wall", "nanoseconds");
	assert_int_equal(p->period, 10 * NS_PER_MS);
	assert_int_equal(p->time_nanos, 1700000000 * NS_PER_SECOND);
	assert_int_equal(p->duration_nanos, 2 * NS_PER_SECOND);
	assert_int_equal(p->n_comment, 3);
	assert_string_equal(text(p, p->comment[0]), "first_");
	assert_string_equal(text(p, p->comment[1]), "second");
	assert_non_null(strstr(text(p, p->comment[2]), "Each tick takes one sample"));
	// Without samples the program itself is still named.
	assert_int_equal(p->n_sample + p->n_location + p->n_function, 0);
	assert_int_equal(p->n_mapping, 1);
	assert_string_equal(text(p, p->mapping[0]->filename), "/usr/bin/prog");
	free_profile(p);
	report_fixture_deinit(&f);
}

static void test_samples(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	report_fixture_fill(&f);
	Profile *p = write_and_read(&f);
	assert_int_equal(p->n_sample, 6);
	assert_stack(p, 0, "[libc.so.6+0x27123]|ns::in(int),main|main|");
	assert_stack(p, 1, "[libc.so.6+0x27123]|ns::in(int),main|main|");
	assert_stack(p, 2, "[anon+0x10008]|[truncated: no unwinding rule]|");
	assert_stack(p, 3, "[unknown+0xdead]|[truncated: unreadable memory]|");
	assert_stack(p, 4, "[truncated: stack not available]|");
	assert_values(p->sample[0], 3, 30, 30);
	assert_values(p->sample[1], 4, 0, 40);
	assert_values(p->sample[4], 2, 0, 20);
	assert_values(p->sample[5], 7, 0, 70);
	assert_labels(p, p->sample[0], 100, "prog", "running", "running");
	assert_labels(p, p->sample[1], 101, "bad thread;\xef\xbf\xbd_", "sleeping", "event");
	assert_labels(p, p->sample[3], 101, "bad thread;\xef\xbf\xbd_", "stopped", "stopped");
	assert_labels(p, p->sample[4], 101, "bad thread;\xef\xbf\xbd_", "disk", "file");
	assert_labels(p, p->sample[5], 101, "bad thread;\xef\xbf\xbd_", "runnable", "runnable");
	free_profile(p);
	report_fixture_deinit(&f);
}

static void test_locations_and_mappings(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	report_fixture_fill(&f);
	Profile *p = write_and_read(&f);
	const uint64_t *ids = p->sample[0]->location_id;
	assert_int_equal(location(p, ids[0])->address, 0x7ffff7d01123);
	assert_int_equal(location(p, ids[1])->address, 0x555555557010);
	assert_int_equal(location(p, ids[1])->line[0]->line, 3);
	assert_int_equal(location(p, ids[1])->line[1]->line, 12);
	assert_int_equal(location(p, ids[2])->address, 0x555555555020);
	assert_int_equal(location(p, ids[2])->mapping_id, 1);
	assert_int_equal(location(p, p->sample[2]->location_id[0])->address, 0x10008);
	assert_int_equal(location(p, p->sample[3]->location_id[0])->address, 0xdead);
	assert_int_equal(location(p, p->sample[3]->location_id[0])->mapping_id, 0);

	// The program; then in the order of use: libc, the program's second segment, anonymous
	// code.
	assert_int_equal(p->n_mapping, 4);
	assert_string_equal(text(p, p->mapping[0]->filename), "/usr/bin/prog");
	assert_string_equal(text(p, p->mapping[0]->build_id), "0abcff");
	assert_int_equal(p->mapping[0]->memory_start, 0x555555555000);
	assert_int_equal(p->mapping[0]->file_offset, 0x1000);
	assert_true(p->mapping[0]->has_functions && p->mapping[0]->has_filenames);
	assert_true(p->mapping[0]->has_line_numbers && !p->mapping[0]->has_inline_frames);
	assert_string_equal(text(p, p->mapping[1]->filename), "/usr/lib/libc.so.6");
	assert_string_equal(text(p, p->mapping[1]->build_id), "");
	assert_true(p->mapping[1]->has_functions && !p->mapping[1]->has_filenames);
	assert_int_equal(p->mapping[2]->memory_start, 0x555555557000);
	assert_true(p->mapping[2]->has_inline_frames);
	assert_string_equal(text(p, p->mapping[3]->filename), "[anon]");
	free_profile(p);
	report_fixture_deinit(&f);
}

static void test_selection_leaves_nothing_unused(void **state)
{
	struct report_fixture f;
	regex_t regex;

	(void)state;
	report_fixture_init(&f);
	report_fixture_fill(&f);
	assert_int_equal(regcomp(&regex, "bad", REG_EXTENDED | REG_NOSUB), 0);
	f.profile.samples[1].thread = 0; // what is left is without libc
	report_fixture_select(&f, &(struct selection){
	                              .states = ~(1u << THREAD_RUNNING),
	                              .regexes = {[SELECTION_THREAD] = &regex},
	                          });
	Profile *p = write_and_read(&f);
	assert_int_equal(p->n_sample, 3);
	assert_stack(p, 0, "[unknown+0xdead]|[truncated: unreadable memory]|");
	assert_stack(p, 1, "[truncated: stack not available]|");
	assert_int_equal(p->n_location, 3);
	assert_int_equal(p->n_function, 3);
	assert_int_equal(p->n_mapping, 1); // the program, always
	for (size_t i = 0; i < p->n_string_table; i++)
		assert_null(strstr(p->string_table[i], "libc"));
	free_profile(p);
	regfree(&regex);
	report_fixture_deinit(&f);
}

static void test_thread_roots(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	report_fixture_fill(&f);
	f.report.thread_roots = true;
	Profile *p = write_and_read(&f);
	assert_stack(p, 0, "[libc.so.6+0x27123]|ns::in(int),main|main|prog|");
	assert_stack(p, 3,
	             "[unknown+0xdead]|[truncated: unreadable memory]|bad thread;\xef\xbf\xbd_|");
	free_profile(p);
	report_fixture_deinit(&f);
}

// Equal functions are one; a raw name that looks like C++ must not be shortened by pprof.
static void test_functions(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	const uint32_t ids[] = {
	    report_fixture_frame(&f, "plain"),
	    report_fixture_frame(&f, "plain"),
	    report_fixture_frame(&f, "main.Map[go.shape.int]"),
	};
	const uint32_t thread = report_fixture_thread(&f, 1, "t");
	report_fixture_sample(&f, thread, THREAD_RUNNING, ids, 3, STACK_COMPLETE, 1);
	Profile *p = write_and_read(&f);
	assert_int_equal(p->n_location, 3);
	assert_int_equal(p->n_function, 2);
	assert_string_equal(text(p, p->function[0]->system_name), "plain");
	assert_string_equal(text(p, p->function[1]->name), "main.Map[go.shape.int]");
	assert_string_equal(text(p, p->function[1]->system_name), "");
	free_profile(p);
	report_fixture_deinit(&f);
}

// Many distinct stacks: more than one buffer of everything, and ids of several bytes.
static void test_many_samples(void **state)
{
	enum { N = 3000 };
	struct report_fixture f;
	uint32_t ids[N];

	(void)state;
	report_fixture_init(&f);
	const uint32_t thread = report_fixture_thread(&f, 1, "t");
	for (size_t i = 0; i < N; i++) {
		_cleanup_free_ char *name = memory_printf("function_%zu", i);
		ids[i] = report_fixture_frame(&f, name);
	}
	for (size_t i = 0; i + 30 <= N; i++)
		report_fixture_sample(&f, thread, THREAD_RUNNING, ids + i, 30, STACK_COMPLETE,
		                      i + 1);
	Profile *p = write_and_read(&f);
	assert_int_equal(p->n_sample, N - 29);
	for (size_t i = 0; i < p->n_sample; i++) {
		const Location *leaf = location(p, p->sample[i]->location_id[0]);
		_cleanup_free_ char *name = memory_printf("function_%zu", i);
		assert_string_equal(text(p, function(p, leaf->line[0]->function_id)->name), name);
		assert_int_equal(p->sample[i]->n_location_id, 30);
		assert_int_equal(p->sample[i]->value[0], i + 1);
	}
	free_profile(p);
	report_fixture_deinit(&f);
}

static void test_varints(void **state)
{
	static const struct {
		uint64_t value;
		const char *bytes;
		size_t size;
	} cases[] = {
	    {0, "\x00", 1},
	    {127, "\x7f", 1},
	    {128, "\x80\x01", 2},
	    {300, "\xac\x02", 2},
	    {UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},
	};
	struct protobuf buffer = {0};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		protobuf_clear(&buffer);
		protobuf_varint(&buffer, cases[i].value);
		assert_int_equal(buffer.size, cases[i].size);
		assert_memory_equal(buffer.bytes, cases[i].bytes, cases[i].size);
	}
	protobuf_clear(&buffer);
	protobuf_int(&buffer, 1, 0); // a default: nothing
	protobuf_int(&buffer, 1, 150);
	protobuf_string(&buffer, 2, "testing");
	protobuf_string(&buffer, 16, "");
	assert_int_equal(buffer.size, 15);
	assert_memory_equal(buffer.bytes, "\x08\x96\x01\x12\x07testing\x82\x01\x00", 15);
	protobuf_deinit(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_header),
	    cmocka_unit_test(test_samples),
	    cmocka_unit_test(test_locations_and_mappings),
	    cmocka_unit_test(test_selection_leaves_nothing_unused),
	    cmocka_unit_test(test_thread_roots),
	    cmocka_unit_test(test_functions),
	    cmocka_unit_test(test_many_samples),
	    cmocka_unit_test(test_varints),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
