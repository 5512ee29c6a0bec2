/* SPDX-License-Identifier: Apache-2.0 */
#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SECTIONS 10000u
#define MOST_SECTION (8u << 20) /* bytes of a section that is read */
#define MOST_FUNCTIONS 1000000u /* as V8 allows */

enum { CUSTOM = 0, IMPORTS = 2, FUNCTIONS = 3, EXPORTS = 7 };

struct cursor {
	const unsigned char *at, *end;
	bool failed;
};

static uint64_t take(struct cursor *c)
{
	uint64_t v = 0;

	for (uint32_t shift = 0; shift < 64 && c->at < c->end; shift += 7) {
		uint8_t byte = *c->at++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->failed = true;
	return 0;
}

static void skip(struct cursor *c, uint64_t n)
{
	if (n > (uint64_t)(c->end - c->at)) {
		c->failed = true;
		n = (uint64_t)(c->end - c->at);
	}
	c->at += n;
}

/* ---- sections ---- */

struct section {
	uint8_t id;
	uint64_t at, size; /* of its content; of one with a name, behind that */
	char name[5];      /* "": it has none, or another than that of the names */
};

struct module {
	v8_read_bytes *read;
	void *arg;
	uint64_t size;
	bool failed; /* something could not be read */
};

static bool get(struct module *m, uint64_t at, void *to, uint64_t n)
{
	if (!m->read(m->arg, at, to, (uint32_t)n))
		m->failed = true;
	return !m->failed;
}

/* Sets s->name, if it is that of the section of names. */
static void look_at_name(struct module *m, struct section *s)
{
	char head[5];

	if (s->size < sizeof(head) || !get(m, s->at, head, sizeof(head)) ||
	    memcmp(head, "\4name", sizeof(head)) != 0)
		return;
	memcpy(s->name, "name", sizeof(s->name));
	s->at += sizeof(head);
	s->size -= sizeof(head);
}

/* The section at *at, which becomes where the next is. */
static bool next_section(struct module *m, uint64_t *at, struct section *s)
{
	unsigned char head[6];
	uint32_t n = m->size - *at < sizeof(head) ? (uint32_t)(m->size - *at) : sizeof(head);
	struct cursor c = {head + 1, head + n, false};

	if (n < 2 || !get(m, *at, head, n))
		return false;
	*s = (struct section){.id = head[0], .size = take(&c)};
	s->at = *at + (uint64_t)(c.at - head);
	if (c.failed || s->size > m->size - s->at)
		return false;
	*at = s->at + s->size;
	if (s->id == CUSTOM)
		look_at_name(m, s);
	return true;
}

/* ---- imports ---- */

static void skip_limits(struct cursor *c)
{
	uint64_t flags = take(c);

	take(c);
	if (flags & 1)
		take(c);
}

static void skip_type(struct cursor *c)
{
	uint64_t type = take(c);

	if (type == 0x63 || type == 0x64) /* a reference to a type that follows */
		take(c);
}

static uint32_t count_imports(struct cursor c)
{
	uint64_t n = take(&c);
	uint32_t functions = 0;

	for (uint64_t i = 0; i < n && !c.failed; i++) {
		skip(&c, take(&c));
		skip(&c, take(&c));
		switch (take(&c)) {
		case 0:
			take(&c);
			functions += !c.failed;
			break;
		case 1:
			skip_type(&c);
			skip_limits(&c);
			break;
		case 2:
			skip_limits(&c);
			break;
		case 3:
			skip_type(&c);
			take(&c);
			break;
		case 4:
			take(&c);
			take(&c);
			break;
		default:
			c.failed = true;
		}
	}
	return c.failed ? UINT32_MAX : functions;
}

/* ---- names ---- */

static void set_name(struct v8_functions *f, uint64_t function, const unsigned char *name)
{
	if (function < (uint64_t)f->imported + f->declared && !f->names[function])
		f->names[function] = (uint32_t)(name - f->texts) + 1;
}

/* The function names of the section of names. */
static void add_names(struct v8_functions *f, struct cursor c)
{
	while (c.at < c.end && !c.failed) {
		uint64_t id = take(&c), size = take(&c);
		struct cursor in = c;

		skip(&c, size);
		if (id != 1 || c.failed)
			continue;
		in.end = c.at;
		for (uint64_t n = take(&in); n && !in.failed; n--) {
			uint64_t function = take(&in);
			const unsigned char *name = in.at;

			skip(&in, take(&in));
			if (!in.failed)
				set_name(f, function, name);
		}
	}
}

static void add_exports(struct v8_functions *f, struct cursor c)
{
	for (uint64_t n = take(&c); n && !c.failed; n--) {
		const unsigned char *name = c.at;
		uint64_t kind, function;

		skip(&c, take(&c));
		kind = take(&c);
		function = take(&c);
		if (!kind && !c.failed)
			set_name(f, function, name);
	}
}

/* Reads a section to `to`, which is freed by the caller. */
static bool read_section(struct module *m, const struct section *s, unsigned char **to)
{
	*to = NULL;
	if (!s->size || s->size > MOST_SECTION)
		return false;
	*to = malloc(s->size);
	return *to && get(m, s->at, *to, s->size);
}

/* Reads the names, and those of exports for functions that have none. */
static bool read_names(struct module *m, struct section names, struct section exports,
		       struct v8_functions *f)
{
	const uint64_t n = (uint64_t)f->imported + f->declared;

	names.size = names.size <= MOST_SECTION ? names.size : 0;
	exports.size = exports.size <= MOST_SECTION ? exports.size : 0;
	f->names = calloc(n ? n : 1, sizeof(*f->names));
	f->texts = malloc(names.size + exports.size + 1);
	if (!f->names || !f->texts)
		return false;
	f->ntexts = (uint32_t)(names.size + exports.size);
	if (names.size && !get(m, names.at, f->texts, names.size))
		return false;
	if (exports.size && !get(m, exports.at, f->texts + names.size, exports.size))
		return false;
	add_names(f, (struct cursor){f->texts, f->texts + names.size, false});
	add_exports(f, (struct cursor){f->texts + names.size, f->texts + f->ntexts, false});
	return true;
}

/* Sets the numbers of functions. */
static bool read_counts(struct module *m, const struct section *imports,
			const struct section *functions, struct v8_functions *f)
{
	unsigned char head[10], *bytes = NULL;
	uint32_t n = functions->size < sizeof(head) ? (uint32_t)functions->size : sizeof(head);
	struct cursor c = {head, head + n, false};
	uint64_t declared = 0;

	if (imports->size) {
		if (read_section(m, imports, &bytes))
			f->imported = count_imports(
				(struct cursor){bytes, bytes + imports->size, false});
		else
			f->imported = UINT32_MAX;
		free(bytes);
	}
	if (n) {
		if (!get(m, functions->at, head, n))
			return false;
		declared = take(&c);
	}
	f->declared = (uint32_t)declared;
	return f->imported <= MOST_FUNCTIONS && declared <= MOST_FUNCTIONS && !c.failed;
}

bool v8_bytes_read(v8_read_bytes *read, void *arg, uint64_t size, struct v8_functions *f)
{
	static const unsigned char magic[8] = {0, 'a', 's', 'm', 1};
	struct section imports = {0}, functions = {0}, exports = {0}, names = {0}, s;
	struct module m = {read, arg, size, false};
	unsigned char head[sizeof(magic)];
	uint64_t at = sizeof(head);

	*f = (struct v8_functions){0};
	if (size < sizeof(head) || !read(arg, 0, head, sizeof(head)) ||
	    memcmp(head, magic, sizeof(head)) != 0)
		return false;
	for (uint32_t i = 0; i < MOST_SECTIONS && next_section(&m, &at, &s); i++) {
		if (s.id == IMPORTS)
			imports = s;
		if (s.id == FUNCTIONS)
			functions = s;
		if (s.id == EXPORTS)
			exports = s;
		if (*s.name)
			names = s;
	}
	if (!m.failed && read_counts(&m, &imports, &functions, f) &&
	    read_names(&m, names, exports, f))
		return true;
	v8_bytes_free(f);
	return false;
}

const unsigned char *v8_bytes_name(const struct v8_functions *f, uint32_t function, uint32_t *n)
{
	struct cursor c;
	uint64_t length;

	if (function >= (uint64_t)f->imported + f->declared || !f->names[function])
		return NULL;
	c = (struct cursor){f->texts + f->names[function] - 1, f->texts + f->ntexts, false};
	length = take(&c);
	if (c.failed || length > (uint64_t)(c.end - c.at))
		return NULL;
	*n = (uint32_t)length;
	return c.at;
}

void v8_bytes_free(struct v8_functions *f)
{
	free(f->names);
	free(f->texts);
	*f = (struct v8_functions){0};
}
