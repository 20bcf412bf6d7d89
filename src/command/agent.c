// SPDX-License-Identifier: MIT
#include "agent.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_cost.h"
#include "agent_list.h"
#include "agent_process.h"
#include "clock.h"
#include "error.h"
#include "hash.h"
#include "memory.h"
#include "metrics.h"
#include "name_cache.h"
#include "options.h"
#include "process_labels.h"
#include "process_list.h"
#include "profile_writer.h"
#include "pusher.h"
#include "stayers.h"
#include "untrusted_file.h"
#include "window_files.h"
#include "writer.h"

#define SCAN_EVERY_NS (5 * NS_PER_SECOND)
#define EXAMINE_EVERY_NS (60 * NS_PER_SECOND) // names and labels change, by exec among others
#define METRICS_EVERY_NS (5 * NS_PER_SECOND)
#define STEP_NS (NS_PER_SECOND / 2)
// Until one is tried again that could not be traced, did not tell who it is, or took too much.
#define DENIED_NS (600 * NS_PER_SECOND)
#define NAMING_NS (300 * NS_PER_SECOND) // a sampler that takes longer for names is stuck
#define END_NS (30 * NS_PER_SECOND)     // for samplers to end

enum {
	STATUS_DENIED = 100,           // of a sampler: its process may not be traced
	STATUS_ENDED,                  // its process has ended before its window
	STATUS_SILENT,                 // its process keeps its environment to itself
	STATUS_KILLED = 128 + SIGKILL, // one of its processes was killed (supervise.h)
};

// A process of the machine. Those that are not chosen are looked at again from time to time.
struct watched {
	int pid;
	uint64_t start_time; // 0: not looked at yet
	bool is_seen;        // at the last scan
	bool is_chosen;
	int64_t examine_ns;        // when it is to be looked at next, CLOCK_MONOTONIC as the next
	int64_t window_ns;         // when its next window is due
	pid_t sampler;             // at work on it; 0: none
	struct run_told *told;     // by the sampler
	int64_t begun_ns;          // since when
	bool is_told, is_given_up; // to end; to leave all
};

struct agent {
	struct options *options;
	const struct agent_sampler *sampler;
	struct pusher *pusher;
	struct agent_cost cost;
	struct name_cache *names;
	uint64_t host;         // a hash of what tells this machine from others
	struct watched *items; // by pid, ascending
	size_t count, capacity;
	size_t n_running;
	int64_t scan_ns;      // when the next scan is due
	bool is_off;          // by the file
	sigset_t set, before; // of signals: awaited; blocked at the start
	uint32_t n_forked;    // samplers
	struct agent_counts counts;
	bool was_kept_waiting; // in this step, by a process
	int64_t start_ns;      // CLOCK_REALTIME
	int64_t metrics_ns;    // when they are due next
	bool metrics_failed;
};

static uint64_t hash_file(uint64_t hash, const char *path)
{
	char text[256];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return n > 0 ? hash_mix(hash, hash_bytes(text, (size_t)n)) : hash;
}

// Images of containers share a machine's id; no two kernels share that of their start.
static uint64_t hash_host(void)
{
	return hash_file(hash_file(0, "/etc/machine-id"), "/proc/sys/kernel/random/boot_id");
}

// Its first window comes at a place in the period that differs by machine and process.
static int64_t first_window_ns(const struct agent *agent, const struct watched *watched)
{
	const int64_t period_ns = agent->options->agent.period_ns, now_ns = clock_now_ns();
	const uint64_t hash =
	    hash_mix(hash_mix(agent->host, (uint64_t)watched->pid), watched->start_time);
	const int64_t phase_ns = (int64_t)(hash % (uint64_t)period_ns);

	return now_ns + (phase_ns + period_ns - now_ns % period_ns) % period_ns;
}

static int compare(const void *a, const void *b)
{
	const struct watched *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void forget_unseen(struct agent *agent)
{
	size_t kept = 0;

	for (size_t i = 0; i < agent->count; i++)
		if (agent->items[i].is_seen || agent->items[i].sampler)
			agent->items[kept++] = agent->items[i];
	agent->count = kept;
}

// Who is there. A pid that is known may be another process's by now: examine() finds out.
static void scan(struct agent *agent)
{
	size_t n;
	_cleanup_free_ int *pids = process_all(&n);
	const size_t n_known = agent->count;

	for (size_t i = 0; i < n_known; i++)
		agent->items[i].is_seen = false;
	for (size_t i = 0, known = 0; i < n; i++) {
		while (known < n_known && agent->items[known].pid < pids[i])
			known++;
		if (known < n_known && agent->items[known].pid == pids[i])
			agent->items[known].is_seen = true;
		else
			*array_push(agent->items, agent->count, agent->capacity) =
			    (struct watched){.pid = pids[i], .is_seen = true};
	}
	forget_unseen(agent);
	if (agent->count > 0)
		qsort(agent->items, agent->count, sizeof(*agent->items), compare);
}

static void note_choice(struct agent *agent, struct watched *watched,
                        const struct agent_process *process, const struct agent_choice *choice)
{
	const int64_t now_ns = clock_now_ns(), min_age_ns = agent->options->agent.min_age_ns;
	const bool was_chosen = watched->is_chosen && watched->start_time == process->start_time;

	watched->start_time = process->start_time;
	watched->is_chosen = choice->verdict == AGENT_CHOSEN;
	watched->examine_ns = now_ns + EXAMINE_EVERY_NS;
	if (process->age_ns < min_age_ns)
		watched->examine_ns = now_ns + min_age_ns - process->age_ns;
	if (watched->is_chosen && !was_chosen)
		watched->window_ns = first_window_ns(agent, watched);
}

// One such a step: meanwhile windows of others are due.
static void note_silent(struct agent *agent, struct watched *watched)
{
	watched->examine_ns = watched->window_ns = clock_now_ns() + DENIED_NS;
	agent->was_kept_waiting = true;
	if (!agent->counts.silent++ && !agent->options->quiet)
		fprintf(stderr,
		        "profiler: agent: process %d is not sampled: its command line, environment "
		        "or user name could not be read within a second\n",
		        watched->pid);
}

// Looks at the process anew. False: it has ended. On success the caller deinits *ret.
static bool examine(struct agent *agent, struct watched *watched, struct agent_process *ret,
                    struct agent_choice *ret_choice)
{
	if (!agent_process_look(watched->pid, ret)) {
		watched->is_chosen = false;
		watched->examine_ns = clock_now_ns() + EXAMINE_EVERY_NS;
		return false;
	}
	*ret_choice = (struct agent_choice){.verdict = AGENT_YOUNG};
	if (ret->age_ns >= agent->options->agent.min_age_ns) // else most have ended by then
		*ret_choice = agent_choose(&agent->options->agent, ret);
	note_choice(agent, watched, ret, ret_choice);
	if (ret_choice->verdict == AGENT_SILENT)
		note_silent(agent, watched);
	return true;
}

static void examine_due(struct agent *agent)
{
	const int64_t now_ns = clock_now_ns();
	struct agent_process process;
	struct agent_choice choice;

	for (size_t i = 0; i < agent->count && !agent->was_kept_waiting; i++) {
		struct watched *watched = &agent->items[i];
		if (watched->examine_ns > now_ns || watched->sampler ||
		    !examine(agent, watched, &process, &choice))
			continue;
		agent_process_deinit(&process);
	}
}

// Its labels, and that the values are of a part of the time. NULL: they are not told.
static char **make_comments(const struct options *options, int pid, const struct agent_rule *rule)
{
	const struct agent_options *agent = &options->agent;
	struct push_labels labels = {0};

	if (!process_labels_read(pid, &labels))
		return NULL;
	process_labels_add(&labels, &rule->labels);
	process_labels_add(&labels, &options->push.labels);
	char **comments = process_labels_comments(&labels);
	size_t capacity = labels.count + 1;
	comments = memory_grow(comments, &capacity, labels.count + 2, sizeof(*comments));
	comments[labels.count] =
	    memory_printf("sampled for %g s of every %g s", clock_seconds(agent->window_ns),
	                  clock_seconds(agent->period_ns));
	comments[labels.count + 1] = NULL;
	push_labels_deinit(&labels);
	return comments;
}

// False: it has ended, and the pid may be another's.
static bool is_still_there(const struct agent_process *process)
{
	struct proc_stat stat;

	return proc_read_stat(-1, process->pid, process->pid, &stat) &&
	       stat.start_time == process->start_time;
}

// In the child, which ends sampling soon after the agent ends, however that comes. What the process
// might keep waiting is done here: then it is this child that waits.
static void become_sampler(const struct agent *agent, const struct agent_process *process,
                           const struct agent_rule *rule, pid_t parent, struct run_told *told)
{
	struct options *options = agent->options;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_STATUS_OK);
	close(options->agent.lock_fd);
	sigprocmask(SIG_SETMASK, &agent->before, NULL);
	agent_memory_limit(options->agent.max_memory);
	_cleanup_free_ char *obstacle = agent_process_obstacle(process);
	if (obstacle && options->verbose)
		fprintf(stderr, "profiler: agent: process %d (%s) is not sampled: %s\n",
		        process->pid, process->name, obstacle);
	if (obstacle)
		_exit(STATUS_DENIED);
	options->pid = process->pid;
	options->agent.comments = (const char *const *)make_comments(options, process->pid, rule);
	if (!options->agent.comments)
		_exit(STATUS_SILENT);
	options->agent.names = agent->names;
	options->output =
	    window_files_path(options->output, process->pid, agent->n_forked,
	                      clock_read_ns(CLOCK_REALTIME), writer_pprof.default_suffix);
	if (!is_still_there(process))
		_exit(STATUS_ENDED);
	_exit(agent->sampler->sample(agent->sampler->context, told));
}

static void start_sampler(struct agent *agent, struct watched *watched,
                          const struct agent_process *process, const struct agent_rule *rule)
{
	struct run_told *told = run_told_create();
	const pid_t parent = getpid();

	fflush(NULL);
	const pid_t child = fork();
	if (child == 0)
		become_sampler(agent, process, rule, parent, told);
	agent->counts.failed += child < 0;
	if (child < 0) {
		run_told_destroy(told);
		return;
	}
	agent->n_forked++;
	watched->sampler = child;
	watched->told = told;
	watched->begun_ns = clock_now_ns();
	watched->is_told = watched->is_given_up = false;
	agent->n_running++;
	agent->counts.windows++;
}

// The window is due: if the process is still one to be sampled, it begins.
static void begin_window(struct agent *agent, struct watched *watched)
{
	const int64_t period_ns = agent->options->agent.period_ns, now_ns = clock_now_ns();
	struct agent_process process;
	struct agent_choice choice;

	if (!examine(agent, watched, &process, &choice))
		return;
	if (choice.verdict == AGENT_CHOSEN && watched->window_ns <= now_ns) {
		const int64_t late_ns = now_ns - watched->window_ns;
		agent->counts.left_out += (uint64_t)(late_ns / period_ns);
		// After one that came late not at once.
		watched->window_ns += ((late_ns + period_ns / 2) / period_ns + 1) * period_ns;
		start_sampler(agent, watched, &process, choice.rule);
	}
	agent_process_deinit(&process);
}

// The one that waits longest; NULL: none is due.
static struct watched *find_due(const struct agent *agent)
{
	const int64_t now_ns = clock_now_ns();
	struct watched *due = NULL;

	for (size_t i = 0; i < agent->count; i++) {
		struct watched *watched = &agent->items[i];
		if (watched->is_chosen && !watched->sampler && watched->window_ns <= now_ns &&
		    (!due || watched->window_ns < due->window_ns))
			due = watched;
	}
	return due;
}

static void begin_due(struct agent *agent)
{
	struct watched *due;

	while (!agent->was_kept_waiting && agent->n_running < agent->options->agent.max_processes &&
	       (due = find_due(agent)) && agent_cost_allows(&agent->cost, agent->n_running))
		begin_window(agent, due);
}

static void note_denied(struct agent *agent, struct watched *watched)
{
	watched->window_ns = clock_now_ns() + DENIED_NS;
	agent->counts.windows--;
	if (!agent->counts.denied++ && !agent->options->quiet)
		fprintf(stderr, "profiler: agent: a rule matches a process that cannot be sampled: "
		                "profiler agent --list says why\n");
}

// Leaves its process alone for a while. Only the first end for that reason is told.
static void note_bad_end(struct agent *agent, struct watched *watched, const char *why,
                         uint64_t *n_such)
{
	watched->window_ns = clock_now_ns() + DENIED_NS;
	if (!(*n_such)++ && !agent->options->quiet)
		fprintf(stderr,
		        "profiler: agent: the sampler of process %d %s; the process is not sampled "
		        "for %d minutes\n",
		        watched->pid, why, (int)(DENIED_NS / NS_PER_SECOND / 60));
}

static void count(struct agent_counts *counts, const struct run_told *told)
{
	const struct run_stats *stats = &told->stats;

	counts->ticks += stats->ticks;
	counts->missed_ticks += stats->missed_ticks;
	counts->samples += stats->samples;
	counts->unmended_calls += stats->calls.left;
	if (stats->samples > 0 && !told->is_written) {
		counts->lost_windows++;
		counts->lost_samples += stats->samples;
	}
}

static void note_end(struct agent *agent, struct watched *watched, int status)
{
	count(&agent->counts, watched->told);
	run_told_destroy(take_pointer(watched->told));
	watched->sampler = 0;
	agent->n_running--;
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (code == STATUS_DENIED)
		note_denied(agent, watched);
	else if (code == STATUS_ENDED || code == STATUS_SILENT ||
	         (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM))
		agent->counts.windows--; // it had not begun
	else
		agent->counts.failed += code != EXIT_STATUS_OK;
	if (code == STATUS_SILENT)
		note_silent(agent, watched);
	if (watched->is_given_up)
		note_bad_end(agent, watched, "used too much memory or time and was stopped",
		             &agent->counts.over_limit);
	else if (code == STATUS_KILLED)
		note_bad_end(agent, watched, "was killed, perhaps by the kernel as memory ran out",
		             &agent->counts.killed);
	else if (code == EXIT_STATUS_TARGET) // as where its memory was at an end
		watched->window_ns = clock_now_ns() + DENIED_NS;
}

// Somebody may have stopped it.
static void signal_sampler(const struct watched *watched, int number)
{
	kill(watched->sampler, number);
	kill(watched->sampler, SIGCONT);
}

// Its window ends early, and is written. Once: another signal would cut a call that is left
// unfinished (parting.h).
static void tell_to_end(struct watched *watched)
{
	if (!watched->is_told)
		signal_sampler(watched, SIGTERM);
	watched->is_told = true;
}

// It takes too much memory or time (struct supervised): what it has not written is lost.
static void give_up(struct watched *watched)
{
	if (!watched->is_given_up)
		signal_sampler(watched, SIGUSR2);
	watched->is_given_up = true;
}

// Takes note of samplers that have ended, and ends those that never will.
static void collect(struct agent *agent)
{
	const int64_t limit_ns = agent->options->agent.window_ns + NAMING_NS;

	for (size_t i = 0; i < agent->count; i++) {
		struct watched *watched = &agent->items[i];
		struct rusage usage;
		int status;
		if (!watched->sampler)
			continue;
		if (wait4(watched->sampler, &status, WNOHANG, &usage) != 0) {
			note_end(agent, watched, status);
			agent_cost_pay(&agent->cost, &usage);
		} else if (clock_now_ns() - watched->begun_ns > limit_ns) {
			give_up(watched);
		}
	}
}

// Together they take too much memory: the one that takes most is ended, before the kernel kills
// somebody. What those have that are just being ended is as good as free.
static void end_largest(struct agent *agent)
{
	struct watched *largest = NULL;
	uint64_t most = 0, kept = agent->cost.memory;

	for (size_t i = 0; i < agent->count; i++) {
		struct watched *watched = &agent->items[i];
		const uint64_t bytes = watched->sampler ? agent_memory_of(watched->sampler) : 0;
		if (bytes > 0 && watched->is_given_up) {
			kept -= bytes < kept ? bytes : kept;
		} else if (bytes > most) {
			most = bytes;
			largest = watched;
		}
	}
	if (largest && kept > agent->cost.max_memory)
		give_up(largest);
}

static void tell_samplers(struct agent *agent)
{
	for (size_t i = 0; i < agent->count; i++)
		if (agent->items[i].sampler)
			tell_to_end(&agent->items[i]);
}

// While the file is there nothing is sampled.
static bool look_for_off_file(struct agent *agent)
{
	const char *path = agent->options->agent.off_file;
	const bool is_off = access(path, F_OK) == 0;

	if (is_off != agent->is_off && !agent->options->quiet)
		fprintf(stderr, "profiler: agent: %s is %s: %s\n", path, is_off ? "there" : "gone",
		        is_off ? "nothing is sampled" : "sampling continues");
	if (is_off)
		tell_samplers(agent);
	agent->is_off = is_off;
	return is_off;
}

// Samplers at work keep theirs.
static void look_after_names(struct agent *agent)
{
	if (agent->names && !name_cache_is_full(agent->names))
		return;
	name_cache_destroy(agent->names);
	agent->names = name_cache_create();
}

static void write_metrics(struct agent *agent, bool ended)
{
	const struct options *options = agent->options;
	struct agent_metrics metrics = {
	    .ended = ended,
	    .is_off = agent->is_off,
	    .start_ns = agent->start_ns,
	    .n_processes = agent->count,
	    .n_running = agent->n_running,
	    .counts = &agent->counts,
	    .cost = &agent->cost,
	    .push = agent->pusher->counts,
	};

	if (!options->metrics)
		return;
	for (size_t i = 0; i < agent->count; i++)
		metrics.n_chosen += agent->items[i].is_chosen;
	struct error *error = agent_metrics_write(options->metrics, &metrics);
	if (error && !agent->metrics_failed)
		fprintf(stderr, "profiler: agent: --metrics: %s\n", error_message(error));
	agent->metrics_failed = error != NULL;
	error_destroy(error);
}

static bool is_own_child(const void *context, pid_t pid)
{
	const struct agent *agent = context;
	bool is_own = pid == agent->pusher->uploader;

	for (size_t i = 0; i < agent->count; i++)
		is_own |= pid == agent->items[i].sampler;
	return is_own;
}

static void step(struct agent *agent)
{
	const int64_t now_ns = clock_now_ns();

	agent->was_kept_waiting = false;
	collect(agent);
	stayers_reap(is_own_child, agent);
	look_after_names(agent);
	agent_cost_count(&agent->cost, agent->pusher->uploader);
	if (agent_cost_looks_over_limit(&agent->cost))
		end_largest(agent);
	pusher_poll(agent->pusher);
	if (now_ns >= agent->metrics_ns) {
		agent->metrics_ns = now_ns + METRICS_EVERY_NS;
		write_metrics(agent, false);
	}
	if (look_for_off_file(agent))
		return;
	if (now_ns >= agent->scan_ns) {
		agent->scan_ns = now_ns + SCAN_EVERY_NS;
		scan(agent);
	}
	examine_due(agent);
	begin_due(agent);
}

static void end(struct agent *agent)
{
	const int64_t until_ns = clock_now_ns() + END_NS;
	const struct timespec timeout = clock_timespec(STEP_NS);
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	tell_samplers(agent);
	for (collect(agent); agent->n_running > 0 && clock_now_ns() < until_ns; collect(agent))
		sigtimedwait(&child, NULL, &timeout);
	stayers_end();
	agent_cost_count(&agent->cost, agent->pusher->uploader);
}

static void sum_up(const struct agent *agent)
{
	if (agent->options->quiet)
		return;
	fprintf(stderr,
	        "profiler: agent: %" PRIu64 " windows, %" PRIu64 " of them failed; %" PRIu64
	        " were left out, as there was no room for them; %" PRIu64
	        " times a process could not be sampled; %.1f s of CPU time, %" PRIu64
	        " MB at most\n",
	        agent->counts.windows, agent->counts.failed, agent->counts.left_out,
	        agent->counts.denied, clock_seconds(agent->cost.total_cpu_ns),
	        agent->cost.peak_memory >> 20);
}

// Windows at work go on, and each process is looked at anew.
static void reread_rules(struct agent *agent)
{
	struct agent_options *options = &agent->options->agent;
	struct error *error = agent_options_reread_rules(options);

	if (error)
		fprintf(stderr, "profiler: agent: the old rules are kept: %s\n",
		        error_message(error));
	else if (!agent->options->quiet)
		fprintf(stderr, "profiler: agent: the rules were read again\n");
	error_destroy(error);
	agent->scan_ns = 0;
	for (size_t i = 0; i < agent->count; i++)
		agent->items[i].examine_ns = 0;
}

static void block_signals(struct agent *agent)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGCHLD};

	sigemptyset(&agent->set);
	for (size_t i = 0; i < array_size(numbers); i++)
		sigaddset(&agent->set, numbers[i]);
	sigprocmask(SIG_BLOCK, &agent->set, &agent->before);
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

void agent_run(struct options *options, const struct agent_sampler *sampler, struct pusher *pusher)
{
	struct agent agent = {
	    .options = options,
	    .sampler = sampler,
	    .pusher = pusher,
	    .host = hash_host(),
	    .start_ns = clock_read_ns(CLOCK_REALTIME),
	};
	const struct timespec timeout = clock_timespec(STEP_NS);
	int number;

	agent_cost_init(&agent.cost, options->agent.max_cpu_percent, options->agent.max_memory);
	block_signals(&agent);
	stayers_adopt();
	do {
		step(&agent);
		number = sigtimedwait(&agent.set, NULL, &timeout);
		if (number == SIGHUP)
			reread_rules(&agent);
	} while (number < 0 || number == SIGCHLD || number == SIGHUP);
	end(&agent);
	pusher_end(pusher);
	untrusted_file_end();
	write_metrics(&agent, true);
	sum_up(&agent);
	name_cache_destroy(agent.names);
	free(agent.items);
}
