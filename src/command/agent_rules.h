// SPDX-License-Identifier: MIT
// agent_rules: which processes the agent chooses, and how it names them.
//
//     comm=java user=app service=shop label.team=web
//     exclude unit=sshd.service
//
// A rule is a line of words KEY=VALUE. The values of comm, cmd, exe, user, unit and cgroup are
// extended regular expressions, each of which must match the whole of what its key names. The first
// rule that matches a process chooses it, unless a rule that excludes matches it, too.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "push_labels.h"

struct agent_process;
struct error;

struct agent_condition;

struct agent_rule {
	char *text; // as the user gave it
	bool excludes;
	struct agent_condition *conditions;
	size_t n_conditions, capacity;
	struct push_labels labels; // for the processes that it chooses
};

struct agent_rules {
	struct agent_rule *items;
	size_t count, capacity;
};

// Adds the rule. A mistake is an error whose message begins with `where`.
struct error *agent_rules_add(struct agent_rules *rules, const char *where, const char *text,
                              bool excludes);

// Adds the rules of a file, one on each line; # begins a comment.
struct error *agent_rules_read(struct agent_rules *rules, const char *path);
void agent_rules_deinit(struct agent_rules *rules);

// Returns the rule that decides about the process, borrowed; NULL: none matches, or one asks for
// what the process does not tell (is_silent). Reads the command line and the user where a rule
// comes to depend on them.
const struct agent_rule *agent_rules_find(const struct agent_rules *rules,
                                          struct agent_process *process);

// True if at least one rule chooses, rather than excludes.
bool agent_rules_choose(const struct agent_rules *rules);
