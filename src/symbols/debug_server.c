// SPDX-License-Identifier: MIT
#include "debug_server.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "error.h"
#include "memory.h"
#include "text.h"

#define LIBRARY "libdebuginfod.so.1"
#define URLS "DEBUGINFOD_URLS"

#define TOTAL_NS (60 * NS_PER_SECOND)
#define SHOW_EVERY_NS (NS_PER_SECOND / 4)

enum { MAX_SHOWN_NAME_BYTES = 40 };

// As <elfutils/debuginfod.h> declares them.
typedef struct debuginfod_client *begin_fn(void);
typedef void end_fn(struct debuginfod_client *client);
typedef int find_fn(struct debuginfod_client *client, const unsigned char *build_id, int size,
                    char **path);
typedef int progress_fn(struct debuginfod_client *client, long done, long total);
typedef void set_progress_fn(struct debuginfod_client *client, progress_fn *progress);
typedef void set_data_fn(struct debuginfod_client *client, void *data);
typedef void *get_data_fn(struct debuginfod_client *client);

// True after one more signal to end: the profile is then written without these files.
static bool is_interrupted(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM));
}

static void show(struct debug_server *server, long done, long total, int64_t now_ns)
{
	_cleanup_free_ char *name =
	    text_clean(server->name, strlen(server->name), MAX_SHOWN_NAME_BYTES);

	if (!server->shows_progress || now_ns - server->shown_ns < SHOW_EVERY_NS)
		return;
	server->shown_ns = now_ns;
	fprintf(stderr, "\rprofiler: asks servers for the debug file of %s", name);
	if (total > 0)
		fprintf(stderr, ": %.1f of %.1f MB", (double)done / 1e6, (double)total / 1e6);
	fputs("\x1b[K", stderr);
}

// The library calls this several times a second; any result but 0 ends the transfer.
static int on_progress(struct debuginfod_client *client, long done, long total)
{
	get_data_fn *get_data = (get_data_fn *)dlsym(RTLD_DEFAULT, "debuginfod_get_user_data");
	struct debug_server *server = get_data(client);
	const int64_t now_ns = clock_now_ns();

	show(server, done, total, now_ns);
	if (now_ns - server->start_ns > server->left_ns || is_interrupted())
		server->timed_out = true;
	return server->timed_out;
}

static void *begin(struct debug_server *server)
{
	begin_fn *create = (begin_fn *)dlsym(server->library, "debuginfod_begin");
	set_progress_fn *set_progress =
	    (set_progress_fn *)dlsym(server->library, "debuginfod_set_progressfn");
	set_data_fn *set_data = (set_data_fn *)dlsym(server->library, "debuginfod_set_user_data");

	if (!create || !set_progress || !set_data ||
	    !dlsym(server->library, "debuginfod_get_user_data") ||
	    !dlsym(server->library, "debuginfod_find_debuginfo"))
		return NULL;
	server->client = create();
	if (server->client) {
		set_data(server->client, server);
		set_progress(server->client, on_progress);
	}
	return server->client;
}

// Loads the library. `urls` as in DEBUGINFOD_URLS; NULL or empty is an error.
static struct error *init(struct debug_server *server, const char *urls, bool shows_progress)
{
	*server = (struct debug_server){.shows_progress = shows_progress, .left_ns = TOTAL_NS};
	if (!urls || !urls[strspn(urls, " ")])
		return error_create(EXIT_STATUS_USAGE,
		                    "--debuginfod needs a server: set " URLS " to their addresses");
	// Global, for on_progress.
	server->library = dlopen(LIBRARY, RTLD_LAZY | RTLD_GLOBAL);
	if (!server->library)
		return error_create(EXIT_STATUS_USAGE,
		                    "--debuginfod: " LIBRARY " of elfutils is not installed");
	if (!begin(server))
		return error_create(EXIT_STATUS_USAGE, "--debuginfod: " LIBRARY " is too old");
	server->urls = memory_strdup(urls);
	return NULL;
}

struct error *debug_sources_init(struct debug_sources *sources, const char *const *directories,
                                 bool asks_servers, bool shows_progress)
{
	*sources = (struct debug_sources){.directories = directories};
	if (!asks_servers)
		return NULL;
	sources->server = &sources->own_server;
	return init(sources->server, getenv("DEBUGINFOD_URLS"), shows_progress);
}

static void deinit(struct debug_server *server)
{
	if (server->client)
		((end_fn *)dlsym(server->library, "debuginfod_end"))(server->client);
	// The library stays loaded: what it is built on does not expect to be unloaded.
	free(server->urls);
	*server = (struct debug_server){0};
}

void debug_sources_deinit(struct debug_sources *sources)
{
	if (sources->server)
		deinit(sources->server);
	*sources = (struct debug_sources){0};
}

int debug_server_fetch(struct debug_server *server, const void *build_id, size_t build_id_size,
                       const char *name)
{
	find_fn *find = (find_fn *)dlsym(server->library, "debuginfod_find_debuginfo");

	if (server->timed_out || build_id_size == 0) {
		server->n_not_fetched++;
		return -1;
	}
	server->name = name;
	server->start_ns = clock_now_ns();
	// Only now: libdw would ask the servers by itself, and wait for them.
	setenv(URLS, server->urls, 1);
	const int fd = find(server->client, build_id, (int)build_id_size, NULL);
	unsetenv(URLS);
	if (server->shown_ns)
		fputs("\r\x1b[K", stderr);
	server->shown_ns = 0;
	server->left_ns -= clock_now_ns() - server->start_ns;
	server->n_fetched += fd >= 0;
	server->n_not_fetched += fd < 0;
	return fd;
}
