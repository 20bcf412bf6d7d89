// SPDX-License-Identifier: MIT
#include "dump_live.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blocked_since.h"
#include "call_text.h"
#include "clock.h"
#include "debug_server.h"
#include "dump.h"
#include "dump_problems.h"
#include "error.h"
#include "events.h"
#include "language_text.h"
#include "memory.h"
#include "options.h"
#include "peer_end.h"
#include "proc.h"
#include "process_list.h"
#include "resident.h"
#include "runtimes.h"
#include "sampler.h"
#include "syscall_numbers.h"
#include "target.h"
#include "targets.h"
#include "text.h"
#include "untrusted_text.h"

enum { SHOWN_COMMAND_BYTES = 200, FREQUENCY_HZ = 99 };

// A thread before anything was stopped.
struct early {
	int tid;
	uint64_t runs;      // the kernel's count of them
	int64_t blocked_ns; // since when it has not run; -1: not known
};

// One at the tick.
struct sampled {
	uint32_t thread; // in the profile
	int pid, tid;
	bool is_asleep; // in this call, and this is the kernel's count of its runs
	uint64_t runs;
	struct proc_syscall call;
	char *lock; // of a language's runtime that it waits for, as text; NULL: none
};

struct taking {
	const struct options *options; // borrowed, as the next two
	struct dump_live *live;
	struct events *events;
	struct early *early; // by tid
	size_t n_early, early_capacity;
	struct sampled *sampled;
	size_t n_sampled, sampled_capacity;
};

static int compare_early(const void *a_pointer, const void *b_pointer)
{
	const int a = ((const struct early *)a_pointer)->tid;
	const int b = ((const struct early *)b_pointer)->tid;

	return (a > b) - (a < b);
}

static void look_early_at(struct taking *taking, int pid, int64_t now_ns)
{
	size_t n;
	_cleanup_free_ int *tids = process_threads(pid, &n);
	_cleanup_free_ int64_t *blocked_ns = memory_alloc_zeroed(n + 1, sizeof(*blocked_ns));
	const size_t first = taking->n_early;
	struct proc_schedstat stat;

	for (size_t i = 0; i < n; i++)
		*array_push(taking->early, taking->n_early, taking->early_capacity) =
		    (struct early){
		        .tid = tids[i],
		        .runs = proc_read_schedstat(-1, pid, tids[i], &stat) ? stat.runs : 0,
		    };
	blocked_since_read(pid, tids, n, now_ns, blocked_ns);
	for (size_t i = 0; i < n; i++)
		taking->early[first + i].blocked_ns = blocked_ns[i];
}

static void look_early(struct taking *taking, const struct targets *targets)
{
	const int64_t now_ns = clock_now_ns();

	for (size_t i = 0; i < targets->n; i++) {
		const int pid = targets->items[i].pid;
		size_t n = 1;
		_cleanup_free_ int *tree = taking->options->children ? process_tree(pid, &n) : NULL;
		for (size_t j = 0; j < n; j++)
			look_early_at(taking, tree ? tree[j] : pid, now_ns);
	}
	if (taking->n_early > 0)
		qsort(taking->early, taking->n_early, sizeof(*taking->early), compare_early);
}

// Reads what the thread waits for once more: all that sleep were seen asleep by now, and nobody who
// has slept since then can have released a lock.
static char *read_lock(const struct target *target, const struct target_thread *thread)
{
	return thread->sleep.asleep && target->runtimes && thread->call.nr == SYS_futex
	           ? runtimes_name_futex(target->runtimes, thread->tid, thread->call.args[0])
	           : NULL;
}

// Threads that were asked to stop may stop meanwhile, and are not to be held: no more than that.
static void note_sampled(void *context, const struct target *target)
{
	struct taking *taking = context;

	for (size_t i = 0; i < target->n_threads; i++) {
		const struct target_thread *thread = target->threads[i];
		if (thread->gone)
			continue;
		*array_push(taking->sampled, taking->n_sampled, taking->sampled_capacity) =
		    (struct sampled){
		        .thread = thread->account.thread,
		        .pid = target->pid,
		        .tid = thread->tid,
		        .is_asleep =
		            thread->sleep.asleep && target->sees_syscalls && thread->has_schedstat,
		        .runs = thread->sleep.runs,
		        .call = thread->call,
		        .lock = read_lock(target, thread),
		    };
	}
}

static void find_locks(const struct taking *taking)
{
	struct dump_locks *locks = &taking->live->locks;

	for (size_t i = 0; i < taking->n_sampled; i++) {
		const struct sampled *sampled = &taking->sampled[i];
		dump_locks_add(locks, sampled->pid, sampled->tid, sampled->thread,
		               sampled->is_asleep, sampled->runs, sampled->lock);
		dump_locks_add_process(locks, sampled->pid);
	}
	dump_locks_look_again(locks);
}

static void nothing(void *context)
{
	(void)context;
}

static struct error *sample(struct taking *taking, const struct targets *targets)
{
	const struct options *options = taking->options;
	struct dump_live *live = taking->live;
	const struct sampler sampler = {
	    .frequency_hz = FREQUENCY_HZ,
	    .seed = 1,
	    .max_frames = options->max_depth,
	    .huge_frames = options->huge_depth,
	    .stop_all = options->stop_all,
	    .children = options->children,
	    .runtimes = options->runtimes,
	    .runtime_frames = options->runtime_frames,
	    .kernel = options->kernel,
	    .system_tasks = options->system_tasks,
	    .no_creators = options->no_creators,
	    .counts_at_once = true,
	    .once = true,
	    .targets = targets->items,
	    .n_targets = targets->n,
	    .events = taking->events,
	    .modules = &live->modules,
	    .started = nothing,
	    .ticked = nothing,
	    .passed = nothing,
	    .looked = note_sampled,
	    .context = taking,
	};

	return sampler_run(&sampler, &live->profile, &live->stats);
}

static char *read_command(int pid)
{
	_cleanup_free_ char *command = untrusted_command(pid);
	char name[PROC_NAME_SIZE];

	if (command && command[0])
		return text_clean(command, strlen(command), SHOWN_COMMAND_BYTES);
	if (!proc_read_name(pid, pid, name))
		name[0] = '\0';
	return text_clean(name, strlen(name), SHOWN_COMMAND_BYTES);
}

static int64_t read_up_ns(int pid)
{
	const long ticks_per_second = sysconf(_SC_CLK_TCK);
	struct proc_stat stat;

	if (!proc_read_stat(-1, pid, pid, &stat) || ticks_per_second <= 0)
		return -1;
	const int64_t start_ns =
	    (int64_t)(stat.start_time * (uint64_t)(NS_PER_SECOND / ticks_per_second));
	const int64_t up_ns = clock_read_ns(CLOCK_BOOTTIME) - start_ns;
	return up_ns > 0 ? up_ns : 0;
}

// Finds who has the other ends of pipes and sockets that tasks wait for.

// True if the pipe or socket is written to.
static void note_way(void *context, const struct dump_frame *frame)
{
	bool *is_written = context;

	*is_written |= strcmp(frame->name, "internal/poll.(*pollDesc).waitWrite") == 0;
}

static bool find_wanted(const struct dump *dump, const struct dump_thread *thread,
                        struct peer_wanted *ret)
{
	const struct thread *entry = dump_thread_of(dump, thread);
	const uint32_t wait = dump->profile->samples[thread->sample].wait;

	*ret = (struct peer_wanted){.pid = entry->pid, .tid = entry->pid};
	if (!entry->is_task || thread->holder || wait == WAIT_NONE ||
	    !dump->profile->waits[wait].reason[0] ||
	    !peer_end_parse(dump->profile->waits[wait].descriptor, &ret->inode, &ret->is_socket))
		return false;
	dump_frames(dump, thread->sample, note_way, &ret->is_written);
	return true;
}

// Sets `holder` of the dump's tasks that wait for a pipe or socket, if the other end is known.
static void dump_tasks_find_peers(struct dump *dump)
{
	_cleanup_free_ struct peer_wanted *wanted =
	    memory_alloc_zeroed(dump->n_threads + 1, sizeof(*wanted));
	_cleanup_free_ struct dump_thread **waiters =
	    memory_alloc_zeroed(dump->n_threads + 1, sizeof(struct dump_thread *));
	size_t n = 0;

	for (size_t i = 0; i < dump->n_threads; i++)
		if (find_wanted(dump, &dump->threads[i], &wanted[n]))
			waiters[n++] = &dump->threads[i];
	if (n > 0)
		peer_end_find(wanted, n, NULL, 0);
	for (size_t i = 0; i < n; i++)
		if (wanted[i].n_pids > 0)
			waiters[i]->holder = dump_peers_text(dump, &wanted[i]);
}

static void read_head(struct dump *dump, int pid)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	dump->pid = pid;
	dump->command = read_command(pid);
	dump->host = text_clean(host, strlen(host), sizeof(host));
	dump->up_ns = read_up_ns(pid);
}

static bool read_memory(void *context, uint64_t address, void *bytes, size_t size)
{
	return resident_read(NULL, *(const int *)context, address, bytes, size);
}

// A task's: "chan receive (chan 0xc000012345)".
static char *words_of_reason(const struct wait *wait)
{
	_cleanup_free_ char *reason =
	    text_clean(wait->reason, strlen(wait->reason), TEXT_UNLIMITED);
	const char *text = wait->meaning ? wait->meaning : wait->descriptor;
	_cleanup_free_ char *object = text_clean(text, strlen(text), TEXT_UNLIMITED);

	return memory_printf("%s%s%s%s", reason, object[0] ? " (" : "", object,
	                     object[0] ? ")" : "");
}

// The call of a thread that was stopped is known by its number alone.
static char *words_of_call(const struct dump *dump, const struct dump_thread *thread,
                           const struct sampled *sampled)
{
	const uint32_t id = dump->profile->samples[thread->sample].wait;
	const struct wait *wait = &dump->profile->waits[id];
	int tid = sampled ? sampled->tid : 0;
	const struct call_memory memory = {read_memory, &tid};

	if (id == WAIT_NONE)
		return NULL;
	if (wait->reason[0])
		return words_of_reason(wait);
	if (wait->syscall == NO_SYSCALL)
		return NULL;
	const char *text = wait->meaning ? wait->meaning : wait->descriptor;
	_cleanup_free_ char *descriptor = text_clean(text, strlen(text), TEXT_UNLIMITED);
	if (!sampled || sampled->call.nr != wait->syscall)
		return call_text_name(wait->syscall, descriptor);
	return call_text(wait->syscall, sampled->call.args, descriptor, &memory);
}

// Since when it sleeps, if it has slept since before the tick.
static int64_t blocked_ns(const struct taking *taking, const struct sampled *sampled)
{
	const struct early key = {.tid = sampled->tid};
	const struct early *early = taking->n_early ? bsearch(&key, taking->early, taking->n_early,
	                                                      sizeof(key), compare_early)
	                                            : NULL;

	return early && early->runs == sampled->runs ? early->blocked_ns : -1;
}

static bool is_shown(const struct options *options, const struct profile *profile,
                     const struct sample *sample)
{
	const struct thread *thread = &profile->threads[sample->thread];

	if (!selection_has_labels(options->label_filters, options->n_label_filters, profile,
	                          sample->labels))
		return false;
	return !options->has_regex[SELECTION_THREAD] ||
	       regexec(&options->regexes[SELECTION_THREAD], thread->name, 0, NULL, 0) == 0;
}

static void fill(const struct taking *taking)
{
	struct dump *dump = &taking->live->dump;
	const struct profile *profile = dump->profile;
	_cleanup_free_ const struct sampled **asleep =
	    memory_alloc_zeroed(profile->n_threads + 1, sizeof(struct sampled *));
	_cleanup_free_ bool *seen = memory_alloc_zeroed(profile->n_threads + 1, sizeof(*seen));

	for (size_t i = 0; i < taking->n_sampled; i++)
		if (taking->sampled[i].is_asleep)
			asleep[taking->sampled[i].thread] = &taking->sampled[i];
	for (size_t i = 0; i < profile->n_samples; i++) {
		const uint32_t id = profile->samples[i].thread;
		if (profile->samples[i].count == 0 || seen[id] ||
		    !is_shown(taking->options, profile, &profile->samples[i]))
			continue;
		seen[id] = true;
		struct dump_thread *thread = dump_add(dump, (uint32_t)i);
		thread->call = words_of_call(dump, thread, asleep[id]);
		thread->has_args = asleep[id] != NULL;
		thread->runs = asleep[id] ? asleep[id]->runs : 0;
		if (asleep[id])
			memcpy(thread->args, asleep[id]->call.args, sizeof(thread->args));
		if (asleep[id])
			thread->blocked_ns = blocked_ns(taking, asleep[id]);
		const int64_t since_ns = profile->threads[id].waits_since_ns;
		if (since_ns > 0 && since_ns <= profile->start_ns)
			thread->blocked_ns = profile->start_ns - since_ns;
	}
}

// A lock of a language's runtime, whose holder is told with the wait (wait_reasons.h).
static char *runtime_lock(const struct dump *dump, const struct dump_thread *thread)
{
	const uint32_t wait = dump->profile->samples[thread->sample].wait;

	if (wait == WAIT_NONE) // that is all of them, perhaps
		return NULL;
	const char *descriptor = dump->profile->waits[wait].descriptor;
	if (!language_text_is_whole_lock(descriptor))
		return NULL;
	return text_clean(descriptor, strlen(descriptor), TEXT_UNLIMITED);
}

// True if the words of what the thread waits for are those of a lock, which names cannot tell where
// the C library has none but those that it exports.
static bool waits_for_lock(const struct dump *dump, const struct dump_thread *thread)
{
	const struct thread *entry = dump_thread_of(dump, thread);
	const struct deadlock_node *node = dump_locks_node(dump->locks, entry->pid, entry->tid);

	if (!node)
		return false;
	switch (dump->locks->waiters[node - dump->locks->nodes].claim.what) {
	case LOCK_WHAT_MUTEX:
	case LOCK_WHAT_RWLOCK:
	case LOCK_WHAT_STREAM:
	case LOCK_WHAT_MONITOR:
		return true;
	default:
		return false;
	}
}

static void say_locks(struct dump_live *live)
{
	struct dump *dump = &live->dump;

	dump_locks_find(&live->locks, dump);
	dump->locks = &live->locks;
	for (size_t i = 0; i < dump->n_threads; i++)
		if (dump->threads[i].kind == WAIT_KIND_CONDITION &&
		    waits_for_lock(dump, &dump->threads[i]))
			dump->threads[i].kind = WAIT_KIND_LOCK;
	for (size_t i = 0; i < dump->n_threads; i++)
		dump->threads[i].holder = dump_holder_text(dump, &dump->threads[i])
		                              ?: runtime_lock(dump, &dump->threads[i]);
	dump_tasks_find_peers(dump);
}

static struct error *take(struct taking *taking)
{
	const struct symbolize_options names = {.inlines = taking->options->inlines};
	struct dump_live *live = taking->live;
	struct targets targets;
	struct error *error = targets_open(taking->options, &targets);

	if (error)
		return error;
	if (targets.n == 1)
		events_watch(taking->events, targets.items->pid);
	read_head(&live->dump, targets.items->pid);
	look_early(taking, &targets);
	live->dump.time_ns = clock_read_ns(CLOCK_REALTIME);
	error = sample(taking, &targets);
	targets_close(&targets);
	if (error)
		return error;
	if (!taking->options->dump.no_locks)
		find_locks(taking);
	symbolize(&live->profile, &live->modules, &names, &live->symbols);
	fill(taking);
	dump_find_kinds(&live->dump);
	if (!taking->options->dump.no_locks)
		say_locks(live);
	dump_sort(&live->dump);
	return NULL;
}

struct error *dump_live_take(const struct options *options, struct events *events,
                             const struct debug_sources *sources, struct dump_live *ret)
{
	struct taking taking = {.options = options, .live = ret, .events = events};

	*ret = (struct dump_live){.dump = {
	                              .profile = &ret->profile,
	                              .modules = &ret->modules,
	                              .symbols = &ret->symbols,
	                          }};
	modules_set_debug_sources(&ret->modules, sources);
	struct error *error = take(&taking);
	for (size_t i = 0; i < taking.n_sampled; i++)
		free(taking.sampled[i].lock);
	free(taking.early);
	free(taking.sampled);
	return error;
}

void dump_live_deinit(struct dump_live *live)
{
	dump_deinit(&live->dump);
	dump_locks_deinit(&live->locks);
	symbols_deinit(&live->symbols);
	profile_deinit(&live->profile);
	modules_deinit(&live->modules);
}
