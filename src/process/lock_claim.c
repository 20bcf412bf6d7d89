// SPDX-License-Identifier: MIT
// The layouts are those of glibc since 2.25 and of musl (src/internal/pthread_impl.h). glibc's are
// part of its ABI, since programs hold such locks: sysdeps/x86/nptl/bits/struct_mutex.h (read as of
// 2.31) and struct_rwlock.h (as of 2.42). The tests run 2.36; 2.31, 2.41 and 2.43 were tried. Not
// part of the ABI are a thread's descriptor, which must name itself, and what stdio's lock holds
// (stdio-lock.h, as of 2.29). Each owner that is told was found to be a living thread's tid.
#include "lock_claim.h"

#include <linux/futex.h>
#include <string.h>

#include "call_text.h"
#include "lock_look.h"
#include "memory.h"
#include "text.h"

enum {
	// Words from the futex on.
	MUTEX_COUNT = 1,
	MUTEX_OWNER = 2,
	MUTEX_USERS = 3,
	MUTEX_KIND = 4,
	MUSL_MUTEX_TYPE = -1,
	MUSL_TYPE_MASK = 15,
	MUSL_RWLOCK_WRITTEN = 0x7fffffff, // else the number of readers

	MUTEX_KIND_BITS = 0x3ff,
	MUTEX_ROBUST = 0x10,
	MUTEX_SHARED = 0x80,
	MUTEX_CONTENDED = 2, // a value of the futex of a mutex that is not a PI mutex
	MAX_USERS = 1 << 20,

	// Words of struct __pthread_rwlock_arch_t.
	RWLOCK_READERS = 0,
	RWLOCK_READ_FUTEX = 2,
	RWLOCK_WRITE_FUTEX = 3,
	RWLOCK_PAD = 4, // two words
	RWLOCK_WRITER = 6,
	RWLOCK_SHARED = 7,
	RWLOCK_READER_SHIFT = 3, // of the count in its word
	RWLOCK_WAITED = 3,       // 1 with the bit for "somebody waits" (2)
	RWLOCK_DRAINED = 2,      // 0 with it: a writer waits for the readers to leave

	WORD_BYTES = 4,
	TID_MASK = FUTEX_TID_MASK,
};

const char *lock_what_name(enum lock_what what)
{
	static const char *const names[N_LOCK_WHATS] = {
	    "",          "mutex",   "rwlock",
	    "stream",    "join",    "condition",
	    "semaphore", "barrier", "static initialization",
	    "file_lock", "child",   "process",
	    "pipe",      "socket",  "lock",
	    "monitor",
	};

	return names[what];
}

enum lock_hint lock_hint_of(const char *function)
{
	static const struct {
		const char *begin;
		enum lock_hint hint;
	} hints[] = {
	    {"pthread_mutex_lock", LOCK_HINT_MUTEX},
	    {"pthread_mutex_timedlock", LOCK_HINT_MUTEX},
	    {"pthread_mutex_clocklock", LOCK_HINT_MUTEX},
	    {"pthread_mutex_cond_lock", LOCK_HINT_MUTEX},
	    {"mtx_lock", LOCK_HINT_MUTEX},
	    {"mtx_timedlock", LOCK_HINT_MUTEX},
	    {"pthread_rwlock_rdlock", LOCK_HINT_READ},
	    {"pthread_rwlock_timedrdlock", LOCK_HINT_READ},
	    {"pthread_rwlock_clockrdlock", LOCK_HINT_READ},
	    {"pthread_rwlock_wrlock", LOCK_HINT_WRITE},
	    {"pthread_rwlock_timedwrlock", LOCK_HINT_WRITE},
	    {"pthread_rwlock_clockwrlock", LOCK_HINT_WRITE},
	    {"pthread_join", LOCK_HINT_JOIN},
	    {"pthread_timedjoin", LOCK_HINT_JOIN},
	    {"pthread_clockjoin", LOCK_HINT_JOIN},
	    {"thrd_join", LOCK_HINT_JOIN},
	    {"pthread_cond_", LOCK_HINT_CONDITION},
	    {"sem_", LOCK_HINT_SEMAPHORE},
	    {"new_sem_", LOCK_HINT_SEMAPHORE},
	    {"pthread_barrier_wait", LOCK_HINT_BARRIER},
	    {"cxa_guard_acquire", LOCK_HINT_GUARD},
	    {"lll_lock_wait_private", LOCK_HINT_PRIVATE},
	};

	function += strspn(function, "_");
	if (strncmp(function, "GI_", 3) == 0)
		function += 3 + strspn(function + 3, "_");
	for (size_t i = 0; i < array_size(hints); i++)
		if (text_begins_with(function, hints[i].begin))
			return hints[i].hint;
	return LOCK_HINT_NONE;
}

struct reading {
	const struct lock_look *look;
	bool (*is_tid)(void *context, int tid, bool is_shared);
	void *context;
	struct lock_claim claim;
};

static uint32_t word(const struct reading *reading, int n)
{
	return lock_look_word(reading->look, n);
}

static bool set_owner(struct reading *reading, uint32_t tid, bool is_certain)
{
	struct lock_claim *claim = &reading->claim;

	if (tid == 0 || tid > TID_MASK ||
	    !reading->is_tid(reading->context, (int)tid, claim->is_shared))
		return false;
	claim->owner = (int)tid;
	claim->is_certain = is_certain;
	return true;
}

static void set_lock(struct reading *reading, enum lock_what what, int first_word)
{
	reading->claim.what = what;
	reading->claim.address =
	    reading->look->call.args[0] + (uint64_t)(int64_t)(first_word * WORD_BYTES);
}

static bool read_mutex(struct reading *reading, bool is_certain)
{
	const uint32_t lock = word(reading, 0), owner = word(reading, MUTEX_OWNER);
	const uint32_t kind = word(reading, MUTEX_KIND), users = word(reading, MUTEX_USERS);

	if (kind & ~(uint32_t)MUTEX_KIND_BITS || lock == 0)
		return false;
	if (kind & MUTEX_ROBUST && (lock & TID_MASK) != owner)
		return false;
	// Without a name that says so, it must look like a mutex in all its parts.
	if (!is_certain && ((lock != MUTEX_CONTENDED && !(kind & MUTEX_ROBUST)) || users == 0 ||
	                    users > MAX_USERS || word(reading, MUTEX_COUNT) > MAX_USERS))
		return false;
	reading->claim.is_shared = kind & MUTEX_SHARED;
	return set_owner(reading, owner, is_certain);
}

// Reads a musl mutex: its holder is in the word itself, except for the normal type.
static bool read_musl_mutex(struct reading *reading)
{
	const uint32_t type = word(reading, MUSL_MUTEX_TYPE);

	if (type == 0 || type > 0xff || !(type & MUSL_TYPE_MASK) ||
	    !set_owner(reading, word(reading, 0) & TID_MASK, false))
		return false;
	set_lock(reading, LOCK_WHAT_MUTEX, MUSL_MUTEX_TYPE);
	return true;
}

// Reads a read-write lock. `first`: the word at which the lock begins.
static void read_rwlock(struct reading *reading, int first)
{
	set_lock(reading, LOCK_WHAT_RWLOCK, first);
	if (!set_owner(reading, word(reading, first + RWLOCK_WRITER), true))
		reading->claim.readers =
		    word(reading, first + RWLOCK_READERS) >> RWLOCK_READER_SHIFT;
}

// Guesses a read-write lock: without a name that says so, it must look write-locked in all its
// parts.
static bool guess_rwlock(struct reading *reading, int first)
{
	if (word(reading, first + RWLOCK_PAD) != 0 || word(reading, first + RWLOCK_PAD + 1) != 0 ||
	    word(reading, first + RWLOCK_SHARED) > 1 ||
	    word(reading, first + RWLOCK_READ_FUTEX) > RWLOCK_WAITED ||
	    word(reading, first + RWLOCK_WRITE_FUTEX) > RWLOCK_WAITED ||
	    !set_owner(reading, word(reading, first + RWLOCK_WRITER), false))
		return false;
	set_lock(reading, LOCK_WHAT_RWLOCK, first);
	return true;
}

// Reads a musl read-write lock: one word, on which all wait, with its highest bit set; it does not
// tell who writes. glibc's would need 2^28 readers for that.
static void read_musl_rwlock(struct reading *reading)
{
	const uint32_t readers = word(reading, 0) & MUSL_RWLOCK_WRITTEN;

	set_lock(reading, LOCK_WHAT_RWLOCK, 0);
	reading->claim.readers = readers == MUSL_RWLOCK_WRITTEN ? 0 : readers;
}

static void read_rwlock_of(struct reading *reading, enum lock_hint hint)
{
	const uint32_t expected = (uint32_t)reading->look->call.args[2];

	if (expected & ~(uint32_t)MUSL_RWLOCK_WRITTEN)
		read_musl_rwlock(reading);
	else if (hint == LOCK_HINT_WRITE && expected == RWLOCK_WAITED)
		read_rwlock(reading, -RWLOCK_WRITE_FUTEX);
	else if (expected == RWLOCK_WAITED || expected == RWLOCK_DRAINED)
		read_rwlock(reading, -RWLOCK_READ_FUTEX);
	else
		read_rwlock(reading, -RWLOCK_READERS);
}

// Reads whose end a join waits for: its word is a tid, or a state, in that thread's descriptor.
// musl's descriptor differs.
static void read_join(struct reading *reading)
{
	reading->claim.what = LOCK_WHAT_JOIN;
	if (reading->look->thread_tid && word(reading, 0) == (uint32_t)reading->look->call.args[2])
		set_owner(reading, reading->look->thread_tid, true);
}

static bool read_stream(struct reading *reading)
{
	const struct lock_look *look = reading->look;

	if (!look->owner_pointer || word(reading, 0) == 0)
		return false;
	set_lock(reading, LOCK_WHAT_STREAM, 0);
	return set_owner(reading, look->owner_tid, true);
}

// Reads a lock by its words alone, as no name on the stack says what it is.
static void guess_lock(struct reading *reading)
{
	if (read_stream(reading))
		return;
	// In a libc without symbols pthread_join has left its name to a nameless function.
	if (reading->look->thread_tid) {
		read_join(reading);
		return;
	}
	set_lock(reading, LOCK_WHAT_LOCK, 0);
	if (read_mutex(reading, false))
		reading->claim.what = LOCK_WHAT_MUTEX;
	else if ((uint32_t)reading->look->call.args[2] == RWLOCK_WAITED &&
	         !guess_rwlock(reading, -RWLOCK_WRITE_FUTEX))
		guess_rwlock(reading, -RWLOCK_READ_FUTEX);
}

static void read_word(struct reading *reading, enum lock_hint hint)
{
	set_lock(reading, LOCK_WHAT_LOCK, 0);
	switch (hint) {
	case LOCK_HINT_MUTEX:
		reading->claim.what = LOCK_WHAT_MUTEX;
		if (!read_mutex(reading, true))
			read_musl_mutex(reading);
		break;
	case LOCK_HINT_READ:
	case LOCK_HINT_WRITE:
		read_rwlock_of(reading, hint);
		break;
	case LOCK_HINT_JOIN:
		read_join(reading);
		break;
	case LOCK_HINT_SEMAPHORE:
		reading->claim.what = LOCK_WHAT_SEMAPHORE;
		break;
	case LOCK_HINT_BARRIER:
		reading->claim.what = LOCK_WHAT_BARRIER;
		break;
	case LOCK_HINT_GUARD:
		reading->claim.what = LOCK_WHAT_GUARD;
		break;
	case LOCK_HINT_CONDITION:
		reading->claim.what = LOCK_WHAT_CONDITION;
		break;
	case LOCK_HINT_PRIVATE:
	case LOCK_HINT_NONE:
		guess_lock(reading);
		break;
	}
}

void lock_claim_read(const struct lock_look *look, enum lock_hint hint,
                     bool (*is_tid)(void *context, int tid, bool is_shared), void *context,
                     struct lock_claim *ret)
{
	struct reading reading = {.look = look, .is_tid = is_tid, .context = context};

	reading.claim.is_timed = call_futex_is_timed(look->call.args);
	switch (call_futex_wish(look->call.args)) {
	case FUTEX_WISH_PI:
		set_lock(&reading, LOCK_WHAT_MUTEX, 0);
		reading.claim.is_shared = word(&reading, MUTEX_KIND) & MUTEX_SHARED;
		set_owner(&reading, word(&reading, 0) & TID_MASK, true);
		break;
	case FUTEX_WISH_WORD:
		read_word(&reading, hint);
		break;
	case FUTEX_WISH_NONE:
		break;
	}
	*ret = reading.claim;
}
