/* expect: none
 * Two threads look things up in a table behind a shared lock; each lookup is followed by work in four
 * steps. */
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include "../corpus.h"

static std::shared_mutex guard;
static std::unordered_map<int, int> table;

NOINLINE static int look_up(int key)
{
	std::shared_lock<std::shared_mutex> held(guard);
	return table.at(key % 1000);
}

#define STEP(name, n)                                                                              \
	NOINLINE static int name(int value)                                                        \
	{                                                                                          \
		for (volatile int i = 0; i < n; i = i + 1)                                         \
			value = value * 33 + i;                                                    \
		return value;                                                                      \
	}
STEP(decode, 60000)
STEP(rate, 70000)
STEP(limit, 50000)
STEP(encode, 60000)

static void *work(void *arg)
{
	for (int key = 0;; key = (key + 7) % 1000) {
		encode(limit(rate(decode(look_up(key)))));
		nap_ms(3);
	}
	return arg;
}

int main()
{
	for (int i = 0; i < 1000; i++)
		table[i] = i * 3;
	run_threads(2, work);
}
