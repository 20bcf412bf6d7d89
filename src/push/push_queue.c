// SPDX-License-Identifier: MIT
#include "push_queue.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "memory.h"
#include "text.h"

enum { MAX_WINDOWS = 100000 };

// name.sent-2+.pb.gz: two of its parts are sent, and the third may be.
#define SENT_MARK ".sent-"
#define MAYBE "+"

static const char *const suffixes[] = {".pb.gz", ".pb", ".pprof", ".wprof"};

void push_queue_deinit(struct push_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++)
		free(queue->items[i].path);
	free(queue->items);
	hash_index_deinit(&queue->index);
	*queue = (struct push_queue){0};
}

// The suffix of a profile's name; NULL: it is not one.
static const char *find_suffix(const char *name)
{
	const size_t length = strlen(name);

	for (size_t i = 0; i < array_size(suffixes); i++) {
		const size_t n = strlen(suffixes[i]);
		if (length > n && strcmp(name + length - n, suffixes[i]) == 0)
			return name + length - n;
	}
	return NULL;
}

// Where the mark begins that tells how many parts are sent; NULL: there is none.
static const char *find_mark(const char *path)
{
	const char *mark = NULL, *slash = strrchr(path, '/');

	for (const char *at = slash ? slash : path; (at = strstr(at, SENT_MARK)); at++)
		mark = at;
	return mark;
}

void push_queue_mark(struct push_window *window)
{
	const char *mark = find_mark(window->path), *suffix = find_suffix(window->path);

	if (!suffix)
		return;
	const int length = (int)((mark ? mark : suffix) - window->path);
	char *path;
	if (window->n_sent || window->may_be_there)
		path = memory_printf("%.*s" SENT_MARK "%zu%s%s", length, window->path,
		                     window->n_sent, window->may_be_there ? MAYBE : "", suffix);
	else
		path = memory_printf("%.*s%s", length, window->path, suffix);
	if (rename(window->path, path) == 0) {
		free(window->path);
		window->path = path;
	} else {
		free(path);
	}
}

static bool path_equal(const void *context, uint32_t i, const void *key)
{
	const struct push_queue *queue = context;

	return strcmp(queue->items[i].path, key) == 0;
}

static void add(struct push_queue *queue, const char *path, const struct stat *status)
{
	const uint64_t hash = hash_bytes(path, strlen(path));
	const uint32_t known = hash_index_find(&queue->index, hash, path_equal, queue, path);

	if (known != HASH_NONE) {
		queue->items[known].is_seen = true;
		return;
	}
	if (queue->count >= MAX_WINDOWS)
		return;
	hash_index_insert(&queue->index, hash, (uint32_t)queue->count);
	const char *mark = find_mark(path);
	char *end = NULL;
	const size_t n_sent = mark ? strtoul(mark + strlen(SENT_MARK), &end, 10) : 0;
	*array_push(queue->items, queue->count, queue->capacity) = (struct push_window){
	    .path = memory_strdup(path),
	    .size = (uint64_t)status->st_size,
	    .time_ns = status->st_mtim.tv_sec * NS_PER_SECOND + status->st_mtim.tv_nsec,
	    .is_seen = true,
	    .n_sent = n_sent,
	    .may_be_there = mark && text_begins_with(end, MAYBE),
	};
}

static bool look_into(struct push_queue *queue, const char *directory)
{
	DIR *entries = opendir(directory);

	if (!entries)
		return false;
	const size_t length = strlen(directory);
	const char *slash = length && directory[length - 1] == '/' ? "" : "/";
	for (const struct dirent *entry; (entry = readdir(entries));) {
		struct stat status;
		if (entry->d_name[0] == '.' || !find_suffix(entry->d_name) ||
		    fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		_cleanup_free_ char *path =
		    memory_printf("%s%s%s", directory, slash, entry->d_name);
		add(queue, path, &status);
	}
	closedir(entries);
	return true;
}

void push_queue_begin(struct push_queue *queue)
{
	hash_index_clear(&queue->index);
	for (size_t i = 0; i < queue->count; i++) {
		const char *path = queue->items[i].path;
		queue->items[i].is_seen = false;
		hash_index_insert(&queue->index, hash_bytes(path, strlen(path)), (uint32_t)i);
	}
}

bool push_queue_look(struct push_queue *queue, const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return false;
	if (S_ISDIR(status.st_mode))
		return look_into(queue, path);
	add(queue, path, &status);
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct push_window *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

void push_queue_end(struct push_queue *queue)
{
	size_t kept = 0;

	for (size_t i = 0; i < queue->count; i++) {
		if (queue->items[i].is_seen)
			queue->items[kept++] = queue->items[i];
		else
			free(queue->items[i].path);
	}
	queue->count = kept;
	if (kept > 0)
		qsort(queue->items, kept, sizeof(*queue->items), compare);
}

struct push_window *push_queue_next(struct push_queue *queue)
{
	struct push_window *next = NULL;

	for (size_t i = 0; i < queue->count; i++)
		if (!queue->items[i].is_done && (!next || queue->items[i].tries < next->tries))
			next = &queue->items[i];
	return next;
}

struct push_window *push_queue_oldest(struct push_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++)
		if (!queue->items[i].is_done)
			return &queue->items[i];
	return NULL;
}

size_t push_queue_waiting(const struct push_queue *queue, uint64_t *ret_bytes)
{
	size_t n = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < queue->count; i++) {
		if (queue->items[i].is_done)
			continue;
		n++;
		*ret_bytes += queue->items[i].size;
	}
	return n;
}

void push_queue_note_success(struct push_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++) {
		queue->items[i].n_overtaken += queue->items[i].has_failed;
		queue->items[i].has_failed = false;
	}
}
