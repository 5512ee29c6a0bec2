/* SPDX-License-Identifier: Apache-2.0 */
#include "codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/emitted.h>

#include "text.h"
#include "versions.h"

struct python_process {
	struct fusee_emitted kept;
	void *codes; /* a tree of struct python_code */
};

static void free_code(void *element)
{
	struct python_code *c = element;

	free(c->name);
	free(c->file);
	free(c->lines);
	free(c);
}

static void free_process(void *element)
{
	struct python_process *p = element;

	tdestroy(p->codes, free_code);
	free(p);
}

/* Takes n bytes of an emission, and their padding to a multiple of 8. NULL: there are fewer. */
static const unsigned char *take(const unsigned char **at, uint64_t *rest, uint64_t n)
{
	const unsigned char *p = *at;
	uint64_t padded = (n + 7) & ~7ull;

	if (n > *rest)
		return NULL;
	padded = padded < *rest ? padded : *rest;
	*at += padded;
	*rest -= padded;
	return p;
}

/* Makes a code object of an emission, without its line table. NULL: the emission is damaged, or
 * there is no memory. */
static struct python_code *new_code(uint64_t key, const struct python_head *h,
				    const unsigned char **at, uint64_t *rest)
{
	const unsigned char *name = take(at, rest, h->name.bytes);
	const unsigned char *file = name ? take(at, rest, h->file.bytes) : NULL;
	struct python_code *c = file ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->head.key = key;
	c->minor = h->minor;
	c->first_line = h->first_line;
	c->nlines = h->table;
	c->name = python_text(name, &h->name);
	c->file = python_text(file, &h->file);
	c->lines = malloc(h->table ? h->table : 1);
	if (c->name && c->file && c->lines)
		return c;
	free_code(c);
	return NULL;
}

/* Appends a part of the line table, unless a part before it is missing. */
static void add_lines(struct python_code *c, uint32_t part, const unsigned char *bytes, uint64_t n)
{
	if ((uint64_t)part * PYTHON_PART_BYTES != c->arrived || n > c->nlines - c->arrived)
		return;
	memcpy(c->lines + c->arrived, bytes, n);
	c->arrived += (uint32_t)n;
}

static int add_head(struct python_process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	struct python_head h;
	struct python_code *c;

	if (n < sizeof(h))
		return -EBADMSG;
	memcpy(&h, bytes, sizeof(h));
	if (h.table > PYTHON_PARTS * PYTHON_PART_BYTES)
		return -EBADMSG;
	if (fusee_emitted_has(&p->kept, &p->codes, key))
		return 0;
	if (p->kept.bytes + sizeof(*c) + n + h.table > FUSEE_EMITTED_BYTES)
		return -ENOSPC;
	bytes += sizeof(h);
	n -= sizeof(h);
	c = new_code(key, &h, &bytes, &n);
	if (!c)
		return errno == ENOMEM ? -ENOMEM : -EBADMSG;
	add_lines(c, 0, bytes, n < h.part.bytes ? n : h.part.bytes);
	n = sizeof(*c) + strlen(c->name) + strlen(c->file) + h.table;
	return fusee_emitted_keep_used(&p->kept, &p->codes, c, n, free_code);
}

int python_codes_add(void **processes, uint64_t process, uint64_t key, const void *bytes,
		     uint64_t n)
{
	struct python_process *p;
	struct python_part part;
	struct python_code *c;

	if (n < sizeof(part))
		return -EBADMSG;
	memcpy(&part, bytes, sizeof(part));
	if (part.bytes > n - sizeof(part) || part.part >= PYTHON_PARTS)
		return -EBADMSG;
	p = fusee_emitted_process(processes, process, sizeof(*p));
	if (!p)
		return -ENOMEM;
	errno = 0;
	if (!part.part)
		return add_head(p, key, bytes, n);
	c = fusee_emitted_use(&p->kept, &p->codes, key);
	if (c)
		add_lines(c, part.part, (const unsigned char *)bytes + sizeof(part), part.bytes);
	return 0;
}

const struct python_code *python_codes_find(void *const *processes, uint64_t process, uint64_t key)
{
	struct python_process *p = fusee_emitted_find(processes, process);

	return p ? fusee_emitted_use(&p->kept, &p->codes, key) : NULL;
}

uint64_t python_codes_forget(void *const *processes, uint64_t process, uint32_t what)
{
	struct python_process *p = fusee_emitted_find(processes, process);

	if (p && what == FUSEE_FORGET_BEGIN)
		fusee_emitted_forget_begin(&p->kept);
	if (!p || what != FUSEE_FORGET_UNUSED)
		return 0;
	return fusee_emitted_forget_unused(&p->kept, &p->codes, fusee_emitted_order, free_code);
}

void python_codes_remove(void **processes, uint64_t process)
{
	struct python_process *p = fusee_emitted_remove(processes, process);

	if (p)
		free_process(p);
}

void python_codes_free(void **processes)
{
	tdestroy(*processes, free_process);
	*processes = NULL;
}
