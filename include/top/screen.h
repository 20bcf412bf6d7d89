// SPDX-License-Identifier: MIT
// screen: draws on a terminal's whole screen, and reads its keys. Uses plain control sequences that
// every terminal of today knows (ECMA-48, xterm), without terminfo.
//
// The terminal is left as it was found, whatever ends the process. A terminal that takes no output
// (Ctrl-S, a dead connection) never keeps the writer waiting: frames are left out instead.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

enum screen_key {
	SCREEN_NO_KEY = -1, // any other key is a byte, or one of these
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
	int width, height; // in columns and rows, at most SCREEN_MAX_COLUMNS and _ROWS
	int in, out;
	bool is_shown;
	struct termios before;
	char **shown;  // the text that each row shows
	char *pending; // output that is not written yet
	size_t n_pending, pending_capacity;
	unsigned char input[SCREEN_INPUT_BYTES];
	size_t n_input;
};

// True if stdin and stdout are a terminal that can be drawn on.
bool screen_is_possible(void);

// Takes the terminal over; there is one screen at a time. False if the terminal cannot be set up.
bool screen_open(struct screen *ret);

// Gives the terminal back as it was; screen_show takes it over again.
void screen_hide(struct screen *screen);
void screen_show(struct screen *screen);
void screen_close(struct screen *screen);

// Call it in a child process, so that the terminal is given back by its parent alone.
void screen_forget(void);

// Reads the terminal's size; the next frame is drawn whole.
void screen_measure(struct screen *screen);

// Shows screen->height rows of clean text, each of at most screen->width columns, with sequences
// that set colours. Does nothing while an earlier frame is not written yet.
void screen_draw(struct screen *screen, char *const *rows);

// Goes on writing what is pending; true if some is still left.
bool screen_write(struct screen *screen);

// Reads what was typed, without waiting. False if the terminal is gone.
bool screen_read(struct screen *screen);

// Returns the next key of what was read. An escape counts as a key if nothing follows it in the
// same read.
int screen_next_key(struct screen *screen);
