// SPDX-License-Identifier: MIT
// module_file: the module of a file that a process has mapped, which may be gone for a moment.
#pragma once

struct address_space;
struct mapping;
struct module;

// Opens the file of a mapping, which is not known yet, and adds its module. In the instant of an
// exec no file is there: one that is gone has a module without a file, and is looked for again each
// time that this is called, after pauses that double. The locations in that module are not those
// in the file's own, which is made once it is found, so nothing that was learned without the file
// is kept for its code.
struct module *module_file_add(struct address_space *space, const char *path,
                               const struct mapping *mapping);
