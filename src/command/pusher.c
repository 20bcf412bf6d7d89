// SPDX-License-Identifier: MIT
#include "pusher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "hash.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "process_labels.h"
#include "push_counts.h"
#include "supervise.h"
#include "uploader.h"
#include "writing.h"

#define RESTART_NS (5 * NS_PER_SECOND)
#define GRACE_NS (2 * NS_PER_SECOND) // beyond what the uploader takes by itself

enum { UPLOADER_NICE = 10 };

// systemd gives a service its directory; else the XDG base directories.
static char *find_state_directory(void)
{
	const char *of_service = getenv("STATE_DIRECTORY");
	const char *of_user = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");

	if (of_service && of_service[0] == '/')
		return memory_strndup(of_service, strcspn(of_service, ":"));
	if (of_user && of_user[0] == '/')
		return memory_printf("%s/profiler", of_user);
	return home && home[0] == '/' ? memory_printf("%s/.local/state/profiler", home) : NULL;
}

static bool make_directories(const char *path)
{
	_cleanup_free_ char *part = memory_strdup(path);

	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0700) != 0 && errno != EEXIST)
			return false;
		*slash = '/';
	}
	return mkdir(part, 0700) == 0 || errno == EEXIST;
}

struct error *pusher_find_spool(const struct options *options, char **ret)
{
	const char *url = options->push.destination.url;
	_cleanup_free_ char *state = find_state_directory();

	if (!state)
		return error_create(EXIT_STATUS_USAGE,
		                    "--push: HOME is not set: name a directory for profiles that "
		                    "are not sent yet (-o DIR)");
	_cleanup_free_ char *path =
	    memory_printf("%s/spool/%016" PRIx64, state, hash_bytes(url, strlen(url)));
	if (!make_directories(path))
		return error_create(EXIT_STATUS_OUTPUT, "cannot make the directory %s: %s", path,
		                    strerror(errno));
	*ret = take_pointer(path);
	return NULL;
}

// What lies there is sent, with the user's credentials, and removed.
static struct error *check_spool(const char *path)
{
	struct stat status;
	struct error *error = output_check_directory(path);

	if (error)
		return error;
	if (stat(path, &status) == 0 && status.st_uid == geteuid() &&
	    !(status.st_mode & (S_IWGRP | S_IWOTH)))
		return NULL;
	return error_create(EXIT_STATUS_USAGE,
	                    "--push sends all files in %s, but other users may write there: chmod "
	                    "700 it, or choose another directory",
	                    path);
}

// In the child.
static void upload(const struct pusher *pusher)
{
	const struct options *options = pusher->options;
	const struct push_options *push = &options->push;
	const char *const paths[] = {options->output, NULL};
	const char *keys[PUSH_MAX_KEYS + 1];

	struct error *error = uploader_run(&(struct uploader){
	    .wishes = push_options_wishes(push, keys),
	    .paths = paths,
	    .header_file = push->header_file,
	    .ca_file = push->ca_file,
	    .spool_bytes = push->spool_bytes ? push->spool_bytes : PUSH_SPOOL_BYTES,
	    .follows = true,
	    .removes = true,
	    .quiet = options->quiet,
	    .counts = pusher->counts,
	});
	_exit(error ? error_status(error) : EXIT_STATUS_OK);
}

// Ends soon after its parent does, however that ends; not by the terminal's Ctrl-C.
static void become_uploader(const struct pusher *pusher, pid_t parent)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_STATUS_OUTPUT);
	setpriority(PRIO_PROCESS, 0, UPLOADER_NICE);
	if (null >= 0) { // whoever reads from the profiler is not to wait for this one
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	if (pusher->options->ready_fd >= 0)
		close(pusher->options->ready_fd);
	if (pusher->options->agent.lock_fd > 0)
		close(pusher->options->agent.lock_fd);
	if (pusher->ends)
		supervise_close_ends(pusher->ends);
	upload(pusher);
}

static void start(struct pusher *pusher)
{
	const pid_t parent = getpid();
	const pid_t child = fork();

	if (child == 0)
		become_uploader(pusher, parent);
	pusher->uploader = child > 0 ? child : 0;
	pusher->started_ns = clock_now_ns();
}

struct error *pusher_start(struct pusher *pusher, const struct options *options,
                           const struct supervise_ends *ends)
{
	struct error *error = check_spool(options->output);

	if (error)
		return error;
	void *shared = mmap(NULL, sizeof(*pusher->counts), PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return error_create(EXIT_STATUS_OUTPUT, "--push: no memory: %s", strerror(errno));
	*pusher = (struct pusher){.options = options, .ends = ends, .counts = shared};
	start(pusher);
	if (!pusher->uploader)
		return error_create(EXIT_STATUS_OUTPUT, "--push: no process can be started: %s",
		                    strerror(errno));
	return NULL;
}

// Has the uploader ended? Collects it.
static bool has_ended(struct pusher *pusher)
{
	if (pusher->uploader && waitpid(pusher->uploader, NULL, WNOHANG) != 0)
		pusher->uploader = 0;
	return !pusher->uploader;
}

void pusher_poll(struct pusher *pusher)
{
	if (pusher->options && clock_now_ns() - pusher->started_ns >= RESTART_NS &&
	    has_ended(pusher))
		start(pusher);
}

void pusher_end(struct pusher *pusher)
{
	if (!pusher->options)
		return;
	const int64_t begun_ns = clock_now_ns();
	const int64_t until_ns = begun_ns + UPLOADER_FLUSH_S * NS_PER_SECOND + GRACE_NS;
	if (has_ended(pusher)) // it was killed: once more, for the last windows
		start(pusher);
	pusher->counts->ending_ns = begun_ns;
	if (pusher->uploader)
		kill(pusher->uploader, SIGTERM);
	while (!has_ended(pusher))
		if (writing_pause() || clock_now_ns() > until_ns) {
			kill(pusher->uploader, SIGKILL);
			waitpid(pusher->uploader, NULL, 0);
			pusher->uploader = 0;
		}
}

void pusher_deinit(struct pusher *pusher)
{
	for (char **label = pusher->labels; label && *label; label++)
		free(*label);
	free(pusher->labels);
	if (pusher->counts)
		munmap(pusher->counts, sizeof(*pusher->counts));
	*pusher = (struct pusher){0};
}

void pusher_name_target(struct pusher *pusher, int pid, const char *command)
{
	struct push_labels labels = {0};

	if (!pusher->options)
		return;
	if (command) // it is not there yet
		process_labels_of_command(command, &labels);
	else if (!process_labels_read(pid, &labels))
		fprintf(stderr,
		        "profiler: cannot read the environment of process %d: its service_name may "
		        "be wrong\n",
		        pid);
	process_labels_add(&labels, &pusher->options->push.labels);
	pusher->labels = process_labels_comments(&labels);
	push_labels_deinit(&labels);
}
