// SPDX-License-Identifier: MIT
// Names as their authors call them, and others as they are.
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "short_name.h"
#include "unit.h"

static void test_names(void **state)
{
	static const struct {
		const char *name, *expected;
	} cases[] = {
	    {"main", "main"},
	    {"main()", "main"},
	    {"render(int)", "render"},
	    {"void shop::Cache<int, std::less<int> >::put<long>(long) const", "shop::Cache::put"},
	    {"void std::this_thread::sleep_for<long, std::ratio<1l, 1000l> >(int const&)",
	     "std::this_thread::sleep_for"},
	    {"int& std::vector<int, std::allocator<int> >::emplace_back<int>(int&&)",
	     "std::vector::emplace_back"},
	    {"std::map<int, long>* make(int)", "make"},
	    {"(anonymous namespace)::work(int)", "(anonymous namespace)::work"},
	    {"foo((anonymous namespace)::Bar&)", "foo"},
	    {"main::{lambda()#1}::operator()() const", "main::{lambda()#1}::operator()"},
	    {"std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#2}> > "
	     ">::_M_run()",
	     "std::thread::_State_impl::_M_run"},
	    {"std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
	     "std::operator<<"},
	    {"bool std::operator< <int>(std::vector<int> const&, std::vector<int> const&)",
	     "std::operator<"},
	    {"bool std::operator><int, std::string>(std::pair<int, std::string> const&)",
	     "std::operator>"},
	    {"A operator+<char>(A const&)", "operator+"},
	    {"bool operator==<A>(A const&)", "operator=="},
	    {"auto A::operator<=><B>(B) const", "A::operator<=>"},
	    {"Foo::operator->()", "Foo::operator->"},
	    {"Foo::operator[](int) const", "Foo::operator[]"},
	    {"operator new(unsigned long)", "operator new"},
	    {"operator delete[](void*)", "operator delete[]"},
	    {"Foo::operator bool() const", "Foo::operator bool"},
	    {"Foo<int>::operator bool() const", "Foo::operator bool"},
	    {"Foo::bar(int) [clone .isra.0]", "Foo::bar"},
	    {"f[abi:cxx11](int)", "f[abi:cxx11]"},
	    {"Foo<(Bar)1>::get()", "Foo::get"},
	    {"Foo<(1>0)>::get()", "Foo::get"},
	    {"Foo<int>::~Foo()", "Foo::~Foo"},
	    {"non-virtual thunk to Foo::bar(int)", "non-virtual thunk to Foo::bar"},
	    {"guard variable for f(int)::x", "guard variable for f::x"},
	    {"A::area(double) const::{lambda()#1}::operator()() const",
	     "A::area::{lambda()#1}::operator()"},
	    {"f(int)::{lambda(long)#1}::operator()(long) const", "f::{lambda(long)#1}::operator()"},
	    {"Foo::operator/(int)", "Foo::operator/"},
	    // Rust
	    {"<core::iter::Map<I, F> as core::iter::Iterator>::next", "core::iter::Map::next"},
	    {"<&T as core::fmt::Display>::fmt", "T::fmt"},
	    {"core::ptr::drop_in_place<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place"},
	    {"app::serve::<u8>::{{closure}}", "app::serve::{{closure}}"},
	    {"<impl Foo>::bar", "Foo::bar"},
	    // Go, Java, Python, JavaScript
	    {"main.(*Server).serve", "main.(*Server).serve"},
	    {"net/http.(*conn).serve", "net/http.(*conn).serve"},
	    {"main.Map[go.shape.int]", "main.Map[go.shape.int]"},
	    {"created by net/http.(*Server).Serve", "created by net/http.(*Server).Serve"},
	    {"<module>", "<module>"},
	    {"<lambda>", "<lambda>"},
	    {"outer.<locals>.inner", "outer.<locals>.inner"},
	    {"JS:*fib /app/srv.js:3:13", "fib (srv.js:3)"},
	    {"JS:~ /app/srv.js:1:1", "(srv.js:1)"},
	    {"JS:^emit node:events:466:44", "emit (node:events:466)"},
	    {"JS:fib", "fib"},
	    {"LazyCompile:~render /srv/render.js:1:1", "render (render.js:1)"},
	    // What has no name, and what is none
	    {"[libc.so.6+0x1234]", "[libc.so.6+0x1234]"},
	    {"", ""},
	    {"(", "("},
	    {")(", ")("},
	    {"<", "<"},
	    {">", ">"},
	    {"a<b", "a<b"},
	    {"operator", "operator"},
	    {"operator()", "operator()"},
	    {"()", "()"},
	    {"<>", "<>"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		_cleanup_free_ char *name = short_name(cases[i].name);
		assert_string_equal(name, cases[i].expected);
	}
}

// Any text is borne, and nothing is read behind its end.
static void test_nonsense(void **state)
{
	static const char letters[] = "<>()[]{}: &*-a~o/.,operator JS:";
	unsigned int seed = 1;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		char text[24];
		const size_t n = (seed >> 8) % sizeof(text);
		for (size_t j = 0; j < n; j++) {
			seed = seed * 1103515245 + 12345;
			text[j] = letters[(seed >> 16) % (sizeof(letters) - 1)];
		}
		seed = seed * 1103515245 + 12345;
		_cleanup_free_ char *copy = memory_strndup(text, n);
		_cleanup_free_ char *name = short_name(copy);
		assert_true(strlen(name) <= n + 1); // brackets, for a mark and a space
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
