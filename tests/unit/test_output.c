// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "error.h"
#include "memory.h"
#include "output.h"
#include "unit.h"

enum { NOBODY = 65534 };

// Each test runs in an empty directory of its own.
static int enter_directory(void **state)
{
	char *directory = memory_strdup("/tmp/test_output.XXXXXX");

	*state = directory;
	umask(022);
	return mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int leave_directory(void **state)
{
	_cleanup_free_ char *directory = *state;
	_cleanup_free_ char *command = memory_printf("rm -rf '%s'", directory);

	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static size_t count_files(void)
{
	DIR *directory = opendir(".");
	size_t n = 0;

	assert_non_null(directory);
	while (readdir(directory))
		n++;
	closedir(directory);
	return n - 2;
}

static void put_file(const char *path, const char *text)
{
	_cleanup_fclose_ FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
}

static void assert_file(const char *path, const char *expected)
{
	char text[256];
	_cleanup_fclose_ FILE *file = fopen(path, "re");

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	assert_string_equal(text, expected);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

static struct output *open_output(const char *path)
{
	struct output *output = NULL;
	_cleanup_error_ struct error *error = output_open(path, false, &output);

	if (error)
		fail_msg("%s", error_message(error));
	return output;
}

static void assert_error(struct error *error, const char *expected)
{
	assert_non_null(error);
	if (!strstr(error_message(error), expected))
		fail_msg("not \"%s\" but: %s", expected, error_message(error));
	assert_int_equal(error_status(error), EXIT_STATUS_OUTPUT);
	error_destroy(error);
}

static void assert_refused(const char *path, const char *expected)
{
	struct output *output = NULL;

	assert_error(output_open(path, false, &output), expected);
	assert_null(output);
}

static void finish(struct output *output, const char *path)
{
	_cleanup_error_ struct error *error = output_finish(output, path);

	if (error)
		fail_msg("%s", error_message(error));
	output_destroy(output);
}

static void write_to(const char *path, const char *text)
{
	struct output *output = open_output(path);

	fputs(text, output_stream(output));
	finish(output, NULL);
}

static void test_new_file_stands_there_only_when_finished(void **state)
{
	struct output *output = open_output("new.folded");

	(void)state;
	assert_string_equal(output_name(output), "new.folded");
	fputs("a;b 1\n", output_stream(output));
	fflush(output_stream(output));
	assert_int_not_equal(access("new.folded", F_OK), 0);
	finish(output, NULL);
	assert_file("new.folded", "a;b 1\n");
	assert_int_equal(mode_of("new.folded"), S_IFREG | 0644);
	assert_int_equal(count_files(), 1);
}

static void test_umask_counts(void **state)
{
	(void)state;
	umask(077);
	write_to("private", "x");
	assert_int_equal(mode_of("private"), S_IFREG | 0600);
}

static void test_existing_file_is_kept_until_the_end(void **state)
{
	(void)state;
	put_file("old", "old");
	assert_int_equal(chmod("old", 0640), 0);
	struct output *output = open_output("old");
	fputs("new", output_stream(output));
	fflush(output_stream(output));
	assert_file("old", "old");
	finish(output, NULL);
	assert_file("old", "new");
	assert_int_equal(mode_of("old"), S_IFREG | 0640);
	assert_int_equal(count_files(), 1);
}

static void test_nothing_is_left_of_an_unfinished_file(void **state)
{
	(void)state;
	put_file("old", "old");
	struct output *output = open_output("old");
	fputs("new", output_stream(output));
	output_destroy(output);
	assert_file("old", "old");
	output_destroy(open_output("never"));
	output_destroy(open_output(NULL));
	output_destroy(NULL);
	assert_int_equal(count_files(), 1);
}

// However it ends: a run that is killed has no way to tidy up.
static void test_nothing_is_left_of_a_killed_run(void **state)
{
	int status;
	const int fd = open(".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);

	(void)state;
	if (fd < 0) {
		print_message("# this file system has no files without a name\n");
		return;
	}
	close(fd);
	put_file("old", "old");
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct output *outputs[] = {open_output("old"), open_output("never"),
		                            open_output(NULL)};
		for (size_t i = 0; i < array_size(outputs); i++) {
			fputs("new", output_stream(outputs[i]));
			fflush(output_stream(outputs[i]));
		}
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, SIGKILL);
	assert_file("old", "old");
	assert_int_equal(count_files(), 1);
}

// Without /proc, a file cannot be given a name afterwards.
static void test_file_with_a_name_of_its_own(void **state)
{
	int status;

	(void)state;
	if (geteuid() != 0) {
		print_message("# needs root for a place without /proc\n");
		return;
	}
	put_file("old", "old");
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (chroot(".") != 0 || chdir("/") != 0)
			_exit(1);
		struct output *output = open_output("old");
		fputs("new", output_stream(output));
		if (count_files() != 2)
			_exit(2);
		finish(output, NULL);
		write_to("/made", "made");
		output_destroy(open_output("never"));
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_file("old", "new");
	assert_file("made", "made");
	assert_int_equal(count_files(), 2);
}

static void test_name_given_at_the_end(void **state)
{
	struct output *output = open_output(NULL);

	(void)state;
	fputs("x", output_stream(output));
	_cleanup_error_ struct error *error = output_finish(output, "profiler.7.folded");
	assert_null(error);
	assert_string_equal(output_name(output), "profiler.7.folded");
	output_destroy(output);
	assert_file("profiler.7.folded", "x");
	assert_int_equal(count_files(), 1);
}

static void test_place_taken_at_the_end(void **state)
{
	struct output *output = open_output("place");

	(void)state;
	fputs("x", output_stream(output));
	assert_int_equal(mkdir("place", 0755), 0);
	assert_error(output_finish(output, NULL), "directory; the profile is kept beside it as .");
	output_destroy(output);
	assert_int_equal(count_files(), 2);
}

static void test_unusable_names(void **state)
{
	_cleanup_free_ char *long_name = memory_alloc_zeroed(1, 301);

	(void)state;
	memset(long_name, 'x', 300);
	put_file("file", "");
	assert_refused("", "its name is empty");
	assert_refused(".", "it is a directory");
	assert_refused("name/", "it is a directory");
	assert_refused("none/file", "there is no such directory");
	assert_refused("file/file", "there is no such directory");
	assert_refused(long_name, "File name too long");
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_refused("loop", "Too many levels");
}

// Runs `test` as a user without privileges, where this is root.
static void as_nobody(void (*test)(void))
{
	const bool is_root = geteuid() == 0;

	if (is_root)
		assert_int_equal(seteuid(NOBODY), 0);
	test();
	if (is_root)
		assert_int_equal(seteuid(0), 0);
}

static void check_permissions(void)
{
	assert_refused("closed/new", "no permission to create files in its directory");
	assert_refused("open/readonly", "Permission denied");
}

// As an output without a name is opened in the current directory.
static void check_nameless(void)
{
	struct output *output;

	assert_int_equal(chdir("closed"), 0);
	assert_error(output_open(NULL, false, &output), "files here: give -o FILE");
	assert_int_equal(chdir(".."), 0);
}

static void test_permissions(void **state)
{
	(void)state;
	assert_int_equal(chmod(".", 0755), 0);
	assert_int_equal(mkdir("closed", 0555), 0);
	assert_int_equal(mkdir("open", 0777), 0);
	assert_int_equal(chmod("open", 0777), 0);
	put_file("open/readonly", "old");
	assert_int_equal(chmod("open/readonly", 0444), 0);
	as_nobody(check_permissions);
	as_nobody(check_nameless);
	assert_file("open/readonly", "old");
}

static void test_links_stay_links(void **state)
{
	(void)state;
	assert_int_equal(mkdir("directory", 0755), 0);
	put_file("directory/file", "old");
	assert_int_equal(symlink("directory/file", "link"), 0);
	assert_int_equal(symlink("link", "link-to-link"), 0);
	write_to("link-to-link", "new");
	assert_file("directory/file", "new");
	assert_true(S_ISLNK(mode_of("link")));
	assert_true(S_ISLNK(mode_of("link-to-link")));
	assert_int_equal(symlink("directory/made", "dangling"), 0);
	write_to("dangling", "made");
	assert_file("directory/made", "made");
	assert_true(S_ISLNK(mode_of("dangling")));
}

// The link of another user in a directory such as /tmp. Only root can leave one here.
static void test_traps_are_not_followed(void **state)
{
	(void)state;
	put_file("precious", "old");
	assert_int_equal(mkdir("tmp", 0777), 0);
	assert_int_equal(chmod("tmp", 01777), 0);
	assert_int_equal(symlink("../precious", "tmp/trap"), 0);
	assert_int_equal(symlink("tmp/trap", "way"), 0);
	write_to("tmp/trap", "mine"); // one's own
	assert_file("precious", "mine");
	if (geteuid() != 0)
		return;
	assert_int_equal(lchown("tmp/trap", NOBODY, NOBODY), 0);
	assert_refused("tmp/trap", "another user");
	assert_refused("way", "another user");
	assert_file("precious", "mine");
	assert_int_equal(chmod("tmp", 0777), 0);
	write_to("tmp/trap", "yours");
	assert_file("precious", "yours");
}

// The same in the midst of a path, and behind links.
static void test_traps_on_the_way_are_not_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdir("tmp", 0777), 0);
	assert_int_equal(chmod("tmp", 01777), 0);
	assert_int_equal(mkdir("place", 0755), 0);
	assert_int_equal(symlink("../place", "tmp/trap"), 0);
	assert_int_equal(symlink("tmp/trap/file", "way"), 0);
	assert_int_equal(symlink("tmp/trap", "road"), 0);
	write_to("tmp/trap/file", "mine"); // one's own
	write_to("way", "mine");
	write_to("road/../place//./file", "mine too");
	assert_file("place/file", "mine too");
	write_to("/proc/self/cwd/place/file", "by way of proc");
	assert_file("place/file", "by way of proc");
	if (geteuid() != 0)
		return;
	assert_int_equal(lchown("tmp/trap", NOBODY, NOBODY), 0);
	assert_refused("tmp/trap/file", "another user");
	assert_refused("tmp/trap/new", "another user");
	assert_refused("way", "another user");
	assert_refused("road/file", "another user");
	assert_file("place/file", "by way of proc");
	assert_int_equal(mkfifo("tmp/pipe", 0666), 0);
	assert_int_equal(chown("tmp/pipe", NOBODY, NOBODY), 0);
	assert_refused("tmp/pipe", "another user");
}

static void test_links_in_circles(void **state)
{
	(void)state;
	assert_int_equal(symlink("b", "a"), 0);
	assert_int_equal(symlink("a", "b"), 0);
	assert_refused("a", "links");
	assert_refused("a/file", "links");
	put_file("file", "x");
	assert_refused("file/file", "directory");
	assert_refused("none/file", "directory");
}

static void test_devices_and_pipes_are_written_directly(void **state)
{
	char text[8] = "";

	(void)state;
	write_to("/dev/null", "x");
	assert_true(S_ISCHR(mode_of("/dev/null")));
	assert_int_equal(mkfifo("fifo", 0600), 0);
	const int reader = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	write_to("fifo", "x");
	assert_int_equal(read(reader, text, sizeof(text)), 1);
	assert_true(S_ISFIFO(mode_of("fifo")));
	close(reader);
	assert_int_equal(count_files(), 1);
}

static void test_socket_is_refused(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_refused("socket", "it is a socket");
}

static void test_full_disk(void **state)
{
	struct output *output = open_output("/dev/full");

	(void)state;
	// The reason is kept when the failure comes long before the end.
	for (int i = 0; i < 1 << 20; i++)
		fputc('x', output_stream(output));
	assert_true(ferror(output_stream(output)));
	errno = 0;
	assert_error(output_finish(output, NULL), "no space left");
	output_destroy(output);
}

static void test_closed_pipe(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	_cleanup_free_ char *path = memory_printf("/dev/fd/%d", fds[1]);
	_cleanup_free_ char *reader = memory_printf("/proc/self/fd/%d", fds[0]);
	struct output *output = open_output(path);
	assert_refused(reader, "not open for writing");
	close(fds[0]);
	fputs("x", output_stream(output));
	assert_error(output_finish(output, NULL), "the pipe is closed");
	output_destroy(output);
	close(fds[1]);
	assert_refused(path, "it is closed");
}

// A pipe that somebody else made non-blocking, and a reader that is slow.
static void test_full_pipe_is_waited_for(void **state)
{
	enum { BYTES = 1 << 20 };
	int fds[2];
	size_t n_read = 0;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	const pid_t child = fork();
	if (child == 0) {
		char text[512];
		ssize_t n;
		close(fds[1]);
		while ((n = read(fds[0], text, sizeof(text))) > 0)
			n_read += n;
		_exit(n_read == BYTES ? 0 : 1);
	}
	_cleanup_free_ char *path = memory_printf("/dev/fd/%d", fds[1]);
	struct output *output = open_output(path);
	for (int i = 0; i < BYTES; i++)
		fputc('x', output_stream(output));
	finish(output, NULL);
	close(fds[0]);
	close(fds[1]);
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

// `test` with stdout being `fd`.
static void with_stdout(int fd, void (*test)(void))
{
	fflush(stdout);
	_cleanup_close_ int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	if (fd >= 0)
		assert_int_equal(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
	else
		close(STDOUT_FILENO);
	test();
	assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
}

static void check_stdout(void)
{
	struct output *output = open_output("-");

	assert_string_equal(output_name(output), "stdout");
	fputs("one ", output_stream(output));
	finish(output, NULL);
	write_to("/dev/stdout", "two");
	assert_int_equal(fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE, O_WRONLY);
}

static void test_stdout(void **state)
{
	_cleanup_close_ int fd = open("redirected", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	(void)state;
	with_stdout(fd, check_stdout);
	assert_file("redirected", "one two");
}

static void check_closed_stdout(void)
{
	assert_refused("-", "cannot write stdout: it is closed");
}

static void test_closed_stdout(void **state)
{
	(void)state;
	with_stdout(-1, check_closed_stdout);
}

static void test_files_are_not_inherited(void **state)
{
	struct output *output = open_output("file");

	(void)state;
	assert_int_equal(system("ls -l /proc/self/fd | grep -q '\\.part$'") != 0, 1);
	output_destroy(output);
}

// A free name is found beside those that are there, which stay.
static void test_new_names(void **state)
{
	static const char *const names[] = {"p.1.html", "p.1-1.html", "p.1-2.html"};

	(void)state;
	put_file("p.1.html", "first");
	for (int i = 1; i < 3; i++) {
		struct output *output;
		assert_null(output_open(NULL, false, &output));
		assert_true(fputs("next", output_stream(output)) >= 0);
		assert_null(output_finish_new(output, "p.1", ".html"));
		assert_string_equal(output_name(output), names[i]);
		output_destroy(output);
	}
	assert_file(names[0], "first");
	assert_file(names[1], "next");
	assert_file(names[2], "next");
	assert_int_equal(count_files(), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_directory, leave_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_new_names),
	    TEST(test_new_file_stands_there_only_when_finished),
	    TEST(test_umask_counts),
	    TEST(test_existing_file_is_kept_until_the_end),
	    TEST(test_nothing_is_left_of_an_unfinished_file),
	    TEST(test_nothing_is_left_of_a_killed_run),
	    TEST(test_file_with_a_name_of_its_own),
	    TEST(test_name_given_at_the_end),
	    TEST(test_place_taken_at_the_end),
	    TEST(test_unusable_names),
	    TEST(test_permissions),
	    TEST(test_links_stay_links),
	    TEST(test_traps_are_not_followed),
	    TEST(test_traps_on_the_way_are_not_followed),
	    TEST(test_links_in_circles),
	    TEST(test_devices_and_pipes_are_written_directly),
	    TEST(test_socket_is_refused),
	    TEST(test_full_disk),
	    TEST(test_closed_pipe),
	    TEST(test_full_pipe_is_waited_for),
	    TEST(test_stdout),
	    TEST(test_closed_stdout),
	    TEST(test_files_are_not_inherited),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
