/* expect: none
 * A supervisor has started its service, and waits for it to end, to start it again. */
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "../corpus.h"

NOINLINE static void serve(void)
{
	for (;;) {
		poll(NULL, 0, 100);
		for (volatile int i = 0; i < 100000; i++)
			;
	}
}

NOINLINE static void supervise(void)
{
	for (;;) {
		const pid_t pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, 9);
			serve();
		}
		waitpid(pid, NULL, 0);
	}
}

int main(void)
{
	alarm(90);
	puts("ready");
	fflush(stdout);
	supervise();
}
