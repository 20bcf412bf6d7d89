// SPDX-License-Identifier: MIT
#include "top_model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "frame_name.h"
#include "memory.h"
#include "module.h"
#include "sample_kind.h"
#include "sample_work.h"
#include "short_name.h"
#include "slice.h"
#include "symbolize.h"
#include "text.h"
#include "top_own.h"
#include "top_tree.h"
#include "top_waits.h"
#include "weights.h"

enum { MAX_NAME_BYTES = 1024, MAX_WEIGHED = INT32_MAX };

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

// The sums of the window, one for each sample.
static void add_samples(const struct top_input *input, struct slice *slice)
{
	slice_init(slice, input->from_ns, input->to_ns);
	for (size_t i = 0; i < input->n_spans; i++)
		if (top_is_selected(input, &input->spans[i]))
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
		top_add_share(&model->threads[thread].share, model, i, sum->count);
		top_add_share(&model->share, model, i, sum->count);
	}
	for (size_t i = 0; i < input->n_spans; i++) {
		const struct span *span = &input->spans[i];
		if (!top_is_selected(input, span))
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
	uint32_t ids[TOP_MAX_FRAMES + 1], lines[TOP_MAX_FRAMES + 1];
	size_t n = top_frames(&model->input, sample, ids, lines);

	n = top_fold(&model->input, ids, lines, n);
	const size_t own = top_own_frame(&model->input, ids, n), at = own < n ? own : 0;
	return top_function_place(model, ids[at], lines[at]);
}

char **top_stack(const struct top_model *model, uint32_t sample, enum top_stack_form form,
                 size_t *ret_count)
{
	uint32_t ids[TOP_MAX_FRAMES + 1], lines[TOP_MAX_FRAMES + 1];
	size_t n = top_frames(&model->input, sample, ids, lines);

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
	top_find_waits(ret, slice.sums, slice.n_sums);
	top_find_functions(ret, slice.sums, slice.n_sums);
	if (input->choice.with_tree)
		top_find_tree(ret, slice.sums, slice.n_sums);
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
