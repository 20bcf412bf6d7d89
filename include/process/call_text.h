// SPDX-License-Identifier: MIT
// call_text: writes the system call that a thread waits in, with its arguments in words.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Reads the caller's memory for arguments that are there (times). False if it cannot be read.
struct call_memory {
	bool (*read)(void *context, uint64_t address, void *bytes, size_t size);
	void *context;
};

// Returns a new string, owned by the caller: "futex(0x7f2a10, FUTEX_WAIT_PRIVATE, 2)";
// "read(5 pipe:[4711])"; "poll(pipe:[1] +2, -1)"; "clock_nanosleep(CLOCK_REALTIME, 1.5 s)";
// "clock_nanosleep(CLOCK_MONOTONIC, 0.38 s left)", from now on.
// `descriptor`: what the call's descriptor is ("": not known).
char *call_text(int number, const uint64_t args[6], const char *descriptor,
                const struct call_memory *memory) __attribute__((returns_nonnull));

// Returns the same if the arguments are not known: "futex(...)", "read(pipe:[4711])".
char *call_text_name(int number, const char *descriptor) __attribute__((returns_nonnull));

enum { CALL_TEXT_DURATION_SIZE = 32 };

// Writes a duration as people say it: "0.38 s", "17.01 s", "4 min 2 s", "3:12:04", "5 d 3:12:04".
void call_text_duration(int64_t ns, char ret[CALL_TEXT_DURATION_SIZE]);

// What a call to futex(2) waits for.
enum futex_wish {
	FUTEX_WISH_NONE, // it does not wait
	FUTEX_WISH_WORD, // a change of the word
	FUTEX_WISH_PI,   // the lock whose holder is in the word, as the kernel knows it
};
enum futex_wish call_futex_wish(const uint64_t args[6]);

// True if the call to futex(2) ends by itself after a time.
bool call_futex_is_timed(const uint64_t args[6]);
