// SPDX-License-Identifier: MIT
#include "agent_rules.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_process.h"
#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "regular_file.h"
#include "text.h"

enum { MAX_RULES = 1000, MAX_LINE_BYTES = 4096, MAX_FILE_BYTES = 1 << 20 };

#define SPACES " \t\r\n"
#define EXCLUDE "exclude"
#define LABEL "label."

enum subject { COMM, CMD, EXE, USER, UNIT, CGROUP, N_SUBJECTS };

static const char *const subjects[N_SUBJECTS] = {"comm", "cmd", "exe", "user", "unit", "cgroup"};

struct agent_condition {
	enum subject subject;
	regex_t regex;
};

// Others may keep whoever asks for it waiting.
static bool is_costly(enum subject subject)
{
	return subject == CMD || subject == USER;
}

// NULL: it is not told.
static const char *value_of(struct agent_process *process, enum subject subject)
{
	switch (subject) {
	case COMM:
		return process->name;
	case CMD:
		return agent_process_command(process);
	case EXE:
		return process->exe;
	case USER:
		return agent_process_user(process);
	case UNIT:
		return process->cgroup.unit ?: "";
	case CGROUP:
		return process->cgroup.path ?: "";
	case N_SUBJECTS:
		break;
	}
	return "";
}

static enum subject find_subject(const char *name, size_t length)
{
	enum subject i = 0;

	while (i < N_SUBJECTS &&
	       (strlen(subjects[i]) != length || strncmp(subjects[i], name, length) != 0))
		i++;
	return i;
}

static struct error *add_condition(struct agent_rule *rule, const char *where, enum subject subject,
                                   const char *value)
{
	_cleanup_free_ char *whole = memory_printf("^(%s)$", value);
	char why[128];
	regex_t regex;
	const int result = regcomp(&regex, whole, REG_EXTENDED | REG_NOSUB);

	if (result) {
		regerror(result, &regex, why, sizeof(why));
		return option_error("%s: '%s=%s' is not a regular expression: %s", where,
		                    subjects[subject], value, why);
	}
	*array_push(rule->conditions, rule->n_conditions, rule->capacity) =
	    (struct agent_condition){subject, regex};
	return NULL;
}

static struct error *add_word(struct agent_rule *rule, const char *where, const char *word)
{
	const size_t length = strcspn(word, "=");
	const enum subject subject = find_subject(word, length);

	if (word[length] != '=' || !word[length + 1])
		return option_error("%s: '%s' has no value: give such as comm=java", where, word);
	if (subject < N_SUBJECTS)
		return add_condition(rule, where, subject, word + length + 1);
	if (strncmp(word, "service=", length + 1) == 0) {
		push_labels_set(&rule->labels, "service_name", word + length + 1);
		return NULL;
	}
	if (text_begins_with(word, LABEL) && push_labels_parse(&rule->labels, word + strlen(LABEL)))
		return NULL;
	return option_error("%s: '%s' is unknown: give some of comm, cmd, exe, user, unit, cgroup, "
	                    "service and label.NAME",
	                    where, word);
}

static struct error *add_words(struct agent_rule *rule, const char *where)
{
	_cleanup_free_ char *words = memory_strdup(rule->text);
	char *rest = NULL;
	const char *word = strtok_r(words, SPACES, &rest);

	if (word && strcmp(word, EXCLUDE) == 0) {
		rule->excludes = true;
		word = strtok_r(NULL, SPACES, &rest);
	}
	for (; word; word = strtok_r(NULL, SPACES, &rest)) {
		struct error *error = add_word(rule, where, word);
		if (error)
			return error;
	}
	if (rule->n_conditions == 0)
		return option_error("%s: '%s' names no process: give such as comm=java, or "
		                    "comm=.* for all",
		                    where, rule->text);
	return NULL;
}

static void deinit_rule(struct agent_rule *rule)
{
	for (size_t i = 0; i < rule->n_conditions; i++)
		regfree(&rule->conditions[i].regex);
	free(rule->conditions);
	free(rule->text);
	push_labels_deinit(&rule->labels);
}

struct error *agent_rules_add(struct agent_rules *rules, const char *where, const char *text,
                              bool excludes)
{
	struct agent_rule rule = {.text = memory_strdup(text), .excludes = excludes};
	struct error *error = add_words(&rule, where);

	if (!error && rules->count >= MAX_RULES)
		error = option_error("%s: more than %d rules", where, MAX_RULES);
	if (error) {
		deinit_rule(&rule);
		return error;
	}
	*array_push(rules->items, rules->count, rules->capacity) = rule;
	return NULL;
}

// Reads the text of a regular file: a pipe would keep the agent waiting.
static struct error *read_text(const char *path, char **ret)
{
	struct stat status;
	_cleanup_close_ int fd = regular_file_open_path(path, &status);
	_cleanup_free_ char *text = memory_alloc_zeroed(MAX_FILE_BYTES + 2, 1);
	size_t size = 0;
	ssize_t n = 1;

	if (fd < 0 && errno == ENODEV)
		return option_error("--rules: '%s' is not a regular file", path);
	while (fd >= 0 && n > 0 && size <= MAX_FILE_BYTES) {
		n = read(fd, text + size, MAX_FILE_BYTES + 1 - size);
		size += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || n < 0)
		return option_error("--rules: the file '%s' cannot be read: %m", path);
	if (size > MAX_FILE_BYTES)
		return option_error("--rules: the file '%s' is larger than %d bytes", path,
		                    MAX_FILE_BYTES);
	if (memchr(text, '\0', size))
		return option_error("--rules: the file '%s' is not a text: a byte in it is 0",
		                    path);
	*ret = take_pointer(text);
	return NULL;
}

static struct error *add_line(struct agent_rules *rules, const char *path, int number, char *line)
{
	_cleanup_free_ char *where = memory_printf("%s:%d", path, number);

	if (strlen(line) >= MAX_LINE_BYTES)
		return option_error("%s: the line is longer than %d bytes", where, MAX_LINE_BYTES);
	line[strcspn(line, "#\r\n")] = '\0';
	line += strspn(line, SPACES);
	return *line ? agent_rules_add(rules, where, line, false) : NULL;
}

struct error *agent_rules_read(struct agent_rules *rules, const char *path)
{
	_cleanup_free_ char *text = NULL;
	struct error *error = read_text(path, &text);
	char *rest = text;

	for (int number = 1; !error && rest; number++)
		error = add_line(rules, path, number, strsep(&rest, "\n"));
	return error;
}

void agent_rules_deinit(struct agent_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		deinit_rule(&rules->items[i]);
	free(rules->items);
	*rules = (struct agent_rules){0};
}

static bool match_some(const struct agent_rule *rule, struct agent_process *process, bool costly)
{
	for (size_t i = 0; i < rule->n_conditions; i++) {
		const struct agent_condition *condition = &rule->conditions[i];
		if (is_costly(condition->subject) != costly)
			continue;
		const char *value = value_of(process, condition->subject);
		if (!value || regexec(&condition->regex, value, 0, NULL, 0) != 0)
			return false;
	}
	return true;
}

const struct agent_rule *agent_rules_find(const struct agent_rules *rules,
                                          struct agent_process *process)
{
	const struct agent_rule *chosen = NULL;

	for (size_t i = 0; i < rules->count; i++) {
		const struct agent_rule *rule = &rules->items[i];
		if (chosen && !rule->excludes)
			continue;
		const bool matches =
		    match_some(rule, process, false) && match_some(rule, process, true);
		if (process->is_silent)
			return NULL;
		if (matches && rule->excludes)
			return rule;
		if (matches)
			chosen = rule;
	}
	return chosen;
}

bool agent_rules_choose(const struct agent_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		if (!rules->items[i].excludes)
			return true;
	return false;
}
