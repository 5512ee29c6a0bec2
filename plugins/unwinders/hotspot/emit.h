/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the step emits: methods, places in compiled methods, stubs. A part of the step:
 * hotspot.bpf.c includes it. */
#ifndef HOTSPOT_EMIT_H
#define HOTSPOT_EMIT_H

#include "state.h"

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

struct method {
	__u64 constants, pool, name;
};

/* Emits the method m, whose key is in KEY. 0 or -1. */
FUSEE_FN int emit_method(struct fusee_unwind *u, const struct method *m)
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
	if (!AT(u, &index, m->pool + word(u, HOTSPOT_POOL_FILE)) && index &&
	    !symbol_at(u, m->pool, index, &symbol))
		n = put_symbol(u, buffer, at, symbol, HOTSPOT_FILE_BYTES);
	head->file_bytes = n < 0 ? 0 : (unsigned short)n;
	at += head->file_bytes;
	return fusee_emit(u, HOTSPOT_METHOD, u->scratch[KEY], at & (FUSEE_EMIT_BYTES - 1));
}

/* KEY becomes the key of METHOD, which is emitted if it is new. 0, or -1: it cannot be read. */
static int name_method(struct fusee_unwind *u, __u32 unused)
{
	__u64 key = u->scratch[METHOD];
	unsigned short index;
	struct method m;

	(void)unused;
	if (AT(u, &m.constants, key + word(u, HOTSPOT_METHOD_CONST)) ||
	    AT(u, &m.pool, m.constants + word(u, HOTSPOT_CONST_POOL)) ||
	    AT(u, &index, m.constants + word(u, HOTSPOT_CONST_NAME)) ||
	    symbol_at(u, m.pool, index, &m.name))
		return -1;
	key = fusee_mix(fusee_mix(fusee_mix(fusee_mix(0x6a766d, key), m.constants), m.pool),
			m.name);
	u->scratch[KEY] = key;
	if (!fusee_emitted(u, HOTSPOT_METHOD, key))
		emit_method(u, &m); /* or with a later sample */
	return 0;
}
FUSEE_PART(fusee_hotspot_name_method, name_method)

/* Emits the place with this key: METHOD, and what was inlined into it there. */
static int emit_place(struct fusee_unwind *u, __u32 unused)
{
	struct hotspot_scope scope = {.bci = HOTSPOT_NO_BCI};
	void *buffer = fusee_buffer(u);
	__u64 key = u->scratch[KEY];

	(void)unused;
	if (!buffer || FUSEE_CALL(fusee_hotspot_name_method, u, 0))
		return -1;
	scope.method = u->scratch[KEY];
	__builtin_memcpy(buffer, &scope, sizeof(scope));
	return fusee_emit(u, HOTSPOT_PLACE, key, sizeof(scope));
}
FUSEE_PART(fusee_hotspot_emit_place, emit_place)

/* Pushes the blob's stub, by its name; `called`: it is the call stub. */
static int push_stub(struct fusee_unwind *u, __u32 called)
{
	__u64 key = fusee_mix(u->scratch[NAME], called);
	char *buffer = fusee_buffer(u);
	int n = 10; /* of what is emitted of the call stub, with an end */

	fusee_push(u, key, HOTSPOT_IS_STUB);
	if (!buffer || fusee_emitted(u, HOTSPOT_STUB, key))
		return 0;
	buffer[8] = 'b';
	if (called)
		*(__u64 *)(void *)buffer = TEXT8('c', 'a', 'l', 'l', '_', 's', 't', 'u');
	else
		n = fusee_read_str(u, buffer, HOTSPOT_STUB_BYTES + 1, u->scratch[NAME]);
	if (n > 1 && n <= (int)HOTSPOT_STUB_BYTES + 1)
		fusee_emit(u, HOTSPOT_STUB, key, (__u32)n - 1);
	return 0;
}
FUSEE_PART(fusee_hotspot_push_stub, push_stub)

#endif
