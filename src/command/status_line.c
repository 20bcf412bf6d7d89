// SPDX-License-Identifier: MIT
#include "status_line.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "run_stats.h"
#include "summary.h"
#include "text.h"

static const int64_t STATUS_EVERY_NS = NS_PER_SECOND / 4;

static double seconds(int64_t ns)
{
	return (double)ns / (double)NS_PER_SECOND;
}

// A terminal that takes nothing, as after Ctrl-S or where the connection to it hangs, would keep
// the sampler waiting while it holds a thread, and for ever. Its flags are others' too: it is
// opened anew.
void status_line_begin(struct status_line *status)
{
	const int fd = isatty(STDERR_FILENO)
	                   ? open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
	                   : -1;

	*status = (struct status_line){.fd = fd > 0 ? fd : 0};
}

void status_line_update(struct status_line *status, const struct run_stats *stats)
{
	char of[32] = "";

	if (!status->fd || stats->last_ns - status->shown_ns < STATUS_EVERY_NS)
		return;
	status->shown_ns = stats->last_ns;
	if (stats->duration_ns)
		snprintf(of, sizeof(of), " of %.1f", seconds(stats->duration_ns));
	dprintf(status->fd,
	        "\rprofiler: %.1f%s s, %ju sample%s, %zu thread%s, paused %.2f %%\x1b[K",
	        seconds(stats->last_ns - stats->start_ns), of, (uintmax_t)stats->samples,
	        text_plural(stats->samples), stats->threads, text_plural(stats->threads),
	        summary_held_percent(stats));
}

void status_line_end(struct status_line *status)
{
	if (!status->fd)
		return;
	if (status->shown_ns)
		dprintf(status->fd, "\r\x1b[K");
	close(status->fd);
	status->fd = 0;
}
