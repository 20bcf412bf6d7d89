// SPDX-License-Identifier: MIT
#include "top_model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "blocked_leaf.h"
#include "call_text.h"
#include "clock.h"
#include "frame_name.h"
#include "hash.h"
#include "memory.h"
#include "module.h"
#include "sample_kind.h"
#include "sample_work.h"
#include "short_name.h"
#include "slice.h"
#include "symbolize.h"
#include "text.h"
#include "top_own.h"
#include "weights.h"

enum {
	MAX_NAME_BYTES = 1024,
	MAX_WEIGHED = INT32_MAX,
	MAX_FRAMES = 512, // of a deeper stack, the frames next to the root are left out
};

char top_kind_letter(enum wait_kind kind)
{
	static const char letters[N_WAIT_KINDS] = {
	    [WAIT_KIND_RUNNING] = 'R',   [WAIT_KIND_RUNNABLE] = 'Q', [WAIT_KIND_LOCK] = 'L',
	    [WAIT_KIND_CONDITION] = 'C', [WAIT_KIND_FILE] = 'F',     [WAIT_KIND_SOCKET] = 'S',
	    [WAIT_KIND_EVENT] = 'E',     [WAIT_KIND_TIMER] = 'T',    [WAIT_KIND_PIPE] = 'P',
	    [WAIT_KIND_STOPPED] = 'X',
	};

	return kind < N_WAIT_KINDS ? letters[kind] : ' ';
}

static bool is_selected(const struct top_input *input, const struct span *span)
{
	return span->count > 0 && (!input->selected || input->selected[span->sample]);
}

static void add_share(struct top_share *share, const struct top_model *model, size_t id,
                      uint64_t count)
{
	share->count += count;
	share->idle += model->no_work[id] ? count : 0;
	share->kinds[model->kinds[id]] += count;
}

// True if the sample has a share in the functions, the tree and the waits.
static bool counts(const struct top_model *model, const struct sample *sums, size_t id)
{
	return sums[id].count > 0 && !(model->hides_idle && model->no_work[id]);
}

// The sums of the window, one for each sample.
static void add_samples(const struct top_input *input, struct slice *slice)
{
	slice_init(slice, input->from_ns, input->to_ns);
	for (size_t i = 0; i < input->n_spans; i++)
		if (is_selected(input, &input->spans[i]))
			slice_add(slice, input->profile, &input->spans[i]);
}

// Samples then count as the kernel's clocks say. Rounding errors are handed on, so that a thread's
// samples keep their sum.
static void weigh(const struct top_input *input, struct slice *slice)
{
	const struct profile *profile = input->profile;
	_cleanup_free_ double *errors =
	    memory_alloc_zeroed(profile->n_threads + 1, sizeof(*errors));

	for (size_t i = 0; input->weights && i < slice->n_sums; i++) {
		const struct sample *sample = &profile->samples[i];
		const struct weights *weights = &input->weights[sample->thread];
		struct sample *sum = &slice->sums[i];
		double *error = &errors[sample->thread];
		const double n =
		    (double)sum->count * weights->factor[weight_class_of(sample->state)] + *error;
		if (sum->count == 0)
			continue;
		// Hostile figures make anything of it.
		sum->count = n <= 0 ? 0 : n < MAX_WEIGHED ? (uint64_t)(n + 0.5) : MAX_WEIGHED;
		*error = n < MAX_WEIGHED ? n - (double)sum->count : 0;
	}
}

static void find_kinds(struct top_model *model)
{
	const struct top_input *input = &model->input;
	struct sample_work *work =
	    sample_work_create(input->profile, input->modules, input->symbols);
	struct sample_kinds kinds;

	sample_kinds_init(&kinds, input->profile, input->symbols);
	model->kinds = memory_alloc_zeroed(input->profile->n_samples + 1, 1);
	model->no_work =
	    memory_alloc_zeroed(input->profile->n_samples + 1, sizeof(*model->no_work));
	for (size_t i = 0; i < input->n_spans; i++) {
		const uint32_t id = input->spans[i].sample;
		const struct sample *sample = &input->profile->samples[id];
		if (input->spans[i].count == 0)
			continue;
		const enum wait_kind kind = sample_kind(&kinds, sample);
		model->kinds[id] = (uint8_t)kind;
		model->no_work[id] = sample_has_no_work(work, sample, kind);
	}
	sample_kinds_deinit(&kinds);
	sample_work_destroy(work);
}

// Spans come in the order of time: the last one before the window's end tells what the thread does.
static void note_now(const struct top_model *model, struct top_thread *thread,
                     const struct span *span)
{
	const struct thread *known = &model->input.profile->threads[thread->thread];
	const int64_t to_ns = model->input.to_ns;

	if (span->start_ns >= to_ns || span->end_ns <= model->input.from_ns)
		return;
	thread->sample = span->sample;
	thread->now = model->kinds[span->sample];
	thread->for_ns = (span->end_ns < to_ns ? span->end_ns : to_ns) - span->start_ns;
	thread->never_woke = wait_kind_is_blocked(thread->now) && span->start_ns <= known->first_ns;
	thread->ended = known->ended && known->last_ns <= to_ns;
}

struct history {
	uint64_t cells[TOP_HISTORY_CELLS][N_WAIT_KINDS];
};

static void add_history(const struct top_model *model, struct history *history,
                        const struct span *span)
{
	const int64_t first_ns = model->input.to_ns - (int64_t)TOP_HISTORY_CELLS * NS_PER_SECOND;

	if (span->end_ns <= first_ns)
		return;
	for (int i = 0; i < TOP_HISTORY_CELLS; i++) {
		const int64_t from_ns = first_ns + i * NS_PER_SECOND;
		if (span->start_ns >= from_ns + NS_PER_SECOND || span->end_ns <= from_ns)
			continue;
		history->cells[i][model->kinds[span->sample]] +=
		    span_ticks_before(span, from_ns + NS_PER_SECOND) -
		    span_ticks_before(span, from_ns);
	}
}

static uint8_t most_of(const uint64_t kinds[N_WAIT_KINDS])
{
	uint8_t most = N_WAIT_KINDS;

	for (uint8_t i = 0; i < N_WAIT_KINDS; i++)
		if (kinds[i] > 0 && (most == N_WAIT_KINDS || kinds[i] > kinds[most]))
			most = i;
	return most;
}

// How many samples a thread has that was there all the time, whatever is selected.
static uint64_t count_ticks(const struct top_input *input)
{
	uint64_t most = 0, n = 0;

	for (size_t i = 0; i < input->n_spans; i++) {
		const struct span *span = &input->spans[i];
		if (i > 0 && span->thread != span[-1].thread)
			n = 0;
		if (span->count > 0)
			n += span_ticks_before(span, input->to_ns) -
			     span_ticks_before(span, input->from_ns);
		most = n > most ? n : most;
	}
	return most;
}

// Threads that have a tick in the window.
static void find_threads(struct top_model *model, const struct slice *slice)
{
	const struct top_input *input = &model->input;
	const size_t n = input->profile->n_threads;
	_cleanup_free_ struct history *history = memory_alloc_zeroed(n + 1, sizeof(*history));

	model->threads = memory_alloc_zeroed(n + 1, sizeof(*model->threads));
	for (uint32_t i = 0; i < n; i++)
		model->threads[i] = (struct top_thread){.thread = i, .sample = TOP_NONE};
	for (size_t i = 0; i < slice->n_sums; i++) {
		const struct sample *sum = &slice->sums[i];
		const uint32_t thread = input->profile->samples[i].thread;
		if (sum->count == 0)
			continue;
		add_share(&model->threads[thread].share, model, i, sum->count);
		add_share(&model->share, model, i, sum->count);
	}
	for (size_t i = 0; i < input->n_spans; i++) {
		const struct span *span = &input->spans[i];
		if (!is_selected(input, span))
			continue;
		add_history(model, &history[span->thread], span);
		note_now(model, &model->threads[span->thread], span);
	}
	for (size_t i = 0; i < n; i++) {
		struct top_thread *thread = &model->threads[i];
		for (int cell = 0; cell < TOP_HISTORY_CELLS; cell++)
			thread->history[cell] = most_of(history[i].cells[cell]);
		if (thread->share.count > 0)
			model->threads[model->n_threads++] = *thread;
	}
}

// Functions have their position in the symbols; after them come locations without a name, then
// reasons why a stack ends.
static uint32_t id_of_location(const struct top_input *input, uint32_t location)
{
	return (uint32_t)input->symbols->n_functions + location;
}

static uint32_t id_of_end(const struct top_input *input, enum stack_end end)
{
	return (uint32_t)(input->symbols->n_functions + input->profile->n_locations) + end;
}

// The functions at one location, innermost first. Returns how many: 1 to `room`.
static size_t frames_at(const struct top_input *input, uint32_t location, uint32_t *ret_ids,
                        uint32_t *ret_lines, size_t room)
{
	const struct symbols *symbols = input->symbols;
	const struct location_lines *lines =
	    location < symbols->n_locations ? &symbols->locations[location] : NULL;

	if (!lines || lines->count == 0) {
		ret_ids[0] = id_of_location(input, location);
		ret_lines[0] = 0;
		return 1;
	}
	size_t n = 0;
	for (uint32_t i = 0; i < lines->count && n < room; i++) {
		const struct line *line = &symbols->lines[lines->first + i];
		ret_lines[n] = line->line;
		ret_ids[n++] = line->function;
	}
	return n;
}

// Lists the frames of a sample's whole stack as it is shown (blocked_leaf.h), leaf first, and the
// lines in them (0: not known); the last entry tells why the stack is not whole, if it is not.
// Returns how many: 1 to MAX_FRAMES.
static size_t list_frames(const struct top_input *input, uint32_t sample, uint32_t *ret_ids,
                          uint32_t *ret_lines)
{
	const struct profile *profile = input->profile;
	struct stack stack = profile->stacks[profile->samples[sample].stack];
	// With --blame, a table tells of the thread that waits; HELD BY is who makes it wait.
	const uint32_t n_inner =
	    stack.n_blamed
	        ?: blocked_leaf_inner_frames(profile, input->modules, input->symbols,
	                                     &profile->samples[sample]);
	size_t n = 0;

	stack.first += n_inner;
	stack.n_frames -= n_inner;
	for (uint32_t i = 0; i < stack.n_frames && n < MAX_FRAMES - 1; i++)
		n += frames_at(input, profile->location_ids[stack.first + i], ret_ids + n,
		               ret_lines + n, MAX_FRAMES - 1 - n);
	const enum stack_end end = frame_name_stack_end(&stack);
	if (end == STACK_COMPLETE && n > 0)
		return n;
	ret_lines[n] = 0;
	ret_ids[n++] = id_of_end(input, end);
	return n;
}

// The root of stacks without the program's own functions.
static uint32_t id_of_elsewhere(const struct top_input *input)
{
	return id_of_end(input, (enum stack_end)N_STACK_ENDS);
}

bool top_is_elsewhere(const struct top_input *input, uint32_t id)
{
	return id == id_of_elsewhere(input);
}

static int compare_functions(const void *a_pointer, const void *b_pointer)
{
	const struct top_function *a = a_pointer, *b = b_pointer;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total.count != b->total.count)
		return a->total.count > b->total.count ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static void find_functions(struct top_model *model, const struct sample *sums, size_t n)
{
	const struct top_input *input = &model->input;
	const struct profile *profile = input->profile;
	const size_t n_ids = input->symbols->n_functions + profile->n_locations + N_STACK_ENDS;
	struct top_function *functions = memory_alloc_zeroed(n_ids, sizeof(*functions));
	_cleanup_free_ size_t *seen = memory_alloc_zeroed(n_ids, sizeof(*seen)); // sample + 1
	uint32_t ids[MAX_FRAMES], lines[MAX_FRAMES];

	for (size_t s = 0; s < n; s++) {
		if (!counts(model, sums, s))
			continue;
		const size_t n_frames = list_frames(input, (uint32_t)s, ids, lines);
		const size_t own = top_own_frame(input, ids, n_frames);
		functions[ids[0]].self += sums[s].count;
		functions[ids[own < n_frames ? own : 0]].own_self += sums[s].count;
		if (own == n_frames)
			add_share(&model->elsewhere, model, s, sums[s].count);
		for (size_t i = 0; i < n_frames; i++) {
			struct top_share *total = &functions[ids[i]].total;
			if (seen[ids[i]] == s + 1)
				continue; // recursion
			seen[ids[i]] = s + 1;
			add_share(total, model, s, sums[s].count);
		}
	}
	for (size_t i = 0; i < n_ids; i++) {
		functions[i].id = (uint32_t)i;
		if (functions[i].total.count > 0)
			functions[model->n_functions++] = functions[i];
	}
	qsort(functions, model->n_functions, sizeof(*functions), compare_functions);
	model->functions = functions;
}

// The child of that function, new or known; TOP_NONE: there is no room for one more.
static uint32_t child_of(struct top_model *model, uint32_t parent, uint32_t id)
{
	uint32_t node = model->nodes[parent].first_child;

	while (node != TOP_NONE && model->nodes[node].id != id)
		node = model->nodes[node].next_sibling;
	if (node != TOP_NONE || model->n_nodes >= TOP_MAX_NODES)
		return node;
	node = (uint32_t)model->n_nodes;
	*array_push(model->nodes, model->n_nodes, model->nodes_capacity) = (struct top_node){
	    .id = id,
	    .parent = parent,
	    .first_child = TOP_NONE,
	    .next_sibling = model->nodes[parent].first_child,
	};
	model->nodes[parent].first_child = node;
	return node;
}

static void add_path(struct top_model *model, const uint32_t *ids, size_t n, uint64_t count)
{
	uint32_t node = 0;

	model->nodes[0].total += count;
	while (n-- > 0) {
		const uint32_t child = child_of(model, node, ids[n]);
		if (child == TOP_NONE)
			break; // the rest counts as its own
		node = child;
		model->nodes[node].total += count;
	}
	model->nodes[node].self += count;
}

static void find_tree(struct top_model *model, const struct sample *sums, size_t n)
{
	const struct top_input *input = &model->input;
	uint32_t ids[MAX_FRAMES + 1], lines[MAX_FRAMES + 1];
	const bool folds = !input->choice.shows_all;
	const bool has_own = model->elsewhere.count < model->n_counted;

	*array_push(model->nodes, model->n_nodes, model->nodes_capacity) = (struct top_node){
	    .id = TOP_NONE, .parent = TOP_NONE, .first_child = TOP_NONE, .next_sibling = TOP_NONE};
	for (size_t s = 0; s < n; s++) {
		if (!counts(model, sums, s))
			continue;
		size_t n_frames = list_frames(input, (uint32_t)s, ids, lines);
		if (folds)
			n_frames = top_fold(input, ids, lines, n_frames);
		if (folds && has_own && top_own_frame(input, ids, n_frames) == n_frames)
			ids[n_frames++] = id_of_elsewhere(input);
		add_path(model, ids, n_frames, sums[s].count);
	}
}

// How a wait for a child's or a thread's end begins, before its name and number.
#define END_OF "the end of \""

// The length of such a text without the number, as children of one name are one thing; 0: it is
// none.
static size_t end_of_length(const char *text)
{
	const char *quote = text_begins_with(text, END_OF) ? strrchr(text, '"') : NULL;

	return quote ? (size_t)(quote + 1 - text) : 0;
}

// Of a connection the end that serves, as the other one's port is new each time: "-> HOST:PORT" if
// that is the other end. Of a socket that was closed too soon to be known, nothing but that. NULL:
// the text is of something else.
static const char *served_end(const char *text, size_t *ret_length)
{
	enum { FIRST_CHOSEN = 32768 }; // net.ipv4.ip_local_port_range
	static const char unknown[] = "socket:", tcp[] = "tcp ", arrow[] = " -> ";
	const char *to = strncmp(text, tcp, strlen(tcp)) == 0 ? strstr(text, arrow) : NULL;
	const char *colon = to ? memrchr(text, ':', (size_t)(to - text)) : NULL;

	if (strncmp(text, unknown, strlen(unknown)) == 0) {
		*ret_length = strlen(unknown) - 1;
		return text;
	}
	if (!colon)
		return NULL;
	if (strtol(colon + 1, NULL, 10) < FIRST_CHOSEN) {
		*ret_length = (size_t)(to - text);
		return text;
	}
	const char *address = to + strlen(arrow);
	size_t length = strcspn(address, " ");
	while (length > 0 && strchr(",:", address[length - 1])) // who is there follows
		length--;
	*ret_length = (size_t)(address + length - (to + 1));
	return to + 1;
}

// The part of the text that says what is waited for, whoever holds it. Of a lock it is the address:
// in the instant in which nobody holds it its kind may not be known.
static const char *thing(const struct wait *wait, size_t *ret_length)
{
	const char *text = frame_name_descriptor(wait);
	const size_t end_of = end_of_length(text);
	const char *end = served_end(text, ret_length);

	if (end)
		return end;
	// The first of several that a task waits for ("chan 0x1 +3") says nothing of the others.
	if (wait->reason[0] && strstr(text, " +")) {
		*ret_length = 0;
		return text;
	}
	if (end_of > 0) {
		*ret_length = end_of;
		return text;
	}
	const char *held = strstr(text, WAIT_HOLDER);
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
	if (to_ns < row->held_until_ns ||
	    !strstr(input->profile->waits[wait].descriptor, WAIT_HOLDER))
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
static void find_waits(struct top_model *model, const struct sample *sums, size_t n)
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
		if (model->kinds[i] == WAIT_KIND_RUNNING || !counts(model, sums, i))
			continue;
		model->waits[row].count += sums[i].count;
		model->waits[row].is_several |= samples[i].wait != first[samples[i].wait];
	}
	for (size_t i = 0; i < input->n_spans; i++) {
		const struct span *span = &input->spans[i];
		if (!is_selected(input, span) || span->end_ns <= input->from_ns ||
		    span->start_ns >= input->to_ns || span->start_ns == span->end_ns ||
		    model->kinds[span->sample] == WAIT_KIND_RUNNING ||
		    (model->hides_idle && model->no_work[span->sample]))
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
	else if (text_begins_with(call, futex))
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
		const struct wait *first = &model->input.profile->waits[row->wait];
		size_t length;
		const char *text = thing(first, &length);
		if (!row->is_several)
			return top_waits_for(model, row->wait);
		_cleanup_free_ char *several =
		    memory_printf("%s%.*s", text[0] == '-' ? "tcp " : "", (int)length, text);
		return call_of(first, several, strlen(several));
	}
	return call_of(wait, wait->descriptor,
	               (size_t)(strstr(wait->descriptor, WAIT_HOLDER) - wait->descriptor));
}

char *top_wait_holder(const struct top_model *model, const struct top_wait *row)
{
	if (row->held == WAIT_NONE)
		return memory_strdup("");
	const char *text = strstr(model->input.profile->waits[row->held].descriptor, WAIT_HOLDER) +
	                   strlen(WAIT_HOLDER);
	return text_clean(text, strlen(text), MAX_NAME_BYTES);
}

// How much of the window is counted: idle time is not, if there is other time.
static void count(struct top_model *model)
{
	const uint64_t idle = model->share.idle;

	model->hides_idle = model->input.choice.hides_idle && idle < model->share.count;
	model->n_counted = model->share.count - (model->hides_idle ? idle : 0);
}

void top_model_init(struct top_model *ret, const struct top_input *input)
{
	struct slice slice;

	*ret = (struct top_model){
	    .input = *input,
	    .cpus = cpu_log_between(input->cpu_log, input->from_ns, input->to_ns),
	};
	find_kinds(ret);
	add_samples(input, &slice);
	weigh(input, &slice);
	ret->n_ticks = count_ticks(input);
	find_threads(ret, &slice);
	count(ret);
	find_waits(ret, slice.sums, slice.n_sums);
	find_functions(ret, slice.sums, slice.n_sums);
	if (input->choice.with_tree)
		find_tree(ret, slice.sums, slice.n_sums);
	slice_deinit(&slice);
}

void top_model_deinit(struct top_model *model)
{
	free(model->threads);
	free(model->functions);
	free(model->waits);
	free(model->nodes);
	free(model->kinds);
	free(model->no_work);
	*model = (struct top_model){0};
}

static uint64_t active_of(const struct top_share *share)
{
	return share->kinds[WAIT_KIND_RUNNING] + share->kinds[WAIT_KIND_RUNNABLE];
}

char *top_cpu_wait(const struct top_model *model)
{
	const uint64_t whole = model->n_ticks ? model->n_ticks : 1;
	uint64_t n = 0; // as cpu_waits_count_threads
	bool by_others;

	for (size_t i = 0; i < model->n_threads; i++) {
		const struct top_share *share = &model->threads[i].share;
		const uint64_t active = active_of(share);
		n += active > 0 && active * 100 >= active_of(&model->share) ? share->count : 0;
	}
	return cpu_waits_text(&model->cpus, (size_t)((n + whole / 2) / whole), &by_others);
}

char *top_function_full_name(const struct top_model *model, uint32_t id)
{
	const struct top_input *input = &model->input;
	const struct symbols *symbols = input->symbols;

	if (id < symbols->n_functions) {
		const char *name = symbols->functions[id].name;
		return text_clean(name, strlen(name), MAX_NAME_BYTES);
	}
	if (top_is_elsewhere(input, id))
		return memory_strdup(TOP_ELSEWHERE);
	id -= (uint32_t)symbols->n_functions;
	if (id >= input->profile->n_locations)
		return frame_name_truncated((enum stack_end)(id - input->profile->n_locations));
	const struct location *location = &input->profile->locations[id];
	return frame_name_unresolved(input->modules->items[location->module], location->address);
}

// As its author calls it (short_name.h).
__attribute__((returns_nonnull)) static char *function_name(const struct top_model *model,
                                                            uint32_t id)
{
	const struct symbols *symbols = model->input.symbols;

	if (id >= symbols->n_functions)
		return top_function_full_name(model, id);
	_cleanup_free_ char *name = short_name(symbols->functions[id].name);
	return text_clean(name, strlen(name), MAX_NAME_BYTES);
}

// What stands for the file of a function that is not the program's own: its library; NULL: none.
static const char *library_of(const struct top_model *model, uint32_t id)
{
	const struct top_input *input = &model->input;
	const uint32_t index = top_module_of(input, id);
	const struct module *module = index == TOP_NONE ? NULL : input->modules->items[index];

	return module && module->kind == MODULE_FILE && module != input->modules->program &&
	               !top_is_own(input, id)
	           ? module_name(module)
	           : NULL;
}

char *top_function_place(const struct top_model *model, uint32_t id, uint32_t line)
{
	const struct symbols *symbols = model->input.symbols;
	char *name = function_name(model, id);

	if (id >= symbols->n_functions)
		return name;
	const struct function *function = &symbols->functions[id];
	const char *library = library_of(model, id), *path = library ? library : function->file;
	const char *slash = strrchr(path, '/');
	const char *file = slash ? slash + 1 : path;
	if (!file[0])
		return name;
	line = line ? line : function->start_line;
	_cleanup_free_ char *clean = text_clean(file, strlen(file), MAX_NAME_BYTES);
	char *place = library || !line ? memory_printf("%s (%s)", name, clean)
	                               : memory_printf("%s (%s:%" PRIu32 ")", name, clean, line);
	free(name);
	return place;
}

char *top_where(const struct top_model *model, uint32_t sample)
{
	uint32_t ids[MAX_FRAMES + 1], lines[MAX_FRAMES + 1];
	size_t n = list_frames(&model->input, sample, ids, lines);

	n = top_fold(&model->input, ids, lines, n);
	const size_t own = top_own_frame(&model->input, ids, n), at = own < n ? own : 0;
	return top_function_place(model, ids[at], lines[at]);
}

char **top_stack(const struct top_model *model, uint32_t sample, enum top_stack_form form,
                 size_t *ret_count)
{
	uint32_t ids[MAX_FRAMES + 1], lines[MAX_FRAMES + 1];
	size_t n = list_frames(&model->input, sample, ids, lines);

	if (form == TOP_STACK_SHORT)
		n = top_fold(&model->input, ids, lines, n);
	char **names = memory_alloc_zeroed(n + 1, sizeof(*names));
	for (size_t i = 0; i < n; i++)
		names[i] = form == TOP_STACK_FULL_NAMES ? top_function_full_name(model, ids[i])
		           : form == TOP_STACK_PLACES ? top_function_place(model, ids[i], lines[i])
		                                      : function_name(model, ids[i]);
	*ret_count = n;
	return names;
}
