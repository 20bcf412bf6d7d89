// options_check: do the options that say what is written go together?
#pragma once

struct error;
struct options;

// An error says which do not.
struct error *options_check_outputs(const struct options *options);
