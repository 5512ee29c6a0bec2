/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the step emits: methods, places in compiled methods, stubs. A part of the step:
 * hotspot.bpf.c includes it. */
#ifndef HOTSPOT_EMIT_H
#define HOTSPOT_EMIT_H

#include "blob.h"
#include "classes.h"
#include "scopes.h"
#include "state.h"

/* ---- what was read of a method ---- */

/* Reads the ConstMethod of METHOD, most of it at once. 0 or -1. */
FUSEE_FN int read_constants(struct fusee_unwind *u, struct near *m)
{
	if (AT(u, &m->constants, u->scratch[METHOD] + word(u, HOTSPOT_METHOD_CONST)))
		return -1;
	m->nfields = fusee_read(u, m->fields, CONSTANTS_BYTES, m->constants) ? 0 : CONSTANTS_BYTES;
	return 0;
}

/* A number of 2 or 8 bytes of it. 0 or -1. */
FUSEE_FN int constant(struct fusee_unwind *u, const struct near *m, void *to, __u32 len, __u64 from)
{
	if (from & (len - 1) || from + len > m->nfields)
		return fusee_read(u, to, len, m->constants + from);
	return pick(m->fields, CONSTANTS_BYTES, to, len, from);
}

#define CONSTANT(u, m, what, offset) constant(u, m, what, sizeof(*(what)), offset)

/* Slot i of a constant pool, which is a Symbol. 0 or -1. */
FUSEE_FN int symbol_at(struct fusee_unwind *u, __u64 pool, __u32 i, __u64 *symbol)
{
	if (AT(u, symbol, pool + word(u, HOTSPOT_POOL_SIZE) + 8ull * i))
		return -1;
	*symbol &= ~7ull;
	return *symbol ? 0 : -1;
}

/* Copies the bytes of a Symbol, at most `most` of them, to byte `at` of the buffer. Their number,
 * or -1. */
FUSEE_FN int put_symbol(struct fusee_unwind *u, char *buffer, __u32 at, __u64 symbol, __u32 most)
{
	unsigned short length;
	__u32 n;

	if (AT(u, &length, symbol + word(u, HOTSPOT_SYMBOL_LENGTH)))
		return -1;
	n = length < most ? length : most;
	__asm__ volatile("" : "+r"(n), "+r"(at));
	n &= most;
	at &= FUSEE_EMIT_BYTES - 1;
	return !n || fusee_read(u, buffer + at, n, symbol + word(u, HOTSPOT_SYMBOL_BODY)) ? -1
											  : (int)n;
}

/* The bytes of a packed table of lines at byte `at` of the buffer, with the 0 that ends it; `most`
 * if that is not among so many bytes. An entry is a byte, or 0xff and two packed numbers. */
FUSEE_FN __u32 table_bytes(struct near *n, const char *buffer, __u32 at, __u32 most)
{
	n->numbers = n->digits = 0;
	for (__u32 i = 0; i < HOTSPOT_LINE_BYTES; i++) {
		__u8 b = (__u8)buffer[(at + i) & (FUSEE_EMIT_BYTES - 1)];

		if (i >= most)
			break;
		if (n->numbers) {
			n->digits++;
			if (b < 192 || n->digits >= 5) {
				n->numbers--;
				n->digits = 0;
			}
		} else if (b == 0xff) {
			n->numbers = 2;
		} else if (!b) {
			return i + 1;
		}
		__asm__ volatile("" : : : "memory");
	}
	return most;
}

/* Copies the packed table of lines of METHOD, which is behind the bytecodes, to byte `at` of the
 * buffer. Its bytes; 0: there is none. */
static int put_lines(struct fusee_unwind *u, __u32 at)
{
	unsigned short flags, code;
	char *buffer = fusee_buffer(u);
	struct near *n = near(u);
	__u32 words, from, most;
	__u64 constants;

	if (!n || !buffer ||
	    AT(u, &constants, u->scratch[METHOD] + word(u, HOTSPOT_METHOD_CONST)) ||
	    AT(u, &flags, constants + word(u, HOTSPOT_CONST_FLAGS)) ||
	    !(flags & word(u, HOTSPOT_HAS_LINES)) ||
	    AT(u, &code, constants + word(u, HOTSPOT_CONST_CODE_SIZE)) ||
	    AT(u, &words, constants + word(u, HOTSPOT_CONST_WORDS)))
		return 0;
	from = word(u, HOTSPOT_CONST_SIZE) + code;
	if (words >> 20 || 8 * words <= from)
		return 0;
	most = 8 * words - from < HOTSPOT_LINE_BYTES ? 8 * words - from : HOTSPOT_LINE_BYTES;
	__asm__ volatile("" : "+r"(at), "+r"(most));
	at &= FUSEE_EMIT_BYTES - 1;
	most &= HOTSPOT_LINE_BYTES;
	if (!most || fusee_read(u, buffer + at, most, constants + from))
		return 0;
	return (int)table_bytes(n, buffer, at, most);
}
FUSEE_PART(fusee_hotspot_put_lines, put_lines)

/* The slot of the pool that has the source file's name; 0: there is none. */
FUSEE_FN unsigned short file_index(struct fusee_unwind *u, __u64 pool, __u64 class)
{
	__u32 of_pool = word(u, HOTSPOT_POOL_FILE), of_class = word(u, HOTSPOT_CLASS_FILE);
	unsigned short index;

	if (!of_pool && !of_class)
		return 0;
	return AT(u, &index, of_pool ? pool + of_pool : class + of_class) ? 0 : index;
}

/* Emits METHOD, whose key is in KEY. 0 or -1. */
FUSEE_FN int emit_method(struct fusee_unwind *u, const struct near *m)
{
	char *buffer = fusee_buffer(u);
	struct hotspot_method *head = (void *)buffer;
	__u64 holder, symbol;
	unsigned short index;
	__u32 at = sizeof(*head);
	int n;

	if (!buffer || AT(u, &holder, m->pool + word(u, HOTSPOT_POOL_HOLDER)) ||
	    AT(u, &symbol, holder + word(u, HOTSPOT_KLASS_NAME)))
		return -1;
	n = put_symbol(u, buffer, at, symbol, HOTSPOT_CLASS_BYTES);
	if (n < 0)
		return -1;
	head->class_bytes = (unsigned short)n;
	at += (__u32)n;
	n = put_symbol(u, buffer, at, m->name, HOTSPOT_NAME_BYTES);
	if (n < 0)
		return -1;
	head->name_bytes = (unsigned short)n;
	at += (__u32)n;
	n = -1;
	if (!AT(u, &index, m->constants + word(u, HOTSPOT_CONST_SIGNATURE)) &&
	    !symbol_at(u, m->pool, index, &symbol))
		n = put_symbol(u, buffer, at, symbol, HOTSPOT_SIGNATURE_BYTES);
	head->signature_bytes = n < 0 ? 0 : (unsigned short)n;
	at += head->signature_bytes;
	n = -1;
	index = file_index(u, m->pool, holder);
	if (index && !symbol_at(u, m->pool, index, &symbol))
		n = put_symbol(u, buffer, at, symbol, HOTSPOT_FILE_BYTES);
	head->file_bytes = n < 0 ? 0 : (unsigned short)n;
	at += head->file_bytes;
	head->line_bytes = HOTSPOT_LINE_BYTES & (__u32)FUSEE_CALL(fusee_hotspot_put_lines, u, at);
	head->pad = 0;
	at += head->line_bytes;
	return fusee_emit(u, HOTSPOT_METHOD, u->scratch[KEY], at & (FUSEE_EMIT_BYTES - 1));
}

#define TAIL 16u /* bytes of a name that a key has */

/* Reads a Symbol into m->symbol, from byte TAIL on, or what a key has of a long name. Returns
 * where in m->symbol the name ends; 0: it cannot be read. */
FUSEE_FN __u32 read_symbol(struct fusee_unwind *u, struct near *m, __u64 symbol, __u32 *length)
{
	__u32 body = word(u, HOTSPOT_SYMBOL_BODY), at = word(u, HOTSPOT_SYMBOL_LENGTH), n;
	unsigned short bytes;

	if (at <= SYMBOL_BYTES - sizeof(bytes) && !(at & 1) &&
	    !fusee_read(u, m->symbol + TAIL / 8, SYMBOL_BYTES, symbol) &&
	    !pick(m->symbol + TAIL / 8, SYMBOL_BYTES, &bytes, sizeof(bytes), at) &&
	    body + bytes <= SYMBOL_BYTES) {
		*length = bytes;
		return TAIL + body + bytes;
	}
	if (AT(u, &bytes, symbol + at))
		return 0;
	*length = bytes;
	n = bytes < TAIL ? bytes : TAIL;
	__asm__ volatile("" : "+r"(n));
	n &= 2 * TAIL - 1;
	if (n && n <= TAIL && fusee_read(u, m->symbol + TAIL / 8, n, symbol + body + bytes - n))
		return 0;
	return TAIL + n;
}

/* Mixes a name into the key: its length and its end. Memory of an unloaded class, names included,
 * is used again for the next. What cannot be read is not emitted either. */
FUSEE_FN __u64 mix_name(struct fusee_unwind *u, struct near *m, __u64 key, __u64 symbol)
{
	__u32 length, end = read_symbol(u, m, symbol, &length), i, shift;
	__u64 first, second;

	if (end < TAIL)
		return key;
	i = (end - TAIL) / 8;
	shift = (end & 7) * 8;
	__asm__ volatile("" : "+r"(i));
	if (i > SYMBOL_BYTES / 8) /* for the verifier: it never is */
		return key;
	first = m->symbol[i] >> shift | m->symbol[i + 1] << 1 << (63 - shift);
	second = m->symbol[i + 1] >> shift | m->symbol[i + 2] << 1 << (63 - shift);
	if (length <= 8) {
		first = 0;
		second = length ? second >> (64 - 8 * length) : 0;
	} else if (length < TAIL) {
		first >>= 8 * (TAIL - length);
	}
	return fusee_mix(fusee_mix(fusee_mix(key, length), first), second);
}

/* What a key has of the name of the class with the method's constant pool. The methods of a class
 * have it in common, so it is noted if n->generation is read. 0: it cannot be read. */
FUSEE_FN __u64 class_part(struct fusee_unwind *u, struct near *m, int is_read)
{
	__u64 at = fusee_mix(0x636c617373, m->pool), class, symbol, part;
	struct fusee_note *k = fusee_find_note(u, at);

	if (k && holds(u, m, k, is_read))
		return k->word[CLASS_PART];
	if (AT(u, &class, m->pool + word(u, HOTSPOT_POOL_HOLDER)) ||
	    AT(u, &symbol, class + word(u, HOTSPOT_KLASS_NAME)))
		return 0;
	part = mix_name(u, m, 0, symbol);
	k = part && is_read ? make_holding_note(u, m, at) : 0;
	if (k)
		k->word[CLASS_PART] = part;
	return part;
}

/* Mixes the names of METHOD and of its class into KEY. */
static int mix_names(struct fusee_unwind *u, __u32 is_read)
{
	__u64 key = u->scratch[KEY], part;
	struct near *m = near(u);

	if (!m)
		return 0;
	key = mix_name(u, m, key, m->name);
	part = class_part(u, m, is_read);
	if (part)
		key = fusee_mix(key, part);
	u->scratch[KEY] = key;
	return 0;
}
FUSEE_PART(fusee_hotspot_mix_names, mix_names)

/* KEY becomes the key of METHOD, which is emitted if it is new. is_read: read_constants() and
 * read_generation() were called for it. 0; 1: it is emitted with a later sample; -1: it cannot be
 * read. */
static int name_method(struct fusee_unwind *u, __u32 is_read)
{
	struct near *m = near(u);
	unsigned short index;
	__u64 key;

	if (!m || (!is_read && read_constants(u, m)) ||
	    CONSTANT(u, m, &m->pool, word(u, HOTSPOT_CONST_POOL)) ||
	    CONSTANT(u, m, &index, word(u, HOTSPOT_CONST_NAME)) ||
	    symbol_at(u, m->pool, index, &m->name))
		return -1;
	key = fusee_mix(fusee_mix(0x6a766d, u->scratch[METHOD]), m->constants);
	u->scratch[KEY] = fusee_mix(fusee_mix(key, m->pool), m->name);
	FUSEE_CALL(fusee_hotspot_mix_names, u, is_read);
	return !fusee_emitted(u, HOTSPOT_METHOD, u->scratch[KEY]) && emit_method(u, m);
}
FUSEE_PART(fusee_hotspot_name_method, name_method)

/* Notes METHOD as scope i. What name_method() returns. */
FUSEE_FN int note_scope(struct fusee_unwind *u, struct near *n, __u32 i, __u64 method, __u32 bci)
{
	int r;

	u->scratch[METHOD] = method;
	r = FUSEE_CALL(fusee_hotspot_name_method, u, 0);
	if (r < 0)
		return r;
	__asm__ volatile("" : "+r"(i));
	i &= HOTSPOT_SCOPES - 1;
	n->scope[i].method = u->scratch[KEY];
	n->scope[i].bci = bci;
	n->scope[i].pad = 0;
	return r;
}

/* Notes the methods at this offset of the code, which end with `outermost`. Their number; 0: they
 * are not known; -1: something cannot be read. *later: how many are to be emitted with a later
 * sample. */
FUSEE_FN int note_scopes(struct fusee_unwind *u, struct near *n, __u32 offset, __u64 outermost,
			 __u32 *later)
{
	int r = FUSEE_CALL(fusee_hotspot_find_scope, u, offset);
	__u32 scope = (__u32)r, complete;

	if (r < 0 || blob_complete(u, n, &complete))
		return -1;
	if (is_exact(u) && (__s32)offset < (__s32)complete)
		return 0; /* it begins: nothing that was inlined is executed */
	for (__u32 i = 0; i < HOTSPOT_SCOPES && scope; i++) {
		r = FUSEE_CALL(fusee_hotspot_read_scope, u, scope);
		if (r)
			return r < 0 ? r : 0;
		r = note_scope(u, n, i, n->found.method, n->found.bci);
		if (r < 0)
			return r;
		*later += (__u32)r;
		if (!n->found.outer)
			return n->found.method == outermost ? (int)i + 1 : 0;
		scope = n->found.outer < scope ? n->found.outer : 0;
	}
	return 0;
}

/* Emits the place with the key KEY, at this offset of the code: METHOD, and what was inlined into
 * it there. 0 or -1. */
static int emit_place(struct fusee_unwind *u, __u32 offset)
{
	__u64 key = u->scratch[KEY], outermost = u->scratch[METHOD];
	char *buffer = fusee_buffer(u);
	struct near *n = near(u);
	__u32 later = 0;
	int scopes;

	if (!buffer || !n)
		return -1;
	scopes = note_scopes(u, n, offset, outermost, &later);
	if (!scopes) {
		later = (__u32)note_scope(u, n, 0, outermost, HOTSPOT_NO_BCI);
		scopes = 1;
	}
	if (later || scopes < 0) /* or it cannot be read */
		return -1;
	__builtin_memcpy(buffer, n->scope, sizeof(n->scope));
	return fusee_emit(u, HOTSPOT_PLACE, key,
			  ((__u32)scopes & (2 * HOTSPOT_SCOPES - 1)) * sizeof(n->scope[0]));
}
FUSEE_PART(fusee_hotspot_emit_place, emit_place)

/* Pushes the blob's stub, by its name or as what it is. own: enum hotspot_own_stub. */
static int push_stub(struct fusee_unwind *u, __u32 own)
{
	__u64 key = fusee_mix(u->scratch[NAME], own);
	char *buffer = fusee_buffer(u);
	int n = 8; /* bytes with an end */

	fusee_push(u, key, HOTSPOT_IS_STUB);
	if (!buffer || fusee_emitted(u, HOTSPOT_STUB, key))
		return 0;
	if (own == HOTSPOT_CALLS_JAVA)
		*(__u64 *)(void *)buffer = TEXT8('t', 'o', ' ', 'J', 'a', 'v', 'a', 0);
	else if (own == HOTSPOT_IN_HEAP)
		*(__u64 *)(void *)buffer = TEXT8('i', 'n', ' ', 'h', 'e', 'a', 'p', 0);
	else if (own == HOTSPOT_REPLACES)
		*(__u64 *)(void *)buffer = TEXT8('r', 'e', 'p', 'l', 'a', 'c', 'e', 0);
	else
		n = fusee_read_str(u, buffer, HOTSPOT_STUB_BYTES + 1, u->scratch[NAME]);
	if (n > 1 && n <= (int)HOTSPOT_STUB_BYTES + 1)
		fusee_emit(u, HOTSPOT_STUB, key, (__u32)n - 1);
	return 0;
}
FUSEE_PART(fusee_hotspot_push_stub, push_stub)

#endif
