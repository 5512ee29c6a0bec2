/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Frames of functions of WebAssembly. Such a frame has the instance of the module that the function
 * is in, which leads to the module and its script. Which function it is user space finds, by the
 * module's jump table. A part of the step: v8.bpf.c includes it.
 */
#ifndef V8_WASM_H
#define V8_WASM_H

#include "emit.h"

#define MOST_MODULE_WORDS 12u /* of an object that has the module or its script */

enum { NO_MODULE, MODULE_FOUND, MODULE_INSIDE };

/* Is word i of the object in TEXT the module? MODULE_FOUND: it is, and is in TEXT now;
 * MODULE_INSIDE: it is the object that has the module, and is in TEXT now; -1: it cannot be read.
 */
static int is_module(struct fusee_unwind *u, __u32 i)
{
	__u64 w;
	int type;

	if (AT(u, &w, field(u->scratch[TEXT], 8 * i)))
		return -1;
	type = type_of(u, &w);
	if (type <= 0 ||
	    (type != (int)word(u, V8_TYPE_MODULE) && type != (int)word(u, V8_TYPE_INSTANCE)))
		return NO_MODULE;
	u->scratch[TEXT] = w;
	return type == (int)word(u, V8_TYPE_MODULE) ? MODULE_FOUND : MODULE_INSIDE;
}
FUSEE_PART(fusee_v8_is_module, is_module)

/* Looks for the module among the words [1, n) of the object in TEXT. Which word it is, with the
 * results of is_module() in *is; 0: none. */
FUSEE_FN __u32 look_for_module(struct fusee_unwind *u, __u32 n, int *is)
{
	__u32 i;

	(void)u;
	*is = NO_MODULE;
	for (i = 1; i < n; i++) {
		*is = FUSEE_CALL(fusee_v8_is_module, u, i);
		if (*is)
			break;
	}
	return *is > 0 ? i : 0;
}

/* TEXT, an instance, becomes its module, which is in the words that were found in an earlier
 * instance with this map: one word, or two. 0, or -1: it is not there. */
FUSEE_FN int module_as_known(struct fusee_unwind *u, __u64 known)
{
	int is = FUSEE_CALL(fusee_v8_is_module, u, (__u32)known & 0xff);

	(void)u;
	if (is == MODULE_INSIDE && known >> 8)
		is = FUSEE_CALL(fusee_v8_is_module, u, (__u32)known >> 8 & 0xff);
	return is == MODULE_FOUND ? 0 : -1;
}

/* TEXT, an instance, becomes its module. 0 or -1. */
static int find_module(struct fusee_unwind *u, __u32 unused)
{
	__u64 instance = u->scratch[TEXT], map, key, known;
	__u32 first, second = 0;
	int is;

	(void)unused;
	if (AT(u, &map, field(instance, 0)))
		return -1;
	key = fusee_mix(0x7761736d, map);
	known = fusee_recall(u, key);
	if (known && !module_as_known(u, known))
		return 0;
	u->scratch[TEXT] = instance;
	first = look_for_module(u, V8_INSTANCE_WORDS, &is);
	if (is == MODULE_INSIDE)
		second = look_for_module(u, MOST_MODULE_WORDS, &is);
	if (is != MODULE_FOUND)
		return -1;
	fusee_remember(u, key, first | second << 8);
	return 0;
}
FUSEE_PART(fusee_v8_find_module, find_module)

/* SCRIPT becomes the script of the module in TEXT. 0 or -1. */
static int find_module_script(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 w;

	(void)unused;
	if (!n)
		return -1;
	for (__u32 i = 1; i < MOST_MODULE_WORDS; i++) {
		if (AT(u, &w, field(u->scratch[TEXT], 8 * i)))
			return -1;
		if (type_of(u, &w) != (int)word(u, V8_TYPE_SCRIPT))
			continue;
		u->scratch[SCRIPT] = w;
		find_script_id(u, n, w);
		return 0;
	}
	return -1;
}
FUSEE_PART(fusee_v8_find_module_script, find_module_script)

/* Emits the module of SCRIPT, one of whose instances is in CODE. 0, or -1: with a later sample. */
static int emit_module(struct fusee_unwind *u, __u32 unused)
{
	struct v8_module *m = fusee_buffer(u);
	__u64 foreign;

	(void)unused;
	if (fusee_emitted(u, V8_MODULE, u->scratch[SCRIPT_KEY]))
		return 0;
	if (!m || AT(u, &foreign, field(u->scratch[SCRIPT], word(u, V8_SCRIPT_MODULE))) ||
	    type_of(u, &foreign) < 0 || AT(u, &m->managed, field(foreign, 8)) ||
	    AT(u, &m->instance, field(u->scratch[CODE], 0)))
		return -1;
	return fusee_emit(u, V8_MODULE, u->scratch[SCRIPT_KEY], sizeof(*m));
}
FUSEE_PART(fusee_v8_emit_module, emit_module)

/* KEY becomes that of pc in the module with the key SCRIPT_KEY; with `emits` pc is emitted. Code
 * may be made where other code was, so what is there counts. 0, or -1: with a later sample. */
static int emit_wasm(struct fusee_unwind *u, __u32 emits)
{
	__u64 code, at = u->flags & FUSEE_PC_EXACT ? u->pc : u->pc - 1;
	struct v8_wasm *w = fusee_buffer(u);

	if (!w || AT(u, &code, u->pc - 8))
		return -1;
	u->scratch[KEY] = fusee_mix(fusee_mix(u->scratch[SCRIPT_KEY], at), code);
	if (!emits || fusee_emitted(u, V8_WASM, u->scratch[KEY]))
		return 0;
	w->module = u->scratch[SCRIPT_KEY];
	w->at = at;
	if (AT(u, &w->caller, u->fp + 8))
		return -1;
	return fusee_emit(u, V8_WASM, u->scratch[KEY], sizeof(*w));
}
FUSEE_PART(fusee_v8_emit_wasm, emit_wasm)

/* Pushes the frame of the function of WebAssembly at pc, whose instance is in TEXT. */
FUSEE_FN void push_wasm(struct fusee_unwind *u)
{
	int emits;

	u->scratch[KEY] = u->scratch[SCRIPT_KEY] = 0;
	u->scratch[CODE] = u->scratch[TEXT];
	if (!FUSEE_CALL(fusee_v8_find_module, u, 0) &&
	    !FUSEE_CALL(fusee_v8_find_module_script, u, 0)) {
		emits = !emit_script(u) && !FUSEE_CALL(fusee_v8_emit_module, u, 0);
		if (u->scratch[SCRIPT_KEY])
			FUSEE_CALL(fusee_v8_emit_wasm, u, (__u32)emits);
	}
	fusee_push(u, u->scratch[KEY], V8_IS_WASM);
}

#endif
