// SPDX-License-Identifier: MIT
// module_file: makes the module of a file that a process has mapped, and which may be gone for a
// moment.
#pragma once

struct address_space;
struct mapping;
struct module;

// Opens the file of a mapping that is not known yet, and adds its module. In the moment of an exec
// there is no file: a file that is gone has a module without a file, and is looked for again each
// time that this is called, after pauses that double. The locations in that module are not those in
// the file's own, which is made once it is found, so nothing that was learned without the file is
// kept for its code.
struct module *module_file_add(struct address_space *space, const char *path,
                               const struct mapping *mapping);
