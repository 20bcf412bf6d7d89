/* expect: cpu render
 * Eight threads compute, and the process is bound to one CPU. */
#define _GNU_SOURCE
#include <sched.h>
#include "corpus.h"

NOINLINE static double render(double x)
{
	for (int i = 0; i < 100000; i++)
		x = x * 1.0000001 + 0.5;
	return x;
}

static void *worker(void *arg)
{
	for (volatile double x = 0;; x = render(x))
		;
	return arg;
}

int main(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof one, &one);
	run_threads(8, worker);
}
