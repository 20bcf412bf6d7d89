// SPDX-License-Identifier: MIT
// java_image: HotSpot as it is in memory, made by hand: its tables, a code heap with one piece of
// code of each kind, and two methods. The compiled one is Outer.run with Inner.work inlined. Two
// threads, of which one waits for a monitor that the other owns; objects of theirs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "java_layout.h"

enum {
	JAVA_IMAGE_BYTES = 1 << 16,
	// Where things are in it.
	JAVA_IMAGE_HEAP = 0x5000, // of code
	JAVA_IMAGE_COMPILED = 0x5400,
	JAVA_IMAGE_CODE = 0x5600, // of the compiled method
	JAVA_IMAGE_CODE_BYTES = 0x100,
	JAVA_IMAGE_RETURN = JAVA_IMAGE_CODE + 0x20, // of the call in the inlined one
	JAVA_IMAGE_DEOPT = JAVA_IMAGE_CODE + 0xf0,  // where its deoptimization begins
	JAVA_IMAGE_FRAME_BYTES = 0x30,
	JAVA_IMAGE_ORIG_PC = 0x10,
	JAVA_IMAGE_INTERPRETER = 0x6480, // an address in it
	JAVA_IMAGE_STUB = 0x6e80,
	JAVA_IMAGE_STUB_FRAME_BYTES = 0x20,
	JAVA_IMAGE_FRAMELESS = 0x7480,
	JAVA_IMAGE_CALL_STUB = 0x7a80, // where Java returns to it
	JAVA_IMAGE_OUTER = 0x9000,     // Methods
	JAVA_IMAGE_INNER = 0x9100,
	JAVA_IMAGE_CONST = 0x9200, // the ConstMethod of Outer.run; its bytecodes are behind it
	JAVA_IMAGE_CONST_BYTES = 0x40,
	JAVA_IMAGE_LINE = 100, // of Outer.run's bytecodes 0 to 4; the next ones have 107
	JAVA_IMAGE_STACK = 0xc000,
	JAVA_IMAGE_STACK_BYTES = 0x1000,
	JAVA_IMAGE_UNLOADED = 0xd040, // the counter of unloaded classes
	JAVA_IMAGE_COMPILE_ID = 7,
	JAVA_IMAGE_LARGE_BCI = 300, // of the call in Inner.work
	JAVA_IMAGE_OWNER = 0xa900,  // JavaThreads
	JAVA_IMAGE_WAITER = 0xab00,
	JAVA_IMAGE_PENDING = 64, // in a JavaThread: the monitor that it waits for
	JAVA_IMAGE_WAITING = 72,
	JAVA_IMAGE_OS_THREADS = 0xad00, // the numbers of the owner and, 64 bytes on, of the waiter
	JAVA_IMAGE_MONITOR = 0xae00,    // its owner is its first word
	JAVA_IMAGE_LOCK = 0xe600,      // an object: the monitor's, and what the waiter is parked on
	JAVA_IMAGE_COLLECTOR = 0xaf00, // a byte: it is active; 8 bytes on, how often it has been
};

struct java_image {
	uint8_t *bytes; // JAVA_IMAGE_BYTES
	bool is_new;    // as in JDK 25; else as in 17
};

// Builds all of it anew.
void java_image_build(struct java_image *image);

static inline uint64_t java_image_address(const struct java_image *image, uint32_t at)
{
	return (uint64_t)(uintptr_t)image->bytes + at;
}

// Writes a number, if it is in the image.
void java_image_put(struct java_image *image, uint32_t at, uint64_t value, uint32_t size);

// For struct java_source; its context is the image.
uint64_t java_image_variable(void *image, const char *name);
const char *java_image_string(void *image, uint64_t address);
