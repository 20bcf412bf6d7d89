// SPDX-License-Identifier: MIT
// demangle: the languages, the suffixes of compilers, and names made to hurt.
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "memory.h"
#include "unit.h"

static void check(const char *name, const char *expected)
{
	_cleanup_free_ char *text = demangle_or_copy(name);

	assert_string_equal(text, expected);
}

static void test_languages(void **state)
{
	(void)state;
	check("_Z3foov", "foo()");
	check("_ZN3FooC1Ev", "Foo::Foo()");
	check("_ZN3FooC4Ev", "Foo::Foo()");
	check("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const");
	check("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	check("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h"
	      "930b740aa94f1d3aE",
	      "<Test + 'static as foo::Bar<Test>>::bar");
	check("_RNvC6_123foo3bar", "123foo::bar");
	check("_D3std5stdio4File5closeMFNeZv", "std.stdio.File.close()");
	check("_Dmain", "D main");
}

// What Cython and mypyc call functions of Python. "3add_up" alone is the third function, not one of
// a class `add`: a wrapper's own name always has a number.
static void test_python(void **state)
{
	(void)state;
	check("__pyx_pw_4shop_4till_3serve", "shop.till.serve");
	check("__pyx_pw_4shop_4till_3add_up", "shop.till.add_up");
	check("__pyx_pw_4shop_4till_4Till_3get_all", "shop.till.Till.get_all");
	check("__pyx_pw_4shop_4till_4Till_7__len__", "shop.till.Till.__len__");
	check("__pyx_pf_4shop_4till_serve", "shop.till.serve");
	check("__pyx_pf_4shop_4till_4Till_4take_all", "shop.till.Till.take_all");
	check("__pyx_f_4shop_4till_4Till_pay_out", "shop.till.Till.pay_out");
	check("__pyx_f_4shop_4till_total.constprop.0", "shop.till.total [clone .constprop.0]");
	check("__pyx_getprop_4shop_4till_4Till_rich", "shop.till.Till.rich");
	check("__pyx_pw_4shop_4till_7closing_1inner", "shop.till.closing.inner");
	check("__pyx_pw_4shop_4till_3lam___pyx_lambda_funcdef_lambda", "shop.till.lam.<lambda>");
	check("__pyx_gb_4shop_4till_3gen_2generator1", "shop.till.gen.<generator>");
	check("__pyx_fuse_0_1__pyx_pw_4shop_4till_15both", "shop.till.both");
	check("__pyx_pw_4shop_4till_21__pyx_fuse_0__pyx_f_4shop_4till_third", "shop.till.third");
	check("_ZL25__pyx_f_4shop_4till_totalP7_objectl", "shop.till.total");
	check("_ZL25__pyx_f_4shop_4till_totalP7_objectl.cold", "shop.till.total [clone .cold]");
	check("CPyDef_outer", "outer");
	check("CPyDef_pure___Box___fill", "pure.Box.fill");
	check("CPyPy_Box_____init__", "Box.__init__");
	check("CPyDef_odd___3_name", "odd___name");
	check("CPyDef_lines_gen_____mypyc_generator_helper__", "lines");
}

static void test_not_python(void **state)
{
	static const char *const names[] = {
	    "__pyx_",  "__pyx_pw_",      "__pyx_pymod_exec_till",
	    "CPyDef_", "CPyList_Append", "__pyx_fuse_0",
	};

	(void)state;
	for (size_t i = 0; i < array_size(names); i++)
		assert_null(demangle(names[i]));
	check("__pyx_f_99999999999999999999_x", "99999999999999999999_x");
}

static void test_suffixes(void **state)
{
	(void)state;
	check("_Z3foov.cold", "foo() [clone .cold]");
	check("_Z3foov.constprop.0.isra.1", "foo() [clone .constprop.0.isra.1]");
	check("foo.part.0", "foo.part.0");
	check("_RNvC6_123foo3bar.llvm.99", "123foo::bar");
	check("_ZN4core3fmt5write17h0123456789abcdefE.llvm.123", "core::fmt::write");
	check("memcpy@@GLIBC_2.14", "memcpy");
	check("_ZNSt6thread4joinEv@@GLIBCXX_3.4.11", "std::thread::join()");
	check("puts@plt", "puts@plt");
	check("_Z1fv@plt", "f()@plt");
}

static void test_not_mangled(void **state)
{
	static const char *const names[] = {
	    "",     "_",        "__",    "_Z",  "_R",          "_D",  "@",       "@@",
	    "main", "_DYNAMIC", "__Zzz", "_ZZ", "_.x",         ".",   "_Znot",   "foo.cold",
	    "_Dx",  "_D9",      "$x",    "_Z.", "_ZN\xff\xfe", "_RQ", "_D3fooQ", "_DQ"};

	(void)state;
	for (size_t i = 0; i < array_size(names); i++) {
		_cleanup_free_ char *text = demangle_or_copy(names[i]);

		assert_string_equal(text, names[i]);
		assert_null(demangle(names[i]));
	}
}

// Templates have names of thousands of bytes; longer ones stay.
static void test_length(void **state)
{
	(void)state;
	for (size_t depth = 100; depth < 2 * DEMANGLE_MAX_INPUT_BYTES; depth = depth * 3 / 2) {
		_cleanup_free_ char *name = memory_alloc(depth + 16);

		strcpy(name, "_Z1f");
		memset(name + 4, 'P', depth);
		strcpy(name + 4 + depth, "i");
		_cleanup_free_ char *text = demangle(name);
		if (strlen(name) > DEMANGLE_MAX_INPUT_BYTES)
			assert_null(text);
		else if (depth < 800)
			assert_int_equal(strlen(text), depth + strlen("f(int)"));
	}
	_cleanup_free_ char *arguments = memory_strdup("_Z1f");
	for (int i = 0; i < 250; i++) {
		char *longer = memory_printf("%s3abcIiE", arguments);

		free(arguments);
		arguments = longer;
	}
	_cleanup_free_ char *text = demangle(arguments);
	assert_non_null(text);
	assert_true(strlen(text) > strlen(arguments));
}

// f(a<int, int>, b<a<int, int>, a<int, int>>, ...): each type holds the one before twice.
static char *cxx_bomb(int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *name = memory_strdup("_Z1f1aIiiE");

	for (int i = 0; i < levels; i++) {
		char digit = digits[2 * i];
		char *longer = memory_printf("%s1%cIS%c_S%c_E", name, 'b' + i, digit, digit);

		free(name);
		name = longer;
	}
	return name;
}

// The same with associative arrays (H, key, value) and references back (Q, distance).
static char *d_bomb(int levels)
{
	char *name = memory_strdup("_D1fFHiiHQeQg");

	for (int i = 1; i < levels; i++) {
		char *longer = memory_printf("%sHQgQi", name);

		free(name);
		name = longer;
	}
	char *whole = memory_printf("%sZv", name);
	free(name);
	return whole;
}

static void test_bombs(void **state)
{
	(void)state;
	for (int levels = 1; levels < 18; levels++) {
		_cleanup_free_ char *name = cxx_bomb(levels), *text = demangle(name);

		if (levels < 10)
			assert_non_null(text);
		if (levels == 17)
			assert_null(text);
	}
	for (int levels = 1; levels < 80; levels++) {
		_cleanup_free_ char *name = d_bomb(levels), *text = demangle(name);

		if (levels < 10)
			assert_non_null(text);
		if (levels > 25)
			assert_null(text);
	}
}

static void test_random_bytes(void **state)
{
	static const char alphabet[] = "_ZNRDIESTKPQvi0123456789abhlC.@$";
	uint32_t random = 7;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char name[64];
		size_t length = 3 + (size_t)round % 50;

		memcpy(name, (const char *[]){"_Z", "_R", "_D", "_ZN"}[round % 4], 3);
		for (size_t i = 2; i < length; i++) {
			random = random * 1664525 + 1013904223;
			name[i] = alphabet[(random >> 16) % (sizeof(alphabet) - 1)];
		}
		name[length] = '\0';
		free(demangle_or_copy(name));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_languages),   cmocka_unit_test(test_python),
	    cmocka_unit_test(test_not_python),  cmocka_unit_test(test_suffixes),
	    cmocka_unit_test(test_not_mangled), cmocka_unit_test(test_length),
	    cmocka_unit_test(test_bombs),       cmocka_unit_test(test_random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
