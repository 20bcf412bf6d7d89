/* expect: sleep wait_for_result
 * A request is handed to a worker, and its result is looked for every ten milliseconds. */
#include <atomic>
#include "../corpus.h"

static std::atomic<int> request{0}, result{0}, next_thread{0};

NOINLINE static void wait_for_result(int number)
{
	while (result < number)
		nap_ms(10);
}

NOINLINE static void render_page()
{
	for (volatile int i = 0; i < 3000000; i = i + 1)
		;
}

static void *serve(void *arg)
{
	for (int number = 1;; number++) {
		render_page();
		request = number;
		wait_for_result(number);
	}
	return arg;
}

static void *work(void *arg)
{
	for (;;) {
		if (result < request) {
			for (volatile int i = 0; i < 300000; i = i + 1)
				;
			result = request.load();
		}
		usleep(200);
	}
	return arg;
}

static void *start(void *arg)
{
	return next_thread++ == 0 ? serve(arg) : work(arg);
}

int main()
{
	run_threads(2, start);
}
