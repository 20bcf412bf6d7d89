// SPDX-License-Identifier: MIT
#include "language.h"

#include "address_space.h"
#include "memory.h"
#include "rule.h"
#include "snapshot.h"
#include "unwind.h"

void languages_look_in_file(struct module *module)
{
	for (size_t i = 0; i < LANGUAGES_MAX; i++)
		if (languages[i] && languages[i]->look_in_file)
			module->languages[i] = languages[i]->look_in_file(module);
}

void languages_claim(struct address_space *space, struct module *module, uint64_t bias)
{
	for (size_t i = 0; i < LANGUAGES_MAX; i++)
		if (module->languages[i] && !space->languages[i] && languages[i]->claim)
			space->languages[i] =
			    languages[i]->claim(space, module, module->languages[i], bias);
}

static void forget(void **process, size_t i)
{
	void *forgotten = take_pointer(*process);

	if (forgotten)
		languages[i]->destroy(forgotten);
}

void languages_drop_claims(struct address_space *space)
{
	for (size_t i = 0; i < LANGUAGES_MAX; i++)
		if (languages[i] && languages[i]->claim)
			forget(&space->languages[i], i);
}

void languages_forget(void *processes[LANGUAGES_MAX])
{
	for (size_t i = 0; i < LANGUAGES_MAX; i++)
		forget(&processes[i], i);
}

typedef bool find_rule(const struct language_code *code, struct rule *ret);

// Asks language i for a rule by that function of it.
static bool ask_for_rule(size_t i, find_rule *find, const struct language_code *code,
                         struct rule *ret)
{
	struct language_code asked = *code;

	asked.process = code->at->space ? code->at->space->languages[i] : NULL;
	if (!find(&asked, ret))
		return false;
	ret->language = languages[i]->step ? (uint8_t)(i + 1) : 0;
	return true;
}

bool languages_rule(const struct language_code *code, bool before_tables, struct rule *ret)
{
	for (size_t i = 0; i < LANGUAGES_MAX; i++) {
		const struct language *language = languages[i];
		find_rule *find = !language       ? NULL
		                  : before_tables ? language->rule_before_tables
		                                  : language->rule;
		if (find && ask_for_rule(i, find, code, ret))
			return true;
	}
	return false;
}

size_t language_position(const struct language *language)
{
	size_t i = 0;

	while (languages[i] != language)
		i++;
	return i;
}

bool languages_refine(const struct language_code *code, const struct rule *row, struct rule *ret)
{
	for (size_t i = 0; i < LANGUAGES_MAX; i++)
		if (languages[i] && languages[i]->refine && languages[i]->refine(code, row, ret))
			return true;
	return false;
}

uint64_t languages_find_start(const struct arch_code *code, uint64_t address)
{
	uint64_t start = 0;

	for (size_t i = 0; i < LANGUAGES_MAX && start == 0; i++)
		if (languages[i] && languages[i]->find_start)
			start = languages[i]->find_start(code, address);
	return start;
}

bool languages_rule_at_jump(const struct arch_code *code, uint64_t end, bool keeps_fp,
                            struct rule *ret)
{
	for (size_t i = 0; i < LANGUAGES_MAX; i++) {
		if (!languages[i] || !languages[i]->rule_at_jump ||
		    !languages[i]->rule_at_jump(code, end, keeps_fp, ret))
			continue;
		ret->language = languages[i]->step ? (uint8_t)(i + 1) : 0;
		return true;
	}
	return false;
}

// Returns what language i keeps of the process.
static const void *process_of(const struct snapshot_hint *hint, size_t i)
{
	return hint->of_process ? hint->of_process[i] : NULL;
}

static struct language_thread thread_of(int tid, struct snapshot_hint *hint, size_t i)
{
	return (struct language_thread){
	    .tid = tid,
	    .tls = hint->tls,
	    .process = process_of(hint, i),
	    .own = &hint->of_thread[i],
	};
}

typedef void add_to_copy(const struct language_thread *thread, struct snapshot_copy *copy);

static void add(size_t i, add_to_copy *function, struct snapshot_copy *copy)
{
	const struct snapshot_hint *hint = copy->hint;
	void *own = hint->of_thread[i];
	const struct language_thread thread = {
	    .tid = copy->tid,
	    .tls = hint->tls,
	    .process = process_of(hint, i),
	    .own = &own,
	};

	copy->language = i;
	if (function)
		function(&thread, copy);
}

// True if language i keeps anything of the process or of the thread.
static bool is_there(const struct snapshot_hint *hint, size_t i)
{
	return hint->of_thread[i] || process_of(hint, i);
}

void languages_ask(struct snapshot_copy *copy)
{
	for (size_t i = 0; i < LANGUAGES_MAX; i++)
		if (is_there(copy->hint, i))
			add(i, languages[i]->ask, copy);
}

void languages_copy(struct snapshot_copy *copy)
{
	for (size_t i = 0; i < LANGUAGES_MAX; i++)
		if (is_there(copy->hint, i))
			add(i, languages[i]->copy, copy);
}

void languages_learn(struct unwinder *unwinder, int tid, struct snapshot_hint *hint,
                     const struct unwound *stack)
{
	for (size_t i = 0; unwinder->stepped >> i; i++) {
		if (!(unwinder->stepped >> i & 1) || !languages[i]->learn)
			continue;
		const struct language_thread thread = thread_of(tid, hint, i);
		languages[i]->learn(&thread, unwinder->words[i], stack);
	}
}

enum language_lack languages_lack(int tid, struct snapshot_hint *hint,
                                  const struct snapshot *snapshot)
{
	enum language_lack most = LANGUAGE_LACKS_NOTHING;

	for (size_t i = 0; i < LANGUAGES_MAX; i++) {
		if (!is_there(hint, i) || !languages[i]->lacks)
			continue;
		const struct language_thread thread = thread_of(tid, hint, i);
		const enum language_lack lack = languages[i]->lacks(&thread, &snapshot->notes[i]);
		most = lack > most ? lack : most;
	}
	return most;
}
