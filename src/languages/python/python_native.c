// SPDX-License-Identifier: MIT
#include "python_native.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "module.h"
#include "profile.h"
#include "symbol_table.h"
#include "text.h"

static const char eval_name[] = "_PyEval_EvalFrameDefault";

// Up to 3.10 the library pyston_lite replaces the loop: by up to three functions, which call each
// other.
static const char pyston_name[] = "_PyEval_EvalFrame_AOT";
static const char pyston_jit_name[] = "_PyEval_EvalFrame_AOT_JIT";

// Beginnings of names. What does something that a program asked for (list.sort, import, exec) is
// not among them.
static const char *const plumbing[] = {
    // Calls.
    "PyObject_Call",
    "_PyObject_Call",
    "PyObject_Vectorcall",
    "_PyObject_Vectorcall",
    "_PyObject_MakeTpCall",
    "_PyObject_FastCall",
    "object_vacall",
    "PyVectorcall_",
    "_PyVectorcall_",
    "_PyFunction_",
    "function_call",
    "function_code_fastcall",
    "method_vectorcall",
    "method_call",
    "_PyMethodDef_",
    "_PyMethodDescr_",
    "_PyCFunction_",
    "cfunction_vectorcall",
    "cfunction_call",
    "call_function",
    "_Py_VectorCall", // 3.15
    "_Py_BuiltinCall",
    "_Py_CallBuiltin",
    "do_call_core",
    "fast_function",
    "_PyStack_",
    "vectorcall_",
    "trace_call_function",
    "slot_tp_",
    "type_call",
    "wrap_",
    "wrapper_call",
    "wrapperdescr_",
    "PyCFunction_Call",
    "PyEval_Call",
    "PyFunction_",
    "callmethod",
    "_PyCall",
    "PyCell_",
    // The loop's own.
    "PyEval_Eval",
    "_PyEval_Eval",
    "_PyEval_Vector",
    "_PyEval_Frame",
    "_PyEvalFrame",
    "_TAIL_CALL_",
    "eval_frame_handle",
    "gen_send_ex",
    "gen_iternext",
    "_PyGen_Send",
    "_gen_throw",
    "_PyGen_",
    "PyGen_am_send",
    "PyIter_",
    "gen_send",
    "coro_wrapper_",
    // How programs and threads begin.
    "Py_RunMain",
    "Py_BytesMain",
    "Py_Main",
    "pymain_",
    "PyRun_",
    "_PyRun_",
    "pyrun_",
    "run_mod",
    "run_eval_code_obj",
    "thread_run",
    "t_bootstrap",
    "pythread_wrapper",
    "interpreter_update_config",
};

static const char *const code_makers[] = {
    "py_trampoline_evaluator", // python -X perf
    "_PyJIT_",
};

static const char *const collectors[] = {
    "gc_collect",   "collect_with_callback", "collect_generations",
    "PyGC_Collect", "_PyGC_Collect",         "_Py_RunGC",
    "collect.",
};

void python_natives_deinit(struct python_natives *natives)
{
	free(natives->kinds);
	*natives = (struct python_natives){0};
}

static bool begins_with_some(const char *text, const char *const *beginnings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text_begins_with(text, beginnings[i]))
			return true;
	return false;
}

struct look_up {
	struct module *module;
	uint64_t address;
	enum python_native kind;
};

static const char *find_name(const struct look_up *look_up)
{
	const struct symbol_table *table = module_symbols(look_up->module);

	return table ? symbol_table_find(table, look_up->address) : NULL;
}

// A greenlet's first function never returns to the frames that lie below it on the stack: they are
// of whoever ran when it began, or what has been left there since (greenlet's TUserGreenlet.cpp;
// the name is in C++'s, too).
static void look_up_greenlet(void *context)
{
	struct look_up *look_up = context;
	const char *name = find_name(look_up);

	look_up->kind = name && strstr(name, "g_initialstub") ? PYTHON_NATIVE_GREENLET
	                                                      : PYTHON_NATIVE_GREENLETS;
}

static void look_up(void *context)
{
	struct look_up *look_up = context;
	const char *name = find_name(look_up);

	// Code of the interpreter's that has no name says nothing to anybody.
	look_up->kind = name ? PYTHON_NATIVE_OTHER : PYTHON_NATIVE_PLUMBING;
	if (!name)
		return;
	if (text_begins_with(name, pyston_jit_name))
		look_up->kind = PYTHON_NATIVE_EVAL_JIT;
	else if (text_begins_with(name, eval_name) || text_begins_with(name, pyston_name))
		look_up->kind = PYTHON_NATIVE_EVAL;
	else if (text_begins_with(name, "take_gil"))
		look_up->kind = PYTHON_NATIVE_TAKE_GIL;
	else if (begins_with_some(name, code_makers, array_size(code_makers)))
		look_up->kind = PYTHON_NATIVE_MAKES_CODE;
	else if (strcmp(name, "collect") == 0 ||
	         begins_with_some(name, collectors, array_size(collectors)))
		look_up->kind = PYTHON_NATIVE_COLLECT;
	else if (begins_with_some(name, plumbing, array_size(plumbing)))
		look_up->kind = PYTHON_NATIVE_PLUMBING;
}

// What to ask of a file that is not the interpreter's; NULL: nothing.
static void (*question_of(const struct module *module))(void *)
{
	if (module->kind != MODULE_FILE)
		return NULL;
	if (strstr(module->path, "greenlet"))
		return look_up_greenlet;
	return strstr(module->path, "/pyston_lite") ? look_up : NULL;
}

static enum python_native find(const struct python_natives *natives,
                               const struct location *location)
{
	struct module *module = natives->modules->items[location->module];
	struct look_up wanted = {module, location->address, PYTHON_NATIVE_OTHER};

	if (module != natives->module) {
		void (*const ask)(void *) = question_of(module);
		if (ask)
			module_guard(module, ask, &wanted, MODULE_FOR_NAMES);
		return wanted.kind;
	}
	if (location->address - natives->eval < natives->eval_bytes)
		return PYTHON_NATIVE_EVAL;
	module_guard(module, look_up, &wanted, MODULE_FOR_NAMES);
	return wanted.kind;
}

enum python_native python_natives_get(struct python_natives *natives, const struct profile *profile,
                                      uint32_t location)
{
	natives->kinds = memory_grow(natives->kinds, &natives->capacity, (size_t)location + 1,
	                             sizeof(natives->kinds[0]));
	while (natives->n <= location)
		natives->kinds[natives->n++] = PYTHON_NATIVE_NOT_SEEN;
	if (natives->kinds[location] == PYTHON_NATIVE_NOT_SEEN)
		natives->kinds[location] = find(natives, &profile->locations[location]);
	return natives->kinds[location];
}
