// write_html: a page of one profile, or of two (writer.h has the former as a format).
#pragma once

#include <stdio.h>

struct error;
struct report;

// Both with timelines. `base`, with which the other is compared; NULL: one alone.
struct error *write_html_diff(const struct report *base, const struct report *report, FILE *stream);
