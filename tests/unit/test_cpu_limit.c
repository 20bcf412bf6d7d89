// SPDX-License-Identifier: MIT
// How often control groups were throttled, by trees of files like those of either version.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cpu_limit.h"
#include "memory.h"
#include "mounts.h"
#include "unit.h"

static char root[] = "/tmp/cpu-limit-XXXXXX";

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	_cleanup_free_ char *command = memory_printf("rm -r %s", root);

	(void)state;
	return system(command); // NOLINT: the name is ours
}

static void put(const char *name, const char *text)
{
	_cleanup_free_ char *path = memory_printf("%s/%s", root, name);

	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

// `mounted`: the part of the hierarchy that the mount shows.
static void open_limit(const char *cgroups, const char *mounted, const char *type,
                       const char *options, struct cpu_limit *ret)
{
	struct mounts mounts;

	mounts_parse(memory_printf("21 1 254:1 / / rw - ext4 /dev/vda1 rw\n"
	                           "30 21 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup "
	                           "rw,cpuset\n"
	                           "31 21 0:29 %s %s rw - %s cgroup rw%s\n",
	                           mounted, root, type, options),
	             &mounts);
	cpu_limit_open_with(cgroups, &mounts, ret);
	mounts_deinit(&mounts);
}

static void assert_read(const struct cpu_limit *limit, uint64_t n_periods, uint64_t n_throttled,
                        int64_t throttled_ns, uint32_t expected_limit)
{
	struct cpu_throttling throttling;
	uint32_t found;

	cpu_limit_read(limit, &throttling, &found);
	assert_int_equal(throttling.n_periods, n_periods);
	assert_int_equal(throttling.n_throttled, n_throttled);
	assert_int_equal(throttling.throttled_ns, throttled_ns);
	assert_int_equal(found, expected_limit);
}

static void test_version_2(void **state)
{
	struct cpu_limit limit;

	(void)state;
	put("v2/cpu.stat", "usage_usec 5\n"); // the root has no periods
	put("v2/pod/cpu.stat", "usage_usec 5\nnr_periods 100\nnr_throttled 40\nthrottled_usec 9\n");
	put("v2/pod/cpu.max", "150000 100000\n");
	put("v2/pod/box/cpu.stat",
	    "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
	put("v2/pod/box/cpu.max", "max 100000\n");
	open_limit("0::/v2/pod/box\n", "/", "cgroup2", "", &limit);
	assert_int_equal(limit.n_groups, 2);
	assert_read(&limit, 0, 0, 0, 0);
	put("v2/pod/cpu.stat",
	    "usage_usec 5\nnr_periods 130\nnr_throttled 65\nthrottled_usec 2009\n");
	assert_read(&limit, 30, 25, 2000000, 1500);
	// The group itself is throttled longer.
	put("v2/pod/box/cpu.stat",
	    "usage_usec 5\nnr_periods 30\nnr_throttled 29\nthrottled_usec 3000\n");
	put("v2/pod/box/cpu.max", "5000 100000\n");
	assert_read(&limit, 30, 29, 3000000, 50);
	cpu_limit_close(&limit);
}

static void test_version_1(void **state)
{
	static const char cgroups[] = "9:name=systemd:/else\n4:cpu,cpuacct:/box\n0::/other\n";
	struct cpu_limit limit;

	(void)state;
	put("box/cpu.stat", "nr_periods 7\nnr_throttled 2\nthrottled_time 1000\n");
	put("box/cpu.cfs_quota_us", "25000\n");
	put("box/cpu.cfs_period_us", "100000\n");
	open_limit(cgroups, "/", "cgroup", ",cpuacct,cpu", &limit);
	assert_int_equal(limit.n_groups, 1);
	put("box/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 61000\n");
	assert_read(&limit, 2, 1, 60000, 250);
	put("box/cpu.cfs_quota_us", "-1\n");
	assert_read(&limit, 2, 1, 60000, 0);
	put("box/cpu.stat", ""); // as of a group that is gone
	assert_read(&limit, 0, 0, 0, 0);
	cpu_limit_close(&limit);
}

// A container sees its own group at the mount's root.
static void test_mounted_part(void **state)
{
	struct cpu_limit limit;

	(void)state;
	put("cpu.stat", "nr_periods 1\nnr_throttled 0\nthrottled_usec 0\n");
	put("in/cpu.stat", "nr_periods 1\nnr_throttled 0\nthrottled_usec 0\n");
	open_limit("0::/docker/1234/in\n", "/docker/1234", "cgroup2", "", &limit);
	assert_int_equal(limit.n_groups, 2);
	cpu_limit_close(&limit);
}

static void test_none(void **state)
{
	static const struct {
		const char *cgroups, *mounted, *type, *options;
	} cases[] = {
	    {"", "/", "cgroup2", ""},
	    {"nonsense\n0:\n::\n", "/", "cgroup2", ""},
	    {"4:cpuset:/box\n", "/", "cgroup", ",cpu"},
	    {"4:cpu:/box\n", "/", "cgroup", ",cpuacct"},   // it is not mounted
	    {"4:cpu:/box\n0::/box\n", "/", "cgroup2", ""}, // version 2 does not have it
	    {"0::/../other\n", "/", "cgroup2", ""},        // another container's
	    {"0::/docker/12345\n", "/docker/1234", "cgroup2", ""},
	    {"0::/gone\n", "/gone", "tmpfs", ""},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct cpu_limit limit;
		open_limit(cases[i].cgroups, cases[i].mounted, cases[i].type, cases[i].options,
		           &limit);
		assert_int_equal(limit.n_groups, 0);
		assert_read(&limit, 0, 0, 0, 0);
		cpu_limit_close(&limit);
	}
}

static void test_deep(void **state)
{
	_cleanup_free_ char *path = memory_strdup("0::");
	struct cpu_limit limit;

	(void)state;
	for (int i = 0; i < 40; i++) {
		char *longer = memory_printf("%s/d", path);
		free(path);
		path = longer;
		_cleanup_free_ char *name = memory_printf("%s/cpu.stat", path + 4);
		put(name, "nr_periods 1\nnr_throttled 0\nthrottled_usec 0\n");
	}
	open_limit(path, "/", "cgroup2", "", &limit);
	assert_int_equal(limit.n_groups, CPU_LIMIT_MAX_GROUPS);
	cpu_limit_close(&limit);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_version_2), cmocka_unit_test(test_version_1),
	    cmocka_unit_test(test_none),      cmocka_unit_test(test_mounted_part),
	    cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
