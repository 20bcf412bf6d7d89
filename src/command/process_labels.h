// SPDX-License-Identifier: MIT
// process_labels: the labels under which servers file the profile of a process: few, and the same
// from start to start of it.
//
//     service_name    OTEL_SERVICE_NAME of its environment, else its systemd service, else its name
//     host            the machine's name
//     exe             its program's name
//     unit            its systemd unit
//     container_id    the first 12 digits
//     pod_uid         Kubernetes' UID of its pod
#pragma once

struct push_labels;

void process_labels_read(int pid, struct push_labels *labels);

// Of a command that is to be started, as far as it can be known.
void process_labels_of_command(const char *command, struct push_labels *labels);

// Adds those that a user gives, in the place of others of the same names.
void process_labels_add(struct push_labels *labels, const struct push_labels *given);

// As comments of a profile, by which the uploader knows them: NULL-terminated; the caller frees
// each and all.
char **process_labels_comments(const struct push_labels *labels);
