// SPDX-License-Identifier: MIT
// The kernel's tables of sockets, taken apart.
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "sockets.h"
#include "unit.h"

static const char tcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "101 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0500000A:A028 0700000A:1538 01 00000000:00000000 02:000AFDB1 00000000  1000        0 "
    "102 2 0000000000000000 20 4 30 10 -1\n";
static const char tcp6[] =
    "  sl  local_address                         remote_address                        st "
    "tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000000000000000000001000000:0016 B80D01200000000000000000"
    "01000000:C001 01 00000000:00000000 00:00000000 00000000     0        0 103 1\n";
static const char udp[] =
    "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode ref pointer drops\n"
    " 1234: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 "
    "104 2 0000000000000000 0\n";
static const char unix_table[] =
    "Num       RefCount Protocol Flags    Type St Inode Path\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01 105 /run/a b.sock\n"
    "0000000000000000: 00000003 00000000 00000000 0001 03 106\n"
    "0000000000000000: 00000003 00000000 00000000 0001 03 107 @abstract\n";

static void assert_meaning(const char *table, const char *text, uint64_t inode,
                           const char *expected)
{
	struct socket_wanted wanted[] = {{.inode = 1}, {.inode = inode}, {.inode = inode}};

	sockets_parse(table, text, wanted, array_size(wanted));
	assert_null(wanted[0].meaning);
	for (size_t i = 1; i < array_size(wanted); i++) {
		if (expected)
			assert_string_equal(wanted[i].meaning, expected);
		else
			assert_null(wanted[i].meaning);
		free(wanted[i].meaning);
	}
}

static void test_tables(void **state)
{
	(void)state;
	assert_meaning("tcp", tcp, 101, "tcp 127.0.0.1:8080 (listening)");
	assert_meaning("tcp", tcp, 102, "tcp 10.0.0.5:41000 -> 10.0.0.7:5432");
	assert_meaning("tcp6", tcp6, 103, "tcp [::1]:22 -> [2001:db8::1]:49153");
	assert_meaning("udp", udp, 104, "udp 0.0.0.0:53");
	assert_meaning("unix", unix_table, 105, "unix /run/a b.sock");
	// Somebody's path is "x" and a row.
	assert_meaning("unix",
	               "Num       RefCount Protocol Flags    Type St Inode Path\n"
	               "0: 00000002 00000000 00010000 0001 01 108 @x\n"
	               "0: 00000003 00000000 00000000 0001 03 109 /forged\n"
	               "0: 00000003 00000000 00000000 0001 03 109 /run/real\n",
	               109, "unix:[109]");
	assert_meaning("unix", unix_table, 106, "unix:[106]");
	assert_meaning("unix", unix_table, 107, "unix @abstract");
	assert_meaning("tcp", tcp, 99, NULL);
	assert_meaning("unix", unix_table, 99, NULL);
}

// Cut anywhere, as a table of too many sockets is: no more than a part of the last line is lost.
static void test_cut(void **state)
{
	(void)state;
	for (size_t size = 0; size < sizeof(tcp); size++) {
		_cleanup_free_ char *text = memory_strndup(tcp, size);
		struct socket_wanted wanted[] = {{.inode = 101}, {.inode = 102}};
		sockets_parse("tcp", text, wanted, array_size(wanted));
		sockets_parse("tcp6", text, wanted, array_size(wanted));
		sockets_parse("unix", text, wanted, array_size(wanted));
		if (size >= (size_t)(strchr(strstr(tcp, "1F90"), '\n') - tcp))
			assert_non_null(wanted[0].meaning);
		free(wanted[0].meaning);
		free(wanted[1].meaning);
	}
}

static void test_malformed(void **state)
{
	static const char *const lines[] = {
	    "h\n 0: 0100007F:1F90 0000:0000 0A 0:0 0:0 0 0 0 101\n",
	    "h\n 0: 0100007F 00000000:0000 0A 0:0 0:0 0 0 0 101\n",
	    "h\n 0: ZZZZZZZZ:1F90 00000000:0000 0A 0:0 0:0 0 0 0 101\n",
	    "h\n: : : : :\n\n\n",
	    "101",
	    "",
	};

	(void)state;
	for (size_t i = 0; i < array_size(lines); i++) {
		assert_meaning("tcp", lines[i], 101, NULL);
		assert_meaning("unix", lines[i], 101, NULL);
	}
}

static void test_tcp_peers(void **state)
{
	static const char heading[] = "  sl  local_address rem_address   st ...\n";
	static const char v4[] = "   0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 201 1\n"
	                         "   1: 0100007F:A028 0100007F:1F90 01 0:0 00:0 0 0 0 202 2\n"
	                         "   2: 0100007F:1F90 0100007F:A028 01 0:0 00:0 0 0 0 203 2\n"
	                         "   3: 0100007F:A029 0100007F:1F91 01 0:0 00:0 0 0 0 204 2\n"
	                         "   4: 0100007F:1F91 0100007F:A029 06 0:0 00:0 0 0 0 0 2\n"
	                         "   5: 0100007F:A02A 0100007F:1F92 01 0:0 00:0 0 0 0 205 2\n"
	                         "   6: 01:1 2\n   7:\nnonsense";
	static const char v6[] =
	    "   0: 0000000000000000FFFF00000100007F:1F92 0000000000000000FFFF00000100007F:A02A 01 "
	    "0:0 00:0 0 0 0 206 2\n";
	struct tcp_wanted wanted[] = {{.inode = 202}, {.inode = 203}, {.inode = 204},
	                              {.inode = 205}, {.inode = 201}, {.inode = 999}};
	static const uint64_t peers[] = {203, 202, 0, 206, 0, 0};
	_cleanup_free_ char *first = memory_printf("%s%s", heading, v4);

	(void)state;
	tcp_peer_parse((const char *const[]){first, v6}, wanted, array_size(wanted));
	for (size_t i = 0; i < array_size(wanted); i++)
		assert_int_equal(wanted[i].peer_inode, peers[i]);
	tcp_peer_parse((const char *const[]){NULL, ""}, wanted, array_size(wanted));
	assert_int_equal(wanted[0].peer_inode, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tcp_peers),
	    cmocka_unit_test(test_tables),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
