// SPDX-License-Identifier: MIT
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

enum { PATH_SIZE = 96, FILE_SIZE = 4096 };

int proc_open(int pid, int tid, const char *file)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

// Reads the start of the file into text, and terminates it. False with errno.
static bool read_text(int fd, int pid, int tid, const char *file, char *text, size_t size)
{
	_cleanup_close_ int own_fd = -1;

	if (fd < 0)
		fd = own_fd = proc_open(pid, tid, file);
	if (fd < 0)
		return false;
	const ssize_t n = pread(fd, text, size - 1, 0);
	if (n <= 0) {
		if (n == 0)
			errno = ESRCH;
		return false;
	}
	text[n] = '\0';
	return true;
}

char *proc_read_all(int pid, int tid, const char *file, size_t max_bytes, size_t *ret_size)
{
	_cleanup_close_ int fd = proc_open(pid, tid, file);
	_cleanup_free_ char *text = NULL;
	size_t size = 0, capacity = 0;
	ssize_t n;

	if (fd < 0)
		return NULL;
	do {
		text = memory_grow(text, &capacity, size + FILE_SIZE + 1, 1);
		n = read(fd, text + size, FILE_SIZE);
		size += n > 0 ? (size_t)n : 0;
	} while (n > 0 && size < max_bytes);
	if (n < 0 && size == 0)
		return NULL;
	*ret_size = size < max_bytes ? size : max_bytes;
	text[*ret_size] = '\0';
	return take_pointer(text);
}

char *proc_read_whole(int pid, const char *file, size_t max_bytes, size_t *ret_size)
{
	return proc_read_all(pid, pid, file, max_bytes, ret_size);
}

bool proc_read_exe(int pid, char *ret, size_t size)
{
	static const char deleted[] = " (deleted)";
	const size_t tail = sizeof(deleted) - 1;
	char link[PATH_SIZE];

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	const ssize_t n = readlink(link, ret, size - 1);
	if (n <= 0)
		return false;
	ret[n] = '\0';
	if ((size_t)n > tail && strcmp(ret + n - tail, deleted) == 0)
		ret[(size_t)n - tail] = '\0';
	return true;
}

char *proc_find_variable(const char *text, size_t size, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = text; at < text + size; at += strlen(at) + 1) {
		if (size == PROC_ENVIRONMENT_BYTES && at + strlen(at) == text + size)
			return NULL; // the end of this one may be missing
		if (strncmp(at, name, length) == 0 && at[length] == '=' && at[length + 1])
			return memory_strdup(at + length + 1);
	}
	return NULL;
}

char *proc_read_variable(int pid, const char *name)
{
	size_t size;
	uint64_t start, end;
	_cleanup_free_ char *text = proc_read_whole(pid, "environ", PROC_ENVIRONMENT_BYTES, &size);

	if (!text)
		return NULL;
	// It ends early where the process hides a page (userfaultfd(2)).
	const bool is_cut = size < PROC_ENVIRONMENT_BYTES &&
	                    proc_find_environment(pid, &start, &end) && size < end - start;
	char *value = is_cut ? NULL : proc_find_variable(text, size, name);
	if (!value)
		errno = is_cut ? EIO : ENOENT;
	return value;
}

// Parses the n-th (from 1) of the space-separated fields that follow, as a number.
static bool parse_field(const char *text, int n, uint64_t *ret)
{
	for (int i = 1; i < n; i++) {
		text = strchr(text, ' ');
		if (!text)
			return false;
		text++;
	}
	char *end;
	*ret = strtoull(text, &end, 10);
	return end != text;
}

bool proc_parse_stat(const char *text, struct proc_stat *ret)
{
	// The name (field 2) may have spaces and parentheses in it: the last parenthesis counts.
	const char *rest = strrchr(text, ')');
	struct proc_stat stat;

	if (!rest || rest[1] != ' ' || rest[2] == '\0')
		return false;
	rest += 2; // field 3
	stat.state = *rest;
	if (!parse_field(rest, 9 - 2, &stat.flags) || !parse_field(rest, 20 - 2, &stat.n_threads) ||
	    !parse_field(rest, 22 - 2, &stat.start_time) ||
	    !parse_field(rest, 23 - 2, &stat.vsize_bytes) ||
	    !parse_field(rest, 26 - 2, &stat.start_code) ||
	    !parse_field(rest, 28 - 2, &stat.start_stack))
		return false;
	if (!parse_field(rest, 39 - 2, &stat.processor))
		stat.processor = UINT64_MAX;
	*ret = stat;
	return true;
}

bool proc_find_environment(int pid, uint64_t *ret_start, uint64_t *ret_end)
{
	char text[FILE_SIZE];
	uint64_t start, end;
	const char *rest =
	    read_text(-1, pid, pid, "stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;

	if (!rest || rest[1] != ' ' || !parse_field(rest + 2, 50 - 2, &start) ||
	    !parse_field(rest + 2, 51 - 2, &end) || start == 0 || start > end)
		return false;
	*ret_start = start;
	*ret_end = end;
	return true;
}

bool proc_read_stat(int fd, int pid, int tid, struct proc_stat *ret)
{
	char text[FILE_SIZE];

	if (!read_text(fd, pid, tid, "stat", text, sizeof(text)))
		return false;
	errno = EINVAL;
	return proc_parse_stat(text, ret);
}

// Returns the text after "\nKEY:\t", or NULL.
static const char *status_value(const char *text, const char *key)
{
	const size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0 && line[length] == ':')
			return line + length + 1 + strspn(line + length + 1, "\t ");
	}
	return NULL;
}

static int status_number(const char *text, const char *key)
{
	const char *value = status_value(text, key);

	return value ? atoi(value) : 0;
}

// Returns the last number of the key's line; 0: there is none. Sets *ret_n to how many there are.
static int status_last_number(const char *text, const char *key, int *ret_n)
{
	const char *value = status_value(text, key);
	int number = 0;

	*ret_n = 0;
	while (value && *value != '\0' && *value != '\n') {
		char *end;
		number = (int)strtol(value, &end, 10);
		++*ret_n;
		value = end + strspn(end, "\t ");
		if (*end != '\t' && *end != ' ')
			break;
	}
	return number;
}

static uint64_t status_signals(const char *text, const char *key)
{
	const char *value = status_value(text, key);

	return value ? strtoull(value, NULL, 16) : 0;
}

void proc_parse_status(const char *text, struct proc_status *ret)
{
	const char *state = status_value(text, "State"), *uid = status_value(text, "Uid");
	const char *gid = status_value(text, "Gid");
	int n_namespaces;

	*ret = (struct proc_status){
	    .state = state ? *state : '?',
	    .tgid = status_number(text, "Tgid"),
	    .ppid = status_number(text, "PPid"),
	    .tracer_pid = status_number(text, "TracerPid"),
	    .no_new_privs = status_number(text, "NoNewPrivs") != 0,
	    .seccomp = status_number(text, "Seccomp"),
	    .signals_pending = status_signals(text, "SigPnd") | status_signals(text, "ShdPnd"),
	    .signals_blocked = status_signals(text, "SigBlk"),
	    .signals_ignored = status_signals(text, "SigIgn"),
	    .signals_caught = status_signals(text, "SigCgt"),
	};
	ret->ns_pid = status_last_number(text, "NSpid", &n_namespaces);
	ret->has_own_pids = n_namespaces > 1;
	if (ret->ns_pid == 0)
		ret->ns_pid = ret->tgid; // a kernel without pid namespaces
	if (uid)
		sscanf(uid, "%u %u", &ret->uid, &ret->euid);
	if (gid)
		sscanf(gid, "%*u %u", &ret->egid);
}

bool proc_read_status(int pid, struct proc_status *ret)
{
	char path[PATH_SIZE], text[FILE_SIZE];

	// Without task/TID: this is asked before any thread is known, and for tids as well.
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !read_text(fd, pid, pid, "status", text, sizeof(text)))
		return false;
	proc_parse_status(text, ret);
	return true;
}

bool proc_read_name(int pid, int tid, char ret[PROC_NAME_SIZE])
{
	char text[PROC_NAME_SIZE];

	if (!read_text(-1, pid, tid, "comm", text, sizeof(text)))
		return false;
	const size_t length = strlen(text);
	if (length && text[length - 1] == '\n')
		text[length - 1] = '\0';
	memcpy(ret, text, sizeof(text));
	return true;
}

bool proc_read_wchan(int pid, int tid, char ret[PROC_NAME_SIZE])
{
	char text[PROC_NAME_SIZE];

	// It is "0" without permission, in a kernel without names, and if the thread does not
	// sleep.
	if (!read_text(-1, pid, tid, "wchan", text, sizeof(text)) || text[0] == '0')
		return false;
	memcpy(ret, text, sizeof(text));
	return true;
}

bool proc_read_schedstat(int fd, int pid, int tid, struct proc_schedstat *ret)
{
	char text[128], *end = text;
	uint64_t values[3];

	if (!read_text(fd, pid, tid, "schedstat", text, sizeof(text)))
		return false;
	for (size_t i = 0; i < array_size(values); i++)
		values[i] = strtoull(end, &end, 10);
	*ret = (struct proc_schedstat){values[0], values[1], values[2]};
	return true;
}

bool proc_parse_syscall(const char *text, struct proc_syscall *ret)
{
	struct proc_syscall call = {0};
	char *end;

	if (strncmp(text, "running", strlen("running")) == 0) {
		*ret = (struct proc_syscall){.running = true};
		return true;
	}
	call.nr = strtoll(text, &end, 10);
	if (end == text)
		return false;
	// "NR ARG0 ... ARG5 SP PC", or "-1 SP PC".
	for (int i = 0; call.nr != -1 && i < 6; i++)
		call.args[i] = strtoull(end, &end, 16);
	call.sp = strtoull(end, &end, 16);
	text = end;
	call.pc = strtoull(text, &end, 16);
	if (end == text)
		return false;
	*ret = call;
	return true;
}

bool proc_is_blocked(int fd, int pid, int tid)
{
	char text[sizeof("running")];

	return read_text(fd, pid, tid, "syscall", text, sizeof(text)) && text[0] != 'r';
}

bool proc_read_syscall(int fd, int pid, int tid, struct proc_syscall *ret)
{
	char text[256];

	if (!read_text(fd, pid, tid, "syscall", text, sizeof(text)))
		return false;
	errno = EINVAL;
	return proc_parse_syscall(text, ret);
}
