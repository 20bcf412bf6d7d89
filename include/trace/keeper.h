// SPDX-License-Identifier: MIT
// keeper: what was collected outlives the process that samples, and that holds nobody for ever.
//
// The kernel can keep the worker waiting for a process without end, where no signal but SIGKILL
// reaches (stuck_worker.h). So a second process shares the worker's memory and files, and waits in
// read(2) alone, which costs nothing. When the supervisor has killed the worker, the keeper goes on
// in its place, as if the worker had left its wait by siglongjmp(3): on its stack, with its
// variables. It traces nobody, and must not read what the worker has waited for.
//
// If the supervisor is dead by then, nobody looks after the worker: the keeper does, and kills it,
// so that it holds no thread of the target for as long as it waits. What was collected is lost
// then.
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Call it before the worker is forked, and then the other two, each in its own process. Without
// memory or files for it, there is no keeper.
void keeper_share(void);
void keeper_note_supervisor(void);
void keeper_note_worker(void);

// In the worker: where the keeper goes on. Set it by sigsetjmp(*keeper_way(), 1), which returns a
// second time, in the keeper.
sigjmp_buf *keeper_way(void);

// Says that the worker means to have sampled for duration_ns from now on; 0: that is not known. If
// it waits for a process then, it is killed.
void keeper_expect(int64_t duration_ns);

// Starts the keeper. From now on until keeper_end it sees that the worker is not stuck after the
// supervisor's end, and can take over if `can_go_on`.
void keeper_begin(bool can_go_on);
void keeper_end(void);

// Ends this process if it went on in the worker's place: what the worker was at when it was killed
// may be half done, and is not to be freed.
void keeper_exit(int status);

// In the supervisor: true if there is a keeper that could take over now.
bool keeper_is_ready(void);

// In the keeper: true between keeper_begin and keeper_end.
bool keeper_is_needed(void);

// Returns when the worker should have ended (CLOCK_MONOTONIC); 0: unknown.
int64_t keeper_due_ns(void);

// Lets the keeper go on, once the worker is dead. `held`: a thread was held meanwhile. Returns the
// keeper's pid, of a child of ours; 0: there is none that could.
pid_t keeper_take_over(bool held);

// In the keeper: true if the worker held a thread while it waited.
bool keeper_has_held(void);

// Ends a keeper that was not needed.
void keeper_dismiss(void);
