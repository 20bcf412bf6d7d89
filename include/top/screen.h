// SPDX-License-Identifier: MIT
// screen: a terminal's whole screen, and its keys. Plain control sequences as every terminal of
// today knows them (ECMA-48, xterm); no terminfo.
//
// The terminal is left as it was found, whatever ends the process. One that takes nothing (Ctrl-S,
// a dead connection) never keeps its writer waiting: frames are left out.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

enum screen_key {
	SCREEN_NO_KEY = -1, // else a byte, or one of these
	SCREEN_UP = 256,
	SCREEN_DOWN,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_END,
	SCREEN_LEFT,
	SCREEN_RIGHT,
	SCREEN_ESCAPE, // alone
	SCREEN_F1,     // to F10, in order
	SCREEN_F10 = SCREEN_F1 + 9,
};

enum { SCREEN_INPUT_BYTES = 64, SCREEN_MAX_COLUMNS = 1000, SCREEN_MAX_ROWS = 500 };

struct screen {
	int width, height; // in columns and rows, at most the above
	int in, out;
	bool is_shown;
	struct termios before;
	char **shown;  // what stands in each row
	char *pending; // not written yet
	size_t n_pending, pending_capacity;
	unsigned char input[SCREEN_INPUT_BYTES];
	size_t n_input;
};

// True if stdin and stdout are a terminal that can be drawn on.
bool screen_is_possible(void);

// Takes the terminal over. False: it cannot be. There is one screen at a time.
bool screen_open(struct screen *ret);

// Gives it back as it was; screen_show takes it over again.
void screen_hide(struct screen *screen);
void screen_show(struct screen *screen);
void screen_close(struct screen *screen);

// In a child process: the terminal is its parent's to give back.
void screen_forget(void);

// Looks how large it is now; what is drawn next is drawn whole.
void screen_measure(struct screen *screen);

// Shows these rows, of which there are screen->height: clean text of at most screen->width columns,
// with sequences that set colours. Nothing while an earlier frame is still to be written.
void screen_draw(struct screen *screen, char *const *rows);

// Writes on what could not be written yet; true if something is left.
bool screen_write(struct screen *screen);

// Reads what was typed, without waiting. False: the terminal is gone.
bool screen_read(struct screen *screen);

// The next key of what was read. A lone escape is one when nothing follows in the same read.
int screen_next_key(struct screen *screen);
