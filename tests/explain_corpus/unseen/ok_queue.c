/* expect: none
 * A producer and two consumers with a queue between them; what comes is used at once. */
#include "../corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int n_queued, n_threads;

NOINLINE static void produce(void)
{
	nap_ms(8);
	pthread_mutex_lock(&lock);
	n_queued++;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&lock);
}

NOINLINE static void consume(void)
{
	pthread_mutex_lock(&lock);
	while (n_queued == 0)
		pthread_cond_wait(&filled, &lock);
	n_queued--;
	pthread_mutex_unlock(&lock);
	for (volatile int i = 0; i < 200000; i++)
		;
}

static void *start(void *arg)
{
	const int number = __atomic_fetch_add(&n_threads, 1, __ATOMIC_SEQ_CST);
	for (;;)
		number == 0 ? produce() : consume();
	return arg;
}

int main(void)
{
	run_threads(3, start);
}
