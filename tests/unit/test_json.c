// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "unit.h"

// What `write` wrote; the caller frees.
static char *written(void (*write)(struct json *json))
{
	char *text = NULL;
	size_t size = 0;
	struct json json = {.stream = open_memstream(&text, &size)};

	write(&json);
	fclose(json.stream);
	return text;
}

static void write_values(struct json *json)
{
	json_open(json, '[');
	json_int(json, INT64_MIN);
	json_open(json, '{');
	json_key_int(json, "a", 1);
	json_key_string(json, "b", "");
	json_key_open(json, "c", '[');
	json_close(json, ']');
	json_key_bool(json, "d", true);
	json_close(json, '}');
	json_null(json);
	json_bool(json, false);
	json_close(json, ']');
}

static void test_values(void **state)
{
	char *text = written(write_values);

	(void)state;
	assert_string_equal(
	    text, "[-9223372036854775808,{\"a\":1,\"b\":\"\",\"c\":[],\"d\":true},null,false]");
	free(text);
}

static void write_strings(struct json *json)
{
	json_open(json, '{');
	json_key_string(json, "\"", "a\\b\n\x1f\x7f\xc3\xa9/");
	json_close(json, '}');
}

static void test_strings(void **state)
{
	char *text = written(write_strings);

	(void)state;
	assert_string_equal(text, "{\"\\\"\":\"a\\\\b\\u000a\\u001f\x7f\xc3\xa9/\"}");
	free(text);
}

static void write_times(struct json *json)
{
	json_open(json, '[');
	json_time(json, 0, 1000);
	json_time(json, 1234567, 1000);
	json_time(json, -1, 1000000);
	json_time(json, 1700000000123456789, 1000000000);
	json_time(json, INT64_MIN, 1000000000);
	json_close(json, ']');
}

static void test_times(void **state)
{
	char *text = written(write_times);

	(void)state;
	assert_string_equal(
	    text, "[0.000,1234.567,-0.000001,1700000000.123456789,-9223372036.854775808]");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_strings),
	    cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
