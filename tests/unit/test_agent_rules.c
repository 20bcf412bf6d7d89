// SPDX-License-Identifier: MIT
// Which processes rules choose, and what is wrong with a rule.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_process.h"
#include "agent_rules.h"
#include "error.h"
#include "memory.h"
#include "unit.h"

static const struct agent_process java = {
    .name = "java",
    .exe = "/usr/lib/jvm/bin/java",
    .command = "java -jar shop.jar",
    .user = "app",
    .cgroup = {.path = "/system.slice/shop.service", .unit = "shop.service"},
};
static const struct agent_process bare = {.name = "sh", .exe = "", .command = "", .user = "0"};

static const struct {
	const char *rules[3]; // "-" before one: --exclude
	const struct agent_process *process;
	int decider; // of the rules; -1: none
} cases[] = {
    {{"comm=java"}, &java, 0},
    {{"comm=jav"}, &java, -1}, // the whole
    {{"comm=jav|sh"}, &java, -1},
    {{"comm=jav.|sh"}, &java, 0},
    {{"comm=java user=app"}, &java, 0},
    {{"comm=java user=root"}, &java, -1}, // all of it
    {{"exe=.*/java"}, &java, 0},
    {{"cmd=.*[[:space:]]shop.jar"}, &java, 0},
    {{"unit=shop\\.service"}, &java, 0},
    {{"cgroup=/system.slice/.*"}, &java, 0},
    {{"unit=.+"}, &bare, -1},
    {{"unit="
      ".*"},
     &bare,
     0},
    {{"comm=sh", "comm=java", "comm=.*"}, &java, 1}, // the first
    {{"comm=.*", "exclude user=app"}, &java, 1},
    {{"comm=.*", "-user=app"}, &java, 1},
    {{"-user=app", "comm=.*"}, &java, 0},
    {{"comm=.*", "-user=app"}, &bare, 0},
};

static void add(struct agent_rules *rules, const char *text)
{
	struct error *error = agent_rules_add(rules, "test", text + (*text == '-'), *text == '-');

	assert_null(error);
}

static void test_choice(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct agent_rules rules = {0};
		for (size_t j = 0; j < array_size(cases[i].rules) && cases[i].rules[j]; j++)
			add(&rules, cases[i].rules[j]);
		struct agent_process process = *cases[i].process;
		const struct agent_rule *rule = agent_rules_find(&rules, &process);
		assert_int_equal(rule ? (int)(rule - rules.items) : -1, cases[i].decider);
		agent_rules_deinit(&rules);
	}
}

// What others may keep to themselves is asked for only where the choice depends on it, and nobody
// is chosen who has not told.
static void test_silence(void **state)
{
	static const char *const rules_of[] = {"cmd=x comm=java", "exclude user=x exe=/bin/java",
	                                       "comm=sh"};
	struct agent_process sh = {.pid = 0x7fffffff, .name = "sh", .exe = ""};
	struct agent_rules rules = {0};

	(void)state;
	for (size_t i = 0; i < array_size(rules_of); i++)
		add(&rules, rules_of[i]);
	assert_ptr_equal(agent_rules_find(&rules, &sh), &rules.items[2]);
	assert_null(sh.command);
	assert_null(sh.user);
	struct agent_process java_process = {.name = "java", .exe = "/bin/java", .is_silent = true};
	assert_null(agent_rules_find(&rules, &java_process));
	agent_rules_deinit(&rules);
}

static void test_labels(void **state)
{
	struct agent_rules rules = {0};

	(void)state;
	add(&rules, "comm=java service=shop label.team=web=1 label.region=eu");
	const struct push_label *labels = rules.items[0].labels.items;
	assert_string_equal(labels[0].key, "service_name");
	assert_string_equal(labels[0].value, "shop");
	assert_string_equal(labels[1].key, "team");
	assert_string_equal(labels[1].value, "web=1");
	assert_string_equal(labels[2].value, "eu");
	assert_true(agent_rules_choose(&rules));
	agent_rules_deinit(&rules);
	add(&rules, "exclude comm=java");
	assert_false(agent_rules_choose(&rules));
	agent_rules_deinit(&rules);
}

static void test_mistakes(void **state)
{
	static const char *const mistakes[] = {
	    "",
	    "java",
	    "comm=",
	    "name=java",
	    "comm=(",
	    "service=shop",
	    "exclude",
	    "label.=x",
	    "comm=a label.0=x",
	    "comm=a label.state=x",
	};

	(void)state;
	for (size_t i = 0; i < array_size(mistakes); i++) {
		struct agent_rules rules = {0};
		struct error *error = agent_rules_add(&rules, "here", mistakes[i], false);
		assert_non_null(error);
		assert_int_equal(error_status(error), EXIT_STATUS_USAGE);
		assert_ptr_equal(strstr(error_message(error), "here: "), error_message(error));
		assert_int_equal(rules.count, 0);
		error_destroy(error);
		agent_rules_deinit(&rules);
	}
}

static struct error *read_file(const char *path, const char *text, size_t size)
{
	struct agent_rules rules = {0};
	FILE *file = text ? fopen(path, "we") : NULL;

	if (file) {
		assert_int_equal(fwrite(text, 1, size, file), size);
		fclose(file);
	}
	struct error *error = agent_rules_read(&rules, path);
	agent_rules_deinit(&rules);
	return error;
}

static void assert_mistake(struct error *error, const char *what)
{
	assert_non_null(error);
	assert_non_null(strstr(error_message(error), what));
	error_destroy(error);
}

// None of these keeps the reader waiting, or is taken for a file without rules.
static void test_files(void **state)
{
	char path[] = "/tmp/profiler-unit-XXXXXX";
	const int fd = mkstemp(path);
	const size_t large = (1 << 20) + 1;
	char *spaces = memory_alloc_zeroed(large, 1);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	memset(spaces, ' ', large);
	assert_null(read_file(path, "# none\ncomm=a\r\n\nexclude comm=b # last", 37));
	assert_mistake(read_file(path, "comm=a\ncomm=b\nb", 15), ":3: 'b' has no value");
	assert_mistake(read_file(path, "c\0o\0m\0m\0", 8), "is not a text");
	assert_mistake(read_file(path, spaces, large), "is larger than 1048576 bytes");
	assert_mistake(read_file(path, spaces, large - 1), "line is longer than 4096 bytes");
	unlink(path);
	assert_mistake(read_file(path, NULL, 0), "cannot be read: No such file");
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_mistake(read_file(path, NULL, 0), "is not a regular file");
	unlink(path);
	assert_mistake(read_file("/tmp", NULL, 0), "is not a regular file");
	free(spaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_choice), cmocka_unit_test(test_silence),
	    cmocka_unit_test(test_labels), cmocka_unit_test(test_mistakes),
	    cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
