// SPDX-License-Identifier: MIT
#include "privileged_exec.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "command_file.h"
#include "memory.h"
#include "proc.h"
#include "syscall_registers.h"
#include "text.h"
#include "tracee_registers.h"

enum {
	// The kernel's MAX_ARG_STRINGS is even larger, but then so is the stack that is read.
	MAX_ARGUMENTS = 1 << 17,
	MAX_AUXV = 64,
	WORDS_AT_ONCE = 512,
	EXE_WORDS = 2,
};

// What is written into a thread to make it execute its program again.
struct again {
	struct thread_registers registers;
	uint64_t address; // where `code` goes, over the program's own
	uint64_t code[EXECVE_CODE_WORDS + EXE_WORDS];
};

static const char exe_path[EXE_WORDS * sizeof(uint64_t)] = "/proc/self/exe";

#define DESCRIPTORS "/dev/fd/"
#define OWN "/proc/self/"

static uint64_t n_lost;

bool privileged_exec_is_withheld(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &header, data) != 0 ||
	       !(data[0].effective & CAP_TO_MASK(CAP_SYS_PTRACE));
}

static bool mount_gives_none(const char *path)
{
	struct statvfs mount;

	return statvfs(path, &mount) == 0 && (mount.f_flag & ST_NOSUID);
}

// True if the file gives a process of these ids privileges (prepare_binprm's bprm_fill_uid in the
// kernel's fs/exec.c; file capabilities: capabilities(7)).
static bool file_gives(const char *path, const struct stat *file, uid_t uid, gid_t gid)
{
	if ((file->st_mode & S_ISUID) && file->st_uid != uid)
		return true;
	if ((file->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && file->st_gid != gid)
		return true;
	return getxattr(path, "security.capability", NULL, 0) > 0;
}

// Does the same for a path; for a script the interpreter counts (bprm_creds_from_file).
static bool path_would_gain(const char *path)
{
	struct script script;
	struct stat file;

	for (int i = 0; i < SCRIPT_MAX_DEPTH && script_read(path, &script); i++)
		path = script.interpreter;
	return stat(path, &file) == 0 && file_gives(path, &file, geteuid(), getegid()) &&
	       !mount_gives_none(path);
}

bool privileged_exec_would_gain(const char *command)
{
	_cleanup_free_ char *path = command_file_find(command);

	return path && path_would_gain(path);
}

// The stack of a program that has not begun: argc, argv, a zero word, envp, a zero word, pairs of
// the auxiliary vector (the psABI, Process Initialization).
struct start {
	uint64_t argv, envp;
	uint64_t execfn; // AT_EXECFN: the path that execve was given
};

// Finds the word after the next zero word; 0: it is too far, or unreadable.
static uint64_t skip_strings(int tid, uint64_t at)
{
	uint64_t words[WORDS_AT_ONCE];
	const uint64_t end = at + MAX_ARGUMENTS * sizeof(words[0]);

	for (; at < end; at += sizeof(words)) {
		size_t n = WORDS_AT_ONCE;
		while (n > 0 && !proc_read_memory(tid, at, words, n * sizeof(words[0])))
			n /= 2; // the stack ends there
		for (size_t i = 0; i < n; i++)
			if (words[i] == 0)
				return at + (i + 1) * sizeof(words[0]);
		if (n < WORDS_AT_ONCE)
			return 0;
	}
	return 0;
}

static bool read_start(int tid, uint64_t sp, struct start *ret)
{
	struct start start = {.argv = sp + sizeof(uint64_t)};
	uint64_t pair[2];

	start.envp = skip_strings(tid, start.argv);
	uint64_t at = start.envp ? skip_strings(tid, start.envp) : 0;
	for (int i = 0; at && i < MAX_AUXV; i++, at += sizeof(pair)) {
		if (!proc_read_memory(tid, at, pair, sizeof(pair)) || pair[0] == AT_NULL)
			break;
		if (pair[0] == AT_EXECFN)
			start.execfn = pair[1];
	}
	*ret = start;
	return start.execfn != 0;
}

// Reads a string of the program, which may lie at the very end of its stack.
static bool read_string(int tid, uint64_t address, char *buffer, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!proc_read_memory(tid, address + i, &buffer[i], 1))
			return false;
		if (buffer[i] == '\0')
			return true;
	}
	return false;
}

// Finds where the profiler sees the path that the thread's execve was given; descriptors of
// execveat have such a path, too (do_execveat_common).
static void see_path(int tid, const char *path, char *ret, size_t size)
{
	if (text_begins_with(path, DESCRIPTORS))
		snprintf(ret, size, "/proc/%d/fd/%s", tid, path + strlen(DESCRIPTORS));
	else if (text_begins_with(path, OWN))
		snprintf(ret, size, "/proc/%d/%s", tid, path + strlen(OWN));
	else
		snprintf(ret, size, "/proc/%d/%s/%s", tid, path[0] == '/' ? "root" : "cwd", path);
}

// True if executing the path again executes the same file. *ret_skip: how many arguments the kernel
// has put before the path, if it is a script.
static bool names_the_program(int tid, const char *path, const struct stat *program,
                              size_t *ret_skip)
{
	char seen[PATH_MAX + 64];
	struct script script;
	struct stat file;

	*ret_skip = 0;
	for (int i = 0; i <= SCRIPT_MAX_DEPTH; i++) {
		see_path(tid, path, seen, sizeof(seen));
		if (stat(seen, &file) == 0 && file.st_dev == program->st_dev &&
		    file.st_ino == program->st_ino)
			return true;
		if (!script_read(seen, &script))
			return false;
		*ret_skip += 1 + script.has_argument;
		path = script.interpreter;
	}
	return false;
}

// Skips what the kernel has put in place of a script's own first argument. The script's path, which
// comes last there, serves as the first argument as well.
static bool skip_arguments(int tid, size_t n, const char *path, struct start *start)
{
	char argument[PATH_MAX];
	uint64_t address;

	if (n == 0)
		return true;
	start->argv += n * sizeof(address);
	return start->argv < start->envp &&
	       proc_read_memory(tid, start->argv, &address, sizeof(address)) && address != 0 &&
	       read_string(tid, address, argument, sizeof(argument)) && strcmp(argument, path) == 0;
}

// Finds the path by which the program is to be executed again. If exec has closed the descriptor,
// it was not a script's: such a script could not be read (BINPRM_FLAGS_PATH_INACCESSIBLE).
static bool find_path(int tid, const struct stat *program, struct start *start, bool *ret_by_exe)
{
	char path[PATH_MAX];
	size_t skip;

	*ret_by_exe = false;
	if (!read_string(tid, start->execfn, path, sizeof(path)))
		return false;
	if (names_the_program(tid, path, program, &skip))
		return skip_arguments(tid, skip, path, start);
	*ret_by_exe = text_begins_with(path, DESCRIPTORS);
	return *ret_by_exe;
}

enum result {
	RESULT_NOTHING, // the program's file gives it none that it lacks
	RESULT_AGAIN,   // *ret says how to execute it again
	RESULT_LOST,    // it may have lost some, and executing it again is not sure to work
};

static enum result look(int tid, const struct thread_registers *registers, struct again *ret)
{
	char exe[64];
	struct proc_status status;
	struct stat program;
	struct start start;
	bool by_exe;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", tid);
	if (!proc_read_status(tid, &status))
		return RESULT_NOTHING; // the thread is gone
	if (stat(exe, &program) != 0)
		return RESULT_LOST; // a file that its user may execute, but not read
	if (!file_gives(exe, &program, status.euid, status.egid) || mount_gives_none(exe) ||
	    status.no_new_privs)
		return RESULT_NOTHING;
	if (!read_start(tid, thread_registers_sp(registers), &start) ||
	    !find_path(tid, &program, &start, &by_exe))
		return RESULT_LOST;
	*ret = (struct again){.registers = *registers, .address = thread_registers_pc(registers)};
	if (by_exe)
		start.execfn = ret->address + EXECVE_CODE_WORDS * sizeof(ret->code[0]);
	memcpy(&ret->code[EXECVE_CODE_WORDS], exe_path, sizeof(exe_path));
	thread_registers_execve(&ret->registers, start.execfn, start.argv, start.envp, ret->code);
	return RESULT_AGAIN;
}

void privileged_exec_restore(int tid)
{
	struct again again;
	struct thread_registers thread;
	enum result result = RESULT_LOST;

	if (!privileged_exec_is_withheld())
		return;
	if (tracee_registers_get(tid, &thread) && !thread_registers_are_32_bit(&thread))
		result = look(tid, &thread, &again);
	if (result == RESULT_AGAIN &&
	    !(tracee_registers_put_code(tid, again.address, again.code, array_size(again.code)) &&
	      tracee_registers_set(tid, &again.registers)))
		result = RESULT_LOST;
	n_lost += result == RESULT_LOST;
}

uint64_t privileged_exec_count_lost(void)
{
	return n_lost;
}
