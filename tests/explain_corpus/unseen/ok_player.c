/* expect: none
 * A player: thirty times a second it decodes and mixes a frame, and waits for the next one's time.
 */
#include "../corpus.h"

#define STEP(name, n)                                                                              \
	NOINLINE static void name(void)                                                            \
	{                                                                                          \
		for (volatile int i = 0; i < (n); i++)                                             \
			;                                                                          \
	}
STEP(decode_video, 600000)
STEP(decode_sound, 500000)
STEP(scale, 600000)
STEP(mix, 500000)

NOINLINE static void wait_for_frame(struct timespec *at)
{
	at->tv_nsec += 33333333;
	if (at->tv_nsec >= 1000000000) {
		at->tv_nsec -= 1000000000;
		at->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, at, NULL);
}

static void *play(void *arg)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	for (;;) {
		decode_video();
		decode_sound();
		scale();
		mix();
		wait_for_frame(&at);
	}
	return arg;
}

int main(void)
{
	run_threads(1, play);
}
