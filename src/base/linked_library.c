// SPDX-License-Identifier: MIT
// What the static build (meson's option `static`) has in place of the dynamic linker: dlopen and
// dlsym find the two libraries that are linked in, and no others. The files of the host that
// glibc would load belong to another version of it, and may crash the profiler.
#include <dlfcn.h>
#include <nss.h>
#include <string.h>
#include <unistd.h>

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "memory.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

// As <elfutils/debuginfod.h> has them. Without debuginfod_find_executable, libdw itself asks no
// server.
void debuginfod_begin(void);
void debuginfod_end(void);
void debuginfod_find_debuginfo(void);
void debuginfod_get_user_data(void);
void debuginfod_set_progressfn(void);
void debuginfod_set_user_data(void);

// The linker has all calls of X go to __wrap_X, and __real_X be X.
CURL *__real_curl_easy_init(void);
void __real_curl_easy_reset(CURL *handle);
CURL *__wrap_curl_easy_init(void);
void __wrap_curl_easy_reset(CURL *handle);

static const char *const libraries[] = {"libcurl.so.4", "libdebuginfod.so.1"};

// clang-format off
static const struct function {
	const char *name;
	void (*address)(void);
} functions[] = {
#define FUNCTION(name) {#name, (void (*)(void))name}
	FUNCTION(curl_easy_cleanup),
	FUNCTION(curl_easy_getinfo),
	FUNCTION(curl_easy_init),
	FUNCTION(curl_easy_perform),
	FUNCTION(curl_easy_reset),
	FUNCTION(curl_easy_setopt),
	FUNCTION(curl_easy_strerror),
	FUNCTION(curl_slist_append),
	FUNCTION(curl_slist_free_all),
	FUNCTION(debuginfod_begin),
	FUNCTION(debuginfod_end),
	FUNCTION(debuginfod_find_debuginfo),
	FUNCTION(debuginfod_get_user_data),
	FUNCTION(debuginfod_set_progressfn),
	FUNCTION(debuginfod_set_user_data),
#undef FUNCTION
};
// clang-format on

// Where Debian, Fedora, openSUSE and Alpine keep the certificates that a machine trusts.
static const char *const trusted[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

void *dlopen(const char *name, int mode)
{
	(void)mode;
	for (size_t i = 0; name && i < array_size(libraries); i++) {
		if (strcmp(name, libraries[i]) == 0)
			return (void *)libraries;
	}
	return NULL;
}

void *dlsym(void *restrict library, const char *restrict name)
{
	(void)library;
	for (size_t i = 0; i < array_size(functions); i++) {
		if (strcmp(name, functions[i].name) == 0)
			return (void *)functions[i].address;
	}
	return NULL;
}

int dlclose(void *library)
{
	(void)library;
	return 0;
}

char *dlerror(void)
{
	return NULL;
}

// Names are looked up by glibc's own means, as if nsswitch.conf said so.
__attribute__((constructor)) static void use_no_modules(void)
{
	__nss_configure_lookup("hosts", "files dns");
	__nss_configure_lookup("passwd", "files");
}

static void trust_machine(CURL *handle)
{
	for (size_t i = 0; handle && i < array_size(trusted); i++) {
		if (access(trusted[i], R_OK) == 0) {
			curl_easy_setopt(handle, CURLOPT_CAINFO, trusted[i]);
			return;
		}
	}
}

CURL *__wrap_curl_easy_init(void)
{
	CURL *handle = __real_curl_easy_init();

	trust_machine(handle);
	return handle;
}

void __wrap_curl_easy_reset(CURL *handle)
{
	__real_curl_easy_reset(handle);
	trust_machine(handle);
}
