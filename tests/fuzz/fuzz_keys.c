// SPDX-License-Identifier: MIT
// What is typed, or sent by a terminal that lies: keys, and what the screen of top makes of them.
#include "debug_server.h"
#include "fuzz.h"
#include "memory.h"
#include "screen.h"
#include "top_draw.h"
#include "top_source.h"
#include "top_ui.h"

enum { MAX_WIDTH = 120, MAX_HEIGHT = 50 };

static void draw(struct top_ui *ui, int width, int height)
{
	char **rows = top_draw_rows(ui, width, height);

	for (int i = 0; i < height; i++) {
		expect(rows[i]);
		free(rows[i]);
	}
	free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct debug_sources sources = {0};
	struct input input = {data, size};
	struct screen screen = {.in = -1, .out = -1};
	struct top_source source;
	struct top_ui ui;

	top_source_begin(&sources, false, 1, &source);
	top_ui_init(&ui, &source);
	while (input.left > 0) {
		const int height = 1 + input_u8(&input) % MAX_HEIGHT;
		size_t n = 1 + input_u8(&input) % sizeof(screen.input);
		n = n < input.left ? n : input.left;
		n = n < sizeof(screen.input) - screen.n_input
		        ? n
		        : sizeof(screen.input) - screen.n_input;
		memcpy(screen.input + screen.n_input, input.data, n);
		screen.n_input += n;
		input.data += n;
		input.left -= n;
		for (int key; (key = screen_next_key(&screen)) != SCREEN_NO_KEY;) {
			expect(key >= 0 && key <= SCREEN_F10);
			top_ui_key(&ui, key, height);
		}
		expect(screen.n_input == 0);
		draw(&ui, 1 + height * 3 % MAX_WIDTH, height);
	}
	top_ui_deinit(&ui);
	top_source_deinit(&source);
	return 0;
}
