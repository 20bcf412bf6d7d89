// SPDX-License-Identifier: MIT
#include "writing.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "listening.h"
#include "memory.h"

enum { PAUSE_MS = 20, STALL_NS = 1000000000 };

static bool user_wants_to_end(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGQUIT};
	struct sigaction action;
	sigset_t pending;

	if (sigpending(&pending) != 0)
		return false;
	for (size_t i = 0; i < array_size(numbers); i++)
		// Even if it is ignored, as SIGINT is in the background of a script.
		if (sigismember(&pending, numbers[i]) == 1)
			return true;
	// A blocked signal is pending even if it is ignored, as this one is under nohup(1).
	return sigismember(&pending, SIGHUP) == 1 && sigaction(SIGHUP, NULL, &action) == 0 &&
	       action.sa_handler != SIG_IGN;
}

bool writing_pause(void)
{
	listening_poll(NULL, 0, PAUSE_MS);
	return user_wants_to_end();
}

// Waits until something can be written. False: the user wants to end.
static bool await_room(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLOUT};
	const int64_t begin_ns = clock_now_ns();

	// In time: signals that serve the target's stops cut the pauses short.
	for (;;) {
		const int ready = listening_poll(&pollfd, 1, PAUSE_MS);
		if (ready > 0 || (ready < 0 && errno != EINTR))
			return true;
		if (clock_now_ns() - begin_ns > STALL_NS && user_wants_to_end())
			return false;
	}
}

static bool may_wait(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && !S_ISREG(status.st_mode);
}

const char *writing_failure(int number)
{
	return number == EINTR ? "nobody read from it before the profiler had to stop"
	                       : strerror(number);
}

int writing_write(int fd, const void *bytes, size_t size)
{
	const bool waits = may_wait(fd);

	for (size_t done = 0; done < size;) {
		// A pipe that has any room takes PIPE_BUF bytes without waiting for its reader.
		const size_t part = waits && size - done > PIPE_BUF ? PIPE_BUF : size - done;
		if (waits && !await_room(fd))
			return EINTR;
		const ssize_t n = write(fd, (const char *)bytes + done, part);
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return errno;
	}
	return 0;
}
