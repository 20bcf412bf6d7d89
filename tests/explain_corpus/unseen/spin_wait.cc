/* expect: hot wait_until_ready
 * A consumer spins until the next frame is there, instead of waiting for it. */
#include <atomic>
#include "../corpus.h"

static std::atomic<unsigned> ready{0}, taken{0};

NOINLINE static void wait_until_ready(unsigned frame)
{
	while (ready.load() < frame)
		;
}

NOINLINE static void show(unsigned frame)
{
	for (volatile int i = 0; i < 100000; i = i + 1)
		;
	taken = frame;
}

static void *consume(void *arg)
{
	for (unsigned frame = 1;; frame++) {
		wait_until_ready(frame);
		show(frame);
	}
	return arg;
}

static void *produce(void *arg)
{
	for (;;) {
		nap_ms(40);
		ready++;
	}
	return arg;
}

static std::atomic<int> next_thread{0};

static void *start(void *arg)
{
	return next_thread++ == 0 ? consume(arg) : produce(arg);
}

int main()
{
	run_threads(2, start);
}
