// SPDX-License-Identifier: MIT
// Which connections a process has accepted, by its waits.
#include <stdlib.h>

#include "memory.h"
#include "profile.h"
#include "served_ports.h"
#include "unit.h"

static const struct {
	const char *meaning;
	bool is_served;
} waits[] = {
    {"tcp 10.0.0.1:8080 -> 10.0.0.7:40001", true}, // two connections
    {"tcp 10.0.0.1:8080 -> 10.0.0.8:40002, other end: \"client\" 4711", true},
    {"tcp [::]:9090 (listening)", true},
    {"tcp [::1]:9090 -> [::1]:51000", true},
    {"tcp 10.0.0.1:40000 -> 10.0.0.2:5432", false},
    {"tcp 10.0.0.1:40000 -> 10.0.0.2:5432, other end: \"postgres\" 17", false},
    {"tcp 10.0.0.1:40003 -> 10.0.0.2:5432", false},
    {"udp 10.0.0.1:8080 -> 10.0.0.7:53", false},
    {"unix /run/x", false},
    {"tcp ", false},
    {"tcp :", false},
    {" -> tcp 1:8080", false},
    {NULL, false},
};

static void test_waits(void **state)
{
	struct wait items[array_size(waits)] = {0};
	const struct profile profile = {.waits = items, .n_waits = array_size(items)};

	(void)state;
	for (size_t i = 0; i < array_size(waits); i++)
		items[i] = (struct wait){.meaning = (char *)waits[i].meaning, .descriptor = ""};
	struct served_ports *ports = served_ports_find(&profile);
	for (size_t i = 0; i < array_size(waits); i++)
		if (served_ports_have(ports, &items[i]) != waits[i].is_served)
			fail_msg("%s", waits[i].meaning);
	free(ports);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_waits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
