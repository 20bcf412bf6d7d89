// SPDX-License-Identifier: MIT
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory.h"
#include "text.h"

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
	struct proc_words words;
	_cleanup_free_ char *text = proc_read_whole(pid, "environ", PROC_ENVIRONMENT_BYTES, &size);

	if (!text)
		return NULL;
	// It ends early where the process hides a page (userfaultfd(2)).
	const bool is_cut = size < PROC_ENVIRONMENT_BYTES && proc_find_words(pid, &words) &&
	                    size < words.environment_end - words.environment;
	char *value = is_cut ? NULL : proc_find_variable(text, size, name);
	if (!value)
		errno = is_cut ? EIO : ENOENT;
	return value;
}

// Parses the number that follows, after spaces. NULL: there is none. Done by hand, as several files
// are read in each tick: strtoull and a search for each field were half of its instructions.
static inline const char *parse_number(const char *text, unsigned int base, uint64_t *ret)
{
	uint64_t number = 0;
	unsigned int digit;

	while (*text == ' ')
		text++;
	const bool negative = *text == '-';
	text += negative;
	if (base == 16 && text[0] == '0' && text[1] == 'x')
		text += 2;
	const char *const start = text;
	for (;; text++) {
		digit = (unsigned int)*text - '0'; // large if it is not a digit
		if (base == 16 && digit >= 10)
			digit =
			    (unsigned int)*text - 'a' < 6 ? (unsigned int)*text - 'a' + 10 : base;
		if (digit >= base)
			break;
		number = number * base + digit;
	}
	*ret = negative ? -number : number;
	return text > start ? text : NULL;
}

// Parses up to n numbers with spaces between; returns how many there are.
static size_t parse_numbers(const char *text, uint64_t *ret, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		text = parse_number(text, 10, &ret[i]);
		if (!text)
			return i;
	}
	return n;
}

// Fields of stat, numbered as in proc_pid_stat(5).
enum {
	STAT_PPID = 4, // the first number after the state
	STAT_FLAGS = 9,
	STAT_UTIME = 14,
	STAT_STIME = 15,
	STAT_CUTIME = 16,
	STAT_CSTIME = 17,
	STAT_N_THREADS = 20,
	STAT_START_TIME = 22,
	STAT_VSIZE = 23,
	STAT_START_CODE = 26,
	STAT_START_STACK = 28,
	STAT_PROCESSOR = 39,
	STAT_ARG_START = 48,
	STAT_ARG_END = 49,
	STAT_ENV_START = 50,
	STAT_ENV_END = 51,
	STAT_END,
};

// Parses the state and the numbers up to field `last`, which stand at their own indices; returns
// the index behind the last one that there is, 0: it is not the text of a stat file.
static int parse_stat(const char *text, int last, char *ret_state, uint64_t fields[STAT_END])
{
	// The name (field 2) may have spaces and parentheses in it: the last parenthesis counts.
	const char *rest = strrchr(text, ')');

	if (!rest || rest[1] != ' ' || rest[2] == '\0')
		return 0;
	*ret_state = rest[2];
	return STAT_PPID + (int)parse_numbers(rest + 3, fields + STAT_PPID, last + 1 - STAT_PPID);
}

bool proc_parse_stat(const char *text, struct proc_stat *ret)
{
	uint64_t fields[STAT_END];
	char state;
	const int end = parse_stat(text, STAT_PROCESSOR, &state, fields);

	if (end <= STAT_START_STACK)
		return false;
	*ret = (struct proc_stat){
	    .state = state,
	    .flags = fields[STAT_FLAGS],
	    .cpu_ticks = fields[STAT_UTIME] + fields[STAT_STIME],
	    .children_cpu_ticks = fields[STAT_CUTIME] + fields[STAT_CSTIME],
	    .n_threads = fields[STAT_N_THREADS],
	    .start_time = fields[STAT_START_TIME],
	    .vsize_bytes = fields[STAT_VSIZE],
	    .start_code = fields[STAT_START_CODE],
	    .start_stack = fields[STAT_START_STACK],
	    .processor = end > STAT_PROCESSOR ? fields[STAT_PROCESSOR] : UINT64_MAX,
	};
	return true;
}

bool proc_find_words(int pid, struct proc_words *ret)
{
	char text[FILE_SIZE], state;
	uint64_t fields[STAT_END];

	if (!read_text(-1, pid, pid, "stat", text, sizeof(text)) ||
	    parse_stat(text, STAT_ENV_END, &state, fields) <= STAT_ENV_END)
		return false;
	*ret = (struct proc_words){fields[STAT_ARG_START], fields[STAT_ARG_END],
	                           fields[STAT_ENV_START], fields[STAT_ENV_END]};
	return ret->arguments != 0 && ret->arguments <= ret->arguments_end &&
	       ret->environment != 0 && ret->environment <= ret->environment_end;
}

bool proc_read_stat(int fd, int pid, int tid, struct proc_stat *ret)
{
	char text[FILE_SIZE];

	if (!read_text(fd, pid, tid, "stat", text, sizeof(text)))
		return false;
	errno = EINVAL;
	return proc_parse_stat(text, ret);
}

bool proc_has_ended(int pid, int tid)
{
	struct proc_stat stat;

	return !proc_read_stat(-1, pid, tid, &stat) || stat.state == 'Z' || stat.state == 'X';
}

bool proc_is_stuck(int pid, int tid)
{
	struct proc_stat stat;

	return proc_read_stat(-1, pid, tid, &stat) &&
	       (stat.state == 'D' || stat.state == 'Z' || stat.state == 'X');
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
	_cleanup_close_ int fd = proc_open(pid, tid, "comm");

	return fd >= 0 && proc_read_name_of(fd, ret);
}

bool proc_read_name_of(int comm_fd, char ret[PROC_NAME_SIZE])
{
	char text[PROC_NAME_SIZE];

	if (!read_text(comm_fd, 0, 0, "comm", text, sizeof(text)))
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
	uint64_t values[3] = {0};
	char text[128];

	if (!read_text(fd, pid, tid, "schedstat", text, sizeof(text)))
		return false;
	parse_numbers(text, values, array_size(values));
	*ret = (struct proc_schedstat){values[0], values[1], values[2]};
	return true;
}

bool proc_counts_runs(void)
{
	const int pid = getpid();
	struct proc_schedstat own;

	return proc_read_schedstat(-1, pid, pid, &own) && own.runs > 0;
}

bool proc_is_kernels(uint64_t flags, const char *release)
{
	enum { IO_WORKER = 0x10, USER_WORKER = 0x4000 };
	char *end;
	const unsigned long major = strtoul(release, &end, 10);
	const unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

	if (major < 5 || (major == 5 && minor < 12))
		return false;
	return (flags & IO_WORKER) ||
	       ((flags & USER_WORKER) && (major > 6 || (major == 6 && minor >= 4)));
}

bool proc_parse_syscall(const char *text, struct proc_syscall *ret)
{
	struct proc_syscall call = {0};
	uint64_t number;

	if (text_begins_with(text, "running")) {
		*ret = (struct proc_syscall){.running = true};
		return true;
	}
	text = parse_number(text, 10, &number);
	call.nr = (int64_t)number;
	// "NR ARG0 ... ARG5 SP PC", or "-1 SP PC".
	for (int i = 0; text && call.nr != -1 && i < 6; i++)
		text = parse_number(text, 16, &call.args[i]);
	if (text)
		text = parse_number(text, 16, &call.sp);
	if (!text || !parse_number(text, 16, &call.pc))
		return false;
	*ret = call;
	return true;
}

long proc_parse_runnable(const char *text)
{
	uint64_t number;

	// The fourth field, runnable/all.
	for (int i = 0; text && i < 3; i++) {
		text = strchr(text, ' ');
		text = text ? text + 1 : NULL;
	}
	return text && parse_number(text, 10, &number) ? (long)number : -1;
}

long proc_parse_last_pid(const char *text)
{
	const char *last = strrchr(text, ' ');
	uint64_t number;

	return last && parse_number(last, 10, &number) && number <= INT_MAX ? (long)number : -1;
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

bool proc_read_memory(int tid, uint64_t address, void *buffer, size_t size)
{
	struct iovec local = {buffer, size}, remote = {(void *)(uintptr_t)address, size};

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}
