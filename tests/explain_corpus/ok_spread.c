/* expect: none
 * A computation whose work is spread over eight functions evenly. */
#include "corpus.h"

#define STEP(name, operation)                                                                      \
	NOINLINE static unsigned name(unsigned x)                                                  \
	{                                                                                          \
		for (int i = 0; i < 100000; i++)                                                   \
			x = (x operation) ^ (x >> 5);                                              \
		return x;                                                                          \
	}

STEP(load, *3 + 1)
STEP(clean, *5 + 3)
STEP(join, *7 + 5)
STEP(sort, *9 + 7)
STEP(group, *11 + 9)
STEP(count, *13 + 11)
STEP(format, *17 + 13)
STEP(store, *19 + 15)

static void *work(void *arg)
{
	for (volatile unsigned x = 1;;)
		x = store(format(count(group(sort(join(clean(load(x))))))));
	return arg;
}

int main(void)
{
	run_threads(1, work);
}
