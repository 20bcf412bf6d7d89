// SPDX-License-Identifier: MIT
// process_labels: the labels under which servers file the profile of a process: few, and the same
// when the process is started again.
//
//     service_name    OTEL_SERVICE_NAME of its environment, else its systemd service, else its name
//     host            the machine's name
//     exe             the program's name
//     unit            its systemd unit
//     container_id    the first 12 digits
//     pod_uid         Kubernetes' UID of its pod
#pragma once

#include <stdbool.h>

struct push_labels;

// Adds the labels of a running process. False: its environment is not told (untrusted_text.h), so
// that it may have another service_name.
bool process_labels_read(int pid, struct push_labels *labels);

// Adds those labels of a command that are known before it is started.
void process_labels_of_command(const char *command, struct push_labels *labels);

// Adds the labels that a user gave, which replace others with the same keys.
void process_labels_add(struct push_labels *labels, const struct push_labels *given);

// Returns the labels as comments for a profile, in which the uploader finds them: NULL-terminated;
// the caller frees the array and each comment.
char **process_labels_comments(const struct push_labels *labels);
