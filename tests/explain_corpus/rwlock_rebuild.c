/* expect: lock lookup rebuild_index
 * Readers wait for a writer, which computes a new index under the lock. */
#include "corpus.h"

static pthread_rwlock_t index_lock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned table[4096];

NOINLINE static void rebuild_index(void)
{
	pthread_rwlock_wrlock(&index_lock);
	for (int round = 0; round < 20000; round++)
		for (unsigned i = 0; i < 4096; i++)
			table[i] = table[i] * 31 + (unsigned)round;
	pthread_rwlock_unlock(&index_lock);
}

NOINLINE static unsigned lookup(unsigned key)
{
	pthread_rwlock_rdlock(&index_lock);
	unsigned found = table[key % 4096];
	pthread_rwlock_unlock(&index_lock);
	return found;
}

static void *reader(void *arg)
{
	for (unsigned key = 0;; key += lookup(key) | 1)
		nap_ms(1);
	return arg;
}

static void *writer(void *arg)
{
	for (;;) {
		rebuild_index();
		nap_ms(4);
	}
	return arg;
}

int main(void)
{
	pthread_t id;
	pthread_create(&id, NULL, writer, NULL);
	run_threads(5, reader);
}
