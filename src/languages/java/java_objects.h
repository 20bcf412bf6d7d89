// SPDX-License-Identifier: MIT
// java_objects: reads objects in HotSpot's heap.
//
// A collector moves objects. So they are read only if it does that while all threads stand still
// (Serial, Parallel, G1), and what was read counts only if no collection has begun meanwhile. An
// address is taken for a class if its first superclass is java.lang.Object.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "java_layout.h"
#include "java_memory.h"

// Where fields are in their objects; JAVA_NO_FIELD: not known yet.
struct java_fields {
	int32_t thread_blocker, thread_name, thread_native; // java.lang.Thread: parkBlocker, name,
	                                                    // eetop
	int32_t string_value, string_coder;                 // java.lang.String
	int32_t owner; // AbstractOwnableSynchronizer.exclusiveOwnerThread
};

struct java_objects {
	const struct java_layout *layout; // borrowed
	bool is_asked;                    // the options were read
	bool is_readable;
	bool has_narrow_oops, has_narrow_classes, has_compact_heads;
	uint64_t oop_base, class_base, low, high; // of the heap
	uint32_t oop_shift, class_shift;
	uint64_t heap;
	uint32_t collections; // when reading began
	// Classes.
	uint64_t object_class, thread_class, string_class, synchronizer_class;
	struct java_fields fields;
	unsigned int n_tries; // to find the classes
};

void java_objects_init(struct java_objects *objects, const struct java_layout *layout);

// Begins to read objects. `thread` leads to a java.lang.Thread (java_thread_state.object). Sets
// *ret_thread to that object. False if objects cannot be read now.
bool java_objects_begin(struct java_objects *objects, const struct java_memory *memory,
                        uint64_t thread, uint64_t *ret_thread);

// True if nothing has moved since that began.
bool java_objects_hold(const struct java_objects *objects, const struct java_memory *memory);

// Returns the object that a variable in HotSpot refers to, such as JavaThread._threadObj; 0: none,
// or it cannot be read.
uint64_t java_objects_of_handle(const struct java_objects *objects,
                                const struct java_memory *memory, uint64_t handle);

// Returns the object in that field of an object; 0: none, or it cannot be read.
uint64_t java_objects_get(const struct java_objects *objects, const struct java_memory *memory,
                          uint64_t object, int32_t field);

// Returns the object's class; 0: it cannot be read, or is none.
uint64_t java_objects_class(const struct java_objects *objects, const struct java_memory *memory,
                            uint64_t object);

// True if the class is a subclass of AbstractOwnableSynchronizer.
bool java_objects_is_synchronizer(struct java_objects *objects, const struct java_memory *memory,
                                  uint64_t class);

// Returns the class's name as Java has it ("java.lang.Object"), as a new string; NULL: it cannot be
// read.
char *java_objects_class_name(const struct java_objects *objects, const struct java_memory *memory,
                              uint64_t class);

// Returns a java.lang.String as a new string; NULL: it cannot be read, or is empty.
char *java_objects_string(struct java_objects *objects, const struct java_memory *memory,
                          uint64_t string);
