// SPDX-License-Identifier: MIT
#include "cgroup.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "proc.h"
#include "text.h"

enum {
	MAX_PATH_BYTES = 4096,
	MAX_BYTES = 16 * (MAX_PATH_BYTES + 64), // one line for each of version 1's hierarchies
	CONTAINER_DIGITS = 64,
	TASK_DIGITS = 32,
	MAX_TASK_NUMBER = 20, // digits; 9 and 10 were seen
	POD_LENGTH = 36,
};

// Version 2 has one line, "0::PATH". With version 1, systemd's own hierarchy tells the most. If
// both are used together, either may be empty.
static const char *const hierarchies[] = {"0::", "name=systemd:", "memory:", "cpu,cpuacct:"};

static const char *find_path(const char *text, const char *hierarchy)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *rest = line + strcspn(line, ":\n");
		const size_t length = strlen(hierarchy);
		if (strncmp(line, hierarchy, length) == 0)
			return line + length;
		if (*rest == ':' && strncmp(rest + 1, hierarchy, length) == 0)
			return rest + 1 + length;
	}
	return NULL;
}

// Takes the first path that is not just the root.
static char *take_path(const char *text)
{
	const char *found = NULL;

	for (size_t i = 0; i < array_size(hierarchies); i++) {
		const char *path = find_path(text, hierarchies[i]);
		if (!path || *path != '/')
			continue;
		found = found ?: path;
		if (path[1] == '\0' || path[1] == '\n')
			continue;
		found = path;
		break;
	}
	return found ? text_clean(found, strcspn(found, "\n"), MAX_PATH_BYTES) : NULL;
}

static bool ends_in(const char *part, size_t length, const char *suffix)
{
	const size_t n = strlen(suffix);

	return length > n && strncmp(part + length - n, suffix, n) == 0;
}

// Finds the last part of the path that is a service or a scope.
static char *find_unit(const char *path)
{
	const char *unit = NULL;
	size_t unit_length = 0;

	while (*path) {
		path += strspn(path, "/");
		const size_t length = strcspn(path, "/");
		if (ends_in(path, length, ".service") || ends_in(path, length, ".scope")) {
			unit = path;
			unit_length = length;
		}
		path += length;
	}
	return unit ? memory_strndup(unit, unit_length) : NULL;
}

// Returns the length of a container's id that begins there with that many hexadecimal digits; 0:
// none does.
static size_t measure_container(const char *at, size_t n_digits)
{
	size_t length = n_digits;

	if (n_digits == TASK_DIGITS && at[length] == '-') {
		const size_t n = strspn(at + length + 1, "0123456789");
		length = n > 0 && n <= MAX_TASK_NUMBER ? length + 1 + n : 0;
	} else if (n_digits != CONTAINER_DIGITS) {
		return 0;
	}
	return isalnum((unsigned char)at[length]) ? 0 : length;
}

// Finds 64 hexadecimal digits between anything else: Docker's "/docker/ID", "docker-ID.scope" and
// what Kubernetes makes of containerd and CRI-O, "cri-containerd-ID.scope". On AWS Fargate: 32
// digits of the task, a dash, and the container's number: "/ecs/TASK/TASK-265927825" (Amazon ECS
// Developer Guide, "task metadata version 4 examples", DockerId). The last ones count: if
// containers run in containers, these are the innermost's.
static void find_container(const char *path, char ret[CGROUP_CONTAINER_SIZE])
{
	for (size_t n = 0; *path; path += n ? n : 1) {
		n = strspn(path, "0123456789abcdef");
		const size_t length = measure_container(path, n);
		if (length == 0)
			continue;
		memcpy(ret, path, length);
		ret[length] = '\0';
		n = length;
	}
}

static bool is_uuid(const char *text)
{
	for (int i = 0; i < POD_LENGTH; i++) {
		const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (is_dash ? text[i] != '-' && text[i] != '_' : !isxdigit((unsigned char)text[i]))
			return false;
	}
	return true;
}

// Finds "pod" and the UUID, which has underscores for dashes in systemd's slices.
static void find_pod(const char *path, char ret[CGROUP_POD_SIZE])
{
	for (const char *at = path; (at = strstr(at, "pod")); at++) {
		if (!is_uuid(at + strlen("pod")))
			continue;
		memcpy(ret, at + strlen("pod"), POD_LENGTH);
		for (int i = 0; i < POD_LENGTH; i++)
			if (ret[i] == '_')
				ret[i] = '-';
		return;
	}
}

void cgroup_parse(const char *text, struct cgroup *ret)
{
	*ret = (struct cgroup){.path = take_path(text)};
	if (!ret->path)
		return;
	ret->unit = find_unit(ret->path);
	find_container(ret->path, ret->container);
	find_pod(ret->path, ret->pod);
}

bool cgroup_read(int pid, struct cgroup *ret)
{
	size_t size;
	_cleanup_free_ char *text = proc_read_whole(pid, "cgroup", MAX_BYTES, &size);

	*ret = (struct cgroup){0};
	if (!text)
		return false;
	cgroup_parse(text, ret);
	return ret->path != NULL;
}

void cgroup_deinit(struct cgroup *cgroup)
{
	free(cgroup->path);
	free(cgroup->unit);
	*cgroup = (struct cgroup){0};
}
