/* expect: none
 * Eight workers wait for jobs; there are few, and each is done at once. */
#include "corpus.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int jobs;

NOINLINE static void take_job(void)
{
	pthread_mutex_lock(&mutex);
	while (!jobs)
		pthread_cond_wait(&more, &mutex);
	jobs--;
	pthread_mutex_unlock(&mutex);
}

NOINLINE static void do_job(void)
{
	for (volatile int i = 0; i < 300000; i++)
		;
}

static void *worker(void *arg)
{
	for (;;) {
		take_job();
		do_job();
	}
	return arg;
}

static void *accept_jobs(void *arg)
{
	for (;;) {
		nap_ms(25);
		pthread_mutex_lock(&mutex);
		jobs++;
		pthread_cond_signal(&more);
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

int main(void)
{
	pthread_t id;
	pthread_create(&id, NULL, accept_jobs, NULL);
	run_threads(8, worker);
}
