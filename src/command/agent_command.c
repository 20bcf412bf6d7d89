// SPDX-License-Identifier: MIT
#include "agent_command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "agent_list.h"
#include "clock.h"
#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "pusher.h"
#include "quantity.h"
#include "show.h"
#include "verb.h"
#include "writer.h"

#define LOCK_LOOK_NS (100 * NS_PER_MS)

enum { MAX_LOCK_LOOKS = 20 };

#define WINDOW_NS (10 * NS_PER_SECOND)
#define PERIOD_NS (60 * NS_PER_SECOND)
#define MIN_AGE_NS (10 * NS_PER_SECOND)
#define MIN_WINDOW_NS (100 * NS_PER_MS)

enum {
	MAX_PROCESSES = 50,
	MAX_CPU_PERCENT = 5,
	MAX_MEMORY_BYTES = 256 << 20,
	MIN_MEMORY_BYTES = 32 << 20,
	MAX_PERCENT = 10000,
};

static struct error *add_rules(struct agent_rules *rules, const struct agent_rule_source *source)
{
	switch (source->kind) {
	case RULE_CHOOSES:
		return agent_rules_add(rules, "agent", source->value, false);
	case RULE_EXCLUDES:
		return agent_rules_add(rules, "--exclude", source->value, true);
	case RULE_FILE:
		break;
	}
	return agent_rules_read(rules, source->value);
}

static struct error *take_source(struct agent_options *agent, struct agent_rule_source source)
{
	*array_push(agent->sources, agent->n_sources, agent->sources_capacity) = source;
	return add_rules(&agent->rules, &source);
}

static struct error *parse_exclude(struct options *options, const char *value)
{
	return take_source(&options->agent, (struct agent_rule_source){RULE_EXCLUDES, value});
}

static struct error *parse_rules(struct options *options, const char *value)
{
	return take_source(&options->agent, (struct agent_rule_source){RULE_FILE, value});
}

static struct error *parse_window(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->agent.window_ns) ||
	    options->agent.window_ns < MIN_WINDOW_NS)
		return option_error("--window: '%s' is not a time of at least 100ms, such as 10s",
		                    value);
	return NULL;
}

static struct error *parse_period(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->agent.period_ns))
		return option_error("--period: '%s' is not a time above 0, such as 60s", value);
	return NULL;
}

static struct error *parse_min_age(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->agent.min_age_ns))
		return option_error("--min-age: '%s' is not a time above 0, such as 10s", value);
	return NULL;
}

static struct error *parse_max_processes(struct options *options, const char *value)
{
	long n;

	if (!quantity_parse_count(value, INT_MAX, &n))
		return option_error("--max-processes: '%s' is not a number, 1 or more", value);
	options->agent.max_processes = (size_t)n;
	return NULL;
}

static struct error *parse_max_cpu(struct options *options, const char *value)
{
	const char *rest = quantity_parse_decimal(value, &options->agent.max_cpu_percent);

	if (rest && *rest == '%')
		rest++;
	if (!rest || *rest || options->agent.max_cpu_percent > MAX_PERCENT)
		return option_error("--max-cpu: '%s' is not a percentage, 0 (no limit) or more",
		                    value);
	return NULL;
}

static struct error *parse_max_memory(struct options *options, const char *value)
{
	if (!quantity_parse_size(value, &options->agent.max_memory) ||
	    options->agent.max_memory < MIN_MEMORY_BYTES)
		return option_error("--max-memory: '%s' is not a size of at least 32M, such as "
		                    "256M",
		                    value);
	return NULL;
}

static struct error *parse_off_file(struct options *options, const char *value)
{
	if (!*value)
		return option_error("--off-file: the file's name is empty: give one");
	options->agent.off_file = value;
	return NULL;
}

// clang-format off
#define VALUE(name, arg, function, text)                                                           \
	{.long_name = (name), .argument = (arg), .help = (text), .parse = (function)}

static const struct option_row own_rows[] = {
	{.help = "Which processes:", .verbs = FOR_AGENT},
	VALUE("exclude", "RULE", parse_exclude, "never sample processes that match; may be repeated"),
	VALUE("rules", "FILE", parse_rules, "read rules from FILE, one per line; a line that begins\n"
	      "with 'exclude' excludes"),
	{.long_name = "min-age", .argument = "TIME", .parse = parse_min_age, .rare = true,
	 .help = "ignore younger processes; default 10s"},
	{.long_name = "list", .help = "print which processes would be sampled, and why or why\n"
	 "not, and exit", .flag_offset = offsetof(struct options, agent.list), .flag_value = true},
	{.help = "How much:", .verbs = FOR_AGENT},
	VALUE("window", "TIME", parse_window, "sample a process for this long at a time; default 10s"),
	VALUE("period", "TIME", parse_period, "sample it once in this time; default 60s"),
	{.long_name = "max-processes", .argument = "N", .parse = parse_max_processes, .rare = true,
	 .help = "sample at most N processes at a time; default 50"},
	VALUE("max-cpu", "PERCENT", parse_max_cpu, "use at most this much of one CPU, all together;\n"
	      "default 5; 0: no limit"),
	{.long_name = "max-memory", .argument = "SIZE", .parse = parse_max_memory, .rare = true,
	 .help = "use at most this much memory, all together; default\n256M"},
	{.long_name = "off-file", .argument = "FILE", .parse = parse_off_file, .rare = true,
	 .help = "sample nothing while this file exists; default\n/run/profiler/off"},
	{.help = "Where the profiles go:", .verbs = FOR_AGENT},
	{.long_name = "push", .argument = "URL",
	 .help = "send them to this server (profiler push --help says\nwhich)"},
	{.short_name = 'o', .long_name = "output", .argument = "FILE",
	 .help = "the directory for them; with --push, for those that\nare not sent yet"},
};
// clang-format on

const struct option_table agent_rows = {.rows = own_rows, .n_rows = array_size(own_rows)};

struct error *agent_take_word(struct options *options, const char *word)
{
	return take_source(&options->agent, (struct agent_rule_source){RULE_CHOOSES, word});
}

static void set_defaults(struct options *options)
{
	struct agent_options *agent = &options->agent;

	if (!agent->window_ns)
		agent->window_ns = WINDOW_NS;
	if (!agent->period_ns)
		agent->period_ns = PERIOD_NS;
	if (!agent->min_age_ns)
		agent->min_age_ns = MIN_AGE_NS;
	if (!agent->max_processes)
		agent->max_processes = MAX_PROCESSES;
	if (agent->max_cpu_percent < 0)
		agent->max_cpu_percent = MAX_CPU_PERCENT;
	if (!agent->max_memory)
		agent->max_memory = MAX_MEMORY_BYTES;
	if (!agent->off_file)
		agent->off_file = "/run/profiler/off";
}

static struct error *check_rules(const struct agent_rules *rules)
{
	if (agent_rules_choose(rules))
		return NULL;
	return option_error("agent: give a rule such as comm=java, user=app, unit=shop.service, or "
	                    "comm=.* for all");
}

struct error *agent_options_reread_rules(struct agent_options *agent)
{
	struct agent_rules rules = {0};
	struct error *error = NULL;

	for (size_t i = 0; !error && i < agent->n_sources; i++)
		error = add_rules(&rules, &agent->sources[i]);
	if (!error)
		error = check_rules(&rules);
	if (error) {
		agent_rules_deinit(&rules);
		return error;
	}
	agent_rules_deinit(&agent->rules);
	agent->rules = rules;
	return NULL;
}

struct error *agent_check(struct options *options)
{
	struct agent_options *agent = &options->agent;

	set_defaults(options);
	struct error *error = check_rules(&agent->rules);
	if (error)
		return error;
	if (agent->period_ns < agent->window_ns)
		return option_error("agent: --period is shorter than --window");
	if (!agent->list && !options->push.destination.url && !options->output)
		return option_error(
		    "agent: give a server (--push=URL) or a directory for the profiles (-o DIR)");
	return options_check_directory(options);
}

void agent_options_deinit(struct agent_options *agent)
{
	agent_rules_deinit(&agent->rules);
	free(agent->sources);
}

void agent_command_prepare(struct options *options)
{
	options->duration_ns = options->agent.window_ns;
	options->writer = &writer_pprof;
	options->quiet = true;
	options->metrics = NULL;                        // the agent's
	destination_deinit(&options->push.destination); // the agent's uploader has it
}

static struct error *list(const struct options *options)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return error_create(EXIT_STATUS_OUTPUT, "no memory for the list");
	struct error *error = agent_list(options, stream);
	fclose(stream);
	if (!error)
		error = show_text(text);
	free(text);
	return error;
}

static struct error *find_directory(struct options *options, char **ret)
{
	if (!options->output) {
		struct error *error = pusher_find_spool(options, ret);
		if (error)
			return error;
		options->output = *ret;
	}
	if (mkdir(options->output, 0700) == 0 || errno == EEXIST)
		return NULL;
	return error_create(EXIT_STATUS_OUTPUT, "cannot make the directory %s: %s", options->output,
	                    strerror(errno));
}

// Two agents would give windows of one process the same name, and one would replace the other's.
// The lock ends with the agent, as its children give it up; how long that takes one that was killed
// is waited for.
static struct error *lock_directory(struct options *options)
{
	const char *path = options->output;
	const struct timespec moment = clock_timespec(LOCK_LOOK_NS);
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = -1;

	if (fd < 0 || access(path, W_OK | X_OK) != 0) {
		struct error *error =
		    error_create(EXIT_STATUS_OUTPUT, "cannot write to the directory %s: %m", path);
		close(fd);
		return error;
	}
	options->agent.lock_fd = fd;
	for (int i = 0; i < MAX_LOCK_LOOKS && result != 0; i++) {
		if (i > 0)
			nanosleep(&moment, NULL);
		result = flock(fd, LOCK_EX | LOCK_NB);
		if (result != 0 && errno != EWOULDBLOCK)
			return NULL; // this file system has no locks
	}
	if (result == 0)
		return NULL;
	return error_create(
	    EXIT_STATUS_OUTPUT,
	    "agent: another agent uses the directory %s: give each its own (-o DIR)", path);
}

struct error *agent_command(struct options *options,
                            int (*sample)(void *context, struct run_told *told), void *context)
{
	_cleanup_free_ char *spool = NULL;
	struct pusher pusher = {0};

	if (options->agent.list)
		return list(options);
	struct error *error = find_directory(options, &spool);
	if (!error)
		error = lock_directory(options);
	if (!error && options->push.destination.url)
		error = pusher_start(&pusher, options, NULL);
	if (error)
		return error;
	agent_run(options, &(struct agent_sampler){.sample = sample, .context = context}, &pusher);
	pusher_deinit(&pusher);
	return NULL;
}
