// SPDX-License-Identifier: MIT
#include "summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "advice.h"
#include "blame.h"
#include "call_text.h"
#include "clock.h"
#include "debug_server.h"
#include "diagnose.h"
#include "hidden_language.h"
#include "labels.h"
#include "language_text.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "recording.h"
#include "run_stats.h"
#include "share_doubts.h"
#include "syscall_name.h"
#include "text.h"
#include "wait_groups.h"
#include "writer.h"

enum { MAX_THREAD_NAMES = 10, MAX_FILE_DOUBTS = 10, MAX_WAIT_GROUPS = 8, MAX_PATH_BYTES = 4096 };

enum { MIN_CIRCLE_NS = NS_PER_SECOND / 10 };

// Children that use less are not spoken of.
#define LEAST_CPUS 0.02
enum { LEAST_CHILDREN_NS = NS_PER_SECOND / 20 };

// Of the ticks, and of the samples: what is no more than that is said with -v alone.
enum { MISSED_PERCENT = 5, FAULTY_PERCENT = 1 };

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static double held_percent(const struct run_stats *stats)
{
	const int64_t end_ns = stats->end_ns ? stats->end_ns : stats->last_ns; // still running

	return percent((double)stats->held_ns, (double)(end_ns - stats->start_ns));
}

// A duration in the unit that suits it.
static const char *format_duration(char *buffer, size_t size, int64_t ns)
{
	if (ns < 10 * NS_PER_MS)
		snprintf(buffer, size, "%jd us", (intmax_t)((ns + NS_PER_US / 2) / NS_PER_US));
	else
		snprintf(buffer, size, "%.1f ms", (double)ns / (double)NS_PER_MS);
	return buffer;
}

static double truncated_percent(const struct summary *summary)
{
	return percent((double)summary->counts->truncated, (double)summary->stats->samples);
}

static void print_truncated(const struct summary *summary)
{
	const struct summary_counts *counts = summary->counts;

	if (counts->truncated == 0)
		return;
	fprintf(stderr, "profiler: %ju sample%s truncated (%.1f %%):", (uintmax_t)counts->truncated,
	        text_plural(counts->truncated), truncated_percent(summary));
	const char *separator = "";
	for (int end = 0; end < N_STACK_ENDS; end++) {
		if (end == STACK_COMPLETE || counts->by_end[end] == 0)
			continue;
		fprintf(stderr, "%s %ju %s", separator, (uintmax_t)counts->by_end[end],
		        stack_end_name(end));
		separator = ",";
	}
	fputc('\n', stderr);
}

// What sampling cost the target, behind the line's beginning.
static void print_pause(const struct summary *summary)
{
	const struct run_stats *stats = summary->stats;
	char median[32];

	if (stats->stops > 0)
		fprintf(stderr, "paused the target %.2f %% of the time (median %s)\n",
		        held_percent(stats),
		        format_duration(median, sizeof(median),
		                        histogram_percentile(&stats->tick_hold, 0.5)));
	else
		fprintf(stderr, "never paused the target%s\n",
		        summary->counts->all_slept ? ", whose threads all slept" : "");
}

static void print_pauses(const struct summary *summary)
{
	const struct run_stats *stats = summary->stats;
	const struct histogram *hold = &stats->tick_hold;
	char median[32], p99[32], max[32];

	if (stats->stops == 0) {
		fputs("profiler: ", stderr);
		print_pause(summary);
		return;
	}
	fprintf(stderr,
	        "profiler: paused the target %.2f %% of the time; each time: median %s, p99 %s, "
	        "max %s\n",
	        held_percent(stats),
	        format_duration(median, sizeof(median), histogram_percentile(hold, 0.5)),
	        format_duration(p99, sizeof(p99), histogram_percentile(hold, 0.99)),
	        format_duration(max, sizeof(max), hold->max_ns));
	if (stats->held_waiting_ns >= NS_PER_MS)
		fprintf(stderr, "profiler: for %s of that the profiler itself waited for a CPU\n",
		        format_duration(max, sizeof(max), stats->held_waiting_ns));
}

static double missed_percent(const struct run_stats *stats)
{
	return percent((double)stats->missed_ticks, (double)(stats->missed_ticks + stats->ticks));
}

static void print_missed(const struct run_stats *stats)
{
	fprintf(stderr,
	        "profiler: missed %.0f %% of the moments to sample at: this machine is busy, or "
	        "%g times a second is too often for it (-F)\n",
	        missed_percent(stats), stats->frequency_hz);
}

static double thinned_percent(const struct run_stats *stats)
{
	return percent((double)stats->thinned_ticks, (double)(stats->thinned_ticks + stats->ticks));
}

static void print_thinned(const struct run_stats *stats)
{
	if (stats->thinned_ticks == 0)
		return;
	fprintf(stderr,
	        "profiler: %ju of %ju ticks were skipped to stay within --max-overhead=%g; the "
	        "other samples count for their time\n",
	        (uintmax_t)stats->thinned_ticks, (uintmax_t)(stats->thinned_ticks + stats->ticks),
	        stats->max_overhead_percent);
}

static void print_labels(const struct summary *summary)
{
	if (summary->counts->lack_labels > 0)
		fprintf(stderr,
		        "profiler: %ju of %ju samples lack labels; their label \"" LABELS_LACK
		        "\" says why\n",
		        (uintmax_t)summary->counts->lack_labels,
		        (uintmax_t)summary->stats->samples);
}

static void print_folded(const struct summary *summary)
{
	if (summary->counts->folded_waits > 0)
		fprintf(stderr,
		        "profiler: %ju of %ju samples say only what sort of thing they waited for "
		        "(\"socket:" WAIT_FOLDED "\"): there were too many different ones\n",
		        (uintmax_t)summary->counts->folded_waits,
		        (uintmax_t)summary->stats->samples);
}

static void print_cpu(const struct summary_counts *counts)
{
	fprintf(stderr, "profiler: cpu: samples found it running for %.3f s",
	        clock_seconds(counts->running_ns));
	if (counts->knows_cpu)
		fprintf(stderr, "; used %.3f s of CPU time; waited %.3f s for a CPU",
		        clock_seconds(counts->cpu_ns), clock_seconds(counts->delay_ns));
	fputc('\n', stderr);
}

void wait_group_text_write(const struct profile *profile, const char *lock_prefix,
                           const char *prefix, size_t max_lines, FILE *stream)
{
	size_t n;
	_cleanup_free_ struct wait_group *groups = wait_groups_find(profile, &n);
	char duration[CALL_TEXT_DURATION_SIZE];

	for (size_t i = 0; i < n && i < max_lines; i++) {
		const struct wait_group *group = &groups[i];
		_cleanup_free_ char *object =
		    text_clean(group->object, strlen(group->object), TEXT_UNLIMITED);
		fprintf(stream, "%s%zu %s wait for %s", group->is_lock ? lock_prefix : prefix,
		        group->count, language_tasks(group->count), object);
		if (group->oldest_ns >= 0) {
			call_text_duration(group->oldest_ns, duration);
			fprintf(stream, ", the oldest for %s or more", duration);
		}
		fputc('\n', stream);
	}
	if (n > max_lines)
		fprintf(stream, "%s%zu things more that several %s wait for\n", prefix,
		        n - max_lines, language_tasks(2));
}

static void print_thread(const struct profile *profile, uint32_t id, const struct sample *sums)
{
	const struct thread *thread = &profile->threads[id];
	_cleanup_free_ char *name = text_clean(thread->name, strlen(thread->name), 64);

	fprintf(stderr,
	        "profiler: thread %d \"%s\": watched %.9f s, wall %.9f s, %ju samples, sampled cpu "
	        "%.9f s",
	        thread->tid, name,
	        clock_seconds(thread->last_ns - thread->first_ns - thread->away_ns),
	        clock_seconds(sums->wall_ns), (uintmax_t)sums->count, clock_seconds(sums->cpu_ns));
	if (thread->kernel_cpu_ns >= 0)
		fprintf(stderr, ", kernel cpu %.9f s, kernel delay %.9f s",
		        clock_seconds(thread->kernel_cpu_ns),
		        clock_seconds(thread->kernel_delay_ns));
	fputc('\n', stderr);
}

static void print_threads(const struct profile *profile)
{
	_cleanup_free_ struct sample *sums = memory_alloc_zeroed(profile->n_threads, sizeof(*sums));

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		sums[sample->thread].count += sample->count;
		sums[sample->thread].wall_ns += sample->wall_ns;
		sums[sample->thread].cpu_ns += sample->cpu_ns;
	}
	for (size_t i = 0; i < profile->n_threads; i++)
		print_thread(profile, i, &sums[i]);
}

static void print_engine(const struct run_stats *stats)
{
	const struct histogram *late = &stats->tick_late;
	char median[32], p99[32], max[32];

	fprintf(
	    stderr,
	    "profiler: engine: %ju threads stopped (median %s, p99 %s, max %s), %ju copied "
	    "asleep, %ju asleep still, %ju waiting still for a CPU; %ju stopped asleep\n",
	    (uintmax_t)stats->stops,
	    format_duration(median, sizeof(median), histogram_percentile(&stats->thread_hold, 0.5)),
	    format_duration(p99, sizeof(p99), histogram_percentile(&stats->thread_hold, 0.99)),
	    format_duration(max, sizeof(max), stats->thread_hold.max_ns), (uintmax_t)stats->copies,
	    (uintmax_t)stats->credits, (uintmax_t)stats->no_cpu_samples,
	    (uintmax_t)stats->sleeper_stops);
	fprintf(stderr,
	        "profiler: engine: %ju frames unwound by %ju rules; %.1f ms of CPU while sampling, "
	        "scheduled by %s; ticks began late by (median %s, p99 %s, max %s)\n",
	        (uintmax_t)stats->n_frames, (uintmax_t)stats->n_rules,
	        (double)stats->cpu_ns / (double)NS_PER_MS, priority_name(stats->priority),
	        format_duration(median, sizeof(median), histogram_percentile(late, 0.5)),
	        format_duration(p99, sizeof(p99), histogram_percentile(late, 0.99)),
	        format_duration(max, sizeof(max), late->max_ns));
}

static void print_calls(const struct run_stats *stats)
{
	fprintf(stderr,
	        "profiler: engine: of interrupted system calls, %ju restarted, %ju continued in "
	        "%ju parts\n",
	        (uintmax_t)stats->calls.again, (uintmax_t)stats->calls.rests,
	        (uintmax_t)stats->calls.parts);
}

static void print_guessed_frames(const struct run_stats *stats)
{
	if (stats->n_code_steps)
		fprintf(stderr,
		        "profiler: %ju of %ju frames found by following the code to its return, "
		        "as it has no unwinding rules\n",
		        (uintmax_t)stats->n_code_steps, (uintmax_t)stats->n_frames);
	if (stats->n_frame_pointer_steps)
		fprintf(stderr,
		        "profiler: %ju of %ju frames found by frame pointer, in code without "
		        "unwinding rules\n",
		        (uintmax_t)stats->n_frame_pointer_steps, (uintmax_t)stats->n_frames);
}

// Tells what the kernel does not show.
static void print_hidden(const struct run_stats *stats)
{
	if (stats->blind)
		fputs("profiler: sleeping threads had to be stopped to be sampled: the kernel does "
		      "not show their schedstat or syscall in /proc\n",
		      stderr);
	if (stats->pages_hidden)
		fputs("profiler: the kernel does not show which pages are in memory "
		      "(/proc/PID/pagemap): a thread may have been paused while the kernel read "
		      "its stack from disk\n",
		      stderr);
	if (stats->kernel_hidden)
		fputs(
		    "profiler: some kernel frames are missing: the kernel shows them only to root "
		    "(CAP_SYS_ADMIN)\n",
		    stderr);
}

static void print_denied(const struct run_stats *stats)
{
	if (stats->denied == 0)
		return;
	fprintf(stderr,
	        "profiler: %ju sample%s without a stack: the kernel denied the stop of a thread: ",
	        (uintmax_t)stats->denied, text_plural(stats->denied));
	if (!stats->tracer_pid) {
		fputs("another process traced it at that moment (a profiler, strace, a debugger), "
		      "or it is not dumpable or is privileged\n",
		      stderr);
		return;
	}
	_cleanup_free_ char *name =
	    text_clean(stats->tracer, strlen(stats->tracer), TEXT_UNLIMITED);
	fprintf(stderr, "process %d (%s) traces it; %s first\n", stats->tracer_pid, name,
	        diagnose_tracer_advice(stats->tracer));
}

// Tells what the kernel or a limit did not permit, and what that cost.
static void print_refused(const struct run_stats *stats)
{
	if (stats->refused_children)
		fprintf(stderr,
		        "profiler: %ju child process%s could not be sampled: each is a 32-bit "
		        "program, privileged, unreadable, not dumpable, traced by another process, "
		        "or a profiler that started later\n",
		        (uintmax_t)stats->refused_children,
		        stats->refused_children == 1 ? "" : "es");
	if (stats->lost_privileges)
		fprintf(
		    stderr,
		    "profiler: %ju program%s, started during a pause, may have lost set-user-ID, "
		    "set-group-ID or capabilities: run profiler as root (CAP_SYS_PTRACE) to "
		    "avoid this\n",
		    (uintmax_t)stats->lost_privileges, text_plural(stats->lost_privileges));
	print_denied(stats);
	if (stats->lacks_files)
		fprintf(stderr, "profiler: the limit of open files was reached: threads, callers "
		                "and states are missing or wrong; raise it (ulimit -n)\n");
}

static void print_unread_tasks(const struct run_stats *stats)
{
	const uint64_t n = stats->tasks.left_out;

	if (n > 0)
		fprintf(stderr, "profiler: %ju %s %s not sampled: there are too many\n",
		        (uintmax_t)n, language_tasks(n), n == 1 ? "was" : "were");
}

void summary_print_unread(const struct run_stats *stats)
{
	for (size_t i = 0; language_texts[i]; i++)
		if (language_texts[i]->print_unread)
			language_texts[i]->print_unread(stats, stderr);
}

static void print_faults(const struct run_stats *stats)
{
	for (size_t i = 0; language_texts[i]; i++)
		if (language_texts[i]->print_faults)
			language_texts[i]->print_faults(stats, stderr);
}

static void print_languages(const struct run_stats *stats)
{
	for (size_t i = 0; language_texts[i]; i++)
		if (language_texts[i]->print_figures)
			language_texts[i]->print_figures(stats, stderr);
}

static double faults_percent(const struct run_stats *stats)
{
	uint64_t total = 0;

	for (size_t i = 0; i < RUN_MAX_LANGUAGES; i++)
		for (int fault = RUNTIME_FAULT_NONE + 1; fault < N_RUNTIME_FAULTS; fault++)
			total += stats->languages[i].faults[fault];
	return percent((double)total, (double)stats->samples);
}

void summary_print_runtimes(const struct run_stats *stats)
{
	print_faults(stats);
	summary_print_unread(stats);
}

// What the process may have noticed (profiler-promises(7)).
static void print_unmended(const struct run_stats *stats)
{
	_cleanup_free_ char *name =
	    stats->calls.last_left >= 0 ? syscall_name(stats->calls.last_left) : NULL;

	if (stats->calls.left == 0)
		return;
	fprintf(stderr,
	        "profiler: %ju system call%s ended early because of a pause (the last: %s): the "
	        "target may have seen EINTR or a short transfer\n",
	        (uintmax_t)stats->calls.left, text_plural(stats->calls.left),
	        name ? name : "one of int $0x80");
}

static void print_totals(const struct summary *summary)
{
	const struct run_stats *stats = summary->stats;
	const struct summary_counts *counts = summary->counts;

	fprintf(stderr,
	        "profiler: %ju tick%s at %g Hz in %.3f s, %ju missed; %ju sample%s of %zu "
	        "thread%s; %zu distinct stack%s\n",
	        (uintmax_t)stats->ticks, text_plural(stats->ticks), stats->frequency_hz,
	        clock_seconds(stats->last_ns - stats->start_ns), (uintmax_t)stats->missed_ticks,
	        (uintmax_t)stats->samples, text_plural(stats->samples), counts->n_threads,
	        text_plural(counts->n_threads), counts->n_stacks, text_plural(counts->n_stacks));
}

void summary_print_children(const struct children_cpu *children, const struct run_stats *stats,
                            int64_t own_ns)
{
	const double run_ns = (double)(stats->last_ns - stats->start_ns + 1);
	const double cpus = (double)children->cpu_ns / run_ns;

	// A command that ends at once may have used a little that no sample has seen.
	if (cpus < LEAST_CPUS || children->cpu_ns < LEAST_CHILDREN_NS ||
	    children->cpu_ns < 2 * own_ns)
		return;
	fputs("profiler: its ", stderr);
	if (children->n > 0)
		fprintf(stderr, "%zu child process%s", children->n, children->n == 1 ? "" : "es");
	else
		fputs("child processes", stderr);
	fprintf(stderr, " used %.2f CPUs, itself %.2f: add -c to sample them as well\n", cpus,
	        (double)own_ns / run_ns);
}

// What is always said: in few words what was sampled, and what is wrong.
static void print_brief(const struct summary *summary)
{
	const struct run_stats *stats = summary->stats;
	const struct summary_counts *counts = summary->counts;
	const double samples = (double)stats->samples;
	_cleanup_free_ char *threads = profile_threads_text(summary->profile);

	fprintf(stderr, "profiler: %ju sample%s of %s in %.1f s; ", (uintmax_t)stats->samples,
	        text_plural(stats->samples), threads,
	        clock_seconds(stats->last_ns - stats->start_ns));
	print_pause(summary);
	if (missed_percent(stats) > MISSED_PERCENT)
		print_missed(stats);
	if (thinned_percent(stats) > MISSED_PERCENT)
		print_thinned(stats);
	if (truncated_percent(summary) > FAULTY_PERCENT)
		print_truncated(summary);
	if (faults_percent(stats) > FAULTY_PERCENT)
		print_faults(stats);
	if (percent((double)counts->lack_labels, samples) > FAULTY_PERCENT)
		print_labels(summary);
	if (percent((double)counts->folded_waits, samples) > FAULTY_PERCENT)
		print_folded(summary);
}

static void print_figures(const struct summary *summary)
{
	const struct run_stats *stats = summary->stats;

	print_totals(summary);
	print_thinned(stats);
	print_truncated(summary);
	print_guessed_frames(stats);
	print_faults(stats);
	print_pauses(summary);
	print_languages(stats);
	print_labels(summary);
	print_folded(summary);
	print_cpu(summary->counts);
	print_engine(stats);
	print_calls(stats);
	print_threads(summary->profile);
}

void summary_print(const struct summary *summary)
{
	const struct run_stats *stats = summary->stats;

	if (summary->verbose)
		print_figures(summary);
	else
		print_brief(summary);
	print_hidden(stats);
	print_refused(stats);
	summary_print_unread(stats);
	print_unmended(stats);
	print_unread_tasks(stats);
	summary_print_doubts(summary->profile);
	summary_print_cpu_wait(summary->cpu_wait);
	summary_print_children(&summary->children, stats, summary->counts->cpu_ns);
}

void summary_print_doubts(const struct profile *profile)
{
	_cleanup_free_ char *text = share_doubts_text(profile);

	if (text)
		fprintf(stderr, "profiler: %s\n", text);
}

void summary_print_cpu_wait(const char *text)
{
	if (text)
		fprintf(stderr, "profiler: the program %s\n", text);
}

// True if one of the first n threads has that name, too.
static bool is_known(const struct profile *profile, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(profile->threads[i].name, name) == 0)
			return true;
	return false;
}

void summary_print_unmatched(const struct profile *profile, const regex_t *regex)
{
	size_t n_names = 0;

	for (size_t i = 0; i < profile->n_threads; i++)
		if (regexec(regex, profile->threads[i].name, 0, NULL, 0) == 0)
			return;
	fputs("profiler: no thread matches --thread; there are:", stderr);
	for (size_t i = 0; i < profile->n_threads && n_names < MAX_THREAD_NAMES; i++) {
		const char *raw = profile->threads[i].name;
		if (is_known(profile, i, raw))
			continue;
		_cleanup_free_ char *name = text_clean(raw, strlen(raw), TEXT_UNLIMITED);
		fprintf(stderr, "%s %s", n_names++ ? "," : "", name);
	}
	fputs(n_names == MAX_THREAD_NAMES ? ", ...\n" : "\n", stderr);
}

void summary_print_selection(const struct profile *profile, const bool *selected)
{
	struct sample all = {0}, left_out = {0};

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		all.count += sample->count;
		all.wall_ns += sample->wall_ns;
		left_out.count += selected[i] ? 0 : sample->count;
		left_out.wall_ns += selected[i] ? 0 : sample->wall_ns;
	}
	if (left_out.count > 0)
		fprintf(stderr,
		        "profiler: the filters left out %ju of %ju samples, %.3f of %.3f s\n",
		        (uintmax_t)left_out.count, (uintmax_t)all.count,
		        clock_seconds(left_out.wall_ns), clock_seconds(all.wall_ns));
}

static void print_file_doubt(const struct module *module)
{
	_cleanup_free_ char *path = text_clean(module->path, strlen(module->path), MAX_PATH_BYTES);

	if (module->unreadable)
		fprintf(stderr, "profiler: cannot read %s: %s; names and callers may be missing\n",
		        path, module->unreadable);
	else
		fprintf(stderr,
		        "profiler: %s was changed while it was sampled: its names may be those of "
		        "the old or the new content\n",
		        path);
}

static void print_file_doubts(const struct modules *modules)
{
	size_t n = 0;

	for (size_t i = 0; i < modules->count; i++) {
		const struct module *module = modules->items[i];
		// Files that no sample lies in were looked at for other things.
		if (module->n_mappings > 0 &&
		    (module->unreadable || module_was_written_to(module)) && n++ < MAX_FILE_DOUBTS)
			print_file_doubt(module);
	}
	if (n > MAX_FILE_DOUBTS)
		fprintf(stderr, "profiler: and %zu more file%s\n", n - MAX_FILE_DOUBTS,
		        text_plural(n - MAX_FILE_DOUBTS));
}

void summary_print_other_tasks(const struct modules *modules)
{
	const char *advice = hidden_language_tasks(modules);

	if (advice)
		fprintf(stderr, "profiler: %s\n", advice);
}

static void print_advice(const struct profile *profile, const struct modules *modules,
                         const struct symbols *symbols)
{
	struct advice advice;

	advice_on_names(profile, modules, symbols, modules->debug_sources->server != NULL, &advice);
	for (size_t i = 0; i < advice.n_lines; i++)
		fprintf(stderr, "profiler: %s\n", advice.lines[i]);
	advice_deinit(&advice);
	summary_print_other_tasks(modules);
}

static void print_fetched(const struct debug_server *server)
{
	fprintf(stderr, "profiler: debuginfod: %ju debug file%s fetched, %ju not%s\n",
	        (uintmax_t)server->n_fetched, text_plural(server->n_fetched),
	        (uintmax_t)server->n_not_fetched,
	        server->timed_out ? ", as their time ran out" : "");
}

void summary_print_names(const struct profile *profile, const struct modules *modules,
                         const struct symbols *symbols)
{
	if (symbols)
		print_advice(profile, modules, symbols);
	print_file_doubts(modules);
	if (modules->debug_sources->server)
		print_fetched(modules->debug_sources->server);
}

char *summary_comment(const struct run_stats *stats, const struct summary_counts *counts)
{
	return memory_printf(
	    "profiler " PROFILER_VERSION ": %ju ticks at %g Hz, %ju missed; %ju "
	    "of %ju samples truncated; %ju of %ju frames found by frame pointer, %ju by code; "
	    "paused the target %.2f %% of the time",
	    (uintmax_t)stats->ticks, stats->frequency_hz, (uintmax_t)stats->missed_ticks,
	    (uintmax_t)counts->truncated, (uintmax_t)stats->samples,
	    (uintmax_t)stats->n_frame_pointer_steps, (uintmax_t)stats->n_frames,
	    (uintmax_t)stats->n_code_steps, held_percent(stats));
}

void summary_print_waits(const struct profile *view, int64_t min_ns, size_t n_threads,
                         size_t n_left_out)
{
	fprintf(stderr, "profiler: %zu wait%s of %g s or longer, of %zu thread%s\n",
	        view->n_samples, text_plural(view->n_samples), clock_seconds(min_ns), n_threads,
	        text_plural(n_threads));
	wait_group_text_write(view, "profiler: ", "profiler: ", MAX_WAIT_GROUPS, stderr);
	if (n_left_out)
		fprintf(stderr,
		        "profiler: %zu more threads waited as long and are not shown: "
		        "--max-threads=%zu shows all\n",
		        n_left_out, n_threads + n_left_out);
}

void summary_print_blame(const struct blame *blame, bool is_recording)
{
	// What another one causes may itself wait for a thread that was not sampled.
	const bool has_rest =
	    (blame->blocked_ns - blame->followed_ns - blame->unseen_ns) * 100 > blame->blocked_ns;

	fprintf(stderr, "profiler: found the cause of %.3f s of %.3f s of waiting",
	        clock_seconds(blame->followed_ns), clock_seconds(blame->blocked_ns));
	if (blame->unseen_ns > 0)
		fprintf(stderr, "; %.3f s were for threads not sampled then",
		        clock_seconds(blame->unseen_ns));
	if (blame->circle_ns > MIN_CIRCLE_NS) // less passes while locks change hands
		fprintf(stderr, "; %.3f s were for each other, in a circle (a deadlock)",
		        clock_seconds(blame->circle_ns));
	if (is_recording && blame->followed_ns == 0 && blame->blocked_ns > 0)
		fputs(": holders of locks are known if it was recorded with --locks", stderr);
	else if (has_rest)
		fputs("; the rest was for work, time, a disk, another machine, or a lock whose "
		      "holder is not known",
		      stderr);
	fputc('\n', stderr);
}

void summary_print_output(const struct writer *writer, const char *name)
{
	_cleanup_free_ char *file = text_quote_file(name), *command = NULL;

	fprintf(stderr, "profiler: wrote %s to %s\n", writer->name, name);
	if (strcmp(name, "stdout") == 0)
		return; // whoever reads it knows what for
	if (!writer->next_command || !isatty(STDERR_FILENO))
		return; // a program that reads this does not want to be told
	const char *marker = strstr(writer->next_command, "%s");
	command = memory_printf("%.*s%s%s", (int)(marker - writer->next_command),
	                        writer->next_command, file, marker + 2);
	fprintf(stderr, "profiler: next: %s\n", command);
}

void summary_print_damage(const struct recording *recording)
{
	if (recording->lost_bytes)
		fprintf(stderr,
		        "profiler: the recording is damaged or cut short: %" PRIu64
		        " bytes are lost\n",
		        recording->lost_bytes);
	if (recording->lost_blocks || recording->bad_records || recording->lost_stacks)
		fprintf(stderr,
		        "profiler: %" PRIu64 " blocks are missing, %" PRIu64
		        " records cannot be read, the stacks of %" PRIu64 " samples are lost\n",
		        recording->lost_blocks, recording->bad_records, recording->lost_stacks);
	if (!recording->whole)
		fprintf(stderr,
		        "profiler: the recording has no end: the profiler was killed, or its disk "
		        "was full; %" PRIu64
		        " threads count as having stayed where they were last seen\n",
		        recording->open_threads);
	if (recording->full)
		fprintf(stderr,
		        "profiler: --max-size was reached: %" PRIu64 " later samples and %" PRIu64
		        " names were not recorded\n",
		        recording->dropped_samples, recording->dropped_names);
}

static void add_sample(struct summary_counts *counts, const struct profile *profile,
                       const struct sample *sample)
{
	counts->running_ns += sample->cpu_ns;
	if (profile_wait_is_folded(&profile->waits[sample->wait]))
		counts->folded_waits += sample->count;
	if (sample->labels != LABELS_NONE && labels_lack(profile->labels[sample->labels]))
		counts->lack_labels += sample->count;
	if (sample->count == 0)
		return;
	counts->by_end[profile->stacks[sample->stack].end] += sample->count;
	counts->all_slept &= sample->state == THREAD_SLEEPING || sample->state == THREAD_DISK;
}

static void add_thread(struct summary_counts *counts, const struct thread *thread)
{
	counts->knows_cpu |= thread->kernel_cpu_ns >= 0;
	counts->cpu_ns += thread->kernel_cpu_ns > 0 ? thread->kernel_cpu_ns : 0;
	counts->delay_ns += thread->kernel_delay_ns > 0 ? thread->kernel_delay_ns : 0;
}

struct summary_counts summary_count(const struct profile *profile)
{
	const struct profile_totals *forgotten = &profile->forgotten;
	struct summary_counts counts = {
	    .n_threads = profile->n_threads - profile->n_free_threads + (size_t)forgotten->threads,
	    .n_stacks = profile->n_stacks + (size_t)forgotten->stacks,
	    .all_slept = true,
	    .running_ns = forgotten->cpu_ns,
	    .cpu_ns = forgotten->kernel_cpu_ns,
	    .delay_ns = forgotten->kernel_delay_ns,
	};

	memcpy(counts.by_end, forgotten->by_end, sizeof(counts.by_end));
	for (int end = 0; end < N_STACK_ENDS; end++)
		counts.all_slept &= forgotten->by_end[end] == 0; // their states are forgotten, too
	for (size_t i = 0; i < profile->n_samples; i++)
		add_sample(&counts, profile, &profile->samples[i]);
	for (size_t i = 0; i < profile->n_threads; i++)
		add_thread(&counts, &profile->threads[i]);
	for (int end = 0; end < N_STACK_ENDS; end++)
		counts.truncated += end == STACK_COMPLETE ? 0 : counts.by_end[end];
	return counts;
}
