// SPDX-License-Identifier: MIT
#include <string.h>

#include "frame_names.h"
#include "java.h"
#include "languages.h"
#include "memory.h"
#include "profile.h"
#include "run_stats.h"
#include "runtimes.h"
#include "snapshot.h"
#include "unwind.h"

// Naming the frames of a stack.
struct merge {
	struct java *java;
	const struct unwound *stack;
	bool is_sure;     // what is known of methods by address is that of the copy's moment
	bool has_read;    // something was read from the process for a name
	bool is_too_deep; // with the inlined calls there are more frames than are shown
};

static void put(struct merge *merge, uint32_t location)
{
	struct java *java = merge->java;

	merge->is_too_deep |= java->n_locations == java->setup->max_frames;
	if (!merge->is_too_deep)
		*array_push(java->locations, java->n_locations, java->locations_capacity) =
		    location;
}

static uint32_t intern(const struct java *java, uint32_t function, uint32_t line)
{
	return profile_intern_location(java->setup->profile, java->names_module,
	                               frame_names_address(function, line));
}

// Java's own stack traces leave out hidden methods.
static bool is_shown(const struct java *java, const struct java_method *method)
{
	return !method->is_hidden || java->setup->frames == RUNTIME_FRAMES_ALL;
}

// Names a method's frame at the site; line 0: not known. False if the method is not known.
static bool name_frame(struct java *java, struct java_site *site, uint64_t address, int32_t bci,
                       bool has_line)
{
	const struct java_method *method =
	    java_methods_get(&java->methods, &java->source.memory, address);

	if (!method)
		return false;
	const uint32_t line = has_line ? java_method_line(&java->layout, method, bci) : 0;
	if (is_shown(java, method))
		java_code_add_location(&java->code, site, intern(java, method->function, line));
	return true;
}

// Names the frame of each scope. False if one of the methods is not known: none is named then.
static bool name_scopes(struct java *java, struct java_site *site, const struct java_scope *scopes,
                        size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!name_frame(java, site, scopes[i].method, scopes[i].bci, true)) {
			site->count = 0;
			return false;
		}
	return n > 0;
}

// Names the frames at the site, and keeps that with it: as long as the compiled method is there, so
// are the methods that it has inlined.
static void name_site(struct java *java, struct java_site *site, uint64_t pc, bool is_return)
{
	const struct java_blob *blob = java_code_blob(&java->code, site);
	struct java_scope scopes[JAVA_MAX_SCOPES];
	size_t n = 0;

	if (blob->kind == JAVA_COMPILED)
		n = java_blob_scopes(&java->source.memory, &java->layout, blob, pc, is_return,
		                     scopes);
	site->is_named = (name_scopes(java, site, scopes, n) ||
	                  name_frame(java, site, blob->method, 0, false)) &&
	                 java_code_holds(&java->code, site);
	if (!site->is_named)
		site->count = 0;
}

static bool put_compiled(struct merge *merge, const struct java_frame *frame)
{
	struct java *java = merge->java;
	struct java_site *site = java_code_find(&java->code, frame->pc, frame->is_return);

	if (!site || java_code_blob(&java->code, site)->method == 0)
		return false;
	if (!site->is_named && merge->is_sure) {
		name_site(java, site, frame->pc, frame->is_return);
		merge->has_read = true;
	}
	for (uint32_t i = 0; i < site->count; i++)
		put(merge, java->code.locations[site->first + i]);
	return site->is_named;
}

static const struct java_method *find_method(struct merge *merge, uint64_t address)
{
	struct java *java = merge->java;

	if (!merge->is_sure)
		return NULL;
	const struct java_method *method = java_methods_find(&java->methods, address);
	if (method)
		return method;
	merge->has_read = true;
	return java_methods_get(&java->methods, &java->source.memory, address);
}

static bool put_interpreted(struct merge *merge, const struct java_frame *frame)
{
	struct java *java = merge->java;
	const struct java_method *method = find_method(merge, frame->method);

	if (!method)
		return false;
	if (!is_shown(java, method))
		return true;
	int32_t bci = java_method_bci(&java->layout, method, frame->bytecode);
	if (bci < 0)
		bci = java_method_bci(&java->layout, method, frame->saved_bytecode);
	put(merge, intern(java, method->function,
	                  bci < 0 ? 0 : java_method_line(&java->layout, method, bci)));
	return true;
}

// Leaves out stubs that only lead from one method to the next. The innermost one, which executes,
// has HotSpot's name.
static bool put_stub(struct merge *merge, const struct java_frame *frame)
{
	struct java *java = merge->java;

	if (frame->is_return && java->setup->frames != RUNTIME_FRAMES_ALL)
		return true;
	const struct java_site *site = java_code_find(&java->code, frame->pc, frame->is_return);
	if (!site)
		return false;
	put(merge, intern(java,
	                  frame_names_add(java->methods.names,
	                                  java_code_blob(&java->code, site)->name, "", 0),
	                  0));
	return true;
}

// Puts the frame, or leaves it out. False if the machine's own is to be shown.
static bool put_frame(struct merge *merge, const struct java_frame *frame)
{
	switch (frame->kind) {
	case JAVA_FRAME_COMPILED:
		return put_compiled(merge, frame);
	case JAVA_FRAME_INTERPRETED:
		return put_interpreted(merge, frame);
	default:
		return put_stub(merge, frame);
	}
}

// Puts all frames of the stack. Returns how many could not be named.
static size_t put_all(struct merge *merge)
{
	struct java *java = merge->java;
	const struct unwound *stack = merge->stack;
	size_t next = 0, n_unnamed = 0;

	java->n_locations = 0;
	merge->is_too_deep = false;
	for (size_t i = 0; i < stack->n && !merge->is_too_deep; i++) {
		const struct java_frame *frame = next < java->n_frames &&
		                                         java->frames[next].n == i &&
		                                         java->frames[next].sp == stack->sps[i]
		                                     ? &java->frames[next++]
		                                     : NULL;
		if (frame && put_frame(merge, frame))
			continue;
		n_unnamed += frame && frame->kind != JAVA_FRAME_STUB;
		if (frame || java->setup->frames != RUNTIME_FRAMES_OWN)
			put(merge, stack->locations[i]);
	}
	return n_unnamed;
}

// Forgets the methods, which are known by address, if classes were unloaded. `copied`: how many had
// been when the stack was copied. If that is the number for which the methods are known, they are
// those of the copy, whatever was unloaded since.
static void note_unloads(struct java *java, int tid, uint64_t copied)
{
	if (java->unloads != 0 && copied == java->unloaded)
		return;
	const uint64_t unloaded = java_read_unloaded(java, tid);
	if (java->unloads == 0 || unloaded != java->unloaded)
		java_methods_clear(&java->methods);
	java->unloaded = unloaded;
}

bool java_merge(void *context, int tid, const struct snapshot *snapshot,
                const struct snapshot_note *bytes, struct unwound *stack)
{
	struct java *java = context;
	const struct java_note *note = (const struct java_note *)bytes->bytes;
	struct merge merge = {.java = java, .stack = stack};

	(void)snapshot;
	if (java->n_frames == 0 || bytes->size < sizeof(*note) || !stack->sps)
		return true;
	java->source.memory.tid = tid;
	note_unloads(java, tid, note->unloaded);
	merge.is_sure = note->unloaded == java->unloaded;
	size_t n_unnamed = put_all(&merge);
	// Another class may have taken the place of one that was unloaded before names were read.
	if (merge.has_read && java_read_unloaded(java, tid) != java->unloaded) {
		java_code_forget_names(&java->code);
		java_methods_clear(&java->methods);
		merge.is_sure = false;
		n_unnamed = put_all(&merge);
	}
	java->n_frames = 0;
	runtimes_figures(java->setup, &java_language)->unnamed += n_unnamed;
	stack->locations = java->locations;
	stack->n = java->n_locations;
	stack->sps = NULL;
	if (merge.is_too_deep)
		stack->end = STACK_TOO_DEEP;
	return true;
}
