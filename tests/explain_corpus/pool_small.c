/* expect: lock|pool checkout
 * Ten request threads share two connections and wait on a condition until one is free. */
#include "corpus.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static int free_connections = 2;

NOINLINE static void checkout(void)
{
	pthread_mutex_lock(&mutex);
	while (free_connections == 0)
		pthread_cond_wait(&freed, &mutex);
	free_connections--;
	pthread_mutex_unlock(&mutex);
}

NOINLINE static void give_back(void)
{
	pthread_mutex_lock(&mutex);
	free_connections++;
	pthread_cond_signal(&freed);
	pthread_mutex_unlock(&mutex);
}

NOINLINE static unsigned query(unsigned x)
{
	nap_ms(20);
	return x * 3 + 1;
}

static void *request(void *arg)
{
	for (volatile unsigned x = 1;;) {
		checkout();
		x = query(x);
		give_back();
	}
	return arg;
}

int main(void)
{
	run_threads(10, request);
}
