// SPDX-License-Identifier: MIT
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "error.h"
#include "memory.h"
#include "writing.h"

enum {
	MAX_LINKS = 40, // the kernel's own limit (MAXSYMLINKS)
	MAX_TEMPORARY_NAMES = 100,
	MAX_FREE_NAMES = 10000,
	BUFFER_BYTES = 64 * 1024,
	NEW_FILE_MODE = 0666, // less what the umask takes away
};

#define STDOUT_NAME "stdout"

struct output {
	char *name;      // for messages
	int directory;   // O_PATH; -1 where none is needed
	char *base;      // the file's name in the directory
	int n_links;     // links followed on the way to it
	bool nameless;   // the file has no name until it is finished
	bool published;  // it is in its place before
	bool is_text;    // output_set_text
	char *temporary; // its name until it is finished; NULL: it has none
	int fd;
	int write_errno; // of the first write that failed; 0: none has
	FILE *stream;    // writes to fd
};

static struct error *refuse(const struct output *output, const char *reason)
{
	return error_create(EXIT_STATUS_OUTPUT, "cannot write %s: %s", output->name, reason);
}

static struct error *refuse_errno(const struct output *output, int number)
{
	switch (number) {
	case EISDIR:
		return refuse(output, "it is a directory");
	case ENOENT:
	case ENOTDIR:
		return refuse(output, "there is no such directory");
	case EROFS:
		return refuse(output, "its file system is read-only");
	case ENOSPC:
	case EDQUOT:
		return refuse(output, "there is no space left on its disk");
	case EPIPE:
		return output->is_text
		           ? error_create(EXIT_STATUS_UNREAD, "%s is not read", output->name)
		           : refuse(output, "the pipe is closed at its other end");
	case EBADF:
		return refuse(output, "it is closed");
	default:
		return refuse(output, writing_failure(number));
	}
}

// Writes for the stream, as stdio's own writer would do three things wrong: it forgets why a write
// failed, gives up on a pipe that somebody who shares it made non-blocking, and waits for ever for
// a reader that never reads.
static ssize_t write_some(void *cookie, const char *bytes, size_t size)
{
	struct output *output = cookie;

	if (output->write_errno == 0)
		output->write_errno = writing_write(output->fd, bytes, size);
	return output->write_errno == 0 ? (ssize_t)size : 0;
}

static struct error *open_stream(struct output *output)
{
	output->stream = fopencookie(output, "w", (cookie_io_functions_t){.write = write_some});
	if (!output->stream)
		return refuse_errno(output, errno);
	setvbuf(output->stream, NULL, _IOFBF, BUFFER_BYTES);
	return NULL;
}

// Writes to what a descriptor that is already open refers to. Opening its name in /proc or /dev
// again would cut off or skip what others write to it, and fails for sockets.
static struct error *use_descriptor(struct output *output, int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return refuse_errno(output, errno);
	if ((flags & O_ACCMODE) == O_RDONLY || flags & O_PATH)
		return refuse(output, "it is not open for writing");
	output->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (output->fd < 0)
		return refuse_errno(output, errno);
	return NULL;
}

// Returns the descriptor that the path names, or -1: "-", /dev/stdout, /dev/fd/63 (which shells
// give for a process substitution).
static int named_descriptor(const char *path)
{
	static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};

	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < array_size(directories); i++) {
		const size_t length = strlen(directories[i]);
		const char *number = path + length;
		char *end;
		if (strncmp(path, directories[i], length) != 0 || *number < '0' || *number > '9')
			continue;
		const unsigned long fd = strtoul(number, &end, 10);
		return *end == '\0' && fd <= INT_MAX ? (int)fd : -1;
	}
	return -1;
}

// True if the link must not be followed: somebody else left it in a directory such as /tmp. This is
// the rule of fs.protected_symlinks in proc_sys_fs(5), which the kernel may have switched off.
static bool is_trap(const struct output *output, const struct stat *link)
{
	struct stat directory;

	if (fstat(output->directory, &directory) != 0)
		return true;
	if (!(directory.st_mode & S_ISVTX) || !(directory.st_mode & S_IWOTH))
		return false;
	return link->st_uid != geteuid() && link->st_uid != directory.st_uid;
}

static bool is_in_proc(const struct output *output)
{
	struct statfs statfs;

	return fstatfs(output->directory, &statfs) == 0 && statfs.f_type == PROC_SUPER_MAGIC;
}

// Takes over the descriptor of a directory, in which the next names are looked up.
static void set_directory(struct output *output, int fd)
{
	if (output->directory >= 0)
		close(output->directory);
	output->directory = fd;
}

static struct error *enter_path(struct output *output, const char *path);

// Opens a link of /proc as the kernel does: its text is not where it leads.
static struct error *enter_proc_link(struct output *output, const char *name)
{
	const int fd = openat(output->directory, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return refuse_errno(output, errno);
	set_directory(output, fd);
	return NULL;
}

// Reads a link, and counts it, if it may be followed.
static struct error *read_link(struct output *output, int fd, const char *name,
                               const struct stat *link, char target[PATH_MAX])
{
	if (is_trap(output, link))
		return refuse(output, "it is a link that another user left in a directory that all "
		                      "may write to, or leads through one");
	if (++output->n_links > MAX_LINKS)
		return refuse_errno(output, ELOOP);
	const ssize_t length = readlinkat(fd, name, target, PATH_MAX - 1);
	if (length < 0)
		return refuse_errno(output, errno);
	target[length] = '\0';
	return NULL;
}

// Enters the directory of that name, which is one component of a path.
static struct error *enter(struct output *output, const char *name)
{
	char target[PATH_MAX];
	struct stat status;
	_cleanup_close_ int fd = openat(output->directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) != 0)
		return refuse_errno(output, errno);
	if (S_ISDIR(status.st_mode)) {
		set_directory(output, fd);
		fd = -1;
		return NULL;
	}
	if (!S_ISLNK(status.st_mode))
		return refuse_errno(output, ENOTDIR);
	if (is_in_proc(output))
		return enter_proc_link(output, name);
	struct error *error = read_link(output, fd, "", &status, target);
	return error ? error : enter_path(output, target);
}

// Enters the directory step by step: the kernel would follow links within a path whoever left them.
static struct error *enter_path(struct output *output, const char *path)
{
	_cleanup_free_ char *copy = memory_strdup(path);
	struct error *error = NULL;
	char *save = NULL;

	if (path[0] == '/' || output->directory < 0) {
		const int fd = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return refuse_errno(output, errno);
		set_directory(output, fd);
	}
	for (char *name = strtok_r(copy, "/", &save); name && !error;
	     name = strtok_r(NULL, "/", &save))
		error = enter(output, name);
	return error;
}

struct error *output_check_directory(const char *path)
{
	struct output output = {.name = (char *)path, .directory = -1};
	struct error *error = enter_path(&output, path);

	if (output.directory >= 0)
		close(output.directory);
	return error;
}

// Enters the directory of `path`, and keeps the last component as the file's name.
static struct error *set_place(struct output *output, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	_cleanup_free_ char *directory =
	    slash ? memory_strndup(path, slash + 1 - path) : memory_strdup("");

	if (path[0] == '\0')
		return refuse(output, "its name is empty");
	if (base[0] == '\0')
		return refuse_errno(output, EISDIR);
	struct error *error = enter_path(output, directory);
	if (error)
		return error;
	free(output->base);
	output->base = memory_strdup(base);
	return NULL;
}

// Follows links to the file itself, so that the file is replaced and never a link to it. *ret tells
// what stands there; its mode is 0 if nothing does.
static struct error *follow_links(struct output *output, struct stat *ret)
{
	for (;;) {
		char target[PATH_MAX];

		if (fstatat(output->directory, output->base, ret, AT_SYMLINK_NOFOLLOW) != 0) {
			if (errno != ENOENT)
				return refuse_errno(output, errno);
			ret->st_mode = 0;
			return NULL;
		}
		if (!S_ISLNK(ret->st_mode) || is_in_proc(output))
			return NULL;
		struct error *error =
		    read_link(output, output->directory, output->base, ret, target);
		if (!error)
			error = set_place(output, target);
		if (error)
			return error;
	}
}

// Opens the file. Waits for the reader of a named pipe, as a shell's redirection does, but lets
// signals end the wait.
static int await_reader(const struct output *output, int flags)
{
	for (;;) {
		const int fd = openat(output->directory, output->base, flags | O_NONBLOCK);
		if (fd >= 0 || errno != ENXIO)
			return fd;
		if (writing_pause()) {
			errno = EINTR;
			return -1;
		}
	}
}

static struct error *open_directly(struct output *output, int more_flags)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | more_flags;
	struct stat found;

	const bool is_pipe =
	    fstatat(output->directory, output->base, &found, 0) == 0 && S_ISFIFO(found.st_mode);
	output->fd =
	    is_pipe ? await_reader(output, flags) : openat(output->directory, output->base, flags);
	if (output->fd >= 0)
		return NULL;
	if (errno == ENXIO)
		return refuse(output, "it is a socket or a device that is not there");
	return refuse_errno(output, errno);
}

static struct error *refuse_creation(const struct output *output, int number)
{
	if (is_in_proc(output))
		return refuse(output, "no files can be created in /proc");
	if (number != EACCES && number != EPERM)
		return refuse_errno(output, number);
	return refuse(output, output->base ? "no permission to create files in its directory"
	                                   : "no permission to create files here: give -o FILE");
}

static char *temporary_name(void)
{
	uint32_t number = 0;

	while (getrandom(&number, sizeof(number), 0) != sizeof(number) && errno == EINTR)
		;
	return memory_printf(".profiler.%08" PRIx32 ".part", number);
}

static struct error *create_named(struct output *output)
{
	for (int i = 0; i < MAX_TEMPORARY_NAMES; i++) {
		_cleanup_free_ char *name = temporary_name();
		output->fd = openat(output->directory, name,
		                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, NEW_FILE_MODE);
		if (output->fd >= 0) {
			output->temporary = take_pointer(name);
			return NULL;
		}
		if (errno != EEXIST)
			break;
	}
	return refuse_creation(output, errno);
}

// Returns the path by which a file without a name can be given one (open(2), O_TMPFILE).
static char *descriptor_path(int fd)
{
	return memory_printf("/proc/self/fd/%d", fd);
}

// Creates the file that is written until it is finished. It has no name where the file system
// allows that: then nothing is left of it however the profiler ends.
static struct error *create_temporary(struct output *output)
{
	output->fd =
	    openat(output->directory, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, NEW_FILE_MODE);
	if (output->fd < 0)
		return create_named(output);
	_cleanup_free_ char *path = descriptor_path(output->fd);
	if (access(path, F_OK) == 0) {
		output->nameless = true;
		return NULL;
	}
	close(output->fd); // without /proc it could never be given a name
	return create_named(output);
}

// Gives the new file the permissions of the one that it replaces, but, if that one belongs to
// somebody else, no more than it had itself.
static void take_over_mode(const struct output *output, const struct stat *replaced)
{
	struct stat made;

	if (fstat(output->fd, &made) != 0)
		return;
	mode_t mode = replaced->st_mode & 0777;
	if (replaced->st_uid != made.st_uid)
		mode &= made.st_mode;
	// Some network file systems do not allow it: there the umask's mode stays.
	if (fchmod(output->fd, mode) != 0)
		return;
}

static struct error *open_path(struct output *output, const char *path)
{
	struct stat found;
	struct error *error = set_place(output, path);

	if (!error)
		error = follow_links(output, &found);
	if (error)
		return error;
	if (found.st_mode == 0)
		return create_temporary(output);
	if (S_ISDIR(found.st_mode))
		return refuse_errno(output, EISDIR);
	if (S_ISLNK(found.st_mode))
		return open_directly(output, O_TRUNC);
	if (S_ISFIFO(found.st_mode) && is_trap(output, &found))
		return refuse(output, "it is a pipe that another user left in a directory that all "
		                      "may write to");
	if (!S_ISREG(found.st_mode))
		return open_directly(output, O_NOFOLLOW);
	// A rename needs no permission for the file that it replaces: one that is read-only would
	// be lost.
	if (faccessat(output->directory, output->base, W_OK, AT_EACCESS) != 0)
		return refuse_errno(output, errno);
	error = create_temporary(output);
	if (!error)
		take_over_mode(output, &found);
	return error;
}

static struct error *open_nameless(struct output *output)
{
	output->directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (output->directory < 0)
		return refuse_errno(output, errno);
	return create_temporary(output);
}

static struct error *open_any(struct output *output, const char *path)
{
	if (!path)
		return open_nameless(output);
	const int fd = named_descriptor(path);
	if (fd >= 0)
		return use_descriptor(output, fd);
	return open_path(output, path);
}

struct error *output_open(const char *path, bool binary, struct output **ret)
{
	struct output *output = memory_alloc_zeroed(1, sizeof(*output));

	output->name = memory_strdup(!path                    ? "the profile"
	                             : strcmp(path, "-") == 0 ? STDOUT_NAME
	                                                      : path);
	output->directory = -1;
	output->fd = -1;
	struct error *error = open_any(output, path);
	if (!error && binary && isatty(output->fd))
		error = refuse(output, "it is a terminal, and this format is not text: name a file "
		                       "with -o FILE, or choose --format=folded");
	if (!error)
		error = open_stream(output);
	if (error)
		output_destroy(output);
	else
		*ret = output;
	return error;
}

FILE *output_stream(struct output *output)
{
	return output->stream;
}

// Gives the file its name, or, if something has that name, a temporary one to be renamed. Returns
// 0, or an errno.
static int link_name(struct output *output)
{
	_cleanup_free_ char *path = descriptor_path(output->fd);
	const char *name = output->base;

	for (int i = 0; i < MAX_TEMPORARY_NAMES; i++) {
		if (linkat(AT_FDCWD, path, output->directory, name, AT_SYMLINK_FOLLOW) == 0) {
			output->nameless = false;
			return 0;
		}
		if (errno != EEXIST)
			break;
		free(output->temporary);
		name = output->temporary = temporary_name();
	}
	const int number = errno;
	free(take_pointer(output->temporary));
	return number;
}

// The directory may have been removed and made anew meanwhile, as by the command that was sampled.
static bool find_place_again(struct output *output)
{
	close(output->directory);
	output->directory = -1;
	struct error *error = set_place(output, output->name);
	error_destroy(error);
	return !error;
}

static struct error *give_name(struct output *output)
{
	int number = link_name(output);

	if (number == ENOENT && find_place_again(output))
		number = link_name(output);
	return number ? refuse_creation(output, number) : NULL;
}

static struct error *close_stream(struct output *output)
{
	const bool failed = fflush(output->stream) != 0 || ferror(output->stream);
	struct error *error = NULL;

	fclose(take_pointer(output->stream));
	if (failed)
		return refuse_errno(output, output->write_errno ? output->write_errno : EIO);
	if (output->nameless)
		error = give_name(output);
	// A network file system may report a full disk only here.
	if (close(output->fd) != 0 && errno != EINTR && !error)
		error = refuse_errno(output, errno);
	output->fd = -1;
	return error;
}

static struct error *put_in_place(struct output *output)
{
	_cleanup_free_ char *temporary = take_pointer(output->temporary);

	if (renameat(output->directory, temporary, output->directory, output->base) == 0)
		return NULL;
	// The measurement may not be repeatable: the file stays where it is.
	return error_create(
	    EXIT_STATUS_OUTPUT, "cannot write %s: %s; the profile is kept beside it as %s",
	    output->name, errno == EISDIR ? "it is a directory" : strerror(errno), temporary);
}

static void set_name(struct output *output, const char *path)
{
	free(output->name);
	free(output->base);
	output->name = memory_strdup(path);
	output->base = memory_strdup(path);
}

void output_set_text(struct output *output)
{
	output->is_text = true;
}

int output_fd(const struct output *output)
{
	return output->fd;
}

struct error *output_publish(struct output *output, const char *path)
{
	struct error *error = NULL;

	if (path)
		set_name(output, path);
	if (output->nameless)
		error = give_name(output);
	if (!error && output->temporary)
		error = put_in_place(output);
	output->published = !error;
	return error;
}

struct error *output_refuse(const struct output *output, int number)
{
	if (!output->published)
		return refuse(output, writing_failure(number));
	return error_create(EXIT_STATUS_OUTPUT,
	                    "cannot continue writing %s: %s; it holds what was recorded before",
	                    output->name, writing_failure(number));
}

struct error *output_finish(struct output *output, const char *path)
{
	if (path)
		set_name(output, path);
	struct error *error = close_stream(output);
	if (!error && output->temporary)
		error = put_in_place(output);
	return error;
}

// Gives the file its name, unless something has that. Returns 0, or an errno.
static int take_name(struct output *output)
{
	if (output->nameless) {
		_cleanup_free_ char *path = descriptor_path(output->fd);
		if (linkat(AT_FDCWD, path, output->directory, output->base, AT_SYMLINK_FOLLOW) != 0)
			return errno;
		output->nameless = false;
		return 0;
	}
	if (linkat(output->directory, output->temporary, output->directory, output->base, 0) != 0)
		return errno;
	unlinkat(output->directory, output->temporary, 0);
	free(take_pointer(output->temporary));
	return 0;
}

struct error *output_finish_new(struct output *output, const char *stem, const char *suffix)
{
	int number = EEXIST;

	// What could not be written is said by output_finish, and gets no name.
	if (fflush(output->stream) != 0 || ferror(output->stream))
		return output_finish(output, NULL);
	for (int i = 0; i < MAX_FREE_NAMES && number == EEXIST; i++) {
		_cleanup_free_ char *name = i ? memory_printf("%s-%d%s", stem, i, suffix)
		                              : memory_printf("%s%s", stem, suffix);
		set_name(output, name);
		number = take_name(output);
	}
	return number ? refuse_creation(output, number) : output_finish(output, NULL);
}

const char *output_name(const struct output *output)
{
	return output->name;
}

void output_destroy(struct output *output)
{
	if (!output)
		return;
	if (output->stream) {
		__fpurge(output->stream); // half a profile is useless
		fclose(output->stream);
	}
	if (output->fd >= 0)
		close(output->fd);
	if (output->temporary)
		unlinkat(output->directory, output->temporary, 0);
	if (output->directory >= 0)
		close(output->directory);
	free(output->temporary);
	free(output->base);
	free(output->name);
	free(output);
}

struct error *output_end(struct output *output, struct error *error)
{
	if (!error)
		error = output_finish(output, NULL);
	output_destroy(output);
	return error;
}
