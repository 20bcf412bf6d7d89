// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "memory.h"
#include "own_code.h"
#include "symbolize.h"

struct example {
	struct code_place place;
	bool is_own;
};

static void check(const struct example *examples, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct code_place place = examples[i].place;
		place.name = place.name ?: "f";
		place.system_name = place.system_name ?: place.name;
		place.file = place.file ?: "";
		place.path = place.path ?: "/srv/app";
		if (own_code(&place) != examples[i].is_own)
			fail_msg("example %zu: %s in %s, %s", i, place.name, place.path,
			         place.file);
	}
}

// clang-format off
static void test_files(void **state)
{
	static const struct example examples[] = {
		{{.path = "/srv/app"}, true},
		{{.path = "/usr/bin/redis-check-rdb"}, true},
		{{.path = "/usr/lib/postgresql/15/bin/postgres"}, true},
		{{.path = "/usr/lib/gcc/x86_64-linux-gnu/12/cc1"}, true},
		{{.path = "/srv/lib/libstore.so.3"}, true},
		{{.path = "/usr/local/lib/libstore.so"}, true},
		{{.path = "/home/u/plugins/codec.so"}, true},
		{{.path = "/home/u/x.sock/app"}, true},
		{{.path = "/usr/lib/x86_64-linux-gnu/libc.so.6"}, false},
		{{.path = "/lib64/ld-linux-x86-64.so.2"}, false},
		{{.path = "/lib/x86_64-linux-gnu/libpthread-2.31.so"}, false},
		{{.path = "/opt/conda/lib/libstdc++.so.6.0.30"}, false},
		{{.path = "/nix/store/abc-glibc-2.38/lib/libc.so.6"}, false},
		{{.path = "/usr/bin/python3.11"}, false},
		{{.path = "/usr/local/lib/libpython3.12.so.1.0"}, false},
		{{.path = "/srv/venv/lib/python3.11/site-packages/numpy/core/_multiarray.so"}, false},
		{{.path = "/usr/bin/node"}, false},
		{{.path = "/opt/java/openjdk/lib/libnio.so"}, false},
		{{.path = "/opt/tools/lib/server/libjvm.so"}, false},
		{{.path = "/usr/bin/perl"}, false},
		{{.kind = MODULE_VDSO, .path = "[vdso]"}, false},
		{{.kind = MODULE_UNKNOWN, .path = "[unknown]"}, false},
	};

	(void)state;
	check(examples, array_size(examples));
}

static void test_native_functions(void **state)
{
	static const struct example examples[] = {
		{{.name = "main"}, true},
		{{.name = "_start"}, false},
		{{.name = "start_thread"}, false},
		{{.name = "__pthread_mutex_lock"}, false}, // static
		{{.name = "sort.part.0", .file = "/srv/app.c"}, true},
		{{.name = "sort.part.0"}, true}, // of C, not of Go
		{{.name = "void std::this_thread::sleep_for<long>(std::chrono::duration<long>)",
		  .system_name = "_ZNSt11this_thread9sleep_forIlEEvv"}, false},
		{{.name = "std::vector<int>::push_back(int)"}, false},
		{{.name = "push_back", .file = "/usr/include/c++/12/bits/stl_vector.h"}, false},
		{{.name = "app::Store::flush()", .system_name = "_ZN3app5Store5flushEv"}, true},
		{{.name = "core::run()", .system_name = "_ZN4core3runEv"}, true}, // C++
		{{.name = "core::ptr::drop_in_place",
		  .system_name = "_ZN4core3ptr13drop_in_place17h0123456789abcdefE"}, false},
		{{.name = "<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend",
		  .system_name = "_RNvXs0_x"}, false},
		{{.name = "app::serve", .system_name = "_ZN3app5serve17h0123456789abcdefE"}, true},
		{{.name = "app::serve", .system_name = "_RNvC3app5serve"}, true},
		{{.name = "run", .system_name = "_RNvC3app3run", .file = "/rustc/9fc/library/std/src/rt.rs"},
		 false},
	};

	(void)state;
	check(examples, array_size(examples));
}

static void test_go(void **state)
{
	static const char source[] = "/home/u/app/x.go";
	static const struct example examples[] = {
		{{.name = "main.order", .file = source}, true},
		{{.name = "main.(*server).order", .file = source}, true},
		{{.name = "main.sum[go.shape.int]", .file = source}, true},
		{{.name = "github.com/u/app/store.(*DB).Get", .file = source}, true},
		{{.name = "app/internal/net.Dial", .file = source}, true},
		{{.name = "created by main.main", .file = source}, true},
		{{.name = "runtime.gopark", .file = source}, false},
		{{.name = "net/http.(*conn).serve", .file = source}, false},
		{{.name = "internal/poll.runtime_pollWait", .file = source}, false},
		{{.name = "sync.(*Mutex).Lock", .file = source}, false},
		{{.name = "slices.SortFunc[go.shape.[]main.T/x]", .file = source}, false},
		{{.name = "type:.eq.main.T", .file = source}, false},
		{{.name = "created by net/http.(*Server).Serve", .file = source}, false},
		{{.name = "memeqbody", .file = "/usr/local/go/src/internal/bytealg/equal_amd64.s"}, false},
		{{.name = "_cgo_sum", .file = "/home/u/app/sum.c"}, true},
	};

	(void)state;
	check(examples, array_size(examples));
}

static void test_python(void **state)
{
	static const char *const own[] = {"/srv/app.py", "app.py", "<string>", "/srv/python/run.py",
	                                  "/srv/python3/run.py"};
	static const char *const other[] = {
		"/usr/lib/python3.11/threading.py", "/usr/local/lib/python3.13t/queue.py",
		"/usr/lib/python3/dist-packages/gunicorn/workers/sync.py", "/usr/lib/python311.zip/os.py",
		"/srv/venv/lib/python3.12/site-packages/flask/app.py", "<frozen importlib._bootstrap>",
	};

	(void)state;
	for (size_t i = 0; i < array_size(own); i++)
		check(&(struct example){{.kind = MODULE_RUNTIME, .path = "[python]", .file = own[i]}, true}, 1);
	for (size_t i = 0; i < array_size(other); i++)
		check(&(struct example){{.kind = MODULE_RUNTIME, .path = "[python]", .file = other[i]}, false},
		      1);
	check(&(struct example){{.kind = MODULE_RUNTIME, .path = "[python]", .name = ""}, false}, 1);
}

static void test_compiled(void **state)
{
	static const char *const own[] = {
		"JS:*fib /srv/app.js:3:13", "LazyCompile:~render /srv/render.js:1:1", "int Web.reserve(int)",
		"void Web.sleep(java.lang.Object)", "from_code",
	};
	static const char *const other[] = {
		"", "JS:~processTicks node:internal/process/task_queues:67:35", "Builtin:InterpreterEntry",
		"JS:*get /srv/node_modules/express/lib/router.js:1:2", "Interpreter", "SafepointBlob",
		"void java.lang.Thread.sleep(long)", "Ljava/util/HashMap;::get",
	};

	(void)state;
	for (size_t i = 0; i < array_size(own); i++)
		check(&(struct example){{.kind = MODULE_ANONYMOUS, .path = "[jit]", .name = own[i]}, true}, 1);
	for (size_t i = 0; i < array_size(other); i++)
		check(&(struct example){{.kind = MODULE_ANONYMOUS, .path = "[jit]", .name = other[i]}, false}, 1);
}
// clang-format on

static void test_functions(void **state)
{
	char path[] = "/srv/app", name[] = "main", none[] = "", std[] = "std::terminate()";
	const struct module module = {.kind = MODULE_FILE, .path = path};
	const struct function own = {.name = name, .system_name = name, .file = none};
	const struct function other = {.name = std, .system_name = none, .file = none};

	(void)state;
	assert_true(own_code_function(&module, &own));
	assert_true(own_code_function(&module, NULL));
	assert_false(own_code_function(&module, &other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_files),    cmocka_unit_test(test_native_functions),
	    cmocka_unit_test(test_go),       cmocka_unit_test(test_python),
	    cmocka_unit_test(test_compiled), cmocka_unit_test(test_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
