// SPDX-License-Identifier: MIT
#include "agent_command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "agent_list.h"
#include "agent_metrics.h"
#include "clock.h"
#include "error.h"
#include "memory.h"
#include "options.h"
#include "pusher.h"
#include "show.h"
#include "writer.h"

#define LOCK_LOOK_NS (100 * NS_PER_MS)

enum { MAX_LOCK_LOOKS = 20 };

void agent_command_prepare(struct options *options)
{
	options->duration_ns = options->agent.window_ns;
	options->every_ns = 2 * options->agent.window_ns; // one window: the whole
	options->writer = &writer_pprof;
	options->quiet = true;
	options->metrics = NULL;                        // the agent's
	destination_deinit(&options->push.destination); // the agent's uploader has it
}

static struct error *list(const struct options *options)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return error_create(EXIT_STATUS_OUTPUT, "no memory for the list");
	struct error *error = agent_list(options, stream);
	fclose(stream);
	if (!error && show_text(text) != EXIT_STATUS_OK)
		error = error_create(EXIT_STATUS_OUTPUT, "the list cannot be written");
	free(text);
	return error;
}

static struct error *find_directory(struct options *options, char **ret)
{
	if (!options->output) {
		struct error *error = pusher_find_spool(options, ret);
		if (error)
			return error;
		options->output = *ret;
	}
	if (mkdir(options->output, 0700) == 0 || errno == EEXIST)
		return NULL;
	return error_create(EXIT_STATUS_OUTPUT, "cannot make the directory %s: %s", options->output,
	                    strerror(errno));
}

// Two agents would give windows of one process the same name, and one would replace the other's.
// The lock ends with the agent, as its children give it up; how long that takes one that was killed
// is waited for.
static struct error *lock_directory(struct options *options)
{
	const char *path = options->output;
	const struct timespec moment = clock_timespec(LOCK_LOOK_NS);
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = -1;

	if (fd < 0 || access(path, W_OK | X_OK) != 0) {
		struct error *error =
		    error_create(EXIT_STATUS_OUTPUT, "cannot write to the directory %s: %m", path);
		close(fd);
		return error;
	}
	options->agent.lock_fd = fd;
	for (int i = 0; i < MAX_LOCK_LOOKS && result != 0; i++) {
		if (i > 0)
			nanosleep(&moment, NULL);
		result = flock(fd, LOCK_EX | LOCK_NB);
		if (result != 0 && errno != EWOULDBLOCK)
			return NULL; // this file system has no locks
	}
	if (result == 0)
		return NULL;
	return error_create(
	    EXIT_STATUS_OUTPUT,
	    "agent: another agent uses the directory %s: give each its own (-o DIR)", path);
}

static struct error *share_sums(struct options *options)
{
	void *shared = mmap(NULL, sizeof(*options->agent.sums), PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return error_create(EXIT_STATUS_OUTPUT, "agent: no memory: %s", strerror(errno));
	options->agent.sums = shared;
	return NULL;
}

struct error *agent_command(struct options *options, int (*sample)(void *context), void *context)
{
	_cleanup_free_ char *spool = NULL;
	struct pusher pusher = {0};

	if (options->agent.list)
		return list(options);
	struct error *error = find_directory(options, &spool);
	if (!error)
		error = lock_directory(options);
	if (!error)
		error = share_sums(options);
	if (!error && options->push.destination.url)
		error = pusher_start(&pusher, options);
	if (error)
		return error;
	agent_run(options, &(struct agent_sampler){.sample = sample, .context = context}, &pusher);
	pusher_deinit(&pusher);
	return NULL;
}
