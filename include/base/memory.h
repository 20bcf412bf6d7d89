// SPDX-License-Identifier: MIT
// memory: allocation that cannot fail, growing arrays, scoped clean-up.
//
// Running out of memory ends the profiler with a message. That is safe for the target: the
// kernel detaches every tracee of a tracer that exits (ptrace(2)).
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Calls the function first when memory runs out. It may leave by longjmp(3); if it returns, the
// profiler ends.
void memory_on_exhaustion(void (*function)(void));

// As malloc and calloc, but never NULL; sizes in bytes.
void *memory_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *memory_alloc_zeroed(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
char *memory_strdup(const char *string) __attribute__((malloc, returns_nonnull));
char *memory_strndup(const char *string, size_t length) __attribute__((malloc, returns_nonnull));

// As asprintf: a new string, owned by the caller.
char *memory_printf(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
char *memory_vprintf(const char *format, va_list args)
    __attribute__((format(printf, 1, 0), returns_nonnull));

// Makes room for `need` elements of `size` bytes in `array`, whose capacity is `*capacity`, by
// doubling. Returns the array, moved or not.
void *memory_grow(void *array, size_t *capacity, size_t need, size_t size);

// array_push(items, n_items, capacity): room for one more element, as an lvalue.
#define array_push(array, count, capacity)                                                         \
	((array) = memory_grow((array), &(capacity), (count) + 1, sizeof(*(array))),               \
	 &(array)[(count)++])

#define array_size(array) (sizeof(array) / sizeof((array)[0]))

// The pointer's value; sets the pointer to NULL: ownership moves on.
#define take_pointer(pointer)                                                                      \
	__extension__({                                                                            \
		__typeof__(pointer) taken_ = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		taken_;                                                                            \
	})

static inline void memory_cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}
static inline void memory_cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
static inline void memory_cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}
#define _cleanup_free_ __attribute__((cleanup(memory_cleanup_free)))
#define _cleanup_close_ __attribute__((cleanup(memory_cleanup_close)))
#define _cleanup_fclose_ __attribute__((cleanup(memory_cleanup_fclose)))
