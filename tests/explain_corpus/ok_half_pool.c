/* expect: none
 * Two workers with work for half of the time; a job is read, checked, compressed and stored. */
#include "corpus.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int jobs;

#define STEP(name, operation)                                                                      \
	NOINLINE static unsigned name(unsigned x)                                                  \
	{                                                                                          \
		for (int i = 0; i < 150000; i++)                                                   \
			x = (x operation) ^ (x >> 5);                                              \
		return x;                                                                          \
	}

STEP(parse, *3 + 1)
STEP(validate, *5 + 3)
STEP(transform, *7 + 5)
STEP(compress, *9 + 7)
STEP(encode, *11 + 9)
STEP(store, *13 + 11)

NOINLINE static void take_job(void)
{
	pthread_mutex_lock(&mutex);
	while (!jobs)
		pthread_cond_wait(&more, &mutex);
	jobs--;
	pthread_mutex_unlock(&mutex);
}

static void *work(void *arg)
{
	for (volatile unsigned x = 1;;) {
		take_job();
		x = store(encode(compress(transform(validate(parse(x))))));
	}
	return arg;
}

static void *produce(void *arg)
{
	for (;;) {
		nap_ms(4);
		pthread_mutex_lock(&mutex);
		jobs += jobs < 4;
		pthread_cond_signal(&more);
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

int main(void)
{
	pthread_t id;
	pthread_create(&id, NULL, produce, NULL);
	run_threads(2, work);
}
