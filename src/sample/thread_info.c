// SPDX-License-Identifier: MIT
#include "thread_info.h"

#include "clock.h"
#include "memory.h"
#include "profile.h"
#include "runtimes.h"
#include "target.h"

enum {
	FIRST_NAME_NS = 5000000,      // a new thread is often named soon
	MAX_NAME_AGE_NS = 1000000000, // later names are rare
};

static bool read_name(const struct target *target, int tid, char ret[PROC_NAME_SIZE])
{
	_cleanup_close_ int fd = target_open_file(target, tid, "comm");

	return fd >= 0 && proc_read_name_of(fd, ret);
}

void thread_info_begin_process(struct profile *profile, const struct target *target, int64_t now_ns)
{
	char name[PROC_NAME_SIZE];

	if (!read_name(target, target->pid, name))
		name[0] = '\0';
	profile_begin_process(profile, target->pid, name, now_ns);
}

// Notes that the thread was born at since_ns or later, if it was: it is new in a later tick than
// the first, and has had no more time than that. So what it used before it was found counts, which
// is most of a short life.
static void note_birth(struct profile *profile, const struct target_thread *thread,
                       int64_t since_ns)
{
	const struct thread_figures none = {.at_ns = since_ns};
	const int64_t lived_ns = (int64_t)(thread->last.cpu_ns + thread->last.delay_ns);
	const bool is_first = profile->start_ns == 0 || since_ns <= profile->start_ns;

	if (!is_first && thread->has_schedstat && lived_ns <= clock_now_ns() - since_ns)
		profile_note_figures(profile, thread->account.own, &none);
}

void thread_info_add(struct profile *profile, const struct target *target, size_t n_new,
                     int64_t now_ns)
{
	for (size_t i = target->n_threads - n_new; i < target->n_threads; i++) {
		struct target_thread *thread = target->threads[i];
		char name[PROC_NAME_SIZE];
		if (!read_name(target, thread->tid, name))
			name[0] = '\0';
		thread->account.own =
		    profile_add_thread(profile, target->pid, thread->tid, name, now_ns);
		thread->account.thread = thread->account.own;
		thread->account.until_ns = now_ns;
		note_birth(profile, thread, now_ns);
		thread_info_note_kernel_figures(profile, thread, clock_now_ns());
		thread->name_age_ns = FIRST_NAME_NS;
		thread->name_due_ns = now_ns + thread->name_age_ns;
		target_attend(target, i);
	}
}

void thread_info_refresh_name(struct profile *profile, const struct target *target,
                              struct target_thread *thread, int64_t now_ns)
{
	char name[PROC_NAME_SIZE];

	// A runtime knows its name for the thread as soon as it knows the thread.
	if (now_ns < thread->name_due_ns && thread->asked_name)
		return;
	_cleanup_free_ char *own =
	    target->runtimes ? runtimes_name_thread(target->runtimes, thread->tid) : NULL;
	const bool has_title = thread->tid == target->pid && target->title.text;
	if (own && !has_title)
		profile_rename_thread(profile, thread->account.own, own);
	if (!thread->asked_name) {
		thread->asked_name = true;
		return;
	}
	// Doubled for each name that was read: the thread may be younger than it seems, born in a
	// pause of the sampler.
	thread->name_age_ns *= 2;
	if (thread->name_age_ns > MAX_NAME_AGE_NS)
		thread->name_age_ns = MAX_NAME_AGE_NS;
	thread->name_due_ns = now_ns + thread->name_age_ns;
	if (has_title || !read_name(target, thread->tid, name))
		return;
	if (!own)
		profile_rename_thread(profile, thread->account.own, name);
	if (thread->tid == target->pid)
		profile_name_process(profile, target->pid, name);
}

void thread_info_note_title(struct profile *profile, const struct target *target)
{
	profile_name_process(profile, target->pid, target->title.text);
	for (size_t i = 0; i < target->n_threads; i++)
		if (target->threads[i]->tid == target->pid)
			profile_rename_thread(profile, target->threads[i]->account.own,
			                      target->title.text);
}

void thread_info_note_exec(struct profile *profile, const struct target *target, int64_t now_ns)
{
	char name[PROC_NAME_SIZE];

	if (!read_name(target, target->pid, name))
		return;
	profile_name_process(profile, target->pid, name);
	for (size_t i = 0; i < target->n_threads; i++) {
		struct target_thread *thread = target->threads[i];
		if (thread->tid != target->pid)
			continue;
		profile_rename_thread(profile, thread->account.own, name);
		thread->asked_name = false; // the runtime is another one, too
		thread->name_age_ns = FIRST_NAME_NS;
		thread->name_due_ns = now_ns + thread->name_age_ns;
		return;
	}
}

void thread_info_note_kernel_figures(struct profile *profile, const struct target_thread *thread,
                                     int64_t at_ns)
{
	const struct proc_schedstat *last = &thread->last;

	if (thread->has_schedstat)
		profile_note_figures(
		    profile, thread->account.own,
		    &(struct thread_figures){at_ns, (int64_t)last->cpu_ns, (int64_t)last->delay_ns,
		                             thread->held_ns, thread->displaced_ns});
}

void thread_info_note_ends(struct profile *profile, const struct target *target)
{
	for (size_t i = 0; i < target->n_threads; i++) {
		const struct target_thread *thread = target->threads[i];
		if (target_thread_is_over(thread))
			profile_end_thread(profile, thread->account.own);
	}
}
