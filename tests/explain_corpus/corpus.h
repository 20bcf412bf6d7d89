/* What the C and C++ programs of the corpus share: they say that they are ready, and end by
 * themselves. */
#pragma once
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static inline void nap_ms(long ms)
{
	const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&time, NULL);
}

/* Starts `count` threads, says "ready" and waits for them. */
static inline void run_threads(int count, void *(*thread)(void *))
{
	pthread_t id[64];
	alarm(90);
	for (int i = 0; i < count; i++)
		pthread_create(&id[i], NULL, thread, NULL);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < count; i++)
		pthread_join(id[i], NULL);
}
