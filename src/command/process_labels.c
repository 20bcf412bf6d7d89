// SPDX-License-Identifier: MIT
#include "process_labels.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "memory.h"
#include "proc.h"
#include "process_list.h"
#include "push_labels.h"
#include "push_parts.h"
#include "text.h"
#include "untrusted_text.h"

enum { HOST_SIZE = 65, CONTAINER_DIGITS = 12 };

#define SERVICE_VARIABLE "OTEL_SERVICE_NAME"
#define SERVICE_SUFFIX ".service"

static void set_host(struct push_labels *labels)
{
	char host[HOST_SIZE] = "";

	gethostname(host, sizeof(host) - 1);
	push_labels_set(labels, "host", host);
}

// "shop" for "shop.service"; NULL: it is not a service.
static char *service_of_unit(const char *unit)
{
	const size_t length = unit ? strlen(unit) : 0, suffix = strlen(SERVICE_SUFFIX);

	if (length <= suffix || strcmp(unit + length - suffix, SERVICE_SUFFIX) != 0)
		return NULL;
	return memory_strndup(unit, length - suffix);
}

static char *find_service(int pid, int tid, const struct cgroup *cgroup, bool *ret_told)
{
	char name[PROC_NAME_SIZE] = "";
	char *service = untrusted_variable(tid, SERVICE_VARIABLE, ret_told);

	// What runs in a container has the unit of the container's engine.
	if (!service && !cgroup->container[0])
		service = service_of_unit(cgroup->unit);
	if (!service && proc_read_name(pid, pid, name))
		service = memory_strdup(name);
	return service ? service : memory_strdup("unknown");
}

// Its first digits tell it from others, but on AWS Fargate, where those are the task's, which its
// containers share.
static void set_container(char *container, struct push_labels *labels)
{
	if (!strchr(container, '-'))
		container[CONTAINER_DIGITS] = '\0';
	push_labels_set(labels, "container_id", container);
}

static void set_exe(int tid, struct push_labels *labels)
{
	char path[PATH_MAX];

	if (proc_read_exe(tid, path, sizeof(path)))
		push_labels_set(labels, "exe", text_base_name(path));
}

bool process_labels_read(int pid, struct push_labels *labels)
{
	const int tid = process_living_thread(pid);
	struct cgroup cgroup;
	bool is_told;

	cgroup_read(tid, &cgroup);
	_cleanup_free_ char *service = find_service(pid, tid, &cgroup, &is_told);
	push_labels_set(labels, "service_name", service);
	set_host(labels);
	set_exe(tid, labels);
	if (cgroup.unit && !cgroup.container[0])
		push_labels_set(labels, "unit", cgroup.unit);
	if (cgroup.container[0])
		set_container(cgroup.container, labels);
	if (cgroup.pod[0])
		push_labels_set(labels, "pod_uid", cgroup.pod);
	cgroup_deinit(&cgroup);
	return is_told;
}

void process_labels_of_command(const char *command, struct push_labels *labels)
{
	const char *service = getenv(SERVICE_VARIABLE); // it will have our environment

	push_labels_set(labels, "service_name",
	                service && *service ? service : text_base_name(command));
	set_host(labels);
}

void process_labels_add(struct push_labels *labels, const struct push_labels *given)
{
	for (size_t i = 0; i < given->count; i++)
		push_labels_set(labels, given->items[i].key, given->items[i].value);
}

char **process_labels_comments(const struct push_labels *labels)
{
	char **comments = memory_alloc_zeroed(labels->count + 1, sizeof(*comments));

	for (size_t i = 0; i < labels->count; i++)
		comments[i] = memory_printf(PUSH_LABEL_COMMENT "%s=%s", labels->items[i].key,
		                            labels->items[i].value);
	return comments;
}
