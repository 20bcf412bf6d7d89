// SPDX-License-Identifier: MIT
#include <string.h>
#include <sys/sysmacros.h>

#include "file_user.h"
#include "memory.h"
#include "mounts.h"
#include "unit.h"

static const char TEXT[] =
    "21 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
    "22 21 0:20 / /proc rw,nosuid - proc proc rw\n"
    "23 21 0:41 / /home/my\\040files rw - fuse.sshfs host:/ rw,user_id=0\n"
    "24 21 0:42 / /srv rw - nfs4 host:/srv rw\n"
    "25 21 0:43 / /srv rw - tmpfs tmpfs rw\n"
    "nonsense\n"
    "26 21 0:44 / /a rw - overlay overlay rw,lowerdir=/var/a:/var/b,upperdir=/var/c,workdir=/w\n"
    "27 21 0:45 / /b rw - overlay overlay rw,lowerdir=/var/a:/net/b\n"
    "28 21 0:46 / /net rw - nfs4 host:/ rw\n"
    "29 21 0:47 / /c rw - overlay overlay rw,lowerdir+=/var/a,datadir+=/net/c\n"
    "30 21 0:48 / /d rw - overlay overlay rw,lowerdir=relative\n"
    "31 21 0:49 / /e rw - ext4.fuse x rw\n"
    "32 21 0:50 / /f rw - overlay overlay rw\n";

static const char *type_at(const struct mounts *mounts, const char *path)
{
	const struct mount *mount = mounts_of_path(mounts, path);

	return mount ? mount->type : "";
}

static void test_paths(void **state)
{
	struct mounts mounts;

	(void)state;
	mounts_parse(memory_strdup(TEXT), &mounts);
	assert_int_equal(mounts.count, 12);
	assert_string_equal(type_at(&mounts, "/"), "ext4");
	assert_string_equal(type_at(&mounts, "/usr/bin/x"), "ext4");
	assert_string_equal(type_at(&mounts, "/proc/1/maps"), "proc");
	assert_string_equal(type_at(&mounts, "/process"), "ext4");
	assert_string_equal(type_at(&mounts, "/srv"), "tmpfs"); // the later one hides the other
	assert_string_equal(type_at(&mounts, "relative"), "");
	assert_string_equal(mounts_of_device(&mounts, makedev(0, 41))->type, "fuse.sshfs");
	assert_string_equal(mounts_by_id(&mounts, 22)->type, "proc");
	assert_null(mounts_of_device(&mounts, makedev(0, 99)));
	assert_null(mounts_by_id(&mounts, 99));
	mounts_deinit(&mounts);
}

static void test_local(void **state)
{
	static const struct {
		int id;
		bool local;
	} cases[] = {{21, true},  {22, false}, {23, false}, {24, false}, {25, true}, {26, true},
	             {27, false}, {29, false}, {30, false}, {31, false}, {32, false}};
	struct mounts mounts;

	(void)state;
	mounts_parse(memory_strdup(TEXT), &mounts);
	for (size_t i = 0; i < array_size(cases); i++)
		assert_int_equal(mounts_is_local(mounts_by_id(&mounts, cases[i].id), &mounts),
		                 cases[i].local);
	mounts_deinit(&mounts);
}

// In a container, where "/" is an overlay whose layers cannot be seen: what lies there is all there
// is.
static void test_local_root(void **state)
{
	struct mounts mounts;

	(void)state;
	mounts_parse(memory_strdup("1 0 0:9 / / rw - overlay overlay rw,lowerdir=/l/A\n"), &mounts);
	assert_true(mounts_is_local(&mounts.items[0], &mounts));
	mounts_deinit(&mounts);
}

static void test_user(void **state)
{
	struct file_user user;

	(void)state;
	file_user_parse("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n", &user);
	assert_true(user.known);
	assert_int_equal(user.uid, 4);
	assert_int_equal(user.gid, 8);
	assert_int_equal(user.n_groups, 2);
	assert_int_equal(user.groups[1], 10);
	file_user_parse("Name:\tx\nUid:\t1\t2\nGid:\t5\t6\t7\t8\n", &user);
	assert_false(user.known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_paths),
	    cmocka_unit_test(test_local),
	    cmocka_unit_test(test_local_root),
	    cmocka_unit_test(test_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
