// SPDX-License-Identifier: MIT
#include "screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "memory.h"

// The alternate screen, no cursor, lines that do not wrap, the wheel as arrow keys (xterm's
// alternate scroll mode: the terminal's own selection stays); and the other way round.
#define ENTER "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?1007s\x1b[?1007h\x1b[2J"
#define LEAVE "\x1b[0m\x1b[?1007r\x1b[?7h\x1b[?25h\x1b[?1049l"
// A terminal that knows it shows all of a frame at once.
#define BEGIN_FRAME "\x1b[?2026h"
#define END_FRAME "\x1b[0m\x1b[?2026l"

enum { DEFAULT_COLUMNS = 80, DEFAULT_ROWS = 24, LAST_WRITE_MS = 500, MAX_PENDING = 1 << 20 };

// For handlers, which nobody hands anything: what is to be given back. NULL: nothing.
static struct screen *volatile taken;

// Safe in a signal's handler.
static void give_back(void)
{
	const struct screen *screen = taken;

	if (!screen)
		return;
	taken = NULL;
	const ssize_t written = write(screen->out, LEAVE, strlen(LEAVE));
	(void)written; // a terminal that takes nothing is not waited for
	tcsetattr(screen->in, TCSANOW, &screen->before);
}

static void crash(int number)
{
	give_back();
	signal(number, SIG_DFL);
	raise(number);
}

bool screen_is_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && term[0] &&
	       strcmp(term, "dumb") != 0;
}

static void forget_shown(struct screen *screen)
{
	for (int i = 0; screen->shown && i < SCREEN_MAX_ROWS; i++)
		free(take_pointer(screen->shown[i]));
}

void screen_measure(struct screen *screen)
{
	struct winsize size = {0};

	ioctl(screen->out, TIOCGWINSZ, &size);
	screen->width = size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
	screen->height = size.ws_row ? size.ws_row : DEFAULT_ROWS;
	if (screen->width > SCREEN_MAX_COLUMNS)
		screen->width = SCREEN_MAX_COLUMNS;
	if (screen->height > SCREEN_MAX_ROWS)
		screen->height = SCREEN_MAX_ROWS;
	forget_shown(screen);
}

static void append(struct screen *screen, const char *text)
{
	const size_t n = strlen(text);

	screen->pending =
	    memory_grow(screen->pending, &screen->pending_capacity, screen->n_pending + n, 1);
	memcpy(screen->pending + screen->n_pending, text, n);
	screen->n_pending += n;
}

void screen_show(struct screen *screen)
{
	struct termios raw = screen->before;

	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	taken = screen;
	tcsetattr(screen->in, TCSADRAIN, &raw);
	screen->n_pending = 0;
	append(screen, ENTER);
	screen->is_shown = true;
	screen_measure(screen);
	screen_write(screen);
}

void screen_hide(struct screen *screen)
{
	struct pollfd pollfd = {.fd = screen->out, .events = POLLOUT};

	if (!screen->is_shown)
		return;
	// In the midst of a frame the terminal may be within a sequence.
	while (screen_write(screen) && poll(&pollfd, 1, LAST_WRITE_MS) > 0)
		;
	screen->n_pending = 0;
	screen->is_shown = false;
	give_back();
}

bool screen_open(struct screen *ret)
{
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

	*ret = (struct screen){.in = STDIN_FILENO};
	// Opened anew, as its flags are its own then.
	ret->out = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (ret->out < 0 || tcgetattr(ret->in, &ret->before) != 0) {
		if (ret->out >= 0)
			close(ret->out);
		return false;
	}
	ret->shown = memory_alloc_zeroed(SCREEN_MAX_ROWS, sizeof(*ret->shown));
	for (size_t i = 0; i < array_size(crashes); i++)
		signal(crashes[i], crash);
	atexit(give_back); // out of memory
	screen_show(ret);
	return true;
}

void screen_forget(void)
{
	taken = NULL;
}

void screen_close(struct screen *screen)
{
	screen_hide(screen);
	forget_shown(screen);
	free(screen->shown);
	free(screen->pending);
	close(screen->out);
	*screen = (struct screen){.in = -1, .out = -1};
}

bool screen_write(struct screen *screen)
{
	size_t done = 0;

	while (done < screen->n_pending) {
		const ssize_t n =
		    write(screen->out, screen->pending + done, screen->n_pending - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		// A terminal that is gone (EIO) takes nothing any more.
		done = n < 0 ? screen->n_pending : done + (size_t)n;
	}
	if (done > 0)
		memmove(screen->pending, screen->pending + done, screen->n_pending - done);
	screen->n_pending -= done;
	return screen->n_pending > 0;
}

void screen_draw(struct screen *screen, char *const *rows)
{
	bool begun = false;

	if (!screen->is_shown || screen->n_pending > 0)
		return;
	for (int i = 0; i < screen->height; i++) {
		if (screen->shown[i] && strcmp(screen->shown[i], rows[i]) == 0)
			continue;
		if (!begun)
			append(screen, BEGIN_FRAME);
		begun = true;
		free(screen->shown[i]);
		screen->shown[i] = memory_strdup(rows[i]);
		_cleanup_free_ char *row =
		    memory_printf("\x1b[%d;1H\x1b[K%s\x1b[0m", i + 1, rows[i]);
		append(screen, row);
	}
	if (begun)
		append(screen, END_FRAME);
	screen_write(screen);
}

bool screen_read(struct screen *screen)
{
	const size_t room = sizeof(screen->input) - screen->n_input;
	const ssize_t n = room ? read(screen->in, screen->input + screen->n_input, room) : 1;

	if (n > 0 && room)
		screen->n_input += (size_t)n;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void take(struct screen *screen, size_t n)
{
	screen->n_input -= n;
	memmove(screen->input, screen->input + n, screen->n_input);
}

// What a whole sequence after the escape means.
static int key_of(const char *sequence)
{
	static const struct {
		const char *sequence;
		int key;
	} keys[] = {
	    {"[A", SCREEN_UP},         {"OA", SCREEN_UP},       {"[B", SCREEN_DOWN},
	    {"OB", SCREEN_DOWN},       {"[C", SCREEN_RIGHT},    {"OC", SCREEN_RIGHT},
	    {"[D", SCREEN_LEFT},       {"OD", SCREEN_LEFT},     {"[5~", SCREEN_PAGE_UP},
	    {"[6~", SCREEN_PAGE_DOWN}, {"[H", SCREEN_HOME},     {"OH", SCREEN_HOME},
	    {"[1~", SCREEN_HOME},      {"[7~", SCREEN_HOME},    {"[F", SCREEN_END},
	    {"OF", SCREEN_END},        {"[4~", SCREEN_END},     {"[8~", SCREEN_END},
	    {"OP", SCREEN_F1},         {"[11~", SCREEN_F1},     {"OQ", SCREEN_F1 + 1},
	    {"[12~", SCREEN_F1 + 1},   {"OR", SCREEN_F1 + 2},   {"[13~", SCREEN_F1 + 2},
	    {"OS", SCREEN_F1 + 3},     {"[14~", SCREEN_F1 + 3}, {"[15~", SCREEN_F1 + 4},
	    {"[17~", SCREEN_F1 + 5},   {"[18~", SCREEN_F1 + 6}, {"[19~", SCREEN_F1 + 7},
	    {"[20~", SCREEN_F1 + 8},   {"[21~", SCREEN_F10},
	};

	for (size_t i = 0; i < array_size(keys); i++)
		if (strcmp(keys[i].sequence, sequence) == 0)
			return keys[i].key;
	return SCREEN_NO_KEY;
}

int screen_next_key(struct screen *screen)
{
	while (screen->n_input > 0) {
		const unsigned char first = screen->input[0];
		char sequence[8];
		size_t n = 1;
		if (first != 0x1b) {
			take(screen, 1);
			return first;
		}
		if (screen->n_input < 2 || (screen->input[1] != '[' && screen->input[1] != 'O')) {
			take(screen, 1);
			return SCREEN_ESCAPE;
		}
		// '[' or 'O', then digits and a last letter or '~'. What is longer than any key's,
		// such as a report of the mouse, is none.
		for (n = 2; n < screen->n_input && screen->input[n] < 0x40; n++)
			;
		n = n < screen->n_input ? n + 1 : n;
		const size_t length = n - 1 < sizeof(sequence) ? n - 1 : 0;
		memcpy(sequence, screen->input + 1, length);
		sequence[length] = '\0';
		take(screen, n);
		const int key = key_of(sequence);
		if (key != SCREEN_NO_KEY)
			return key;
	}
	return SCREEN_NO_KEY;
}
