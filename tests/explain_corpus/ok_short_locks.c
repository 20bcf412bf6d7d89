/* expect: none
 * Four threads answer requests, and share a counter under a mutex for nanoseconds. */
#include <poll.h>
#include <sys/timerfd.h>
#include "corpus.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long requests;

NOINLINE static void handle(void)
{
	for (volatile int i = 0; i < 100000; i++)
		;
	pthread_mutex_lock(&mutex);
	requests++;
	pthread_mutex_unlock(&mutex);
}

static void *serve(void *arg)
{
	struct itimerspec often = {{0, 7000000}, {0, 1000000}};
	struct pollfd source = {.fd = timerfd_create(CLOCK_MONOTONIC, 0), .events = POLLIN};
	unsigned long times;
	timerfd_settime(source.fd, 0, &often, NULL);
	for (;;)
		if (poll(&source, 1, -1) == 1 &&
		    read(source.fd, &times, sizeof times) == sizeof times)
			handle();
	return arg;
}

int main(void)
{
	run_threads(4, serve);
}
