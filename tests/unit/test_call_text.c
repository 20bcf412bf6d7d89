// SPDX-License-Identifier: MIT
// call_text: times in a process's memory, which may hold something else by the time it is read.
#include <string.h>
#include <time.h>

#include "call_text.h"
#include "memory.h"
#include "syscall_numbers.h"
#include "unit.h"

static bool read_bytes(void *context, uint64_t address, void *bytes, size_t size)
{
	(void)address;
	memcpy(bytes, context, size);
	return true;
}

static char *sleep_text(int64_t seconds, int64_t ns)
{
	int64_t time[2] = {seconds, ns};
	const uint64_t args[6] = {CLOCK_REALTIME, 0, 0x7000, 0};
	const struct call_memory memory = {.read = read_bytes, .context = time};

	return call_text(SYS_clock_nanosleep, args, "", &memory);
}

static void test_times(void **state)
{
	static const struct {
		int64_t seconds, ns;
		const char *expected;
	} rows[] = {
	    {1, 500000000, "1.5 s"},
	    {0, 999999999, "0.999999999 s"},
	    {INT64_MAX / 1000000000, 0, "9.22337204e+09 s"},
	    {1, 1000000000, "0x7000"},
	    {1, -1, "0x7000"},
	    {-1, 0, "0x7000"},
	    {0x7f18c9c9c740, 0, "0x7000"}, // an address
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_free_ char *text = sleep_text(rows[i].seconds, rows[i].ns);
		_cleanup_free_ char *expected =
		    memory_printf("clock_nanosleep(CLOCK_REALTIME, %s)", rows[i].expected);
		assert_string_equal(text, expected);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_times)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
