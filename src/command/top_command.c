// SPDX-License-Identifier: MIT
#include "top_command.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "debug_server.h"
#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "output.h"
#include "quantity.h"
#include "record_copy.h"
#include "screen.h"
#include "share_doubts.h"
#include "show.h"
#include "summary.h"
#include "text.h"
#include "time_point.h"
#include "top_draw.h"
#include "top_json.h"
#include "top_layout.h"
#include "top_live.h"
#include "top_save.h"
#include "top_signals.h"
#include "top_source.h"
#include "top_text.h"
#include "top_ui.h"
#include "verb.h"
#include "writer.h"

enum { NAME_COLUMNS = 15, READ_BYTES = 1 << 16, MAX_READS = 16, TOLD_BYTES = 4096 };

#define NAMES_NS (100 * NS_PER_MS)
#define SETTLE_NS (250 * NS_PER_MS)

#define FIRST_FRAME_NS (50 * NS_PER_MS)
#define LAST_MINUTE_NS (60 * NS_PER_SECOND)
#define MIN_KEPT_NS LAST_MINUTE_NS // of a stream

enum { MAX_COUNT = 1000000000, MIN_REST = 10 /* a tenth of an interval */ };

#define MIN_INTERVAL_NS (100 * NS_PER_MS)

static struct error *parse_count(struct options *options, const char *value)
{
	if (!quantity_parse_count(value, MAX_COUNT, &options->top.count))
		return option_error("--count: '%s' is not a number from 1 to %d", value, MAX_COUNT);
	return NULL;
}

static struct error *parse_interval(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->top.interval_ns) ||
	    options->top.interval_ns < MIN_INTERVAL_NS)
		return option_error("--interval: '%s' is not a time of at least 100ms", value);
	return NULL;
}

static struct error *parse_window(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->top.window_ns))
		return option_error("--window: '%s' is not a time above 0, such as 10s", value);
	return NULL;
}

static struct error *parse_view(struct options *options, const char *value)
{
	options->top.view = top_view_named(value);
	if (options->top.view >= TOP_STACK)
		return option_error("--view: '%s' is unknown: give threads, functions, tree or "
		                    "waits",
		                    value);
	return NULL;
}

static struct error *parse_sort(struct options *options, const char *value)
{
	options->top.sort = value;
	return NULL;
}

// clang-format off
#define VALUE(letter, name, arg, function, text)                                                   \
	{.short_name = (letter), .long_name = (name), .argument = (arg), .help = (text),           \
	 .parse = (function)}

static const struct option_row own_rows[] = {
	{.help = "What is shown:", .verbs = FOR_TOP},
	VALUE(0, "view", "VIEW", parse_view, "rows: threads (the default), functions, tree or waits"),
	VALUE(0, "sort", "COLUMN", parse_sort, "sort by this column, such as run or tid"),
	{.long_name = "idle", .help = "show idle threads, and count idle time",
	 .flag_offset = offsetof(struct options, top.idle), .flag_value = true},
	{.long_name = "raw", .help = "show functions as sampled, not by your own code",
	 .flag_offset = offsetof(struct options, top.raw), .flag_value = true},
	VALUE(0, "interval", "TIME", parse_interval, "update every TIME; default 1s"),
	VALUE(0, "window", "TIME", parse_window, "on a terminal: add up this much time; default 10s"),
	VALUE('n', "count", "N", parse_count, "stop after N intervals, and print plain tables"),
	{.short_name = 'o', .long_name = "output", .argument = "FILE",
	 .help = "save what is sampled as well, in FILE.wprof"},
	{.long_name = "json", .help = "print JSON, one object per line and interval",
	 .flag_offset = offsetof(struct options, top.json), .flag_value = true},
};
// clang-format on

const struct option_table top_rows = {.rows = own_rows, .n_rows = array_size(own_rows)};

static struct error *check(const struct options *options)
{
	const int n_given =
	    (options->pid != 0) + (options->recording != NULL) + (options->command != NULL);

	if (n_given == 0)
		return option_error(
		    "top: give a process, a recording or a command: profiler top PID, FILE.wprof "
		    "or -- COMMAND; to run a command of that name: profiler -- top");
	if (n_given > 1)
		return option_error("top: give only one: a process, a recording or a command");
	if (options->output && options->recording)
		return option_error(
		    "top: --output saves what is sampled now: leave it out for a recording");
	if (options->output && writer_by_file_name(options->output) != &writer_record)
		return option_error("top: --output saves a recording: give a FILE.wprof");
	if (options->top.sort && top_view_column(options->top.view, options->top.sort) < 0)
		return option_error("--sort: the %s view has no column '%s'",
		                    top_view_name(options->top.view), options->top.sort);
	return NULL;
}

struct error *top_check(struct options *options)
{
	struct error *error = check(options);

	if (!options->top.interval_ns)
		options->top.interval_ns = NS_PER_SECOND;
	if (!options->top.window_ns)
		options->top.window_ns = 10 * NS_PER_SECOND;
	return error;
}

// Everything of one run.
struct top_run {
	const struct options *options; // borrowed
	struct debug_sources sources;
	struct top_source source;
	struct top_live live;
	struct output *output; // that keeps the stream; NULL: none
	struct record_copy copy;
	struct error *output_error;
	struct top_save save;
	struct top_signals signals;
	bool has_screen;
	struct screen screen;
	struct top_ui ui;
	char *told;      // by the sampler, clean lines; NULL: nothing
	char *last_told; // the last one of them
	int width;       // of plain tables; 0: as wide as they are
	int64_t from_ns; // of the next interval
	long n_told;     // intervals
};

static bool has_selection(const struct options *options)
{
	bool has =
	    options->on_cpu || options->off_cpu || options->states || options->n_label_filters > 0;

	for (size_t i = 0; i < N_SELECTION_REGEXES; i++)
		has |= options->has_regex[i];
	return has;
}

// Which samples are looked at: those that are known by now.
static void select_samples(struct top_run *run)
{
	const struct selection selection = options_selection(run->options);
	const struct recording *recording = &run->source.recording;

	top_source_select(&run->source,
	                  selection_apply(&selection, &recording->profile, &recording->modules,
	                                  &recording->symbols, run->options->syscalls));
}

static int sort_column(const struct options *options)
{
	return options->top.sort ? top_view_column(options->top.view, options->top.sort) : -1;
}

static void print_table(const struct top_run *run, const struct top_model *model)
{
	const struct top_options *options = &run->options->top;
	struct top_table table;

	top_table_init(
	    &table, model,
	    &(struct top_table_options){
	        .view = options->view,
	        .sort_by = options->sort ? top_view_column(options->view, options->sort) : -1,
	        .hides_idle = !options->idle,
	        .shows_all = options->raw,
	        .width = run->width,
	        .opens = TOP_OPEN_ALL,
	    });
	for (size_t i = 0; i <= table.n_rows; i++) {
		_cleanup_free_ char *line = top_table_line(&table, i ? &table.rows[i - 1] : NULL);
		puts(line);
	}
	if (table.note)
		puts(table.note);
	puts("");
	top_table_deinit(&table);
}

static void print_head(const struct top_run *run, const struct top_model *model)
{
	const struct profile *profile = &run->source.recording.profile;
	const char *process = profile_process_name(profile, run->source.recording.pid);
	_cleanup_free_ char *clean = text_clean(process, strlen(process), TEXT_UNLIMITED);
	_cleanup_free_ char *name = top_text_fit(clean, NAME_COLUMNS, false);
	const int64_t from_ns = model->input.from_ns, now_ns = run->source.now_ns;
	const int64_t to_ns = model->input.to_ns < now_ns ? model->input.to_ns : now_ns;
	char time[TIME_POINT_TEXT_SIZE];

	time_point_format(profile->start_time_ns + from_ns, false, time);
	printf("%s   %.1f s   pid %d %s   %zu thread%s, %llu sample%s\n", time,
	       clock_seconds(to_ns - from_ns), run->source.recording.pid, name, model->n_threads,
	       text_plural(model->n_threads), (unsigned long long)model->share.count,
	       text_plural(model->share.count));
	_cleanup_free_ char *cpu_wait = top_cpu_wait(model);
	if (cpu_wait)
		printf("%s\n", cpu_wait);
	_cleanup_free_ char *doubts = share_doubts_text(profile);
	if (doubts)
		printf("%s\n", doubts);
}

// One interval. False: nobody reads it any more.
static bool tell(struct top_run *run, int64_t to_ns)
{
	const struct top_options *options = &run->options->top;
	struct top_model model;

	if (run->source.is_stream)
		top_source_find_names(&run->source, NAMES_NS);
	if (has_selection(run->options))
		select_samples(run);
	top_source_look(&run->source, run->from_ns, to_ns,
	                &(struct top_choice){
	                    .with_tree = !options->json && options->view == TOP_TREE,
	                    .hides_idle = !options->json && !options->idle,
	                    .counts = options->json,
	                    .shows_all = options->raw,
	                },
	                &model);
	if (options->json) {
		top_json_write(&model, &run->source.recording, stdout);
	} else {
		print_head(run, &model);
		print_table(run, &model);
	}
	top_model_deinit(&model);
	run->from_ns = to_ns;
	run->n_told++;
	return fflush(stdout) == 0 && !ferror(stdout);
}

static bool has_told_all(const struct top_run *run)
{
	return run->options->top.count && run->n_told >= run->options->top.count;
}

// True if what is left is too short to say anything of how the time went; the sums of JSON need it.
static bool is_rest(const struct top_run *run)
{
	const struct top_options *options = &run->options->top;

	return !options->json && run->n_told > 0 &&
	       run->source.now_ns - run->from_ns < options->interval_ns / MIN_REST;
}

// The last interval holds what lies at the very end.
static struct error *tell_recording(struct top_run *run)
{
	const int64_t interval_ns = run->options->top.interval_ns;

	while (run->from_ns <= run->source.now_ns && !is_rest(run) && !has_told_all(run)) {
		const int64_t to_ns = run->from_ns + interval_ns;
		if (!tell(run, to_ns))
			return show_no_reader();
	}
	return NULL;
}

static int terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 0;
}

// Tells the intervals that ended SETTLE_NS ago: the sampler is a little late. False: nobody reads.
static bool tell_stream(struct top_run *run)
{
	const int64_t interval_ns = run->options->top.interval_ns;

	while (!has_told_all(run) && run->source.now_ns - SETTLE_NS >= run->from_ns + interval_ns)
		if (!tell(run, run->from_ns + interval_ns))
			return false;
	return true;
}

// Takes what the sampler has written; of much, only a part, so that signals and keys do not wait.
// False: nothing more comes. The pipe's end alone would not tell: the sampler, which has it open,
// waits for the command.
static bool read_stream(struct top_run *run)
{
	static uint8_t bytes[READ_BYTES];
	const bool *ended = &run->source.recording.whole;

	for (int i = 0; i < MAX_READS && !*ended; i++) {
		const ssize_t n = read(run->live.fd, bytes, sizeof(bytes));
		if (n > 0 && top_source_feed(&run->source, run->live.files, bytes, (size_t)n))
			continue;
		if (n < 0 && errno == EINTR)
			continue;
		return n < 0 && errno == EAGAIN;
	}
	return !*ended;
}

static bool ends_sampling(uint32_t number)
{
	return number != SIGTSTP && number != SIGCONT && number != SIGWINCH;
}

// Passes on what ends sampling; the sampler, or the command, gets the terminal's Ctrl-C itself.
static void take_signal(struct top_run *run)
{
	struct signalfd_siginfo info;

	while (top_signals_next(&run->signals, &run->live, run->save.pid, &info)) {
		if (info.ssi_signo == SIGTSTP)
			top_signals_stop_here();
		else if (ends_sampling(info.ssi_signo) &&
		         (info.ssi_signo != SIGINT || info.ssi_code != SI_KERNEL))
			top_live_stop(&run->live);
	}
}

// Waits for more of the recording, and passes on what ends it.
static bool await(struct top_run *run)
{
	struct pollfd fds[] = {
	    {.fd = run->live.fd, .events = POLLIN},
	    {.fd = run->signals.fd, .events = POLLIN},
	};

	if (poll(fds, array_size(fds), top_signals_wait_ms(&run->signals)) < 0 && errno != EINTR)
		return false;
	take_signal(run);
	return true;
}

static struct error *follow(struct top_run *run)
{
	struct error *error = NULL;

	for (bool more = true; more && await(run);) {
		more = read_stream(run);
		if (error || has_told_all(run))
			continue;
		if (!tell_stream(run))
			error = show_no_reader();
		if (error || has_told_all(run))
			top_live_stop(&run->live);
	}
	top_source_end(&run->source);
	return error || run->source.now_ns == 0 ? error : tell_recording(run);
}

// Adds what has come to what was told, as clean lines.
static void add_told(struct top_run *run, const char *text, size_t size)
{
	for (const char *line = text, *end = text + size; line < end;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const size_t length = (size_t)((newline ? newline : end) - line);
		_cleanup_free_ char *clean = text_clean(line, length, TOLD_BYTES);
		char *longer = memory_printf("%.*s%s%s", TOLD_BYTES, run->told ?: "", clean,
		                             newline ? "\n" : "");
		free(run->told);
		run->told = longer;
		line += length + 1;
	}
}

static void show_last_told(struct top_run *run)
{
	const size_t length = strlen(run->told), cut = run->told[length - 1] == '\n';
	const char *newline = memrchr(run->told, '\n', length - cut);
	const char *last = newline ? newline + 1 : run->told;

	free(run->last_told);
	run->last_told = memory_strndup(last, (size_t)(run->told + length - cut - last));
	run->ui.trouble = run->last_told;
}

// Reads the sampler's messages: the last line is shown at once, all of them in the end.
static void read_told(struct top_run *run)
{
	char text[TOLD_BYTES / 4];
	ssize_t n = -1;

	while (run->live.told >= 0 && (n = read(run->live.told, text, sizeof(text))) > 0) {
		add_told(run, text, (size_t)n);
		show_last_told(run);
	}
	if (n == 0) { // an end would be news for ever
		close(run->live.told);
		run->live.told = -1;
	}
}

// Back to the shell.
static void suspend(struct top_run *run)
{
	screen_hide(&run->screen);
	top_signals_stop_here();
	screen_show(&run->screen);
}

// If sampling is over, the signal ends the wait for the command, too.
static void leave_for_signal(struct top_run *run)
{
	run->ui.quits = true;
	if (run->live.fd < 0)
		top_live_stop(&run->live);
}

static void take_screen_signals(struct top_run *run)
{
	struct signalfd_siginfo info;

	while (top_signals_next(&run->signals, &run->live, run->save.pid, &info)) {
		if (info.ssi_signo == SIGWINCH)
			screen_measure(&run->screen);
		else if (info.ssi_signo == SIGTSTP)
			suspend(run);
		else if (info.ssi_signo == SIGCONT) // from a stop that could not be seen coming
			screen_show(&run->screen);
		else
			leave_for_signal(run);
	}
}

static void take_keys(struct top_run *run)
{
	if (!screen_read(&run->screen))
		run->ui.quits = true;
	for (int key; (key = screen_next_key(&run->screen)) != SCREEN_NO_KEY;) {
		if (key == 'Z' - '@')
			suspend(run);
		else if (key == 'L' - '@')
			screen_measure(&run->screen);
		else
			top_ui_key(&run->ui, key, run->screen.height);
	}
}

// What the user wishes to have in a file.
static void grant(struct top_run *run)
{
	struct top_save_part part = {.what = run->ui.wish};

	run->ui.wish = 0;
	if (!part.what)
		return;
	top_ui_window(&run->ui, &part.from_ns, &part.to_ns);
	if (part.what == 'S' || part.what == 'd')
		part.from_ns = part.to_ns > LAST_MINUTE_NS ? part.to_ns - LAST_MINUTE_NS : 0;
	top_save_start(&run->save, run->options, &run->source, &part);
	free(run->ui.said);
	run->ui.said = memory_strdup("writing...");
}

static void draw(struct top_run *run)
{
	if (run->source.is_stream && !run->source.ended)
		top_source_find_names(&run->source, NAMES_NS);
	if (has_selection(run->options))
		select_samples(run);
	char **rows = top_draw_rows(&run->ui, run->screen.width, run->screen.height);
	screen_draw(&run->screen, rows);
	for (int i = 0; i < run->screen.height; i++)
		free(rows[i]);
	free(rows);
}

// Waits for something to do, until the next frame is due. True: a key or a signal has come.
static bool wait_for_user(struct top_run *run, int64_t due_ns)
{
	const int64_t left_ns = due_ns - clock_now_ns();
	struct pollfd fds[] = {
	    {.fd = run->screen.in, .events = POLLIN},
	    {.fd = run->signals.fd, .events = POLLIN},
	    {.fd = run->live.fd, .events = POLLIN},
	    {.fd = run->live.told, .events = POLLIN},
	    {.fd = run->save.fd, .events = POLLIN},
	    {.fd = run->screen.out, .events = run->screen.n_pending ? POLLOUT : 0},
	};

	poll(fds, array_size(fds), left_ns > 0 ? (int)(left_ns / NS_PER_MS) + 1 : 0);
	const bool asked = fds[0].revents || fds[1].revents || fds[4].revents;
	take_screen_signals(run);
	if (fds[0].revents)
		take_keys(run);
	grant(run);
	if (fds[4].revents) {
		free(run->ui.said);
		run->ui.said = top_save_finish(&run->save);
	}
	if (run->live.fd >= 0 && !read_stream(run)) {
		close(run->live.fd);
		run->live.fd = -1;
		top_source_find_names(&run->source, NAMES_NS);
		top_source_end(&run->source);
	}
	read_told(run);
	screen_write(&run->screen);
	return asked;
}

// A recording that plays goes on with the time.
static void play(struct top_run *run, int64_t passed_ns)
{
	struct top_ui *ui = &run->ui;

	if (!ui->plays)
		return;
	ui->at_ns += passed_ns;
	if (ui->at_ns >= run->source.now_ns) {
		ui->at_ns = run->source.now_ns;
		ui->plays = false;
	}
}

// True if a container that was told to stop has nothing left but the screen: the sampler ends after
// the command.
static bool has_stopped(const struct top_run *run)
{
	return run->signals.has_passed && run->live.fd < 0 && run->live.pid == 0;
}

static void show_frames(struct top_run *run)
{
	int64_t drawn_ns = INT64_MIN / 2; // not yet: the clock may begin when the machine does
	int64_t last_ns = clock_now_ns();

	while (!run->ui.quits && !has_stopped(run)) {
		const int64_t due_ns =
		    drawn_ns + (run->source.now_ns ? run->ui.interval_ns : FIRST_FRAME_NS);
		const bool asked = wait_for_user(run, due_ns);
		const int64_t now_ns = clock_now_ns();
		play(run, now_ns - last_ns);
		last_ns = now_ns;
		if (!asked && now_ns < due_ns)
			continue;
		draw(run);
		drawn_ns = now_ns;
	}
}

// Until the recording has begun: a target that cannot be sampled is told of without a screen.
static bool has_begun(struct top_run *run)
{
	for (bool more = true; more && run->source.now_ns == 0 && await(run);) {
		read_told(run);
		more = read_stream(run);
	}
	return run->source.now_ns != 0;
}

static struct error *show_screen(struct top_run *run)
{
	top_ui_init(&run->ui, &run->source);
	run->ui.view = run->options->top.view;
	run->ui.shows_idle = run->options->top.idle;
	run->ui.shows_all = run->options->top.raw;
	run->ui.window_ns = run->options->top.window_ns;
	run->ui.interval_ns = run->options->top.interval_ns;
	run->ui.sort_by[run->ui.view] = sort_column(run->options);
	run->ui.colours = !getenv("NO_COLOR");
	if (!screen_open(&run->screen))
		return error_create(EXIT_STATUS_OUTPUT, "the terminal cannot be drawn on: %s",
		                    strerror(errno));
	show_frames(run);
	screen_close(&run->screen);
	if (run->save.pid)
		free(top_save_finish(&run->save));
	top_ui_deinit(&run->ui);
	return NULL;
}

// What stands there is replaced when the recording has begun.
static void begin_output(void *context)
{
	struct top_run *run = context;

	if (!run->copy.failed)
		run->output_error = output_publish(run->output, NULL);
}

static void keep_recording(struct top_run *run)
{
	if (!run->output)
		return;
	run->copy.fd = output_fd(run->output);
	run->source.recording.copy = &run->copy;
	run->source.recording.started = begin_output;
	run->source.recording.context = run;
}

static struct error *close_output(struct top_run *run)
{
	if (!run->output || run->output_error)
		return take_pointer(run->output_error);
	top_source_end(&run->source);
	record_copy_finish(&run->copy, &run->source.recording, NULL);
	if (run->copy.failed)
		return output_refuse(run->output, run->copy.failed);
	return run->source.now_ns ? output_finish(run->output, NULL) : NULL;
}

static struct error *show_live(struct top_run *run, const struct top_sampler *sampler)
{
	top_signals_block(&run->signals, run->has_screen, run->options->command != NULL);
	struct error *error = NULL;
	if (run->options->output)
		error = output_open(run->options->output, true, &run->output);
	if (!error)
		error = top_live_start(sampler->sample, sampler->context, &run->signals.mask,
		                       run->options->command != NULL, run->has_screen, &run->live);
	if (error)
		return error;
	top_signals_await(&run->signals);
	const int64_t window_ns = run->options->top.window_ns;
	top_source_begin(&run->sources, run->options->inlines,
	                 window_ns > MIN_KEPT_NS ? window_ns : MIN_KEPT_NS, &run->source);
	keep_recording(run);
	if (!run->has_screen)
		return follow(run);
	if (has_begun(run))
		error = show_screen(run);
	if (run->live.fd >= 0) // else that would end its wait for the command
		top_live_stop(&run->live);
	while (run->live.fd >= 0 && await(run) && read_stream(run))
		; // it never waits, but is not to find the pipe broken either
	read_told(run);
	return error;
}

static struct error *show_recording(struct top_run *run)
{
	struct error *error = top_source_open(run->options->recording, &run->sources,
	                                      run->options->inlines, &run->source);

	if (error || !run->has_screen)
		return error ? error : tell_recording(run);
	top_signals_block(&run->signals, true, false);
	top_signals_await(&run->signals);
	return show_screen(run);
}

// A command may go on for long after it was sampled.
static void await_end(struct top_run *run)
{
	top_live_close(&run->live);
	while (run->signals.fd >= 0 && !top_live_has_ended(&run->live) && await(run))
		;
}

int top_command(const struct options *options, const struct top_sampler *sampler)
{
	const bool plain = options->top.json || options->top.count || !screen_is_possible();
	struct top_run run = {.options = options,
	                      .signals.fd = -1,
	                      .has_screen = !plain,
	                      .width = terminal_width(),
	                      .live = {.fd = -1, .told = -1},
	                      .save = {.fd = -1}};
	struct error *error = options_debug_sources(options, &run.sources);
	if (!error)
		error = options->recording ? show_recording(&run) : show_live(&run, sampler);
	if (!error && options->recording && !options->quiet)
		summary_print_damage(&run.source.recording);
	await_end(&run);
	const int status = top_live_finish(&run.live);
	if (!error)
		error = close_output(&run);
	record_copy_deinit(&run.copy);
	error_destroy(run.output_error);
	output_destroy(run.output);
	if (run.told)
		fputs(run.told, stderr);
	free(run.told);
	free(run.last_told);
	top_source_deinit(&run.source);
	debug_sources_deinit(&run.sources);
	if (run.signals.fd >= 0)
		close(run.signals.fd);
	return error ? show_error(error) : status;
}
