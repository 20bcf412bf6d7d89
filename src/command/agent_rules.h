// SPDX-License-Identifier: MIT
// agent_rules: which processes the agent chooses, and how it names them.
//
//     comm=java user=app service=shop label.team=web
//     exclude unit=sshd.service
//
// A rule is a line of words KEY=VALUE. Each of comm, cmd, exe, user, unit and cgroup is an extended
// regular expression for the whole of what it names, and all of a rule must match. A process is
// chosen by the first rule that matches it, unless one matches it that excludes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push_labels.h"

struct agent_process;
struct error;

struct agent_condition;

struct agent_rule {
	char *text; // as it was given
	bool excludes;
	struct agent_condition *conditions;
	size_t n_conditions, capacity;
	struct push_labels labels; // of what it chooses
};

struct agent_rules {
	struct agent_rule *items;
	size_t count, capacity;
	bool ask_for_command; // some ask for the command line
};

// Adds the rule. A mistake is an error, which begins with `where`.
struct error *agent_rules_add(struct agent_rules *rules, const char *where, const char *text,
                              bool excludes);

// Adds those of a file, a line each; # begins a comment.
struct error *agent_rules_read(struct agent_rules *rules, const char *path);
void agent_rules_deinit(struct agent_rules *rules);

// The rule that decides about the process, borrowed; NULL: none matches.
const struct agent_rule *agent_rules_find(const struct agent_rules *rules,
                                          const struct agent_process *process);

// True if one of them chooses.
bool agent_rules_choose(const struct agent_rules *rules);
