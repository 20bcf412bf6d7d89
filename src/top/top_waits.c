// SPDX-License-Identifier: MIT
#include "top_waits.h"

#include <stdlib.h>
#include <string.h>

#include "call_text.h"
#include "frame_name.h"
#include "hash.h"
#include "memory.h"
#include "text.h"

enum { MAX_NAME_BYTES = 1024 };

// In the descriptor of a lock (wait_reasons.h), before who has it.
#define HELD_BY ", held by "

// How a wait for a child's or a thread's end begins, before its name and number.
#define END_OF "the end of \""

// The length of such a text without the number, as children of one name are one thing; 0: it is
// none.
static size_t end_of_length(const char *text)
{
	const char *quote = strncmp(text, END_OF, strlen(END_OF)) == 0 ? strrchr(text, '"') : NULL;

	return quote ? (size_t)(quote + 1 - text) : 0;
}

// The part of the text that says what is waited for, whoever holds it. Of a lock it is the address:
// in the instant in which nobody holds it its kind may not be known.
static const char *thing(const struct wait *wait, size_t *ret_length)
{
	const char *text = frame_name_descriptor(wait);
	const size_t end_of = end_of_length(text);

	if (end_of > 0) {
		*ret_length = end_of;
		return text;
	}
	const char *held = strstr(text, HELD_BY);
	const size_t length = held ? (size_t)(held - text) : strlen(text);
	const char *address = text[0] != '/' ? memmem(text, length, " 0x", strlen(" 0x")) : NULL;

	*ret_length = address ? (size_t)(text + length - (address + 1)) : length;
	return address ? address + 1 : text;
}

static bool is_same_thing(const void *context, uint32_t id, const void *key)
{
	const struct wait *a = &((const struct wait *)context)[id], *b = key;
	size_t n_a, n_b;
	const char *a_thing = thing(a, &n_a), *b_thing = thing(b, &n_b);

	return a->syscall == b->syscall && n_a == n_b && memcmp(a_thing, b_thing, n_a) == 0 &&
	       strcmp(a->reason, b->reason) == 0;
}

// For each of the profile's waits the first one of the same thing.
static uint32_t *find_first(const struct profile *profile)
{
	uint32_t *first = memory_alloc_zeroed(profile->n_waits + 1, sizeof(*first));
	struct hash_index index = {0};

	for (uint32_t i = 0; i < profile->n_waits; i++) {
		const struct wait *wait = &profile->waits[i];
		size_t n;
		const char *text = thing(wait, &n);
		const uint64_t hash = hash_mix(hash_bytes(text, n), (uint64_t)wait->syscall);
		first[i] = hash_index_find(&index, hash, is_same_thing, profile->waits, wait);
		if (first[i] != HASH_NONE)
			continue;
		first[i] = i;
		hash_index_insert(&index, hash, i);
	}
	hash_index_deinit(&index);
	return first;
}

static int compare_waits(const void *a_pointer, const void *b_pointer)
{
	const struct top_wait *a = a_pointer, *b = b_pointer;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->wait != b->wait)
		return a->wait < b->wait ? -1 : 1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

// One sleep, or what of it lies in the window.
static void add_span(const struct top_model *model, const struct span *span, struct top_wait *row)
{
	const struct top_input *input = &model->input;
	const uint32_t wait = input->profile->samples[span->sample].wait;
	const int64_t from_ns = span->start_ns > input->from_ns ? span->start_ns : input->from_ns;
	const int64_t to_ns = span->end_ns < input->to_ns ? span->end_ns : input->to_ns;

	if (to_ns - from_ns > row->longest_ns) {
		row->longest_ns = to_ns - from_ns;
		row->sample = span->sample;
	}
	if (to_ns < row->held_until_ns || !strstr(input->profile->waits[wait].descriptor, HELD_BY))
		return;
	row->held_until_ns = to_ns;
	row->held = wait;
}

// Takes those together that are not empty.
static void pack(struct top_model *model, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (model->waits[i].count == 0)
			continue;
		model->waits[i].wait = (uint32_t)(i / N_WAIT_KINDS);
		model->waits[i].kind = i % N_WAIT_KINDS;
		model->waits[model->n_waits++] = model->waits[i];
	}
	qsort(model->waits, model->n_waits, sizeof(*model->waits), compare_waits);
}

// Rows are found by (wait, kind): for each wait as many as there are kinds.
void top_find_waits(struct top_model *model, const struct sample *sums, size_t n)
{
	const struct top_input *input = &model->input;
	const struct sample *samples = input->profile->samples;
	const size_t n_rows = input->profile->n_waits * N_WAIT_KINDS;
	_cleanup_free_ uint32_t *first = find_first(input->profile);
	_cleanup_free_ uint32_t *last =
	    memory_alloc_zeroed(n_rows + 1, sizeof(*last)); // thread + 1

	model->waits = memory_alloc_zeroed(n_rows + 1, sizeof(*model->waits));
	for (size_t i = 0; i < n; i++) {
		const size_t row = first[samples[i].wait] * N_WAIT_KINDS + model->kinds[i];
		if (model->kinds[i] == WAIT_KIND_RUNNING || !top_counts(model, sums, i))
			continue;
		model->waits[row].count += sums[i].count;
		model->waits[row].is_several |= samples[i].wait != first[samples[i].wait];
	}
	for (size_t i = 0; i < input->n_spans; i++) {
		const struct span *span = &input->spans[i];
		if (!top_is_selected(input, span) || span->end_ns <= input->from_ns ||
		    span->start_ns >= input->to_ns || span->start_ns == span->end_ns ||
		    model->kinds[span->sample] == WAIT_KIND_RUNNING)
			continue;
		const size_t row =
		    first[samples[span->sample].wait] * N_WAIT_KINDS + model->kinds[span->sample];
		// Spans are sorted by thread.
		model->waits[row].n_threads += last[row] != span->thread + 1;
		last[row] = span->thread + 1;
		add_span(model, span, &model->waits[row]);
	}
	pack(model, n_rows);
}

// The call, or why a task waits, with its descriptor, of which `length` bytes are shown.
static char *call_of(const struct wait *wait, const char *descriptor, size_t length)
{
	if (length > MAX_NAME_BYTES)
		length = MAX_NAME_BYTES;
	_cleanup_free_ char *clean = text_clean(descriptor, length, MAX_NAME_BYTES);
	if (wait->syscall != NO_SYSCALL)
		return call_text_name(wait->syscall, clean);
	// A task.
	_cleanup_free_ char *reason = frame_name_waits_in(wait);
	return memory_printf("%s%s%s", reason ? reason : "", reason && clean[0] ? " " : "", clean);
}

char *top_waits_for(const struct top_model *model, uint32_t id)
{
	const struct wait *wait = &model->input.profile->waits[id];
	const char *text = frame_name_descriptor(wait);

	if (id == WAIT_NONE)
		return memory_strdup("");
	return call_of(wait, text, strlen(text));
}

char *top_wait_text(char *call)
{
	static const char unknown[] = "(...)", futex[] = "futex(";
	const size_t length = strlen(call), cut = strlen(unknown);
	char *text = NULL;

	if (length > cut && strcmp(call + length - cut, unknown) == 0)
		text = memory_strndup(call, length - cut);
	else if (strncmp(call, futex, strlen(futex)) == 0)
		text = memory_strndup(call + strlen(futex), length - strlen(futex) - 1);
	if (!text)
		return call;
	free(call);
	return text;
}

char *top_sample_waits(const struct top_model *model, uint32_t id)
{
	const struct sample *sample = &model->input.profile->samples[id];
	_cleanup_free_ char *labels = frame_name_labels(model->input.profile, sample);
	char *waits = top_wait_text(top_waits_for(model, sample->wait));

	if (!labels)
		return waits;
	char *text = memory_printf("%s%s{%s}", waits, waits[0] ? " " : "", labels);
	free(waits);
	return text;
}

char *top_wait_thing(const struct top_model *model, const struct top_wait *row)
{
	const struct wait *wait = &model->input.profile->waits[row->held];

	if (row->kind == WAIT_KIND_RUNNABLE)
		return memory_strdup("a CPU");
	if (row->held == WAIT_NONE) {
		const char *text = frame_name_descriptor(&model->input.profile->waits[row->wait]);
		return row->is_several && end_of_length(text) > 0
		           ? call_of(&model->input.profile->waits[row->wait], text,
		                     end_of_length(text))
		           : top_waits_for(model, row->wait);
	}
	return call_of(wait, wait->descriptor,
	               (size_t)(strstr(wait->descriptor, HELD_BY) - wait->descriptor));
}

char *top_wait_holder(const struct top_model *model, const struct top_wait *row)
{
	if (row->held == WAIT_NONE)
		return memory_strdup("");
	const char *text =
	    strstr(model->input.profile->waits[row->held].descriptor, HELD_BY) + strlen(HELD_BY);
	return text_clean(text, strlen(text), MAX_NAME_BYTES);
}
