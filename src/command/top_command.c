#include "top_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "debug_sources.h"
#include "error.h"
#include "memory.h"
#include "options.h"
#include "text.h"
#include "time_point.h"
#include "top_json.h"
#include "top_live.h"
#include "top_source.h"
#include "top_text.h"

enum { NAME_COLUMNS = 15, READ_BYTES = 1 << 16 };

#define NAMES_NS (100 * NS_PER_MS)
#define SETTLE_NS (250 * NS_PER_MS)

// Everything of one run.
struct top_run {
	const struct options *options; // borrowed
	struct debug_sources sources;
	struct top_source source;
	struct top_live live;
	int signal_fd;
	int width;       // of plain tables; 0: as wide as they are
	int64_t from_ns; // of the next interval
	long n_told;     // intervals
};

// Which samples are looked at: those that are known by now.
static void select_samples(struct top_run *run)
{
	const struct selection selection = options_selection(run->options);
	const struct recording *recording = &run->source.recording;

	top_source_select(&run->source,
	                  selection_apply(&selection, &recording->profile, &recording->modules,
	                                  top_source_symbols(&run->source),
	                                  run->options->syscalls));
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
	        .hides_idle = true,
	        .open_depth = INT32_MAX,
	    });
	for (size_t i = 0; i <= table.n_rows; i++) {
		_cleanup_free_ char *line =
		    top_table_line(&table, i ? &table.rows[i - 1] : NULL, run->width);
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
	char time[TIME_POINT_TEXT_SIZE];

	time_point_format(profile->start_time_ns + model->input.from_ns, false, time);
	printf("%s   %.1f s   pid %d %s   %zu threads, %llu ticks\n", time,
	       (double)(model->input.to_ns - model->input.from_ns) / (double)NS_PER_SECOND,
	       run->source.recording.pid, name, model->n_threads,
	       (unsigned long long)model->share.count);
}

// One interval. False: nobody reads it any more.
static bool tell(struct top_run *run, int64_t to_ns)
{
	const struct top_options *options = &run->options->top;
	struct top_model model;

	if (run->source.is_stream)
		top_source_find_names(&run->source, NAMES_NS);
	select_samples(run);
	top_source_look(&run->source, run->from_ns, to_ns,
	                !options->json && options->view == TOP_TREE, &model);
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

static struct error *no_reader(void)
{
	return error_create(EXIT_STATUS_OUTPUT, "stdout cannot be written: %s", strerror(errno));
}

// The last interval holds what lies at the very end.
static struct error *tell_recording(struct top_run *run)
{
	const int64_t interval_ns = run->options->top.interval_ns;

	while (run->from_ns <= run->source.now_ns && !has_told_all(run)) {
		const int64_t to_ns = run->from_ns + interval_ns;
		if (!tell(run, to_ns))
			return no_reader();
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

// The intervals that are over, but for what the sampler tells a little later. False: nobody reads.
static bool tell_stream(struct top_run *run)
{
	const int64_t interval_ns = run->options->top.interval_ns;

	while (!has_told_all(run) && run->source.now_ns - SETTLE_NS >= run->from_ns + interval_ns)
		if (!tell(run, run->from_ns + interval_ns))
			return false;
	return true;
}

// Takes what the sampler has written. False: that was all.
static bool read_stream(struct top_run *run)
{
	static uint8_t bytes[READ_BYTES];

	for (;;) {
		const ssize_t n = read(run->live.fd, bytes, sizeof(bytes));
		if (n > 0 && top_source_feed(&run->source, bytes, (size_t)n))
			continue;
		if (n < 0 && errno == EINTR)
			continue;
		return n < 0 && errno == EAGAIN;
	}
}

// Passes on what ends sampling. The terminal's Ctrl-C the sampler gets itself, or the command.
static void take_signal(struct top_run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGINT || info.ssi_code != SI_KERNEL)
			top_live_stop(&run->live);
}

static struct error *follow(struct top_run *run)
{
	struct pollfd fds[] = {
	    {.fd = run->live.fd, .events = POLLIN},
	    {.fd = run->signal_fd, .events = POLLIN},
	};
	struct error *error = NULL;

	for (bool more = true; more;) {
		if (poll(fds, array_size(fds), -1) < 0 && errno != EINTR)
			break;
		take_signal(run);
		more = read_stream(run);
		if (error || has_told_all(run))
			continue;
		if (!tell_stream(run))
			error = no_reader();
		if (error || has_told_all(run))
			top_live_stop(&run->live);
	}
	top_source_end(&run->source);
	return error || run->source.now_ns == 0 ? error : tell_recording(run);
}

static int watch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE); // only to be blocked
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigdelset(&set, SIGPIPE);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static struct error *show_live(struct top_run *run, const struct top_sampler *sampler)
{
	// Before anything is opened that the sampler must not have.
	struct error *error = top_live_start(sampler->sample, sampler->context, false, &run->live);

	if (error)
		return error;
	run->signal_fd = watch_signals();
	top_source_begin(&run->sources, run->options->inlines, run->options->top.window_ns,
	                 &run->source);
	return follow(run);
}

static struct error *show_recording(struct top_run *run)
{
	struct error *error = top_source_open(run->options->recording, &run->sources,
	                                      run->options->inlines, &run->source);

	return error ? error : tell_recording(run);
}

static int report_error(struct error *error)
{
	const int status = error_status(error);

	fprintf(stderr, "profiler: %s\n", error_message(error));
	error_destroy(error);
	return status;
}

int top_command(const struct options *options, const struct top_sampler *sampler)
{
	struct top_run run = {.options = options,
	                      .signal_fd = -1,
	                      .width = terminal_width(),
	                      .live = {.fd = -1, .told = -1}};
	struct error *error =
	    debug_sources_init(&run.sources, options->debug_directories, options->debuginfod,
	                       !options->quiet && isatty(STDERR_FILENO));

	unsetenv("DEBUGINFOD_URLS"); // else libdw may ask
	if (!error)
		error = options->recording ? show_recording(&run) : show_live(&run, sampler);
	const int status = top_live_finish(&run.live);
	top_source_deinit(&run.source);
	debug_sources_deinit(&run.sources);
	if (run.signal_fd >= 0)
		close(run.signal_fd);
	return error ? report_error(error) : status;
}
