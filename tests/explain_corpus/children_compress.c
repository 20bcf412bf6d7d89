/* expect: children run_compressor
 * The program itself waits for the children that it starts one by one. */
#include <string.h>
#include <sys/wait.h>
#include "corpus.h"

NOINLINE static void compress(void)
{
	static unsigned char page[65536];
	for (int round = 0; round < 3000; round++)
		for (size_t i = 1; i < sizeof page; i++)
			page[i] = (unsigned char)(page[i - 1] * 5 + page[i] + round);
}

NOINLINE static void run_compressor(void)
{
	pid_t child = fork();
	if (child == 0) {
		compress();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void *archive(void *arg)
{
	for (;;)
		run_compressor();
	return arg;
}

int main(void)
{
	run_threads(1, archive);
}
