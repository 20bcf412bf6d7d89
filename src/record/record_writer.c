// SPDX-License-Identifier: MIT
#include "record_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "cpu_waits.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "profile_collect.h"
#include "protobuf.h"
#include "record.h"
#include "record_block.h"
#include "record_news.h"
#include "recording.h"
#include "run_stats.h"
#include "share_doubts.h"
#include "writing.h"

enum {
	FULL_BLOCK_BYTES = 1 << 20,   // more is written at once
	RESERVED_BYTES = 4096,        // of --max-size, for the end
	RESERVED_THREAD_BYTES = 24,   // and for each thread's last span
	ROOM_SHARE = 16,              // of --max-size: what the next block may need
	MAX_PENDING_BYTES = 20 << 20, // for a reader that lags behind, and...
	RESUMED_PENDING_BYTES = MAX_PENDING_BYTES / 4,
	MAX_STALLED_BYTES = 16 << 20, // ...of what is still told while it does
};

#define FLUSH_NS (100 * NS_PER_MS)

static int64_t offset_of(const struct record_writer *writer, int64_t ns)
{
	return ns - writer->profile->start_ns;
}

// The entries of one time.
static void end_entries(struct record_writer *writer)
{
	if (writer->entries.size == 0)
		return;
	const int64_t now_ns = offset_of(writer, writer->entries_ns);
	protobuf_varint(&writer->record, now_ns - writer->base_ns);
	record_put_bytes(&writer->record, writer->entries.bytes, writer->entries.size);
	protobuf_clear(&writer->entries);
	writer->base_ns = now_ns;
	record_put(&writer->samples, RECORD_SAMPLES, &writer->record);
}

static void begin_entry(struct record_writer *writer, int64_t now_ns)
{
	// All times of a block are counted from the one before: they never go back.
	if (now_ns <= writer->entries_ns && writer->entries.size < RECORD_LIST_BYTES)
		return;
	end_entries(writer);
	if (now_ns > writer->entries_ns)
		writer->entries_ns = now_ns;
}

// Of a thread whose number is free.
#define NOT_BEGUN INT64_MIN

// Makes room for the thread in what is known of spans that have begun.
static void grow_begun(struct record_writer *writer, uint32_t id)
{
	writer->begun_ticks = memory_grow(writer->begun_ticks, &writer->begun_capacity, id + 1,
	                                  sizeof(*writer->begun_ticks));
	writer->begun_ends_ns = memory_grow(writer->begun_ends_ns, &writer->begun_ends_capacity,
	                                    id + 1, sizeof(*writer->begun_ends_ns));
	for (; writer->n_begun <= id; writer->n_begun++) {
		writer->begun_ticks[writer->n_begun] = 0;
		writer->begun_ends_ns[writer->n_begun] =
		    writer->profile->threads[writer->n_begun].first_ns;
	}
	if (writer->begun_ends_ns[id] == NOT_BEGUN)
		writer->begun_ends_ns[id] = writer->profile->threads[id].first_ns;
}

// Returns which fields the entry of a span has that has begun.
static uint8_t sample_flags(const struct record_writer *writer, const struct thread *thread,
                            const struct span *span)
{
	const struct sample *sample = &writer->profile->samples[span->sample];

	return sample->state | (sample->wait ? RECORD_WAITS : 0) |
	       (sample->labels ? RECORD_LABELLED : 0) | (span->count > 1 ? RECORD_TICKS : 0) |
	       (thread->last_ns < writer->entries_ns ? RECORD_EARLIER : 0);
}

static void put_sample(struct record_writer *writer, const struct thread *thread,
                       const struct span *span, uint8_t flags)
{
	const struct sample *sample = &writer->profile->samples[span->sample];
	struct protobuf *entries = &writer->entries;

	protobuf_varint(entries, sample->stack);
	if (flags & RECORD_TICKS)
		protobuf_varint(entries, span->count);
	if (flags & RECORD_EARLIER)
		protobuf_varint(entries, writer->entries_ns - thread->last_ns);
	if (flags & RECORD_WAITS)
		protobuf_varint(entries, sample->wait);
	if (flags & RECORD_LABELLED)
		protobuf_varint(entries, sample->labels);
}

// A thread without a span begins one, but not where the one before has ended.
static void put_pass(struct record_writer *writer, uint32_t id, const struct span *span)
{
	if (span->start_ns <= writer->begun_ends_ns[id])
		return;
	end_entries(writer);
	protobuf_varint(&writer->record, id);
	protobuf_varint(&writer->record, offset_of(writer, span->start_ns));
	record_put(&writer->samples, RECORD_PASS, &writer->record);
}

// Puts the span that ended, and the one that has begun; the count of either may be 0.
static void put_entry(struct record_writer *writer, uint32_t id, const struct span *ended,
                      const struct span *span)
{
	const struct thread *thread = &writer->profile->threads[id];
	struct protobuf *entries = &writer->entries;

	grow_begun(writer, id);
	if (ended->count == 0 && span->count > 0)
		put_pass(writer, id, span);
	begin_entry(writer, thread->last_ns);
	// Its last tick may have given back what lies beyond the end of all.
	const bool lasted = ended->count > 0 && (ended->count != writer->begun_ticks[id] ||
	                                         ended->end_ns != writer->begun_ends_ns[id]);
	const uint8_t flags =
	    (lasted ? RECORD_LASTED : 0) |
	    (span->count > 0 ? sample_flags(writer, thread, span) : RECORD_NO_SAMPLE);
	protobuf_varint(entries, id);
	protobuf_varint(entries, flags);
	if (lasted) {
		protobuf_varint(entries, ended->count - writer->begun_ticks[id]);
		protobuf_varint(entries, writer->entries_ns - ended->end_ns);
	}
	writer->begun_ticks[id] = span->count;
	writer->begun_ends_ns[id] = thread->last_ns;
	if (span->count > 0)
		put_sample(writer, thread, span, flags);
}

static bool flush(struct record_writer *writer);

static void put_overflow(struct record_writer *writer, struct protobuf *to,
                         enum record_overflow reason, uint64_t samples)
{
	protobuf_varint(&writer->record, reason);
	protobuf_varint(&writer->record, samples);
	protobuf_varint(&writer->record, 0); // names: record_copy.h
	record_put(to, RECORD_OVERFLOW, &writer->record);
}

// While nobody reads, a thread's spans are only counted, but for the one that it was in and the one
// that it is in at the end of that.
static void count_lost(struct record_writer *writer, uint32_t id, const struct span *ended)
{
	while (writer->n_lost <= id)
		*array_push(writer->lost, writer->n_lost, writer->lost_capacity) =
		    (struct lost){.changed = false};
	struct lost *lost = &writer->lost[id];
	if (!lost->changed) {
		put_entry(writer, id, ended, &(struct span){0});
		lost->changed = true;
	} else if (ended->count > 0) {
		lost->ticks[writer->profile->samples[ended->sample].state] += ended->count;
		writer->lost_samples += ended->count;
	}
	if (writer->samples.size + writer->entries.size >= MAX_STALLED_BYTES)
		writer->full = true;
}

static void put_lost(struct record_writer *writer, uint32_t id, enum thread_state state,
                     uint64_t ticks, int64_t end_ns)
{
	struct protobuf *entries = &writer->entries;

	if (ticks == 0)
		return;
	protobuf_varint(entries, id);
	protobuf_varint(entries, state | RECORD_TICKS | RECORD_EARLIER);
	protobuf_varint(entries, writer->lost_stack);
	protobuf_varint(entries, ticks);
	protobuf_varint(entries, writer->entries_ns - end_ns);
}

// What the thread was in meanwhile, state by state, as ticks without a stack, until end_ns.
static void put_all_lost(struct record_writer *writer, uint32_t id, int64_t end_ns)
{
	struct lost *lost = &writer->lost[id];
	uint64_t ticks = 0; // of the states that are not put yet

	for (int state = 0; state < N_THREAD_STATES; state++)
		ticks += lost->ticks[state];
	if (ticks > 0)
		begin_entry(writer, writer->profile->threads[id].last_ns);
	for (int state = 0; state < N_THREAD_STATES; state++) {
		ticks -= lost->ticks[state];
		put_lost(writer, id, (enum thread_state)state, lost->ticks[state],
		         end_ns - (int64_t)ticks * writer->profile->period_ns);
	}
	*lost = (struct lost){.changed = false};
	writer->begun_ends_ns[id] = end_ns;
}

// The reader has caught up: from here on all is told again.
static void resume(struct record_writer *writer)
{
	writer->stalled = false;
	for (uint32_t i = 0; i < writer->n_lost; i++) {
		const struct thread *thread = &writer->profile->threads[i];
		if (!writer->lost[i].changed)
			continue;
		put_all_lost(writer, i,
		             thread->span.count ? thread->span.start_ns : thread->last_ns);
		if (thread->span.count > 0)
			put_entry(writer, i, &(struct span){0}, &thread->span);
	}
	end_entries(writer);
	put_overflow(writer, &writer->samples, RECORD_OVERFLOW_READER, writer->lost_samples);
}

static void note_change(struct span_follower *follower, const struct profile *profile,
                        uint32_t thread, const struct span *ended)
{
	struct record_writer *writer = (struct record_writer *)follower;

	if (writer->full || writer->file.failed)
		return;
	if (writer->stalled) {
		count_lost(writer, thread, ended);
		return;
	}
	put_entry(writer, thread, ended, &profile->threads[thread].span);
	if (writer->samples.size + writer->entries.size >= FULL_BLOCK_BYTES)
		flush(writer);
}

// The thread's span ends here, as far as the recording goes.
static void put_closing(struct record_writer *writer, uint32_t id)
{
	const struct thread *thread = &writer->profile->threads[id];
	struct span ended = thread->span;

	ended.end_ns = thread->last_ns;
	if (ended.count > 0)
		put_entry(writer, id, &ended, &(struct span){0});
}

static void put_thread(struct record_writer *writer, struct protobuf *to, uint32_t id)
{
	const struct thread *thread = &writer->profile->threads[id];

	protobuf_varint(&writer->record, id);
	protobuf_varint(&writer->record, thread->pid);
	protobuf_varint(&writer->record, thread->tid);
	protobuf_varint(&writer->record, offset_of(writer, thread->first_ns));
	record_put_text(&writer->record, thread->name);
	if (thread->is_task)
		protobuf_varint(&writer->record, thread->task_id);
	record_put(to, RECORD_THREAD, &writer->record);
}

static void note_thread_name(struct span_follower *follower, const struct profile *profile,
                             uint32_t thread)
{
	struct record_writer *writer = (struct record_writer *)follower;

	(void)profile;
	if (writer->full || thread >= writer->n_threads)
		return; // not written yet
	end_entries(writer);
	put_thread(writer, &writer->samples, thread);
}

static void note_death(struct span_follower *follower, const struct profile *profile,
                       uint32_t thread)
{
	struct record_writer *writer = (struct record_writer *)follower;

	if (writer->full)
		return;
	if (writer->stalled && thread < writer->n_lost)
		put_all_lost(writer, thread, profile->threads[thread].last_ns);
	end_entries(writer);
	protobuf_varint(&writer->record, thread);
	protobuf_varint(&writer->record, offset_of(writer, profile->threads[thread].last_ns));
	record_put(&writer->samples, RECORD_DEATH, &writer->record);
}

static void note_process_name(struct span_follower *follower, const struct profile *profile,
                              const struct process_name *process)
{
	struct record_writer *writer = (struct record_writer *)follower;

	(void)profile;
	if (writer->full)
		return;
	end_entries(writer);
	protobuf_varint(&writer->record, process->pid);
	record_put_text(&writer->record, process->name);
	if (process->from_ns)
		protobuf_varint(&writer->record, offset_of(writer, process->from_ns));
	record_put(&writer->samples, RECORD_PROCESS, &writer->record);
}

static void note_figures(struct span_follower *follower, const struct profile *profile,
                         uint32_t thread, const struct thread_figures *figures)
{
	struct record_writer *writer = (struct record_writer *)follower;
	const bool has_begun = profile->start_ns != 0;
	const int64_t at_ns = has_begun ? offset_of(writer, figures->at_ns) : 0;

	if (writer->full)
		return;
	end_entries(writer);
	protobuf_varint(&writer->record, thread);
	protobuf_varint(&writer->record, at_ns > 0 ? at_ns : 0);
	protobuf_varint(&writer->record, figures->cpu_ns);
	protobuf_varint(&writer->record, figures->delay_ns);
	protobuf_varint(&writer->record, figures->held_ns);
	protobuf_varint(&writer->record, figures->displaced_ns);
	record_put(&writer->samples, RECORD_THREAD_FIGURES, &writer->record);
}

static void put_figures(struct record_writer *writer)
{
	const struct run_stats *stats = writer->stats;

	if (stats->ticks == writer->ticks)
		return;
	protobuf_varint(&writer->record, offset_of(writer, stats->last_ns));
	protobuf_varint(&writer->record, stats->ticks - writer->ticks);
	protobuf_varint(&writer->record, stats->missed_ticks - writer->missed);
	protobuf_varint(&writer->record, stats->thinned_ticks - writer->thinned);
	protobuf_varint(&writer->record, stats->held_ns - writer->held_ns);
	protobuf_varint(&writer->record, share_doubts_late_ns(stats));
	record_put(&writer->samples, RECORD_FIGURES, &writer->record);
	writer->ticks = stats->ticks;
	writer->missed = stats->missed_ticks;
	writer->thinned = stats->thinned_ticks;
	writer->held_ns = stats->held_ns;
}

// What has been read since the last block.
static void put_cpu_waits(struct record_writer *writer)
{
	const struct cpu_log *log = writer->options.cpu_log;

	for (; log && writer->n_cpu_waits < log->count; writer->n_cpu_waits++) {
		const struct cpu_waits *figures = &log->items[writer->n_cpu_waits];
		protobuf_varint(&writer->record, (uint64_t)figures->at_ns);
		protobuf_varint(&writer->record, (uint64_t)figures->cpu_ns);
		protobuf_varint(&writer->record, (uint64_t)figures->delay_ns);
		protobuf_varint(&writer->record, figures->n_cpus);
		protobuf_varint(&writer->record, figures->limit);
		protobuf_varint(&writer->record, figures->n_periods);
		protobuf_varint(&writer->record, figures->n_throttled);
		protobuf_varint(&writer->record, (uint64_t)figures->throttled_ns);
		record_put(&writer->samples, RECORD_CPU, &writer->record);
	}
}

static void put_start(struct record_writer *writer)
{
	const struct profile *profile = writer->profile;
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	protobuf_varint(&writer->record, profile->start_time_ns);
	protobuf_varint(&writer->record, profile->period_ns);
	protobuf_varint(&writer->record, writer->options.pid);
	protobuf_varint(&writer->record,
	                (writer->options.children ? RECORD_CHILDREN : 0) | RECORD_PASSES);
	record_put_text(&writer->record, host);
	record_put_text(&writer->record, "profiler " PROFILER_VERSION);
	record_put(&writer->block, RECORD_START, &writer->record);
}

static bool end_block(struct record_writer *writer)
{
	writer->base_ns = 0;
	return record_write_block(&writer->file, &writer->block);
}

// What may be needed for the end.
static uint64_t reserved_bytes(const struct record_writer *writer)
{
	return RESERVED_BYTES + RESERVED_THREAD_BYTES * writer->n_threads;
}

static bool has_room(const struct record_writer *writer, uint64_t bytes)
{
	const uint64_t need =
	    writer->file.written_bytes + bytes + RECORD_BLOCK_HEADER_BYTES + reserved_bytes(writer);

	return !writer->options.max_bytes || need <= writer->options.max_bytes;
}

// Those that have begun since under the numbers of others.
static void put_reused_threads(struct record_writer *writer)
{
	size_t kept = 0;

	for (size_t i = 0; i < writer->n_free_threads; i++) {
		const uint32_t id = writer->free_threads[i];
		if (writer->profile->threads[id].forgotten)
			writer->free_threads[kept++] = id;
		else
			put_thread(writer, &writer->block, id);
	}
	writer->n_free_threads = kept;
}

// What is new since the last block, before what happened.
static void put_news(struct record_writer *writer)
{
	record_put_modules(writer);
	record_put_locations(writer);
	record_put_code_names(writer);
	record_put_stacks(writer);
	put_reused_threads(writer);
	while (writer->n_threads < writer->profile->n_threads)
		put_thread(writer, &writer->block, writer->n_threads++);
	for (; writer->n_waits < writer->profile->n_waits; writer->n_waits++)
		record_put_wait(writer, writer->n_waits);
	for (; writer->n_labels < writer->profile->n_labels; writer->n_labels++)
		record_put_labels(writer, writer->n_labels);
}

// No more samples are recorded; from here on they are only counted.
static void become_full(struct record_writer *writer)
{
	for (uint32_t i = 0; i < writer->n_threads; i++)
		put_closing(writer, i);
	end_entries(writer);
	writer->full = true;
}

// Puts the samples of the block at hand after the news. False: they do not fit; then nothing of the
// block is written.
static bool put_samples(struct record_writer *writer)
{
	const uint64_t bytes = writer->block.size + writer->samples.size;

	if (!has_room(writer, bytes)) {
		writer->full = true;
		protobuf_clear(&writer->block);
		protobuf_clear(&writer->samples);
		return false;
	}
	// While there is room, better to end at a place where all is known.
	if (!has_room(writer, bytes + writer->options.max_bytes / ROOM_SHARE + bytes))
		become_full(writer);
	record_put_bytes(&writer->block, writer->samples.bytes, writer->samples.size);
	protobuf_clear(&writer->samples);
	writer->samples_before = writer->stats->samples;
	return true;
}

static bool flush(struct record_writer *writer)
{
	if (writer->full || writer->file.failed)
		return !writer->file.failed;
	if (writer->file.written_bytes == 0) {
		if (!record_write_header(&writer->file))
			return false;
		put_start(writer);
	}
	end_entries(writer);
	put_figures(writer);
	put_cpu_waits(writer);
	passed_files_send(&writer->files, writer->modules);
	put_news(writer);
	return !put_samples(writer) || end_block(writer);
}

// Whether the reader of a stream keeps up.
static bool is_stalled(struct record_writer *writer)
{
	record_write_pending(&writer->file);
	const size_t pending = record_pending_bytes(&writer->file);
	if (writer->stalled && pending < RESUMED_PENDING_BYTES) {
		resume(writer);
	} else if (!writer->stalled && pending > MAX_PENDING_BYTES) {
		writer->lost_stack =
		    profile_intern_stack(writer->profile, NULL, 0, STACK_NOT_SAMPLED, false);
		writer->stalled = true;
	}
	return writer->stalled;
}

bool record_writer_tick(struct record_writer *writer)
{
	const int64_t now_ns = writer->stats->last_ns;
	if (is_stalled(writer))
		return !writer->file.failed;
	// Not later than due at the next tick.
	if (now_ns + writer->profile->period_ns - writer->flushed_ns < FLUSH_NS)
		return !writer->file.failed;
	writer->flushed_ns = now_ns;
	return flush(writer);
}

// What descriptors mean is found out after they were seen first.
static bool write_meanings(struct record_writer *writer)
{
	for (size_t i = 0; i < writer->n_waits; i++)
		if (record_meaning_size(&writer->profile->waits[i]) != writer->meaning_sizes[i])
			record_put_wait(writer, i);
	if (!has_room(writer, writer->block.size))
		protobuf_clear(&writer->block);
	return end_block(writer);
}

// Puts how far the thread's span has got, in which it still is.
static void put_progress(struct record_writer *writer, uint32_t id)
{
	const struct thread *thread = &writer->profile->threads[id];

	if (thread->ended || thread->span.count == 0)
		return;
	grow_begun(writer, id);
	if (thread->span.count <= writer->begun_ticks[id])
		return;
	protobuf_varint(&writer->record, id);
	protobuf_varint(&writer->record, thread->span.count - writer->begun_ticks[id]);
	protobuf_varint(&writer->record, offset_of(writer, thread->last_ns));
	writer->begun_ticks[id] = thread->span.count;
	writer->begun_ends_ns[id] = thread->last_ns;
}

bool record_writer_end_window(struct record_writer *writer, const struct window_end *end)
{
	if (is_stalled(writer))
		return false;
	writer->flushed_ns = writer->stats->last_ns;
	profile_tell_figures(writer->profile); // the window's shares are theirs
	if (writer->file.failed || !flush(writer) || !write_meanings(writer))
		return true;
	protobuf_varint(&writer->record, end->at_ns);
	protobuf_varint(&writer->record, end->n_late);
	record_put_text(&writer->record, end->why);
	for (uint32_t i = 0; i < writer->n_threads; i++)
		put_progress(writer, i);
	record_put(&writer->block, RECORD_WINDOW, &writer->record);
	end_block(writer);
	return true;
}

static void free_thread(struct record_writer *writer, uint32_t id)
{
	*array_push(writer->free_threads, writer->n_free_threads, writer->free_capacity) = id;
	if (id < writer->n_begun) {
		writer->begun_ticks[id] = 0;
		writer->begun_ends_ns[id] = NOT_BEGUN;
	}
}

void record_writer_forget(struct record_writer *writer, size_t n_first_stacks)
{
	struct profile *profile = writer->profile;

	if (!profile_collect_is_due(profile) || writer->stalled || !flush(writer))
		return;
	_cleanup_free_ bool *kept = memory_alloc_zeroed(profile->n_samples, sizeof(*kept));
	profile_collect(profile, kept, n_first_stacks);
	writer->n_stacks = 0;
	writer->n_free_threads = 0;
	for (uint32_t i = 0; i < writer->n_threads; i++)
		if (profile->threads[i].forgotten)
			free_thread(writer, i);
	record_put(&writer->block, RECORD_FORGET, &writer->record);
	end_block(writer);
}

// Nothing is sampled any more: from now on the reader is waited for, unless the user wants to end.
static bool write_rest(struct record_writer *writer)
{
	struct record_file *file = &writer->file;

	if (record_pending_bytes(file) == 0)
		return true;
	const uint8_t *bytes = file->pending.bytes + file->n_written;
	const int number = writing_write(file->fd, bytes, record_pending_bytes(file));

	protobuf_clear(&file->pending);
	file->n_written = 0;
	file->failed |= number != 0;
	errno = number;
	return number == 0;
}

bool record_writer_finish(struct record_writer *writer, const char *comment)
{
	if (writer->stalled)
		resume(writer);
	if (!flush(writer) || !write_meanings(writer))
		return false;
	if (writer->full)
		put_overflow(writer, &writer->block, RECORD_OVERFLOW_SIZE,
		             writer->stats->samples - writer->samples_before);
	protobuf_varint(&writer->record, offset_of(writer, writer->stats->last_ns));
	protobuf_varint(&writer->record, writer->stats->samples);
	record_put_text(&writer->record, comment);
	record_put(&writer->block, RECORD_END, &writer->record);
	return end_block(writer) && write_rest(writer);
}

struct record_writer *record_writer_create(const struct record_options *options,
                                           struct profile *profile, const struct modules *modules,
                                           const struct run_stats *stats)
{
	struct record_writer *writer = memory_alloc_zeroed(1, sizeof(*writer));

	*writer = (struct record_writer){
	    .follower.changed = note_change,
	    .follower.thread_named = note_thread_name,
	    .follower.thread_ended = note_death,
	    .follower.process_named = note_process_name,
	    .follower.figures_noted = note_figures,
	    .options = *options,
	    .profile = profile,
	    .modules = modules,
	    .stats = stats,
	    .file.fd = options->fd,
	    .files.socket = options->files,
	};
	profile_follow(profile, &writer->follower);
	return writer;
}

void record_writer_destroy(struct record_writer *writer)
{
	if (!writer)
		return;
	protobuf_deinit(&writer->block);
	protobuf_deinit(&writer->samples);
	protobuf_deinit(&writer->entries);
	protobuf_deinit(&writer->record);
	protobuf_deinit(&writer->file.pending);
	passed_files_deinit(&writer->files);
	free(writer->lost);
	free(writer->n_mappings);
	free(writer->has_build_id);
	free(writer->n_frame_functions);
	free(writer->unreadable);
	free(writer->nameless);
	free(writer->begun_ticks);
	free(writer->meaning_sizes);
	free(writer->free_threads);
	free(writer->begun_ends_ns);
	free(writer);
}
