// SPDX-License-Identifier: MIT
#include "window_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "local_files.h"
#include "memory.h"
#include "time_point.h"
#include "options.h"
#include "output.h"
#include "profile.h"
#include "write_report.h"
#include "stack_limit.h"
#include "supervise.h"
#include "symbolize.h"
#include "timeline.h"
#include "writer.h"

enum { CHILD_NICE = 10, MAX_CHILDREN = 16 };
enum { STATUS_EXEC_FAILED = 100 }; // of a child: its file is in its place

struct error *window_files_init(struct window_files *files, const struct options *options,
                                struct modules *modules, const struct supervise_ends *ends)
{
	*files = (struct window_files){
	    .options = options,
	    .modules = modules,
	    .ends = ends,
	};
	if (!options->output)
		return NULL;
	files->directory = memory_strdup(options->output);
	if (mkdir(files->directory, options->push.destination.url ? 0700 : 0777) != 0 &&
	    errno != EEXIST)
		return error_create(EXIT_STATUS_OUTPUT, "cannot make the directory %s: %s",
		                    files->directory, strerror(errno));
	if (access(files->directory, W_OK | X_OK) != 0)
		return error_create(EXIT_STATUS_OUTPUT, "cannot write to the directory %s: %s",
		                    files->directory, strerror(errno));
	return output_check_directory(files->directory);
}

void window_files_deinit(struct window_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free(files->items[i].path);
		window_back_destroy(files->items[i].back);
	}
	for (size_t i = 0; i < files->n_backs; i++)
		window_back_destroy(files->backs[i]);
	free(files->backs);
	free(files->items);
	free(files->directory);
	*files = (struct window_files){0};
}

char *window_files_path(const char *directory, int pid, uint32_t number, int64_t time_ns,
                        const char *suffix)
{
	char host[65] = "", time[TIME_POINT_TEXT_SIZE];
	const size_t length = strlen(directory);
	const char *slash = length > 0 && directory[length - 1] != '/' ? "/" : "";

	gethostname(host, sizeof(host) - 1);
	for (char *c = host; *c; c++)
		if (*c == '/' || (*c == '.' && c == host)) // no hidden files
			*c = '_';
	time_point_format(time_ns, true, time);
	return memory_printf("%s%s%s.%d.%06u.%s%s", directory, slash, host[0] ? host : "_", pid,
	                     number, time, suffix);
}

static struct error *write_part(const struct window_files *files, const struct window_part *part,
                                const struct symbols *symbols, const char *path,
                                const char *comment)
{
	_cleanup_free_ const char **comments = report_comments(comment, files->labels);
	struct output *output = NULL;
	struct error *error = output_open(path, false, &output);

	if (error)
		return error;
	struct profile whole = *part->whole;
	whole.duration_ns =
	    part->view->start_time_ns + part->view->duration_ns - whole.start_time_ns;
	error = write_report(files->options,
	                     &(struct report_source){
	                         .part = part->view,
	                         .whole = &whole,
	                         .timeline = part->timeline,
	                         .modules = files->modules,
	                         .symbols = symbols,
	                         .comments = comments,
	                         .pid = files->pid,
	                         .children = options_has_several(files->options),
	                     },
	                     output_stream(output));
	return output_end(output, error);
}

static void mark_used(const struct profile *profile, uint32_t stack_id, bool *used)
{
	const struct stack *stack = &profile->stacks[stack_id];

	for (uint32_t i = 0; i < stack->n_frames; i++)
		used[profile->location_ids[stack->first + i]] = true;
}

// In the child, whose profile is its own: names are looked up for what is written alone.
static void leave_out_others(const struct window_part *part)
{
	const struct profile *view = part->view;
	const size_t n_spans = part->timeline ? part->timeline->n_spans : 0;
	_cleanup_free_ bool *used = memory_alloc_zeroed(view->n_locations, sizeof(*used));

	for (size_t i = 0; i < view->n_samples; i++)
		mark_used(view, view->samples[i].stack, used);
	for (size_t i = 0; i < n_spans; i++)
		mark_used(view, part->whole->samples[part->timeline->spans[i].sample].stack, used);
	for (size_t i = 0; i < view->n_locations; i++)
		if (!used[i])
			view->locations[i].module = UINT32_MAX;
}

// In the helper's process: leaves the input and the output to the wrapped command and whoever
// started the profiler. A helper reads nothing, and what it prints goes to the standard error
// output.
static bool use_own_descriptors(void)
{
	const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
		return false;
	return dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 || dup2(nothing, STDOUT_FILENO) >= 0;
}

// The command, with the file's path as a last word.
static int run_command(const char *command, const char *path)
{
	_cleanup_free_ char *line = memory_printf("%s \"$1\"", command);
	int status = 0;

	fflush(stderr);
	const pid_t child = fork();
	if (child == 0) {
		sigset_t none;
		sigemptyset(&none);
		signal(SIGPIPE, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		sigprocmask(SIG_SETMASK, &none, NULL);
		stack_limit_restore();
		if (use_own_descriptors())
			execl("/bin/sh", "sh", "-c", line, "sh", path, NULL);
		_exit(EXIT_STATUS_NOT_FOUND);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return EXIT_STATUS_OK;
	fprintf(stderr, "profiler: --exec: '%s' failed for %s\n", command, path);
	return STATUS_EXEC_FAILED;
}

// With --push a window is soon elsewhere.
static bool says_where(const struct options *options)
{
	return options->push.destination.url ? options->verbose : !options->quiet;
}

// In the child. Its signals stay blocked, so that it finishes what it began.
static int work(const struct window_files *files, const struct window_part *part, const char *path,
                const char *comment)
{
	_cleanup_free_ char *root = memory_printf("/proc/%d/root", files->pid);
	const struct sched_param none = {0};
	const struct symbolize_options names = {.inlines = files->options->inlines};
	struct symbols symbols = {0};

	supervise_close_ends(files->ends);
	prctl(PR_SET_NAME, "profiler-window");
	sched_setscheduler(0, SCHED_OTHER, &none);
	setpriority(PRIO_PROCESS, 0, CHILD_NICE);
	leave_out_others(part);
	local_files_find(files->modules, root); // those that could not be received
	symbolize(part->view, files->modules, &names, &symbols);
	struct error *error = write_part(files, part, &symbols, path, comment);
	if (error)
		fprintf(stderr, "profiler: %s\n", error_message(error));
	if (!error && says_where(files->options))
		fprintf(stderr, "profiler: a window is in %s\n", path);
	const int status = error ? error_status(error) : EXIT_STATUS_OK;
	error_destroy(error);
	if (!status && files->options->exec)
		return run_command(files->options->exec, path);
	return status;
}

void window_back_destroy(struct window_back *back)
{
	if (!back)
		return;
	free(back->ids);
	free(back->samples);
	free(back->figures);
	free(back);
}

static uint64_t count_samples(const struct sample *samples, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += samples[i].count;
	return sum;
}

static void note_lost(struct window_files *files, uint64_t n_samples)
{
	files->n_lost++;
	files->n_lost_samples += n_samples;
}

static void note_failed(struct window_files *files, struct window_file *file)
{
	free(take_pointer(file->path));
	if (file->back)
		*array_push(files->backs, files->n_backs, files->backs_capacity) =
		    take_pointer(file->back);
	else
		note_lost(files, file->samples);
}

// One that could not be written is forgotten.
static void poll_file(struct window_files *files, struct window_file *file, bool wait)
{
	int status = 0;
	pid_t pid;

	do {
		pid = waitpid(file->child, &status, wait ? 0 : WNOHANG);
	} while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return;
	file->child = 0;
	const int code = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_STATUS_OUTPUT;
	files->n_exec_failed += code == STATUS_EXEC_FAILED;
	if (code != EXIT_STATUS_OK && code != STATUS_EXEC_FAILED)
		note_failed(files, file);
	window_back_destroy(take_pointer(file->back));
}

bool window_files_is_behind(const struct window_files *files)
{
	size_t n = 0;

	for (size_t i = 0; i < files->count; i++)
		n += files->items[i].child != 0;
	return n >= MAX_CHILDREN;
}

static pid_t start(const struct window_files *files, const struct window_part *part,
                   const char *path, const char *comment)
{
	fflush(stderr);
	const pid_t child = fork();
	if (child == 0) {
		signal(SIGCHLD, SIG_DFL); // tells of threads that are the parent's (tracee.h)
		_exit(work(files, part, path, comment));
	}
	return child;
}

void window_files_write(struct window_files *files, const struct window_part *part, int64_t time_ns,
                        const char *comment)
{
	struct window_file file = {
	    .path = window_files_path(files->directory ?: "", files->pid, files->n_begun, time_ns,
	                              files->options->writer->default_suffix),
	    .back = part->back,
	    .samples = count_samples(part->view->samples, part->view->n_samples),
	};

	file.child = start(files, part, file.path, comment);
	if (file.child < 0) {
		fprintf(stderr, "profiler: cannot write %s: no process can be started: %s\n",
		        file.path, strerror(errno));
		note_failed(files, &file);
		return;
	}
	files->n_begun++;
	*array_push(files->items, files->count, files->capacity) = file;
}

struct window_back *window_files_take_back(struct window_files *files)
{
	return files->n_backs ? files->backs[--files->n_backs] : NULL;
}

static void remove_oldest(struct window_files *files)
{
	size_t n_finished = 0, kept = 0;

	for (size_t i = 0; i < files->count; i++)
		n_finished += files->items[i].child == 0 && files->items[i].path;
	for (size_t i = 0; i < files->count; i++) {
		struct window_file *file = &files->items[i];
		if (file->child == 0 && file->path && n_finished > files->options->keep) {
			n_finished--;
			unlink(file->path);
			free(take_pointer(file->path));
		}
		if (file->path)
			files->items[kept++] = *file;
	}
	files->count = kept;
}

// Without a limit there is no need to know what is finished.
static void forget_finished(struct window_files *files)
{
	size_t kept = 0;

	for (size_t i = 0; i < files->count; i++) {
		if (files->items[i].child)
			files->items[kept++] = files->items[i];
		else
			free(files->items[i].path);
	}
	files->count = kept;
}

void window_files_poll(struct window_files *files, bool wait)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->items[i].child)
			poll_file(files, &files->items[i], wait);
	if (files->options->keep)
		remove_oldest(files);
	else
		forget_finished(files);
}

struct error *window_files_end(struct window_files *files)
{
	struct window_back *back;

	window_files_poll(files, true);
	while ((back = window_files_take_back(files))) {
		note_lost(files, count_samples(back->samples, back->n_samples));
		window_back_destroy(back);
	}
	if (files->n_lost)
		return error_create(
		    EXIT_STATUS_OUTPUT,
		    "%" PRIu64 " window%s could not be written: %" PRIu64 " samples are lost",
		    files->n_lost, files->n_lost == 1 ? "" : "s", files->n_lost_samples);
	if (files->n_exec_failed)
		return error_create(EXIT_STATUS_OUTPUT,
		                    "--exec failed for %" PRIu64 " of the files, which are there",
		                    files->n_exec_failed);
	return NULL;
}
