// SPDX-License-Identifier: MIT
#include <string.h>

#include "memory.h"
#include "text.h"
#include "unit.h"

#define BAD "\xef\xbf\xbd" // U+FFFD

struct case_ {
	const char *input, *expected;
};

static void check(const char *input, size_t length, size_t max_length, const char *expected)
{
	_cleanup_free_ char *text = text_clean(input, length, max_length);

	assert_string_equal(text, expected);
	assert_true(text_is_clean(text, strlen(text)));
	assert_int_equal(text_is_clean(input, length),
	                 strlen(expected) == length && memcmp(input, expected, length) == 0);
}

static void test_clean_text_is_kept(void **state)
{
	static const char *const texts[] = {
	    "",           "main",       "operator<< <int>(a, b)", "gr\u00fc\u00df",
	    "\u20ac",     "\U0001f980",
	    "\u00a0",     // the first after C1
	    "\ud7ff",     // the last before the surrogates
	    "\ue000",     // the first after them
	    "\U0010fffd", // the last character
	    BAD,
	};
	(void)state;
	for (size_t i = 0; i < array_size(texts); i++)
		check(texts[i], strlen(texts[i]), TEXT_UNLIMITED, texts[i]);
}

static void test_control_characters(void **state)
{
	static const struct case_ cases[] = {
	    {"a\nb\tc\r", "a_b_c_"},
	    {"\x01\x1b[31m\x7f", "__[31m_"},
	    {"a\xc2\x80z\xc2\x9f", "a_z_"}, // C1
	    {"a\u2028b\u2029", "a_b_"},     // line and paragraph separator
	    {"a\u202egpj.exe\u202c\u2066b\u2069\u200f", "a_gpj.exe__b_\u200f"}, // directions
	};
	(void)state;
	for (size_t i = 0; i < array_size(cases); i++)
		check(cases[i].input, strlen(cases[i].input), TEXT_UNLIMITED, cases[i].expected);
	check("a\0b", 3, TEXT_UNLIMITED, "a_b");
}

static void test_invalid_bytes(void **state)
{
	static const struct case_ cases[] = {
	    {"\x80", BAD},
	    {"a\xff\xfe!", "a" BAD BAD "!"},
	    {"\xc3", BAD},      // cut short by the end
	    {"\xc3(", BAD "("}, // cut short by another character
	    {"\xe2\x82z", BAD BAD "z"},
	    {"\xc0\xaf", BAD BAD},                 // '/' in two bytes
	    {"\xe0\x80\xaf", BAD BAD BAD},         // in three
	    {"\xf0\x80\x80\xaf", BAD BAD BAD BAD}, // in four
	    {"\xed\xa0\x80", BAD BAD BAD},         // a surrogate
	    {"\xf4\x90\x80\x80", BAD BAD BAD BAD}, // above U+10FFFF
	    {"\xf5\x80\x80\x80", BAD BAD BAD BAD},
	    {"\xef\xbf\xbe", BAD}, // U+FFFE, U+FFFF: no XML
	    {"\xef\xbf\xbf", BAD},
	};
	(void)state;
	for (size_t i = 0; i < array_size(cases); i++)
		check(cases[i].input, strlen(cases[i].input), TEXT_UNLIMITED, cases[i].expected);
}

static void check_cut(const char *input, size_t max_length, const char *expected)
{
	_cleanup_free_ char *text = text_clean(input, strlen(input), max_length);

	assert_string_equal(text, expected);
}

static void test_cut(void **state)
{
	(void)state;
	check_cut("abcdef", 6, "abcdef");
	check_cut("abcdefg", 6, "abc...");
	check_cut("abc", 3, "abc");
	check_cut("abcd", 3, "...");
	check_cut("abcd", 2, "..");
	check_cut("abcd", 0, "");
	check_cut("", 0, "");
	check_cut("a\u20acbcdef", 6, "a..."); // never in the middle of a character
	check_cut("a\u20acbcdef", 7, "a\u20ac...");
	check_cut("\xff\xff\xff", 9, BAD BAD BAD);
	check_cut("\xff\xff\xff", 8, BAD "...");
}

static void test_long_text_is_bounded(void **state)
{
	const size_t length = 1 << 20;
	_cleanup_free_ char *input = memory_alloc(length);

	(void)state;
	memset(input, 0xff, length);
	_cleanup_free_ char *text = text_clean(input, length, 4096);
	assert_in_range(strlen(text), 4094, 4096);
}

static void test_cut_texts_differ(void **state)
{
	char a[64], b[64];

	(void)state;
	memset(a, 'x', sizeof(a));
	a[sizeof(a) - 1] = '\0';
	memcpy(b, a, sizeof(b));
	b[sizeof(b) - 2] = 'y';
	_cleanup_free_ char *short_a = text_cut(a, 32), *short_b = text_cut(b, 32);
	_cleanup_free_ char *whole = text_cut(a, sizeof(a) - 1);
	assert_int_equal(strlen(short_a), 32);
	assert_memory_equal(short_a, "xxxxxxxxxxxxxxxxxxxx...#", 24);
	assert_string_not_equal(short_a, short_b);
	assert_string_equal(whole, a);
}

static void check_quoted(const char *name, const char *expected)
{
	_cleanup_free_ char *text = text_quote_file(name);

	assert_string_equal(text, expected);
}

static void test_quoted_for_a_shell(void **state)
{
	(void)state;
	check_quoted("/tmp/a-b_c.pb.gz", "/tmp/a-b_c.pb.gz");
	check_quoted("", "''");
	check_quoted("two words", "'two words'");
	check_quoted("it's", "'it'\\''s'");
	check_quoted("''", "''\\'''\\'''");
	check_quoted("~$(x)`y`\\\n*", "'~$(x)`y`\\\n*'");
	check_quoted("-o", "./-o");
	check_quoted("- o", "./'- o'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut_texts_differ),
	    cmocka_unit_test(test_clean_text_is_kept),
	    cmocka_unit_test(test_control_characters),
	    cmocka_unit_test(test_invalid_bytes),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_long_text_is_bounded),
	    cmocka_unit_test(test_quoted_for_a_shell),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
