/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <errno.h>
#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/emitted.h>
#include <fusee/profile.h>

#include "memory.h"

struct process {
	struct fusee_emitted kept;
	void *methods, *places, *stubs, *threads; /* trees, by key */
	void *named; /* tree of those that methods have, by what they say */
	struct hotspot_jvm jvm;
};

/* A class that is loaded again has methods with other keys, and the same texts. */
struct method {
	struct fusee_emitted_element head;
	struct hotspot_named *named; /* in p->named; used with the method */
};

static void free_process(void *element)
{
	struct process *p = element;

	tdestroy(p->methods, free);
	tdestroy(p->named, free);
	tdestroy(p->places, free);
	tdestroy(p->stubs, free);
	tdestroy(p->threads, free);
	hotspot_memory_free(p->jvm.memory);
	free(p);
}

struct hotspot_jvm *hotspot_names_jvm(void **processes, uint64_t process)
{
	struct process *p = fusee_emitted_process(processes, process, sizeof(*p));

	return p ? &p->jvm : NULL;
}

/* ---- methods ---- */

/* Copies a text of n bytes; in the name of a class '/' becomes '.'. No text of a class file has a
 * NUL. Returns the address behind it. */
static char *put(char *to, const unsigned char *from, size_t n, bool is_class)
{
	for (size_t i = 0; i < n; i++)
		to[i] = is_class && from[i] == '/' ? '.' : from[i] ? (char)from[i] : '?';
	return to + n;
}

static size_t text_bytes(const struct hotspot_named *n)
{
	return (size_t)n->name_bytes + n->signature_bytes + n->file_bytes + n->line_bytes;
}

static int by_text(const void *a, const void *b)
{
	const struct hotspot_named *x = a, *y = b;
	const uint16_t of_x[] = {x->name_bytes, x->signature_bytes, x->file_bytes, x->line_bytes};
	const uint16_t of_y[] = {y->name_bytes, y->signature_bytes, y->file_bytes, y->line_bytes};
	int r = memcmp(of_x, of_y, sizeof(of_x));

	return r ? r : memcmp(x->text, y->text, text_bytes(x));
}

/* What an emission says of a method: text is behind m. NULL: no memory. */
static struct hotspot_named *new_named(const struct hotspot_method *m, const unsigned char *text)
{
	const size_t rest = (size_t)m->name_bytes + m->signature_bytes + m->file_bytes;
	struct hotspot_named *named = calloc(1, sizeof(*named) + m->class_bytes + 1 + rest +
							m->line_bytes);
	char *to;

	if (!named)
		return NULL;
	named->name_bytes = (uint16_t)(m->class_bytes + 1 + m->name_bytes);
	named->signature_bytes = m->signature_bytes;
	named->file_bytes = m->file_bytes;
	named->line_bytes = m->line_bytes;
	to = put(named->text, text, m->class_bytes, true);
	*to = '.';
	text += m->class_bytes;
	to = put(to + 1, text, rest, false);
	memcpy(to, text + rest, m->line_bytes);
	return named;
}

/* Puts it among the process's; if an equal one is there, frees it and sets *named to
 * that. The bytes of memory that it takes; -ENOSPC; -ENOMEM: it is freed. */
static int share(struct process *p, struct hotspot_named **named)
{
	const uint32_t bytes = (uint32_t)(sizeof(**named) + text_bytes(*named));
	struct hotspot_named **has = tfind(*named, &p->named, by_text);
	int r = has                                           ? 0
		: p->kept.bytes + bytes > FUSEE_EMITTED_BYTES ? -ENOSPC
		: !tsearch(*named, &p->named, by_text)        ? -ENOMEM
							      : (int)bytes;

	if (r > 0) {
		p->kept.bytes += bytes;
		(*named)->head.bytes = bytes;
		return r;
	}
	free(*named);
	*named = has ? *has : NULL;
	return r;
}

/* NULL: there is none. */
static const struct hotspot_named *use_method(const struct process *p, uint64_t key)
{
	const struct method *method = fusee_emitted_use(&p->kept, &p->methods, key);

	if (!method)
		return NULL;
	method->named->head.used = p->kept.time;
	return method->named;
}

static int add_method(struct process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	struct hotspot_method m;
	struct hotspot_named *named;
	struct method *method;
	int r, shared;

	if (n < sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if ((uint64_t)m.class_bytes + m.name_bytes + m.signature_bytes + m.file_bytes +
			    m.line_bytes !=
		    n - sizeof(m) ||
	    m.class_bytes + m.name_bytes >= UINT16_MAX)
		return -EBADMSG;
	if (use_method(p, key))
		return 0;
	r = fusee_emitted_new(&p->kept, &p->methods, key, sizeof(*method), &method);
	if (r <= 0)
		return r;
	named = new_named(&m, bytes + sizeof(m));
	shared = named ? share(p, &named) : -ENOMEM;
	if (shared < 0) {
		free(method);
		return shared;
	}
	method->named = named;
	named->head.used = p->kept.time;
	r = fusee_emitted_keep_used(&p->kept, &p->methods, method, sizeof(*method), free);
	return r < 0 ? r : r + shared;
}

/* ---- stubs ---- */

static const struct {
	const char *name;  /* how the JVM's name of the stub begins */
	const char *shown; /* NULL: the JVM's name */
	uint32_t flags;
} stubs[] = {
	{"to Java", "StubRoutines::call_stub", FUSEE_FRAME_HIDDEN},
	{"in heap", "[frames in Java's heap]", FUSEE_FRAME_BUILTIN},
	{"replace", "[frame of Java that is replaced]", FUSEE_FRAME_BUILTIN},
	{"StubRoutines", "StubRoutines", FUSEE_FRAME_BUILTIN},
	{"Interpreter", "Interpreter", FUSEE_FRAME_HIDDEN},
	{"I2C/C2I", NULL, FUSEE_FRAME_HIDDEN},
	{"MethodHandles", NULL, FUSEE_FRAME_HIDDEN},
	{"vtable", NULL, FUSEE_FRAME_HIDDEN},
	{"", NULL, FUSEE_FRAME_BUILTIN},
};

static int add_stub(struct process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	size_t size, i = 0;
	struct hotspot_named *named;
	int r;

	if (!n || n > HOTSPOT_STUB_BYTES + 1)
		return -EBADMSG;
	n = strnlen((const char *)bytes, n);
	size = sizeof(*named) + n + 1;
	if (fusee_emitted_has(&p->kept, &p->stubs, key))
		return 0;
	r = fusee_emitted_new(&p->kept, &p->stubs, key, size, &named);
	if (r <= 0)
		return r;
	put(named->text, bytes, n, false);
	while (strncmp(named->text, stubs[i].name, strlen(stubs[i].name)))
		i++;
	named->name_bytes = (uint16_t)n;
	named->shown = stubs[i].shown;
	named->flags = stubs[i].flags;
	return fusee_emitted_keep_used(&p->kept, &p->stubs, named, size, free);
}

/* ---- places ---- */

static int add_place(struct process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	struct hotspot_place *place;
	size_t size = sizeof(*place) + n;
	int r;

	if (!n || n % sizeof(place->scope[0]) || n / sizeof(place->scope[0]) > HOTSPOT_SCOPES)
		return -EBADMSG;
	if (fusee_emitted_has(&p->kept, &p->places, key))
		return 0;
	r = fusee_emitted_new(&p->kept, &p->places, key, size, &place);
	if (r <= 0)
		return r;
	place->n = (uint32_t)(n / sizeof(place->scope[0]));
	memcpy(place->scope, bytes, n);
	return fusee_emitted_keep_used(&p->kept, &p->places, place, size, free);
}

/* ---- threads ---- */

/* Writes a character of UTF-8. Returns the address behind it. */
static char *put_character(char *to, uint32_t c)
{
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (n == 1)
		*to = (char)c;
	for (int i = n - 1; i > 0; i--, c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	if (n > 1)
		to[0] = (char)(first[n] | c);
	return to + n;
}

#define NO_CHARACTER 0xfffdu

/* The character at *i, which becomes the place behind it. Of a pair of UTF-16 that is incomplete:
 * NO_CHARACTER. */
static uint32_t character(const unsigned char *text, uint32_t n, bool wide, uint32_t *i)
{
	uint16_t c, next = 0;

	if (!wide)
		return text[(*i)++];
	memcpy(&c, text + *i, sizeof(c));
	*i += 2;
	if (c >> 11 != 0xd800 >> 11)
		return c;
	if (c < 0xdc00 && n - *i >= 2)
		memcpy(&next, text + *i, sizeof(next));
	if (next >> 10 != 0xdc00 >> 10)
		return NO_CHARACTER;
	*i += 2;
	return 0x10000 + ((c & 0x3ffu) << 10 | (next & 0x3ffu));
}

static int add_thread(struct process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	struct hotspot_named_thread *named;
	struct hotspot_thread head;
	size_t size;
	char *to;
	int r;

	if (n <= sizeof(head) || n > sizeof(head) + HOTSPOT_THREAD_BYTES)
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	bytes += sizeof(head);
	n -= sizeof(head);
	if (head.wide)
		n &= ~1ull;
	size = sizeof(*named) + (head.wide ? 3 * n / 2 : 2 * n) + 1;
	if (fusee_emitted_has(&p->kept, &p->threads, key))
		return 0;
	r = fusee_emitted_new(&p->kept, &p->threads, key, size, &named);
	if (r <= 0)
		return r;
	to = named->name;
	for (uint32_t i = 0; i < n;)
		to = put_character(to, character(bytes, (uint32_t)n, head.wide != 0, &i));
	*to = '\0';
	return fusee_emitted_keep_used(&p->kept, &p->threads, named, size, free);
}

int hotspot_names_add(void **processes, uint64_t process, uint32_t kind, uint64_t key,
		      const void *bytes, uint64_t n)
{
	struct process *p;

	if (kind < HOTSPOT_METHOD || kind > HOTSPOT_THREAD)
		return -EBADMSG;
	p = fusee_emitted_process(processes, process, sizeof(*p));
	if (!p)
		return -ENOMEM;
	return kind == HOTSPOT_METHOD  ? add_method(p, key, bytes, n)
	       : kind == HOTSPOT_PLACE ? add_place(p, key, bytes, n)
	       : kind == HOTSPOT_STUB  ? add_stub(p, key, bytes, n)
				       : add_thread(p, key, bytes, n);
}

const struct hotspot_named *hotspot_names_method(void *const *processes, uint64_t process,
						 uint64_t key)
{
	struct process *p = fusee_emitted_find(processes, process);

	return p ? use_method(p, key) : NULL;
}

const struct hotspot_named *hotspot_names_stub(void *const *processes, uint64_t process,
					       uint64_t key)
{
	struct process *p = fusee_emitted_find(processes, process);

	return p ? fusee_emitted_use(&p->kept, &p->stubs, key) : NULL;
}

const struct hotspot_place *hotspot_names_place(void *const *processes, uint64_t process,
						uint64_t key)
{
	struct process *p = fusee_emitted_find(processes, process);

	return p ? fusee_emitted_use(&p->kept, &p->places, key) : NULL;
}

const char *hotspot_names_thread(void *const *processes, uint64_t process, uint64_t key)
{
	struct process *p = fusee_emitted_find(processes, process);
	const struct hotspot_named_thread *named = p ? fusee_emitted_use(&p->kept, &p->threads, key)
						     : NULL;

	return named ? named->name : NULL;
}

uint64_t hotspot_names_forget(void *const *processes, uint64_t process, uint32_t what)
{
	struct process *p = fusee_emitted_find(processes, process);
	struct fusee_emitted *kept;

	if (p && what == FUSEE_FORGET_BEGIN)
		fusee_emitted_forget_begin(&p->kept);
	if (!p || what != FUSEE_FORGET_UNUSED)
		return 0;
	kept = &p->kept;
	return fusee_emitted_forget_unused(kept, &p->methods, fusee_emitted_order, free) +
	       fusee_emitted_forget_unused(kept, &p->named, by_text, free) +
	       fusee_emitted_forget_unused(kept, &p->places, fusee_emitted_order, free) +
	       fusee_emitted_forget_unused(kept, &p->stubs, fusee_emitted_order, free) +
	       fusee_emitted_forget_unused(kept, &p->threads, fusee_emitted_order, free);
}

void hotspot_names_remove(void **processes, uint64_t process)
{
	struct process *p = fusee_emitted_remove(processes, process);

	if (p)
		free_process(p);
}

void hotspot_names_free(void **processes)
{
	tdestroy(*processes, free_process);
	*processes = NULL;
}
