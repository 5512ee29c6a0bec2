/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <errno.h>
#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/emitted.h>

#include "baseline.h"

struct process {
	struct fusee_emitted kept;
	void *functions, *scripts; /* trees, by key */
	struct v8_process v8;
};

static void free_script(void *element)
{
	struct v8_file *f = element;

	free(f->source.lines);
	free(f->source.loops);
	free(f);
}

static void free_function(void *element)
{
	struct v8_named *f = element;

	for (uint32_t t = 0; t < V8_TABLES; t++)
		for (uint32_t i = 0; i < V8_PARTS; i++)
			free(f->tables[t].part[i]);
	free(f->inlined);
	free(f);
}

static void free_process(void *element)
{
	struct process *p = element;

	tdestroy(p->functions, free_function);
	tdestroy(p->scripts, free_script);
	v8_modules_free(&p->v8.modules);
	free(p);
}

struct v8_process *v8_names_process(void **processes, uint64_t process)
{
	struct process *p = fusee_emitted_process(processes, process, sizeof(*p));

	return p ? &p->v8 : NULL;
}

/* ---- texts ---- */

static char *put_point(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* Copies a text of Latin-1 or UTF-16 as UTF-8, terminated: at most two bytes for each of
 * its bytes. */
static void put_text(char *to, const unsigned char *from, const struct v8_text *t)
{
	for (uint32_t i = 0; i + t->wide < t->bytes; i += 1u + t->wide) {
		uint32_t c = from[i];

		if (t->wide)
			c |= (uint32_t)from[i + 1] << 8;
		if (t->wide && c >> 10 == 0x36 && i + 3 < t->bytes && from[i + 3] >> 2 == 0x37) {
			c = 0x10000 + ((c & 0x3ff) << 10) +
			    ((from[i + 2] | (uint32_t)from[i + 3] << 8) & 0x3ff);
			i += 2;
		}
		if (c) /* a NUL would end the copy */
			to = put_point(to, c);
	}
	*to = '\0';
}

/* ---- emissions ---- */

/* Is n the size of a struct of `size` bytes and the text behind it? */
static bool fits(uint64_t n, size_t size, const struct v8_text *t)
{
	return t->wide <= 1 && t->bytes == n - size;
}

static int add_function(struct process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	struct v8_function f;
	struct v8_named *named;
	size_t size;
	int r;

	if (n < sizeof(f))
		return -EBADMSG;
	memcpy(&f, bytes, sizeof(f));
	if (!fits(n, sizeof(f), &f.name))
		return -EBADMSG;
	if (fusee_emitted_has(&p->kept, &p->functions, key))
		return 0;
	size = sizeof(*named) + 2u * f.name.bytes + 1;
	r = fusee_emitted_new(&p->kept, &p->functions, key, size, &named);
	if (r <= 0)
		return r;
	*named = (struct v8_named){.head = {.key = key}, .script = f.script, .flags = f.flags};
	put_text(named->name, bytes + sizeof(f), &f.name);
	return fusee_emitted_keep_used(&p->kept, &p->functions, named, size, free_function);
}

static int add_script(struct process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	struct v8_script s;
	struct v8_file *file;
	size_t size;
	int r;

	if (n < sizeof(s))
		return -EBADMSG;
	memcpy(&s, bytes, sizeof(s));
	if (!fits(n, sizeof(s), &s.name))
		return -EBADMSG;
	if (fusee_emitted_has(&p->kept, &p->scripts, key))
		return 0;
	size = sizeof(*file) + 2u * s.name.bytes + 1;
	r = fusee_emitted_new(&p->kept, &p->scripts, key, size, &file);
	if (r <= 0)
		return r;
	*file = (struct v8_file){.head = {.key = key},
				 .source = {.script = s.object,
					    .text = s.source,
					    .at = s.at,
					    .expected = s.length,
					    .wide = s.wide & 1,
					    .line_offset = s.line_offset}};
	put_text(file->name, bytes + sizeof(s), &s.name);
	return fusee_emitted_keep_used(&p->kept, &p->scripts, file, size, free_script);
}

static int add_code(struct process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	struct v8_code c;
	struct v8_named *named;
	uint64_t keys, places;
	int r;

	if (n < sizeof(c))
		return -EBADMSG;
	memcpy(&c, bytes, sizeof(c));
	keys = c.functions * (uint64_t)sizeof(*named->inlined);
	places = c.places * (uint64_t)sizeof(*named->place);
	if (c.functions > V8_MOST_INLINED || c.places > V8_MOST_PLACES ||
	    n != sizeof(c) + keys + places)
		return -EBADMSG;
	if (fusee_emitted_has(&p->kept, &p->functions, key))
		return 0;
	if (p->kept.bytes + sizeof(*named) + 1 + n > FUSEE_EMITTED_BYTES)
		return -ENOSPC;
	r = fusee_emitted_new(&p->kept, &p->functions, key, sizeof(*named) + 1, &named);
	if (r <= 0)
		return r;
	*named = (struct v8_named){
		.head = {.key = key}, .functions = c.functions, .places = c.places};
	named->inlined = malloc(keys + places + 1);
	if (!named->inlined) {
		free(named);
		return -ENOMEM;
	}
	memcpy(named->inlined, bytes + sizeof(c), keys + places);
	named->place = (struct v8_inlined *)(void *)(named->inlined + c.functions);
	return fusee_emitted_keep_used(&p->kept, &p->functions, named, sizeof(*named) + 1 + n,
				       free_function);
}

/* which: as the kinds of parts, from 0 on. */
static int add_part(struct process *p, uint32_t which, uint64_t key, const unsigned char *bytes,
		    uint64_t n)
{
	struct v8_named *f = fusee_emitted_use(&p->kept, &p->functions, key);
	uint32_t part = which % V8_PARTS;
	struct v8_positions head;
	struct v8_parts *table;
	uint64_t rest;

	if (n < sizeof(head) || !f)
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	n -= sizeof(head);
	rest = (uint64_t)head.bytes - (uint64_t)part * V8_PART_BYTES;
	if (rest > head.bytes || n != (rest < V8_PART_BYTES ? rest : V8_PART_BYTES))
		return -EBADMSG;
	table = &f->tables[which / V8_PARTS];
	for (uint32_t i = 0; i < V8_PARTS; i++)
		if (table->part[i] && table->bytes != head.bytes)
			return -EBADMSG; /* parts of two tables */
	if (table->part[part])
		return 0;
	if (p->kept.bytes + n > FUSEE_EMITTED_BYTES)
		return -ENOSPC;
	table->part[part] = malloc(n ? n : 1);
	if (!table->part[part])
		return -ENOMEM;
	memcpy(table->part[part], bytes + sizeof(head), n);
	table->bytes = head.bytes;
	fusee_emitted_grow(&p->kept, f, n);
	return (int)n;
}

int v8_names_add(void **processes, uint64_t process, uint32_t kind, uint64_t key, const void *bytes,
		 uint64_t n)
{
	struct process *p;

	if (kind < V8_FUNCTION || kind == V8_MODULE || kind == V8_WASM ||
	    kind >= V8_POSITIONS + V8_TABLES * V8_PARTS)
		return -EBADMSG;
	p = fusee_emitted_process(processes, process, sizeof(*p));
	if (!p)
		return -ENOMEM;
	return kind == V8_FUNCTION ? add_function(p, key, bytes, n)
	       : kind == V8_SCRIPT ? add_script(p, key, bytes, n)
	       : kind == V8_CODE   ? add_code(p, key, bytes, n)
				   : add_part(p, kind - V8_POSITIONS, key, bytes, n);
}

/* Copies the beginning of a table that is known, and returns it. */
static struct v8_table joined(const struct v8_parts *p, unsigned char to[V8_PARTS * V8_PART_BYTES])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < V8_PARTS && n < p->bytes; i++) {
		uint32_t rest = p->bytes - n;

		if (!p->part[i])
			break;
		rest = rest < V8_PART_BYTES ? rest : V8_PART_BYTES;
		memcpy(to + n, p->part[i], rest);
		n += rest;
	}
	return (struct v8_table){to, n, n && n == p->bytes};
}

struct v8_place v8_names_place(const struct v8_named *f, uint32_t offset, bool between)
{
	unsigned char bytes[V8_PARTS * V8_PART_BYTES];
	struct v8_table t = joined(&f->tables[V8_TABLE_POSITIONS], bytes);

	return between ? v8_position_between(&t, offset) : v8_position(&t, offset);
}

struct v8_place v8_names_baseline_place(const uint32_t *words, const struct v8_named *function,
					const struct v8_named *code, uint32_t offset)
{
	unsigned char bytes[2][V8_PARTS * V8_PART_BYTES];
	struct v8_table bytecode = joined(&function->tables[V8_TABLE_BYTECODE], bytes[0]);
	struct v8_table offsets = joined(&code->tables[V8_TABLE_POSITIONS], bytes[1]);
	int64_t at = v8_baseline_bytecode(words, &bytecode, &offsets, offset);

	return at < 0 ? (struct v8_place){0, -1, false}
		      : v8_names_place(function, (uint32_t)at, false);
}

const struct v8_named *v8_names_function(void *const *processes, uint64_t process, uint64_t key)
{
	struct process *p = fusee_emitted_find(processes, process);

	return p ? fusee_emitted_use(&p->kept, &p->functions, key) : NULL;
}

struct v8_file *v8_names_script(void *const *processes, uint64_t process, uint64_t key)
{
	struct process *p = fusee_emitted_find(processes, process);

	return p ? fusee_emitted_use(&p->kept, &p->scripts, key) : NULL;
}

struct each {
	bool (*each)(void *arg, struct v8_file *);
	void *arg;
	bool ended;
};

static void visit(const void *node, VISIT which, void *arg)
{
	struct each *e = arg;

	if (which == postorder || which == leaf)
		e->ended = e->ended || !e->each(e->arg, *(struct v8_file *const *)node);
}

void v8_names_each_script(void *const *processes, uint64_t process,
			  bool (*each)(void *arg, struct v8_file *), void *arg)
{
	struct process *p = fusee_emitted_find(processes, process);
	struct each e = {each, arg, false};

	if (p)
		twalk_r(p->scripts, visit, &e);
}

static bool add_lines(void *arg, struct v8_file *f)
{
	*(uint64_t *)arg += f->source.nlines + f->source.nloops;
	return true;
}

uint64_t v8_names_forget(void *const *processes, uint64_t process, uint32_t what)
{
	struct process *p = fusee_emitted_find(processes, process);
	uint64_t bytes;

	if (p && what == FUSEE_FORGET_BEGIN)
		fusee_emitted_forget_begin(&p->kept);
	if (!p || what != FUSEE_FORGET_UNUSED)
		return 0;
	bytes = fusee_emitted_forget_unused(&p->kept, &p->functions, fusee_emitted_order,
					    free_function);
	bytes += fusee_emitted_forget_unused(&p->kept, &p->scripts, fusee_emitted_order,
					     free_script);
	p->v8.lines = 0;
	v8_names_each_script(processes, process, add_lines, &p->v8.lines);
	return bytes;
}

void v8_names_remove(void **processes, uint64_t process)
{
	struct process *p = fusee_emitted_remove(processes, process);

	if (p)
		free_process(p);
}

void v8_names_free(void **processes)
{
	tdestroy(*processes, free_process);
	*processes = NULL;
}
