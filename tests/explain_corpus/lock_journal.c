/* expect: lock transfer flush_journal
 * Six workers change accounts; now and then a thread holds the mutex while it writes the journal
 * slowly. */
#include "corpus.h"

static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER;
static long balance[100];

NOINLINE static void flush_journal(void)
{
	pthread_mutex_lock(&accounts);
	nap_ms(60);
	pthread_mutex_unlock(&accounts);
}

NOINLINE static void transfer(unsigned *seed)
{
	pthread_mutex_lock(&accounts);
	balance[rand_r(seed) % 100]++;
	pthread_mutex_unlock(&accounts);
}

static void *worker(void *arg)
{
	unsigned seed = (unsigned)(size_t)&arg;
	for (;;) {
		transfer(&seed);
		nap_ms(1);
	}
	return NULL;
}

static void *journal(void *arg)
{
	for (;;) {
		flush_journal();
		nap_ms(10);
	}
	return arg;
}

int main(void)
{
	pthread_t id;
	pthread_create(&id, NULL, journal, NULL);
	run_threads(6, worker);
}
