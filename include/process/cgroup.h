// SPDX-License-Identifier: MIT
// cgroup: reads from a process's control group where the process belongs: to a systemd unit, to a
// container, to a Kubernetes pod.
#pragma once

#include <stdbool.h>

enum { CGROUP_CONTAINER_SIZE = 65, CGROUP_POD_SIZE = 37 };

struct cgroup {
	char *path; // "/system.slice/shop.service"; owned; NULL: none
	char *unit; // "shop.service"; owned; NULL: none
	// 64 hexadecimal digits, or, on AWS Fargate, 32, a dash and a number; "": none
	char container[CGROUP_CONTAINER_SIZE];
	char pod[CGROUP_POD_SIZE]; // a UUID, with dashes; "": none
};

// Reads it for a process. False if there is no such process, or no control group; all is empty
// then.
bool cgroup_read(int pid, struct cgroup *ret);

// Does the same from the text of /proc/PID/cgroup.
void cgroup_parse(const char *text, struct cgroup *ret);
void cgroup_deinit(struct cgroup *cgroup);
