// SPDX-License-Identifier: MIT
// What control groups say of a process, by the files of machines, containers and clusters.
#include <string.h>

#include "cgroup.h"
#include "memory.h"
#include "unit.h"

#define ID "4f1c0a3a9d7c2b8e5f60718293a4b5c6d7e8f9000112233445566778899aabbc"
#define TASK "8cd79a803caf4d2aa945152e934a5c00" // of AWS Fargate
#define POD "2f6d1c58-93b4-4a1e-8c77-0d9a5b6e7f10"
#define POD_OF_SLICE "2f6d1c58_93b4_4a1e_8c77_0d9a5b6e7f10"

static const struct {
	const char *text, *path, *unit, *container, *pod; // NULL: none
} cases[] = {
    {"0::/system.slice/shop.service\n", "/system.slice/shop.service", "shop.service", "", ""},
    {"0::/\n", "/", NULL, "", ""},
    {"", NULL, NULL, "", ""},
    {"nonsense\n0:\n", NULL, NULL, "", ""},
    {"0::/user.slice/user-0.slice/user@0.service/app.slice/a.scope/x", NULL, "a.scope", "", ""},
    {"0::/system.slice/docker-" ID ".scope\n", NULL, "docker-" ID ".scope", ID, ""},
    {"0::/../" ID "\n", "/../" ID, NULL, ID, ""},
    // One digit more, or less, is something else.
    {"0::/docker/" ID "0\n", NULL, NULL, "", ""},
    {"0::/docker/4f1c0a3a9d7c2b8e\n", NULL, NULL, "", ""},
    // Kubernetes, by systemd and without.
    {"0::/kubepods.slice/kubepods-pod" POD_OF_SLICE ".slice/cri-containerd-" ID ".scope\n", NULL,
     "cri-containerd-" ID ".scope", ID, POD},
    {"0::/kubepods/burstable/pod" POD "/" ID "\n", NULL, NULL, ID, POD},
    {"0::/kubepods/podcast/pod" POD "0\n", NULL, NULL, "", POD},
    // AWS Fargate: platform 1.4, as it was seen with 9 and 10 digits; 1.3; and what is neither.
    {"11:hugetlb:/ecs/" TASK "/" TASK "-1053176469\n1:name=systemd:/ecs/" TASK "/" TASK
     "-1053176469\n",
     "/ecs/" TASK "/" TASK "-1053176469", NULL, TASK "-1053176469", ""},
    {"1:name=systemd:/ecs/" TASK "-105317646\n", NULL, NULL, TASK "-105317646", ""},
    {"2:memory:/ecs/55091c13-b8cf-4801-b527-f4601742204d/" ID "\n", NULL, NULL, ID, ""},
    {"0::/ecs/" TASK "\n", NULL, NULL, "", ""},
    {"0::/ecs/" TASK "-\n", NULL, NULL, "", ""},
    {"0::/ecs/" TASK "-105317646a\n", NULL, NULL, "", ""},
    {"0::/ecs/" TASK "-105317646910531764691053176469\n", NULL, NULL, "", ""},
    {"0::/docker/" ID "/ecs/" TASK "-1\n", NULL, NULL, TASK "-1", ""},
    // Version 1, and both.
    {"12:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n", "/docker/" ID, NULL, ID, ""},
    {"5:cpu,cpuacct:/a\n1:name=systemd:/system.slice/b.service\n0::/\n", "/system.slice/b.service",
     "b.service", "", ""},
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct cgroup cgroup;
		cgroup_parse(cases[i].text, &cgroup);
		if (cases[i].path)
			assert_string_equal(cgroup.path, cases[i].path);
		if (cases[i].unit)
			assert_string_equal(cgroup.unit, cases[i].unit);
		else
			assert_null(cgroup.unit);
		assert_string_equal(cgroup.container, cases[i].container);
		assert_string_equal(cgroup.pod, cases[i].pod);
		cgroup_deinit(&cgroup);
	}
}

static void test_hostile(void **state)
{
	struct cgroup cgroup;

	(void)state;
	cgroup_parse("0::/a\033[2J/\377b.service\n", &cgroup);
	assert_string_equal(cgroup.path, "/a_[2J/\xef\xbf\xbd"
	                                 "b.service");
	cgroup_deinit(&cgroup);
	assert_false(cgroup_read(0x7fffffff, &cgroup));
	assert_null(cgroup.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
