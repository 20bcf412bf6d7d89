/* expect: none
 * A daemon that measures something ten times a second, and sleeps in between. */
#include "corpus.h"

static double sum;

NOINLINE static void measure(void)
{
	FILE *load = fopen("/proc/loadavg", "re");
	double now = 0;
	if (load && fscanf(load, "%lf", &now) == 1)
		sum += now;
	if (load)
		fclose(load);
}

static void *loop(void *arg)
{
	for (;;) {
		measure();
		nap_ms(100);
	}
	return arg;
}

int main(void)
{
	run_threads(1, loop);
}
