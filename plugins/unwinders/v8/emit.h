/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the step emits: functions, scripts, tables of positions. A part of the step: v8.bpf.c
 * includes it. */
#ifndef V8_EMIT_H
#define V8_EMIT_H

#include "text.h"

#define SHARED_BYTES 56u
#define MOST_LOCALS (1u << 20)
#define SCOPE_TAIL 6 /* words behind the locals of a ScopeInfo that may be before the name */

/* A field of SHARED, which n->shared has. */
FUSEE_FN __u64 shared_field(struct fusee_unwind *u, const struct near *n, __u32 which)
{
	return n->shared[word(u, which) >> 3 & 7];
}

FUSEE_FN __u64 scope_word(__u64 scope, __u32 i)
{
	return field(scope, 8 + 8 * i);
}

/* Index of the word behind the locals of the ScopeInfo in TEXT. 0 or less: it cannot be read. */
static int behind_locals(struct fusee_unwind *u, __u32 unused)
{
	__u32 first = word(u, V8_SCOPE_FIRST);
	__u64 scope = u->scratch[TEXT], locals, w;

	(void)unused;
	if (AT(u, &locals, scope_word(scope, word(u, V8_SCOPE_LOCALS))) || locals & TAG)
		return -1;
	locals >>= NUMBER_SHIFT;
	if (locals > MOST_LOCALS || first > MOST_LOCALS)
		return -1;
	if (!locals)
		return (int)first;
	if (AT(u, &w, scope_word(scope, first)))
		return -1;
	if (!(w & TAG)) { /* a module's: the number of its variables comes first */
		first++;
		if (AT(u, &w, scope_word(scope, first)))
			return -1;
	}
	/* the names, or one table of many names; then a number for each */
	if ((__u32)type_of(u, &w) < word(u, V8_FIRST_NONSTRING))
		return (int)(first + 2 * (__u32)locals);
	return (int)(first + 1 + (__u32)locals);
}
FUSEE_PART(fusee_v8_behind_locals, behind_locals)

enum { SCOPE_GO_ON = 2 };

/* Is word i of the ScopeInfo in TEXT its name? 1: TEXT is the name now; 0: the ScopeInfo has none;
 * SCOPE_GO_ON; -1: it cannot be read. */
static int is_scope_name(struct fusee_unwind *u, __u32 i)
{
	__u32 length;
	__u64 w;

	if (AT(u, &w, scope_word(u->scratch[TEXT], i)))
		return -1;
	if (!(w & TAG))
		return SCOPE_GO_ON;
	if ((__u32)type_of(u, &w) >= word(u, V8_FIRST_NONSTRING))
		return 0;
	if (AT(u, &length, field(w, word(u, V8_STRING_LENGTH))))
		return -1;
	if (!length)
		return SCOPE_GO_ON;
	u->scratch[TEXT] = w;
	return 1;
}
FUSEE_PART(fusee_v8_is_scope_name, is_scope_name)

/* TEXT becomes the name that the ScopeInfo in it has: the function's, or what was inferred. 1;
 * 0: it has none; -1: it cannot be read. Behind the locals are the function's name and a number, if
 * it has a name; an inferred name; and what is no text. */
static int find_scope_name(struct fusee_unwind *u, __u32 unused)
{
	int at = FUSEE_CALL(fusee_v8_behind_locals, u, 0), r = SCOPE_GO_ON;

	(void)u;
	(void)unused;
	if (at <= 0)
		return -1;
	for (__u32 i = 0; i < SCOPE_TAIL && r == SCOPE_GO_ON; i++)
		r = FUSEE_CALL(fusee_v8_is_scope_name, u, (__u32)at + i);
	return r == SCOPE_GO_ON ? 0 : r;
}
FUSEE_PART(fusee_v8_find_scope_name, find_scope_name)

/* ---- scripts ---- */

enum found { FOUND_NONE, FOUND_TEXT, FOUND_SCOPE, FOUND_EMITTED };

/* SCRIPT_KEY becomes the key of SCRIPT. FOUND_EMITTED; FOUND_TEXT: TEXT is its name; FOUND_NONE: it
 * has none; -1: it cannot be read. */
static int begin_script(struct fusee_unwind *u, __u32 unused)
{
	__u64 script = u->scratch[SCRIPT], line;
	__u32 name = word(u, V8_SCRIPT_NAME);
	struct near *n = near(u);

	(void)unused;
	if (!n || AT(u, &u->scratch[TEXT], field(script, name)) ||
	    AT(u, &n->source, field(script, word(u, V8_SCRIPT_SOURCE))) ||
	    AT(u, &line, field(script, name + 8)))
		return -1;
	n->line_offset = line & TAG ? 0 : (__u32)(line >> NUMBER_SHIFT);
	n->text.bytes = n->text.wide = 0;
	u->scratch[SCRIPT_KEY] = fusee_mix(
		fusee_mix(fusee_mix(fusee_mix(0x7638, script), u->scratch[TEXT]), n->source),
		n->id);
	if (fusee_emitted(u, V8_SCRIPT, u->scratch[SCRIPT_KEY]))
		return FOUND_EMITTED;
	return (__u32)type_of(u, &u->scratch[TEXT]) < word(u, V8_FIRST_NONSTRING) ? FOUND_TEXT
										  : FOUND_NONE;
}
FUSEE_PART(fusee_v8_begin_script, begin_script)

/* n->characters becomes where those of its text are. */
static int find_characters(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	int r = 0;

	(void)unused;
	if (!n)
		return -1;
	n->flat = (struct flat){.text = n->source};
	n->rests = 0;
	for (int i = 0; i < MOST_HOPS && !r; i++)
		r = FUSEE_CALL(fusee_v8_follow, u, 0);
	if (r != 1 || n->rests)
		n->flat.at = 0;
	n->characters = n->flat;
	return 0;
}
FUSEE_PART(fusee_v8_find_characters, find_characters)

/* Emits it. 0 or -1. */
static int end_script(struct fusee_unwind *u, __u32 unused)
{
	char *buffer = fusee_buffer(u);
	struct v8_script *head = (void *)buffer;
	struct near *n = near(u);

	(void)unused;
	if (!n || !buffer)
		return -1;
	head->object = u->scratch[SCRIPT];
	head->source = n->source;
	head->at = n->characters.at;
	head->length = n->characters.length;
	head->wide = n->characters.wide;
	head->line_offset = n->line_offset;
	head->name = n->text;
	return fusee_emit(u, V8_SCRIPT, u->scratch[SCRIPT_KEY],
			  (sizeof(*head) + n->text.bytes) & (FUSEE_EMIT_BYTES - 1));
}
FUSEE_PART(fusee_v8_end_script, end_script)

/* Emits SCRIPT if it is new. 0, or -1: with a later sample. */
FUSEE_FN int emit_script(struct fusee_unwind *u)
{
	const __u32 place = (__u32)sizeof(struct v8_script) << 16 | V8_SCRIPT_BYTES;
	int found = FUSEE_CALL(fusee_v8_begin_script, u, 0);

	(void)u;
	if (found == FOUND_EMITTED)
		return 0;
	if (found < 0 || (found == FOUND_TEXT && FUSEE_CALL(fusee_v8_put_text, u, place)))
		return -1;
	FUSEE_CALL(fusee_v8_find_characters, u, 0);
	return FUSEE_CALL(fusee_v8_end_script, u, 0);
}

/* ---- functions ---- */

/* TEXT becomes the name of SHARED, or its ScopeInfo. FOUND_NONE: it has no name; -1: it cannot be
 * read. */
static int find_name(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 name;
	int type;

	(void)unused;
	if (!n)
		return -1;
	n->text.bytes = n->text.wide = 0;
	name = shared_field(u, n, V8_SHARED_NAME);
	if (!(name & TAG))
		return FOUND_NONE;
	type = type_of(u, &name);
	u->scratch[TEXT] = name;
	if (type == (int)word(u, V8_TYPE_SCOPE))
		return FOUND_SCOPE;
	return (__u32)type < word(u, V8_FIRST_NONSTRING) ? FOUND_TEXT : -1;
}
FUSEE_PART(fusee_v8_find_name, find_name)

/* Emits the function with the key KEY. 0 or -1. */
static int end_function(struct fusee_unwind *u, __u32 unused)
{
	char *buffer = fusee_buffer(u);
	struct v8_function *head = (void *)buffer;
	struct near *n = near(u);

	(void)unused;
	if (!n || !buffer)
		return -1;
	head->script = u->scratch[SCRIPT_KEY];
	head->flags = u->scratch[SCRIPT] ? 0 : V8_IS_BUILTIN;
	head->name = n->text;
	return fusee_emit(u, V8_FUNCTION, u->scratch[KEY],
			  (sizeof(*head) + n->text.bytes) & (FUSEE_EMIT_BYTES - 1));
}
FUSEE_PART(fusee_v8_end_function, end_function)

/* Emits the function of SHARED, with the key KEY, and its script. 0, or -1: with a later sample. */
FUSEE_FN int emit_function(struct fusee_unwind *u)
{
	const __u32 place = (__u32)sizeof(struct v8_function) << 16 | V8_NAME_BYTES;
	int found;

	if (u->scratch[SCRIPT] && emit_script(u))
		return -1;
	found = FUSEE_CALL(fusee_v8_find_name, u, 0);
	if (found == FOUND_SCOPE)
		found = FUSEE_CALL(fusee_v8_find_scope_name, u, 0);
	if (found < 0 || (found == FOUND_TEXT && FUSEE_CALL(fusee_v8_put_text, u, place)))
		return -1;
	return FUSEE_CALL(fusee_v8_end_function, u, 0);
}

/* ---- tables ---- */

/* The length of the array in TEXT, or -1. */
FUSEE_FN int array_length(struct fusee_unwind *u)
{
	__u64 length;

	if (AT(u, &length, field(u->scratch[TEXT], word(u, V8_BYTECODE_LENGTH))) || length & TAG)
		return -1;
	length >>= NUMBER_SHIFT;
	return length < 1u << 28 ? (int)length : -1;
}

/* TEXT becomes the table of positions of the object in it, whose offset in it is this; or it is
 * bytecode, and the offset is 0. Its bytes; -1: there is none. */
static int find_table(struct fusee_unwind *u, __u32 offset)
{
	__u64 table;

	if (offset) {
		if (AT(u, &table, field(u->scratch[TEXT], offset)) ||
		    type_of(u, &table) != (int)word(u, V8_TYPE_TABLE))
			return -1;
		u->scratch[TEXT] = table;
	}
	return array_length(u);
}
FUSEE_PART(fusee_v8_find_table, find_table)

/* Emits a part of the table in TEXT: (the table * V8_PARTS + the part) << 28 | its bytes. 0 or -1.
 */
static int emit_part(struct fusee_unwind *u, __u32 which)
{
	__u32 kind = which >> 28, part = kind % V8_PARTS, bytes = which & 0xfffffff, n;
	__u32 data = word(u, kind < V8_PARTS ? V8_TABLE_DATA : V8_BYTECODE_DATA);
	char *buffer = fusee_buffer(u);

	if (!buffer || part * V8_PART_BYTES > bytes)
		return -1;
	n = bytes - part * V8_PART_BYTES;
	if (n > V8_PART_BYTES)
		n = V8_PART_BYTES;
	__asm__ volatile("" : "+r"(n));
	n &= 2 * V8_PART_BYTES - 1;
	if (n > V8_PART_BYTES)
		return -1;
	((struct v8_positions *)(void *)buffer)->bytes = bytes;
	if (n && fusee_read(u, buffer + sizeof(struct v8_positions), n,
			    field(u->scratch[TEXT], data) + part * V8_PART_BYTES))
		return -1;
	return fusee_emit(u, V8_POSITIONS + kind, u->scratch[KEY],
			  (n + sizeof(struct v8_positions)) & (FUSEE_EMIT_BYTES - 1));
}
FUSEE_PART(fusee_v8_emit_part, emit_part)

/* Emits the parts of a table of the object in TEXT, whose key is KEY, unless it was emitted; or
 * with a later sample. which << 16 | offset: enum v8_table_of; as find_table(). */
static int emit_table(struct fusee_unwind *u, __u32 which_at)
{
	__u32 kind = (which_at >> 16) * V8_PARTS & (V8_TABLES * V8_PARTS - 1);
	int bytes, r = 0;

	if (fusee_emitted(u, V8_POSITIONS + kind, u->scratch[KEY]))
		return 0;
	bytes = FUSEE_CALL(fusee_v8_find_table, u, which_at & 0xffff);
	for (int i = V8_PARTS - 1; i >= 0 && bytes >= 0 && !r; i--)
		if (!i || bytes > i * (int)V8_PART_BYTES)
			r = FUSEE_CALL(fusee_v8_emit_part, u,
				       (kind + (__u32)i) << 28 | (__u32)bytes);
	return r;
}
FUSEE_PART(fusee_v8_emit_table, emit_table)

/* Emits the positions of the object, whose offset in it is this. 0, also if it has none; or -1. */
FUSEE_FN int emit_positions(struct fusee_unwind *u, __u64 object, __u32 offset)
{
	u->scratch[TEXT] = object;
	return FUSEE_CALL(fusee_v8_emit_table, u, V8_TABLE_POSITIONS << 16 | (offset & 0xffff));
}

/* n->id becomes the number of the script, which is behind its table of lines; 0: it has none. A
 * function of another script may come to a place whose function, name and script were collected. */
FUSEE_FN void find_script_id(struct fusee_unwind *u, struct near *n, __u64 script)
{
	if (u->time_ns && n->script_at == u->time_ns && n->script == script)
		return;
	n->script = script;
	n->script_at = u->time_ns;
	if (AT(u, &n->id, field(script, word(u, V8_SCRIPT_LINE_ENDS) + 8)) || n->id & TAG)
		n->id = 0;
}

/* The key of this SharedFunctionInfo, whose first words n->shared has. */
FUSEE_FN __u64 key_of_shared(struct fusee_unwind *u, struct near *n, __u64 shared)
{
	__u64 script = shared_field(u, n, V8_SHARED_SCRIPT), key;

	key = fusee_mix(fusee_mix(0x736669, shared), shared_field(u, n, V8_SHARED_NAME));
	/* behind the length are the number of parameters and where the function begins */
	key = fusee_mix(fusee_mix(key, script),
			shared_field(u, n, V8_SHARED_LENGTH) & 0xffffffffffffull);
	find_script_id(u, n, script);
	return fusee_mix(key, n->id);
}

/* KEY becomes the key of SHARED, and SCRIPT its script, or 0. 0; 1: the function is to be emitted;
 * -1: it is no SharedFunctionInfo, or cannot be read. */
static int find_function(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 key, script;
	int type;

	(void)unused;
	if (!n || type_of(u, &u->scratch[SHARED]) != (int)word(u, V8_TYPE_SHARED) ||
	    fusee_read(u, n->shared, SHARED_BYTES, field(u->scratch[SHARED], 0)))
		return -1;
	script = shared_field(u, n, V8_SHARED_SCRIPT);
	key = key_of_shared(u, n, u->scratch[SHARED]);
	u->scratch[KEY] = key;
	if (fusee_emitted(u, V8_FUNCTION, key))
		return 0;
	type = type_of(u, &script);
	u->scratch[SCRIPT] = type == (int)word(u, V8_TYPE_SCRIPT) ? script : 0;
	u->scratch[SCRIPT_KEY] = 0;
	return type < 0 ? -1 : 1;
}
FUSEE_PART(fusee_v8_find_function, find_function)

#endif
