// SPDX-License-Identifier: MIT
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "events.h"
#include "memory.h"
#include "proc.h"
#include "profile.h"
#include "run_stats.h"
#include "sampler.h"
#include "schedule.h"
#include "target.h"
#include "tracee.h"

enum {
	// For threads that do not stop, at the end: on a busy machine each waits for its turn to
	// run.
	LAST_WAIT_NS = 500000000,
	MAX_CHILDREN_TEXT = 1 << 20,
	SPARE_FDS = 8,
};

struct process {
	struct target *target;
	struct target own_target; // a descendant's; the sampler's targets are borrowed
	struct ticker ticker;
	bool ended;
};

static bool is_descendant(const struct process *process)
{
	return process->target == &process->own_target;
}

static struct process *add_process(struct processes *processes, struct target *borrowed)
{
	struct process *process = memory_alloc_zeroed(1, sizeof(*process));

	process->target = borrowed ? borrowed : &process->own_target;
	*array_push(processes->items, processes->count, processes->capacity) = process;
	return process;
}

static void attend(void *context)
{
	struct processes *processes = context;

	struct events *events = processes->hold.events;

	// Those that a signal handler has let go are still to be counted.
	if (!tracee_has_any() && !events->served)
		return;
	if (tracee_take_unserved())
		events_note_served(events);
	const int64_t looked_ns = clock_now_ns();
	if (!events_child_came(events) && !processes->hold.no_room) {
		held_time_note_none(&processes->hold, looked_ns);
		return;
	}
	tracee_serve();
	processes->hold.no_room = false;
	for (size_t i = 0; i < processes->count; i++)
		ticker_attend(&processes->items[i]->ticker);
}

// Copies, in a signal handler, what has stopped, and lets it go; the next attend() counts it.
static void serve(void *context)
{
	struct processes *processes = context;

	tracee_serve();
	processes->hold.no_room = false;
	for (size_t i = 0; i < processes->count; i++)
		ticker_serve(&processes->items[i]->ticker);
}

static void set_server(struct processes *processes, bool serves)
{
	processes->hold.server = (struct held_time_server){serves ? serve : NULL, processes};
}

bool processes_init(struct processes *processes, const struct sampler *sampler,
                    struct profile *profile, struct run_stats *stats)
{
	*processes = (struct processes){
	    .stats = stats,
	    .children = sampler->children,
	};
	if (!snapshot_buffer_init(&processes->buffer))
		return false;
	held_time_init(&processes->hold, stats, sampler->events);
	set_server(processes, !sampler->stop_all); // else those of a tick are held together
	machine_load_init(&processes->load);
	thread_sums_init(&processes->sums);
	processes->setup = (struct ticker_setup){
	    .profile = profile,
	    .modules = sampler->modules,
	    .rules = &processes->rules,
	    .hold = &processes->hold,
	    .load = &processes->load,
	    .sums = &processes->sums,
	    .buffer = &processes->buffer,
	    .max_frames = sampler->max_frames,
	    .huge_frames = sampler->huge_frames,
	    .runtimes = sampler->runtimes,
	    .runtime_frames = sampler->runtime_frames,
	    .stop_all = sampler->stop_all,
	    .kernel = sampler->kernel,
	    .locks = sampler->locks,
	    .system_tasks = sampler->system_tasks,
	    .no_creators = sampler->no_creators,
	    .counts_at_once = sampler->counts_at_once,
	    .attend = sampler->stop_all ? NULL : attend,
	    .attend_context = processes,
	};
	for (size_t i = 0; i < sampler->n_targets; i++) {
		struct process *process = add_process(processes, &sampler->targets[i]);
		ticker_init(&process->ticker, process->target, &processes->setup);
	}
	return true;
}

static void note_unwinding(struct processes *processes, const struct unwinder *unwinder)
{
	processes->stats->n_frames += unwinder->n_frames;
	processes->stats->n_frame_pointer_steps += unwinder->n_frame_pointer_steps;
	processes->stats->n_code_steps += unwinder->n_code_steps;
}

static void destroy_process(struct processes *processes, struct process *process)
{
	note_unwinding(processes, &process->ticker.unwinder);
	ticker_deinit(&process->ticker);
	if (is_descendant(process))
		target_close(process->target);
	free(process);
}

void processes_deinit(struct processes *processes)
{
	for (size_t i = 0; i < processes->count; i++)
		destroy_process(processes, processes->items[i]);
	processes->stats->n_rules = processes->rules.n_made;
	free(processes->items);
	free(processes->refused);
	rule_cache_deinit(&processes->rules);
	snapshot_buffer_deinit(&processes->buffer);
	held_time_deinit(&processes->hold);
	machine_load_deinit(&processes->load);
	thread_sums_deinit(&processes->sums);
	*processes = (struct processes){0};
}

void processes_set_held(struct processes *processes, bool held)
{
	processes->items[0]->ticker.held_at_exec = held;
}

static bool is_sampled(const struct processes *processes, int pid)
{
	for (size_t i = 0; i < processes->count; i++)
		if (processes->items[i]->target->pid == pid && !processes->items[i]->ended)
			return true;
	return false;
}

static bool is_refused(const struct processes *processes, int pid, uint64_t start_time)
{
	for (size_t i = 0; i < processes->n_refused; i++)
		if (processes->refused[i].pid == pid &&
		    processes->refused[i].start_time == start_time)
			return true;
	return false;
}

static void add_child(struct processes *processes, int pid)
{
	struct proc_stat stat;

	// A process that has ended stays listed until its parent has waited for it.
	if (is_sampled(processes, pid) || !proc_read_stat(-1, pid, pid, &stat) ||
	    stat.state == 'Z' || is_refused(processes, pid, stat.start_time))
		return;
	struct process *process = add_process(processes, NULL);
	_cleanup_error_ struct error *error = target_open(pid, false, process->target);
	if (!error) {
		ticker_init(&process->ticker, process->target, &processes->setup);
		return;
	}
	processes->count--;
	free(process);
	if (!proc_read_stat(-1, pid, pid, &stat) || stat.state == 'Z')
		return; // it has ended meanwhile
	// The child has privileges, is traced, or is a 32-bit program.
	processes->stats->refused_children++;
	*array_push(processes->refused, processes->n_refused, processes->refused_capacity) =
	    (struct refused_child){pid, stat.start_time};
}

static void add_children_of(struct processes *processes, const struct target *target, int tid)
{
	_cleanup_close_ int fd = target_open_file(target, tid, "children");
	_cleanup_free_ char *text = NULL;
	size_t size = 0, capacity = 0;

	while (fd >= 0 && size < MAX_CHILDREN_TEXT) {
		text = memory_grow(text, &capacity, size + 4096, 1);
		const ssize_t n = read(fd, text + size, capacity - size - 1);
		if (n <= 0)
			break;
		size += n;
	}
	if (!text)
		return;
	text[size] = '\0';
	for (char *at = text, *end;; at = end) {
		const long child = strtol(at, &end, 10);
		if (end == at)
			return;
		add_child(processes, (int)child);
	}
}

static void find_children(struct processes *processes, struct process *process)
{
	const struct target *target = process->target;

	for (size_t i = 0; i < target->n_threads; i++) {
		struct target_thread *thread = target->threads[i];
		if (thread->ran)
			add_children_of(processes, target, thread->tid);
		thread->ran = false;
	}
}

// Forgets the descendants that have ended.
static void forget_ended(struct processes *processes)
{
	size_t kept = 0;

	for (size_t i = 0; i < processes->count; i++) {
		if (processes->items[i]->ended && is_descendant(processes->items[i]))
			destroy_process(processes, processes->items[i]);
		else
			processes->items[kept++] = processes->items[i];
	}
	processes->count = kept;
}

void processes_prime(struct processes *processes, int64_t now_ns)
{
	for (size_t i = 0; i < processes->count; i++)
		ticker_prime(&processes->items[i]->ticker, now_ns);
}

bool processes_tick(struct processes *processes, const struct stretch *stretch)
{
	struct run_stats *stats = processes->stats;
	size_t n_looked = 0;
	bool goes_on = false;

	held_time_settle_tick(&processes->hold);
	stats->ticks++;
	stats->last_ns = stretch->until_ns;
	stats->threads = 0;
	stats->calls = tracee_call_counts();
	// Sample children that are found on the way in the same tick. They are looked for when it
	// is known who has ended: a child may have the pid of one that has.
	for (size_t i = 0; i < processes->count; i++) {
		struct process *process = processes->items[i];
		process->ended = process->ended || !ticker_tick(&process->ticker, stretch);
		goes_on |= !process->ended && !is_descendant(process);
		stats->threads += process->target->n_threads;
		while (processes->children && i + 1 == processes->count && n_looked <= i)
			find_children(processes, processes->items[n_looked++]);
	}
	forget_ended(processes);
	return goes_on;
}

void processes_visit(const struct processes *processes,
                     void (*visit)(void *context, const struct target *target), void *context)
{
	for (size_t i = 0; i < processes->count; i++)
		visit(context, processes->items[i]->target);
}

static void collect(struct processes *processes)
{
	processes->hold.no_room = false;
	for (size_t i = 0; i < processes->count; i++)
		ticker_collect(&processes->items[i]->ticker);
}

bool processes_begin_work(struct processes *processes)
{
	set_server(processes, true);
	processes->hold.between_ticks = true;
	return held_time_begin_work(&processes->hold);
}

void processes_end_work(struct processes *processes, bool begun)
{
	held_time_end_work(&processes->hold, begun);
	processes->hold.between_ticks = false;
	set_server(processes, !processes->setup.stop_all);
}

void processes_wait(struct processes *processes, int64_t deadline_ns)
{
	// First: a wait in one process's tick may have been told of stops in the others.
	collect(processes);
	held_time_wait(&processes->hold, deadline_ns);
	collect(processes);
}

// True if descriptors run short: reading threads, and continuing calls, takes one or two at a time.
static bool lacks_files(int fd)
{
	int spare[SPARE_FDS];
	size_t n = 0;

	while (n < SPARE_FDS && (spare[n] = fcntl(fd, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	const bool lacks = n < SPARE_FDS && (errno == EMFILE || errno == ENFILE);
	while (n > 0)
		close(spare[--n]);
	return lacks;
}

void processes_finish(struct processes *processes)
{
	const int64_t until_ns = clock_now_ns() + LAST_WAIT_NS;

	// For all together: who stops while another process's thread does not is let go at once.
	while (tracee_has_any() && clock_now_ns() < until_ns)
		processes_wait(processes, until_ns);
	for (size_t i = 0; i < processes->count; i++)
		ticker_finish(&processes->items[i]->ticker);
	held_time_settle_tick(&processes->hold);
	// First: to let the last ones go takes descriptors, too.
	processes->hold.stats->lacks_files = lacks_files(processes->items[0]->target->task_fd);
	tracee_abandon_all();
	processes->hold.stats->calls = tracee_call_counts();
}
