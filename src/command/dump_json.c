// SPDX-License-Identifier: MIT
#include "dump_json.h"

#include <inttypes.h>
#include <string.h>

#include "dump.h"
#include "dump_locks.h"
#include "dump_problems.h"
#include "frame_name.h"
#include "json.h"
#include "language_text.h"
#include "memory.h"
#include "time_point.h"
#include "syscall_name.h"
#include "text.h"

enum { DUMP_JSON_VERSION = 1, N_ARGUMENTS = 6 };

// Addresses are texts, as numbers of JSON have 53 bits in many readers.
static void put_address(struct json *json, const char *key, uint64_t address)
{
	_cleanup_free_ char *text = memory_printf("0x%" PRIx64, address);

	json_key_string(json, key, text);
}

static void put_text_or_null(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text)
		json_string(json, text);
	else
		json_null(json);
}

static void put_frame(void *context, const struct dump_frame *frame)
{
	struct json *json = context;

	json_open(json, '{');
	json_key_string(json, "name", frame->name);
	json_key_string(json, "file", frame->file);
	json_key_int(json, "line", frame->line);
	json_key_clean(json, "module", frame->module);
	put_address(json, "offset", frame->offset);
	put_address(json, "address", frame->address);
	json_key_bool(json, "inlined", frame->is_inlined);
	json_close(json, '}');
}

static void put_blocked(struct json *json, const struct dump_thread *thread)
{
	json_key(json, "blocked_ns");
	if (thread->blocked_ns >= 0)
		json_int(json, thread->blocked_ns);
	else
		json_null(json);
	json_key_string(json, "blocked_is",
	                thread->blocked_ns < 0 ? "unknown"
	                : thread->is_exact     ? "exact"
	                                       : "at_least");
}

static void put_syscall(struct json *json, const struct dump *dump,
                        const struct dump_thread *thread)
{
	const uint32_t id = dump->profile->samples[thread->sample].wait;
	const struct wait *wait = &dump->profile->waits[id];

	json_key(json, "syscall");
	if (id == WAIT_NONE || wait->syscall == NO_SYSCALL) {
		json_null(json);
		put_text_or_null(json, "descriptor", NULL);
		return;
	}
	_cleanup_free_ char *name = syscall_name(wait->syscall);
	json_open(json, '{');
	json_key_string(json, "name", name);
	json_key_open(json, "args", '[');
	for (size_t i = 0; thread->has_args && i < N_ARGUMENTS; i++) {
		_cleanup_free_ char *text = memory_printf("0x%" PRIx64, thread->args[i]);
		json_string(json, text);
	}
	json_close(json, ']');
	put_text_or_null(json, "text", thread->call);
	json_close(json, '}');
	const char *descriptor = frame_name_descriptor(wait);
	_cleanup_free_ char *clean = text_clean(descriptor, strlen(descriptor), TEXT_UNLIMITED);
	put_text_or_null(json, "descriptor", clean[0] ? clean : NULL);
}

static void put_owner(struct json *json, const struct dump *dump,
                      const struct deadlock_holder *holder)
{
	_cleanup_free_ char *name = dump_name_of(dump, holder->pid, holder->tid);

	json_open(json, '{');
	json_key(json, "tid");
	if (holder->tid)
		json_int(json, holder->tid);
	else
		json_null(json);
	json_key_int(json, "pid", holder->pid);
	json_key_string(json, "name", name);
	json_close(json, '}');
}

static void put_waits_for(struct json *json, const struct dump *dump,
                          const struct dump_thread *thread)
{
	const struct thread *entry = dump_thread_of(dump, thread);
	const struct deadlock_node *node =
	    dump->locks ? dump_locks_node(dump->locks, entry->pid, entry->tid) : NULL;
	const struct dump_waiter *waiter =
	    node ? &dump->locks->waiters[node - dump->locks->nodes] : NULL;

	json_key(json, "waits_for");
	if (!waiter || waiter->claim.what == LOCK_WHAT_NONE) {
		json_null(json);
		return;
	}
	json_open(json, '{');
	json_key_string(json, "what", lock_what_name(waiter->claim.what));
	put_address(json, "address", waiter->claim.address);
	put_text_or_null(json, "symbol", waiter->symbol);
	json_key_open(json, "owners", '[');
	for (size_t i = 0; i < node->n_holders; i++)
		put_owner(json, dump, &node->holders[i]);
	for (size_t i = 0; i < waiter->peer.n_pids && i < PEER_MAX; i++)
		put_owner(json, dump, &(struct deadlock_holder){waiter->peer.pids[i], 0});
	json_close(json, ']');
	json_key_int(json, "readers", waiter->claim.readers);
	put_text_or_null(json, "certainty",
	                 waiter->peer.n_pids > 0    ? "read"
	                 : node->n_holders == 0     ? NULL
	                 : waiter->claim.is_certain ? "read"
	                                            : "inferred");
	json_close(json, '}');
}

static void put_identity(struct json *json, const struct thread *entry)
{
	json_key(json, "tid");
	if (entry->is_task)
		json_null(json);
	else
		json_int(json, entry->tid);
	if (entry->is_task)
		json_key_int(json, language_task_words()->id, (int64_t)entry->task_id);
}

static void put_wait(struct json *json, const struct dump *dump, const struct sample *sample)
{
	const char *reason =
	    sample->wait == WAIT_NONE ? "" : dump->profile->waits[sample->wait].reason;

	if (!reason[0])
		return;
	json_key_clean(json, "wait", reason);
	json_key_clean(json, "waits_on",
	               frame_name_descriptor(&dump->profile->waits[sample->wait]));
}

static void put_thread(struct json *json, const struct dump *dump, const struct dump_thread *thread)
{
	const struct sample *sample = &dump->profile->samples[thread->sample];
	const struct thread *entry = dump_thread_of(dump, thread);
	const enum stack_end end = frame_name_stack_end(&dump->profile->stacks[sample->stack]);

	json_open(json, '{');
	put_identity(json, entry);
	json_key_int(json, "pid", entry->pid);
	json_key_string(json, "name", thread->name);
	json_key_string(json, "state", thread_state_name(sample->state));
	json_key_string(json, "kind", wait_kind_name(thread->kind));
	json_labels_write(json, dump->profile, sample->labels);
	put_wait(json, dump, sample);
	put_blocked(json, thread);
	json_key_bool(json, "unmoved", thread->unmoved);
	put_syscall(json, dump, thread);
	put_waits_for(json, dump, thread);
	json_key_open(json, "frames", '[');
	dump_frames(dump, thread->sample, put_frame, json);
	json_close(json, ']');
	put_text_or_null(json, "truncated", end == STACK_COMPLETE ? NULL : stack_end_name(end));
	json_close(json, '}');
}

static void put_deadlocks(struct json *json, const struct dump_locks *locks)
{
	json_key_open(json, "deadlocks", '[');
	for (size_t i = 0; locks && i < locks->count; i++) {
		if (!locks->nodes[i].is_dead || locks->nodes[i].cycle != (long)i)
			continue;
		json_open(json, '[');
		size_t j = i;
		do {
			json_int(json, locks->nodes[j].tid);
			j = (size_t)locks->nodes[j].next;
		} while (j != i);
		json_close(json, ']');
	}
	json_close(json, ']');
}

// Those that others wait for without waiting for anybody themselves.
static void put_roots(struct json *json, const struct dump_locks *locks)
{
	const size_t count = locks ? locks->count : 0;
	_cleanup_free_ size_t *n_waiters = memory_alloc_zeroed(count + 1, sizeof(*n_waiters));

	for (size_t i = 0; i < count; i++)
		if (locks->nodes[i].root != DEADLOCK_NONE)
			n_waiters[locks->nodes[i].root]++;
	json_key_open(json, "roots", '[');
	for (size_t i = 0; i < count; i++) {
		if (n_waiters[i] == 0 || locks->nodes[i].next != DEADLOCK_NONE)
			continue;
		json_open(json, '{');
		json_key_int(json, "tid", locks->nodes[i].tid);
		json_key_int(json, "pid", locks->nodes[i].pid);
		json_key_int(json, "waiters", (int64_t)n_waiters[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_unseen(struct json *json, const struct dump_locks *locks)
{
	json_key_open(json, "not_looked_at", '{');
	json_key_int(json, "processes", locks ? (int64_t)locks->n_unseen_processes : 0);
	json_key_int(json, "descriptors", locks ? (int64_t)locks->n_unseen_descriptors : 0);
	json_close(json, '}');
}

void dump_json_write(const struct dump *dump, FILE *stream)
{
	struct json json = {.stream = stream};
	char time[TIME_POINT_TEXT_SIZE];

	time_point_format(dump->time_ns, false, time);
	json_open(&json, '{');
	json_key_int(&json, "version", DUMP_JSON_VERSION);
	json_key_int(&json, "pid", dump->pid);
	json_key_string(&json, "command", dump->command);
	json_key_string(&json, "host", dump->host);
	json_key_string(&json, "time", time);
	json_key_open(&json, "threads", '[');
	for (size_t i = 0; i < dump->n_threads; i++)
		put_thread(&json, dump, &dump->threads[i]);
	json_close(&json, ']');
	put_deadlocks(&json, dump->locks);
	put_roots(&json, dump->locks);
	put_unseen(&json, dump->locks);
	json_close(&json, '}');
	fputc('\n', stream);
}
