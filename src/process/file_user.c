// SPDX-License-Identifier: MIT
#include "file_user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory.h"

enum { STATUS_BYTES = 16 << 10, MAX_OWN_GROUPS = 1 << 16, CAPABILITY_WORDS = 2 };

// Returns the text after the key; NULL: there is none.
static const char *value_of(const char *text, const char *key)
{
	const size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0)
			return line + length;
	}
	return NULL;
}

// Reads the next number of the line. False if there is none.
static bool next_number(const char **text, unsigned long *ret)
{
	char *end;

	*text += strspn(*text, " \t");
	if (**text < '0' || **text > '9')
		return false;
	*ret = strtoul(*text, &end, 10);
	*text = end;
	return true;
}

// Parses the fourth of the ids: real, effective, saved, the file system's.
static bool parse_id(const char *text, const char *key, unsigned long *ret)
{
	const char *value = value_of(text, key);

	for (int i = 0; i < 4; i++)
		if (!value || !next_number(&value, ret))
			return false;
	return true;
}

void file_user_parse(const char *text, struct file_user *ret)
{
	const char *groups = value_of(text, "Groups:");
	unsigned long uid, gid, group;

	*ret = (struct file_user){0};
	if (!parse_id(text, "Uid:", &uid) || !parse_id(text, "Gid:", &gid))
		return;
	ret->known = true;
	ret->uid = uid;
	ret->gid = gid;
	while (groups && ret->n_groups < FILE_USER_GROUPS && next_number(&groups, &group))
		ret->groups[ret->n_groups++] = group;
}

void file_user_read(int tid, struct file_user *ret)
{
	char path[32], text[STATUS_BYTES];

	*ret = (struct file_user){0};
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	file_user_parse(text, ret);
}

// What the process had at first: kept for its whole life.
static struct {
	bool is_saved;
	uid_t uid;
	gid_t gid;
	int n_groups;
	gid_t *groups;
	struct __user_cap_data_struct capabilities[CAPABILITY_WORDS];
} own;

static struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

static void save_own(void)
{
	own.is_saved = true;
	own.uid = geteuid();
	own.gid = getegid();
	own.groups = memory_alloc(MAX_OWN_GROUPS * sizeof(*own.groups));
	own.n_groups = getgroups(MAX_OWN_GROUPS, own.groups);
	syscall(SYS_capget, &header, own.capabilities);
}

static void drop_capabilities(void)
{
	struct __user_cap_data_struct none[CAPABILITY_WORDS];

	memcpy(none, own.capabilities, sizeof(none));
	for (size_t i = 0; i < CAPABILITY_WORDS; i++)
		none[i].effective = 0;
	syscall(SYS_capset, &header, none);
}

void file_user_become(const struct file_user *user)
{
	if (!own.is_saved)
		save_own();
	if (!user->known || user->uid == 0)
		return;
	if (user->uid != own.uid || user->gid != own.gid) {
		// Without the permission to change them, they stay: files are opened as ourselves.
		if (syscall(SYS_setgroups, user->n_groups, user->groups) == 0)
			setfsgid(user->gid);
		setfsuid(user->uid);
	}
	drop_capabilities();
}

// Gives up all capabilities, also those that could be raised again.
static bool give_up_capabilities(void)
{
	const struct __user_cap_data_struct none[CAPABILITY_WORDS] = {{0}};

	return syscall(SYS_capset, &header, none) == 0;
}

// Enters the thread's user namespace, unless it is our own. Root's groups would stay, where it does
// not allow to change them: they go before.
static bool enter_namespace(int tid)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", tid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && setgroups(0, NULL) == 0 &&
	       (setns(fd, CLONE_NEWUSER) == 0 || errno == EINVAL);
}

bool file_user_become_for_good(int tid)
{
	struct file_user user;

	if (geteuid() != 0 || !enter_namespace(tid))
		return false;
	file_user_read(tid, &user); // as that namespace numbers them
	if (!user.known)
		return false;
	setgroups(user.n_groups, user.groups);
	return setresgid(user.gid, user.gid, user.gid) == 0 &&
	       setresuid(user.uid, user.uid, user.uid) == 0 && give_up_capabilities();
}

void file_user_return(void)
{
	if (!own.is_saved) {
		save_own();
		return;
	}
	syscall(SYS_capset, &header, own.capabilities);
	setfsuid(own.uid);
	setfsgid(own.gid);
	if (own.n_groups >= 0 && syscall(SYS_setgroups, own.n_groups, own.groups) != 0)
		return;                                 // they were not changed either
	syscall(SYS_capset, &header, own.capabilities); // setfsuid has changed them
}
