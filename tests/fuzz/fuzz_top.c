// SPDX-License-Identifier: MIT
// Recordings as top sees them: a stream in pieces, looked at meanwhile, and its tables.
#include <stdio.h>
#include <stdlib.h>

#include "debug_server.h"
#include "profile.h"
#include "record_input.h"
#include "share_doubts.h"
#include "top_json.h"
#include "top_layout.h"
#include "top_source.h"
#include "top_table.h"

enum { PIECES = 2 };

#define WINDOW_NS INT64_C(1000000000)

static void show_table(const struct top_model *model, enum top_view view)
{
	struct top_table table;

	top_table_init(&table, model,
	               &(struct top_table_options){
	                   .view = view, .sort_by = -1, .opens = TOP_OPEN_ALL, .width = 120});
	for (size_t i = 0; i < table.n_rows; i++)
		free(top_table_line(&table, &table.rows[i]));
	top_table_deinit(&table);
}

// Each view has all of the time, each tick once.
static void check_sums(const struct top_model *model)
{
	uint64_t threads = 0, functions = 0, waits = model->share.kinds[WAIT_KIND_RUNNING];

	for (size_t i = 0; i < model->n_threads; i++)
		threads += model->threads[i].share.count;
	for (size_t i = 0; i < model->n_functions; i++)
		functions += model->functions[i].self;
	for (size_t i = 0; i < model->n_waits; i++)
		waits += model->waits[i].count;
	expect(threads == model->share.count && functions == model->share.count);
	expect(waits == model->share.count && model->nodes[0].total == model->share.count);
}

static void look(struct top_source *source, FILE *nowhere)
{
	const struct top_choice choice = {.with_tree = true, .shows_all = true};
	struct top_model model;

	top_source_find_names(source, 0);
	top_source_look(source, source->now_ns - WINDOW_NS, source->now_ns + 1, &choice, &model);
	check_sums(&model);
	for (enum top_view view = 0; view < N_TOP_VIEWS; view++)
		show_table(&model, view);
	top_json_write(&model, &source->recording, nowhere);
	free(share_doubts_text(&source->recording.profile));
	top_model_deinit(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct debug_sources no_sources;
	static FILE *nowhere;
	struct top_source source;
	_cleanup_free_ uint8_t *bytes = memory_alloc(size + 1);

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (size)
		memcpy(bytes, data, size);
	record_input_mend(bytes, size);
	top_source_begin(&no_sources, true, 20 * WINDOW_NS, &source);
	for (size_t at = 0, n = size / PIECES + 1; at < size; at += n) {
		if (!top_source_feed(&source, 0, bytes + at, size - at < n ? size - at : n))
			break;
		look(&source, nowhere);
	}
	top_source_end(&source);
	look(&source, nowhere);
	top_source_deinit(&source);
	return 0;
}
