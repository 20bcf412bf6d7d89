/* expect: hot is_known
 * An import looks for duplicates by going through all rows for each row. */
#include "corpus.h"

enum { ROWS = 20000 };
static unsigned rows[ROWS];

NOINLINE static int is_known(unsigned row, int count)
{
	for (int i = 0; i < count; i++)
		if (rows[i] == row)
			return 1;
	return 0;
}

NOINLINE static unsigned parse(unsigned seed)
{
	char text[32];
	snprintf(text, sizeof text, "%u", seed * 2654435761U);
	return (unsigned)strtoul(text, NULL, 10);
}

static void *import(void *arg)
{
	for (;;)
		for (int i = 0, count = 0; i < ROWS; i++) {
			unsigned row = parse((unsigned)i);
			if (!is_known(row, count))
				rows[count++] = row;
		}
	return arg;
}

int main(void)
{
	run_threads(1, import);
}
