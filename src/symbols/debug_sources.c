// SPDX-License-Identifier: MIT
#include "debug_sources.h"

#include <stdlib.h>

struct error *debug_sources_init(struct debug_sources *sources, const char *const *directories,
                                 bool asks_servers, bool shows_progress)
{
	*sources = (struct debug_sources){.directories = directories};
	if (!asks_servers)
		return NULL;
	sources->server = &sources->own_server;
	return debug_server_init(sources->server, getenv("DEBUGINFOD_URLS"), shows_progress);
}

void debug_sources_deinit(struct debug_sources *sources)
{
	if (sources->server)
		debug_server_deinit(sources->server);
	*sources = (struct debug_sources){0};
}
