// SPDX-License-Identifier: MIT
#include "json_labels.h"

#include "json.h"
#include "labels.h"
#include "profile.h"

void json_labels_write(struct json *json, const struct profile *profile, uint32_t labels)
{
	const char *at = labels == LABELS_NONE ? "" : profile->labels[labels];
	struct label label = {0};

	json_key_open(json, "labels", '{');
	while (labels_next(&at, &label))
		json_key_string(json, label.key, label.value);
	json_close(json, '}');
}
