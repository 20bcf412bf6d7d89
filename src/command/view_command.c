// SPDX-License-Identifier: MIT
#include "view_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "input_limit.h"
#include "input_file.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "page_server.h"
#include "pprof_folded.h"
#include "recording.h"
#include "report_command.h"
#include "show.h"
#include "text.h"
#include "write_html.h"

static bool begins_with(const struct input_file *file, const char *start)
{
	return file->size >= strlen(start) && memcmp(file->bytes, start, strlen(start)) == 0;
}

static bool is_page(const struct input_file *file)
{
	return begins_with(file, "<!doctype html>");
}

// True if the file is compressed, or begins with a type of samples, a sample or a mapping.
static bool may_be_pprof(const struct input_file *file)
{
	return begins_with(file, "\x1f\x8b") ||
	       (file->size > 0 && memchr("\x0a\x12\x1a", file->bytes[0], 3));
}

// Returns where to put pages: the user's own directory, which is emptied at logout, or /tmp.
static const char *directory(void)
{
	const char *own = getenv("XDG_RUNTIME_DIR");
	struct stat status;

	if (own && own[0] == '/' && stat(own, &status) == 0 && S_ISDIR(status.st_mode) &&
	    status.st_uid == geteuid())
		return own;
	return "/tmp";
}

// Returns a name that nobody can foresee for a page; the caller frees.
static char *make_name(void)
{
	uint64_t number = 0;

	while (getrandom(&number, sizeof(number), 0) != sizeof(number) && errno == EINTR)
		;
	return memory_printf("%s/profiler-%016" PRIx64 ".html", directory(), number);
}

static struct error *write_other(const char *name, const char *title, struct input_file *file,
                                 FILE *stream)
{
	// The beginning alone does not tell a plain pprof profile from folded stacks.
	struct error *error = may_be_pprof(file) ? input_file_read_rest(file) : NULL;

	if (error)
		return error;
	if (pprof_is(file->bytes, file->size))
		return write_html_pprof(name, title, file->bytes, file->size, stream);
	return write_html_folded(name, title, input_file_lines, file, stream);
}

static struct error *write_other_page(const struct options *options, struct input_file *file,
                                      const char *path)
{
	const char *name = input_file_name(file->path), *title = options->title ?: name;
	_cleanup_free_ char *clean = text_clean(name, strlen(name), TEXT_UNLIMITED);
	_cleanup_free_ char *clean_title = text_clean(title, strlen(title), TEXT_UNLIMITED);
	struct output *output;

	struct error *error = output_open(path, true, &output);
	if (error)
		return error;
	error = write_other(clean, clean_title, file, output_stream(output));
	return output_end(output, error);
}

// Writes the page of a recording; takes the file's bytes over.
static struct error *write_recording_page(const struct options *asked, struct input_file *file,
                                          const char *path)
{
	struct options options = *asked;
	struct recording recording;
	struct error *error = input_file_read_rest(file);

	if (!error)
		error = recording_open_bytes(input_file_name(file->path), take_pointer(file->bytes),
		                             file->size, &recording);
	if (error)
		return error;
	options.output = path;
	options.quiet = true;
	options.tells_damage = !asked->quiet;
	return report_recording(&options, &recording);
}

// The file gets its name when it is whole, and this user alone can read it.
static struct error *write_any_page(const struct options *options, struct input_file *file,
                                    char **ret)
{
	if (is_page(file)) {
		*ret = realpath(file->path, NULL) ?: memory_strdup(file->path);
		return NULL;
	}
	const mode_t mask = umask(S_IRWXG | S_IRWXO);
	*ret = make_name();
	struct error *error = recording_is(file->bytes, file->size)
	                          ? write_recording_page(options, file, *ret)
	                          : write_other_page(options, file, *ret);
	umask(mask);
	return error;
}

// The page of the file: *ret is its name, owned by the caller. *ret_is_made: it is a new file.
static struct error *make_page(const struct options *options, char **ret, bool *ret_is_made)
{
	struct input_file file;
	input_limit_begin(input_file_name(options->recording));
	struct error *error = input_file_open(options->recording, &file);
	if (error)
		return error;
	*ret_is_made = !is_page(&file);
	error = write_any_page(options, &file, ret);
	input_file_close(&file);
	input_limit_end(); // a browser needs more
	return error;
}

// Names with colons between them: $BROWSER's, or xdg-open; NULL where nobody would see it. The
// caller frees.
static char *find_browsers(void)
{
	const char *own = getenv("BROWSER");

	if (getenv("SSH_CONNECTION") || getenv("SSH_TTY"))
		return NULL;
	if (own && own[0])
		return memory_strdup(own);
	return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY") ? memory_strdup("xdg-open") : NULL;
}

// Starts it as a program of its own, which outlives the profiler. False: there is none.
static bool start_browser(char *program, const char *path)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	pid_t pid;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
	                                          POSIX_SPAWN_SETSIGDEF);
	char *const argv[] = {program, (char *)path, NULL};
	const int failure = posix_spawnp(&pid, program, &files, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return failure == 0;
}

static bool open_browser(const char *path)
{
	_cleanup_free_ char *browsers = find_browsers();
	char *rest = browsers;

	for (char *program; (program = strsep(&rest, ":"));)
		if (program[0] && start_browser(program, path))
			return true;
	return false;
}

static struct error *view_file(const struct options *options)
{
	_cleanup_free_ char *path = NULL;
	bool is_made;
	struct error *error = make_page(options, &path, &is_made);

	if (!error)
		error = show_line(path);
	if (error)
		return error;
	if (!open_browser(path) && !options->quiet)
		fputs("profiler: no browser here: open that file in one, or add --serve=8080 to "
		      "see it over ssh\n",
		      stderr);
	return NULL;
}

static void say_how_to_see(const struct page_server *server)
{
	char host[HOST_NAME_MAX + 1] = "HOST";

	gethostname(host, sizeof(host) - 1);
	fprintf(stderr,
	        "profiler: shown until Ctrl-C; to open it on another machine, first run there: "
	        "ssh -L %d:127.0.0.1:%d %s\n",
	        server->port, server->port, host);
}

static struct error *serve_page(const struct options *options, const struct page_server *server)
{
	_cleanup_free_ char *path = NULL, *address = NULL;
	bool is_made;
	struct error *error = make_page(options, &path, &is_made);
	if (error)
		return error;
	_cleanup_close_ int page_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (page_fd < 0)
		error =
		    error_create(EXIT_STATUS_OUTPUT, "cannot read %s: %s", path, strerror(errno));
	if (is_made)
		unlink(path); // nobody else needs it
	address = memory_printf("http://127.0.0.1:%d%s", server->port, server->path);
	if (!error)
		error = show_line(address);
	if (error)
		return error;
	// No browser is started: everybody can read a program's arguments.
	if (!options->quiet)
		say_how_to_see(server);
	page_server_run(server, page_fd);
	return NULL;
}

struct error *view_command(const struct options *options)
{
	struct page_server server;

	if (!options->serves)
		return view_file(options);
	struct error *error = page_server_open(options->serve_port, &server);
	if (error)
		return error;
	error = serve_page(options, &server);
	close(server.fd);
	return error;
}
