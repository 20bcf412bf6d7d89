// SPDX-License-Identifier: MIT
// push_answer: decides what a server's answer means for a window.
#pragma once

#include "delivery.h"

struct http_answer;
struct push_format;

// Returns what became of the request. *ret_text is the reason as one clean line; NULL: there is
// none. The caller frees it. After VERDICT_SENT it is the server's warning.
enum verdict push_answer_judge(const struct push_format *format, const struct http_answer *answer,
                               char **ret_text);
