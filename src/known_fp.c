#include "known_fp.h"

#include "snapshot.h"

static uint64_t pc_of(const struct snapshot *snapshot)
{
	return snapshot->registers.value[ARCH_NATIVE->pc];
}

static uint64_t sp_of(const struct snapshot *snapshot)
{
	return snapshot->registers.value[ARCH_NATIVE->sp];
}

// Is the frame on the stack, called from the same place? The leaf is if its registers are right.
static bool has_frame(const struct snapshot *snapshot, const struct fp_frame *frame)
{
	uint64_t pc;

	if (frame->sp == sp_of(snapshot))
		return frame->pc == pc_of(snapshot);
	return frame->sp > sp_of(snapshot) &&
	       snapshot_read_word(snapshot, frame->sp - sizeof(pc), &pc) && pc == frame->pc;
}

// A frame pointer points to the caller's, which stands below the return address.
static bool read_caller(const struct snapshot *snapshot, uint64_t fp, uint64_t *ret)
{
	return snapshot_read_word(snapshot, fp + sizeof(fp), ret);
}

static struct known_fp *find(struct known_fps *known, uint64_t pc, uint64_t sp)
{
	return &known->items[(pc ^ pc >> 8 ^ sp >> 4) % N_KNOWN_FPS];
}

bool known_fps_learn(const struct known_fps *known, const struct snapshot *stopped,
                     struct known_fp *ret)
{
	struct known_fp learned = {
	    .pc = pc_of(stopped),
	    .sp = sp_of(stopped),
	    .frame = known->wanted,
	    .fp = stopped->registers.value[ARCH_NATIVE->fp],
	};

	if (!has_frame(stopped, &learned.frame) ||
	    !read_caller(stopped, learned.fp, &learned.caller_pc))
		return false;
	*ret = learned;
	return true;
}

void known_fps_keep(struct known_fps *known, const struct known_fp *learned)
{
	*find(known, learned->pc, learned->sp) = *learned;
}

void known_fps_apply(const struct known_fps *known, struct snapshot *asleep)
{
	const struct known_fp *item = find((struct known_fps *)known, pc_of(asleep), sp_of(asleep));
	uint64_t caller_pc;

	if (item->pc == pc_of(asleep) && item->sp == sp_of(asleep) &&
	    has_frame(asleep, &item->frame) && read_caller(asleep, item->fp, &caller_pc) &&
	    caller_pc == item->caller_pc)
		registers_set(&asleep->registers, ARCH_NATIVE->fp, item->fp);
}

void known_fp_reduce(const struct known_fp *learned, struct snapshot *stopped)
{
	stopped->registers.known = 0;
	registers_set(&stopped->registers, ARCH_NATIVE->pc, learned->pc);
	registers_set(&stopped->registers, ARCH_NATIVE->sp, learned->sp);
	registers_set(&stopped->registers, ARCH_NATIVE->fp, learned->fp);
}
