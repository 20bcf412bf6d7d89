/* expect: disk commit
 * Each request writes a line to the log and waits until the disk has it. */
#include <fcntl.h>
#include "corpus.h"

static int log_file;

NOINLINE static void commit(unsigned request)
{
	char line[512];
	snprintf(line, sizeof line, "%0500u\n", request);
	if (write(log_file, line, 501) != 501 || fsync(log_file))
		abort();
}

NOINLINE static unsigned compute(unsigned request)
{
	for (int i = 0; i < 2000; i++)
		request = request * 1664525 + 1013904223;
	return request;
}

static void *serve(void *arg)
{
	for (unsigned request = 1;; request++)
		commit(compute(request));
	return arg;
}

int main(int argc, char **argv)
{
	char name[] = "/var/tmp/explain_corpus.XXXXXX";
	log_file = argc > 1 ? open(argv[1], O_CREAT | O_RDWR | O_CLOEXEC, 0600) : mkstemp(name);
	unlink(argc > 1 ? argv[1] : name);
	run_threads(2, serve);
}
