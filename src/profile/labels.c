// SPDX-License-Identifier: MIT
#include "labels.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "profile.h"
#include "text.h"

enum { MAX_PART_BYTES = 256, MAX_TEXT_BYTES = 4096, MAX_SETS = 1 << 16 };

static const char TOO_LONG[] = LABELS_LACK "\ttoo long\n";
static const char ALIKE[] = LABELS_LACK "\talike or empty keys\n";
static const char TOO_MANY[] = LABELS_LACK "\ttoo many different ones\n";

static bool has_key(const char *text, const char *key)
{
	const size_t length = strlen(key);

	for (; text && *text; text = strchr(text, '\n') + 1)
		if (strncmp(text, key, length) == 0 && text[length] == '\t')
			return true;
	return false;
}

static void append(char **text, const char *added)
{
	char *longer = memory_printf("%s%s", *text ? *text : "", added);

	free(*text);
	*text = longer;
}

void labels_add(char **text, const char *key, const char *value)
{
	_cleanup_free_ char *clean_key = text_clean(key, strlen(key), MAX_PART_BYTES);
	_cleanup_free_ char *clean_value = text_clean(value, strlen(value), MAX_PART_BYTES);
	const bool fits = !*text || strlen(*text) <= MAX_TEXT_BYTES;

	if (fits && clean_key[0] && !has_key(*text, clean_key)) {
		_cleanup_free_ char *added = memory_printf("%s\t%s\n", clean_key, clean_value);
		append(text, added);
	} else if (!labels_lack(*text)) {
		append(text, fits ? ALIKE : TOO_LONG);
	}
}

bool labels_lack(const char *text)
{
	return has_key(text, LABELS_LACK);
}

static void labels_end(struct label *label)
{
	free(label->key);
	free(label->value);
	*label = (struct label){0};
}

bool labels_next(const char **at, struct label *label)
{
	labels_end(label);
	const char *tab = *at ? strchr(*at, '\t') : NULL;
	const char *end = tab ? strchr(tab, '\n') : NULL;
	if (!end)
		return false;
	label->key = memory_printf("%.*s", (int)(tab - *at), *at);
	label->value = memory_printf("%.*s", (int)(end - tab - 1), tab + 1);
	*at = end + 1;
	return true;
}

char *labels_find(const char *text, const char *key)
{
	struct label label = {0};

	while (labels_next(&text, &label))
		if (strcmp(label.key, key) == 0) {
			free(label.key);
			return label.value;
		}
	return NULL;
}

static bool labels_equal(const void *context, uint32_t id, const void *key)
{
	const struct profile *profile = context;

	return strcmp(profile->labels[id], key) == 0;
}

static uint32_t find_set(const struct profile *profile, const char *text)
{
	return hash_index_find(&profile->labels_index, hash_bytes(text, strlen(text)), labels_equal,
	                       profile, text);
}

static uint32_t add_set(struct profile *profile, const char *text)
{
	if (profile->n_labels == 0)
		*array_push(profile->labels, profile->n_labels, profile->labels_capacity) =
		    memory_strdup("");
	const uint32_t id = profile->n_labels;
	*array_push(profile->labels, profile->n_labels, profile->labels_capacity) =
	    memory_strdup(text);
	hash_index_insert(&profile->labels_index, hash_bytes(text, strlen(text)), id);
	return id;
}

uint32_t profile_intern_labels(struct profile *profile, const char *text)
{
	if (!text || !text[0])
		return LABELS_NONE;
	uint32_t id = find_set(profile, text);
	if (id == HASH_NONE && profile->n_labels >= MAX_SETS)
		id = find_set(profile, text = TOO_MANY);
	return id != HASH_NONE ? id : add_set(profile, text);
}

void profile_label_thread(struct profile *profile, uint32_t thread, uint32_t labels)
{
	profile->threads[thread].labels = labels;
}
